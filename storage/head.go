package storage

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/invariant"
)

// columnLength bounds the samples of one column: an insert in the middle moves at most 8 KiB, and a full column is two pages of four.
const columnLength = 512

// head holds the samples of one series in memory: columns in order of time, each sorted. Appending in order is the fast path; any other order is
// accepted. The caller locks.
type head struct {
	columns []column
	small   *single // memory for the first column, until it is used
}

// single is a column of one sample with its memory: many series get no more before they go to a file.
type single struct {
	column [1]column
	time   [1]core.Time
	value  [1]float64
}

// extend returns the column behind which samples are put, which is made when there is none or it is full. The first one of a series grows as it fills, since
// most series of a short-lived process stay small; the following ones are made in full.
func (h *head) extend() *column {
	n := len(h.columns)
	switch {
	case n == 0 && h.small != nil:
		s := h.small
		h.small = nil // once: what is in it may have moved to another head
		s.column[0] = column{times: s.time[:0], values: s.value[:0]}
		h.columns = s.column[:]
	case n == 0:
		h.columns = append(h.columns, column{})
	case len(h.columns[n-1].times) == columnLength:
		h.columns = append(h.columns, column{times: make([]core.Time, 0, columnLength), values: make([]float64, 0, columnLength)})
	}
	return &h.columns[len(h.columns)-1]
}

// column is a run of at most columnLength samples, ascending by time, each time once.
type column struct {
	times  []core.Time
	values []float64
	side   *side // nil for plain numbers
}

// side holds what few samples have, each list ascending by time. The columns and the first three lists hold the latest version of each sample; older
// ones lie apart, so that only who asks for them passes them.
type side struct {
	texts    []timed[string]
	decimals []timed[core.Decimal]
	versions []timed[version]
	older    []timed[[]past] // in the order in which they were written
}

// past is a version of a sample that is not the latest.
type past struct {
	value   float64
	text    *string
	decimal *core.Decimal
	version *version // nil: written before the metric kept versions
}

type version struct {
	source, status string
	written        core.Time
}

type timed[T any] struct {
	time core.Time
	of   T
}

// write is one sample on its way into a head. Its strings may point into a request.
type write struct {
	time    core.Time
	value   float64
	flags   core.Flags
	text    *string
	decimal *core.Decimal
	version *version // only for versioned metrics
}

// textSeparator joins appended texts.
const textSeparator = ";\n"

// put writes one sample. The last write for a time wins, as far as it says something: see combine.
func (h *head) put(w write) {
	if n := len(h.columns); n == 0 || w.time > h.columns[n-1].last() {
		h.push(w)
		return
	}
	i := sort.Search(len(h.columns), func(i int) bool { return h.columns[i].last() >= w.time })
	c := &h.columns[i]
	at, found := slices.BinarySearch(c.times, w.time)
	if found {
		c.overwrite(at, w)
		return
	}
	if len(c.times) == columnLength {
		h.split(i)
		if at > columnLength/2 {
			i, at = i+1, at-columnLength/2
		}
		c = &h.columns[i]
	}
	c.times = slices.Insert(c.times, at, w.time)
	c.values = slices.Insert(c.values, at, w.number())
	c.setSide(w)
}

// putNumbers writes samples that are numbers alone, in their order. Runs that ascend go in as a whole, where they fit between what is there.
func (h *head) putNumbers(times []core.Time, values []float64) {
	for len(times) > 0 {
		n := 1
		for n < len(times) && times[n] > times[n-1] {
			n++
		}
		n = h.putRun(times[:n], values[:n])
		times, values = times[n:], values[n:]
	}
}

// putRun writes the beginning of a run that ascends, and returns how much of it that was.
func (h *head) putRun(times []core.Time, values []float64) int {
	last := len(h.columns) - 1
	if last < 0 || times[0] > h.columns[last].last() {
		c := h.extend()
		n := min(len(times), columnLength-len(c.times))
		c.times, c.values = append(c.times, times[:n]...), append(c.values, values[:n]...)
		return n
	}
	c := &h.columns[h.seek(times[0])]
	at, found := slices.BinarySearch(c.times, times[0])
	room := columnLength - len(c.times)
	if found || room == 0 {
		h.put(write{time: times[0], value: values[0], flags: core.HasValue})
		return 1
	}
	n := 1
	for n < min(len(times), room) && times[n] < c.times[at] {
		n++
	}
	c.times, c.values = slices.Insert(c.times, at, times[:n]...), slices.Insert(c.values, at, values[:n]...)
	return n
}

