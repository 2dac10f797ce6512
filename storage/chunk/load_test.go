package chunk_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/storage/chunk"
)

// kind is one kind of series of the load. Scale is the power of ten of its decimals, -1 for doubles that are none.
type kind struct {
	name  string
	scale int
	next  func(r *rand.Rand, n int) []float64
}

func round2(v float64) float64 { return math.Round(v*100) / 100 }

// load is what monitoring sends, and what else a column may hold.
var load = []kind{
	{"gauge walk", 2, func(r *rand.Rand, n int) []float64 {
		x := 50.0
		return fill(n, func(int) float64 { x = min(max(x+r.NormFloat64()*0.3, 0), 100); return round2(x) })
	}},
	{"fine walk", 2, func(r *rand.Rand, n int) []float64 {
		x := 20.0
		return fill(n, func(int) float64 { x += r.NormFloat64() * 0.02; return round2(x) })
	}},
	{"noisy", 2, func(r *rand.Rand, n int) []float64 {
		return fill(n, func(int) float64 { return round2(40 + 3*r.NormFloat64()) })
	}},
	{"counter", 0, func(r *rand.Rand, n int) []float64 {
		x := float64(r.IntN(1e6))
		return fill(n, func(int) float64 { x += math.Round(200 + 15*r.NormFloat64()); return x })
	}},
	{"bursty counter", 0, func(r *rand.Rand, n int) []float64 {
		x := 0.0
		return fill(n, func(i int) float64 {
			if i/600%3 == 1 {
				x += float64(r.IntN(5000))
			} else {
				x += float64(r.IntN(3))
			}
			return x
		})
	}},
	{"sparse", 0, func(r *rand.Rand, n int) []float64 {
		return fill(n, func(int) float64 {
			if r.IntN(50) == 0 {
				return float64(1 + r.IntN(20))
			}
			return 0
		})
	}},
	{"state", 0, func(r *rand.Rand, n int) []float64 {
		x := 1.0
		return fill(n, func(int) float64 {
			if r.IntN(200) == 0 {
				x = float64(r.IntN(5))
			}
			return x
		})
	}},
	{"constant", 2, func(r *rand.Rand, n int) []float64 { return fill(n, func(int) float64 { return 12.5 }) }},
	{"uniform", 1, func(r *rand.Rand, n int) []float64 {
		return fill(n, func(int) float64 { return float64(r.IntN(1000)) / 10 })
	}},
	{"pages", 0, func(r *rand.Rand, n int) []float64 {
		x := 1 << 30
		return fill(n, func(int) float64 { x += 4096 * (r.IntN(64) - 32); return float64(x) })
	}},
	{"doubles", -1, func(r *rand.Rand, n int) []float64 {
		x := 50.0
		return fill(n, func(int) float64 { x += r.NormFloat64() * 0.1; return x })
	}},
	{"float32", -1, func(r *rand.Rand, n int) []float64 {
		x := 50.0
		return fill(n, func(int) float64 { x += r.NormFloat64() * 0.1; return float64(float32(x)) })
	}},
	{"periodic", 2, func(r *rand.Rand, n int) []float64 {
		wave := fill(60, func(int) float64 { return round2(100 * r.Float64()) })
		return fill(n, func(i int) float64 { return wave[i%60] })
	}},
	{"codes", 0, func(r *rand.Rand, n int) []float64 {
		codes := []float64{200, 200, 200, 200, 200, 304, 404, 500}
		return fill(n, func(int) float64 { return codes[r.IntN(len(codes))] })
	}},
	{"with gaps", 2, func(r *rand.Rand, n int) []float64 {
		x := 50.0
		return fill(n, func(int) float64 {
			x += r.NormFloat64() * 0.1
			if r.IntN(40) == 0 {
				return math.NaN()
			}
			return round2(x)
		})
	}},
	{"noise on walk", 2, func(r *rand.Rand, n int) []float64 {
		x := 50.0
		return fill(n, func(int) float64 { x += r.NormFloat64() * 0.05; return round2(x + 0.2*r.NormFloat64()) })
	}},
	{"outliers", 1, func(r *rand.Rand, n int) []float64 {
		return fill(n, func(int) float64 {
			if r.IntN(300) == 0 {
				return math.Round(r.ExpFloat64() * 1e6)
			}
			return math.Round(r.ExpFloat64()*50) / 10
		})
	}},
}

func fill(n int, f func(i int) float64) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = f(i)
	}
	return v
}

