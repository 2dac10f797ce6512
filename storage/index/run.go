package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/tidemark-db/tidemark/storage/vfs"
)

// A run is one file:
//
//	+--------+---------------+---------------+--------+-----+----------+----------+---------+------+--------+--------+
//	| header | keys: leaves  | keys: nodes   | blocks | ids | ordinals | entities | tags    | gone | filter | footer |
//	|   16   | of 16, by key | of 32, by key | array  |array| array    | tree     | tree    |array | lines  |  256   |
//	+--------+---------------+---------------+--------+-----+----------+----------+---------+------+--------+--------+
//
// The ordinal of a series is its place in key order: key leaf ordinal/16, slot ordinal%16. The blocks array says where the leaves lie, and where the
// last one ends. With ids from low to high, either the ids array is empty and ordinals has one entry for each id from low to high, which is the number
// of keys when the run does not have the id; or ids are the ids in ascending order and ordinals theirs. Of entities, the postings of up to 16 lie
// before the leaf that names them. Gone are the ids that have no entry in older runs that counts.
const (
	magic        = "tideindx"
	endMagic     = "tideiend"
	version      = 1
	headerBytes  = 16
	footerBytes  = 256
	footerFields = footerBytes - 4 - len(endMagic)
	// maxLevels is more nodes above each other than 2^32 keys need.
	maxLevels = 7
)

// tree is where a tree of blocks lies.
type tree struct {
	kind   kind
	count  uint32 // strings
	levels int    // of nodes above the leaves
	root   piece  // without seed
}

func (t *tree) leaves() uint32 { return uint32((int64(t.count) + leafSize - 1) / leafSize) }

// footer says where everything is.
type footer struct {
	length               int64 // of the file
	low, high            ID    // of the keys; 0 when there are none
	keys, entities, tags tree
	blocks, ids          array
	ordinals, gone       array
	filter               filter
	content              uint32 // CRC-32C of all that is before the footer, by which runs of one shape are told apart; 0: not kept
}

func (f *footer) encode() []byte {
	b := make([]byte, 0, footerBytes)
	u32 := func(v uint32) { b = binary.LittleEndian.AppendUint32(b, v) }
	u64 := func(v uint64) { b = binary.LittleEndian.AppendUint64(b, v) }
	u64(uint64(f.length))
	u32(uint32(f.low))
	u32(uint32(f.high))
	for _, t := range []tree{f.keys, f.entities, f.tags} {
		u64(uint64(t.root.off))
		u32(uint32(t.root.n))
		u32(t.count)
		u32(uint32(t.levels))
	}
	for _, a := range []array{f.blocks, f.ids, f.ordinals, f.gone} {
		u64(uint64(a.off))
		u64(a.base)
		u32(a.count)
		u32(uint32(a.width))
	}
	u64(uint64(f.filter.off))
	u32(f.filter.lines)
	u32(f.content)
	b = append(b, make([]byte, footerFields-len(b))...)
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	return append(b, endMagic...)
}

func (f *footer) decode(b []byte) {
	u32 := func() (v uint32) { v, b = binary.LittleEndian.Uint32(b), b[4:]; return v }
	u64 := func() (v uint64) { v, b = binary.LittleEndian.Uint64(b), b[8:]; return v }
	f.length = int64(u64())
	f.low, f.high = ID(u32()), ID(u32())
	for i, t := range []*tree{&f.keys, &f.entities, &f.tags} {
		*t = tree{kind: [...]kind{kindKeys, kindEntities, kindTags}[i], root: piece{off: int64(u64()), n: int64(u32())}, count: u32()}
		t.levels = int(u32())
	}
	for i, a := range []*array{&f.blocks, &f.ids, &f.ordinals, &f.gone} {
		*a = array{kind: [...]kind{kindBlocks, kindIDs, kindOrdinals, kindGone}[i], off: int64(u64()), base: u64(), count: u32()}
		a.width = int(u32())
	}
	f.filter = filter{off: int64(u64()), lines: u32()}
	f.content = u32()
}