// number is the value that a write stores where there was nothing: text alone stores NaN.
func (w *write) number() float64 {
	if w.flags&core.HasValue == 0 {
		return math.NaN()
	}
	return w.value
}

// push appends behind the newest sample.
func (h *head) push(w write) {
	c := h.extend()
	c.times = append(c.times, w.time)
	c.values = append(c.values, w.number())
	if w.text != nil || w.decimal != nil || w.version != nil {
		c.setSide(w)
	}
}

// split halves column i.
func (h *head) split(i int) {
	const half = columnLength / 2
	c := &h.columns[i]
	upper := column{times: append(make([]core.Time, 0, columnLength), c.times[half:]...),
		values: append(make([]float64, 0, columnLength), c.values[half:]...)}
	if c.side != nil {
		at := upper.times[0]
		upper.side = &side{splitAt(&c.side.texts, at), splitAt(&c.side.decimals, at), splitAt(&c.side.versions, at), splitAt(&c.side.older, at)}
	}
	c.times, c.values = c.times[:half], c.values[:half]
	h.columns = slices.Insert(h.columns, i+1, upper)
}

// splitAt cuts the entries from t on off and returns them.
func splitAt[T any](list *[]timed[T], t core.Time) []timed[T] {
	i, _ := timeIndex(*list, t)
	rest := slices.Clone((*list)[i:])
	clear((*list)[i:])
	*list = (*list)[:i]
	return rest
}

func timeIndex[T any](list []timed[T], t core.Time) (int, bool) {
	return slices.BinarySearchFunc(list, t, func(e timed[T], t core.Time) int { return cmp.Compare(e.time, t) })
}

// set stores, or with nil removes, the entry at t.
func set[T any](list *[]timed[T], t core.Time, of *T) {
	i, found := timeIndex(*list, t)
	switch {
	case of == nil && found:
		*list = slices.Delete(*list, i, i+1)
	case of != nil && found:
		(*list)[i].of = *of
	case of != nil:
		*list = slices.Insert(*list, i, timed[T]{t, *of})
	}
}

func (c *column) last() core.Time { return c.times[len(c.times)-1] }

// setSide sets all side entries at the time of w to those of w.
func (c *column) setSide(w write) {
	if c.side == nil {
		if w.text == nil && w.decimal == nil && w.version == nil {
			return
		}
		c.side = &side{}
	}
	if w.text != nil {
		text := strings.Clone(*w.text)
		w.text = &text
	}
	set(&c.side.texts, w.time, w.text)
	set(&c.side.decimals, w.time, w.decimal)
	set(&c.side.versions, w.time, w.version)
}

// overwrite is a second write of a time. A version stands alone, beside those before it. Otherwise a number alone keeps the text; a text alone resets the
// number, except when it is appended; and older versions, from when the metric kept them, are gone.
func (c *column) overwrite(at int, w write) {
	switch {
	case w.version != nil:
		if !c.supersede(at, w) {
			return
		}
	case c.side != nil:
		c.combine(&w, at)
		set(&c.side.older, w.time, nil)
	}
	keepNumber := w.version == nil && w.text != nil && w.flags&(core.AppendText|core.HasValue) == core.AppendText
	if !keepNumber {
		c.values[at] = w.number()
	}
	c.setSide(w)
}

// combine completes w with what it leaves of the stored sample's side entries.
func (c *column) combine(w *write, at int) {
	t := c.times[at]
	i, hasText := timeIndex(c.side.texts, t)
	switch {
	case w.text == nil && hasText:
		w.text = &c.side.texts[i].of
	case w.text != nil && w.flags&core.AppendText != 0:
		if hasText {
			text := appendText(c.side.texts[i].of, *w.text)
			w.text = &text
		}
		if w.flags&core.HasValue == 0 {
			if i, ok := timeIndex(c.side.decimals, t); ok {
				w.decimal = &c.side.decimals[i].of
			}
		}
	}
}

