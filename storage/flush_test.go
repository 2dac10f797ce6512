package storage

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/storetest"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// moving is a database whose state is moved about after each append: to files, into one file, through a restart.
type moving struct {
	*DB
	t    *testing.T
	fs   vfs.FS
	opts Options
	step func(*moving)
}

func (m *moving) Append(ctx context.Context, b *core.Batch) (core.Receipt, error) {
	r, err := m.DB.Append(ctx, b)
	m.step(m)
	return r, err
}

func (m *moving) flush() {
	if err := m.Flush(m.t.Context()); err != nil {
		m.t.Fatalf("flush: %v", err)
	}
}

func (m *moving) compact() {
	if err := m.Compact(m.t.Context()); err != nil {
		m.t.Fatalf("compact: %v", err)
	}
}

func (m *moving) reopen() {
	if err := m.Close(context.Background()); err != nil {
		m.t.Fatalf("close: %v", err)
	}
	db, report, err := Open(m.fs, "/data", m.opts)
	if err != nil || report.Damaged() || len(report.Warnings) > 0 {
		m.t.Fatalf("reopen: %v %v", err, report)
	}
	m.DB = db
}

func openMoving(t *testing.T, step func(*moving)) *moving {
	m := &moving{t: t, fs: vfs.NewMem(), opts: small(), step: step}
	db, _, err := Open(m.fs, "/data", m.opts)
	if err != nil {
		t.Fatal(err)
	}
	m.DB = db
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return m
}

// TestContractInFiles runs the contract with everything in files, in many or in one.
func TestContractInFiles(t *testing.T) {
	steps := map[string]func(*moving){
		"Flushed":   func(m *moving) { m.flush() },
		"Compacted": func(m *moving) { m.compact() },
	}
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) storetest.Backend { return openMoving(t, step) })
		})
	}
}

// TestMovingHistories compares random histories with the oracle while the state moves at random.
func TestMovingHistories(t *testing.T) {
	for seed := range uint64(10) {
		storetest.Histories(t, seed, 150, func() storetest.Backend {
			r := rand.New(rand.NewPCG(seed, 1))
			return openMoving(t, func(m *moving) {
				switch r.IntN(12) {
				case 0, 1, 2:
					m.flush()
				case 3:
					m.compact()
				case 4:
					m.reopen()
				}
			})
		})
	}
}
