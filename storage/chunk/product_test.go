package chunk

import (
	"math/rand/v2"
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
