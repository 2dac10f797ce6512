package exec

import (
	"context"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/memstore"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// tenOClock is 2024-03-04T10:00:00Z, a Monday.
const tenOClock core.Time = 1709546400000

const minute core.Time = 60_000

// instant reads hh:mm or hh:mm:ss of 2024-03-04, or a whole ISO time.
func instant(t testing.TB, text string) core.Time {
	t.Helper()
	if strings.Contains(text, "T") {
		parsed, err := dates.ParseISO(text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	clock, err := time.Parse("15:04:05", text+":00"[:3*(2-strings.Count(text, ":"))])
	if err != nil {
		t.Fatal(err)
	}
	return tenOClock + core.TimeOf(clock) - core.TimeOf(time.Date(0, 1, 1, 10, 0, 0, 0, time.UTC))
}

// readSamples reads samples such as "10:00=10 10:05=NaN'fault' 10:09='text only'"; blanks in texts are written as _.
func readSamples(t testing.TB, text string) []reading[scanned] {
	t.Helper()
	var out []reading[scanned]
	for _, word := range strings.Fields(text) {
		when, what, _ := strings.Cut(word, "=")
		number, quoted, hasText := strings.Cut(what, "'")
		r := reading[scanned]{time: instant(t, when), value: math.NaN()}
		if hasText {
			r.carried = scanned{text: strings.ReplaceAll(strings.TrimSuffix(quoted, "'"), "_", " "), hasText: true}
		}
		if number != "" {
			v, err := strconv.ParseFloat(number, 64)
			if err != nil {
				t.Fatal(err)
			}
			r.value = v
		}
		out = append(out, r)
	}
	return out
}

// readInterval reads "[10:00 10:10]" or "[10:00 10:10)"; - is an open bound.
func readInterval(t testing.TB, text string) plan.Interval {
	t.Helper()
	from, to, _ := strings.Cut(strings.Trim(text, "[])"), " ")
	in := plan.Interval{Range: core.AllTime}
	if from != "-" {
		in.Start, in.HasFrom = instant(t, from), true
	}
	if to != "-" {
		in.End, in.HasTo = instant(t, to), true
		if strings.HasSuffix(text, "]") {
			in.End++
		}
	}
	return in
}

// readInterpolate reads "4 MINUTE, PREVIOUS, INNER, TRUE, START_TIME".
func readInterpolate(t testing.TB, text string) *plan.Interpolate {
	t.Helper()
	i := &plan.Interpolate{Function: functionAuto, Boundary: boundaryInner, Zone: plan.Zone{Location: time.UTC}}
	for n, word := range strings.Split(text, ",") {
		switch word = strings.ToLower(strings.TrimSpace(word)); word {
		case "detail":
			i.Detail = true
		case "linear", "previous", "auto":
			i.Function = word
		case "inner", "outer", "full":
			i.Boundary = word
		case "true":
			i.Fill = ast.FillExtend
		case "false":
		case "start_time":
			i.Align = ast.AlignStart
		default:
			if number, ok := strings.CutPrefix(word, "value "); ok {
				i.Fill = ast.FillValue
				i.Number, _ = strconv.ParseFloat(number, 64)
				continue
			}
			step, err := dates.ParseInterval(word)
			if n > 0 || err != nil {
				t.Fatalf("interpolation %q: %v", text, err)
			}
			i.Step = step
		}
	}
	return i
}

func show[T any](p point[T], text func(T) string) string {
	return p.time.Std().Format("15:04:05")[:clockLength(p.time)] + "=" + strconv.FormatFloat(p.value, 'f', -1, 64) + text(p.carried)
}

func clockLength(t core.Time) int {
	if t%minute == 0 {
		return len("15:04")
	}
	return len("15:04:05")
}

func quotedText(s scanned) string {
	if !s.hasText {
		return ""
	}
	return "'" + strings.ReplaceAll(s.text, " ", "_") + "'"
}

// regularly runs samples through regular.
func regularly(t testing.TB, f filling, intervals []plan.Interval, samples []reading[scanned]) string {
	t.Helper()
	var out []string
	r := regular[scanned]{filling: f, yield: func(p point[scanned]) bool {
		out = append(out, show(p, quotedText))
		return true
	}}
	r.start(intervals)
	for _, s := range samples {
		r.take(s)
	}
	r.finish()
	if r.err != nil {
		t.Fatal(r.err)
	}
	return strings.Join(out, " ")
}

const (
	flowSamples = "10:00=10 10:02=14 10:05=20 10:11=8"
	stateTexts  = "10:01='idle' 10:04='run' 10:10='idle'"
)

func TestInterpolate(t *testing.T) {
	for _, c := range []struct{ name, fill, intervals, samples, want string }{
		// The worked examples of the reference.
		{"worked linear", "4 minute, linear, inner, value NaN", "[09:56 10:16]", flowSamples, "09:56=NaN 10:00=10 10:04=18 10:08=14 10:12=NaN 10:16=NaN"},
		{"worked previous extended", "4 minute, previous, inner, true", "[09:56 10:16]", flowSamples, "09:56=10 10:00=10 10:04=14 10:08=20 10:12=8 10:16=8"},
		{"worked previous", "4 minute, previous, inner, value NaN", "[09:56 10:16]", flowSamples, "09:56=NaN 10:00=10 10:04=14 10:08=20 10:12=8 10:16=NaN"},
		{"worked previous outer", "4 minute, previous, outer, value NaN", "[09:56 10:16]", flowSamples, "09:56=NaN 10:00=10 10:04=14 10:08=20 10:12=8 10:16=NaN"},
		{"worked outer between samples", "2 minute, linear, outer", "[10:06 10:10]", flowSamples, ""},
		{"worked full between samples", "2 minute, linear, full", "[10:06 10:10]", flowSamples, "10:06=18 10:08=14 10:10=10"},
		// Appendix A.
		{"A75", "5 minute", "[10:00 10:12)", flowSamples, "10:00=10 10:05=20 10:10=10"},
		{"A78", "2 minute, linear, outer", "[10:04 10:10]", flowSamples, "10:04=18 10:06=18 10:08=14 10:10=10"},
		{"A79", "3 minute, linear, outer, false, start_time", "[10:01 10:07]", flowSamples, "10:01=12 10:04=18 10:07=16"},
		{"A81", "3 minute, linear, outer, true", "[10:02 10:11]", stateTexts, "10:03=NaN'idle' 10:06=NaN'run' 10:09=NaN'run'"},
		// Rule 1: bounds, intervals.
		{"exclusive end", "5 minute", "[10:00 10:05)", flowSamples, "10:00=10"},
		{"two intervals", "1 minute", "[10:00 10:02] [10:05 10:06]", "10:00=1 10:02=3 10:05=6 10:06=7", "10:00=1 10:01=2 10:02=3 10:05=6 10:06=7"},
		{"inner stops at the interval", "1 minute", "[10:00 10:03] [10:05 10:06]", "10:00=1 10:02=3 10:05=6 10:06=7", "10:00=1 10:01=2 10:02=3 10:05=6 10:06=7"},
		{"outer between two intervals", "1 minute, linear, outer", "[10:00 10:03] [10:05 10:06]", "10:00=1 10:02=3 10:05=6 10:06=7",
			"10:00=1 10:01=2 10:02=3 10:03=4 10:05=6 10:06=7"},
		{"outer judges intervals one by one", "1 minute, linear, outer, value 0", "[10:00 10:01] [10:03 10:04] [10:06 10:07]", "10:00=1 10:07=8", "10:00=1 10:01=2 10:06=7 10:07=8"},
		{"full computes all", "1 minute, linear, full", "[10:00 10:01] [10:03 10:04] [10:06 10:07]", "10:00=1 10:07=8", "10:00=1 10:01=2 10:03=4 10:04=5 10:06=7 10:07=8"},
		// Rule 2: samples on the grid, NaN.
		{"NaN is skipped", "1 minute", "[10:00 10:02]", "10:00=1 10:01=NaN 10:02=3", "10:00=1 10:01=2 10:02=3"},
		{"NaN is skipped by previous", "1 minute, previous", "[10:00 10:02]", "10:00=1 10:01=NaN 10:02=3", "10:00=1 10:01=1 10:02=3"},
		{"only NaN", "1 minute", "[10:00 10:03]", "10:00=NaN 10:02=NaN", "10:00=NaN 10:01=NaN 10:02=NaN 10:03=NaN"},
		{"decimals", "1 minute", "[10:00 10:03]", "10:00=0.1 10:03=0.4", "10:00=0.1 10:01=0.2 10:02=0.3 10:03=0.4"},
		// Rule 3: PREVIOUS goes on for one point.
		{"previous one more off the grid", "2 minute, previous", "[10:00 10:10]", "10:01=5 10:03=7", "10:02=5 10:04=7"},
		{"previous one more on the grid", "2 minute, previous", "[10:00 10:10]", "10:02=5 10:04=7", "10:02=5 10:04=7 10:06=7"},
		{"previous one more under full", "2 minute, previous, full", "[10:00 10:10]", "10:02=5 10:04=7", "10:02=5 10:04=7 10:06=7"},
		{"previous goes on to a sample after", "2 minute, previous, outer", "[10:00 10:06]", "10:01=5 10:30=7", "10:02=5 10:04=5 10:06=5"},
		{"previous from a sample before", "2 minute, previous, outer", "[10:00 10:06]", "09:00=4 10:03=5", "10:00=4 10:02=4 10:04=5"},
		{"linear starts and ends at samples", "1 minute", "[09:00 10:10]", "10:00=1 10:02=3", "10:00=1 10:01=2 10:02=3"},
		// Rule 4: filling.
		{"value beside previous", "1 minute, previous, inner, value -1", "[09:59 10:03]", "10:00=1", "09:59=-1 10:00=1 10:01=1 10:02=-1 10:03=-1"},
		{"linear extended", "1 minute, linear, inner, true", "[09:59 10:03]", "10:00=1 10:01=2", "09:59=1 10:00=1 10:01=2 10:02=2 10:03=2"},
		{"first and last number extended", "1 minute, linear, inner, true", "[10:00 10:04]", "10:00=NaN 10:01=1 10:02=2 10:03=NaN", "10:00=1 10:01=1 10:02=2 10:03=2 10:04=2"},
		{"nothing to fill an empty interval", "1 minute, linear, inner, value 7", "[11:00 11:02]", flowSamples, ""},
		{"nothing to fill an empty interval, outer", "1 minute, previous, outer, true", "[11:00 11:02]", flowSamples, ""},
		{"full fills", "1 minute, linear, full, value 7", "[11:00 11:02]", flowSamples, "11:00=7 11:01=7 11:02=7"},
		{"full extends", "1 minute, linear, full, true", "[11:00 11:02]", flowSamples, "11:00=8 11:01=8 11:02=8"},
		{"start without a condition", "3 minute, linear, inner, false, start_time", "[- -]", "10:01=1 10:07=7", "10:01=1 10:04=4 10:07=7"},
		// Rule 5: texts.
		{"text by previous", "2 minute", "[10:00 10:08]", "10:00=1'a' 10:03=2 10:05=3'b' 10:06=4'c'", "10:00=1'a' 10:02=1.6666666666666667'a' 10:04=2.5 10:06=4'c'"},
		{"text of a sample without value", "5 minute", "[10:00 10:10]", "10:00=3 10:05=NaN'sensor_fault' 10:09=7.5", "10:00=3 10:05=5.5'sensor_fault'"},
		{"leading text", "1 minute, linear, inner, true", "[10:00 10:04]", "10:01=1'a' 10:02=2'b'", "10:00=1'a' 10:01=1'a' 10:02=2'b' 10:03=2'b' 10:04=2'b'"},
		{"text stops where previous does", "1 minute, linear, inner, value 0", "[10:00 10:04]", "10:01=1'a' 10:02=2'b'", "10:00=0 10:01=1'a' 10:02=2'b' 10:03=0'b' 10:04=0"},
		{"text only", "2 minute, linear, inner, value 0", "[10:00 10:08]", "10:01='a' 10:04='b'", "10:00=0 10:02=NaN'a' 10:04=NaN'b' 10:06=NaN'b' 10:08=0"},
		{"text only up to one after", "2 minute", "[10:00 10:10]", "10:01='a' 10:03='b'", "10:02=NaN'a' 10:04=NaN'b'"},
		// Rule 10: open bounds.
		{"no bounds", "2 minute", "[- -]", "10:01=1 10:05=5", "10:02=2 10:04=4"},
		{"no end, previous", "2 minute, previous", "[10:00 -]", "10:01=1 10:05=5", "10:02=1 10:04=1 10:06=5"},
		{"no end, previous, on the grid", "2 minute, previous", "[10:00 -]", "10:02=1 10:04=5", "10:02=1 10:04=5 10:06=5"},
		{"no start, value", "2 minute, linear, inner, value 0", "[- 10:06]", "10:01=1 10:03=3", "10:02=2 10:04=0 10:06=0"},
		{"no end, value", "2 minute, linear, inner, value 0", "[09:58 -]", "10:01=1 10:03=3", "09:58=0 10:00=0 10:02=2"},
		{"before 1970", "1 minute, linear, inner, value 0, start_time", "[1969-12-31T23:58:30Z 1970-01-01T00:01:30Z]", "1970-01-01T00:00:00Z=1 1970-01-01T00:02:00Z=3", "00:00=1 00:01=0"},
		// Alignment.
		{"calendar counts from the hour", "45 minute", "[09:50 11:00]", "09:00=0 09:50=50 11:00=120", "10:30=90"},
		{"calendar hours count from midnight", "7 hour, linear, inner, value 0", "[08:00 23:00]", "10:00=1", "14:00=0 21:00=0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			i := readInterpolate(t, c.fill)
			var intervals []plan.Interval
			for part := range strings.SplitSeq(c.intervals, " [") {
				intervals = append(intervals, readInterval(t, part))
			}
			f := fillingOf(i, i.Function == functionPrevious, time.UTC)
			if got := regularly(t, f, intervals, readSamples(t, c.samples)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// A zone of +12:45 begins its hours at :15 UTC.
func TestInterpolateZone(t *testing.T) {
	chatham, err := time.LoadLocation("Pacific/Chatham")
	if err != nil {
		t.Skip(err)
	}
	winter := instant(t, "2024-07-01T00:00:00Z") // +12:45
	f := fillingOf(readInterpolate(t, "1 hour"), false, chatham)
	got := regularly(t, f, []plan.Interval{{Range: core.Range{Start: winter, End: winter + 120*minute}, HasFrom: true, HasTo: true}},
		[]reading[scanned]{{time: winter, value: 0}, {time: winter + 120*minute - 1, value: 0}})
	if want := "00:15=0 01:15=0"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// naiveInterpolation computes the value at one point from all samples that may be read. It knows numbers only.
func naiveInterpolation(f filling, in plan.Interval, grid []core.Time, samples []reading[scanned]) []string {
	var inside, readable []reading[scanned]
	before, after := -1, -1
	for i, s := range samples {
		switch {
		case s.time < in.Start:
			before = i
		case s.time < in.End:
			inside = append(inside, s)
		case after < 0:
			after = i
		}
	}
	if f.boundary != boundaryInner && before >= 0 {
		readable = append(readable, samples[before])
	}
	readable = append(readable, inside...)
	if f.boundary != boundaryInner && after >= 0 {
		readable = append(readable, samples[after])
	}
	if len(readable) == 0 || len(inside) == 0 && f.boundary != boundaryFull {
		return nil
	}
	first, last := readable[0], readable[len(readable)-1]
	var out []string
	extra := false
	for _, g := range grid {
		v, known := 0.0, false
		for i, s := range readable {
			switch {
			case s.time == g:
				v, known = s.value, true
			case i+1 < len(readable) && s.time < g && g < readable[i+1].time:
				known = true
				if v = s.value; !f.previous {
					v = s.value + (readable[i+1].value-s.value)*float64(g-s.time)/float64(readable[i+1].time-s.time)
				}
			}
		}
		if g > last.time && !extra {
			extra = true
			if f.previous {
				v, known = last.value, true
			}
		}
		switch {
		case known:
		case f.fill == ast.FillNone:
			continue
		case f.fill == ast.FillValue:
			v = f.number
		case g < first.time:
			v = first.value
		default:
			v = last.value
		}
		out = append(out, show(point[scanned]{reading: reading[scanned]{time: g, value: math.Round(v*1e6) / 1e6}}, quotedText))
	}
	return out
}

func TestInterpolateAgreesWithNaive(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 11))
	functions, boundaries, fills := []string{"linear", "previous"}, []string{"inner", "outer", "full"}, []string{"false", "true", "value -9"}
	for range 3000 {
		step := 1 + random.IntN(7)
		text := fmt.Sprintf("%d minute, %s, %s, %s", step, functions[random.IntN(2)], boundaries[random.IntN(3)], fills[random.IntN(3)])
		f := fillingOf(readInterpolate(t, text), strings.Contains(text, "previous"), time.UTC)
		var samples []reading[scanned]
		for m := range core.Time(60) {
			if random.IntN(6) == 0 {
				samples = append(samples, reading[scanned]{time: tenOClock + m*minute, value: float64(random.IntN(100))})
			}
		}
		var intervals []plan.Interval
		for from := random.IntN(20); from < 60; {
			to := from + 1 + random.IntN(20)
			intervals = append(intervals, plan.Interval{Range: core.Range{Start: tenOClock + core.Time(from)*minute, End: tenOClock + core.Time(to)*minute}, HasFrom: true, HasTo: true})
			from = to + random.IntN(20)
		}
		var want []string
		for _, in := range intervals {
			var grid []core.Time
			for g := tenOClock; g < in.End; g += core.Time(step) * minute { // of the same hour as the interval
				if start := max(in.Start, tenOClock); g >= start && in.Start < tenOClock+60*minute {
					grid = append(grid, g)
				}
			}
			want = append(want, naiveInterpolation(f, in, grid, samples)...)
		}
		rounded := f
		var got []string
		r := regular[scanned]{filling: rounded, yield: func(p point[scanned]) bool {
			p.value = math.Round(p.value*1e6) / 1e6
			got = append(got, show(p, quotedText))
			return true
		}}
		r.start(intervals)
		for _, s := range samples {
			r.take(s)
		}
		r.finish()
		if !slices.Equal(got, want) {
			t.Fatalf("%s over %v of %v:\n%s", text, intervals, samples, cmp.Diff(want, got))
		}
	}
}

// database is a store with the data of a test, one series a line: metric entity [tag=value;...] : samples.
func database(t testing.TB, lines ...string) *memstore.Store {
	t.Helper()
	s := memstore.New()
	b := &core.Batch{Received: tenOClock}
	for _, line := range lines {
		name, samples, _ := strings.Cut(line, " : ")
		words := strings.Fields(name)
		key := core.SeriesKey{Metric: words[0], Entity: words[1]}
		for tag := range strings.SplitSeq(strings.Join(words[2:], ""), ";") {
			if k, v, ok := strings.Cut(tag, "="); ok {
				key.Tags = append(key.Tags, core.Tag{Name: k, Value: v})
			}
		}
		for _, r := range readSamples(t, samples) {
			at := uint32(b.Samples.Len())
			b.Samples.Series = append(b.Samples.Series, b.Ref(key))
			b.Samples.Times = append(b.Samples.Times, r.time)
			b.Samples.Values = append(b.Samples.Values, r.value)
			b.Samples.Flags = append(b.Samples.Flags, core.Default|core.HasValue)
			if r.carried.hasText {
				b.Samples.Texts = append(b.Samples.Texts, core.TextAt{Index: at, Text: r.carried.text})
			}
		}
	}
	if err := s.Apply(context.Background(), core.Entry{Position: 1, Batch: b}); err != nil {
		t.Fatal(err)
	}
	return s
}

// onStore is an execution over a store.
func onStore(s *memstore.Store) *execution {
	return &execution{Config: Config{Reader: s, Catalog: s, Metadata: s, Memory: NewMemory(0), Workers: 1}, env: environment(s)}
}

func blocksText(t testing.TB, blocks iter.Seq2[core.Block, error]) []string {
	t.Helper()
	var out []string
	for b, err := range blocks {
		if err != nil {
			t.Fatal(err)
		}
		texts := map[int]scanned{}
		for _, text := range b.Texts {
			texts[int(text.Index)] = scanned{text: text.Text, hasText: true}
		}
		for i, when := range b.Times {
			out = append(out, b.Key.Entity+" "+show(point[scanned]{reading: reading[scanned]{time: when, value: b.Values[i], carried: texts[i]}}, quotedText))
		}
	}
	return out
}

func TestInterpolatedScan(t *testing.T) {
	s := database(t,
		"flow pump-1 : "+flowSamples,
		"flow pump-2 : 10:00=3 10:05=NaN'sensor_fault' 10:09=7.5",
		"flow pump-3 : 09:00=1 11:00=3",
		"flow pump-4 : 10:31=9",
	)
	for _, c := range []struct {
		fill, interval string
		want           []string
	}{
		{"5 minute", "[10:00 10:12)", []string{"pump-1 10:00=10", "pump-1 10:05=20", "pump-1 10:10=10", "pump-2 10:00=3", "pump-2 10:05=5.5'sensor_fault'"}},
		{"2 minute, linear, outer", "[10:04 10:10]", []string{"pump-1 10:04=18", "pump-1 10:06=18", "pump-1 10:08=14", "pump-1 10:10=10",
			"pump-2 10:04=5", "pump-2 10:06=6'sensor_fault'", "pump-2 10:08=7'sensor_fault'"}},
		{"3 minute, linear, full", "[10:27 10:30]", []string{"pump-3 10:27=2.45", "pump-3 10:30=2.5"}},
		// A series knows nothing of the one before.
		{"1 minute, previous, full", "[10:30 10:31]", []string{"pump-1 10:30=8", "pump-2 10:30=7.5", "pump-3 10:30=1", "pump-3 10:31=1", "pump-4 10:31=9"}},
	} {
		op := &plan.Scan{Metrics: []string{"flow"}, Intervals: []plan.Interval{readInterval(t, c.interval)}, Fill: readInterpolate(t, c.fill)}
		got := blocksText(t, onStore(s).interpolated(context.Background(), core.SeriesQuery{Metric: "flow", Scope: core.Scope{All: true}}, op))
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s over %s: (-want +got)\n%s", c.fill, c.interval, diff)
		}
	}
}
