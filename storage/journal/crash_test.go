package journal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sort"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-db/tidemark/storage/vfs"
)

// history is what a test did to a journal, to compare with what is found.
type history struct {
	tried   []Frame // in order of position
	acked   int     // of tried: known to be durable
	written int     // of tried: Write has returned
	dropped Position
}

// verify checks that the journal in fs holds the frames of h, a prefix of tried that contains at least the first min frames, less dropped ones.
// A disk that was full when the world ended is full when it begins again: the journal must be readable nevertheless.
func (h history) verify(fs *vfs.Mem, min int) ([]Frame, error) {
	if space, err := fs.Free("j"); err != nil || space.Free < minSegmentSize {
		if _, err := h.compare(fs.Clone(), min); err != nil {
			return nil, fmt.Errorf("with %d bytes free: %w", space.Free, err)
		}
	}
	fs.SetLimit(0)
	return h.compare(fs, min)
}

func (h history) compare(fs vfs.FS, min int) ([]Frame, error) {
	j, rec, err := Open(fs, "j", Options{SegmentSize: minSegmentSize, Inline: true})
	if err != nil {
		return nil, err
	}
	got, err := h.inspect(j, rec, min)
	return got, errors.Join(err, j.Close(context.Background()))
}

func (h history) inspect(j *Journal, rec Recovery, min int) ([]Frame, error) {
	for _, warning := range rec.Warnings {
		if !errors.Is(warning, vfs.ErrNoSpace) {
			return nil, warning
		}
	}
	if len(rec.Damage) > 0 {
		return nil, fmt.Errorf("damage %v", rec.Damage)
	}
	got, err := collect(j, 0)
	if err != nil {
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
	r    *rand.Rand
	mem  *vfs.Mem
	fs   vfs.FS // mem, watched by crash
	opt  Options
	j    *Journal
	disk disk

	order sync.Mutex // of positions: held from the choice of one until it is written
	mu    struct {
		sync.Mutex // a leaf: never held while the journal works
		history
		crash *crash // nil when there is none to come
	}
}

// disk is whether there is always room on it.
type disk uint8

const (
	ample disk = iota
	scarce
)

// crash is one end of the world: a copy of the file system before some operation that changes it.
type crash struct {
	r         *rand.Rand
	powerCut  bool // otherwise the process ends, and nothing that it wrote is lost
	countdown int  // of operations
	left      *vfs.Mem
	then      history
}

// before sees each operation on the disk, of any goroutine.
func (p *player) before(op vfs.Op) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.mu.crash
	if c == nil || !op.Kind.Changes() {
		return nil
	}
	if c.countdown--; c.countdown == 0 {
		c.then = p.mu.history
		c.then.tried = slices.Clone(p.mu.tried)
		if c.powerCut {
			c.left = p.mem.Crash(c.r)
		} else {
			c.left = p.mem.Clone()
		}
	}
	// On a disk that copies on write, bytes that are there already cannot be overwritten either when it is full; and a quota may be met as late
	// as in fdatasync.
	if space, err := p.mem.Free("j"); p.disk == scarce && err == nil && space.Free < minSegmentSize && c.r.IntN(4) == 0 {
		switch op.Kind {
		case vfs.OpWrite:
			return vfs.ShortWrite{N: c.r.IntN(int(op.Len) + 1), Err: vfs.ErrNoSpace}
		case vfs.OpSync:
			return vfs.ErrNoSpace
		}
	}
	return nil
}

func (p *player) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.crash != nil && p.mu.crash.left != nil
}

func (p *player) open() (err error) {
	p.j, _, err = Open(p.fs, "j", p.opt)
	return err
}

// write writes the next frame and returns how many have been tried with it.
func (p *player) write(r *rand.Rand) (Ticket, int, error) {
	p.order.Lock()
	defer p.order.Unlock()
	p.mu.Lock()
	last := p.mu.dropped
	if n := len(p.mu.tried); n > 0 {
		last = p.mu.tried[n-1].Position
	}
	f := randomFrame(r, last)
	p.mu.tried = append(p.mu.tried, f)
	n := len(p.mu.tried)
	p.mu.Unlock()
	t, err := p.j.Write(f)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.mu.tried = p.mu.tried[:n-1] // it is not in the journal
		return t, n, err
	}
	p.mu.written = n
	return t, n, nil
}

