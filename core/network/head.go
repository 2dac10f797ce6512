package network

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

// Defaults of the bounds of what is kept of nmon files, see Limits: headers of a thousand machines, or of some dozens with a thousand disks each.
const (
	maxHead   = 256 << 10
	maxHeads  = 8 << 20
	headFiles = 4096
	headAge   = 48 * time.Hour
)

const (
	maxHeadLine = 64 << 10         // bytes of one line of a header, which is a fraction of nmon.head in every file that nmon writes
	maxHeadKey  = 1 << 10          // bytes of entity and file name
	headPause   = 10 * time.Second // between two times that the head of a file is stored: a sender cannot make the log of it
)

// head is what rows of an nmon file need that stands before them: its configuration, the headers of its sections, and the time of the snapshot they
// belong to. It is the body of core.DocStreamHead as JSON.
type head struct {
	Lines    []headLine `json:"lines"`
	Snapshot string     `json:"snapshot"` // the last ZZZZ line
	Used     core.Time  `json:"used"`
}

// headLine is one line. A later one of the same key takes its place.
type headLine struct {
	Key  string `json:"key"` // section and title
	Text string `json:"text"`
}

func (h *head) empty() bool { return h == nil || len(h.Lines) == 0 }

// size is the memory that it takes, roughly.
func (h *head) size() int {
	n := len(h.Snapshot)
	for _, l := range h.Lines {
		n += len(l.Key) + len(l.Text)
	}
	return n
}

// lines is the head as the beginning of a file.
func (h *head) lines() []byte {
	var b bytes.Buffer
	for _, l := range h.Lines {
		b.WriteString(l.Text + "\n")
	}
	if h.Snapshot != "" {
		b.WriteString(h.Snapshot + "\n")
	}
	return b.Bytes()
}

// set takes a line of a file and reports whether the head is another one then.
func (h *head) set(key, text string) bool {
	if i := slices.IndexFunc(h.Lines, func(l headLine) bool { return l.Key == key }); i >= 0 {
		if h.Lines[i].Text == text {
			return false
		}
		h.Lines = slices.Delete(h.Lines, i, i+1)
	}
	h.Lines = append(h.Lines, headLine{key, text})
	return true
}

// clone is what is kept while the stream goes on.
func (h *head) clone() *head {
	return &head{slices.Clone(h.Lines), h.Snapshot, h.Used}
}

// form is what a line of an nmon file is.
type form uint8

const (
	other form = iota // nothing that rows need
	row
	snapshot
	setting // AAA
	title   // the header of a section
)

// formOf looks at the first fields of a line. key names the line among settings and headers.
func formOf(line []byte) (f form, key string) {
	name, rest, ok := bytes.Cut(line, []byte{','})
	if !ok || !isSection(name) {
		return other, ""
	}
	first, more, _ := bytes.Cut(rest, []byte{','})
	key = string(line[:len(name)+1+len(first)])
	switch {
	case string(name) == "ZZZZ":
		return snapshot, ""
	case isSnapshotID(first):
		return row, ""
	case string(name) == "TOP":
		if second, _, _ := bytes.Cut(more, []byte{','}); isSnapshotID(second) {
			return row, ""
		}
	case string(name) == "AAA":
		return setting, key
	case bytes.HasPrefix(name, []byte("BBB")), bytes.HasPrefix(name, []byte("ERROR")), bytes.HasPrefix(name, []byte("SUMMARY")):
		return other, ""
	}
	return title, key
}

func isSection(name []byte) bool {
	for i, c := range name {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || c != '_' && (c < '0' || c > '9')) {
			return false
		}
	}
	return len(name) > 0
}

func isSnapshotID(f []byte) bool {
	return len(f) >= 5 && f[0] == 'T' && len(bytes.Trim(f[1:], "0123456789")) == 0
}

// isRow reports whether a line needs something before it.
func isRow(line []byte) bool {
	f, _ := formOf(bytes.TrimRight(line, "\r"))
	return f == row || f == snapshot
}

// headReader is a file of nmon that is read through it, of which it keeps the head.
type headReader struct {
	*fileReader
	head    *head
	partial []byte // of a line, when the rest of it has not been read
	skip    bool   // the line in work is too long to be a header
	changed bool   // since it was saved
	oneRead bool   // a snapshot was seen since it was saved
	last    time.Time
	lost    bool // it is larger than a head may be
	saved   func(*head)
}

func (r *headReader) Read(p []byte) (int, error) {
	n, err := r.fileReader.Read(p)
	if !r.lost {
		r.collect(p[:n])
	}
	return n, err
}

// collect takes the lines of text.
func (r *headReader) collect(text []byte) {
	for len(text) > 0 {
		line, rest, whole := bytes.Cut(text, []byte{'\n'})
		text = rest
		r.skip = r.skip || len(r.partial)+len(line) > maxHeadLine
		if !whole || len(r.partial) > 0 {
			// Of a line that is too long its beginning tells what it is.
			r.partial = append(r.partial, line[:min(len(line), maxHeadLine-len(r.partial))]...)
			line = r.partial
		}
		if !whole {
			return
		}
		if !r.skip {
			r.line(bytes.TrimRight(line, "\r"))
		} else if f, _ := formOf(line); f == title {
			r.forget("line of the header", maxHeadLine) // rows under another header than theirs are worse than none
		}
		r.partial, r.skip = r.partial[:0], false
	}
}