// supersede makes room for a version: the latest one becomes a past one. It returns false when w was written before the latest, and is kept as a past
// version itself. Versions are in the order of their receive times, then of arrival.
func (c *column) supersede(at int, w write) (latest bool) {
	if c.side == nil {
		c.side = &side{}
	}
	t := w.time
	i, found := timeIndex(c.side.older, t)
	if !found {
		c.side.older = slices.Insert(c.side.older, i, timed[[]past]{time: t})
	}
	list := &c.side.older[i].of
	before := past{value: c.values[at], text: find(c.side.texts, t), decimal: find(c.side.decimals, t), version: find(c.side.versions, t)}
	if before.version == nil || before.version.written <= w.version.written {
		*list = append(*list, before)
		return true
	}
	in := past{value: w.number(), version: w.version}
	if w.text != nil {
		text := strings.Clone(*w.text)
		in.text = &text
	}
	if w.decimal != nil {
		exact := *w.decimal
		in.decimal = &exact
	}
	kept := *w.version
	in.version = &kept
	place := sort.Search(len(*list), func(i int) bool { v := (*list)[i].version; return v != nil && v.written > kept.written })
	*list = slices.Insert(*list, place, in)
	return false
}

// find returns a copy of the entry at t, nil when there is none.
func find[T any](list []timed[T], t core.Time) *T {
	i, found := timeIndex(list, t)
	if !found {
		return nil
	}
	of := list[i].of
	return &of
}

// appendText adds a text to a stored one unless it is one of its parts already.
func appendText(stored, text string) string {
	for part := range strings.SplitSeq(stored, textSeparator) {
		if part == text {
			return stored
		}
	}
	return stored + textSeparator + text
}

// delete removes the samples in r.
func (h *head) delete(r core.Range) {
	kept := h.columns[:0]
	for _, c := range h.columns {
		lo, hi := c.within(r)
		if lo < hi && c.side != nil {
			for _, t := range c.times[lo:hi] {
				c.setSide(write{time: t})
				set(&c.side.older, t, nil)
			}
		}
		c.times, c.values = slices.Delete(c.times, lo, hi), slices.Delete(c.values, lo, hi)
		if len(c.times) > 0 {
			kept = append(kept, c)
		}
	}
	clear(h.columns[len(kept):])
	h.columns = kept
}

// within returns the indexes of the samples of c in r.
func (c *column) within(r core.Range) (lo, hi int) {
	if r.Empty() {
		return 0, 0
	}
	lo, _ = slices.BinarySearch(c.times, r.Start)
	hi, _ = slices.BinarySearch(c.times, r.End)
	return lo, hi
}

// newest returns the time of the newest sample; ok is false when there is none.
func (h *head) newest() (t core.Time, ok bool) {
	if len(h.columns) == 0 {
		return 0, false
	}
	return h.columns[len(h.columns)-1].last(), true
}

// plain reports whether all samples are numbers alone.
func (h *head) plain() bool {
	for i := range h.columns {
		if h.columns[i].side != nil {
			return false
		}
	}
	return true
}

// has reports whether a sample lies in r.
func (h *head) has(r core.Range) bool {
	i := h.seek(r.Start)
	if i == len(h.columns) {
		return false
	}
	lo, hi := h.columns[i].within(r)
	return lo < hi
}

// seek returns the first column that may hold samples at or after t.
func (h *head) seek(t core.Time) int {
	return sort.Search(len(h.columns), func(i int) bool { return h.columns[i].last() >= t })
}

// window says which samples of a series are wanted next.
type window struct {
	core.Range
	newestFirst bool
	versions    bool // all of them, not only the latest
	most        int  // samples; with versions a block ends behind the time in which it gets as many
}

// copyTo fills b with copies of at most w.most samples from the end of the range that comes first. Samples in b ascend either way.
func (h *head) copyTo(b *core.Block, w window) {
	b.Times, b.Values = b.Times[:0], b.Values[:0]
	b.Texts, b.Decimals, b.Versions = b.Texts[:0], b.Decimals[:0], b.Versions[:0]
	if w.Empty() {
		return
	}
	if w.versions {
		h.copyVersions(b, w)
		return
	}
	from := h.seek(w.Start)
	if !w.newestFirst {
		for i := from; i < len(h.columns) && len(b.Times) < w.most; i++ {
			lo, hi := h.columns[i].within(w.Range)
			h.columns[i].copyTo(b, lo, min(hi, lo+w.most-len(b.Times)))
			if hi < len(h.columns[i].times) {
				return
			}
		}
		return
	}
	// Walk back to where enough samples are behind, then copy forward.
	to := min(h.seek(w.End), len(h.columns)-1)
	start, skip, count := to+1, 0, 0
	for i := to; i >= from && count < w.most; i-- {
		lo, hi := h.columns[i].within(w.Range)
		count += hi - lo
		start, skip = i, max(0, count-w.most)
	}
	for i := start; i <= to; i++ {
		lo, hi := h.columns[i].within(w.Range)
		h.columns[i].copyTo(b, lo+skip, hi)
		skip = 0
	}
}

