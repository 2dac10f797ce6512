package journal

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tidemark-db/tidemark/storage/vfs"
)

// Errors that callers act upon; test with errors.Is.
var (
	ErrClosed = errors.New("journal is closed")
	// ErrUnavailable says that the disk refuses to make frames durable. The journal tries again with every write and recovers by itself.
	ErrUnavailable = errors.New("journal is temporarily unavailable: the disk does not accept writes")
	// ErrLost says that a frame was written, could not be made durable, and could not be read back to be written again.
	ErrLost = errors.New("journal frame lost by a failing disk")
	// ErrTooLarge says that a payload is above MaxPayload.
	ErrTooLarge = fmt.Errorf("journal payload is larger than %d bytes: split the batch", MaxPayload)
)

// Mode says when frames are made durable. Every mode survives the death of the process; they differ in what a power cut takes.
type Mode uint8

const (
	Always   Mode = iota // nothing: Commit returns after fdatasync, shared by all that wait
	Interval             // at most the last Options.Interval
	Never                // whatever the kernel has not written by itself, usually the last 30 seconds
)

// Durability is what an acknowledgement promises.
type Durability uint8

const (
	Journaled Durability = iota // survives the death of the process
	Synced                      // survives a power cut
)

func (d Durability) String() string {
	if d == Synced {
		return "synced"
	}
	return "journaled"
}

// Defaults of Options.
const (
	// DefaultSegmentSize is 16 MiB: 64 of them fit the 1 GiB that a small device can spare, and retention works in steps one hardly notices.
	DefaultSegmentSize = 16 << 20
	minSegmentSize     = 16 << 10
	// DefaultRecycle keeps two files: one in reserve while another is taken into use, so that a full disk still rotates once.
	DefaultRecycle  = 2
	DefaultInterval = time.Second
)

// Options of a journal. The zero value is the default.
type Options struct {
	Mode        Mode
	Interval    time.Duration // of mode Interval; 0 is DefaultInterval
	SegmentSize int64         // bytes; 0 is DefaultSegmentSize; a multiple of 8
	Recycle     int           // used segment files kept for reuse; 0 is DefaultRecycle, below 0 none
	// Inline makes segments when they are needed, by the writer that needs one, and not ahead of time. Traces are then the same every time.
	Inline bool
	// Accept, when not nil, is asked about each valid frame of the journal as it is found. When it refuses one, Open gives that error and changes nothing in the directory. The
	// payload is valid until it returns.
	Accept func(Frame) error

	salt func() uint32 // nil: random
}

// Validate reports every fault of o.
func (o Options) Validate() error {
	var errs []error
	if o.Mode > Never {
		errs = append(errs, fmt.Errorf("journal: unknown sync mode %d", o.Mode))
	}
	if o.Interval < 0 {
		errs = append(errs, fmt.Errorf("journal: sync interval %v is negative", o.Interval))
	}
	if o.SegmentSize != 0 && (o.SegmentSize < minSegmentSize || o.SegmentSize > MaxPayload || o.SegmentSize%frameAlign != 0) {
		errs = append(errs, fmt.Errorf("journal: segment size %d: must be a multiple of 8 from %d to %d", o.SegmentSize, minSegmentSize, MaxPayload))
	}
	return errors.Join(errs...)
}

func (o Options) withDefaults() Options {
	if o.Interval == 0 {
		o.Interval = DefaultInterval
	}
	if o.SegmentSize == 0 {
		o.SegmentSize = DefaultSegmentSize
	}
	if o.Recycle == 0 {
		o.Recycle = DefaultRecycle
	}
	if o.salt == nil {
		o.salt = func() uint32 {
			var b [4]byte
			rand.Read(b[:]) // never fails, see its documentation
			return binary.LittleEndian.Uint32(b[:])
		}
	}
	return o
}

// Journal is an open journal directory. All methods may be called concurrently. Only one process may have a directory open: the owner holds
// the lock of the data directory.
type Journal struct {
	fs  vfs.FS
	dir string
	opt Options

	wake chan struct{} // someone waits for a sync
	arm  chan struct{} // mode Interval: there is something to sync
	want chan struct{} // a spare file is wanted
	quit chan struct{}
	wg   sync.WaitGroup
	done chan struct{} // closed when the goroutines have ended and the files are closed
	end  error         // of closing the files; set before done is closed

	// dropping serialises DropBefore. Order: dropping, then mu.
	dropping sync.Mutex
	// mu orders frames. It is held across pwrite, which fixes their order, and across the making of a segment; never across the fdatasync of
	// a commit.
	mu struct {
		sync.Mutex
		segs    []*segment // ascending
		active  *segment   // the last of segs, when frames may be added to it
		end     Position
		synced  Position
		broken  error     // unsynced frames sit in a file whose fdatasync failed; nothing is written before they are elsewhere
		retry   time.Time // when broken: writers do not try again before
		lost    []span
		round   *round
		spares  []string
		next    uint64 // file number
		buf     []byte
		closed  bool // no more writes
		stopped bool // no more commits
	}
}

