package chunk_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/chunk"
)

// shapes make adversarial runs of n doubles.
var shapes = map[string]func(r *rand.Rand, n int) []float64{
	"any bits": func(r *rand.Rand, n int) []float64 {
		return fill(n, func(int) float64 { return math.Float64frombits(r.Uint64()) })
	},
	"specials": func(r *rand.Rand, n int) []float64 {
		set := []float64{0, math.Copysign(0, -1), math.NaN(), math.Float64frombits(0x7ff0000000000001), math.Float64frombits(0xfff8dead0000beef),
			math.Inf(1), math.Inf(-1), math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64, math.MaxFloat64, -math.MaxFloat64, 1, 0.1, 1e22, 1 << 53, 1<<53 + 2}
		return fill(n, func(int) float64 { return set[r.IntN(len(set))] })
	},
	"large integers": func(r *rand.Rand, n int) []float64 {
		return fill(n, func(int) float64 { return float64(int64(r.Uint64())) })
	},
	"halves": func(r *rand.Rand, n int) []float64 {
		return fill(n, func(int) float64 { return float64(int64(r.Uint64()>>11)) / 2 })
	},
	"edge of integers": func(r *rand.Rand, n int) []float64 {
		return fill(n, func(int) float64 { return float64(uint64(1)<<(50+r.IntN(15))) + float64(r.IntN(3)-1) })
	},
	"decimals of all scales": func(r *rand.Rand, n int) []float64 {
		scale := r.IntN(20)
		return fill(n, func(int) float64 { return float64(r.IntN(1e9)-5e8) / math.Pow10(scale) })
	},
	"mixed scales": func(r *rand.Rand, n int) []float64 {
		return fill(n, func(int) float64 { return float64(r.IntN(2000)-1000) / math.Pow10(r.IntN(6)) })
	},
	"edge of products": func(r *rand.Rand, n int) []float64 {
		scale := 1 + r.IntN(5)
		return fill(n, func(int) float64 { return float64(1<<31-3+r.IntN(6)) / math.Pow10(scale) })
	},
	"small denormals": func(r *rand.Rand, n int) []float64 {
		return fill(n, func(int) float64 { return math.Float64frombits(r.Uint64N(200)) })
	},
	"signs": func(r *rand.Rand, n int) []float64 {
		return fill(n, func(int) float64 { return math.Copysign(r.Float64()/1e3, r.Float64()-0.5) })
	},
	"runs": func(r *rand.Rand, n int) []float64 {
		x := 0.0
		return fill(n, func(int) float64 {
			if r.IntN(1+n/4) == 0 {
				x = math.Float64frombits(r.Uint64())
			}
			return x
		})
	},
	"mostly zero": func(r *rand.Rand, n int) []float64 {
		return fill(n, func(int) float64 {
			if r.IntN(10) == 0 {
				return r.NormFloat64()
			}
			return 0
		})
	},
	"few words": func(r *rand.Rand, n int) []float64 {
		words := fill(1+r.IntN(12), func(int) float64 { return math.Float64frombits(r.Uint64()) })
		return fill(n, func(int) float64 { return words[r.IntN(len(words))] })
	},
	"spikes": func(r *rand.Rand, n int) []float64 {
		return fill(n, func(int) float64 { return math.Trunc(math.Exp(r.ExpFloat64() * 10)) })
	},
	"alternating extremes": func(r *rand.Rand, n int) []float64 {
		return fill(n, func(i int) float64 { return float64(math.MinInt64) * float64(1-i%2*2) })
	},
	"long period": func(r *rand.Rand, n int) []float64 {
		wave := fill(1+r.IntN(400), func(int) float64 { return float64(r.IntN(1e6)) })
		return fill(n, func(i int) float64 { return wave[i%len(wave)] })
	},
}

var lengths = []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 63, 64, 65, 127, 128, 129, 255, 512, 1000, 1024, 4097, chunk.MaxSamples}

