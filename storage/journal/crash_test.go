package journal

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/tidemark-db/tidemark/storage/vfs"
)

// history is what a test did to a journal, to compare with what is found.
type history struct {
	tried   []Frame // in order
	acked   int     // of tried, in mode Always
	written int     // of tried
	dropped Position
}

// verify checks that the journal in fs holds the frames of h, a prefix of tried that contains at least the first min frames, less dropped ones.
func (h history) verify(fs vfs.FS, min int) ([]Frame, error) {
	j, rec, err := Open(fs, "j", Options{SegmentSize: minSegmentSize, Inline: true})
	if err != nil {
		return nil, err
	}
	if len(rec.Damage) > 0 || len(rec.Warnings) > 0 {
		return nil, fmt.Errorf("damage %v, warnings %v", rec.Damage, rec.Warnings)
	}
	got, err := collect(j, 0)
	if err != nil {
		return nil, err
	}
	if err := j.Close(context.Background()); err != nil {
		return nil, err
	}
	if len(got) == 0 {
		// In mode Never the acknowledged frames can all be dropped while those that stay are not durable.
		if min > 0 && h.tried[min-1].Position >= h.dropped {
			return nil, fmt.Errorf("%d frames were acknowledged, none is left (%+v)", min, rec)
		}
		return nil, nil
	}
	if rec.Frames != len(got) || rec.First != got[0].Position || rec.Last != got[len(got)-1].Position {
		return nil, fmt.Errorf("report %+v, but %d frames from %d to %d", rec, len(got), got[0].Position, got[len(got)-1].Position)
	}
	at := slices.IndexFunc(h.tried, func(f Frame) bool { return f.Position == got[0].Position })
	switch {
	case at < 0:
		return nil, fmt.Errorf("position %d was never written", got[0].Position)
	case at > 0 && h.tried[at-1].Position >= h.dropped:
		return nil, fmt.Errorf("starts at %d, but only frames below %d were dropped", got[0].Position, h.dropped)
	case at+len(got) < min:
		return nil, fmt.Errorf("ends at %d, but %d was acknowledged (%+v)", got[len(got)-1].Position, h.tried[min-1].Position, rec)
	}
	for i, f := range got {
		if at+i >= len(h.tried) || !equal(f, h.tried[at+i]) {
			return nil, fmt.Errorf("frame %d is position %d, which is not what was written there", i, f.Position)
		}
	}
	return got, nil
}

func equal(a, b Frame) bool {
	a.Synced, b.Synced = 0, 0
	p, q := a.Payload, b.Payload
	a.Payload, b.Payload = nil, nil
	return string(p) == string(q) && fmt.Sprint(a) == fmt.Sprint(b)
}

func collect(j *Journal, from Position) ([]Frame, error) {
	var got []Frame
	for f, err := range j.Read(from) {
		if err != nil {
			return got, err
		}
		f.Payload = slices.Clone(f.Payload)
		got = append(got, f)
	}
	return got, nil
}

func randomFrame(r *rand.Rand, after Position) Frame {
	size := r.IntN(600)
	if r.IntN(40) == 0 {
		size = r.IntN(20 << 10) // some need a segment of their own
	}
	f := Frame{
		Position: after + 1 + Position(r.IntN(3)), Received: r.Int64(), Kind: uint8(r.Uint32()), Flags: uint8(r.Uint32()), Depth: uint8(r.IntN(10)),
		Payload: make([]byte, size),
	}
	for i := range f.Payload {
		f.Payload[i] = byte(r.Uint32() >> 7)
	}
	return f
}

// player plays random operations on a journal and keeps the history.
type player struct {
	history
	r   *rand.Rand
	fs  vfs.FS
	opt Options
	j   *Journal
}

func (p *player) open() (err error) {
	p.j, _, err = Open(p.fs, "j", p.opt)
	return err
}

func (p *player) last() Position {
	if len(p.tried) == 0 {
		return p.dropped
	}
	return p.tried[len(p.tried)-1].Position
}

func (p *player) write() (Ticket, error) {
	f := randomFrame(p.r, p.last())
	p.tried = append(p.tried, f)
	t, err := p.j.Write(f)
	if err == nil {
		p.written = len(p.tried)
	}
	return t, err
}

func (p *player) commit(t Ticket) error {
	d, err := p.j.Commit(context.Background(), t)
	if err == nil && d == Synced {
		p.acked = p.written
	}
	return err
}

