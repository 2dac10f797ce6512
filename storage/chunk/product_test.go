package chunk

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestProducts compares products with division, where the proof says that they are equal: at both ends, and for numbers at random.
func TestProducts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for k := 1; k <= maxProductScale; k++ {
		by := reciprocalOf(k)
		check := func(i int64) {
			if got, want := by.times(i), float64(i)/powers[k]; got != want {
				t.Fatalf("%d / 10^%d: %b, not %b", i, k, got, want)
			}
		}
		for i := range int64(100_000) {
			check(i)
			check(-i)
			check(productLimit - 1 - i)
			check(-productLimit + i)
		}
		for range 500_000 {
			check(int64(r.Uint64()) >> (33 + r.IntN(30)))
		}
	}
}

// TestUnpackWidths packs and unpacks every width in every length up to three eights, with and without bytes behind.
func TestUnpackWidths(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var tail tail
	for width := uint(0); width <= 64; width++ {
		if width > maxWidth && width < 64 {
			continue
		}
		for n := range 25 {
			values := make([]uint64, n)
			for i := range values {
				values[i] = r.Uint64() >> (64 - width)
			}
			packed := appendPacked(nil, values, width)
			if len(packed) != packedLen(n, width) {
				t.Fatalf("%d values of %d bits take %d bytes, not %d", n, width, len(packed), packedLen(n, width))
			}
			for behind := range 2 {
				got := make([]int64, n)
				tail.unpack(got, append(packed[:len(packed):len(packed)], make([]byte, 100*behind)...), width)
				for i, v := range values {
					if uint64(got[i]) != v {
						t.Fatalf("value %d of %d, width %d: %x became %x", i, n, width, v, got[i])
					}
				}
			}
		}
	}
}

// TestScaleJoined compares the one pass with the two that it stands for, in lengths with and without a rest, with every number of low bits.
func TestScaleJoined(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for low := uint(1); low <= 40; low++ {
		for _, n := range []int{0, 1, 3, 4, 5, 63, 500} {
			h := header{kind: kindCoded, transform: transformDelta, first: [2]int64{r.Int64N(1000) - 500}, base: r.Int64N(2000) - 1000, unit: 1 + r.Int64N(3)}
			q, symbols := make([]int64, n), make([]byte, n)
			for i := range q {
				q[i], symbols[i] = int64(r.Uint64()>>(64-low)), byte(r.Uint32())
			}
			by := reciprocalOf(r.IntN(maxProductScale + 1))
			got, want := make([]float64, n), make([]float64, n)
			h.scaleJoined(got, q, joint{symbols, low, by})
			joinSymbols(q, symbols, low)
			x := h.first[0]
			for i, v := range q {
				if v>>low != int64(symbols[i]) {
					t.Fatalf("%d low bits: value %d is %#x and does not begin with %#x", low, i, v, symbols[i])
				}
				x += h.base + h.unit*v
				want[i] = by.times(x)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%d values of %d low bits: %v, want %v", n, low, got, want)
			}
			h.scaleSums(got, q, by)
			if !slices.Equal(got, want) {
				t.Fatalf("%d sums: %v, want %v", n, got, want)
			}
		}
	}
}