func (p *player) append(r *rand.Rand) error {
	t, n, err := p.write(r)
	if err != nil {
		return err
	}
	d, err := p.j.Commit(context.Background(), t)
	if err == nil && d == Synced {
		p.durable(n)
	}
	return err
}

// durable notes that the first n frames are durable.
func (p *player) durable(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.acked = max(p.mu.acked, n)
}

func (p *player) written() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.history.written
}

// synced notes what the journal says is durable.
func (p *player) synced() {
	to := p.j.Synced()
	p.mu.Lock()
	defer p.mu.Unlock()
	n := sort.Search(len(p.mu.tried), func(i int) bool { return p.mu.tried[i].Position > to })
	p.mu.acked = max(p.mu.acked, n)
}

func (p *player) sync() error {
	n := p.written()
	if err := p.j.Sync(context.Background()); err != nil {
		return err
	}
	p.durable(n)
	return nil
}

func (p *player) drop(r *rand.Rand) error {
	p.mu.Lock()
	to := Position(0)
	if n := len(p.mu.tried); n > 0 {
		to = p.mu.tried[r.IntN(n)].Position
		p.mu.dropped = max(p.mu.dropped, to)
	}
	p.mu.Unlock()
	return p.j.DropBefore(to)
}

func (p *player) reopen() error {
	if err := p.sync(); err != nil {
		return err // a full disk: there is nothing to be said of what a Close that fails leaves
	}
	if err := p.j.Close(context.Background()); err != nil {
		return err
	}
	return p.open()
}

// step does one random operation.
func (p *player) step() error {
	defer p.synced()
	switch n := p.r.IntN(21); {
	case n < 6:
		_, _, err := p.write(p.r)
		return err
	case n < 16:
		return p.append(p.r)
	case n < 17:
		return p.sync()
	case n < 19:
		return p.drop(p.r)
	case n < 20:
		return p.reopen()
	default:
		return p.wait()
	}
}

// wait lets the time pass in which mode Interval makes everything durable.
func (p *player) wait() error {
	time.Sleep(p.opt.Interval)
	synctest.Wait()
	if end, synced := p.j.End(), p.j.Synced(); p.opt.Mode == Interval && p.disk == ample && synced < end {
		return fmt.Errorf("synced up to %d, the end is %d, after an interval", synced, end)
	}
	return nil
}

// fill is step on a disk that is full now and then. A refusal for want of space is no failure, and may outlast the want by retryAfter.
func (p *player) fill() error {
	switch p.r.IntN(12) {
	case 0:
		p.mem.SetLimit(p.mem.Used() + int64(p.r.IntN(3*minSegmentSize)))
	case 1:
		p.mem.SetLimit(0)
	}
	if err := p.step(); !errors.Is(err, vfs.ErrNoSpace) {
		return err
	}
	return nil
}

// relieve makes room: then writing must work again by itself, and what could not be made durable is.
func (p *player) relieve() error {
	p.mem.SetLimit(0)
	time.Sleep(retryAfter)
	if err := p.append(p.r); err != nil {
		return fmt.Errorf("append when there is room again: %w", err)
	}
	return p.sync()
}

// life plays one life with one crash, and returns what that left, with the history up to then.
func life(p *player, before history, play func(*player) error) (*crash, error) {
	p.mu.history = before
	p.mu.crash = &crash{r: rand.New(rand.NewPCG(p.r.Uint64(), 4)), powerCut: p.r.IntN(4) > 0, countdown: 1 + p.r.IntN(300)}
	p.opt.SegmentSize, p.opt.Mode, p.opt.Interval = minSegmentSize, Mode(p.r.IntN(3)), time.Minute
	p.fs = vfs.Fault(p.mem, p.before)
	if err := p.open(); err != nil {
		return nil, err
	}
	err := play(p)
	n := p.written()
	if cerr := p.j.Close(context.Background()); err != nil || cerr != nil {
		return nil, errors.Join(err, cerr)
	}
	c := p.mu.crash
	if c.left == nil {
		p.durable(n)
		c.left, c.then = p.mem, p.mu.history
	}
	return c, nil
}