// forget gives up: whatever is kept of the file is not that of its rows.
func (r *headReader) forget(part string, limit int) {
	r.server.complaints.warn("the "+part+" of an nmon file is too long to be kept: after a reconnect its rows need it again", "limit", limit)
	r.head, r.lost, r.changed = &head{}, true, true
}

func (r *headReader) line(line []byte) {
	f, key := formOf(line)
	if f == row || f == other {
		return
	}
	if r.head == nil {
		r.head = &head{}
	}
	switch {
	case f == snapshot:
		r.head.Snapshot, r.oneRead = string(line), true
		return
	case key == "AAA,progname" && slices.ContainsFunc(r.head.Lines, func(l headLine) bool { return !strings.HasPrefix(l.Key, "AAA,") }):
		r.head = &head{} // another file begins
	case strings.HasPrefix(key, "AAA,note"):
		return
	}
	r.changed = r.head.set(key, string(line)) || r.changed
	if limit := r.server.opts.Limits.Head; r.head.size() > limit {
		r.forget("header (nmon.head)", limit)
	}
}

// stored saves the head when it has changed and its first snapshot is stored.
func (r *headReader) stored() {
	now := r.server.opts.Clock()
	if r.changed && r.head != nil && (r.head.Snapshot != "" || r.lost) && (r.last.IsZero() || now.Sub(r.last) >= headPause) {
		r.last = now
		r.save()
	}
}

// save keeps the head if there is something to keep.
func (r *headReader) save() {
	if r.head == nil || !r.changed && !r.oneRead || r.head.Snapshot == "" && !r.lost {
		return
	}
	r.changed, r.oneRead = false, false
	r.saved(r.head.clone())
}

// heads are those of all files, in memory and as documents.
type heads struct {
	mu   sync.Mutex // guards kept; under it only complaints.mu is taken, and it is not held while documents are written
	kept map[string]*head
}

// load reads the documents, once. Without a reader only what this server has seen is known.
func (k *heads) load(ctx context.Context, s *Server) {
	if k.kept != nil {
		return
	}
	k.kept = map[string]*head{}
	if s.opts.Reader == nil {
		return
	}
	for d, err := range s.opts.Reader.Documents(ctx, core.DocumentQuery{Kind: core.DocStreamHead}) {
		h := new(head)
		if err == nil {
			err = json.Unmarshal(d.Body, h)
		}
		if err != nil {
			s.complaints.warn("what is kept of nmon files cannot be read", "error", err)
			continue
		}
		k.kept[strings.Clone(d.Key)] = h
	}
}

// find returns the head of a file, nil when there is none or it is too old.
func (k *heads) find(ctx context.Context, s *Server, key string) *head {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.load(ctx, s)
	h := k.kept[key]
	if h == nil || core.TimeOf(s.opts.Clock())-h.Used > core.Time(s.opts.Limits.HeadAge.Milliseconds()) {
		return nil
	}
	return h.clone()
}

// keep stores the head of a file and lets go of the oldest ones beyond the bounds.
func (k *heads) keep(ctx context.Context, s *Server, key string, h *head) {
	h.Used = core.TimeOf(s.opts.Clock())
	b := &core.Batch{Origin: core.SystemOrigin(0)}
	k.mu.Lock()
	k.load(ctx, s)
	if h.empty() {
		delete(k.kept, key)
		b.Documents = append(b.Documents, core.DocChange{Kind: core.DocStreamHead, Key: key, Op: core.DocDelete})
	} else {
		k.kept[key] = h
		body, err := json.Marshal(h)
		if err != nil {
			s.complaints.warn("what a later connection needs of an nmon file cannot be written", "error", err)
		} else {
			b.Documents = append(b.Documents, core.DocChange{Kind: core.DocStreamHead, Key: key, Body: body})
		}
	}
	for _, old := range k.evict(s, h.Used) {
		b.Documents = append(b.Documents, core.DocChange{Kind: core.DocStreamHead, Key: old, Op: core.DocDelete})
	}
	k.mu.Unlock()
	if s.opts.Reader == nil {
		return // nobody would read them
	}
	if _, err := s.opts.Ingest.Ingest(ctx, b); err != nil {
		s.complaints.warn("what a later connection needs of an nmon file could not be stored", "error", err)
	}
}

// evict forgets what is too old, then the oldest files until the rest fits, and returns their keys.
func (k *heads) evict(s *Server, now core.Time) (gone []string) {
	limits := &s.opts.Limits
	size := 0
	keys := make([]string, 0, len(k.kept))
	for key, h := range k.kept {
		size += h.size()
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(k.kept[a].Used, k.kept[b].Used), cmp.Compare(a, b)) })
	for i, key := range keys {
		h := k.kept[key]
		young := now-h.Used <= core.Time(limits.HeadAge.Milliseconds())
		if young && size <= limits.Heads && len(keys)-i <= limits.HeadFiles {
			break
		}
		if young {
			s.complaints.warn("the header of an nmon file is dropped for that of another one: nmon.heads (bytes) or nmon.heads.files is used up", "file", strings.ReplaceAll(key, "\x00", "/"),
				"nmon.heads", limits.Heads, "nmon.heads.files", limits.HeadFiles)
		}
		size -= h.size()
		delete(k.kept, key)
		gone = append(gone, key)
	}
	return gone
}
