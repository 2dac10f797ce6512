package exec

import (
	"cmp"
	"context"

	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// joinGroup is the rows of one input that have the key of the group; none when the span is empty.
type joinGroup struct {
	batch *column.Batch
	span
}

func (g *joinGroup) len() int { return g.to - g.from }

// absent stands in a tuple for an input that has no row.
const absent = -1

// hashFrom is how many pairs of rows a comparison of each with each may take; above it tags are looked up.
const hashFrom = 64

// matcher makes of the rows of a group those of the join. A row of the join is a tuple: for each input a row of its batch, or absent.
type matcher struct {
	account  // of the tuples
	x        *execution
	ctx      context.Context
	inputs   []plan.JoinInput
	byEntity bool        // all rows of a group have the same entity
	groups   []joinGroup // of each input
	// tuples lie one after another, len(inputs) numbers each.
	tuples, next []int32
	matched      []bool // of the rows of the input at hand
	byTags       map[name][]int32
	order        []int32
}

func (x *execution) newMatcher(ctx context.Context, inputs []plan.JoinInput, byEntity bool) *matcher {
	return &matcher{account: account{memory: x.Memory}, x: x, ctx: ctx, inputs: inputs, byEntity: byEntity, groups: make([]joinGroup, len(inputs))}
}

// match joins the groups from left to right and returns the tuples, sorted by entity and tags.
func (m *matcher) match() ([]int32, error) {
	m.tuples = m.tuples[:0]
	if m.single() {
		return m.tuples, nil
	}
	m.tuples = m.tuples[:0]
	for row := m.groups[0].from; row < m.groups[0].to; row++ {
		m.tuples = m.alone(m.tuples, 0, row)
	}
	for k := 1; k < len(m.inputs); k++ {
		if err := m.chain(k); err != nil {
			return nil, err
		}
	}
	if len(m.tuples) > len(m.inputs) {
		if err := m.sort(); err != nil {
			return nil, err
		}
	}
	return m.tuples, nil
}

// room takes the memory that the tuples have grown by: rows of every input with the same key make a product.
func (m *matcher) room() error {
	const tupleBytes = 12 // of a number: in tuples, in next, in what sorting needs
	size := int64(len(m.tuples)+len(m.next)) * tupleBytes
	if size <= m.taken {
		return nil
	}
	if err := m.ctx.Err(); err != nil {
		return err
	}
	return m.grow(size - m.taken + chunkBytes)
}

// chunkBytes is how much memory is taken at once of what grows step by step.
const chunkBytes = 64 << 10

// single joins groups of at most one row each, the usual ones, if at most one tuple comes of it.
func (m *matcher) single() bool {
	for k := range m.groups {
		g := &m.groups[k]
		switch {
		case g.len() > 1:
			return false
		case len(m.tuples) == 0 && g.len() == 1 && (k == 0 || m.inputs[k].Outer):
			m.tuples = m.alone(m.tuples, k, g.from)
		case len(m.tuples) == 0:
		case g.len() == 1 && m.equal(k, m.tuples, g.from):
			m.tuples[k] = int32(g.from)
		case !m.inputs[k].Outer:
			m.tuples = m.tuples[:0]
		case g.len() == 1:
			return false
		}
	}
	return true
}

// equal reports whether a tuple joins with a row of input k.
func (m *matcher) equal(k int, t tuple, row int) bool {
	in, b := &m.inputs[k], m.groups[k].batch
	first, at := present(t)
	from := m.groups[first].batch
	return (m.byEntity || !in.UseEntity || nameAt(b, in.Entity, row) == nameAt(from, m.inputs[first].Entity, at)) &&
		(!in.UseTags || nameAt(b, in.Tags, row) == nameAt(from, m.inputs[first].Tags, at))
}

// alone appends the tuple of a single row.
func (m *matcher) alone(to []int32, k, row int) []int32 {
	for i := range m.inputs {
		if i == k {
			to = append(to, int32(row))
		} else {
			to = append(to, absent)
		}
	}
	return to
}

// chain joins the tuples so far with input k.
func (m *matcher) chain(k int) error {
	in, group, width := &m.inputs[k], &m.groups[k], len(m.inputs)
	m.next = m.next[:0]
	m.matched = append(m.matched[:0], make([]bool, group.len())...)
	m.index(k)
	compared := 0
	for at := 0; at < len(m.tuples); at += width {
		if compared += group.len(); compared >= patience {
			if compared = 0; m.ctx.Err() != nil {
				return m.ctx.Err()
			}
		}
		t := m.tuples[at : at+width]
		found := false
		for row := range m.partners(k, t) {
			found, m.matched[row-group.from] = true, true
			m.next = append(m.next, t...)
			m.next[len(m.next)-width+k] = int32(row)
		}
		if err := m.room(); err != nil {
			return err
		}
		if !found && in.Outer {
			m.next = append(m.next, t...)
		}
	}
	if in.Outer {
		for i, matched := range m.matched {
			if !matched {
				m.next = m.alone(m.next, k, group.from+i)
			}
		}
	}
	m.tuples, m.next = m.next, m.tuples
	return nil
}

// index prepares to look tags up, if there are many rows to compare.
func (m *matcher) index(k int) {
	m.byTags = nil
	group := &m.groups[k]
	if !m.inputs[k].UseTags || group.len()*(len(m.tuples)/len(m.inputs)) < hashFrom {
		return
	}
	m.byTags = map[name][]int32{}
	for row := group.from; row < group.to; row++ {
		tags := nameAt(group.batch, m.inputs[k].Tags, row)
		m.byTags[tags] = append(m.byTags[tags], int32(row))
	}
}

// partners yields the rows of input k that join with a tuple.
func (m *matcher) partners(k int, t tuple) func(func(int) bool) {
	return func(yield func(int) bool) {
		group := &m.groups[k]
		if m.byTags == nil {
			for row := group.from; row < group.to; row++ {
				if m.equal(k, t, row) && !yield(row) {
					return
				}
			}
			return
		}
		first, at := present(t)
		for _, row := range m.byTags[nameAt(m.groups[first].batch, m.inputs[first].Tags, at)] {
			if m.equal(k, t, int(row)) && !yield(int(row)) {
				return
			}
		}
	}
}

// tuple is a part of matcher.tuples.
type tuple = []int32

// present returns the first input that a tuple has a row of, and the row: those that the coalesced columns come from.
func present(t tuple) (input, row int) {
	for i, row := range t {
		if row != absent {
			return i, int(row)
		}
	}
	return 0, 0 // there is no such tuple
}

// sort sorts the tuples of a group by the coalesced entity, then by the tags of the inputs, absent ones first.
func (m *matcher) sort() error {
	width := len(m.inputs)
	m.order = m.order[:0]
	for i := range len(m.tuples) / width {
		m.order = append(m.order, int32(i))
	}
	at := func(i int32) tuple { return m.tuples[int(i)*width:][:width] }
	if err := sortAll(m.x, m.order, func(i, j int32) int { return cmp.Or(m.compare(at(i), at(j)), cmp.Compare(i, j)) }); err != nil {
		return err
	}
	m.next = m.next[:0]
	for n, i := range m.order {
		if n%patience == 0 && m.ctx.Err() != nil {
			return m.ctx.Err()
		}
		m.next = append(m.next, at(i)...)
	}
	m.tuples, m.next = m.next, m.tuples
	return nil
}

func (m *matcher) compare(a, b tuple) int {
	if c := m.entity(a).compare(m.entity(b)); c != 0 {
		return c
	}
	for i := range a {
		if c := m.tags(i, a[i]).compare(m.tags(i, b[i])); c != 0 {
			return c
		}
	}
	return 0
}

// entity is the coalesced entity of a tuple.
func (m *matcher) entity(t tuple) name {
	i, row := present(t)
	return nameAt(m.groups[i].batch, m.inputs[i].Entity, row)
}

func (m *matcher) tags(i int, row int32) name {
	if row == absent {
		return name{}
	}
	return nameAt(m.groups[i].batch, m.inputs[i].Tags, int(row))
}