// crashRound plays three lives on one disk, each in a random mode. What a crash leaves must hold every frame that was durable - after the end
// of the process, every frame that was written - in order and unmodified, and nothing that was not written. The next life goes on with it.
func crashRound(seed uint64, d disk, play func(*player) error) error {
	r := rand.New(rand.NewPCG(seed, 1))
	mem, h := vfs.NewMem(), history{}
	for n := range 3 {
		p := &player{r: r, mem: mem, disk: d, opt: Options{Inline: r.IntN(2) == 0}}
		c, err := life(p, h, play)
		if err != nil {
			return fmt.Errorf("life %d, mode %d: %w", n, p.opt.Mode, err)
		}
		least := c.then.acked
		if !c.powerCut {
			least = c.then.written
		}
		got, err := c.then.verify(c.left, least)
		if err != nil {
			return fmt.Errorf("life %d, mode %d, power cut %v: %w", n, p.opt.Mode, c.powerCut, err)
		}
		h = history{tried: got, acked: len(got), written: len(got), dropped: c.then.dropped}
		mem = c.left
	}
	return nil
}

// seeds is a number of crashes, which the environment can raise.
func seeds(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// rounds runs crashRound for many seeds, each under a clock of its own.
func rounds(t *testing.T, n uint64, d disk, play func(*player) error) {
	for seed := range n {
		synctest.Test(t, func(t *testing.T) {
			if err := crashRound(seed, d, play); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		})
		if t.Failed() {
			return
		}
	}
}

func TestCrash(t *testing.T) {
	rounds(t, seeds(t, "TIDEMARK_CRASH_SEEDS", 200), ample, func(p *player) error {
		for range 200 {
			if p.over() {
				return nil
			}
			if err := p.step(); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestCrashOnFullDisk(t *testing.T) {
	rounds(t, seeds(t, "TIDEMARK_CRASH_SEEDS", 200), scarce, func(p *player) error {
		for range 200 {
			if p.over() {
				break
			}
			if err := p.fill(); err != nil {
				return err
			}
		}
		return p.relieve()
	})
}

// TestCrashUnderWriters has several goroutines write, commit and drop at once, so that they share group commits.
func TestCrashUnderWriters(t *testing.T) {
	rounds(t, seeds(t, "TIDEMARK_CRASH_SEEDS", 200), ample, func(p *player) error {
		errs := make([]error, 4)
		var wg sync.WaitGroup
		for w := range errs {
			r := rand.New(rand.NewPCG(p.r.Uint64(), 5))
			wg.Go(func() {
				for i := 0; i < 40 && errs[w] == nil && !p.over(); i++ {
					if w == 0 && i%10 == 9 {
						errs[w] = p.drop(r)
					} else if errs[w] = p.append(r); errs[w] == nil {
						p.synced()
					}
				}
			})
		}
		wg.Wait()
		return errors.Join(errs...)
	})
}

// TestCrashEveryPrefix stops the process, and cuts the power, after every single operation of a history.
func TestCrashEveryPrefix(t *testing.T) {
	for seed := range seeds(t, "TIDEMARK_CRASH_PREFIX_SEEDS", 3) {
		synctest.Test(t, func(t *testing.T) {
			if err := everyPrefix(seed); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		})
	}
}

func everyPrefix(seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 2))
	mem := vfs.NewMem()
	mem.Record()
	mode := Mode(seed % 3)
	p := &player{r: r, mem: mem, fs: mem, opt: Options{SegmentSize: minSegmentSize, Inline: true, Mode: mode, Interval: time.Minute}}
	if err := p.open(); err != nil {
		return err
	}
	known := []history{{}} // by number of operations: what was certain by then
	for range 60 {
		if err := p.step(); err != nil {
			return errors.Join(err, p.j.Close(context.Background()))
		}
		for len(known) < mem.Ops() {
			known = append(known, known[len(known)-1])
		}
		known = append(known[:mem.Ops()], p.mu.history)
	}
	if err := p.j.Close(context.Background()); err != nil {
		return err
	}
	for n := range mem.Ops() {
		h := p.mu.history
		at := known[min(n, len(known)-1)]
		h.acked, h.written = at.acked, at.written
		if _, err := h.verify(mem.Prefix(n), h.written); err != nil {
			return fmt.Errorf("mode %d, killed after operation %d: %w", mode, n, err)
		}
		if _, err := h.verify(mem.Prefix(n).Crash(r), h.acked); err != nil {
			return fmt.Errorf("mode %d, power cut after operation %d: %w", mode, n, err)
		}
	}
	return nil
}
