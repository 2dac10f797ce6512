package wasm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/wasm/abi"
)

// Configuration is what an upload needs besides the file.
type Configuration struct {
	Plugin    string
	Config    json.RawMessage // for the plugin
	Encoding  string          // charset of the file; "" = UTF-8
	Zone      *time.Location  // of times that carry none; nil = UTC
	SkipRules bool            // rules do not see what the file holds
}

// Parsers is the core.Parser of a host.
type Parsers struct {
	Host *Host
	// Configuration resolves the parser that a request names; nil takes its name for the plugin's.
	Configuration func(ctx context.Context, r core.ParseRequest) (Configuration, error)
	// Transcode makes UTF-8 of another charset; nil refuses all others.
	Transcode func(charset string, r io.Reader) (io.Reader, error)
	// Describe takes what a plugin says of the metrics that it makes: those who upload data need not be allowed to change metrics. With nil
	// the changes stay in the batch.
	Describe func(ctx context.Context, metrics []core.DocChange) error
	// Observe sees what a plugin made of a chunk before it is stored, and leaves it as it is; nil: nobody looks.
	Observe func(ctx context.Context, plugin string, b *core.Batch)
	// LetterBytes bounds what a *Lost keeps of the input, the head of a stateful stream included; 0 = 1 MiB.
	LetterBytes int
}

// Parse streams body through one plugin, chunk by chunk, each of which gives a batch of its own. The last call into the plugin has no
// data. A parser that stops at a line gives its batch first, and then the error. A body that is a Live gives a batch of what has
// come whenever it is not ready, and the plugin then has an empty chunk. A piece that the plugin could not take
// comes as an error of type *Lost, after which a stateless plugin gets the next chunk.
func (p *Parsers) Parse(ctx context.Context, r core.ParseRequest, body io.Reader) iter.Seq2[core.Parsed, error] {
	return p.Resume(ctx, r, body, 0)
}

// Resume is Parse for a body whose first bytes, those before from, were stored before: the plugin reads them again, and what it makes of them is dropped.
func (p *Parsers) Resume(ctx context.Context, r core.ParseRequest, body io.Reader, from int64) iter.Seq2[core.Parsed, error] {
	return p.run(ctx, r, body, func(u *parsing, _ func(core.Parsed, error) bool) bool {
		u.from = from
		return true
	})
}

// Continue is Parse for the rest of a file: head is what the plugin has to read before, the header for example. What it makes of that is dropped.
func (p *Parsers) Continue(ctx context.Context, r core.ParseRequest, head []byte, body io.Reader) iter.Seq2[core.Parsed, error] {
	return p.run(ctx, r, body, func(u *parsing, yield func(core.Parsed, error) bool) bool {
		text, err := p.decode(u.found.Encoding, bytes.NewReader(head))
		if err != nil {
			yield(core.Parsed{}, err)
			return false
		}
		u.from = math.MaxInt64
		for c, err := range chunks(text, u.Manifest().FramingOf(r.Format), nil) {
			if err != nil {
				yield(core.Parsed{}, readError(err))
				return false
			}
			c.flags &^= abi.FlagLast
			if len(c.data) > 0 && !u.step(ctx, c, yield) {
				return false
			}
		}
		u.from = u.at
		return true
	})
}

// run parses body once begin has prepared the plugin for it, which reports whether to go on.
func (p *Parsers) run(ctx context.Context, r core.ParseRequest, body io.Reader, begin func(*parsing, func(core.Parsed, error) bool) bool) iter.Seq2[core.Parsed, error] {
	return func(yield func(core.Parsed, error) bool) {
		ready := readiness(body)
		u, body, err := p.open(ctx, r, body)
		if err != nil {
			yield(core.Parsed{}, coreError(err))
			return
		}
		defer u.Close()
		u.live = ready != nil
		if !begin(u, yield) {
			return
		}
		for c, err := range chunks(body, u.Manifest().FramingOf(r.Format), ready) {
			if u.tape.lost != nil {
				u.tape.lost.truncated = u.tape.lost.truncated || err != nil
				if err != nil || !u.tape.more(c.data) {
					break
				}
				continue
			}
			if err != nil {
				yield(core.Parsed{}, readError(err))
				return
			}
			for _, part := range parts(c) {
				if !u.step(ctx, part, yield) {
					return
				}
			}
			if u.tape.lost != nil && u.live { // a sender that goes on for days is not listened to in order to throw it all away
				u.tape.lost.truncated = true
				break
			}
		}
		if u.tape.lost != nil {
			yield(core.Parsed{}, u.tape.lost)
		}
	}
}

