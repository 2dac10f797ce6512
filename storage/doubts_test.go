package storage

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// logged collects what a database logs.
type logged struct {
	mu   sync.Mutex
	text []string
}

func (l *logged) add(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, text)
}

func (l *logged) with(part string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, text := range l.text {
		if strings.Contains(text, part) {
			n++
		}
	}
	return n
}

// turn gives the worker a turn, in which it does what it was told before.
func turn(t *testing.T, db *DB, done func() bool) {
	t.Helper()
	for range 100 {
		if done() {
			return
		}
		if err := db.ask(t.Context(), func(context.Context) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	t.Error("the worker does not do what it should")
}

func readSeries(ctx context.Context, db *DB) (err error) {
	for _, e := range db.Series(ctx, core.SeriesQuery{Scope: core.AllEntities, Range: core.AllTime}) {
		err = errors.Join(err, e)
	}
	return err
}

func readProperties(ctx context.Context, db *DB) (err error) {
	for _, e := range db.Properties(ctx, core.PropertyQuery{Scope: core.AllEntities, Range: core.AllTime}) {
		err = errors.Join(err, e)
	}
	return err
}

func readMessages(ctx context.Context, db *DB) (err error) {
	for _, e := range db.Messages(ctx, core.MessageQuery{Scope: core.AllEntities, Range: core.AllTime}) {
		err = errors.Join(err, e)
	}
	return err
}

// TestDoubtfulFiles has the disk not give the first block of a file of the index, and of a table, any more. Queries that need it fail with the name of the file, all others are
// answered; it is logged once, and listed; the next start reads the whole file, and says so while it is damaged.
func TestDoubtfulFiles(t *testing.T) {
	for _, one := range []struct {
		end         string
		read, other func(context.Context, *DB) error
	}{
		{".index", readSeries, readProperties},
		{".properties.table", readProperties, readSeries},
	} {
		mem, _ := twins(t)
		path := ofKind(t, mem, one.end)[0]
		base, mark := filepath.Base(path), path+doubtExt
		var broken atomic.Bool
		fs := vfs.Fault(mem, func(op vfs.Op) error {
			if broken.Load() && op.Kind == vfs.OpRead && op.Path == path && op.Off == 16 {
				return fmt.Errorf("%w", vfs.ErrFault)
			}
			return nil
		})
		var log logged
		opts := small()
		opts.Log = log.add
		open := func() (*DB, Report) {
			db, report, err := Open(fs, "/data", opts)
			if err != nil {
				t.Fatal(err)
			}
			return db, report
		}
		marked := func() bool { _, err := mem.Stat(mark); return err == nil }
		end := func(db *DB) {
			if err := db.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}

		db, _ := open()
		broken.Store(true)
		for range 3 {
			if err := one.read(t.Context(), db); core.CodeOf(err) != core.Unavailable || !strings.Contains(err.Error(), base) {
				t.Errorf("%s: %v is not unavailable, with the name of the file", base, err)
			}
			if err := errors.Join(one.other(t.Context(), db), readMessages(t.Context(), db)); err != nil {
				t.Errorf("%s: what is elsewhere cannot be read: %v", base, err)
			}
		}
		turn(t, db, marked)
		if n := log.with(base); n != 1 {
			t.Errorf("%s is logged %d times", base, n)
		}
		if usage, err := db.Usage(); err != nil || len(usage.Faults) != 1 || usage.Faults[0].File != filepath.Join(dataDir, base) || !strings.Contains(usage.Faults[0].Error, "at byte 16") {
			t.Errorf("%s: faults %v, %v", base, usage.Faults, err)
		}
		if _, err := db.Append(t.Context(), sample(5, core.Default|core.HasValue)); err != nil {
			t.Errorf("%s: append: %v", base, err)
		}
		if err := db.Flush(t.Context()); err != nil {
			t.Errorf("%s: flush: %v", base, err)
		}
		end(db)

		db, report := open() // the disk is as it was
		if len(report.Damage) == 0 || !strings.Contains(report.Damage[0], path+": a part cannot be read, the rest is in use") {
			t.Errorf("%s: damage %q", base, report.Damage)
		}
		if usage, err := db.Usage(); err != nil || len(usage.SetAside) != 0 || !marked() {
			t.Errorf("%s: %v is set aside, %v, marked %v", base, usage.SetAside, err, marked())
		}
		if err := one.other(t.Context(), db); err != nil {
			t.Errorf("%s: what is elsewhere cannot be read: %v", base, err)
		}
		end(db)

		broken.Store(false)
		db, report = open()
		if report.Damaged() || marked() || log.with(base+" could not be read before the restart") != 1 {
			t.Errorf("%s: %v, marked %v, log %q", base, report, marked(), log.text)
		}
		if err := one.read(t.Context(), db); err != nil {
			t.Errorf("%s: %v", base, err)
		}
		if usage, err := db.Usage(); err != nil || len(usage.Faults) != 0 {
			t.Errorf("%s: faults %v, %v", base, usage.Faults, err)
		}
		end(db)
	}
}

// TestMarkGoesWithItsFile: a mark of a file that nobody names any more is removed like the file.
func TestMarkGoesWithItsFile(t *testing.T) {
	mem, _ := twins(t)
	stale := "/data/" + dataDir + "/0000000999.index" + doubtExt
	if err := writeFile(mem, stale, func(vfs.File) error { return nil }); err != nil {
		t.Fatal(err)
	}
	open(t, mem, small())
	if slices.Contains(storedFiles(t, mem), stale) {
		t.Errorf("%s is there", stale)
	}
}
