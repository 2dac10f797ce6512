package dates_test

import (
	"errors"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
)

// ms reads a time with the standard library, so that expected values do not depend on the code under test.
func ms(t testing.TB, text string) core.Time {
	t.Helper()
	std, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return core.TimeOf(std)
}

func TestParseISO(t *testing.T) {
	tests := []struct{ text, want string }{
		{"2021-05-03T10:00:00Z", "2021-05-03T10:00:00Z"},
		{"2021-05-03T10:00:00.5Z", "2021-05-03T10:00:00.5Z"},
		{"2021-05-03T12:00:00+0200", "2021-05-03T10:00:00Z"},
		{"2021-05-03T10:00:00.000000005-01:30", "2021-05-03T11:30:00Z"},
		{"2021-05-03T10:00:00.123999999Z", "2021-05-03T10:00:00.123Z"},
		{"2021-05-03T10:00:00.Z", "2021-05-03T10:00:00Z"},
		{"2021-05-03T10:00:00+2:00", "2021-05-03T08:00:00Z"},
		{"2021-05-03T10:00:00+18:00", "2021-05-02T16:00:00Z"},
		{"1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z"},
		{"2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z"},
		{"0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"},
		{"9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"},
		{"2106-02-07T06:59:59.999Z", "2106-02-07T06:59:59.999Z"},
	}
	for _, tt := range tests {
		got, err := dates.ParseISO(tt.text)
		if err != nil || got != ms(t, tt.want) {
			t.Errorf("ParseISO(%q) = %d, %v, want %s", tt.text, got, err, tt.want)
		}
	}
	if got, _ := dates.ParseISO("2106-02-07T06:59:59.999Z"); got != 4294969199999 {
		t.Errorf("the latest storable time = %d", got)
	}
}

func TestParseISORejects(t *testing.T) {
	for _, text := range []string{
		"", "now", "2021-05-03", "2021-05-03T10:00:00", "2021-05-03T10:00Z", "2021-05-03 10:00:00Z", "2021-05-03t10:00:00Z", "2021-05-03T10:00:00z",
		"2021-05-03T10:00:00PST", "1620036000000", "2021-05-03T10:00:00+3123", "2021-05-03T10:00:00+18:01", "2021-05-03T10:00:00+02", "2021-05-03T10:00:00+200",
		"2021-05-03T10:00:00+02:60", "2021-05-03T10:00:00.1234567890Z", "2021-02-29T00:00:00Z", "2021-13-01T00:00:00Z", "2021-00-01T00:00:00Z",
		"2021-04-31T00:00:00Z", "2021-05-03T24:00:00Z", "2021-05-03T10:60:00Z", "2021-05-03T10:00:60Z", "+021-05-03T10:00:00Z", "2021-05-03T10:00:00Z ",
		"2021-05-03T10:00:00+", "2021-05-03T10:00:00+:00", "2021-05-03T10:00:00+1a:00", "2021-05-03T10:00:00,5Z", "9999-12-31T23.59.59.999Z",
	} {
		if got, err := dates.ParseISO(text); err == nil {
			t.Errorf("ParseISO(%q) = %d, want an error", text, got)
		}
	}
}

func TestISOErrorNamesSeparator(t *testing.T) {
	tests := []struct{ text, want string }{
		{"2021-05-03 10:00:00Z", "Expected 'T' character but found ' '"},
		{"1620036000000", "Expected '-' character but found '0'"},
		{"2021/05/03T10:00:00Z", "Expected '-' character but found '/'"},
		{"2021-05-03T10.00:00Z", "Expected ':' character but found '.'"},
		{"2021-05-03T10:00Z", "Expected ':' character but found 'Z'"},
		{"2021-05-03Ü10:00:00Z", "Expected 'T' character but found 'Ü'"},
		{"2021-05-03T10:00:00", `invalid ISO date "2021-05-03T10:00:00" at character 20: a zone is required: Z, +hh:mm or +hhmm up to 18:00`},
	}
	for _, tt := range tests {
		_, err := dates.ParseISO(tt.text)
		var iso *dates.ISOError
		if !errors.As(err, &iso) || err.Error() != tt.want {
			t.Errorf("ParseISO(%q): %v, want %s", tt.text, err, tt.want)
		}
	}
}

