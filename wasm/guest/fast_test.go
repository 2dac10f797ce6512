package guest

import (
	"fmt"
	"math"
	"slices"
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

// cells gives the cells that ends cut text into.
func cells(text string, ends []uint32) []string {
	var out []string
	start := uint32(0)
	for _, end := range ends {
		out = append(out, text[start:end])
		start = end + 1
	}
	return out
}

func TestRowCut(t *testing.T) {
	const padding = "padding." // rows that reach into the last eight bytes are for slower code
	for _, c := range []struct {
		data        string
		want        []string
		text, size  int
		row         Row
		explanation string
	}{
		{"a,bb,,ccc\n", []string{"a", "bb", "", "ccc"}, 9, 10, Row{Delimiter: ','}, "LF"},
		{"a,bb\r\n", []string{"a", "bb"}, 4, 6, Row{Delimiter: ',', Qualifier: '"'}, "CR LF"},
		{"\n", []string{""}, 0, 1, Row{Delimiter: ','}, "empty"},
		{"1;2,0;3\n", []string{"1", "2,0", "3"}, 7, 8, Row{Delimiter: ';'}, "other delimiter"},
		{"a\tb\n", []string{"a", "b"}, 3, 4, Row{Delimiter: '\t'}, "delimiter below the blank"},
		{"ü,\x01-,.\n", []string{"ü", "\x01-", "."}, 7, 8, Row{Delimiter: ','}, "neighbours of what is looked for"},
		{"a,\"b\"\n", nil, 0, 0, Row{Delimiter: ',', Qualifier: '"'}, "qualifier"},
		{"a,\"b\n", []string{"a", "\"b"}, 4, 5, Row{Delimiter: ','}, "a quote that is no qualifier"},
		{"a,b\rc,d\n", nil, 0, 0, Row{Delimiter: ','}, "lone CR"},
		{strings.Repeat("0123456789,", 3) + "z\n", []string{"0123456789", "0123456789", "0123456789", "z"}, 34, 35, Row{Delimiter: ','}, "long"},
		{"a,b,c,d,e\n", nil, 0, 0, Row{Delimiter: ','}, "more cells than ends"},
	} {
		ends := make([]uint32, 4)
		n, text, size := c.row.Cut([]byte(c.data+padding), ends)
		if text != c.text || size != c.size {
			t.Errorf("%s: text %d, size %d; want %d, %d", c.explanation, text, size, c.text, c.size)
		} else if size > 0 && !slices.Equal(cells(c.data, ends[:n]), c.want) {
			t.Errorf("%s: cells %q, want %q", c.explanation, cells(c.data, ends[:n]), c.want)
		}
	}
}

// FuzzSplit: Split agrees with bytes.Split, wherever the buffer ends.
func FuzzSplit(f *testing.F) {
	for _, s := range []string{"", ",", "a,b", "-,-.,,+", "0123456,", "01234567,01234567", "ä,\xac,\x2d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want := strings.Split(s, ",")
		for _, slack := range []int{0, 3, 8} {
			b := append(make([]byte, 0, len(s)+slack), s...)
			for i := len(b); i < cap(b); i++ {
				b[:cap(b)][i] = ',' // what lies behind must not count
			}
			ends := make([]uint32, len(want))
			if n := Split(b[:len(s):len(s)+slack], ',', ends); n != len(want) || !slices.Equal(cells(s, ends), want) {
				t.Errorf("%q with %d bytes behind: %d cells %q", s, slack, n, cells(s, ends))
			}
			if n := Split(b, ',', nil); n != len(want) {
				t.Errorf("%q without room: %d cells, want %d", s, n, len(want))
			}
		}
	})
}

// FuzzParseDecimal: what ParseDecimal reads strconv reads too, to the last bit, and what follows the number in its buffer does not matter.
func FuzzParseDecimal(f *testing.F) {
	for _, s := range []string{"0", "-0", "1.5", "12345678", "-1234567", ".5", "5.", "-.5", "+7", ".", "-", "", "1.2.3", "1e5", "12a", "0.000001", "123456789.5",
		"999999999999999", "1_0", "0x1", "--1", "1-", "\xb0", ":", "/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want, err := strconv.ParseFloat(s, 64)
		isDecimal := err == nil && len(s) <= 15 && !strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune("0123456789.+-", r) })
		for _, behind := range []string{"", ",99999999", "99999999", ".......-"} {
			b := append([]byte(s), behind...)
			got, ok := ParseDecimal(b[:len(s)])
			if ok && (err != nil || math.Float64bits(got) != math.Float64bits(want)) {
				t.Errorf("ParseDecimal(%q) before %q = %v, strconv says %v, %v", s, behind, got, want, err)
			}
			if ok != isDecimal && len(s) <= 15 {
				t.Errorf("ParseDecimal(%q) before %q: ok is %v", s, behind, ok)
			}
		}
	})
}

// The names of a table spread: 100 hosts of one domain rarely share a slot of 256.
func TestHashSpreads(t *testing.T) {
	slots := map[uint32]bool{}
	for i := range 100 {
		slots[Hash(fmt.Appendf(nil, "host-%d", i))%256] = true
	}
	if len(slots) < 60 {
		t.Errorf("100 names take %d slots", len(slots))
	}
}
