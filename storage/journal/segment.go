package journal

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-db/tidemark/storage/vfs"
)

// A segment file N.seg: its header twice, in two different 4 KiB sectors, then frames.
//
//	0      8           12       16         24       32         40      44   48
//	+------+-----------+--------+----------+--------+----------+-------+----+
//	|magic |version u32|salt u32|number u64|base u64|synced u64|crc u32| 0  |   at 0 and again at 4096; frames from 8192
//	+------+-----------+--------+----------+--------+----------+-------+----+
//
// number repeats the file name. base: see the package comment. synced is the Synced of a frame written at that moment. crc is CRC-32C over 0..40.
const (
	segmentMagic   = "tidejrnl"
	segmentVersion = 1
	segmentHeader  = 48
	headerCopy     = 4096
	firstFrame     = 8192
)

// File names: ten digits and what the file is. A spare holds nothing of value; a damaged file is never touched again.
const (
	segmentExt = ".seg"
	spareExt   = ".spare"
	tempExt    = ".tmp"
	damagedExt = ".damaged"
)

var errHeader = errors.New("no valid segment header")

// header identifies one life of a segment file.
type header struct {
	salt   uint32
	number uint64
	base   Position
	synced Position
}

// page returns the header page: both copies and the end mark where the first frame will be.
func (h header) page() []byte {
	b := make([]byte, firstFrame+frameAlign)
	copy(b, segmentMagic)
	binary.LittleEndian.PutUint32(b[8:], segmentVersion)
	binary.LittleEndian.PutUint32(b[12:], h.salt)
	binary.LittleEndian.PutUint64(b[16:], h.number)
	binary.LittleEndian.PutUint64(b[24:], uint64(h.base))
	binary.LittleEndian.PutUint64(b[32:], uint64(h.synced))
	binary.LittleEndian.PutUint32(b[40:], crc32.Checksum(b[:40], castagnoli))
	copy(b[headerCopy:], b[:segmentHeader])
	return b
}

