package api

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
)

// The fast way of printing a time prints what its pattern does, in zones with whole and with odd offsets, also of the past.
func TestExportTimesAreThoseOfPatterns(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, zone := range []string{"UTC", "Asia/Kolkata", "America/St_Johns", "Australia/Lord_Howe", "Africa/Monrovia"} {
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"ISO8601", "LOCALTIME_SECONDS"} {
			d, err := newExportDates(name, dates.Moment{Zone: loc})
			if err != nil {
				t.Fatal(err)
			}
			at := core.Time(0)
			for range 2000 {
				if at += core.Time(r.IntN(90_000)); r.IntN(50) == 0 {
					at = core.Time(r.Int64N(int64(core.MaxTime)))
				}
				if got := string(d.append(nil, at)); got != d.text(at) {
					t.Fatalf("%s in %s: %d is %s, want %s", name, zone, at, got, d.text(at))
				}
			}
		}
	}
}

func TestExportedNumbersAreThoseOfCells(t *testing.T) {
	s := exportSettings{precision: -1}
	for _, v := range []float64{0, 1, -1, 0.1, 1.5e300, 1 << 53, -1 << 60, 1e-9, math.NaN(), math.Inf(1), math.Copysign(0, -1), 123456789.25} {
		if got := string(s.appendNumber(nil, v)); got != s.number(v, nil) {
			t.Errorf("%s is printed as %s, want %s", strconv.FormatFloat(v, 'g', -1, 64), got, s.number(v, nil))
		}
	}
}
