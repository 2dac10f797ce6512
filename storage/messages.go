package storage

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/events"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// message is a message in memory; arrival orders those that have the same time, entity, type and source. All of its texts lie in one allocation, and its tags
// are packed: the thirty tags of a webhook would otherwise be sixty pointers, which the garbage collector follows in every message again and again.
type message struct {
	core.Message        // without tags
	tags         string // of each tag: length of the name, name, length of the value, value
	arrival      uint64
	received     core.Time // of the latest insert: retention counts from it
}

// compareMessages is the order in which messages are read: newest first.
func compareMessages(a, b *message) int {
	return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Entity, b.Entity), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Source, b.Source),
		cmp.Compare(a.arrival, b.arrival))
}

// messages keeps messages of one identity side by side; one that equals a stored message in every field takes its place, and only its age changes: it keeps its
// arrival, by which the newest layer overrides the others. What was received longer ago than the retention is not shown, whether it was swept or not.
type messages struct {
	views  views[messagePart, *events.File]
	edits  edits
	faulty chan *messageFile // that the disk does not give any more; the worker sets them aside

	retention time.Duration // 0 = messages are kept
	now       func() core.Time

	// What follows is the appender's.

	arrivals uint64
	decoded  decodedBlocks
	older    core.Time // no layer below the active part has a message after it
	packed   []byte    // scratch
}

type messageFile = held[*events.File]

// messagePart is the messages that came between two freezes.
type messagePart struct {
	sorted[message]
	number uint64
	bytes  atomic.Int64
}

func newMessagePart(number uint64) *messagePart {
	return &messagePart{sorted: sorted[message]{compare: compareMessages}, number: number}
}

func newMessages(opts Options, m manifest) *messages {
	s := &messages{retention: opts.MessageRetention, now: opts.Now, arrivals: m.Counters.Messages, older: math.MinInt64, faulty: make(chan *messageFile, 1)}
	s.edits.list = m.Edits
	s.views.change(func(next *layers[messagePart, *events.File]) { next.active = newMessagePart(m.Generation) })
	return s
}

// edit says what became of the messages of an entity in all parts before one: they have another name, or are gone.
type edit struct {
	From   string `json:"from"`
	To     string `json:"to,omitempty"` // "": deleted
	Before uint64 `json:"before"`       // number of a part
}

type edits struct {
	mu   sync.RWMutex // a leaf
	list []edit       // in the order in which they happened; appended to, or replaced
}

func (e *edits) all() []edit {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.list
}

func (e *edits) add(one edit) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list[:len(e.list):len(e.list)], one)
}

// prune drops the edits that apply to no part from oldest on.
func (e *edits) prune(oldest uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = slices.DeleteFunc(slices.Clone(e.list), func(one edit) bool { return one.Before <= oldest })
}

// of returns the edits that apply to a part.
func (e *edits) of(number uint64) []edit {
	var list []edit
	for _, one := range e.all() {
		if one.Before > number {
			list = append(list, one)
		}
	}
	return list
}

// apply edits m; false when it is gone.
func apply(list []edit, m *message) bool {
	for i := range list {
		if e := &list[i]; m.Entity == e.From {
			if m.Entity = e.To; e.To == "" {
				return false
			}
		}
	}
	return true
}

// live returns the receive time from which on messages are shown.
func (s *messages) live() core.Time {
	if s.retention <= 0 {
		return math.MinInt64
	}
	return s.now() - core.Time(s.retention.Milliseconds())
}

// messageBytes is what a message takes in memory besides its texts.
const messageBytes = 200

func (s *messages) add(m core.Message, received core.Time) error {
	live := s.live()
	if received < live { // replay of what has expired since
		return nil
	}
	s.packed = packTags(s.packed[:0], m.Tags)
	probe := message{Message: core.Message{Time: m.Time, Entity: m.Entity, Type: m.Type, Source: m.Source}}
	active := s.views.current.Load().active
	put := func(one *message) {
		active.put(one)
		active.bytes.Add(messageBytes + int64(len(s.packed)+len(one.Text)))
	}
	for one, err := range s.near(active, &probe, m.Time) {
		if err != nil {
			return err
		}
		if one.Time != m.Time || one.Entity != m.Entity || one.Type != m.Type || one.Source != m.Source {
			break
		}
		if one.Severity == m.Severity && one.Text == m.Text && one.hasTags(m.Tags, s.packed) && one.received >= live {
			again := newMessage(m, s.packed)
			again.arrival, again.received = one.arrival, received
			put(again)
			return nil
		}
	}
	s.arrivals++
	stored := newMessage(m, s.packed)
	stored.arrival, stored.received = s.arrivals, received
	put(stored)
	return nil
}

