package search

import (
	stdcmp "cmp"
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-db/tidemark/core"
)

// crowd is n series of three terms, in an order that is not that of their serials.
func crowd(n int) iter.Seq2[Document, error] {
	order := rand.New(rand.NewPCG(1, 2)).Perm(n)
	return func(yield func(Document, error) bool) {
		for _, i := range order {
			names := []string{"red", "green", "red_green", "blue"}
			key := core.SeriesKey{Metric: "m", Entity: names[i%len(names)], Tags: core.Tags{{Name: "note", Value: []string{"red", "a red one", "x"}[i%3]}}}
			if !yield(Document{Key: key, Serial: uint64(i + 1)}, nil) {
				return
			}
		}
	}
}

// TestPagesAreBounded: a search over many series keeps those of its page, and finds what one that keeps all of them finds.
func TestPagesAreBounded(t *testing.T) {
	const n = 20_000
	for _, text := range []string{"red", "red OR green", "red NOT blue", "r* OR blue", "nothing"} {
		q, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := q.Run(crowd(n), all)
		if err != nil {
			t.Fatal(err)
		}
		inOrder := func(a, b Hit) int {
			return stdcmp.Or(stdcmp.Compare(b.Relevance, a.Relevance), stdcmp.Compare(a.Serial, b.Serial))
		}
		if !slices.IsSortedFunc(whole.Hits, inOrder) {
			t.Errorf("%s: not in order", text)
		}
		for _, p := range []Page{{Limit: 1}, {Limit: 10}, {Offset: 5, Limit: 10}, {Offset: 3000, Limit: 100}, {Offset: n, Limit: 10}, {}} {
			most := 0
			p.Keep = func(n int) error {
				most = max(most, n)
				return nil
			}
			r, err := q.Run(crowd(n), p)
			if err != nil || r.Total != n || r.Found != whole.Found {
				t.Fatalf("%s: %d of %d found, %v", text, r.Found, r.Total, err)
			}
			want := whole.Hits[min(p.Offset, len(whole.Hits)):]
			want = want[:min(p.Limit, len(want))]
			if diff := cmp.Diff(want, r.Hits); diff != "" {
				t.Errorf("%s, %d from %d:\n%s", text, p.Limit, p.Offset, diff)
			}
			if reach := p.Offset + p.Limit; most > 9*reach { // two terms have 9 pairs of boosts
				t.Errorf("%s, %d from %d: %d hits are kept", text, p.Limit, p.Offset, most)
			}
		}
	}
}

// TestSearchesEnd: an error of the documents, or of whoever bounds the memory, ends a search at once.
func TestSearchesEnd(t *testing.T) {
	q, err := Parse("red")
	if err != nil {
		t.Fatal(err)
	}
	stop := errors.New("stop")
	seen := 0
	_, err = q.Run(func(yield func(Document, error) bool) {
		for d := range crowd(100) {
			if seen++; !yield(d, nil) {
				return
			}
		}
	}, Page{Limit: 1000, Keep: func(n int) error {
		if n > 7 {
			return stop
		}
		return nil
	}})
	if !errors.Is(err, stop) || seen > 20 {
		t.Errorf("after %d documents: %v", seen, err)
	}
	if _, err := q.Run(func(yield func(Document, error) bool) { yield(Document{}, stop) }, all); !errors.Is(err, stop) {
		t.Errorf("a fault of the documents: %v", err)
	}
	// What is remembered of entities is bounded, too.
	m := newMatcher(q)
	for i := range 3 * maxKnown {
		m.load(Document{Key: core.SeriesKey{Metric: "m", Entity: string(rune(i + 1))}})
	}
	if len(m.entities) > maxKnown {
		t.Errorf("%d entities are remembered", len(m.entities))
	}
}