// step does one call and reports whether to go on: with the next chunk, or with collecting what is lost.
func (u *parsing) step(ctx context.Context, c chunk, yield func(core.Parsed, error) bool) bool {
	if u.tape.lost != nil {
		return true // the chunk was lost, its end mark is of no use
	}
	stateful := u.Manifest().Stateful
	if u.live { // every chunk has its own time of arrival
		now := u.parsers.Host.options.Now().UnixMilli()
		u.Stream.job.received, u.request.Received = now, core.Time(now)
	}
	at := u.at
	u.at += int64(len(c.data))
	parsed, err := u.parse(ctx, c)
	switch {
	case err == nil && stateful:
		u.tape.took(c.data)
	case err == nil:
	case isLost(err) && stateful:
		u.tape.lose(err, c.data)
		return true
	case isLost(err) && len(c.data) > 0:
		return yield(core.Parsed{}, loseChunk(err, at, c, u.tape.limit))
	default:
		yield(core.Parsed{}, coreError(err))
		return false
	}
	if at >= u.from && !yield(parsed, nil) {
		return false
	}
	if u.stopped != nil {
		yield(core.Parsed{}, u.stopped)
		return false
	}
	if u.live && stateful && len(c.data) > 0 && at >= u.from {
		// The next line may be an hour away: with an empty chunk a parser writes what it kept back.
		return u.step(ctx, chunk{}, yield)
	}
	return true
}

// parts takes the end mark off a chunk with data.
func parts(c chunk) []chunk {
	if c.flags&abi.FlagLast == 0 || len(c.data) == 0 {
		return []chunk{c}
	}
	return []chunk{{c.data, c.flags &^ abi.FlagLast}, {nil, c.flags}}
}

// readError is of the body, not of the plugin.
func readError(err error) error {
	if errors.Is(err, errLongLine) {
		return core.Errorf(core.TooLarge, "%v", err)
	}
	return err
}

// parsing is one upload in work.
type parsing struct {
	*Stream
	parsers *Parsers
	request core.ParseRequest
	found   Configuration
	tape    tape
	at      int64 // bytes handed to the plugin
	from    int64 // what comes before is stored
	live    bool  // the body is a Live

	stopped     error            // of a plugin that reads no further
	undescribed []core.DocChange // of metrics
}

func (p *Parsers) open(ctx context.Context, r core.ParseRequest, body io.Reader) (*parsing, io.Reader, error) {
	found := Configuration{Plugin: r.Parser, Encoding: r.Encoding}
	var err error
	if p.Configuration != nil {
		if found, err = p.Configuration(ctx, r); err != nil {
			return nil, nil, err
		}
	}
	plugin := p.Host.Plugin(found.Plugin)
	if plugin == nil {
		return nil, nil, core.Errorf(core.Invalid, "parser '%s' needs the plugin '%s', which this server does not have", r.Parser, found.Plugin)
	}
	if body, err = p.decode(found.Encoding, body); err != nil {
		return nil, nil, err
	}
	limits := p.Host.options.Limits
	request := abi.OpenRequest{Kind: abi.KindParser, Format: r.Format, Config: found.Config, ConfigName: r.Parser, Params: r.Params,
		Tags: r.Tags.Map(), Settings: r.Settings, Received: int64(r.Received), Source: r.Source, File: r.FileName,
		Limits: abi.OpenLimits{Records: limits.Items, LineBytes: maxLine, OutputBytes: limits.Bytes}}
	if found.Zone != nil {
		request.Zone, request.Offsets = found.Zone.String(), offsets(found.Zone)
	}
	s, err := plugin.OpenFrom(ctx, r.Origin, request)
	if err != nil {
		return nil, nil, err
	}
	u := &parsing{Stream: s, parsers: p, request: r, found: found}
	u.tape.limit = cmp.Or(p.LetterBytes, defaultLetter)
	return u, body, nil
}

func (p *Parsers) decode(charset string, body io.Reader) (io.Reader, error) {
	if p.Transcode == nil && charset != "" && !strings.EqualFold(charset, "utf-8") {
		return nil, core.Errorf(core.Unsupported, "encoding %q: only UTF-8 is supported here", charset)
	}
	if p.Transcode == nil {
		return body, nil
	}
	return p.Transcode(charset, body)
}

