package storage

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidemark-db/tidemark/core"
)

// A sorted list against a plain one, large enough for many blocks, in every direction of arrival.
func TestSorted(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for name, next := range map[string]func(i int) int{
		"ascending": func(i int) int { return i }, "descending": func(i int) int { return -i }, "random": func(int) int { return r.IntN(5000) },
	} {
		s := sorted[int]{compare: func(a, b *int) int { return cmp.Compare(*a, *b) }}
		model := map[int]bool{}
		for i := range 4000 {
			v := next(i)
			s.put(&v)
			model[v] = true
			if i%3 == 0 {
				gone := next(r.IntN(i + 1))
				s.remove(&gone)
				delete(model, gone)
			}
		}
		var want, got []int
		for v := range model {
			want = append(want, v)
		}
		slices.Sort(want)
		for v := range s.all() {
			got = append(got, *v)
		}
		if !slices.Equal(got, want) || s.len() != len(want) {
			t.Errorf("%s: %d elements, length %d, want %d", name, len(got), s.len(), len(want))
		}
		middle := want[len(want)/2]
		for v := range s.from(&middle) {
			if *v != middle {
				t.Errorf("%s: from %d begins at %d", name, middle, *v)
			}
			break
		}
		if missing := 1 << 30; s.get(&middle) == nil || s.get(&missing) != nil {
			t.Errorf("%s: get is wrong", name)
		}
	}
}

// A head against a map, over several columns: writes in any order, deletes, and windows from both ends.
func TestHead(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	var h head
	model := map[core.Time]float64{}
	texts := map[core.Time]string{}
	const span = 5 * columnLength
	for i := range 6 * columnLength {
		at := core.Time(r.IntN(span))
		w := write{time: at, value: float64(i), flags: core.Default | core.HasValue}
		if i%5 == 0 {
			text := string(rune('a' + i%26))
			w.text = &text
			texts[at] = text
		}
		h.put(w)
		model[at] = w.value
		if i%200 == 0 {
			from := core.Time(r.IntN(span))
			gone := core.Range{Start: from, End: from + 50}
			h.delete(gone)
			for at := range model {
				if gone.Contains(at) {
					delete(model, at)
					delete(texts, at)
				}
			}
		}
	}
	var all []core.Time
	for at := range model {
		all = append(all, at)
	}
	slices.Sort(all)
	for range 300 {
		from := core.Time(r.IntN(span))
		w := window{Range: core.Range{Start: from, End: from + core.Time(r.IntN(span))}, newestFirst: r.IntN(2) == 0, most: 1 + r.IntN(2*columnLength)}
		want := slices.DeleteFunc(slices.Clone(all), func(at core.Time) bool { return !w.Contains(at) })
		if n := min(len(want), w.most); w.newestFirst {
			want = want[len(want)-n:]
		} else {
			want = want[:n]
		}
		var b core.Block
		h.copyTo(&b, w)
		if !slices.Equal(b.Times, want) || h.has(w.Range) != (len(want) > 0) {
			t.Fatalf("%+v: %d samples, want %d", w, len(b.Times), len(want))
		}
		n := 0
		for i, at := range b.Times {
			if b.Values[i] != model[at] {
				t.Fatalf("value at %d: %v, want %v", at, b.Values[i], model[at])
			}
			if _, ok := texts[at]; ok {
				n++
			}
		}
		for _, text := range b.Texts {
			if got := texts[b.Times[text.Index]]; got != text.Text {
				t.Fatalf("text at %d: %q, want %q", b.Times[text.Index], text.Text, got)
			}
		}
		if n != len(b.Texts) {
			t.Fatalf("%d texts, want %d", len(b.Texts), n)
		}
	}
}
