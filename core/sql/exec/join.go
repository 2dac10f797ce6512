package exec

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"

	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// join yields the joined rows by entity, time and the tags of the inputs, with DETAIL by time and entity. Rows are compared group by group: a group is what all
// inputs have of one entity at one time, so that little more than a batch of each input is held.
func (x *execution) join(ctx context.Context, j *plan.Join) stream {
	if j.ByMetric {
		return x.joinByMetric(ctx, j)
	}
	if j.Detail != nil {
		return x.joinDetail(ctx, j)
	}
	byEntity := comparesEntity(j)
	joined := x.joinInputs(ctx, j, byEntity)
	if byEntity {
		return joined
	}
	return x.sorted(ctx, orderOfJoin(j, joinedEntity, joinedTime), 0, joined)
}

// joinByMetric joins each metric of the first input with the other inputs.
func (x *execution) joinByMetric(ctx context.Context, j *plan.Join) stream {
	return func(yield func(*column.Batch, error) bool) {
		first, ok := j.Inputs[0].In.(*plan.Scan)
		if !ok {
			x.join(ctx, &plan.Join{Inputs: j.Inputs, Detail: j.Detail})(yield)
			return
		}
		for _, metric := range first.Metrics {
			one := *first
			one.Metrics = []string{metric}
			inputs := slices.Clone(j.Inputs)
			inputs[0].In = &one
			for b, err := range x.join(ctx, &plan.Join{Inputs: inputs, Detail: j.Detail}) {
				if !yield(b, err) || err != nil {
					return
				}
			}
		}
	}
}

// comparesEntity reports whether all inputs are joined on the entity.
func comparesEntity(j *plan.Join) bool {
	for _, in := range j.Inputs[1:] {
		if !in.UseEntity {
			return false
		}
	}
	return true
}

// The columns of a join that follow those of its inputs.
const (
	joinedTime = iota
	joinedEntity
	joinedTags
	joinedColumns
)

// orderOfJoin sorts joined rows by two of the coalesced columns, then by the tags of the inputs.
func orderOfJoin(j *plan.Join, first, second int) []plan.Key {
	types := [joinedColumns]column.Type{joinedTime: column.Bigint, joinedEntity: column.String, joinedTags: column.String}
	width := 0
	var tags []plan.Key
	for _, in := range j.Inputs {
		if in.Tags >= 0 {
			tags = append(tags, plan.Key{Expr: place{width + in.Tags, column.String}})
		}
		width += in.Width
	}
	keys := []plan.Key{{Expr: place{width + first, types[first]}}, {Expr: place{width + second, types[second]}}}
	return append(keys, tags...)
}

// ordered returns the stream of an input in the order in which it is merged: by entity, if that counts, time and tags.
func (x *execution) ordered(ctx context.Context, in *plan.JoinInput, byEntity bool) stream {
	if byEntity && inNaturalOrder(in.In) {
		return x.open(ctx, in.In)
	}
	var keys []plan.Key
	add := func(at int, of column.Type) {
		if at >= 0 {
			keys = append(keys, plan.Key{Expr: place{at, of}})
		}
	}
	if byEntity {
		add(in.Entity, column.String)
	}
	add(in.Time, column.Bigint)
	if !byEntity {
		add(in.Entity, column.String)
	}
	add(in.Tags, column.String)
	return x.sorted(ctx, keys, 0, x.open(ctx, in.In))
}

// inNaturalOrder reports whether rows come by entity, time and tags.
func inNaturalOrder(op plan.Operator) bool {
	switch op := op.(type) {
	case *plan.Scan:
		return len(op.Metrics) <= 1 && !op.Unordered
	case *plan.Filter:
		return inNaturalOrder(op.In)
	}
	return false
}

// joinInputs merges the inputs.
func (x *execution) joinInputs(ctx context.Context, j *plan.Join, byEntity bool) stream {
	return func(yield func(*column.Batch, error) bool) {
		m := merger{out: newJoined(j, yield), byEntity: byEntity, match: x.newMatcher(ctx, j.Inputs, byEntity)}
		defer m.stop()
		err := m.attach(ctx, x, j)
		if err == nil {
			err = m.run(ctx)
		}
		if err != nil && !m.out.stopped {
			yield(nil, err)
		}
	}
}

// merger joins ordered inputs group by group.
type merger struct {
	match    *matcher
	out      *joined
	byEntity bool // a group has one entity
	sides    []joinSide
}

func (m *merger) attach(ctx context.Context, x *execution, j *plan.Join) error {
	for i := range j.Inputs {
		in := &j.Inputs[i]
		m.sides = append(m.sides, x.newSide(in, m.byEntity, x.ordered(ctx, in, m.byEntity)))
	}
	for i := range m.sides {
		if err := m.sides[i].fetch(); err != nil {
			return err
		}
	}
	return nil
}

func (m *merger) stop() {
	m.match.release()
	for i := range m.sides {
		m.sides[i].stop()
		m.sides[i].held.release()
	}
}