// The years for which a guest gets the offsets of its zone; before and after them the nearest offset holds.
const (
	firstYear = 1970
	lastYear  = 2060
)

// offsets lists the offsets of a zone. ZoneBounds may call an instant the end of its own zone (the last day of leap years beyond
// the table of a zone file): then a day is a small enough step.
func offsets(zone *time.Location) []abi.ZoneOffset {
	var list []abi.ZoneOffset
	for t := time.Date(firstYear, 1, 1, 0, 0, 0, 0, time.UTC).In(zone); t.Year() <= lastYear; {
		if _, seconds := t.Zone(); len(list) == 0 || list[len(list)-1].Seconds != seconds {
			list = append(list, abi.ZoneOffset{From: t.UnixMilli(), Seconds: seconds})
		}
		_, end := t.ZoneBounds()
		if end.IsZero() {
			break
		}
		if !end.After(t) {
			end = t.AddDate(0, 0, 1)
		}
		t = end
	}
	return list
}

// zone answers abi.ImportZone.
func (h *Host) zone(id string, buf []byte) int32 {
	if h.options.Zone == nil {
		return int32(abi.Unavailable)
	}
	zone, err := h.options.Zone(id)
	if err != nil {
		return int32(abi.Absent)
	}
	return answer(abi.AppendZone(nil, offsets(zone)), buf)
}

func (u *parsing) parse(ctx context.Context, c chunk) (core.Parsed, error) {
	b, err := u.Write(ctx, c.data, c.flags)
	if err != nil {
		return core.Parsed{}, err
	}
	parsed := core.Parsed{Batch: &core.Batch{Origin: u.request.Origin, Received: u.request.Received}, Lines: int(b.Lines)}
	if err := AppendBatch(parsed.Batch, b, u.parsers.Host.options.Catalog); err != nil {
		err := faultf(u.plugin.name, FaultOutput, "%w", err)
		err.DeadLetter, err.Offset = true, u.at-int64(len(c.data))
		return core.Parsed{}, err
	}
	for _, j := range b.Rejects {
		parsed.Rejects = append(parsed.Rejects, core.Reject{Line: int(j.Line), Column: int(j.Column), Reason: j.Reason, Text: j.Text})
	}
	parsed.Dropped = max(0, int(b.Rejected)-len(b.Rejects))
	if b.Stopped {
		u.stopped = core.Errorf(core.Invalid, "%s", stopText(b))
	}
	if u.found.SkipRules {
		parsed.Batch.HideFromRules()
	}
	if u.parsers.Observe != nil {
		u.parsers.Observe(ctx, u.plugin.name, parsed.Batch)
	}
	if err := u.describe(ctx, parsed.Batch); err != nil {
		return core.Parsed{}, err
	}
	if state := u.Remembered(); len(state) > 0 {
		parsed.Batch.Documents = append(parsed.Batch.Documents, state...)
		// What a plugin remembers belongs to the server, whose role the batch needs. No other right comes with this one: entities and the
		// roles for the rest of the batch stay those of the uploader, and plugins make no other documents that need it.
		parsed.Batch.Origin.Grants.Roles |= core.Admin
	}
	return parsed, nil
}

// stopText says why a plugin reads no further.
func stopText(b *abi.Batch) string {
	if n := len(b.Rejects); n > 0 {
		return b.Rejects[n-1].String()
	}
	return "the plugin reads no further, and does not say why"
}

// describe hands the metrics that the plugin describes over. They are not worth the samples that came with them: while the store takes none, they wait
// for the next chunk.
func (u *parsing) describe(ctx context.Context, b *core.Batch) error {
	if u.parsers.Describe == nil {
		return nil
	}
	rest := b.Documents[:0]
	for _, d := range b.Documents {
		if d.Kind == core.DocMetric {
			u.undescribed = append(u.undescribed, d)
		} else {
			rest = append(rest, d)
		}
	}
	b.Documents = rest
	if len(u.undescribed) == 0 {
		return nil
	}
	err := u.parsers.Describe(ctx, slices.Clone(u.undescribed))
	if code := core.CodeOf(err); err != nil && (code == core.NoSpace || code == core.Unavailable) {
		return nil
	}
	u.undescribed = nil
	return err
}
