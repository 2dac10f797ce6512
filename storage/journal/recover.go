package journal

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/tidemark-db/tidemark/storage/vfs"
)

// Damage is a place where durable frames are missing or cannot be read. The bytes are kept: the segment gets a marker file N.damaged, and when
// its time comes it is renamed to N.seg.damaged and not deleted.
type Damage struct {
	Segment        uint64
	Offset, Length int64
	// After and Before are the valid frames around it, so at most the positions between them are lost. Before is 0 when nothing follows.
	After, Before Position
	Reason        string
	Known         bool // an earlier Open has reported it
}

func (d Damage) String() string {
	lost := fmt.Sprintf("positions from %d on", d.After+1)
	if d.Before > d.After {
		lost = fmt.Sprintf("positions %d to %d", d.After+1, d.Before-1)
	}
	return fmt.Sprintf("segment %d, %d bytes at %d: %s; lost are at most %s", d.Segment, d.Length, d.Offset, d.Reason, lost)
}

// Torn is an end of the journal that was in flight when the process or the machine died. None of it had been acknowledged as synced.
type Torn struct {
	Segment uint64
	Offset  int64
	Bytes   int64 // of the frames that were begun, as far as they can be told from what was in the file before
	Frames  int   // valid frames behind the torn one, cut with it
}

func (t Torn) String() string {
	return fmt.Sprintf("segment %d: torn tail of %d bytes at %d cut, with %d whole frames behind it", t.Segment, t.Bytes, t.Offset, t.Frames)
}

// Recovery is what was found in a journal directory, and for Open, done about it.
type Recovery struct {
	Segments    int
	Frames      int
	First, Last Position // 0 when there is no frame
	Damage      []Damage
	Torn        *Torn
	// Warnings are repairs that Open could not do, on a full or read-only disk. Nothing depends on them: the next Open tries again.
	Warnings []error
}

// found is one segment file under examination.
type found struct {
	number   uint64
	path     string
	size     int64
	head     header
	bad      bool // no valid header: nothing in it can be trusted
	void     bool // everything in it is in a later segment
	marked   bool // a marker file exists
	contents contents
	damage   []Damage
	whole    bool // the file was searched to its end, so what lies behind its last frame is garbage
	dropped  bool // behind the torn tail
}

// survey is the journal directory as found.
type survey struct {
	segments []*found // by number
	spares   []vfs.Info
	temps    []string
	synced   Position // the highest Synced that anything valid states
	highest  uint64   // file number
	report   Recovery
}