// copyTo appends samples lo to hi.
func (c *column) copyTo(b *core.Block, lo, hi int) {
	if lo >= hi {
		return
	}
	base := len(b.Times) - lo
	b.Times = append(b.Times, c.times[lo:hi]...)
	b.Values = append(b.Values, c.values[lo:hi]...)
	if c.side == nil {
		return
	}
	// Entries ascend like times, so the index of one is found behind that of the one before.
	from, to := c.times[lo], c.times[hi-1]
	for t, at := range entries(c.side.texts, from, to, c.times) {
		b.Texts = append(b.Texts, core.TextAt{Index: uint32(base + at), Text: t})
	}
	for d, at := range entries(c.side.decimals, from, to, c.times) {
		b.Decimals = append(b.Decimals, core.DecimalAt{Index: uint32(base + at), Decimal: d})
	}
	for v, at := range entries(c.side.versions, from, to, c.times) {
		b.Versions = append(b.Versions, core.VersionAt{Index: uint32(base + at), Source: v.source, Status: v.status, Written: v.written})
	}
}

// entries yields the side entries from one time to another, inclusive, with the index of their sample in times.
func entries[T any](list []timed[T], from, to core.Time, times []core.Time) iter.Seq2[T, int] {
	return func(yield func(T, int) bool) {
		i, _ := timeIndex(list, from)
		at := 0
		for ; i < len(list) && list[i].time <= to; i++ {
			j, ok := slices.BinarySearch(times[at:], list[i].time)
			if invariant.Enabled {
				invariant.Check(ok, "side entry at %d has no sample", list[i].time)
			}
			if at += j; !yield(list[i].of, at) {
				return
			}
		}
	}
}

// copyVersions is copyTo with every version a row.
func (h *head) copyVersions(b *core.Block, w window) {
	from, to := h.seek(w.Start), min(h.seek(w.End), len(h.columns)-1)
	start, skip := from, 0
	if w.newestFirst { // walk back to the time from which on there are enough
		count := 0
		for i := to; i >= from && count < w.most; i-- {
			lo, hi := h.columns[i].within(w.Range)
			for hi > lo && count < w.most {
				hi--
				count += 1 + len(h.columns[i].past(hi))
			}
			start, skip = i, hi-lo
		}
	}
	for i := start; i <= to && (w.newestFirst || len(b.Times) < w.most); i++ {
		c := &h.columns[i]
		lo, hi := c.within(w.Range)
		for at := lo + skip; at < hi && (w.newestFirst || len(b.Times) < w.most); at++ {
			for _, p := range c.past(at) {
				p.appendTo(b, c.times[at])
			}
			c.copyTo(b, at, at+1)
		}
		skip = 0
	}
}

// past returns the older versions of sample at.
func (c *column) past(at int) []past {
	if c.side == nil || len(c.side.older) == 0 {
		return nil
	}
	if i, found := timeIndex(c.side.older, c.times[at]); found {
		return c.side.older[i].of
	}
	return nil
}

func (p *past) appendTo(b *core.Block, t core.Time) {
	at := uint32(len(b.Times))
	b.Times, b.Values = append(b.Times, t), append(b.Values, p.value)
	if p.text != nil {
		b.Texts = append(b.Texts, core.TextAt{Index: at, Text: *p.text})
	}
	if p.decimal != nil {
		b.Decimals = append(b.Decimals, core.DecimalAt{Index: at, Decimal: *p.decimal})
	}
	if v := p.version; v != nil {
		b.Versions = append(b.Versions, core.VersionAt{Index: at, Source: v.source, Status: v.status, Written: v.written})
	}
}

// newVersion keeps the version fields of a sample; without a time of writing it is that of the batch.
func newVersion(v *core.VersionAt, now core.Time) version {
	written := v.Written
	if written == 0 {
		written = now
	}
	return version{source: strings.Clone(v.Source), status: strings.Clone(v.Status), written: written}
}