// TestValuesRoundTrip encodes and decodes every shape and kind in many lengths, with one Encoder and one Decoder: what they keep may not show.
func TestValuesRoundTrip(t *testing.T) {
	var e chunk.Encoder
	var d chunk.Decoder
	all := shapes
	for _, k := range load {
		all["load "+k.name] = k.next
	}
	for name, shape := range all {
		for _, n := range lengths {
			for seed := range uint64(2) {
				values := shape(rand.New(rand.NewPCG(seed, uint64(n))), n)
				prefix := []byte("prefix")
				col := e.AppendValues(prefix, values)[len(prefix):]
				got, err := d.Values(make([]float64, 3), col, n)
				if err != nil {
					t.Fatalf("%s, %d values: %v\n%s", name, n, err, chunk.Describe(col))
				}
				checkBits(t, values, got)
				if k, ok := d.Places(); ok {
					checkPlaces(t, values, k)
				}
				if err := chunk.Check(col, n); err != nil {
					t.Fatalf("%s: check: %v", name, err)
				}
				if len(col) > 8*n+1 {
					t.Errorf("%s: %d values take %d bytes, more than they have: %s", name, n, len(col), chunk.Describe(col))
				}
			}
		}
	}
}

// checkPlaces compares values with whole numbers divided by 10^k.
func checkPlaces(t *testing.T, values []float64, k int) {
	t.Helper()
	ten := math.Pow10(k)
	for _, v := range values {
		if i := math.Round(v * ten); i/ten != v || k > 0 && math.Abs(i) > 1<<31 {
			t.Fatalf("%v is said to have %d places", v, k)
		}
	}
}

func TestPlaces(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   int
	}{
		{[]float64{1.25, 2.5, -3, 7.75}, 2}, {[]float64{1, 2, 4, 1 << 40}, 0}, {[]float64{0.1, 0.1, 0.1}, 1}, {[]float64{0.1, 0.2, math.NaN(), 0.4}, -1},
		{[]float64{math.Pi, math.E, math.Sqrt2}, -1}, {[]float64{1e15, 0.001, 2, 3}, -1},
	} {
		var e chunk.Encoder
		var d chunk.Decoder
		if _, err := d.Values(nil, e.AppendValues(nil, test.values), len(test.values)); err != nil {
			t.Fatal(err)
		}
		if k, ok := d.Places(); ok != (test.want >= 0) || ok && k != test.want {
			t.Errorf("%v: %d places %t, want %d", test.values, k, ok, test.want)
		}
	}
}

// timeShapes make ascending times.
var timeShapes = map[string]func(r *rand.Rand, n int) []core.Time{
	"regular": func(r *rand.Rand, n int) []core.Time { return ascending(n, func() int64 { return 15_000 }) },
	"gaps": func(r *rand.Rand, n int) []core.Time {
		return ascending(n, func() int64 { return 10_000 * (1 + int64(r.IntN(100)/99*r.IntN(50))) })
	},
	"equal":     func(r *rand.Rand, n int) []core.Time { return ascending(n, func() int64 { return int64(r.IntN(2)) }) },
	"all equal": func(r *rand.Rand, n int) []core.Time { return ascending(n, func() int64 { return 0 }) },
	"events": func(r *rand.Rand, n int) []core.Time {
		return ascending(n, func() int64 { return int64(r.ExpFloat64() * 60_000) })
	},
	"huge steps": func(r *rand.Rand, n int) []core.Time {
		return ascending(n, func() int64 { return int64(r.Uint64N(1 << 49)) })
	},
	"whole hours": func(r *rand.Rand, n int) []core.Time {
		return ascending(n, func() int64 { return 3_600_000 * int64(r.IntN(3)) })
	},
	"jitter":       func(r *rand.Rand, n int) []core.Time { return jitter(r, n, 40) },
	"small jitter": func(r *rand.Rand, n int) []core.Time { return jitter(r, n, 2) },
	"jumps of drift": func(r *rand.Rand, n int) []core.Time {
		return ascending(n, func() int64 { return 60_000 + int64(r.IntN(3)) })
	},
	"negative": func(r *rand.Rand, n int) []core.Time {
		t := ascending(n, func() int64 { return 1000 })
		for i := range t {
			t[i] -= 2e12
		}
		return t
	},
}

