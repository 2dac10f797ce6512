package query_test

import (
	"context"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/memstore"
	"github.com/tidemark-db/tidemark/core/query"
)

// store builds the data of a test on top of the oracle backend.
type store struct {
	t *testing.T
	*memstore.Store
	position core.Position
}

func newStore(t *testing.T) *store { return &store{t: t, Store: memstore.New()} }

func (s *store) apply(b *core.Batch) {
	s.t.Helper()
	s.position++
	b.Received = at(s.t, "2030-01-01T00:00:00Z")
	b.Origin = core.SystemOrigin(0)
	if err := s.Apply(context.Background(), core.Entry{Position: s.position, Batch: b}); err != nil {
		s.t.Fatal(err)
	}
}

// sample stores one value of the series given as `metric entity [tag=value...]`.
func (s *store) sample(series, date string, v float64) {
	s.t.Helper()
	var b core.Batch
	b.Add(b.Ref(seriesKey(series)), at(s.t, date), v)
	s.apply(&b)
}

func seriesKey(text string) core.SeriesKey {
	parts := strings.Fields(text)
	k := core.SeriesKey{Metric: parts[0], Entity: parts[1]}
	for _, pair := range parts[2:] {
		name, value, _ := strings.Cut(pair, "=")
		k.Tags = append(k.Tags, core.Tag{Name: name, Value: value})
	}
	k.Tags = k.Tags.Normal()
	return k
}

func (s *store) document(kind core.DocKind, key, patch string) {
	s.t.Helper()
	s.apply(&core.Batch{Documents: []core.DocChange{{Kind: kind, Key: key, Op: core.DocPatch, Body: []byte(patch)}}})
}

func (s *store) source() query.Source {
	return query.Source{Reader: s.Store, Catalog: s.Store, Scope: core.AllEntities}
}

func at(t *testing.T, text string) core.Time {
	t.Helper()
	tm, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return core.TimeOf(tm)
}

// moment is Wednesday 2021-03-10T14:37:52.481Z, that of the worked dates.
var moment = dates.Moment{Now: 1615387072481, Zone: time.UTC}

// pump holds the data of the worked examples.
func pump(t *testing.T) *store {
	s := newStore(t)
	for _, p := range []struct {
		date string
		v    float64
	}{{"10:00:30", 4}, {"10:01:30", 10}, {"10:03:00", 6}, {"10:04:00", 8}, {"10:06:00", 3}, {"10:07:00", 9}} {
		s.sample("flow pump-3", "2021-05-03T"+p.date+"Z", p.v)
	}
	return s
}

// answer runs one query and returns the objects, one a line.
func answer(t *testing.T, src query.Source, q query.Series) string {
	t.Helper()
	p, err := q.Validate(moment)
	if err != nil {
		t.Fatalf("Validate: %v", err)
	}
	var lines []string
	for r, err := range p.Run(t.Context(), src) {
		if err != nil {
			t.Fatalf("Run: %v", err)
		}
		lines = append(lines, string(r.AppendJSON(nil)))
	}
	return strings.Join(lines, "\n")
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\ngot  %s\nwant %s", what, got, want)
	}
}

func between(start, end string) query.DateFilter {
	return query.DateFilter{StartDate: start, EndDate: end}
}

var tenMinutes = between("2021-05-03T10:00:00Z", "2021-05-03T10:10:00Z")

// shredder hands out every block in pieces of two samples, as a backend with small chunks does.
type shredder struct{ core.Reader }

func (s shredder) Series(ctx context.Context, q core.SeriesQuery) iter.Seq2[core.Block, error] {
	return func(yield func(core.Block, error) bool) {
		for b, err := range s.Reader.Series(ctx, q) {
			if err != nil {
				yield(b, err)
				return
			}
			pieces := shred(b)
			if q.NewestFirst {
				slices.Reverse(pieces)
			}
			for _, p := range pieces {
				if !yield(p, nil) {
					return
				}
			}
		}
	}
}

func shred(b core.Block) []core.Block {
	var pieces []core.Block
	for from := 0; from < len(b.Times); from += 2 {
		to := min(from+2, len(b.Times))
		p := core.Block{Key: b.Key, Times: b.Times[from:to], Values: b.Values[from:to]}
		for _, text := range b.Texts {
			if i := int(text.Index); i >= from && i < to {
				p.Texts = append(p.Texts, core.TextAt{Index: uint32(i - from), Text: text.Text})
			}
		}
		pieces = append(pieces, p)
	}
	return pieces
}

func nan() float64 { return math.NaN() }