// parseSegmentHeader returns errHeader for bytes that are no header, and a vfs.VersionError, whose path withFile knows, for a header of a version
// this program cannot read.
func parseSegmentHeader(b []byte) (header, error) {
	if string(b[:8]) != segmentMagic || crc32.Checksum(b[:40], castagnoli) != binary.LittleEndian.Uint32(b[40:]) {
		return header{}, errHeader
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != segmentVersion {
		return header{}, &vfs.VersionError{Found: v, Known: segmentVersion}
	}
	h := header{
		salt:   binary.LittleEndian.Uint32(b[12:]),
		number: binary.LittleEndian.Uint64(b[16:]),
		base:   Position(binary.LittleEndian.Uint64(b[24:])),
		synced: Position(binary.LittleEndian.Uint64(b[32:])),
	}
	if h.base == 0 || h.synced >= h.base {
		return header{}, errHeader
	}
	return h, nil
}

// readHeader reads the first valid copy of the header of a segment.
func readHeader(r vfs.Mapping) (header, error) {
	var b [segmentHeader]byte
	for _, off := range []int64{0, headerCopy} {
		if off+segmentHeader > r.Len() {
			break
		}
		if _, err := r.ReadAt(b[:], off); err != nil {
			if errors.Is(err, vfs.ErrFault) {
				continue
			}
			return header{}, err
		}
		h, err := parseSegmentHeader(b[:])
		if !errors.Is(err, errHeader) {
			return h, err
		}
	}
	return header{}, errHeader
}

// segment is a segment file of an open journal. Journal.mu guards all fields but number, path and head.
type segment struct {
	number uint64
	path   string
	head   header
	file   vfs.File // open for writing; nil when sealed and durable, or found at Open
	size   int64    // bytes of the file
	end    int64    // offset behind the last frame
	last   Position // of the last frame; base-1 when there is none
	upTo   Position // all frames up to here are durable as far as this file goes
	linked bool     // the name of the file is durable
	// syncing is set while the committer syncs the file without the lock: nobody else closes it.
	syncing bool
	readers int
	holes   []Damage
	unsure  []run // of a file found at Open: where frames lie of which no valid byte says that they are durable; never changes
	marks   []mark
}

// mark says that the frame at off follows position last. Marks let a reader start near the position it wants.
type mark struct {
	off  int64
	last Position
}

// markDistance bounds what a reader passes over to 64 KiB and what a segment keeps in memory to 4 KiB.
const markDistance = 64 << 10

// note remembers a mark when the last one is far enough before it.
func (s *segment) note(off int64, last Position) {
	before := int64(firstFrame)
	if n := len(s.marks); n > 0 {
		before = s.marks[n-1].off
	}
	if off-before >= markDistance {
		s.marks = append(s.marks, mark{off, last})
	}
}

// near returns the last mark from which position p is still to come.
func (s *segment) near(p Position) mark {
	n, _ := slices.BinarySearchFunc(s.marks, p, func(m mark, p Position) int { return cmp.Compare(m.last, p) })
	if n == 0 {
		return mark{firstFrame, s.head.base - 1}
	}
	return s.marks[n-1]
}

func (s *segment) empty() bool { return s.end == firstFrame }
func (s *segment) dirty() bool { return s.last > s.upTo }

// fits reports whether a frame of n bytes has room.
func (s *segment) fits(n int64) bool { return s.end+n <= s.size }

func (j *Journal) name(number uint64, ext string) string {
	return filepath.Join(j.dir, fmt.Sprintf("%010d%s", number, ext))
}

// parseName splits a file name into number and extension; ok is false for files that are not the journal's.
func parseName(name string) (number uint64, ext string, ok bool) {
	digits, ext, found := strings.Cut(name, ".")
	number, err := strconv.ParseUint(digits, 10, 64)
	return number, "." + ext, found && err == nil && len(digits) >= 10
}

// create makes a segment that begins after the current end of the journal, with room for need bytes of frames. It is durable but still
// has a temporary name, so a crash before publish leaves no trace of it. Callers hold mu.
func (j *Journal) create(base Position, need int64) (s *segment, err error) {
	h := header{salt: j.opt.salt(), number: j.mu.next, base: base, synced: j.mu.synced}
	j.mu.next++
	s = &segment{number: h.number, head: h, size: j.opt.SegmentSize, end: firstFrame, last: base - 1, upTo: base - 1}
	own := firstFrame+need > s.size
	if own {
		s.size = firstFrame + need
	}
	if n := len(j.mu.spares); n > 0 && !own {
		s.path = j.mu.spares[n-1]
		j.mu.spares = j.mu.spares[:n-1]
		s.file, err = j.fs.Open(s.path, vfs.ReadWrite)
	} else {
		s.path = j.name(h.number, tempExt)
		s.file, err = j.fs.Open(s.path, vfs.Create)
	}
	if err != nil {
		return nil, fmt.Errorf("journal: new segment: %w", err)
	}
	if err := j.initialise(s, own); err != nil {
		return nil, errors.Join(fmt.Errorf("journal: new segment %s: %w", s.path, err), j.discard(s))
	}
	return s, nil
}

// initialise gives a segment its length and header. A segment for a single large batch is not zeroed first: its bytes are written only once.
func (j *Journal) initialise(s *segment, own bool) error {
	if own {
		if err := s.file.Truncate(s.size); err != nil {
			return err
		}
	} else if err := vfs.Preallocate(s.file, s.size); err != nil {
		return err
	}
	if _, err := s.file.WriteAt(s.head.page(), 0); err != nil {
		return err
	}
	return s.file.Sync()
}

// publish gives a segment its name. The name becomes durable with the next SyncDir, before any frame in it is acknowledged.
func (j *Journal) publish(s *segment) error {
	to := j.name(s.number, segmentExt)
	if err := j.fs.Rename(s.path, to); err != nil {
		return errors.Join(fmt.Errorf("journal: name segment %s: %w", to, err), j.discard(s))
	}
	s.path = to
	return nil
}

// discard removes a segment that holds nothing, after an error that the caller reports.
func (j *Journal) discard(s *segment) error {
	return errors.Join(s.closeFile(), j.fs.Remove(s.path))
}

func (s *segment) closeFile() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}