func ascending(n int, step func() int64) []core.Time {
	times := make([]core.Time, n)
	at := int64(1_700_000_000_000)
	for i := range times {
		times[i] = core.Time(at)
		at += step()
	}
	return times
}

// jitter is a regular interval that is measured with an error.
func jitter(r *rand.Rand, n, width int) []core.Time {
	times := make([]core.Time, n)
	for i := range times {
		times[i] = core.Time(1_700_000_000_000 + 10_000*int64(i) + int64(r.IntN(2*width+1)-width))
	}
	return times
}

func TestTimesRoundTrip(t *testing.T) {
	var e chunk.Encoder
	var d chunk.Decoder
	for name, shape := range timeShapes {
		for _, n := range lengths {
			times := shape(rand.New(rand.NewPCG(1, uint64(n))), n)
			col := e.AppendTimes(nil, times)
			got, err := d.Times(nil, col, n)
			if err != nil {
				t.Fatalf("%s, %d times: %v", name, n, err)
			}
			if !slices.Equal(times, got) {
				t.Fatalf("%s, %d times: they differ", name, n)
			}
			if err := chunk.Check(col, n); err != nil {
				t.Fatalf("%s: check: %v", name, err)
			}
			if n == chunk.MaxSamples {
				t.Logf("%-15s %8.4f bytes/sample  %s", name, float64(len(col))/float64(n), chunk.Describe(col))
			}
		}
	}
}

// TestSizes holds sizes that can be derived by hand against the encoder.
func TestSizes(t *testing.T) {
	var e chunk.Encoder
	const n = chunk.MaxSamples
	tests := []struct {
		name string
		col  []byte
		most int
	}{
		{"ten seconds: tag, start/10 s < 2^28, 1", e.AppendTimes(nil, ascending(n, func() int64 { return 10_000 })), 6},
		{"fifteen seconds, start at a multiple of five", e.AppendTimes(nil, ascending(n, func() int64 { return 15_000 })), 7},
		{"a minute, off the minute", e.AppendTimes(nil, ascending(n, func() int64 { return 60_000 })), 7},
		{"one value of two digits", e.AppendValues(nil, []float64{1.5}), 5},
		{"constant", e.AppendValues(nil, fill(n, func(int) float64 { return 1.5 })), 6},
		{"constant double", e.AppendValues(nil, fill(n, func(int) float64 { return math.Pi })), 9},
		{"steady counter", e.AppendValues(nil, fill(n, func(i int) float64 { return float64(7 * i) })), 6},
		{"ten bits a value and 1/128 byte a width", e.AppendValues(nil, fill(n, func(i int) float64 { return float64(i * 7919 % 1021) })), n*10/8 + n/128 + 10},
	}
	for _, tt := range tests {
		if len(tt.col) > tt.most {
			t.Errorf("%s: %d bytes, more than %d: %s", tt.name, len(tt.col), tt.most, chunk.Describe(tt.col))
		}
	}
}

func sides(r *rand.Rand, n int) (texts []core.TextAt, decimals []core.DecimalAt, versions []core.VersionAt) {
	words := []string{"", "ok", "failed", "überlastet", strings.Repeat("long ", 300)}
	for i := range n {
		if r.IntN(3) == 0 {
			text := words[r.IntN(len(words))]
			if n < 200 {
				text += fmt.Sprint(r.IntN(1000))
			}
			texts = append(texts, core.TextAt{Index: uint32(i), Text: text})
		}
		if r.IntN(5) == 0 {
			decimals = append(decimals, core.DecimalAt{Index: uint32(i), Decimal: core.Decimal{Significand: int64(r.Uint64()) >> r.IntN(64), Exponent: int32(r.Uint32()) >> r.IntN(32)}})
		}
		if r.IntN(2) == 0 {
			versions = append(versions, core.VersionAt{Index: uint32(i), Source: words[r.IntN(3)], Status: words[r.IntN(2)], Written: core.Time(1_700_000_000_000 + int64(i)*1000)})
		}
	}
	return texts, decimals, versions
}

