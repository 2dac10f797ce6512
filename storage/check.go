package storage

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/journal"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// Check verifies the database in dir, which must not be open: every frame of the journal, and that every record can be decoded. It changes nothing
// but the lock file, writes what it finds to w, and returns an error when something that was stored cannot be read. A torn tail is no fault.
func Check(fs vfs.FS, dir string, w io.Writer) (err error) {
	lock, err := fs.Lock(filepath.Join(dir, lockFile))
	if err != nil {
		return fmt.Errorf("storage: check %s: %w: stop the server first", dir, err)
	}
	defer func() {
		if closed := lock.Close(); err == nil {
			err = closed
		}
	}()
	dir = filepath.Join(dir, journalDir)
	found, err := journal.Check(fs, dir)
	if err != nil {
		return fmt.Errorf("storage: check: %w", err)
	}
	var report Report
	report.addJournal(found)
	if err := checkRecords(fs, dir, &report); err != nil {
		return fmt.Errorf("storage: check: %w", err)
	}
	if _, err := fmt.Fprintf(w, "%d frames in %d segments, positions %d to %d\n", report.Frames, report.Segments, report.First, report.Last); err != nil {
		return err
	}
	if found.Torn != nil {
		if _, err := fmt.Fprintf(w, "unfinished: %v\n", *found.Torn); err != nil {
			return err
		}
	}
	for _, line := range append(report.Damage, report.Unreadable...) {
		if _, err := fmt.Fprintln(w, "damaged: "+line); err != nil {
			return err
		}
	}
	if n := len(report.Damage) + report.Skipped; n > 0 {
		return core.Errorf(core.Internal, "%d places are damaged", n)
	}
	return nil
}

// checkRecords decodes every record of every segment; frames that a later segment voids are decoded as well.
func checkRecords(fs vfs.FS, dir string, report *Report) error {
	p, err := newPacker()
	if err != nil {
		return err
	}
	files, err := fs.List(dir)
	if err != nil {
		return err
	}
	for _, file := range files {
		if filepath.Ext(file.Name) != ".seg" {
			continue
		}
		err := journal.Dump(io.Discard, fs, filepath.Join(dir, file.Name), func(f journal.Frame) string {
			if _, err := describe(p, f); err != nil {
				report.addUnreadable(f.Position, err)
			}
			return ""
		})
		// A file without a header is among the damage already.
		if err != nil && len(report.Damage) == 0 {
			return err
		}
	}
	return nil
}

// Dump writes one journal segment as text, with its records decoded.
func Dump(fs vfs.FS, path string, w io.Writer) error {
	p, err := newPacker()
	if err != nil {
		return err
	}
	return journal.Dump(w, fs, path, func(f journal.Frame) string {
		text, err := describe(p, f)
		if err != nil {
			return "! " + err.Error()
		}
		return text
	})
}

// describe returns the text of a frame's payload.
func describe(p *packer, f journal.Frame) (string, error) {
	switch f.Kind {
	case frameReserve:
		limit := reservedBy(f)
		if limit == 0 {
			return "", malformed("reserve frame of %d bytes", len(f.Payload))
		}
		return fmt.Sprintf("reserve up to %d", limit), nil
	case frameBatch:
		b, err := p.decodeRecord(f.Payload)
		if err != nil {
			return "", err
		}
		d := dump{}
		d.batch(b)
		return d.String(), nil
	}
	return "", malformed("frame of kind %d", f.Kind)
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
