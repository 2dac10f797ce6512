package storage

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/storetest"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// moving is a database whose state is moved about after appends: to files, into one file, through a restart.
type moving struct {
	*DB
	t       *testing.T
	fs      vfs.FS
	opts    Options
	step    func(*moving)
	appends int
}

// After each of the first appends the state is moved, and then after one in so many: what the contract says of thousands of records does not depend on
// there having been as many files. The stride is odd, so that it meets every place in a test's rhythm.
const (
	movesAtFirst = 8
	moveStride   = 307
	reopenStride = 7
)

func (m *moving) Append(ctx context.Context, b *core.Batch) (core.Receipt, error) {
	r, err := m.DB.Append(ctx, b)
	if m.appends++; m.appends <= movesAtFirst || m.appends%moveStride == 0 {
		m.step(m)
	}
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

// TestContractInFiles runs the contract with everything in files: in many and in one by turns, and opened anew at times.
func TestContractInFiles(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Backend {
		return openMoving(t, func(m *moving) {
			if m.appends%2 == 0 {
				m.compact()
			} else {
				m.flush()
			}
			if m.appends%reopenStride == 1 {
				m.reopen()
			}
		})
	})
}

// TestMovingHistories compares random histories with the oracle while the state moves at random. TIDEMARK_HISTORY_FACTOR makes them longer.
func TestMovingHistories(t *testing.T) {
	t.Parallel()
	factor := seeds(t, "TIDEMARK_HISTORY_FACTOR", 1)
	for seed := range uint64(5) {
		storetest.Histories(t, seed, 150*factor, func() storetest.Backend {
			r := rand.New(rand.NewPCG(seed, 1))
			m := openMoving(t, nil)
			m.step = func(m *moving) {
				m.appends = 0 // each append counts as one of the first
				switch r.IntN(12) {
				case 0, 1, 2:
					m.flush()
				case 3:
					m.compact()
				case 4:
					m.reopen()
				}
			}
			return m
		})
	}
}
