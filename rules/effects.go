package rules

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	commands "github.com/tidemark-db/tidemark/core/command"
	"github.com/tidemark-db/tidemark/rules/outbox"
)

// effects is what one transition writes: all of it is in one batch, so that a crash keeps it all or loses it all.
type effects struct {
	event         string
	at            cause
	point         point
	order         outbox.Order // of its notifications
	rule          *Rule
	changes       []core.AlertChange
	notifications []outbox.Notification
	derived       *core.Batch
	fired         []TracedAction
	text          string // what the last command or log action rendered
}

// point is a place in the order in which the engine does things: after the entry at Position, and after the tick.
type point struct {
	Position core.Position `json:"position"`
	Tick     core.Time     `json:"tick"`
}

func (p point) after(o point) bool {
	return p.Position > o.Position || p.Position == o.Position && p.Tick > o.Tick
}

// eventID names a transition. Its inputs are the same in a replay; a tick does not depend on the position, because an entry whose receive time lies
// before the tick may have become visible just after it.
func (e *Engine) eventID(w *window, c cause) string {
	h := sha256.New()
	_, _ = io.WriteString(h, w.rule.Name+"\x00"+w.key+"\x00") // a hash takes everything
	var b []byte
	b = binary.BigEndian.AppendUint64(b, uint64(c.position))
	b = binary.BigEndian.AppendUint64(b, uint64(c.index))
	b = binary.BigEndian.AppendUint64(b, uint64(c.tick))
	_, _ = h.Write(b)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func (e *Engine) effects(event string, c cause) *effects {
	if p := (point{e.cursor, e.tick}); p != e.events.point {
		e.events.point, e.events.count = p, 0
	}
	e.events.count++
	p := e.events.point
	return &effects{event: event, at: c, point: p, order: outbox.Order{Position: p.Position, Tick: p.Tick, Event: e.events.count}}
}

func (fx *effects) change(kind core.AlertChangeKind, w *window, row *core.AlertRow) {
	fx.rule = w.rule
	fx.changes = append(fx.changes, core.AlertChange{Event: fx.event, Kind: kind, Alert: alertOf(w), Row: row})
}

// outcome is what became of effects.
type outcome uint8

const (
	queued         outcome = iota
	droppedKnown           // a replay: the log holds them
	droppedUnknown         // a replay: the live run was past this point and did not do this
)

// suppressed reports whether fx lies in the past of the log. An event that the log holds was stored together with everything else of its transition; the
// mark of what was written says so for transitions without an event.
func (e *Engine) suppressed(fx *effects) bool {
	if !e.replaying {
		return false
	}
	_, known := e.known[fx.event]
	return known || !fx.point.after(e.written)
}

// emit queues fx for the log.
func (e *Engine) emit(fx *effects) outcome {
	if e.suppressed(fx) {
		if _, known := e.known[fx.event]; known {
			return droppedKnown
		}
		return droppedUnknown
	}
	if len(fx.changes) == 0 && len(fx.notifications) == 0 && fx.derived == nil {
		return queued
	}
	o := e.outgoing(fx.at.depth)
	o.point = fx.point
	o.batch.Alerts = append(o.batch.Alerts, fx.changes...)
	for _, n := range fx.notifications {
		o.batch.Documents = append(o.batch.Documents, n.Document())
	}
	o.notifications = append(o.notifications, fx.notifications...)
	if fx.derived != nil {
		o.derived++
		merge(o.batch, fx.derived)
	}
	return queued
}

// outgoing is a batch on its way into the log.
type outgoing struct {
	batch         *core.Batch
	depth         uint8
	point         point
	notifications []outbox.Notification
	derived       int
	tried         bool // sent once without an answer: it must not grow any more, since the log knows it by its events
}

// Batches of effects are joined while the engine is busy; these bounds keep one well below the limits of a request.
const (
	maxOutgoing = 4096 // records
	maxQueued   = 64   // batches that wait because the log refuses them
)

// outgoing returns the batch to add to: records derived from one depth share a batch.
func (e *Engine) outgoing(depth uint8) *outgoing {
	if n := len(e.queue); n > 0 && e.queue[n-1].depth == depth && !e.queue[n-1].tried && e.queue[n-1].batch.Len() < maxOutgoing {
		return e.queue[n-1]
	}
	o := &outgoing{batch: &core.Batch{}, depth: depth}
	e.queue = append(e.queue, o)
	return o
}

// merge appends the records of src to dst.
func merge(dst, src *core.Batch) {
	base := uint32(dst.Samples.Len())
	refs := make([]uint32, len(src.Keys))
	for i, k := range src.Keys {
		refs[i] = dst.Ref(k)
	}
	s := &src.Samples
	for _, r := range s.Series {
		dst.Samples.Series = append(dst.Samples.Series, refs[r])
	}
	dst.Samples.Times = append(dst.Samples.Times, s.Times...)
	dst.Samples.Values = append(dst.Samples.Values, s.Values...)
	dst.Samples.Flags = append(dst.Samples.Flags, s.Flags...)
	for _, t := range s.Texts {
		dst.Samples.Texts = append(dst.Samples.Texts, core.TextAt{Index: t.Index + base, Text: t.Text})
	}
	for _, d := range s.Decimals {
		dst.Samples.Decimals = append(dst.Samples.Decimals, core.DecimalAt{Index: d.Index + base, Decimal: d.Decimal})
	}
	for _, v := range s.Versions {
		v.Index += base
		dst.Samples.Versions = append(dst.Samples.Versions, v)
	}
	dst.Messages = append(dst.Messages, src.Messages...)
	dst.Properties = append(dst.Properties, src.Properties...)
	dst.Documents = append(dst.Documents, src.Documents...)
}

// deriveCommands renders text commands and parses them. A bad line is a rule error; the others still go in.
func (ev *evaluation) deriveCommands(a *action, fx *effects) error {
	text, err := ev.render(a.commands, inCommand)
	if err != nil {
		return err
	}
	if fx.at.depth >= core.MaxDepth {
		return fmt.Errorf("record was derived %d times from derived records: the rules feed each other, and the loop ends here", core.MaxDepth)
	}
	fx.text = text
	parser := &commands.Parser{Received: ev.now}
	lines := commands.NewSplitter(strings.NewReader(text), commands.Exact)
	if fx.derived == nil {
		fx.derived = &core.Batch{}
	}
	for {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && len(bytes.TrimSpace(line)) > 0 {
			err = parser.Line(fx.derived, line)
		}
		if err != nil {
			ev.report(fmt.Errorf("action %s: %w", a.def.Name, err))
		}
	}
	if fx.derived.Len() == 0 {
		fx.derived = nil
	}
	return nil
}

// writtenKey is the document that says how far effects are in the log; it travels in every batch of effects.
const writtenKey = "rules/written"

// flush sends queued batches, oldest first, and stops at the first that the log refuses for the time being.
func (e *Engine) flush(ctx context.Context) error {
	defer e.publish()
	for len(e.queue) > 0 {
		o := e.queue[0]
		o.tried = true
		if err := e.send(ctx, o); err != nil {
			return err
		}
		e.queue[0] = nil
		e.queue = e.queue[1:]
		e.written = o.point
		if e.outbox != nil && len(o.notifications) > 0 {
			e.outbox.Notify(o.notifications)
		}
	}
	return e.sendNotes(ctx)
}

// send ingests one batch. When its derived records are refused for good, the alerts and notifications go without them.
func (e *Engine) send(ctx context.Context, o *outgoing) error {
	mark, err := json.Marshal(o.point)
	if err != nil {
		return err
	}
	b := e.outgoingBatch(o)
	b.Documents = append(b.Documents, core.DocChange{Kind: core.DocCheckpoint, Key: writtenKey, Op: core.DocPut, Body: mark})
	_, err = e.ingest.Ingest(ctx, b)
	switch core.CodeOf(err) {
	case core.Invalid, core.TooLarge, core.Forbidden:
	default:
		return err
	}
	if err == nil {
		return nil
	}
	e.reportText("", fmt.Sprintf("derived records refused: %v", err))
	bare := &core.Batch{Origin: b.Origin, Alerts: o.batch.Alerts}
	for _, n := range o.notifications {
		bare.Documents = append(bare.Documents, n.Document())
	}
	bare.Documents = append(bare.Documents, core.DocChange{Kind: core.DocCheckpoint, Key: writtenKey, Op: core.DocPut, Body: mark})
	if _, err = e.ingest.Ingest(ctx, bare); err != nil && core.CodeOf(err) == core.Invalid {
		e.reportText("", fmt.Sprintf("alert changes refused: %v", err))
		return nil
	}
	return err
}

// outgoingBatch copies o, because a batch belongs to the callee from the call on and may have to be sent again.
func (e *Engine) outgoingBatch(o *outgoing) *core.Batch {
	b := &core.Batch{Alerts: append([]core.AlertChange(nil), o.batch.Alerts...)}
	merge(b, o.batch)
	b.Origin = core.Origin{User: "system", Door: core.DoorRule, Depth: min(o.depth+1, core.MaxDepth), Grants: core.SystemGrants}
	return b
}

// sendNotes stores rule errors as messages.
func (e *Engine) sendNotes(ctx context.Context) error {
	list := e.notes.take()
	if len(list) == 0 {
		return nil
	}
	_, err := e.ingest.Ingest(ctx, &core.Batch{Origin: core.SystemOrigin(0), Messages: list})
	if err != nil {
		e.log.Warn("rules: rule errors could not be stored", "error", err)
	}
	return nil
}
