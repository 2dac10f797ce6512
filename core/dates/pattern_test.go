package dates_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
)

func pattern(t testing.TB, text string) *dates.Pattern {
	t.Helper()
	p, err := dates.CompilePattern(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPatternFormat(t *testing.T) {
	const at = "2021-05-03T10:00:00.250Z" // a Monday, week 18, day 123
	tests := []struct{ pattern, zone, want string }{
		{"iso", "+02:00", "2021-05-03T12:00:00.250+02:00"}, {"ISO", "UTC", "2021-05-03T10:00:00.250Z"},
		{"milliseconds", "+02:00", "1620036000250"}, {"seconds", "+02:00", "1620036000.250"}, {"tivoli", "+02:00", "1210503120000250"},
		{"yyyy-MM-dd HH:mm:ss.SSS", "Europe/Berlin", "2021-05-03 12:00:00.250"}, {"yy y yyyyy", "UTC", "21 2021 02021"},
		{"M MM MMM MMMM MMMMM", "UTC", "5 05 May May M"}, {"d dd D DDD", "UTC", "3 03 123 123"},
		{"Q QQ QQQ QQQQ q", "UTC", "2 02 Q2 2nd quarter 2"}, {"Y w ww W F", "UTC", "2021 18 18 2 1"},
		{"u e ee eee eeee eeeee", "UTC", "1 2 02 Mon Monday M"}, {"E EEE EEEE EEEEE", "UTC", "Mon Mon Monday M"},
		{"a h hh K KK H k kk", "UTC", "AM 10 10 10 10 10 10 10"}, {"G GGGG GGGGG", "UTC", "AD Anno Domini A"},
		{"S SS SSSSSS A n N", "UTC", "2 25 250000 36000250 250000000 36000250000000"},
		{"VV ZZZ", "Europe/Berlin", "Europe/Berlin Europe/Berlin"}, {"z zzzz", "America/New_York", "EDT Eastern Daylight Time"}, {"z", "UTC", "UTC"},
		{"O OOOO", "+08:00", "GMT+8 GMT+08:00"}, {"O", "+05:30", "GMT+5:30"}, {"O", "UTC", "GMT"},
		{"X XX XXX XXXX XXXXX", "-08:00", "-08 -0800 -08:00 -0800 -08:00"}, {"X XXX", "UTC", "Z Z"}, {"X", "-08:30", "-0830"},
		{"x xx xxx", "UTC", "+00 +0000 +00:00"}, {"Z ZZ", "+01:00", "+0100 +01:00"}, {"Z ZZ", "UTC", "Z Z"},
		{"pppH|ppM", "UTC", " 10| 5"}, {"yyyy-MM-ddTHH:mm'Z'", "UTC", "2021-05-03T10:00Z"}, {"h 'o''clock' ''a", "UTC", "10 o'clock 'AM"},
		{"HH[:mm[:ss]]", "UTC", "10:00:00"}, {"XXXXX XXXX", "Africa/Monrovia", "Z Z"}, {"zzzz", "Asia/Kathmandu", "+0545"},
	}
	for _, tt := range tests {
		if got := pattern(t, tt.pattern).Format(ms(t, at), zone(t, tt.zone)); got != tt.want {
			t.Errorf("Format(%q) in %s = %q, want %q", tt.pattern, tt.zone, got, tt.want)
		}
	}
	midnight, afternoon := ms(t, "2024-12-30T00:15:00Z"), ms(t, "2024-12-29T12:15:00Z")
	if got := pattern(t, "h K k H a YYYY-'W'ww-e").Format(midnight, nil); got != "12 0 24 0 AM 2025-W01-2" {
		t.Errorf("at midnight: %q", got)
	}
	if got := pattern(t, "h K k H a YYYY-'W'ww-u").Format(afternoon, nil); got != "12 0 12 12 PM 2024-W52-7" {
		t.Errorf("after noon: %q", got)
	}
	// Monrovia kept 44 minutes and 30 seconds until 1972.
	if got := pattern(t, "X XX XXX XXXX XXXXX").Format(0, zone(t, "Africa/Monrovia")); got != "-0044 -0044 -00:44 -004430 -00:44:30" {
		t.Errorf("offset with seconds: %q", got)
	}
	if got := pattern(t, "G yyyy").Format(dates.MinDate, nil); got != "BC 0001" {
		t.Errorf("the year 0 = %q", got)
	}
	if got := pattern(t, "dd.MM").String(); got != "dd.MM" {
		t.Errorf("String() = %q", got)
	}
	if got := pattern(t, "yyyy-MM-dd HH:mm z").Format(1709546400000, zone(t, "America/New_York")); got != "2024-03-04 05:00 EST" {
		t.Errorf("documented example: %q", got)
	}
}

// Every letter without a meaning is refused, with its place in characters.
func TestPatternFaults(t *testing.T) {
	for letter := 'A'; letter <= 'z'; letter++ {
		known := strings.ContainsRune("GyYDMdQqwWFueEahKHkmsSAnNVzOXxZpT", letter)
		if known || letter > 'Z' && letter < 'a' {
			continue
		}
		if _, err := dates.CompilePattern("yyyy" + string(letter)); err == nil {
			t.Errorf("letter %c: no error", letter)
		}
	}
	for pattern, want := range map[string]string{
		"yyyy-MM-ddb HH":      `date pattern "yyyy-MM-ddb HH" at character 11: letter b has no meaning here: quote it if it is text`,
		"J":                   `date pattern "J" at character 1: letter J has no meaning here: quote it if it is text`,
		"yyyy年MM月LLL":         `date pattern "yyyy年MM月LLL" at character 9: letter L has no meaning here: quote it if it is text`,
		"HH[:mm[:tt]]":        `date pattern "HH[:mm[:tt]]" at character 9: letter t has no meaning here: quote it if it is text`,
		"ddd":                 `date pattern "ddd" at character 1: letter d repeated 3 times has no meaning`,
		"HH:ppj":              `date pattern "HH:ppj" at character 6: letter j has no meaning here: quote it if it is text`,
		"HH pp":               `date pattern "HH pp" at character 4: p pads a field, but none follows`,
		"yyyy 'at":            `date pattern "yyyy 'at" at character 6: quote without end`,
		"yyyy[-MM":            `date pattern "yyyy[-MM" at character 5: [ without ]`,
		"yyyy]":               `date pattern "yyyy]" at character 5: ] without [`,
		"yyyy-MM-dd'T'HH V":   `date pattern "yyyy-MM-dd'T'HH V" at character 17: letter V repeated 1 times has no meaning`,
		"yyyy-MM-dd 'of' OOO": `date pattern "yyyy-MM-dd 'of' OOO" at character 17: letter O repeated 3 times has no meaning`,
	} {
		if _, err := dates.CompilePattern(pattern); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", pattern, err, want)
		}
	}
}

func TestPatternParse(t *testing.T) {
	tests := []struct{ pattern, text, zone, want string }{
		{"dd.MM.yyyy HH:mm", "04.03.2024 10:00", "UTC", "2024-03-04T10:00:00Z"}, {"yyyy", "2023", "UTC", "2023-01-01T00:00:00Z"},
		{"yyyyMM", "202105", "UTC", "2021-05-01T00:00:00Z"}, {"yyyyMMdd:HHmm", "20160101:0010", "-07:00", "2016-01-01T07:10:00Z"},
		{"yyyyMMddHHmmssSSS", "20210503100000250", "UTC", "2021-05-03T10:00:00.25Z"}, {"yyyy-MM-ddHH:mm", "2021-05-0310:00", "UTC", "2021-05-03T10:00:00Z"},
		{"MM/dd/yyyy hh:mm:ss a", "08/30/2013 08:00:00 PM", "UTC", "2013-08-30T20:00:00Z"}, {"d/M/yy h a", "3/5/21 12 am", "UTC", "2021-05-03T00:00:00Z"},
		{"EEE, d MMM yyyy HH:mm:ss Z", "mon, 3 MAY 2021 10:00:00 +0200", "UTC", "2021-05-03T08:00:00Z"}, {"d MMMM yyyy", "3 december 2021", "UTC", "2021-12-03T00:00:00Z"},
		{"yyyy-MM-dd'T'HH:mm:ss[.SSS]X", "2021-05-03T10:00:00Z", "Europe/Berlin", "2021-05-03T10:00:00Z"},
		{"yyyy-MM-dd'T'HH:mm:ss[.SSS]X", "2021-05-03T10:00:00.5-01", "UTC", ""},
		{"yyyy-MM-dd'T'HH:mm:ss[.SSS]X", "2021-05-03T10:00:00.500-01", "UTC", "2021-05-03T11:00:00.5Z"},
		{"yyyy-MM-dd[ HH:mm[:ss]]", "2021-05-03", "Europe/Berlin", "2021-05-02T22:00:00Z"}, {"yyyy-MM-dd[ HH:mm[:ss]]", "2021-05-03 10:00:07", "UTC", "2021-05-03T10:00:07Z"},
		{"yyyy-MM-dd HH:mm VV", "2021-05-03 10:00 Europe/Berlin", "UTC", "2021-05-03T08:00:00Z"}, {"yyyy-MM-dd HH:mm z", "2021-05-03 10:00 PST", "UTC", "2021-05-03T18:00:00Z"},
		{"yyyy-MM-dd HH:mm zzzz", "2021-05-03 10:00 Eastern Daylight Time", "UTC", "2021-05-03T14:00:00Z"},
		{"yyyy-MM-dd HH:mm O", "2021-05-03 10:00 GMT+8", "UTC", "2021-05-03T02:00:00Z"}, {"yyyy-MM-dd HH:mmOOOO", "2021-05-03 10:00GMT", "UTC", "2021-05-03T10:00:00Z"},
		{"yyyy-DDD", "2024-366", "UTC", "2024-12-31T00:00:00Z"}, {"yyyy-DDD", "2023-366", "UTC", ""}, {"YYYY-'W'ww-u", "2025-W01-1", "UTC", "2024-12-30T00:00:00Z"},
		{"yyyy QQQ", "2021 Q3", "UTC", "2021-07-01T00:00:00Z"}, {"yyyy QQQQ", "2021 2nd quarter", "UTC", "2021-04-01T00:00:00Z"}, {"G y", "BC 1", "UTC", "0000-01-01T00:00:00Z"},
		{"HH:mm", "10:30", "UTC", "1970-01-01T10:30:00Z"}, {"yyyy-MM-dd kk", "2021-05-03 24", "UTC", "2021-05-03T00:00:00Z"}, {"pppd", "  3", "UTC", "1970-01-03T00:00:00Z"},
		{"yyyy-MM-dd A", "2021-05-03 36000250", "UTC", "2021-05-03T10:00:00.25Z"}, {"yyyy-MM-dd N", "2021-05-03 1000000", "UTC", "2021-05-03T00:00:00.001Z"},
		{"iso", "2021-05-03T12:00:00.250+02:00", "UTC", "2021-05-03T10:00:00.25Z"}, {"milliseconds", "1620036000250", "UTC", "2021-05-03T10:00:00.25Z"},
		{"seconds", "1620036000.250", "UTC", "2021-05-03T10:00:00.25Z"}, {"seconds", "1620036000", "UTC", "2021-05-03T10:00:00Z"}, {"seconds", "-0.25", "UTC", "1969-12-31T23:59:59.75Z"},
		{"Tivoli", "1210503120000250", "+02:00", "2021-05-03T10:00:00.25Z"},

		{"yyyy-MM-dd", "2021-5-03", "UTC", ""}, {"yyyy-MM-dd", "2021-05-03 ", "UTC", ""}, {"yyyy-MM-dd", "2021-02-29", "UTC", ""}, {"HH", "24", "UTC", ""},
		{"yyyy-MM-dd", "2021-13-01", "UTC", ""}, {"EEE yyyy-MM-dd", "Tue 2021-05-03", "UTC", ""}, {"HH a", "11 PM", "UTC", ""}, {"VV", "PST9", "UTC", ""},
		{"milliseconds", "1.6e12", "UTC", ""}, {"seconds", "now", "UTC", ""}, {"iso", "2021-05-03", "UTC", ""}, {"X", "+19", "UTC", ""}, {"MMM", "Foo", "UTC", ""},
	}
	for _, tt := range tests {
		got, err := pattern(t, tt.pattern).Parse(tt.text, zone(t, tt.zone))
		if tt.want == "" {
			if err == nil {
				t.Errorf("Parse(%q, %q) = %s, want an error", tt.pattern, tt.text, dates.FormatISO(got))
			}
		} else if err != nil || got != ms(t, tt.want) {
			t.Errorf("Parse(%q, %q) in %s = %s, %v, want %s", tt.pattern, tt.text, tt.zone, dates.FormatISO(got), err, tt.want)
		}
	}
}

func TestPatternParseLenient(t *testing.T) {
	tests := []struct{ pattern, text, want string }{
		{"yyyy-MM-dd", "2021-5-3", "2021-05-03T00:00:00Z"}, {"dd/MM/yyyy-HH.mm.ss", "10/03/2004-8.00.00", "2004-03-10T08:00:00Z"},
		{"yyyy-MM-dd", "2021-05-03 and more", "2021-05-03T00:00:00Z"}, {"MM/dd/yyyy HH:mm:ss a", "05/26/2016 01:00:00 PM", "2016-05-26T13:00:00Z"},
		{"MM/dd/yyyy HH:mm:ss a", "05/26/2016 12:30:00 AM", "2016-05-26T00:30:00Z"}, {"HH:mm a", "17:30 PM", "1970-01-01T17:30:00Z"},
		{"HH:mm:ss.SSSX", "10:00:00.123456+01:00", "1970-01-01T09:00:00.123Z"}, {"HH:mm:ss.SSS", "10:00:00.5", "1970-01-01T10:00:00.5Z"},
		{"yyyyMMdd", "20210503", "2021-05-03T00:00:00Z"}, {"yyyyMMdd", "2021053", ""}, {"yyyy-MM-dd HH:mm", "2021-05-03", ""}, {"yyyy", "21", ""}, {"yyyy", "", ""},
		{"iso", "2021-05-03 10:00", "2021-05-03T10:00:00Z"}, {"iso", "2021-05-03T10:00:00+02:00", "2021-05-03T08:00:00Z"},
	}
	for _, tt := range tests {
		got, err := pattern(t, tt.pattern).ParseLenient(tt.text, nil)
		if tt.want == "" {
			if err == nil {
				t.Errorf("ParseLenient(%q, %q) = %s, want an error", tt.pattern, tt.text, dates.FormatISO(got))
			}
		} else if err != nil || got != ms(t, tt.want) {
			t.Errorf("ParseLenient(%q, %q) = %s, %v, want %s", tt.pattern, tt.text, dates.FormatISO(got), err, tt.want)
		}
	}
}

func TestPatternParseIn(t *testing.T) {
	const layout = "yyyy-MM-dd HH:mm:ss ZZ"
	berlin := zone(t, "Europe/Berlin")
	for _, tt := range []struct {
		pattern, text string
		ok            bool
	}{
		{layout, "2021-05-03 10:00:00 +02:00", true}, {layout, "2021-05-03 10:00:00 +01:00", false}, {"yyyy-MM-dd", "2021-05-03", true},
		{layout, "2021-10-31 02:30:00 +01:00", true}, {layout, "2021-10-31 02:30:00 +02:00", true}, // the hour that occurs twice
		{"yyyy-MM-dd HH:mm", "2021-03-28 02:30", true}, // the hour that does not exist, without a zone of its own
		{"iso", "2021-05-03T10:00:00+02:00", true}, {"iso", "2021-05-03T10:00:00-08:00", false}, {"iso", "2021-05-03T10:00:00Z", false},
		{"yyyy-MM-dd VV", "2021-05-03 Europe/Paris", true}, {"yyyy-MM-dd VV", "2021-05-03 Asia/Tokyo", false},
	} {
		if got, err := pattern(t, tt.pattern).ParseIn(tt.text, berlin); (err == nil) != tt.ok {
			t.Errorf("ParseIn(%q, %q) = %d, %v, want success %v", tt.pattern, tt.text, got, err, tt.ok)
		}
	}
}

func TestPatternErrors(t *testing.T) {
	for _, text := range []string{"", "yyyy-MM-dd b", "yyyy[MM", "yyyy]MM", "'open", "uuuu", "V", "VVV", "OO", "XXXXXX", "pp", "pp-", "ppp'x'", "L", strings.Repeat("[", 20) + strings.Repeat("]", 20),
		strings.Repeat("-", 600)} {
		if _, err := dates.CompilePattern(text); err == nil {
			t.Errorf("CompilePattern(%q) succeeded", text)
		}
	}
	_, err := pattern(t, "yyyy-MM-dd").Parse("2021-05/03", nil)
	var bad *dates.PatternError
	if !errors.As(err, &bad) || err.Error() != `date "2021-05/03" does not fit pattern "yyyy-MM-dd" at character 8: another text is due here` {
		t.Errorf("error = %v", err)
	}
	for text, want := range map[string]bool{"yyyy": false, "yyyy X": true, "[VV]": true, "iso": true, "seconds": true, "tivoli": false, "'X'": false} {
		if got := pattern(t, text).HasZone(); got != want {
			t.Errorf("HasZone(%q) = %v", text, got)
		}
	}
}

func TestPatternDoesNotAllocate(t *testing.T) {
	p, z := pattern(t, "dd.MM.yyyy HH:mm:ss[.SSS]"), zone(t, "Europe/Berlin")
	n := testing.AllocsPerRun(100, func() {
		if _, err := p.ParseLenient("3.5.2021 10:00:00", z); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("Parse allocates %v times", n)
	}
}

func FuzzPattern(f *testing.F) {
	for _, seed := range [][2]string{{"yyyy-MM-dd HH:mm:ss.SSS", "2021-05-03 10:00:00.250"}, {"[[d]M]y", "3"}, {"pppH'x''y'", " 10x'y"}, {"iso", "2021-05-03T10:00:00Z"}, {"yyyyMd", "2021123"},
		{"EEEE zzzz VV O", "Monday UTC UTC GMT"}, {"seconds", "12.5"}} {
		f.Add(seed[0], seed[1], int64(1620036000250))
	}
	f.Fuzz(func(t *testing.T, layout, text string, at int64) {
		p, err := dates.CompilePattern(layout)
		if err != nil {
			return
		}
		p.Format(core.Time(at), nil)
		p.ParseLenient(text, time.UTC)
		p.ParseIn(text, time.UTC)
		// A full local pattern beside the fuzzed one: what is printed reads back as the same instant.
		instant := min(max(core.Time(at), core.MinTime), core.MaxTime)
		full := pattern(t, "yyyyMMddHHmmssSSS X")
		if got, err := full.Parse(full.Format(instant, time.UTC), nil); err != nil || got != instant {
			t.Errorf("round trip of %d = %d, %v", instant, got, err)
		}
	})
}

func BenchmarkPatternParse(b *testing.B) {
	p, z := pattern(b, "yyyy-MM-dd HH:mm:ss"), zone(b, "Europe/Berlin")
	for b.Loop() {
		if _, err := p.ParseLenient("2021-05-03 10:00:00", z); err != nil {
			b.Fatal(err)
		}
	}
}