// examine reads the whole journal directory and changes nothing. accept, when not nil, is as in Options.
func examine(fs vfs.FS, dir string, accept func(Frame) error) (*survey, error) {
	v, err := list(fs, dir)
	if err != nil {
		return nil, fmt.Errorf("journal: list %s: %w", dir, err)
	}
	for _, s := range v.segments {
		if err := withFile(fs, s.path, s.size, func(m vfs.Mapping) error { s.head, err = readHeader(m); return err }); err != nil {
			if later := new(vfs.VersionError); errors.As(err, &later) {
				return nil, fmt.Errorf("journal: %w", err)
			}
			if !errors.Is(err, errHeader) {
				return nil, fmt.Errorf("journal: header of %s: %w", s.path, err)
			}
			s.bad = true
		} else if s.bad = s.head.number != s.number; !s.bad {
			v.synced = max(v.synced, s.head.synced)
		}
	}
	limit := Position(math.MaxUint64)
	for _, s := range slices.Backward(v.segments) {
		if s.bad {
			continue
		}
		if s.void = s.head.base >= limit; s.void {
			continue
		}
		err := withFile(fs, s.path, s.size, func(m vfs.Mapping) error {
			sc := scanner{m: m, head: s.head, end: s.size, accept: accept}
			s.contents, err = sc.read(limit)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("journal: %s: %w", s.path, err)
		}
		v.synced = max(v.synced, s.contents.synced)
		limit = s.head.base
	}
	v.judge()
	return v, v.refusal()
}

func list(fs vfs.FS, dir string) (*survey, error) {
	infos, err := fs.List(dir)
	if err != nil {
		return nil, err
	}
	v := &survey{}
	marked := map[uint64]bool{}
	for _, i := range infos {
		number, ext, ok := parseName(i.Name)
		if !ok || i.Dir {
			continue
		}
		v.highest = max(v.highest, number)
		switch ext {
		case segmentExt:
			v.segments = append(v.segments, &found{number: number, path: filepath.Join(dir, i.Name), size: i.Size})
		case spareExt:
			v.spares = append(v.spares, i)
		case tempExt:
			v.temps = append(v.temps, filepath.Join(dir, i.Name))
		case damagedExt:
			marked[number] = true
		}
	}
	slices.SortFunc(v.segments, func(a, b *found) int { return cmp.Compare(a.number, b.number) })
	for _, s := range v.segments {
		s.marked = marked[s.number]
	}
	return v, nil
}

// withFile calls f with the first size bytes of a file.
func withFile(fs vfs.FS, path string, size int64, f func(vfs.Mapping) error) error {
	file, err := fs.Open(path, vfs.ReadOnly)
	if err != nil {
		return err
	}
	m, err := file.Map(size)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	err = f(m)
	if later := new(vfs.VersionError); errors.As(err, &later) {
		later.Path = path
	}
	return errors.Join(err, m.Close(), file.Close())
}

// refusal is why a frame was not accepted that is there to stay, the first of them.
func (v *survey) refusal() error {
	for _, s := range v.segments {
		no := s.contents.refused
		if no.err == nil || s.dropped || no.position > s.contents.last(s.head.base) {
			continue
		}
		if later := new(vfs.VersionError); errors.As(no.err, &later) {
			later.Path = s.path
		}
		return fmt.Errorf("journal: %w", no.err)
	}
	return nil
}

// judge walks all gaps in order and decides which are damage and where the journal ends.
func (v *survey) judge() {
	v.report.Segments = len(v.segments)
	last := Position(0) // of the last valid frame so far
	torn := false
	for i, s := range v.segments {
		if s.bad {
			v.blame(s, gap{length: s.size, after: last, before: v.nextBase(i)}, "no valid header")
			continue
		}
		if s.void {
			continue
		}
		if torn {
			s.dropped = true
			v.drop(s, -1)
			continue
		}
		for _, g := range s.contents.gaps {
			if g.clean && g.before == 0 && i == v.lastGood() {
				s.whole = !g.partly
				continue // the ordinary end
			}
			if g.after >= v.synced && !g.unreadable && !s.marked {
				torn = true
				s.whole = !g.partly
				v.tear(s, g)
				break
			}
			if g.before == 0 {
				g.before = v.nextBase(i)
			}
			reason := "the checksum does not match"
			if g.unreadable {
				reason = "the bytes cannot be read"
			} else if g.clean {
				reason = "frames are missing"
			}
			v.blame(s, g, reason)
		}
		v.count(s)
		last = max(last, s.contents.last(s.head.base))
	}
}

// nextBase returns the base of the first segment behind i with a header, or 0.
func (v *survey) nextBase(i int) Position {
	for _, s := range v.segments[i+1:] {
		if !s.bad && !s.void {
			return s.head.base
		}
	}
	return 0
}

// lastGood returns the index of the last segment that counts.
func (v *survey) lastGood() int {
	for i, s := range slices.Backward(v.segments) {
		if !s.bad && !s.void {
			return i
		}
	}
	return -1
}

func (v *survey) blame(s *found, g gap, reason string) {
	d := Damage{Segment: s.number, Offset: g.off, Length: g.length, After: g.after, Before: g.before, Reason: reason, Known: s.marked}
	s.damage = append(s.damage, d)
	v.report.Damage = append(v.report.Damage, d)
}

// tear ends the journal at g.
func (v *survey) tear(s *found, g gap) {
	v.report.Torn = &Torn{Segment: s.number, Offset: g.off, Bytes: g.length}
	if g.before == 0 && g.clean {
		v.report.Torn.Bytes = 0
	}
	v.drop(s, g.off)
	s.contents.runs = slices.DeleteFunc(s.contents.runs, func(r run) bool { return r.start >= g.off })
}

// drop counts the frames of s behind off as cut.
func (v *survey) drop(s *found, off int64) {
	for _, r := range s.contents.runs {
		if r.start > off {
			v.report.Torn.Frames += r.frames
			if off < 0 {
				v.report.Torn.Bytes += r.end - r.start
			} else {
				v.report.Torn.Bytes = r.end - off
			}
		}
	}
}

func (v *survey) count(s *found) {
	for _, r := range s.contents.runs {
		if v.report.First == 0 {
			v.report.First = r.first
		}
		v.report.Frames += r.frames
		v.report.Last = r.last
	}
}

// repairDir does what judge decided. None of it matters for the correctness of what follows: new frames go to a new segment whose base voids
// whatever could not be removed. So a failure is a warning, and a server on a full disk starts.
func (j *Journal) repairDir(v *survey) {
	r := &v.report
	changed := false
	try := func(err error) {
		changed = true
		if err != nil {
			r.Warnings = append(r.Warnings, fmt.Errorf("journal: after recovery: %w", err))
		}
	}
	for _, path := range v.temps {
		try(j.fs.Remove(path))
	}
	for _, s := range v.segments {
		if len(s.damage) > 0 && !s.marked {
			try(j.mark(s))
		}
		switch {
		case s.bad:
			try(j.fs.Rename(s.path, s.path+damagedExt))
		case s.void || s.dropped:
			try(j.fs.Remove(s.path))
		case s.whole && len(s.contents.runs) == 0 && len(r.Damage) == 0:
			s.void = true
			try(j.fs.Remove(s.path))
		case s.whole && s.size > s.contents.end():
			try(j.cut(s))
		}
	}
	if changed {
		try(j.fs.SyncDir(j.dir))
	}
}

// mark writes N.damaged: a text for people, and the sign that this damage has been reported.
func (j *Journal) mark(s *found) error {
	f, err := j.fs.Open(j.name(s.number, damagedExt), vfs.Create)
	if err != nil {
		return err
	}
	var text []byte
	for _, d := range s.damage {
		text = fmt.Appendln(text, d)
	}
	_, err = f.WriteAt(text, 0)
	return errors.Join(err, f.Sync(), f.Close())
}

// cut removes what lies behind the last frame of the file that was written last. It gives back the unused part of the file too: a server that
// restarts all the time would otherwise fill the disk with nearly empty segments.
func (j *Journal) cut(s *found) error {
	f, err := j.fs.Open(s.path, vfs.ReadWrite)
	if err != nil {
		return err
	}
	end := s.contents.end()
	err = f.Truncate(end)
	if err == nil {
		s.size = end
	}
	return errors.Join(err, f.Sync(), f.Close())
}

// adopt builds the state of an open journal from what was found.
func (j *Journal) adopt(v *survey) {
	j.mu.next = v.highest + 1
	j.mu.synced = v.synced
	for _, s := range v.segments {
		if s.bad || s.void || s.dropped {
			continue
		}
		last := s.contents.last(s.head.base)
		j.mu.segs = append(j.mu.segs, &segment{
			number: s.number, path: s.path, head: s.head, size: s.size, end: s.contents.end(), last: last,
			upTo: min(last, v.synced), linked: last <= v.synced, holes: s.damage,
			unsure: slices.DeleteFunc(slices.Clone(s.contents.runs), func(r run) bool { return r.last <= v.synced }),
		})
		j.mu.end = max(j.mu.end, last)
	}
	j.mu.end = max(j.mu.end, v.synced)
}
