package storage

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"slices"

	"github.com/tidemark-db/tidemark/storage/vfs"
)

// dataDir holds the files that the manifest names.
const dataDir = "data"

// shelf keeps the files of one kind of state beside its memory part. The flusher works on all shelves alike.
type shelf interface {
	kind() fileKind
	// freeze makes the memory part the frozen part; false when there is nothing to write. Called under DB.mu, and never while a frozen part exists.
	freeze() bool
	// write writes the frozen part.
	write(w io.Writer) error
	// open opens a file that was written, or is named by the manifest.
	open(e fileEntry, path string) (opened, error)
	// adopt shows a file that holds the frozen part in its place.
	adopt(o opened)
	// entries are the files that are shown, from old to new.
	entries() []fileEntry
	// plan returns what is worth merging, whole what there is to do for all to be merged.
	plan() (merge, bool)
	whole() []merge
	// close closes the files, which nobody reads any more.
	close() error
}

// opened is an open file that is not shown yet.
type opened struct {
	entry fileEntry
	file  any
}

// merge is work on neighbouring files.
type merge struct {
	old   []fileEntry // from old to new
	write func(w io.Writer) error
	// show puts the merged file in the place of the old ones, which are closed when their last reader is done, and then removed.
	show func(o opened, remove func(fileEntry) error) error
	// spoil keeps the files from being picked again: some of them cannot be read.
	spoil func()
}

// files is a shelf of immutable files of type F, whose owner keeps them itself as well.
type files[F comparable] struct {
	name fileKind
	ops  fileOps[F]
	all  []shelved[F] // from old to new; the worker's

	spoiled bool // a file cannot be read: none is merged any more
}

type shelved[F comparable] struct {
	entry fileEntry
	file  F
}

// fileOps is what the owner of the files does.
type fileOps[F comparable] struct {
	freeze  func() bool
	write   func(w io.Writer) error
	open    func(path string) (F, error)
	close   func(f F) error
	adopt   func(f F)
	plan    func() []F
	merge   func(w io.Writer, old []F) error
	replace func(old []F, merged F)
}

func (s *files[F]) kind() fileKind          { return s.name }
func (s *files[F]) freeze() bool            { return s.ops.freeze() }
func (s *files[F]) write(w io.Writer) error { return s.ops.write(w) }

func (s *files[F]) open(e fileEntry, path string) (opened, error) {
	f, err := s.ops.open(path)
	return opened{e, f}, err
}

func (s *files[F]) adopt(o opened) {
	f := o.file.(F)
	s.all = append(s.all, shelved[F]{o.entry, f})
	s.ops.adopt(f)
}

func (s *files[F]) entries() []fileEntry {
	list := make([]fileEntry, len(s.all))
	for i, one := range s.all {
		list[i] = one.entry
	}
	return list
}

func (s *files[F]) plan() (merge, bool) {
	old := s.ops.plan()
	if len(old) == 0 || s.spoiled {
		return merge{}, false
	}
	return s.merging(old), true
}

func (s *files[F]) whole() []merge {
	if len(s.all) < 2 {
		return nil
	}
	old := make([]F, len(s.all))
	for i, one := range s.all {
		old[i] = one.file
	}
	return []merge{s.merging(old)}
}

// merging is the merge of neighbours.
func (s *files[F]) merging(old []F) merge {
	from := slices.IndexFunc(s.all, func(one shelved[F]) bool { return one.file == old[0] })
	part := slices.Clone(s.all[from : from+len(old)])
	m := merge{write: func(w io.Writer) error { return s.ops.merge(w, old) }, spoil: func() { s.spoiled = true }}
	for _, one := range part {
		m.old = append(m.old, one.entry)
	}
	m.show = func(o opened, remove func(fileEntry) error) error {
		f := o.file.(F)
		s.all = slices.Replace(s.all, from, from+len(old), shelved[F]{o.entry, f})
		s.ops.replace(old, f)
		var errs []error
		for _, one := range part {
			errs = append(errs, s.ops.close(one.file), remove(one.entry))
		}
		return errors.Join(errs...)
	}
	return m
}

func (s *files[F]) close() error {
	var errs []error
	for _, one := range s.all {
		errs = append(errs, s.ops.close(one.file))
	}
	return errors.Join(errs...)
}

// path is where a file is.
func (e fileEntry) path(dir string) string { return filepath.Join(dir, dataDir, e.base()) }

// base is the name of a file: its number, and what is in it.
func (e fileEntry) base() string {
	ext := string(e.Kind)
	if kind, name, ok := cutKind(e.Kind); ok {
		ext = name + "." + string(kind)
	}
	return fmt.Sprintf("%010d.%s", e.Number, ext)
}

// cutKind parts the kind of a table from its name.
func cutKind(k fileKind) (kind fileKind, name string, ok bool) {
	for i := range len(k) {
		if k[i] == '/' {
			return k[:i], string(k[i+1:]), true
		}
	}
	return k, "", false
}

// endBytes is how much of the end of a file tells it from others: each kind of file has a checksum there that covers, over others, all that is in it.
const endBytes = 16

// appender writes a file from front to back.
type appender struct {
	f   vfs.File
	at  int64
	sum uint32         // CRC-32C of what was written
	end [endBytes]byte // that were written last
}