// validate checks that every section lies in the file and that the sections agree on their counts.
func (f *footer) validate() error {
	end := f.length - footerBytes
	inside := func(off, n int64) bool { return off >= headerBytes && n >= 0 && off <= end && n <= end-off }
	for _, t := range []*tree{&f.keys, &f.entities, &f.tags} {
		switch {
		case t.levels > maxLevels || t.levels < 0, !inside(t.root.off, t.root.n), int64(t.count) > f.length, t.count > math.MaxInt32:
			return fmt.Errorf("tree %d does not lie in the file", t.kind)
		case t.levels != levelsFor(t.leaves()):
			return fmt.Errorf("tree %d of %d leaves has %d levels", t.kind, t.leaves(), t.levels)
		}
	}
	for _, a := range []*array{&f.blocks, &f.ids, &f.ordinals, &f.gone} {
		if a.width < 0 || a.width > maxWidth || a.count > math.MaxInt32 || a.width == 0 && a.count > 1 || !inside(a.off, a.size()) {
			return fmt.Errorf("array %d does not lie in the file", a.kind)
		}
	}
	if !inside(f.filter.off, f.filter.size()) || f.filter.lines < linesFor(f.keys.count) {
		return errors.New("the filter does not lie in the file")
	}
	return f.agree()
}

func (f *footer) agree() error {
	span := uint64(f.high-f.low) + 1
	switch {
	case f.keys.count == 0:
		if f.low != None || f.high != None || f.blocks.count+f.ids.count+f.ordinals.count != 0 {
			return errors.New("there are ids and no keys")
		}
	case f.low == None || f.low > f.high:
		return fmt.Errorf("ids from %d to %d", f.low, f.high)
	case f.blocks.count != f.keys.leaves()+1:
		return errors.New("the number of leaves is not that of their offsets")
	case f.ids.count == 0 && (uint64(f.ordinals.count) != span || f.ordinals.count < f.keys.count),
		f.ids.count != 0 && (f.ids.count != f.keys.count || f.ordinals.count != f.keys.count):
		return errors.New("the number of ids is not that of the keys")
	}
	return nil
}

// levelsFor returns how many levels of nodes stand above so many leaves.
func levelsFor(leaves uint32) (levels int) {
	for leaves > 1 {
		leaves = (leaves + nodeSize - 1) / nodeSize
		levels++
	}
	return levels
}

// Run is an open run file.
type Run struct {
	footer
	path string
	m    vfs.Mapping

	faults atomic.Int64 // how often a part of it could not be read
	refs   atomic.Int64 // one of the owner, one of each stack that has it
	closed atomic.Bool

	mu      sync.Mutex // guards the next two
	err     error
	noticed func(*Run, error)
}

// OpenRun maps a run and checks header, footer and the bounds of the sections, whatever the number of its series; CheckRun checks the rest. An error
// wraps ErrDamaged when it is about the contents of the file.
func OpenRun(fs vfs.FS, path string) (*Run, error) {
	file, err := fs.Open(path, vfs.ReadOnly)
	if err != nil {
		return nil, fmt.Errorf("index: open: %w", err)
	}
	defer file.Close() // nothing was written
	size, err := file.Size()
	if err != nil {
		return nil, fmt.Errorf("index: %s: size: %w", path, err)
	}
	if size < headerBytes+footerBytes {
		return nil, fmt.Errorf("index: %s: %w: %d bytes are no run", path, ErrDamaged, size)
	}
	m, err := file.Map(size)
	if err != nil {
		return nil, fmt.Errorf("index: map %s: %w", path, err)
	}
	r := &Run{path: path, m: m}
	r.refs.Store(1)
	if err := r.readEnds(size); err != nil {
		return nil, fmt.Errorf("index: %s: %w", path, errors.Join(err, m.Close()))
	}
	return r, nil
}

func (r *Run) readEnds(size int64) error {
	var head [headerBytes]byte
	var foot [footerBytes]byte
	if _, err := r.m.ReadAt(head[:], 0); err != nil {
		return err
	}
	if _, err := r.m.ReadAt(foot[:], size-footerBytes); err != nil {
		return err
	}
	switch {
	case string(head[:8]) != magic:
		return fmt.Errorf("%w: not a run of an index", ErrDamaged)
	case binary.LittleEndian.Uint32(head[12:]) != crc32.Checksum(head[:12], castagnoli):
		return fmt.Errorf("%w: header: %w", ErrDamaged, errChecksum)
	case binary.LittleEndian.Uint32(head[8:]) > version:
		return &vfs.VersionError{Path: r.path, Found: binary.LittleEndian.Uint32(head[8:]), Known: version}
	case binary.LittleEndian.Uint32(head[8:]) < version:
		return fmt.Errorf("%w: format version %d never was", ErrDamaged, binary.LittleEndian.Uint32(head[8:]))
	case string(foot[footerBytes-len(endMagic):]) != endMagic,
		binary.LittleEndian.Uint32(foot[footerFields:]) != crc32.Checksum(foot[:footerFields], castagnoli):
		return fmt.Errorf("%w: footer at byte %d: %w", ErrDamaged, size-footerBytes, errChecksum)
	}
	r.decode(foot[:])
	if r.length != size {
		return fmt.Errorf("%w: %d bytes, the footer says %d", ErrDamaged, size, r.length)
	}
	if err := r.validate(); err != nil {
		return fmt.Errorf("%w: footer: %w", ErrDamaged, err)
	}
	return nil
}