func TestSidesRoundTrip(t *testing.T) {
	var e chunk.Encoder
	var d chunk.Decoder
	for _, n := range lengths {
		texts, decimals, versions := sides(rand.New(rand.NewPCG(3, uint64(n))), n)
		checkSide(t, n, texts, e.AppendTexts(nil, texts), d.Texts)
		checkSide(t, n, decimals, e.AppendDecimals(nil, decimals), d.Decimals)
		checkSide(t, n, versions, e.AppendVersions(nil, versions), d.Versions)
	}
	// One text for all, of more bytes than the ratio allows for one.
	same := make([]core.TextAt, chunk.MaxSamples)
	for i := range same {
		same[i] = core.TextAt{Index: uint32(i), Text: strings.Repeat("x", 5000)}
	}
	checkSide(t, chunk.MaxSamples, same, e.AppendTexts(nil, same), d.Texts)
	for i := range same {
		same[i].Text = strings.Repeat("x", i)
	}
	checkSide(t, chunk.MaxSamples, same[:600], e.AppendTexts(nil, same[:600]), d.Texts)
}

func checkSide[T any](t *testing.T, n int, want []T, col []byte, decode func([]T, []byte, int) ([]T, error)) {
	t.Helper()
	src := bytes.Clone(col)
	got, err := decode(make([]T, 2), src, n)
	if err != nil {
		t.Fatalf("%s of %d samples: %v", chunk.Describe(col), n, err)
	}
	clear(src) // nothing may point into it
	if len(got) != len(want) {
		t.Fatalf("%d entries became %d", len(want), len(got))
	}
	if diff := cmp.Diff(want, got); len(want) > 0 && diff != "" {
		t.Fatalf("%s: %s", chunk.Describe(col), diff)
	}
	if err := chunk.Check(col, n); err != nil {
		t.Fatalf("check: %v", err)
	}
	if len(want) > 0 {
		if _, err := decode(nil, col, int(index(want[len(want)-1]))); !errors.Is(err, chunk.ErrDamaged) {
			t.Fatalf("a block that is too short for its side column: %v", err)
		}
	}
}

func index(entry any) uint32 {
	switch e := entry.(type) {
	case core.TextAt:
		return e.Index
	case core.DecimalAt:
		return e.Index
	case core.VersionAt:
		return e.Index
	}
	return 0
}

// columns are one column of every encoding, by name, with the number of samples of its block.
func columns() (names []string, cols [][]byte, counts []int) {
	var e chunk.Encoder
	add := func(name string, n int, col []byte) {
		names, cols, counts = append(names, name), append(cols, col), append(counts, n)
	}
	for _, k := range load {
		n := 1200
		add("values "+k.name, n, e.AppendValues(nil, k.next(rand.New(rand.NewPCG(9, 9)), n)))
	}
	for _, name := range []string{"any bits", "specials", "runs", "few words", "mostly zero", "spikes"} {
		add("values "+name, 300, e.AppendValues(nil, shapes[name](rand.New(rand.NewPCG(9, 9)), 300)))
	}
	for _, name := range []string{"regular", "gaps", "events", "jitter", "equal"} {
		add("times "+name, 300, e.AppendTimes(nil, timeShapes[name](rand.New(rand.NewPCG(9, 9)), 300)))
	}
	for _, n := range []int{40, 300} {
		texts, decimals, versions := sides(rand.New(rand.NewPCG(9, 9)), n)
		add(fmt.Sprint("texts ", n), n, e.AppendTexts(nil, texts))
		add(fmt.Sprint("decimals ", n), n, e.AppendDecimals(nil, decimals))
		add(fmt.Sprint("versions ", n), n, e.AppendVersions(nil, versions))
	}
	return names, cols, counts
}