// near yields the messages from a probe on: of the active part alone when no other can have one of that time.
func (s *messages) near(active *messagePart, probe *message, t core.Time) iter.Seq2[*message, error] {
	if t <= s.older {
		return func(yield func(*message, error) bool) {
			v := s.views.acquire()
			defer s.views.release(v)
			q := events.Query{Range: core.Range{Start: t, End: t + 1}, Entities: []string{probe.Entity}, Type: probe.Type}
			s.merged(s.sources(v, probe, q, &s.decoded))(yield)
		}
	}
	return func(yield func(*message, error) bool) {
		for one := range active.from(probe) {
			if !yield(one, nil) {
				return
			}
		}
	}
}

// newMessage copies a message and its packed tags.
func newMessage(m core.Message, tags []byte) *message {
	var text strings.Builder
	text.Grow(len(m.Entity) + len(m.Type) + len(m.Source) + len(m.Text) + len(tags))
	parts := [...]*string{&m.Entity, &m.Type, &m.Source, &m.Text}
	for _, part := range parts {
		text.WriteString(*part)
	}
	text.Write(tags)
	rest := text.String()
	for _, part := range parts {
		*part, rest = rest[:len(*part)], rest[len(*part):]
	}
	m.Tags = nil
	return &message{Message: m, tags: rest}
}

func packTags(dst []byte, tags core.Tags) []byte {
	for _, tag := range tags {
		dst = append(binary.AppendUvarint(dst, uint64(len(tag.Name))), tag.Name...)
		dst = append(binary.AppendUvarint(dst, uint64(len(tag.Value))), tag.Value...)
	}
	return dst
}

// hasTags reports whether m has the tags, which come packed as well.
func (m *message) hasTags(tags core.Tags, packed []byte) bool {
	if m.Tags != nil {
		return m.Tags.Equal(tags)
	}
	return m.tags == string(packed)
}

// unpackTags appends the tags of a message to dst. They are parts of its text.
func (m *message) unpackTags(dst core.Tags) core.Tags {
	if m.Tags != nil { // as it came from a file
		return append(dst, m.Tags...)
	}
	for d := (decoder{rest: m.tags}); d.rest != ""; {
		dst = append(dst, core.Tag{Name: d.text(), Value: d.text()})
	}
	return dst
}

// sweep takes expired messages out of memory. It looks at all of them: their order is that of their own times, not of their arrival.
func (s *messages) sweep() {
	live, active := s.live(), s.views.current.Load().active
	for one := range active.all() {
		if one.received < live {
			active.removeExactly(one)
		}
	}
}

// forget removes the messages of an entity.
func (s *messages) forget(entity string) { s.rename(entity, "") }

// rename takes the messages of an entity to another name, or with "" away.
func (s *messages) rename(from, to string) {
	v := s.views.acquire()
	defer s.views.release(v)
	if v.frozen != nil || len(v.files) > 0 {
		s.edits.add(edit{strings.Clone(from), strings.Clone(to), v.active.number})
	}
	for one := range v.active.all() {
		if one.Entity != from {
			continue
		}
		v.active.remove(one)
		if to != "" {
			moved := *one
			moved.Entity = to
			v.active.put(&moved)
		}
	}
}

// len counts the messages, those included that a newer layer overrides or that are gone.
func (s *messages) len() int {
	v := s.views.acquire()
	defer s.views.release(v)
	n := v.active.len()
	if v.frozen != nil {
		n += v.frozen.len()
	}
	for _, f := range v.files {
		n += int(f.file.Messages())
	}
	return n
}

// from yields messages in order, from the first that does not come before start. Those that q does not select may be left out. What is yielded from files is
// valid until the next one.
func (s *messages) from(start *message, q events.Query) iter.Seq2[*message, error] {
	return func(yield func(*message, error) bool) {
		v := s.views.acquire()
		defer s.views.release(v)
		s.merged(s.sources(v, start, q, nil))(yield)
	}
}

func (s *messages) merged(sources []*messageSource) iter.Seq2[*message, error] {
	return func(yield func(*message, error) bool) {
		for {
			var best *messageSource
			for _, src := range sources {
				more, err := src.fill()
				if err != nil {
					yield(nil, s.unreadable(src.held, err))
					return
				}
				if more && (best == nil || compareMessages(src.head(), best.head()) < 0) {
					best = src
				}
			}
			if best == nil {
				return
			}
			one := best.head()
			for _, src := range sources { // older layers have it as it was
				if src != best && src.at < len(src.page) && compareMessages(src.head(), one) == 0 {
					src.at++
				}
			}
			best.at++
			if !yield(one, nil) {
				return
			}
		}
	}
}

// unreadable reports that a file could not be read, and returns what the reader is told. A file whose bytes the disk does not give any more is set aside by the
// worker; one with a bad block serves its others.
func (s *messages) unreadable(f *messageFile, err error) error {
	if errors.Is(err, vfs.ErrFault) {
		select {
		case s.faulty <- f:
		default: // the worker has enough to do: the next reader reports it again
		}
	}
	return damaged(err)
}