// run merges until all inputs are at their end.
func (m *merger) run(ctx context.Context) error {
	for {
		var least *joinSide
		for i := range m.sides {
			if s := &m.sides[i]; s.more && (least == nil || s.head.compare(&least.head) < 0) {
				least = s
			}
		}
		if least == nil {
			return m.out.flush()
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		key := least.head
		for i := range m.sides {
			if err := m.collect(i, &key); err != nil {
				return err
			}
		}
		if err := m.out.add(m.match); err != nil || m.out.stopped {
			return err
		}
	}
}

// collect makes the rows of a side that have the key its group. They are copied when their batch ends with them, since others may follow in the next one.
func (m *merger) collect(i int, key *joinKey) error {
	s, g := &m.sides[i], &m.match.groups[i]
	*g = joinGroup{}
	if !s.more || s.head.compare(key) != 0 {
		return nil
	}
	run := span{s.at, s.endOfRun(key)}
	if run.to < s.batch.Len {
		*g = joinGroup{s.batch, run}
		s.moveTo(run.to)
		return nil
	}
	// Joined rows that wait may refer to the batch, and to the rows held before.
	if err := m.out.flush(); err != nil || m.out.stopped {
		return err
	}
	s.held.reset()
	for {
		if err := s.held.add(s.batch.Slice(run.from, run.to)); err != nil {
			return err
		}
		if run.to < s.batch.Len {
			s.moveTo(run.to)
			break
		}
		if err := s.fetch(); err != nil {
			return err
		}
		if !s.more || s.head.compare(key) != 0 {
			break
		}
		run = span{0, s.endOfRun(key)}
	}
	*g = joinGroup{s.held.batch(), span{0, s.held.n}}
	return nil
}

// joinSide is one input of a merge at its current row.
type joinSide struct {
	input    *plan.JoinInput
	byEntity bool
	next     func() (*column.Batch, error, bool)
	stop     func()
	batch    *column.Batch
	at       int
	head     joinKey // of the current row
	more     bool    // there is a current row
	held     *rows

	// Of the batch: the times, and the entity if it is the same in all rows.
	times   []int64
	entity  name
	oneOnly bool
}

// newSide returns a side before its first batch.
func (x *execution) newSide(in *plan.JoinInput, byEntity bool, rows stream) joinSide {
	next, stop := iter.Pull2(rows)
	return joinSide{input: in, byEntity: byEntity, next: next, stop: stop, held: x.newRows()}
}

// fetch goes to the first row of the next batch.
func (s *joinSide) fetch() error {
	for {
		var err error
		s.batch, err, s.more = s.next()
		if err != nil || !s.more {
			s.more = false
			return err
		}
		if s.batch.Len > 0 {
			s.load()
			s.moveTo(0)
			return nil
		}
	}
}

// load looks at the keys of the batch.
func (s *joinSide) load() {
	if at := s.input.Time; at >= 0 && s.batch.Columns[at].Ints != nil && !s.batch.Columns[at].Const && s.batch.Columns[at].Nulls == nil {
		s.times = s.batch.Columns[at].Ints
	} else {
		s.times = make([]int64, s.batch.Len)
		for i := range s.times {
			s.times[i] = timeAt(s.batch, s.input.Time, i)
		}
	}
	at := s.input.Entity
	if s.oneOnly = !s.byEntity || at < 0 || s.batch.Columns[at].Const; s.oneOnly && s.byEntity {
		s.entity = nameAt(s.batch, at, 0)
	}
}

func (s *joinSide) moveTo(at int) { s.at, s.head = at, s.keyAt(at) }

// endOfRun returns the first row after the current one that has another key.
func (s *joinSide) endOfRun(key *joinKey) int {
	end := s.at + 1
	for end < s.batch.Len && s.times[end] == key.time && (s.oneOnly || nameAt(s.batch, s.input.Entity, end) == key.entity) {
		end++
	}
	return end
}

func (s *joinSide) keyAt(i int) joinKey {
	if s.oneOnly {
		return joinKey{s.entity, s.times[i]}
	}
	return joinKey{nameAt(s.batch, s.input.Entity, i), s.times[i]}
}

// joinKey is what the rows of a group have in common.
type joinKey struct {
	entity name // none when entities are not compared
	time   int64
}

func (k *joinKey) compare(o *joinKey) int {
	return cmp.Or(k.entity.compare(o.entity), cmp.Compare(k.time, o.time))
}

// name is a text or, if none, NULL, which sorts lowest and here equals itself: that of no tags.
type name struct {
	text string
	some bool
}

func (n name) compare(o name) int {
	switch {
	case n.some != o.some:
		if o.some {
			return -1
		}
		return 1
	}
	return cmp.Compare(n.text, o.text)
}

// nameAt returns the text of a column; -1 is a column that is NULL.
func nameAt(b *column.Batch, at, i int) name {
	if at < 0 || b.Columns[at].IsNull(i) {
		return name{}
	}
	v := b.Columns[at]
	if v.Strings == nil {
		return name{v.Value(i).Format(), true}
	}
	return name{v.Strings[v.Index(i)], true}
}

// timeAt returns the time of a row; NULL is before all times.
func timeAt(b *column.Batch, at, i int) int64 {
	if at < 0 || b.Columns[at].IsNull(i) {
		return math.MinInt64
	}
	v := b.Columns[at]
	if v.Ints == nil {
		return int64(v.Float(i))
	}
	return v.Ints[v.Index(i)]
}
