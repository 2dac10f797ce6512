package storage

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// Usage is what a database takes and how its worker fares, for those who run it.
type Usage struct {
	Position core.Position // files hold everything up to it
	End      core.Position // of the log
	Series   int
	Kinds    []KindUsage // in order of name
	Bytes    int64       // of all files, without the journal
	Journal  int64       // bytes of its segments
	Others   int64       // bytes that others keep in the data directory
	Segments int
	Memory   int64 // bytes of recent state, estimated, that is in no file
	Free     int64 // bytes of the disk; negative: unknown
	Flush    LastFlush
	Failure  string      // of the worker's last try; "": it went well
	Refusal  string      // why the journal takes nothing; "": it does
	SetAside []string    // damaged files that are out of use
	Faults   []FileFault // files that are in use and of which a part could not be read, since Open
	Found    Report      // by Open
	Backup   bool        // one is running
}

// KindUsage is the files of one kind.
type KindUsage struct {
	Kind  string
	Files int
	Bytes int64
	Rows  uint64 // samples or messages, earlier versions included; 0 for other kinds
}

// FileFault is a file, as a path below the data directory, and what of it could not be read first.
type FileFault struct {
	File  string
	Error string
}

// LastFlush is the last time that memory was written to files; the zero value: not since Open.
type LastFlush struct {
	At    core.Time
	Took  time.Duration
	Files int
	Bytes int64
}

// flushed is LastFlush as the worker leaves it.
type flushed struct {
	at    core.Time
	took  time.Duration
	files int
	bytes int64
}

// Usage returns what the database takes now. It waits for nobody.
func (db *DB) Usage() (Usage, error) {
	m, j := db.flusher.current.Load(), db.journal.Status()
	u := Usage{Position: m.Position, End: db.End(), Series: db.index.Len(), Journal: j.Bytes, Segments: j.Segments, Memory: db.unwritten(), Free: -1,
		Found: db.found, Backup: db.flusher.pins.busy(), Faults: db.doubts.list(m), Others: db.opts.Others()}
	if last := db.flusher.last.Load(); last != nil {
		u.Flush = LastFlush{last.at, last.took, last.files, last.bytes}
	}
	if err := db.flusher.failure.Load(); err != nil {
		u.Failure = (*err).Error()
	}
	if j.Unavailable != nil {
		u.Refusal = j.Unavailable.Error()
	}
	kinds := map[fileKind]*KindUsage{}
	for _, e := range m.Files {
		k := kinds[e.Kind]
		if k == nil {
			k = &KindUsage{Kind: string(e.Kind)}
			kinds[e.Kind] = k
		}
		k.Files, k.Bytes = k.Files+1, k.Bytes+e.Size
		u.Bytes += e.Size
	}
	rows := db.rowsInFiles()
	for kind, k := range kinds {
		k.Rows = rows[kind]
		u.Kinds = append(u.Kinds, *k)
	}
	slices.SortFunc(u.Kinds, func(a, b KindUsage) int { return cmp.Compare(a.Kind, b.Kind) })
	if space, err := db.fs.Free(db.dir); err == nil {
		u.Free = space.Free
	}
	var err error
	u.SetAside, err = setAsideFiles(db.fs, db.dir)
	return u, err
}

// rowsInFiles counts what files hold.
func (db *DB) rowsInFiles() map[fileKind]uint64 {
	rows := map[fileKind]uint64{}
	v := db.views.acquire()
	for _, f := range v.files {
		rows[kindSamples] += f.file.Rows()
	}
	db.views.release(v)
	m := db.msgs.views.acquire()
	for _, f := range m.files {
		rows[kindMessages] += f.file.Messages()
	}
	db.msgs.views.release(m)
	for _, r := range db.index.Runs() {
		rows[kindIndex] += uint64(r.Len())
	}
	for _, t := range append(db.tables(), namedTable{"newest", db.catalog.saved}) {
		for _, f := range t.table.Files() {
			rows[kindTable+"/"+fileKind(t.name)] += uint64(f.Entries())
		}
	}
	return rows
}

// setAsideFiles lists what is out of use because it is damaged, as paths below the data directory.
func setAsideFiles(fs vfs.FS, dir string) (names []string, err error) {
	for _, below := range [...]string{"", dataDir, journalDir} {
		list, listErr := fs.List(filepath.Join(dir, below))
		if listErr != nil && !errors.Is(listErr, vfs.ErrNotExist) {
			err = errors.Join(err, listErr)
		}
		for _, info := range list {
			if aside := strings.TrimSuffix(info.Name, ".damaged"); aside != info.Name && (below != journalDir || strings.HasSuffix(aside, ".seg")) {
				names = append(names, filepath.Join(below, info.Name))
			}
		}
	}
	return names, err
}

func (p *pins) busy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}
