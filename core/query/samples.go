package query

import (
	"slices"
	"strings"

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

// cut keeps the samples from index from up to, but not including, to.
func (s *Samples) cut(from, to int) {
	s.Times, s.Values = s.Times[from:to], s.Values[from:to]
	outside := func(index uint32) bool { return int(index) < from || int(index) >= to }
	s.Texts = slices.DeleteFunc(s.Texts, func(t core.TextAt) bool { return outside(t.Index) })
	s.Decimals = slices.DeleteFunc(s.Decimals, func(d core.DecimalAt) bool { return outside(d.Index) })
	s.Versions = slices.DeleteFunc(s.Versions, func(v core.VersionAt) bool { return outside(v.Index) })
	for i := range s.Texts {
		s.Texts[i].Index -= uint32(from)
	}
	for i := range s.Decimals {
		s.Decimals[i].Index -= uint32(from)
	}
	for i := range s.Versions {
		s.Versions[i].Index -= uint32(from)
	}
}
