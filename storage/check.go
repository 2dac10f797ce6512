package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/events"
	"github.com/tidemark-db/tidemark/storage/index"
	"github.com/tidemark-db/tidemark/storage/journal"
	"github.com/tidemark-db/tidemark/storage/samples"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// Checking says how Check tells what it finds.
type Checking struct {
	Out      io.Writer                            // a line for each fault, then counts
	Progress func(done, total int64, what string) // of bytes, and the file that is read; nil: nobody asks
}

// Check verifies the database in dir, which must not be open, or a backup: the manifest and its copy, all of every file that the manifest names, how the files fit
// together, every frame of the journal, and that every record in it can be decoded. It changes nothing but the lock file, and returns an error when something that
// was stored cannot be read. A torn tail of the journal is no fault, nor are files that nobody names.
func Check(ctx context.Context, fs vfs.FS, dir string, how Checking) (err error) {
	if _, err := fs.Stat(dir); err != nil {
		return fmt.Errorf("storage: check: %w", err)
	}
	lock, err := fs.Lock(filepath.Join(dir, lockFile))
	if err != nil {
		return fmt.Errorf("storage: check %s: %w: stop the server first", dir, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	c := &inspector{ended: ctx.Err, fs: fs, dir: dir, out: how.Out, progress: how.Progress}
	if err := refuseHalf(fs, dir); err != nil {
		c.fault(err)
	}
	c.manifest()
	c.measure()
	for _, e := range c.m.Files {
		if err := ctx.Err(); err != nil {
			return err
		}
		c.file(e)
	}
	done := c.openIndex()
	c.cross()
	done()
	if err := errors.Join(c.strangers(), c.journal()); err != nil {
		return err
	}
	if err := errors.Join(ctx.Err(), c.err); err != nil {
		return err
	}
	if c.faults > 0 {
		return core.Errorf(core.Internal, "%d places are damaged", c.faults)
	}
	return nil
}

// inspector walks over a data directory.
type inspector struct {
	ended    func() error // why to stop; nil: go on
	fs       vfs.FS
	dir      string
	out      io.Writer
	progress func(done, total int64, what string)
	err      error // of out
	faults   int

	m           manifest
	done, total int64                 // bytes
	series      map[samples.ID]uint64 // blocks of samples by series
	runs        []string              // of the index that are sound
	partial     bool                  // some are not
	known       func(index.ID) bool   // whether the index has a series; nil: there are no files of it
}

func (c *inspector) line(format string, args ...any) {
	if c.err == nil {
		_, c.err = fmt.Fprintf(c.out, format+"\n", args...)
	}
}

func (c *inspector) fault(err error) {
	c.faults++
	c.line("damaged: %v", err)
}

// step counts bytes that were read of a file.
func (c *inspector) step(n int64, what string) {
	if c.done += n; c.progress != nil {
		c.progress(c.done, c.total, what)
	}
}

// manifest reads both copies and keeps the one that Open would use.
func (c *inspector) manifest() {
	first, err := readManifest(c.fs, c.dir, manifestFile)
	second, copyErr := readManifest(c.fs, c.dir, manifestCopy)
	absent, copyAbsent := errors.Is(err, vfs.ErrNotExist), errors.Is(copyErr, vfs.ErrNotExist)
	c.m = first
	switch {
	case absent && copyAbsent:
		c.line("no manifest: no files")
		return
	case err != nil && copyErr == nil:
		c.m = second
		c.fault(fmt.Errorf("%s: %w: its copy is used", filepath.Join(c.dir, manifestFile), err))
	case err != nil:
		c.fault(fmt.Errorf("%s: %w, and so is its copy: nobody knows which files belong together", filepath.Join(c.dir, manifestFile), err))
		return
	case copyAbsent: // a crash between the two
		c.line("note: the manifest has no copy")
	case copyErr != nil:
		c.fault(fmt.Errorf("%s: %w: the manifest itself is sound", filepath.Join(c.dir, manifestCopy), copyErr))
	case second.Position > first.Position:
		c.fault(fmt.Errorf("%s is of position %d, and its copy of the later position %d", filepath.Join(c.dir, manifestFile), first.Position, second.Position))
	case second.Position < first.Position || !slices.Equal(first.Files, second.Files):
		c.line("note: the copy of the manifest is older than it")
	}
	c.line("manifest: %d files up to position %d", len(c.m.Files), c.m.Position)
	numbers := map[uint64]bool{}
	for _, e := range c.m.Files {
		if numbers[e.Number] || e.Number >= c.m.NextFile {
			c.fault(fmt.Errorf("manifest: the number of %s is given twice, or not given yet", e.base()))
		}
		numbers[e.Number] = true
	}
	for _, g := range c.m.Graves {
		if g.Series == index.None || g.Series >= c.m.NextSeries {
			c.fault(fmt.Errorf("manifest: samples of series %d are deleted, and series up to %d were made", g.Series, c.m.NextSeries-1))
		}
	}
}

// measure adds up what there is to read.
func (c *inspector) measure() {
	for _, e := range c.m.Files {
		c.total += e.Size
	}
	list, err := c.fs.List(filepath.Join(c.dir, journalDir))
	if err != nil {
		return // told by the journal
	}
	for _, info := range list {
		c.total += info.Size
	}
}

// file verifies a file that the manifest names.
func (c *inspector) file(e fileEntry) {
	path := e.path(c.dir)
	if err := checkSize(c.fs, c.dir, e); err != nil {
		c.fault(err)
		c.done += e.Size
		return
	}
	kind, _, _ := cutKind(e.Kind)
	format := formatOf(kind)
	if format == nil {
		c.fault(fmt.Errorf("%s: a file of a kind that this program does not know", path))
		return
	}
	before := c.done
	text := format.check(c, path)
	c.step(before+e.Size-c.done, e.base())
	switch sum, err := sumOf(c.fs, path); {
	case err != nil:
		c.fault(fmt.Errorf("%s: %w", path, err))
	case sum != e.Sum:
		c.fault(fmt.Errorf("%s: the file has the checksum %08x, and %08x was written", path, sum, e.Sum))
	}
	c.line("%s: %d bytes, %s", e.base(), e.Size, text)
}

// checkSamples verifies a file of samples.
func checkSamples(c *inspector, path string) string {
	if c.series == nil {
		c.series = map[samples.ID]uint64{}
	}
	var blocks, rows, series uint64
	var last samples.ID
	for e, err := range samples.Check(c.fs, path) {
		if err != nil {
			c.fault(err)
		}
		if c.ended() != nil {
			break
		}
		if e == nil {
			continue
		}
		if blocks, rows = blocks+1, rows+uint64(e.Count); e.ID != last {
			series, last = series+1, e.ID
		}
		c.series[e.ID]++
		c.step(e.Bytes(), filepath.Base(path))
	}
	return fmt.Sprintf("%d blocks, %d rows, %d series", blocks, rows, series)
}

// checkMessages verifies a file of messages.
func checkMessages(c *inspector, path string) string {
	var blocks, messages uint64
	for b, err := range events.Check(c.fs, path) {
		if err != nil {
			c.fault(err)
		}
		if c.ended() != nil {
			break
		}
		if b != nil {
			blocks, messages = blocks+1, messages+uint64(b.Count)
			c.step(b.Bytes(), filepath.Base(path))
		}
	}
	return fmt.Sprintf("%d blocks, %d messages", blocks, messages)
}

// cross compares the series of the samples with those that were ever made, and with those that the index knows.
func (c *inspector) cross() {
	var unknown, blocks uint64
	for id, n := range c.series {
		if index.ID(id) >= c.m.NextSeries {
			c.fault(fmt.Errorf("samples of series %d, and series up to %d were made", id, c.m.NextSeries-1))
		}
		if c.known != nil && !c.known(index.ID(id)) {
			unknown, blocks = unknown+1, blocks+n
		}
	}
	if unknown > 0 {
		c.line("note: %d blocks of %d series that the index does not know: deleted, and not merged since", blocks, unknown)
	}
}

// strangers notes what nobody names.
func (c *inspector) strangers() error {
	named := map[string]bool{}
	for _, e := range c.m.Files {
		named[e.base()] = true
	}
	list, err := c.fs.List(filepath.Join(c.dir, dataDir))
	if err != nil && !errors.Is(err, vfs.ErrNotExist) {
		return fmt.Errorf("storage: check: %w", err)
	}
	for _, info := range list {
		if marked(info.Name, named) {
			c.line("note: a part of %s could not be read while the server ran: the next start reads it all", filepath.Join(dataDir, strings.TrimSuffix(info.Name, doubtExt)))
		} else if !named[info.Name] && !strings.HasSuffix(info.Name, ".damaged") {
			c.line("note: %s is in use by nobody: the next start removes it", filepath.Join(dataDir, info.Name))
		}
	}
	aside, err := setAsideFiles(c.fs, c.dir)
	for _, name := range aside {
		c.line("note: %s was set aside as damaged", name)
	}
	if err != nil {
		return fmt.Errorf("storage: check: %w", err)
	}
	return nil
}

// journal verifies the journal. A backup has none.
func (c *inspector) journal() error {
	dir := filepath.Join(c.dir, journalDir)
	if _, err := c.fs.Stat(dir); errors.Is(err, vfs.ErrNotExist) {
		c.line("no journal")
		return nil
	}
	found, err := journal.Check(c.fs, dir)
	if err != nil {
		return fmt.Errorf("storage: check: %w", err)
	}
	var report Report
	report.addJournal(found)
	if err := c.records(dir, &report); err != nil {
		return fmt.Errorf("storage: check: %w", err)
	}
	c.line("%d frames in %d segments, positions %d to %d", report.Frames, report.Segments, report.First, report.Last)
	if found.Torn != nil {
		c.line("unfinished: %v", *found.Torn)
	}
	if report.Frames > 0 && report.First > c.m.Position+1 {
		report.addDamage(fmt.Sprintf("the journal begins at position %d, and the files end at %d: what was between them is gone", report.First, c.m.Position))
	}
	for _, line := range append(report.Damage, report.Unreadable...) {
		c.line("damaged: %s", line)
	}
	c.faults += len(report.Damage) + report.Skipped
	return nil
}

// records decodes every record of every segment; frames that a later segment voids are decoded as well.
func (c *inspector) records(dir string, report *Report) error {
	p, err := newPacker()
	if err != nil {
		return err
	}
	files, err := c.fs.List(dir)
	if err != nil {
		return err
	}
	for _, file := range files {
		c.step(file.Size, file.Name)
		if filepath.Ext(file.Name) != ".seg" {
			continue
		}
		if err := c.ended(); err != nil {
			return err
		}
		err := journal.Dump(io.Discard, c.fs, filepath.Join(dir, file.Name), func(f journal.Frame) string {
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
