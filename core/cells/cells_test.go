package cells

import (
	"encoding/csv"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
)

func checkNumber(t *testing.T, v float64) {
	t.Helper()
	if got, want := string(AppendNumber(nil, v)), strconv.FormatFloat(v, 'f', -1, 64); got != want {
		t.Fatalf("%b: got %s, want %s", v, got, want)
	}
}

// The short way must give what the general one gives.
func TestNumbersAreShortest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, v := range []float64{0, math.Copysign(0, -1), 0.1, 0.0001, 0.00001, 0.00005, 9.99, 10.01, 99.9999, 100.0001, 1e15, 1e15 - 0.5, 99999999999.9999,
		123456789012.3456, 1e-300, 1e300, math.SmallestNonzeroFloat64, math.MaxFloat64, 0.1 + 0.2, 1.0 / 3, 1 << 53, 1<<53 + 2, math.MaxInt64, math.MinInt64} {
		checkNumber(t, v)
		checkNumber(t, -v)
	}
	for range 50_000 {
		checkNumber(t, float64(r.Int64N(1e12))/math.Pow10(r.IntN(7)))
		checkNumber(t, -float64(r.Int64N(1e5))/math.Pow10(r.IntN(5)))
		checkNumber(t, math.Nextafter(float64(r.Int64N(1e11))/1e4, math.Inf(1)))
		if v := math.Float64frombits(r.Uint64()); v-v == 0 {
			checkNumber(t, v)
		}
	}
}

func TestIntegers(t *testing.T) {
	check := func(i int64) {
		t.Helper()
		if got, want := string(AppendInteger([]byte("x"), i)), "x"+strconv.FormatInt(i, 10); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
	check(0)
	check(math.MinInt64)
	check(math.MaxInt64)
	for power := int64(1); power < math.MaxInt64/10; power *= 10 {
		for _, i := range []int64{power - 1, power, power + 1, 9 * power, 10*power - 1} {
			check(i)
			check(-i)
		}
	}
	for shift := range 63 {
		check(1<<shift - 1)
		check(-1 << shift)
	}
}

func FuzzNumber(f *testing.F) {
	for _, v := range []float64{0, -0.25, 12.34, 1e15, 5e-324, 0.30000000000000004} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v float64) {
		if v-v == 0 { // finite
			checkNumber(t, v)
			checkNumber(t, math.Round(v*100)/100)
		}
	})
}

// zones have whole and odd offsets, half an hour of daylight saving, and a midnight that did not exist.
var zones = []string{"UTC", "Asia/Kolkata", "America/St_Johns", "Australia/Lord_Howe", "Africa/Monrovia", "America/Sao_Paulo", "Pacific/Apia"}

func loadZones(t testing.TB) (list []*time.Location) {
	t.Helper()
	for _, name := range zones {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, zone)
	}
	return list
}

var isoLetters, _ = dates.CompilePattern("yyyy-MM-dd'T'HH:mm:ss.SSSXXX")

// checkInstant compares with the pattern, which keeps nothing from one instant to the next.
func checkInstant(t *testing.T, c *Instants, at core.Time) {
	t.Helper()
	want := ">" + isoLetters.Format(at, c.zone) + "|"
	if got := string(c.Append([]byte(">"), at)); got != want {
		t.Fatalf("%d in %v: got %s, want %s", at, c.zone, got, want)
	}
}

func TestInstantsAreThoseOfPatterns(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, zone := range loadZones(t) {
		c := NewInstants(zone, "", "|")
		for range 40 {
			at := core.Time(r.Int64N(int64(core.MaxTime)))
			for range 50 {
				checkInstant(t, &c, at)
				at += core.Time(r.IntN(3_000_000)) - 500_000
			}
		}
		// Every quarter of an hour of two years, in which the clocks change.
		for at := core.Time(1_300_000_000_000); at < 1_363_000_000_000; at += 15 * 60_000 {
			checkInstant(t, &c, at)
		}
	}
}

func TestInstantsOutsideOfWhatIsStored(t *testing.T) {
	c := NewInstants(nil, `{"d":"`, `"}`)
	for at, want := range map[core.Time]string{
		0: "1970-01-01T00:00:00.000Z", -1: "1969-12-31T23:59:59.999Z", -86_400_000: "1969-12-31T00:00:00.000Z", 86_399_999: "1970-01-01T23:59:59.999Z",
		253_402_300_800_000: "10000-01-01T00:00:00.000Z", -62_167_219_200_000: "0000-01-01T00:00:00.000Z",
	} {
		if got := string(c.Append(nil, at)); got != `{"d":"`+want+`"}` {
			t.Errorf("%d is %s, want %s", at, got, want)
		}
	}
}

func FuzzInstant(f *testing.F) {
	f.Add(int64(1_620_036_000_000), int64(86_400_000), 1)
	f.Add(int64(-1), int64(1), 0)
	f.Add(int64(math.MinInt64), int64(math.MaxInt64), 3)
	all := loadZones(f)
	f.Fuzz(func(t *testing.T, at, step int64, zone int) {
		c := NewInstants(all[uint(zone)%uint(len(all))], "", "|")
		for range 3 {
			want := string(iso.Append(nil, core.Time(at), c.zone)) + "|"
			if got := string(c.Append(nil, core.Time(at))); got != want {
				t.Fatalf("%d in %v: got %s, want %s", at, c.zone, got, want)
			}
			at += step
		}
	})
}

func TestTextsAreReadBack(t *testing.T) {
	row := []string{"plain", "", "a,b", `say "hi"`, "two\nlines", `"`, "ümlaut", "a\rb"}
	var line []byte
	for i, cell := range row {
		if i > 0 {
			line = append(line, ',')
		}
		line = AppendText(line, cell)
	}
	got, err := csv.NewReader(strings.NewReader(string(line))).Read()
	if err != nil || strings.Join(got, "|") != strings.Join(row, "|") {
		t.Fatalf("%q is read as %q, %v", line, got, err)
	}
	if !strings.HasPrefix(string(line), "plain,,") {
		t.Fatalf("%q has quotes that it does not need", line)
	}
}

func BenchmarkNumber(b *testing.B) {
	values := map[string]func(int) float64{
		"two decimals": func(i int) float64 { return float64(i*7919%10_000) / 100 },
		"integers":     func(i int) float64 { return float64(i * 7919 % 100_000) },
		"doubles":      func(i int) float64 { return 1 / float64(i+3) },
	}
	for name, of := range values {
		list := make([]float64, 1024)
		for i := range list {
			list[i] = of(i)
		}
		b.Run(name, func(b *testing.B) {
			var dst []byte
			i := 0
			for b.Loop() {
				dst = AppendNumber(dst[:0], list[i&1023])
				i++
			}
		})
	}
}

func BenchmarkInstant(b *testing.B) {
	c := NewInstants(time.UTC, "", ",")
	at := core.Time(1_767_225_600_000)
	var dst []byte
	for b.Loop() {
		dst = c.Append(dst[:0], at)
		at += 10_000
	}
}