// step does one random operation.
func (p *player) step() error {
	ctx := context.Background()
	switch n := p.r.IntN(20); {
	case n < 6:
		_, err := p.write()
		return err
	case n < 16:
		t, err := p.write()
		if err != nil {
			return err
		}
		return p.commit(t)
	case n < 17:
		if err := p.j.Sync(ctx); err != nil {
			return err
		}
		p.acked = p.written
	case n < 19:
		if len(p.tried) > 0 {
			to := p.tried[p.r.IntN(len(p.tried))].Position
			p.dropped = max(p.dropped, to)
			return p.j.DropBefore(to)
		}
	default:
		if err := p.j.Close(ctx); err != nil {
			return err
		}
		p.acked = p.written
		return p.open()
	}
	return nil
}

// CrashRound plays a random history, kills the process or cuts the power before a random operation of the disk, opens what is left, and checks
// that every acknowledged frame is there, in order and unmodified, and nothing that was not written. It goes on with what is left, three times.
func CrashRound(seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 1))
	mem := vfs.NewMem()
	h := history{}
	for life := range 3 {
		var left *vfs.Mem
		var then history
		powerCut := r.IntN(4) > 0
		countdown := 1 + r.IntN(300)
		p := &player{history: h, r: r, opt: Options{SegmentSize: minSegmentSize, Inline: true}}
		if r.IntN(4) == 0 {
			p.opt.Mode = Never
		}
		p.fs = vfs.Fault(mem, func(op vfs.Op) error {
			if !op.Kind.Changes() || left != nil {
				return nil
			}
			if countdown--; countdown > 0 {
				return nil
			}
			then = p.history
			then.tried = slices.Clone(p.tried)
			if powerCut {
				left = mem.Crash(r)
			} else {
				left = mem.Clone()
			}
			return nil
		})
		if err := p.open(); err != nil {
			return fmt.Errorf("life %d: %w", life, err)
		}
		for range 200 {
			if left != nil {
				break
			}
			if err := p.step(); err != nil {
				return fmt.Errorf("life %d: %w", life, err)
			}
		}
		if err := p.j.Close(context.Background()); err != nil {
			return fmt.Errorf("life %d: %w", life, err)
		}
		if left == nil {
			p.acked = p.written
			left, then = mem, p.history
		}
		least := then.acked
		if !powerCut {
			least = then.written
		}
		got, err := then.verify(left, least)
		if err != nil {
			return fmt.Errorf("life %d, power cut %v: %w", life, powerCut, err)
		}
		h = history{tried: got, acked: len(got), written: len(got), dropped: then.dropped}
		mem = left
	}
	return nil
}

func seeds(t *testing.T, name string, otherwise int) uint64 {
	s := os.Getenv(name)
	if s == "" {
		return uint64(otherwise)
	}
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

func TestCrash(t *testing.T) {
	n := seeds(t, "TIDEMARK_CRASH_SEEDS", 500)
	for seed := range n {
		if err := CrashRound(seed); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// TestEveryPrefix stops the process, and cuts the power, after every single operation of a history.
func TestEveryPrefix(t *testing.T) {
	for seed := range seeds(t, "TIDEMARK_CRASH_PREFIX_SEEDS", 5) {
		r := rand.New(rand.NewPCG(seed, 2))
		mem := vfs.NewMem()
		mem.Record()
		p := &player{r: r, fs: mem, opt: Options{SegmentSize: minSegmentSize, Inline: true}}
		if err := p.open(); err != nil {
			t.Fatal(err)
		}
		type mark struct {
			ops int
			h   history
		}
		marks := []mark{{0, history{}}}
		for range 60 {
			if err := p.step(); err != nil {
				t.Fatal(err)
			}
			marks = append(marks, mark{mem.Ops(), p.history})
		}
		if err := p.j.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		for n := range mem.Ops() {
			before := marks[0].h
			for _, m := range marks {
				if m.ops <= n {
					before = m.h
				}
			}
			h := p.history
			h.acked, h.written = before.acked, before.written
			if _, err := h.verify(mem.Prefix(n), h.written); err != nil {
				t.Fatalf("seed %d: killed after operation %d: %v", seed, n, err)
			}
			if _, err := h.verify(mem.Prefix(n).Crash(r), h.acked); err != nil {
				t.Fatalf("seed %d: power cut after operation %d: %v", seed, n, err)
			}
		}
	}
}