// entropy is that of the decimals or of their differences, whichever is less, in bytes a sample: what a coder without memory could reach if it
// knew the distribution beforehand. It is 0 for doubles, of which no value comes twice.
func entropy(values []float64, scale int) float64 {
	if scale < 0 {
		return 0
	}
	p := math.Pow10(scale)
	direct, delta, last := map[float64]float64{}, map[float64]float64{}, 0.0
	for _, v := range values {
		x := math.Round(v * p)
		if math.IsNaN(v) {
			x = 0
		}
		direct[x]++
		delta[x-last]++
		last = x
	}
	return min(bits(direct), bits(delta)) / 8
}

func bits(count map[float64]float64) float64 {
	total, sum := 0.0, 0.0
	for _, c := range count {
		total += c
	}
	for _, c := range count {
		sum += c * math.Log2(total/c)
	}
	return sum / total
}

// host is the kinds of the ten metrics of a host.
var host = []string{"gauge walk", "gauge walk", "gauge walk", "gauge walk", "noisy", "noisy", "counter", "counter", "counter", "sparse"}

// TestLoad prints the sizes of a load with a fixed seed beside its entropy, and holds those of a host of ten metrics against it.
func TestLoad(t *testing.T) {
	const hosts, n = 4, 8640 // a day of one sample in ten seconds: a full block and a small one
	each, floor := map[string]float64{}, map[string]float64{}
	for i, k := range load {
		for h := range hosts {
			values := k.next(rand.New(rand.NewPCG(uint64(h), uint64(i))), n)
			floor[k.name] += entropy(values, k.scale) / hosts
			each[k.name] += sizeOf(t, values) / hosts
		}
		t.Logf("%-15s %6.3f bytes/sample, entropy %6.3f", k.name, each[k.name], floor[k.name])
	}
	total, least := 0.0, 0.0
	for _, name := range host {
		total += each[name] / float64(len(host))
		least += floor[name] / float64(len(host))
	}
	t.Logf("a host: %.3f bytes/sample, entropy %.3f", total, least)
	if limit := 1.03; total > limit*least {
		t.Errorf("a host takes %.3f bytes/sample, more than %v times its entropy of %.3f", total, limit, least)
	}
}

// sizeOf returns how many bytes a sample takes in blocks, times included.
func sizeOf(t *testing.T, values []float64) float64 {
	t.Helper()
	var e chunk.Encoder
	var d chunk.Decoder
	size := 0
	for part := range slices.Chunk(values, chunk.MaxSamples) {
		col := e.AppendValues(nil, part)
		got, err := d.Values(nil, col, len(part))
		if err != nil {
			t.Fatal(err)
		}
		checkBits(t, part, got)
		size += len(col) + len(e.AppendTimes(nil, ascending(len(part), func() int64 { return 10_000 })))
	}
	return float64(size) / float64(len(values))
}

func checkBits(t *testing.T, want, got []float64) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("%d values became %d", len(want), len(got))
	}
	for i, v := range want {
		if math.Float64bits(v) != math.Float64bits(got[i]) {
			t.Fatalf("value %d: %v (%x) became %v (%x)", i, v, math.Float64bits(v), got[i], math.Float64bits(got[i]))
		}
	}
}

// BenchmarkValues reports the best turn beside the mean: it says what the code can do where others load the machine.
func BenchmarkValues(b *testing.B) {
	for i, k := range load {
		values := k.next(rand.New(rand.NewPCG(0, uint64(i))), chunk.MaxSamples)
		var e chunk.Encoder
		var d chunk.Decoder
		col := e.AppendValues(nil, values)
		out := make([]float64, len(values))
		run := func(name string, turn func()) {
			b.Run(name+"/"+k.name, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(8 * len(values)))
				best := time.Hour
				for b.Loop() {
					start := time.Now()
					turn()
					best = min(best, time.Since(start))
				}
				b.ReportMetric(float64(len(values))/best.Seconds()/1e6, "best-Mvalues/s")
				b.ReportMetric(float64(len(col))/float64(len(values)), "bytes/sample")
			})
		}
		run("encode", func() { col = e.AppendValues(col[:0], values) })
		run("decode", func() { out, _ = d.Values(out, col, len(values)) })
	}
}

func BenchmarkTimes(b *testing.B) {
	for name, shape := range timeShapes {
		times := shape(seeded(), chunk.MaxSamples)
		var e chunk.Encoder
		var d chunk.Decoder
		col := e.AppendTimes(nil, times)
		b.Run("decode/"+name, func(b *testing.B) {
			best := time.Hour
			for b.Loop() {
				start := time.Now()
				times, _ = d.Times(times, col, len(times))
				best = min(best, time.Since(start))
			}
			b.ReportMetric(float64(len(times))/best.Seconds()/1e6, "best-Mtimes/s")
			b.ReportMetric(float64(len(col))/float64(len(times)), "bytes/sample")
		})
	}
}
