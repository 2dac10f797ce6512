package chunk_test

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/chunk"
)

// FuzzDecode gives any bytes to every decoder. They may refuse them, but not panic, and what they accept they accept again.
func FuzzDecode(f *testing.F) {
	_, cols, counts := columns()
	for i, col := range cols {
		f.Add(col, counts[i])
	}
	var d chunk.Decoder
	f.Fuzz(func(t *testing.T, col []byte, n int) {
		chunk.Describe(col)
		values, err := d.Values(nil, col, n)
		if err == nil && len(values) != n {
			t.Fatalf("%d values, not %d", len(values), n)
		}
		times, err := d.Times(nil, col, n)
		if err == nil && (len(times) != n || !slices.IsSorted(times)) {
			t.Fatalf("%d times, not %d in order", len(times), n)
		}
		for _, entries := range []func() ([]uint32, error){
			func() ([]uint32, error) { e, err := d.Texts(nil, col, n); return indexesOf(e), err },
			func() ([]uint32, error) { e, err := d.Decimals(nil, col, n); return indexesOf(e), err },
			func() ([]uint32, error) { e, err := d.Versions(nil, col, n); return indexesOf(e), err },
		} {
			at, err := entries()
			if err != nil {
				continue
			}
			for i, index := range at {
				if int64(index) >= int64(n) || i > 0 && index <= at[i-1] {
					t.Fatalf("index %d of %d samples", index, n)
				}
			}
		}
		_ = d.Check(col, n)
	})
}

func indexesOf[T any](entries []T) (at []uint32) {
	for _, e := range entries {
		at = append(at, index(e))
	}
	return at
}

// FuzzValues takes the input as doubles, repeated as often as the second number says.
func FuzzValues(f *testing.F) {
	for _, k := range load {
		var b []byte
		for _, v := range k.next(seeded(), 100) {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
		f.Add(b, uint8(3))
	}
	var e chunk.Encoder
	var d chunk.Decoder
	f.Fuzz(func(t *testing.T, b []byte, times uint8) {
		var values []float64
		for ; len(b) >= 8; b = b[8:] {
			values = append(values, math.Float64frombits(binary.LittleEndian.Uint64(b)))
		}
		values = slices.Repeat(values, int(times))
		values = values[:min(len(values), chunk.MaxSamples)]
		col := e.AppendValues(nil, values)
		got, err := d.Values(nil, col, len(values))
		if err != nil {
			t.Fatalf("%s: %v", chunk.Describe(col), err)
		}
		checkBits(t, values, got)
		if err := d.Check(col, len(values)); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzTimes takes the input as differences of times, in milliseconds and of two bytes each.
func FuzzTimes(f *testing.F) {
	f.Add([]byte{16, 39, 16, 39, 16, 39, 32, 78, 16, 39}, int64(1_700_000_000_000))
	var e chunk.Encoder
	var d chunk.Decoder
	f.Fuzz(func(t *testing.T, b []byte, start int64) {
		var times []core.Time
		at := core.Time(start) >> 1
		for ; len(b) >= 2 && len(times) < chunk.MaxSamples; b = b[2:] {
			times = append(times, at)
			at += core.Time(binary.LittleEndian.Uint16(b))
		}
		if !slices.IsSorted(times) {
			return
		}
		col := e.AppendTimes(nil, times)
		got, err := d.Times(nil, col, len(times))
		if err != nil || !slices.Equal(got, times) {
			t.Fatalf("%s: %v\n%v\n%v", chunk.Describe(col), err, times, got)
		}
	})
}

// FuzzSides cuts the input into texts, and makes the other columns of their lengths.
func FuzzSides(f *testing.F) {
	f.Add([]byte("ok,failed,ok,,a long text,ok"), uint8(2))
	var e chunk.Encoder
	var d chunk.Decoder
	f.Fuzz(func(t *testing.T, b []byte, step uint8) {
		var texts []core.TextAt
		var decimals []core.DecimalAt
		var versions []core.VersionAt
		at := uint32(0)
		for _, text := range splitAt(b, ',') {
			if at >= chunk.MaxSamples {
				break
			}
			texts = append(texts, core.TextAt{Index: at, Text: text})
			decimals = append(decimals, core.DecimalAt{Index: at, Decimal: core.Decimal{Significand: int64(len(text)) << (at & 63), Exponent: int32(step) - int32(at)}})
			versions = append(versions, core.VersionAt{Index: at, Source: text, Status: text[:len(text)/2], Written: core.Time(at) * core.Time(step)})
			at += 1 + uint32(step)*at%7
		}
		n := min(int(at)+1, chunk.MaxSamples)
		checkSide(t, n, texts, e.AppendTexts(nil, texts), d.Texts)
		checkSide(t, n, decimals, e.AppendDecimals(nil, decimals), d.Decimals)
		checkSide(t, n, versions, e.AppendVersions(nil, versions), d.Versions)
	})
}

func splitAt(b []byte, sep byte) (parts []string) {
	from := 0
	for i, c := range b {
		if c == sep {
			parts = append(parts, string(b[from:i]))
			from = i + 1
		}
	}
	return append(parts, string(b[from:]))
}