func (a *appender) Write(b []byte) (int, error) {
	n, err := a.f.WriteAt(b, a.at)
	a.at, a.sum = a.at+int64(n), crc32.Update(a.sum, castagnoli, b[:n])
	if n < endBytes {
		copy(a.end[:], a.end[n:])
	}
	copy(a.end[max(endBytes-n, 0):], b[max(n-endBytes, 0):n])
	return n, err
}

// make writes a new file and opens it. Its name is durable when the directory is synced. What is left of it after an error is removed.
func (db *DB) make(s shelf, write func(w io.Writer) error) (opened, error) {
	e := fileEntry{Kind: s.kind(), Number: db.nextFile()}
	path := e.path(db.dir)
	err := writeFile(db.fs, path+".tmp", func(f vfs.File) error {
		a := &appender{f: f}
		err := write(a)
		e.Size, e.Sum, e.End = a.at, a.sum, crc32.Checksum(a.end[:], castagnoli)
		return err
	})
	if err == nil {
		err = db.fs.Rename(path+".tmp", path)
	}
	if err != nil {
		return opened{}, errors.Join(fmt.Errorf("storage: write %s: %w", path, err), db.removeIfThere(path+".tmp"))
	}
	o, err := s.open(e, path)
	if err != nil {
		return opened{}, errors.Join(fmt.Errorf("storage: read back %s: %w", path, err), db.removeIfThere(path))
	}
	return o, nil
}

func (db *DB) removeIfThere(path string) error {
	if err := db.fs.Remove(path); err != nil && !errors.Is(err, vfs.ErrNotExist) {
		return err
	}
	return nil
}

// Bounds of merging.
const (
	// mergeFan is how many neighbouring files of about the same size become one: each record is written some log(total/flush)/log(4) times.
	mergeFan = 4
	// mergeUnit is the size below which files count as equal.
	mergeUnit = 1 << 20
	// maxMerged bounds the size of what is merged: retention drops whole files, and a merge needs the room of its output.
	maxMerged = 2 << 30
	// largestKept is how many of the largest files there are in what retention.bytes keeps, so that what goes at a time is an eighth of it.
	largestKept = 8
)

// maxMerged is how large a merge may make a file of samples or messages.
func (o Options) maxMerged() int64 {
	if o.RetentionBytes > 0 {
		return min(max(o.RetentionBytes/largestKept, mergeUnit/largestKept), maxMerged)
	}
	return maxMerged
}

// groups parts files, which are from new to old, into neighbours that are made one on demand: all of them, or when retention drops whole files so many at a time
// that a file does not become too large.
func groups[F io.Closer](list []*held[F], size func(F) int64, opts Options) (parts [][]*held[F]) {
	from, sum := 0, int64(0)
	for i, f := range list {
		n := size(f.file)
		if opts.RetentionBytes > 0 && i > from && sum+n > opts.maxMerged() {
			parts = append(parts, list[from:i])
			from, sum = i, 0
		}
		sum += n
	}
	if from < len(list) {
		parts = append(parts, list[from:])
	}
	return parts
}

// planTiers returns the files, from new to old, that are to become one: neighbours none of which has more than twice the size that those newer than it
// have in the mean, so that a file is written again only when it has grown several times over. All of them have at most so many bytes.
func planTiers[F io.Closer](list []*held[F], size func(F) int64, most int64) (from, to int) {
	for from := 0; from+mergeFan <= len(list); from++ {
		if list[from].spoiled {
			continue
		}
		sum, to := size(list[from].file), from+1
		for ; to < len(list); to++ {
			n := size(list[to].file)
			if list[to].spoiled || n > max(2*sum/int64(to-from), mergeUnit) || sum+n > most {
				break
			}
			sum += n
		}
		if to-from >= mergeFan {
			return from, to
		}
	}
	return 0, 0
}

// adopt shows a file in the place of the frozen part.
func adopt[P any, F io.Closer](vs *views[P, F], o opened) {
	vs.change(func(next *layers[P, F]) {
		next.frozen = nil
		next.files = append([]*held[F]{{file: o.file.(F), entry: o.entry}}, next.files...)
	})
}

func entriesOf[P any, F io.Closer](vs *views[P, F]) []fileEntry {
	var list []fileEntry
	for _, f := range slices.Backward(vs.current.Load().files) {
		list = append(list, f.entry)
	}
	return list
}

// closeAll lets go of the current layers, and with them of the files.
func closeAll[P any, F io.Closer](vs *views[P, F]) error {
	vs.change(func(next *layers[P, F]) { next.files = nil })
	return nil
}

// mergeOf is the merge of files, which are neighbours, from new to old, without what writes it.
func mergeOf[P any, F io.Closer](vs *views[P, F], list []*held[F]) merge {
	list = slices.Clone(list)
	m := merge{spoil: func() {
		for _, f := range list {
			f.spoiled = true
		}
	}}
	for _, f := range slices.Backward(list) {
		m.old = append(m.old, f.entry)
	}
	m.show = func(o opened, remove func(fileEntry) error) error {
		for _, f := range list {
			f.discard = func() error { return remove(f.entry) }
		}
		var merged []*held[F]
		if f, some := o.file.(F); some {
			merged = []*held[F]{{file: f, entry: o.entry}}
		}
		vs.change(func(next *layers[P, F]) {
			at := slices.Index(next.files, list[0])
			next.files = slices.Concat(next.files[:at], merged, next.files[at+len(list):])
		})
		return nil
	}
	return m
}