// TestDamage cuts columns, lengthens them and changes their bytes: the answer is an error or other numbers, never a panic.
func TestDamage(t *testing.T) {
	names, cols, counts := columns()
	var d chunk.Decoder
	r := rand.New(rand.NewPCG(4, 4))
	for i, col := range cols {
		n := counts[i]
		if err := d.Check(append(bytes.Clone(col), 0), n); !errors.Is(err, chunk.ErrDamaged) {
			t.Errorf("%s with a byte more: %v", names[i], err)
		}
		for cut := 0; cut < len(col); cut += 1 + len(col)/100 {
			if err := d.Check(col[:cut:cut], n); !errors.Is(err, chunk.ErrDamaged) {
				t.Errorf("%s cut to %d of %d bytes: %v", names[i], cut, len(col), err)
			}
		}
		for range 300 {
			bad := bytes.Clone(col)
			bad[r.IntN(min(len(bad), 1+r.IntN(len(bad))))] ^= byte(1 << r.IntN(8))
			_ = d.Check(bad, n)
			_ = chunk.Describe(bad)
		}
		// What the damage left in the scratch memory may not show.
		if err := d.Check(col, n); err != nil {
			t.Errorf("%s: %v", names[i], err)
		}
	}
}

func TestTooMany(t *testing.T) {
	var e chunk.Encoder
	var d chunk.Decoder
	col := e.AppendTimes(nil, ascending(3, func() int64 { return 1 }))
	for _, n := range []int{-1, chunk.MaxSamples + 1, math.MaxInt32} {
		if _, err := d.Times(nil, col, n); !errors.Is(err, chunk.ErrDamaged) {
			t.Errorf("%d times: %v", n, err)
		}
		if _, err := d.Values(nil, col, n); !errors.Is(err, chunk.ErrDamaged) {
			t.Errorf("%d values: %v", n, err)
		}
	}
	back := e.AppendTimes(nil, []core.Time{5, 4, 9})
	if _, err := d.Times(nil, back, 3); !errors.Is(err, chunk.ErrDamaged) {
		t.Errorf("times that go back: %v", err)
	}
}

// TestNoAllocation decodes into slices that are large enough.
func TestNoAllocation(t *testing.T) {
	var e chunk.Encoder
	var d chunk.Decoder
	for _, k := range load {
		if k.name == "periodic" {
			continue // the pool of the zstd library forgets at random under the race detector
		}
		values := k.next(rand.New(rand.NewPCG(5, 5)), chunk.MaxSamples)
		col, out := e.AppendValues(nil, values), make([]float64, 0, chunk.MaxSamples)
		if got := testing.AllocsPerRun(5, func() { out, _ = d.Values(out, col, len(values)) }); got > 0 {
			t.Errorf("%s: %v allocations: %s", k.name, got, chunk.Describe(col))
		}
	}
}

func TestSummarize(t *testing.T) {
	nan := math.NaN()
	tests := []struct {
		values []float64
		want   chunk.Stats
	}{
		{nil, chunk.Stats{}},
		{[]float64{nan, nan}, chunk.Stats{Nulls: 2}},
		{[]float64{nan, 3, 1, nan, 1, 5, 5, nan}, chunk.Stats{Count: 5, Nulls: 3, Sum: 15, Min: 1, Max: 5, First: 3, Last: 5, MinIndex: 2, MaxIndex: 5, FirstIndex: 1, LastIndex: 6}},
		// In this order the sum is 0: 1e16 + 1 is 1e16. In another it would be 1.
		{[]float64{1e16, 1, -1e16}, chunk.Stats{Count: 3, Sum: 0, Min: -1e16, Max: 1e16, First: 1e16, Last: -1e16, MinIndex: 2, LastIndex: 2}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, chunk.Summarize(tt.values)); diff != "" {
			t.Errorf("Summarize(%v): %s", tt.values, diff)
		}
	}
	if s := chunk.Summarize([]float64{math.Copysign(0, -1)}); !math.Signbit(s.Sum) {
		t.Error("the sum of a negative zero is not negative")
	}
}

var rewrite = flag.Bool("rewrite", false, "write the golden bytes anew: only for an encoding that no release has written")

func seeded() *rand.Rand { return rand.New(rand.NewPCG(7, 7)) }