// discardMessages takes a file out of use that the disk does not give any more, and keeps it under another name.
func (db *DB) discardMessages(ctx context.Context, broken *messageFile) error {
	if !slices.Contains(db.msgs.views.current.Load().files, broken) {
		return nil // it went meanwhile
	}
	db.opts.Log(fmt.Sprintf("storage: %s cannot be read and is set aside: its messages are missing from now on", broken.entry.path(db.dir)))
	return db.merge(ctx, messageShelf{db}, mergeOf(&db.msgs.views, []*messageFile{broken}), db.quarantine)
}

// messageSource reads one layer, a page at a time.
type messageSource struct {
	page []*message
	at   int

	part  *messagePart // in memory, or nil
	from  *message     // where the next page begins, and how
	start edge

	file  *events.File
	held  *messageFile // whose file it is
	query events.Query
	next  int // block
	begin *message
	edits []edit
	cache *decodedBlocks // nil: none
}

// decodedBlocks remembers what the appender decoded last: messages that come late come in numbers, and each has to be compared with those of its time.
type decodedBlocks struct {
	known [8]struct {
		file  *events.File
		block int
		page  []*message
	}
	next int
}

// read returns the messages of a block, which must not be changed.
func (d *decodedBlocks) read(f *events.File, block int) ([]*message, error) {
	if d != nil {
		for i := range d.known {
			if k := &d.known[i]; k.file == f && k.block == block {
				return k.page, nil
			}
		}
	}
	records, err := f.Read(block)
	if err != nil {
		return nil, err
	}
	all, page := make([]message, len(records)), make([]*message, len(records))
	for i := range records {
		r := &records[i]
		all[i] = message{Message: r.Message, arrival: r.Arrival, received: r.Received}
		page[i] = &all[i]
	}
	if d != nil {
		k := &d.known[d.next]
		k.file, k.block, k.page = f, block, page
		d.next = (d.next + 1) % len(d.known)
	}
	return page, nil
}

func (s *messages) sources(v *layers[messagePart, *events.File], start *message, q events.Query, cache *decodedBlocks) []*messageSource {
	var list []*messageSource
	for _, part := range [...]*messagePart{v.active, v.frozen} {
		if part == nil {
			continue
		}
		src := &messageSource{part: part, from: start, begin: start, edits: s.edits.of(part.number)}
		if len(src.edits) > 0 { // other names, another order
			src.from = &message{Message: core.Message{Time: start.Time}}
		}
		list = append(list, src)
	}
	for _, f := range v.files {
		src := &messageSource{file: f.file, held: f, query: q, begin: start, edits: s.edits.of(f.file.Generation()), cache: cache}
		if len(src.edits) > 0 { // names in the file are not those that are asked for
			src.query.Entities = nil
		}
		list = append(list, src)
	}
	return list
}

func (src *messageSource) head() *message { return src.page[src.at] }

// fill sees to it that the source has a message, unless it has no more.
func (src *messageSource) fill() (bool, error) {
	for src.at == len(src.page) {
		if src.part != nil {
			if src.from == nil {
				return false, nil
			}
			src.at, src.page = 0, src.page[:0]
			src.fromMemory()
		} else if src.next == len(src.file.Blocks()) {
			return false, nil
		} else if err := src.fromFile(); err != nil {
			return false, err
		}
	}
	return true, nil
}

// fromMemory reads a page, or all of a part that has to be put in another order.
func (src *messageSource) fromMemory() {
	for {
		at := len(src.page)
		src.page = slices.Grow(src.page, page)[:at+page]
		n := src.part.read(src.from, src.start, src.page[at:])
		src.page = src.page[:at+n]
		if n == 0 {
			src.from = nil // what comes in from now on may lie before what was read
			break
		}
		src.from, src.start = src.page[at+n-1], behind
		if len(src.edits) == 0 {
			return
		}
	}
	src.edit()
}

func (src *messageSource) fromFile() error {
	b := &src.file.Blocks()[src.next]
	src.next++
	src.at, src.page = 0, nil // a page may be one that the cache has
	if b.Oldest >= src.query.Range.End || !b.MayMatch(&src.query) {
		if b.Newest < src.query.Range.Start {
			src.next = len(src.file.Blocks())
		}
		return nil
	}
	page, err := src.cache.read(src.file, src.next-1)
	if err != nil {
		return err
	}
	src.page = page[sort.Search(len(page), func(i int) bool { return compareMessages(page[i], src.begin) >= 0 }):]
	if len(src.edits) > 0 {
		src.page = slices.Clone(page)
		src.edit()
	}
	return nil
}

// skip leaves out what comes before the beginning.
func (src *messageSource) skip() {
	src.page = slices.DeleteFunc(src.page, func(m *message) bool { return compareMessages(m, src.begin) < 0 })
}

