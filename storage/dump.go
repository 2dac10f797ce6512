package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/events"
	"github.com/tidemark-db/tidemark/storage/journal"
	"github.com/tidemark-db/tidemark/storage/samples"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// Detail says how much Dump shows.
type Detail uint8

const (
	Outline Detail = iota // of files of samples and messages: directories, and how blocks are encoded
	Rows                  // their rows as well
)

// fileFormat is what Check and Dump know of a kind of file.
type fileFormat struct {
	kind  fileKind
	magic string
	// check tells faults to c, and returns counts for the summary.
	check func(c *inspector, path string) string
	dump  func(d dumping, path string) error
}

// dumping is where Dump writes.
type dumping struct {
	fs     vfs.FS
	w      io.Writer
	detail Detail
}

// formats are the kinds of files beside the journal and the manifest.
func formats() []fileFormat {
	return []fileFormat{
		{kindSamples, "tidesmpl", checkSamples, dumpSamples},
		{kindMessages, "tidemsgs", checkMessages, dumpMessages},
		{kindIndex, "tideindx", checkIndex, dumpIndex},
		{kindTable, "tidetabl", checkTable, dumpTable},
	}
}

// formatOf returns the format of a kind, nil when there is none.
func formatOf(kind fileKind) *fileFormat {
	kind, _, _ = cutKind(kind)
	for _, f := range formats() {
		if f.kind == kind {
			return &f
		}
	}
	return nil
}

// Dump writes a file of a data directory as text: a journal segment with its records decoded, a manifest, or a file that a manifest names. The first bytes say what it is.
func Dump(fs vfs.FS, path string, w io.Writer, detail Detail) error {
	d := dumping{fs, w, detail}
	start, err := startOf(fs, path)
	if err != nil {
		return fmt.Errorf("storage: dump: %w", err)
	}
	if string(start) == manifestMagic {
		return d.manifest(path)
	}
	for _, f := range formats() {
		if string(start) == f.magic {
			return f.dump(d, path)
		}
	}
	return d.journal(path)
}