func encodeHeader() []byte {
	b := binary.LittleEndian.AppendUint32([]byte(magic), version)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// Path returns where the run was opened.
func (r *Run) Path() string { return r.path }

// Len returns the number of keys in the run, those included that newer runs make void.
func (r *Run) Len() int { return int(r.keys.count) }

// Bytes returns the length of the file.
func (r *Run) Bytes() int64 { return r.length }

// Err returns the first damage that was met when the run was read, nil when there was none. It wraps ErrDamaged or vfs.ErrFault.
func (r *Run) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// fail remembers damage. A run that was closed under a reader is no damage.
func (r *Run) fail(err error) {
	if errors.Is(err, vfs.ErrClosed) {
		return
	}
	r.faults.Add(1)
	r.mu.Lock()
	first := r.err == nil
	if first {
		r.err = err
	}
	tell := r.noticed
	r.mu.Unlock()
	if first && tell != nil {
		tell(r, err)
	}
}

// Close ends the mapping when the last reader is done. An index closes the runs it was given.
func (r *Run) Close() error {
	if r.closed.Swap(true) {
		return vfs.ErrClosed
	}
	return r.release()
}

func (r *Run) acquire() { r.refs.Add(1) }

func (r *Run) release() error {
	if r.refs.Add(-1) > 0 {
		return nil
	}
	return r.m.Close()
}

// piece is a range of a file and what its checksum starts from.
type piece struct {
	off, n int64
	seed   uint32
}

// page is a copy of a checked piece of a run. Reading the same piece again costs nothing.
type page struct {
	run  *Run
	off  int64
	buf  []byte
	body []byte // of buf; nil when buf holds nothing
	load func([]byte) error
}

// maxKept is the largest buffer that a page keeps for its next use.
const maxKept = 1 << 20

func (p *page) read(r *Run, at piece) ([]byte, error) {
	if p.body != nil && p.run == r && p.off == at.off && int64(len(p.buf)) == at.n {
		return p.body, nil
	}
	if p.load == nil {
		p.load = func(b []byte) error {
			p.buf = append(p.buf[:0], b...)
			return nil
		}
	}
	p.body = nil
	if cap(p.buf) > maxKept && at.n <= maxKept {
		p.buf = nil
	}
	if at.off < headerBytes || at.n < 0 || at.off > r.length || at.n > r.length-at.off {
		return nil, r.damage(at, errBlock)
	}
	if err := r.m.View(at.off, at.n, p.load); err != nil {
		return nil, r.damage(at, err)
	}
	body, err := unseal(p.buf, at.seed)
	if err != nil {
		return nil, r.damage(at, err)
	}
	p.run, p.off, p.body = r, at.off, body
	return body, nil
}

// damage says where an error is.
func (r *Run) damage(at piece, err error) error {
	if errors.Is(err, vfs.ErrClosed) {
		return fmt.Errorf("index: %s: %w", filepath.Base(r.path), err)
	}
	return &DamageError{r.path, at.off, at.n, err}
}

// DamageError says which part of a run cannot be read. It is ErrDamaged, unless the disk did not give the bytes, which is vfs.ErrFault.
type DamageError struct {
	Path           string
	Offset, Length int64
	Cause          error
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("index: %s is damaged: %d bytes at byte %d: %v", filepath.Base(e.Path), e.Length, e.Offset, e.Cause)
}

// Unwrap is for errors.Is.
func (e *DamageError) Unwrap() []error {
	if errors.Is(e.Cause, vfs.ErrFault) {
		return []error{e.Cause}
	}
	return []error{ErrDamaged, e.Cause}
}