// edit applies what happened to entities since the layer was written. Blocks do not part messages of one time, so each can be put in order by itself.
func (src *messageSource) edit() {
	if len(src.edits) == 0 {
		return
	}
	kept := src.page[:0]
	for _, one := range src.page {
		edited := *one // one may be shared
		if apply(src.edits, &edited) {
			kept = append(kept, &edited)
		}
	}
	src.page = kept
	slices.SortFunc(src.page, compareMessages)
	src.skip()
}

// messageShelf is the shelf of messages.
type messageShelf struct{ db *DB }

func (s messageShelf) kind() fileKind { return kindMessages }

func (s messageShelf) freeze() bool {
	ms := s.db.msgs
	old := ms.views.current.Load().active
	if old.len() == 0 {
		return false
	}
	for one := range old.all() { // the first one is the newest
		ms.older = max(ms.older, one.Time)
		break
	}
	ms.views.change(func(next *layers[messagePart, *events.File]) {
		next.active, next.frozen = newMessagePart(old.number+1), old
	})
	return true
}

func (s messageShelf) write(w io.Writer) error {
	v := s.db.msgs.views.acquire()
	defer s.db.msgs.views.release(v)
	part := &layers[messagePart, *events.File]{active: v.frozen}
	return s.db.msgs.writeTo(w, part, v.frozen.number, v.frozen.number)
}

// writeTo writes what of some layers is still shown, in order.
func (s *messages) writeTo(w io.Writer, v *layers[messagePart, *events.File], oldest, newest uint64) error {
	out, err := events.NewWriter(w, oldest, newest)
	if err != nil {
		return err
	}
	live := s.live()
	var r events.Record
	start := message{Message: core.Message{Time: core.MaxTime}}
	for m, err := range s.merged(s.sources(v, &start, events.Query{Range: core.AllTime}, nil)) {
		if err != nil {
			return err
		}
		if m.received < live {
			continue
		}
		tags := m.unpackTags(r.Tags[:0])
		r = events.Record{Message: m.Message, Arrival: m.arrival, Received: m.received}
		r.Tags = tags
		if err := out.Add(&r); err != nil {
			return err
		}
		r.Tags = nil // the writer keeps them until the block is written
	}
	return out.Close()
}

func (s messageShelf) open(e fileEntry, path string) (opened, error) {
	f, err := events.Open(s.db.fs, path)
	return opened{e, f}, err
}

func (s messageShelf) adopt(o opened)       { adopt(&s.db.msgs.views, o) }
func (s messageShelf) entries() []fileEntry { return entriesOf(&s.db.msgs.views) }
func (s messageShelf) close() error         { return closeAll(&s.db.msgs.views) }

// plan picks a file of which nothing is shown any more, or neighbours of about the same size.
func (s messageShelf) plan() (merge, bool) {
	list, live := s.db.msgs.views.current.Load().files, s.db.msgs.live()
	for i, f := range list {
		if !f.spoiled && f.file.Received() < live {
			return mergeOf(&s.db.msgs.views, list[i:i+1]), true
		}
	}
	from, to := planTiers(list, (*events.File).Size, s.db.opts.maxMerged())
	if from == to {
		return merge{}, false
	}
	return s.merging(list[from:to]), true
}

func (s messageShelf) whole() (todo []merge) {
	for _, list := range groups(s.db.msgs.views.current.Load().files, (*events.File).Size, s.db.opts) {
		if len(list) > 1 || len(s.db.msgs.edits.all()) > 0 {
			todo = append(todo, s.merging(list))
		}
	}
	return todo
}

func (s messageShelf) merging(list []*messageFile) merge {
	m := mergeOf(&s.db.msgs.views, list)
	v := &layers[messagePart, *events.File]{files: slices.Clone(list)}
	m.write = func(w io.Writer) error {
		return s.db.msgs.writeTo(w, v, v.files[len(v.files)-1].file.Oldest(), v.files[0].file.Generation())
	}
	return m
}

// prune forgets edits that every layer shows.
func (s *messages) prune() {
	if s.views.live.Load() > 1 {
		return
	}
	v := s.views.acquire()
	defer s.views.release(v)
	oldest := v.active.number
	if v.frozen != nil {
		oldest = v.frozen.number
	}
	for _, f := range v.files {
		oldest = min(oldest, f.file.Generation())
	}
	s.edits.prune(oldest)
}

// memory is about how many bytes messages take that are in no file: all of them, and those that are not frozen.
func (s *messages) memory() (unwritten, fresh int64) {
	v := s.views.current.Load()
	fresh = v.active.bytes.Load()
	if unwritten = fresh; v.frozen != nil {
		unwritten += v.frozen.bytes.Load()
	}
	return unwritten, fresh
}
