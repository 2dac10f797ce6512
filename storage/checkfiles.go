package storage

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/storage/index"
	"github.com/tidemark-db/tidemark/storage/table"
)

// checkIndex verifies a run of the index.
func checkIndex(c *inspector, path string) string {
	if err := index.CheckRun(c.fs, path); err != nil {
		c.fault(err)
		return "unreadable"
	}
	c.runs = append(c.runs, path)
	r, err := index.OpenRun(c.fs, path)
	if err != nil {
		c.fault(err)
		return "unreadable"
	}
	defer r.Close() // read only
	return fmt.Sprintf("%d keys", r.Len())
}

// openIndex makes an index of the runs that are sound, so that the series of the samples can be looked up. The result closes it.
func (c *inspector) openIndex() (done func()) {
	var runs []*index.Run
	for _, e := range c.m.Files {
		if path := e.path(c.dir); e.Kind == kindIndex && slices.Contains(c.runs, path) {
			r, err := index.OpenRun(c.fs, path)
			if err != nil {
				c.fault(err)
				break
			}
			runs = append(runs, r)
		} else if e.Kind == kindIndex {
			c.partial = true // what a damaged run knew is told by nobody
		}
	}
	if len(runs) == 0 {
		return func() {}
	}
	x := index.Open(index.MinCacheBytes, runs, 1) // 1: what the runs themselves lead to
	if x.Next() > c.m.NextSeries {
		c.fault(fmt.Errorf("the index has series up to %d, and series up to %d were made", x.Next()-1, c.m.NextSeries-1))
	}
	if !c.partial {
		c.known = func(id index.ID) bool {
			_, ok := x.Key(id, nil)
			return ok
		}
	}
	return x.Close
}

func dumpIndex(d dumping, path string) error {
	r, err := index.OpenRun(d.fs, path)
	if err != nil {
		return err
	}
	return errors.Join(index.DumpRun(d.w, r), r.Close())
}

// checkTable verifies a file of a table.
func checkTable(c *inspector, path string) string {
	f, err := table.OpenFile(c.fs, path)
	if err != nil {
		c.fault(err)
		return "unreadable"
	}
	if err := errors.Join(table.Check(f), f.Close()); err != nil {
		c.fault(err)
	}
	return fmt.Sprintf("%d entries", f.Entries())
}

// dumpTable writes the entries of a table, but not what may hold verifiers of secrets.
func dumpTable(d dumping, path string) error {
	f, err := table.OpenFile(d.fs, path)
	if err != nil {
		return err
	}
	name := ""
	if parts := strings.Split(filepath.Base(path), "."); len(parts) > 2 { // NUMBER.NAME.table
		name = parts[1]
	}
	return errors.Join(table.Dump(d.w, f, func(key, value []byte) string {
		text, err := describeEntry(name, key, value)
		if err != nil {
			return "! " + err.Error()
		}
		return text
	}), f.Close())
}
