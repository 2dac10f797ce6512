package query

import (
	"strings"
	"sync"

	"github.com/tidemark-db/tidemark/core"
)

// Samples are the samples of one result in columns, ascending by time. They share no memory with the blocks they came from.
type Samples struct {
	Times    []core.Time
	Values   []float64 // NaN = no number
	Texts    []core.TextAt
	Decimals []core.DecimalAt
	Versions []core.VersionAt
}

// Len returns the number of samples.
func (s *Samples) Len() int { return len(s.Times) }

// add appends a block.
func (s *Samples) add(b core.Block) {
	base := uint32(len(s.Times))
	s.Times = append(s.Times, b.Times...)
	s.Values = append(s.Values, b.Values...)
	for _, t := range b.Texts {
		s.Texts = append(s.Texts, core.TextAt{Index: base + t.Index, Text: strings.Clone(t.Text)})
	}
	for _, d := range b.Decimals {
		s.Decimals = append(s.Decimals, core.DecimalAt{Index: base + d.Index, Decimal: d.Decimal})
	}
	for _, v := range b.Versions {
		v.Index += base
		v.Source, v.Status = strings.Clone(v.Source), strings.Clone(v.Status)
		s.Versions = append(s.Versions, v)
	}
}

// prepend puts older samples in front: blocks of a query for the newest come newest first.
func (s *Samples) prepend(older Samples) {
	newer := *s
	*s = older
	s.add(core.Block{Times: newer.Times, Values: newer.Values, Texts: newer.Texts, Decimals: newer.Decimals, Versions: newer.Versions})
}

// cut keeps the samples from index from up to, but not including, to. Outputs of one stage may share their columns: nothing is changed in place.
func (s *Samples) cut(from, to int) {
	s.Times, s.Values = s.Times[from:to], s.Values[from:to]
	s.Texts = cutSparse(s.Texts, from, to, func(t *core.TextAt) *uint32 { return &t.Index })
	s.Decimals = cutSparse(s.Decimals, from, to, func(d *core.DecimalAt) *uint32 { return &d.Index })
	s.Versions = cutSparse(s.Versions, from, to, func(v *core.VersionAt) *uint32 { return &v.Index })
}

// cutSparse returns the entries of a sparse column, ascending by index, that lie from index from up to, but not including, to, with indexes from there.
func cutSparse[T any](column []T, from, to int, index func(*T) *uint32) []T {
	var kept []T
	for _, one := range column {
		if at := index(&one); int(*at) >= from && int(*at) < to {
			*at -= uint32(from)
			kept = append(kept, one)
		}
	}
	return kept
}

// sampleBuffers hold the samples of one series after the other, of one request after the other: growing them anew each time is most of what a large query
// allocates.
var sampleBuffers = sync.Pool{New: func() any { return new(Samples) }}

// mostBuffered is the most samples of a buffer that is kept: 1 MiB of times and values.
const mostBuffered = 1 << 16

// emptied returns the columns without their samples. What they hold of texts is dropped, so that a small result does not keep those of a large one.
func (s *Samples) emptied() Samples {
	clear(s.Texts)
	clear(s.Versions)
	return Samples{Times: s.Times[:0], Values: s.Values[:0], Texts: s.Texts[:0], Decimals: s.Decimals[:0], Versions: s.Versions[:0]}
}

// putBack gives a buffer to the next request.
func (s *Samples) putBack() {
	*s = s.emptied()
	if max(cap(s.Times), cap(s.Texts), cap(s.Decimals), cap(s.Versions)) > mostBuffered {
		*s = Samples{}
	}
	sampleBuffers.Put(s)
}
