package guest

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Every way to cut a text into chunks gives the same lines.
func TestLinesDoNotDependOnChunks(t *testing.T) {
	const text = "a,b\r\n\nlong line here\nlast"
	want := []string{"a,b", "", "long line here", "last"}
	for size := 1; size <= len(text); size++ {
		var l Lines
		var got []string
		for at := 0; at < len(text); at += size {
			end := min(at+size, len(text))
			for line := range l.Each([]byte(text[at:end]), end == len(text)) {
				got = append(got, string(line))
				if l.Number() != len(got) {
					t.Errorf("size %d: line %q has number %d", size, line, l.Number())
				}
			}
		}
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("chunks of %d: %q, want %q", size, got, want)
		}
	}
}

func TestParseFloatIsStrconv(t *testing.T) {
	for _, s := range []string{"0", "-0", "1", "-1.5", "+2.25", ".5", "5.", "0.1", "123456789012345", "1234567890123456", "0.000000000000001",
		"99999999999999.9", "1e3", "NaN", "-Inf", "1e400", "", "-", ".", "1..2", "1,5", " 1", "0x10", "1_000"} {
		want, err := strconv.ParseFloat(s, 64)
		got, ok := ParseFloat([]byte(s))
		if ok != (err == nil) || ok && math.Float64bits(got) != math.Float64bits(want) && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("%q: %v, %v; want %v, %v", s, got, ok, want, err)
		}
	}
}

func TestParseTime(t *testing.T) {
	for s, want := range map[string]int64{
		"0":                              0,
		"1767323045678":                  1767323045678,
		"1970-01-01T00:00:00Z":           0,
		"2026-01-02T03:04:05.678Z":       (20455*86400+3*3600+4*60+5)*1000 + 678,
		"2026-01-02 03:04:05Z":           (20455*86400 + 3*3600 + 4*60 + 5) * 1000,
		"2026-01-02T03:04:05.678912345Z": (20455*86400+3*3600+4*60+5)*1000 + 678,
		"2026-01-02T05:34:05+02:30":      (20455*86400 + 3*3600 + 4*60 + 5) * 1000,
		"2026-01-01T22:04:05.5-0500":     (20455*86400+3*3600+4*60+5)*1000 + 500,
		"2000-02-29T00:00:00Z":           11016 * 86400 * 1000,
	} {
		if got, ok := ParseTime([]byte(s)); !ok || got != want {
			t.Errorf("%q: %d, %v; want %d", s, got, ok, want)
		}
	}
	for _, s := range []string{"", "-5", "12a", "12345678901234567", "2026-01-02T03:04:05", "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z",
		"2026-01-02T24:00:00Z", "2026-01-02T03:04:05.Z", "2026-01-02T03:04:05+2:30", "2026-01-02T03:04:05Zx", "2026-1-02T03:04:05.00Z"} {
		if got, ok := ParseTime([]byte(s)); ok {
			t.Errorf("%q is accepted as %d", s, got)
		}
	}
}

func FuzzParseFloat(f *testing.F) {
	for _, s := range []string{"1.5", "-0.000001", "999999999999999", "1e10"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want, err := strconv.ParseFloat(s, 64)
		got, ok := ParseFloat([]byte(s))
		if ok != (err == nil) || ok && math.Float64bits(got) != math.Float64bits(want) && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("%q: %v, %v; want %v, %v", s, got, ok, want, err)
		}
	})
}

// FuzzParseTime: whatever both understand means the same instant.
func FuzzParseTime(f *testing.F) {
	f.Add("2026-01-02T03:04:05.678Z")
	f.Add("2024-02-29T23:59:59+14:00")
	f.Add("1767323045678")
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := ParseTime([]byte(s))
		want, err := time.Parse(time.RFC3339Nano, s)
		if ok && err == nil && got != want.UnixMilli() {
			t.Errorf("%q: %d, want %d", s, got, want.UnixMilli())
		}
	})
}