func TestFormatISO(t *testing.T) {
	for at, want := range map[core.Time]string{
		0: "1970-01-01T00:00:00.000Z", -1: "1969-12-31T23:59:59.999Z", 1620036000005: "2021-05-03T10:00:00.005Z", 4294969199999: "2106-02-07T06:59:59.999Z",
		dates.MinDate: "0000-01-01T00:00:00.000Z", dates.MaxDate: "9999-12-31T23:59:59.999Z", 9223372036854775807: "292278994-08-17T07:12:55.807Z",
	} {
		if got := dates.FormatISO(at); got != want {
			t.Errorf("FormatISO(%d) = %s, want %s", at, got, want)
		}
	}
}

func TestParseISOOrUnix(t *testing.T) {
	for text, want := range map[string]core.Time{
		"1530000000.000066": 1530000000000, "1530000000": 1530000000000, "1530000000.5": 1530000000500, "99999999999": 99999999999000,
		"100000000000": 100000000000, "1530000000123": 1530000000123, "1530000000123.9": 1530000000123, "0": 0, "2021-05-03T10:00:00Z": 1620036000000,
	} {
		if got, err := dates.ParseISOOrUnix(text); err != nil || got != want {
			t.Errorf("ParseISOOrUnix(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "12.", ".5", "1e9", "-5", "1234567890123456789", "12:30"} {
		if got, err := dates.ParseISOOrUnix(text); err == nil {
			t.Errorf("ParseISOOrUnix(%q) = %d, want an error", text, got)
		}
	}
}

func TestISODoesNotAllocate(t *testing.T) {
	var buf [32]byte
	n := testing.AllocsPerRun(100, func() {
		at, err := dates.ParseISO("2021-05-03T12:00:00.123+02:00")
		if err != nil {
			t.Fatal(err)
		}
		dates.AppendISO(buf[:0], at)
	})
	if n != 0 {
		t.Errorf("an ISO round trip allocates %v times", n)
	}
}

func FuzzParseISO(f *testing.F) {
	for _, seed := range []string{"2021-05-03T10:00:00Z", "2021-05-03T10:00:00.5+02:00", "2020-02-29T23:59:59.999999999-1800", "1620036000000", "2021-05-03T1:00:00Z"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := dates.ParseISO(text)
		if err == nil {
			again, err := dates.ParseISO(dates.FormatISO(got))
			if inRange := got >= dates.MinDate && got <= dates.MaxDate; inRange && (err != nil || again != got) {
				t.Errorf("%q: %d prints as %s, which reads as %d, %v", text, got, dates.FormatISO(got), again, err)
			}
		}
		for _, layout := range []string{"2006-01-02T15:04:05.999999999Z07:00", "2006-01-02T15:04:05.999999999Z0700"} {
			std, stdErr := time.Parse(layout, text)
			if stdErr != nil {
				continue
			}
			// The standard library also takes a comma, one-digit hours, longer fractions, offsets up to 24 hours and a 60th minute in them.
			if err != nil {
				if _, o := std.Zone(); len(text) > 30 && o == 0 || o > 18*3600 || o < -18*3600 || text[len(text)-2:] == "60" || text[13] != ':' || text[19] == ',' || len(text) > 29 {
					continue
				}
				t.Errorf("ParseISO(%q): %v, the standard library reads %v", text, err, std)
			} else if got != core.TimeOf(std) {
				t.Errorf("ParseISO(%q) = %d, the standard library reads %d", text, got, core.TimeOf(std))
			}
		}
	})
}

func BenchmarkParseISO(b *testing.B) {
	for b.Loop() {
		if _, err := dates.ParseISO("2021-05-03T10:00:00.123Z"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendISO(b *testing.B) {
	var buf [32]byte
	for b.Loop() {
		dates.AppendISO(buf[:0], 1620036000123)
	}
}