// span is a range of positions, inclusive.
type span struct{ first, last Position }

// retryAfter keeps a stream of writes from hammering a broken disk: each try writes a new segment.
const retryAfter = 250 * time.Millisecond

// keepBuffer is the encoding buffer that stays between writes; a rare larger frame gets one of its own.
const keepBuffer = 1 << 20

// Open recovers the journal in dir, which it makes when absent, and starts the goroutines that Close ends. The report says what was found. An
// error means that the directory could not be read or was written by a later release; damage and torn tails are no errors.
func Open(fs vfs.FS, dir string, opt Options) (*Journal, Recovery, error) {
	if err := opt.Validate(); err != nil {
		return nil, Recovery{}, err
	}
	if err := fs.MkdirAll(dir); err != nil {
		return nil, Recovery{}, fmt.Errorf("journal: make %s: %w", dir, err)
	}
	v, err := examine(fs, dir, opt.Accept)
	if err != nil {
		return nil, Recovery{}, err
	}
	j := &Journal{
		fs: fs, dir: dir, opt: opt.withDefaults(),
		wake: make(chan struct{}, 1), arm: make(chan struct{}, 1), want: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	j.mu.round = newRound()
	j.repairDir(v)
	j.adopt(v)
	j.adoptSpares(v)
	if j.opt.Mode != Never {
		if err := j.commit(); err != nil {
			v.report.Warnings = append(v.report.Warnings, err)
		}
	}
	j.wg.Go(j.run)
	if !j.opt.Inline {
		j.wg.Go(j.prepareAhead)
		if len(j.mu.spares) == 0 {
			poke(j.want)
		}
	}
	go func() {
		j.wg.Wait()
		j.end = j.closeFiles()
		close(j.done)
	}()
	return j, v.report, nil
}

// poke leaves a message in a channel of capacity 1; one that is already there will do.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Ticket stands for a written frame in Commit.
type Ticket struct{ position Position }

// Position returns the position of the frame.
func (t Ticket) Position() Position { return t.position }

// Write appends f, whose position must be above End. When it returns, the order of f among all frames is fixed, readers see it, and it
// survives the death of the process. After an error f is not in the journal, and its position may be used again.
func (j *Journal) Write(f Frame) (Ticket, error) {
	if len(f.Payload) > MaxPayload {
		return Ticket{}, ErrTooLarge
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.mu.closed:
		return Ticket{}, ErrClosed
	case f.Position <= j.mu.end || f.Position > maxPosition:
		return Ticket{}, fmt.Errorf("journal: position %d does not follow %d", f.Position, j.mu.end)
	}
	if j.mu.broken != nil {
		err := j.mu.broken
		if !time.Now().Before(j.mu.retry) {
			err = j.rescue()
		}
		if err != nil {
			return Ticket{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	size := frameSize(len(f.Payload))
	if j.mu.active == nil || !j.mu.active.fits(size) {
		if err := j.rotate(size); err != nil {
			return Ticket{}, err
		}
	}
	if err := j.place(f); err != nil {
		return Ticket{}, fmt.Errorf("journal: write position %d to %s: %w", f.Position, j.dir, err)
	}
	if j.opt.Mode == Interval {
		poke(j.arm)
	}
	return Ticket{f.Position}, nil
}

// place writes f behind the last frame of the active segment, with the end mark when there is room. A frame that was written in part is
// neutralised by the end mark; when that fails too, the segment is left behind and the base of the next one voids the rest.
func (j *Journal) place(f Frame) error {
	s := j.mu.active
	f.Synced = j.mu.synced
	b := appendFrame(j.mu.buf[:0], f, s.head.salt)
	size := int64(len(b))
	if s.end+size+frameAlign <= s.size {
		b = append(b, terminator[:]...)
	}
	if cap(b) <= keepBuffer {
		j.mu.buf = b
	}
	// A frame that is whole counts, with or without padding and end mark: it would be found again, so its writer must not be told otherwise.
	if n, err := s.file.WriteAt(b, s.end); err != nil && n < frameHeader+len(f.Payload) {
		if !s.empty() {
			if _, again := s.file.WriteAt(terminator[:], s.end); again == nil {
				return err
			}
		}
		return errors.Join(err, j.abandon())
	}
	s.end += size
	s.last = f.Position
	s.note(s.end, s.last)
	j.mu.end = f.Position
	if s.end > s.size/2 && len(j.mu.spares) == 0 {
		poke(j.want)
	}
	return nil
}

// abandon stops writing to the active segment. An empty one goes away.
func (j *Journal) abandon() error {
	s := j.mu.active
	j.mu.active = nil
	if !s.empty() {
		return j.seal(s)
	}
	j.mu.segs = j.mu.segs[:len(j.mu.segs)-1]
	return j.discard(s)
}

// seal closes a segment that gets no more frames, unless the committer still has to sync it.
func (j *Journal) seal(s *segment) error {
	if s.syncing || s.dirty() && j.opt.Mode != Never {
		return nil
	}
	return s.closeFile()
}

// rotate makes a new active segment with room for need bytes.
func (j *Journal) rotate(need int64) error {
	if err := j.link(); err != nil {
		return err
	}
	base := max(j.mu.end, j.mu.synced) + 1
	if n := len(j.mu.segs); n > 0 { // the end may be a frame that was lost
		base = max(j.mu.segs[n-1].last, j.mu.synced) + 1
	}
	s, err := j.create(base, need)
	if err != nil {
		return err
	}
	if err := j.publish(s); err != nil {
		return err
	}
	old := j.mu.active
	j.mu.segs = append(j.mu.segs, s)
	j.mu.active = s
	if old == nil {
		return nil
	}
	if err := j.seal(old); err != nil {
		return fmt.Errorf("journal: close %s: %w", old.path, err)
	}
	return nil
}

// link makes the names of all segments durable. A segment whose name outlives that of the one before would look like the first one that retention
// left: the frames before it would be gone without a trace. Where commits wait for the disk there is rarely anything to do.
func (j *Journal) link() error {
	if n := len(j.mu.segs); n == 0 || j.mu.segs[n-1].linked {
		return nil
	}
	if err := j.fs.SyncDir(j.dir); err != nil {
		return fmt.Errorf("journal: sync %s: %w", j.dir, err)
	}
	for _, s := range j.mu.segs {
		s.linked = true
	}
	return nil
}

// Append is Write and Commit.
func (j *Journal) Append(ctx context.Context, f Frame) (Durability, error) {
	t, err := j.Write(f)
	if err != nil {
		return Journaled, err
	}
	return j.Commit(ctx, t)
}

// End returns the position of the last frame written, 0 when there is none.
func (j *Journal) End() Position {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.mu.end
}

// Synced returns the position up to which all frames are durable.
func (j *Journal) Synced() Position {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.mu.synced
}

// Status is a moment's view of a journal, for health reports.
type Status struct {
	First, End, Synced Position // First is the lowest position that can still be read, if there is a frame
	Segments, Spares   int
	Bytes              int64 // taken on disk, spares included
	Unavailable        error // why unsynced frames could not be made durable, nil when all is well
}

// Status returns the state of the journal.
func (j *Journal) Status() Status {
	j.mu.Lock()
	defer j.mu.Unlock()
	st := Status{End: j.mu.end, Synced: j.mu.synced, Segments: len(j.mu.segs), Spares: len(j.mu.spares), Unavailable: j.mu.broken}
	for i, s := range j.mu.segs {
		if i == 0 {
			st.First = s.head.base
		}
		st.Bytes += s.size
	}
	st.Bytes += int64(st.Spares) * j.opt.SegmentSize
	return st
}

// Close makes everything written durable, in every mode, and ends the goroutines. When ctx ends first it returns without waiting for the
// disk; the goroutines then end when the disk answers.
func (j *Journal) Close(ctx context.Context) error {
	j.mu.Lock()
	if j.mu.closed {
		j.mu.Unlock()
		return ErrClosed
	}
	j.mu.closed = true
	end := j.mu.end
	j.mu.Unlock()
	err := j.wait(ctx, end)
	close(j.quit)
	select {
	case <-j.done:
		return errors.Join(err, j.end)
	case <-ctx.Done():
		return errors.Join(err, ctx.Err())
	}
}

func (j *Journal) closeFiles() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var errs []error
	for _, s := range j.mu.segs {
		errs = append(errs, s.closeFile())
	}
	return errors.Join(errs...)
}