// startOf returns the first eight bytes of a file, or fewer.
func startOf(fs vfs.FS, path string) ([]byte, error) {
	f, err := fs.Open(path, vfs.ReadOnly)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	var start [8]byte
	n, err := f.ReadAt(start[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return start[:n], nil
}

func (d dumping) journal(path string) error {
	p, err := newPacker()
	if err != nil {
		return err
	}
	return journal.Dump(d.w, d.fs, path, func(f journal.Frame) string {
		text, err := describe(p, f)
		if err != nil {
			return "! " + err.Error()
		}
		return text
	})
}

// manifest writes the fields of a manifest, a line each.
func (d dumping) manifest(path string) error {
	m, err := readManifest(d.fs, filepath.Dir(path), filepath.Base(path))
	if err != nil {
		return fmt.Errorf("dump %s: %w", path, err)
	}
	var b bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("manifest version %d: position %d, reserved %d, received %d, next file %d, next series %d, generation %d", manifestVersion, m.Position, m.Reserved, m.Received,
		m.NextFile, m.NextSeries, m.Generation)
	line("messages so far %d, rows of the alert history %d", m.Counters.Messages, m.Counters.History)
	for _, e := range m.Files {
		line("file %s %d bytes, checksum %08x", e.base(), e.Size, e.Sum)
	}
	for _, g := range m.Graves {
		line("deleted: series %d from %d before %d, up to generation %d", g.Series, g.Start, g.End, g.Before)
	}
	for _, e := range m.Edits {
		if e.To == "" {
			line("deleted: messages of %q up to part %d", e.From, e.Before)
		} else {
			line("renamed: messages of %q to %q up to part %d", e.From, e.To, e.Before)
		}
	}
	_, err = d.w.Write(b.Bytes())
	return err
}

func dumpSamples(d dumping, path string) error {
	f, err := samples.Open(d.fs, path)
	if err != nil {
		return err
	}
	var rows func(*core.Block) string
	if d.detail == Rows {
		rows = rowsText
	}
	return errors.Join(samples.Dump(d.w, f, rows), f.Close())
}

// rowsText is a line for each row of a block.
func rowsText(b *core.Block) string {
	var d dump
	texts, decimals, versions := b.Texts, b.Decimals, b.Versions
	for i, at := range b.Times {
		fmt.Fprintf(&d, "    %d %s", at, number(b.Values[i]))
		if len(texts) > 0 && int(texts[0].Index) == i {
			fmt.Fprintf(&d, " text %q", texts[0].Text)
			texts = texts[1:]
		}
		if len(decimals) > 0 && int(decimals[0].Index) == i {
			fmt.Fprintf(&d, " decimal %de%d", decimals[0].Significand, decimals[0].Exponent)
			decimals = decimals[1:]
		}
		if len(versions) > 0 && int(versions[0].Index) == i {
			fmt.Fprintf(&d, " version %d source %q status %q", versions[0].Written, versions[0].Source, versions[0].Status)
			versions = versions[1:]
		}
		d.WriteByte('\n')
	}
	return d.String()
}

func dumpMessages(d dumping, path string) error {
	f, err := events.Open(d.fs, path)
	if err != nil {
		return err
	}
	var message func(*events.Record) string
	if d.detail == Rows {
		message = func(r *events.Record) string {
			return fmt.Sprintf("%d %q type %q source %q severity %v tags %s text %q arrival %d received %d", r.Time, r.Entity, r.Type, r.Source, r.Severity,
				tagText(r.Tags), r.Text, r.Arrival, r.Received)
		}
	}
	return errors.Join(events.Dump(d.w, f, message), f.Close())
}

// describe returns the text of a frame's payload.
func describe(p *packer, f journal.Frame) (string, error) {
	if err := laterThan(f); err != nil {
		return "", err
	}
	if f.Kind == frameReserve {
		limit := reservedBy(f)
		if limit == 0 {
			return "", malformed("reserve frame of %d bytes", len(f.Payload))
		}
		return fmt.Sprintf("reserve up to %d", limit), nil
	}
	b, err := p.decodeRecord(f.Payload)
	if err != nil {
		return "", err
	}
	d := dump{}
	d.batch(b)
	return d.String(), nil
}

// dump writes a batch as indented lines, in the order of the record.
type dump struct{ strings.Builder }

func (d *dump) line(format string, args ...any) { fmt.Fprintf(d, "\n  "+format, args...) }

func (d *dump) batch(b *core.Batch) {
	o := b.Origin
	fmt.Fprintf(d, "user %q door %q address %q depth %d roles %#x", o.User, o.Door, o.Address, o.Depth, uint16(o.Grants.Roles))
	d.samples(b)
	for _, m := range b.Messages {
		d.line("message %d %q type %q source %q severity %v flags %d tags %s text %q",
			m.Time, m.Entity, m.Type, m.Source, m.Severity, m.Flags, tagText(m.Tags), m.Text)
	}
	for _, p := range b.Properties {
		d.line("property %d %q type %q key %s flags %d tags %s", p.Time, p.Entity, p.Type, tagText(p.Key), p.Flags, tagText(p.Tags))
	}
	for _, s := range b.Series {
		d.line("delete series %q %q %s from %d before %d", s.Key.Metric, s.Key.Entity, tagText(s.Key.Tags), s.Range.Start, s.Range.End)
	}
	for _, k := range b.Removed {
		d.line("delete property %q type %q key %s", k.Entity, k.Type, tagText(k.Key))
	}
	for _, c := range b.Alerts {
		d.line("alert %q kind %d id %d rule %q window %q entity %q severity %v",
			c.Event, c.Kind, c.Alert.ID, c.Alert.Rule, c.Alert.Window, c.Alert.Entity, c.Alert.Severity)
		if c.Row != nil {
			d.line("  history %d %q rule %q entity %q value %s", c.Row.Time, c.Row.Type, c.Row.Rule, c.Row.Entity, number(c.Row.Value))
		}
	}
	for _, c := range b.Documents {
		d.line("document %s %q %s %s", c.Kind, c.Key, [...]string{"put", "patch", "delete", "rename"}[c.Op], bodyText(c))
	}
}

// bodyText hides what must not be seen over a shoulder: users and tokens hold verifiers of secrets.
func bodyText(c core.DocChange) string {
	switch c.Kind {
	// Hashes, what somebody wrote into a rule file in clear, and what a plugin keeps or could not read: any bytes.
	case core.DocUser, core.DocToken, core.DocRule, core.DocPluginState, core.DocDeadLetter:
		return fmt.Sprintf("(%d bytes)", len(c.Body))
	}
	return string(c.Body)
}

func (d *dump) samples(b *core.Batch) {
	s := &b.Samples
	texts, decimals, versions := s.Texts, s.Decimals, s.Versions
	for i, ref := range s.Series {
		k := b.Keys[ref]
		d.line("sample %d %q %q %s %s flags %d", s.Times[i], k.Metric, k.Entity, tagText(k.Tags), number(s.Values[i]), s.Flags[i])
		if len(texts) > 0 && int(texts[0].Index) == i {
			fmt.Fprintf(d, " text %q", texts[0].Text)
			texts = texts[1:]
		}
		if len(decimals) > 0 && int(decimals[0].Index) == i {
			fmt.Fprintf(d, " decimal %de%d", decimals[0].Significand, decimals[0].Exponent)
			decimals = decimals[1:]
		}
		if len(versions) > 0 && int(versions[0].Index) == i {
			fmt.Fprintf(d, " version %d source %q status %q", versions[0].Written, versions[0].Source, versions[0].Status)
			versions = versions[1:]
		}
	}
}

func tagText(t core.Tags) string {
	parts := make([]string, len(t))
	for i, tag := range t {
		parts[i] = strconv.Quote(tag.Name) + "=" + strconv.Quote(tag.Value)
	}
	return "{" + strings.Join(parts, " ") + "}"
}

func number(v float64) string {
	if math.IsNaN(v) {
		return "NaN"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