// golden is a column of known contents.
type golden struct {
	name  string
	n     int
	col   []byte
	check func(t *testing.T, col []byte)
}

func goldenColumns() (list []golden) {
	var e chunk.Encoder
	var d chunk.Decoder
	values := func(name string, values []float64) {
		list = append(list, golden{name, len(values), e.AppendValues(nil, values), func(t *testing.T, col []byte) {
			got, err := d.Values(nil, col, len(values))
			if err != nil {
				t.Fatal(err)
			}
			checkBits(t, values, got)
		}})
	}
	times := func(name string, times []core.Time) {
		list = append(list, golden{name, len(times), e.AppendTimes(nil, times), func(t *testing.T, col []byte) {
			if got, err := d.Times(nil, col, len(times)); err != nil || !slices.Equal(got, times) {
				t.Fatalf("the times differ: %v", err)
			}
		}})
	}
	values("no values", nil)
	values("constant decimal", []float64{12.5, 12.5, 12.5})
	values("constant double", []float64{math.Pi, math.Pi})
	values("raw", shapes["any bits"](seeded(), 4))
	values("packed", []float64{0.1, 0.7, 0.3, 1.2, 0.5})
	values("packed with patches", fill(130, func(i int) float64 { return float64(i*7919%61) + float64(i/77%2*1e6) }))
	values("specials", []float64{1, math.NaN(), 2.5, math.Copysign(0, -1), 2.5, math.Inf(1)})
	values("counter of pages", fill(20, func(i int) float64 { return float64(4096 * (i*i + i%3)) }))
	values("float32", fill(20, func(i int) float64 { return float64(float32(math.Sqrt(float64(i + 2)))) }))
	values("periodic", load[12].next(seeded(), 1200))
	for _, i := range []int{1, 2, 5, 6, 13} {
		values(load[i].name, load[i].next(seeded(), 256))
	}
	values("noise on walk", load[15].next(seeded(), 512))
	values("words", shapes["few words"](seeded(), 70))
	for _, name := range []string{"regular", "gaps", "small jitter", "negative"} {
		times(name, timeShapes[name](seeded(), 256))
	}
	times("equal times", []core.Time{5, 5, 6, 6, 6})
	texts, decimals, versions := sides(seeded(), 40)
	list = append(list,
		golden{"texts", 40, e.AppendTexts(nil, texts), func(t *testing.T, col []byte) { checkSide(t, 40, texts, col, d.Texts) }},
		golden{"decimals", 40, e.AppendDecimals(nil, decimals), func(t *testing.T, col []byte) { checkSide(t, 40, decimals, col, d.Decimals) }},
		golden{"versions", 40, e.AppendVersions(nil, versions), func(t *testing.T, col []byte) { checkSide(t, 40, versions, col, d.Versions) }})
	return list
}

// TestGolden holds the bytes of the encodings. What is in the file must decode for ever; it is also what the encoder writes today, so that a change of
// it, by an upgrade of a library for example, is noticed.
func TestGolden(t *testing.T) {
	const file = "testdata/columns.hex"
	list := goldenColumns()
	if *rewrite {
		var b strings.Builder
		b.WriteString("# name, samples, bytes\n")
		for _, g := range list {
			fmt.Fprintf(&b, "%s, %d, %x\n", g.name, g.n, g.col)
		}
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")[1:]
	if len(lines) != len(list) {
		t.Fatalf("%s holds %d columns, not %d", file, len(lines), len(list))
	}
	for i, g := range list {
		stored, err := hex.DecodeString(lines[i][strings.LastIndexByte(lines[i], ' ')+1:])
		if err != nil || !strings.HasPrefix(lines[i], fmt.Sprintf("%s, %d, ", g.name, g.n)) {
			t.Fatalf("line %d is not of %s: %v", i+2, g.name, err)
		}
		g.check(t, stored)
		if !bytes.Equal(stored, g.col) {
			t.Errorf("%s: the encoder writes other bytes:\n%x\n%x\n%s", g.name, stored, g.col, chunk.Describe(g.col))
		}
	}
}
