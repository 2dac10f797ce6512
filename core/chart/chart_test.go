package chart

import (
	"bytes"
	"context"
	"errors"
	"image/color"
	"image/png"
	"math"
	"os"
	"strconv"
	"testing"
	"time"

	"gonum.org/v1/plot"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-db/tidemark/core"
)

// May 3rd 2021, 10:00 UTC.
const begin = core.Time(1620036000000)

var hour = core.Range{Start: begin, End: begin + 3_600_000}

// line makes a line of values, one a minute.
func line(label string, values ...float64) Line {
	b := NewLine(label, hour, 900)
	times := make([]core.Time, len(values))
	for i := range times {
		times[i] = begin + core.Time(i)*60_000
	}
	b.Add(times, values)
	l, _ := b.Line()
	return l
}

func wave(phase float64) []float64 {
	values := make([]float64, 60)
	for i := range values {
		values[i] = 50 + 30*math.Sin(float64(i)/9+phase)
	}
	return values
}

func sample(theme Theme, widgets int) *Page {
	p := &Page{Title: "Pumps", Width: 900, Height: 600, Theme: theme}
	for i := range widgets {
		w := Widget{Title: "Temperature", Range: hour}
		for j := range 4 {
			w.Lines = append(w.Lines, line("pump-"+strconv.Itoa(j), wave(float64(i+j))...))
		}
		p.Widgets = append(p.Widgets, w)
	}
	return p
}

// colors decodes an image and counts its pixels by colour.
func colors(t *testing.T, p *Page) map[color.NRGBA]int {
	t.Helper()
	data, err := p.PNG(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if b := img.Bounds(); b.Dx() != p.Width || b.Dy() != p.Height {
		t.Errorf("the image is %v, want %d x %d", b, p.Width, p.Height)
	}
	count := map[color.NRGBA]int{}
	for y := range p.Height {
		for x := range p.Width {
			count[color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)]++
		}
	}
	return count
}

func TestPageHasItsSizeAndTheColoursOfItsTheme(t *testing.T) {
	for name, theme := range map[string]Theme{"default": Default, "black": Black} {
		p := sample(theme, 2)
		count := colors(t, p)
		for what, c := range map[string]color.Color{"background": theme.background, "panel": theme.panel, "first line": theme.line(0), "last line": theme.line(3)} {
			if count[c.(color.NRGBA)] < 50 {
				t.Errorf("%s: only %d pixels have the colour of the %s", name, count[c.(color.NRGBA)], what)
			}
		}
		if n := count[theme.line(4).(color.NRGBA)]; n > 0 {
			t.Errorf("%s: %d pixels of a fifth line", name, n)
		}
	}
}

func TestSamePageGivesSameBytes(t *testing.T) {
	first, err := sample(Default, 3).PNG(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second, _ := sample(Default, 3).PNG(t.Context())
	if !bytes.Equal(first, second) {
		t.Error("two drawings of a page differ")
	}
}

func TestEmptyWidgetSaysSo(t *testing.T) {
	p := &Page{Width: 400, Height: 200, Theme: Default, Widgets: []Widget{{Title: "Nothing", Range: hour}}}
	with := colors(t, p)
	p.Widgets[0].Note = "metric not found"
	if cmp.Equal(with, colors(t, p)) {
		t.Error("the note is not drawn")
	}
}

// Any size and any values are drawn without a fault; a canvas that is too small for axes shows lines alone.
func TestExtremes(t *testing.T) {
	big := math.MaxFloat64
	for name, values := range map[string][]float64{
		"one":       {5},
		"flat":      {7, 7, 7},
		"zero":      {0, 0},
		"huge":      {-big, big, 0},
		"tiny":      {5e-324, 0, 1e-320},
		"close":     {1e15, 1e15 + 1},
		"infinite":  {math.Inf(1), math.Inf(-1), 3},
		"gaps":      {1, math.NaN(), 2, math.NaN(), math.NaN(), 3, 4},
		"not any":   {math.NaN()},
		"negative":  {-0.001, -0.002},
		"thousands": {12_000, 25_500},
	} {
		for _, size := range [][2]int{{64, 64}, {64, 400}, {400, 64}, {130, 110}, {900, 600}} {
			for _, count := range []int{1, 7} {
				p := &Page{Title: "T", Width: size[0], Height: size[1], Theme: Black}
				for range count {
					w := Widget{Title: "w", Range: hour}
					if l := line("l", values...); len(l.points) > 0 {
						w.Lines = []Line{l}
					}
					p.Widgets = append(p.Widgets, w)
				}
				if _, err := p.PNG(t.Context()); err != nil {
					t.Errorf("%s at %v: %v", name, size, err)
				}
			}
		}
	}
	for _, size := range [][2]int{{63, 600}, {600, 63}, {4097, 600}, {600, 4097}, {0, 0}} {
		if _, err := (&Page{Width: size[0], Height: size[1], Theme: Default}).PNG(t.Context()); err == nil {
			t.Errorf("%v is drawn", size)
		}
	}
}

// noise is a page at the bounds: each line crosses its whole chart in every pixel.
func noise(size, widgets, lines int) *Page {
	p := &Page{Title: "Noise", Width: size, Height: size, Theme: Default, Widgets: make([]Widget, widgets)}
	for i := range p.Widgets {
		p.Widgets[i].Range = hour
		for range lines {
			b := NewLine("noise", hour, p.LineWidth())
			for t := hour.Start; t < hour.End; t += 500 {
				b.Add([]core.Time{t}, []float64{float64(int64(t) * 7919 % 977)})
			}
			line, _ := b.Line()
			p.Widgets[i].Lines = append(p.Widgets[i].Lines, line)
		}
	}
	return p
}

// Drawing ends soon after its context.
func TestDrawingEnds(t *testing.T) {
	p := noise(MaxSize, 16, 100)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	begun := time.Now()
	_, err := p.PNG(ctx)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
	if took := time.Since(begun); took > 20*time.Second { // with the race detector on a busy machine; otherwise half a second
		t.Errorf("it took %v", took)
	}
}

func BenchmarkNoise(b *testing.B) {
	p := noise(900, 1, 10)
	for b.Loop() {
		if _, err := p.PNG(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func TestReductionKeepsWhatIsSeen(t *testing.T) {
	r := core.Range{Start: 0, End: 1000}
	b := NewLine("l", r, 20) // 50 ms a pixel, 100 ms a piece
	times, values := make([]core.Time, 1000), make([]float64, 1000)
	for i := range times {
		times[i], values[i] = core.Time(i), float64(i%7)
	}
	values[37], values[63] = -50, 80
	b.Add(times, values)
	l, ok := b.Line()
	if !ok || len(l.points) != 1 {
		t.Fatalf("%d runs", len(l.points))
	}
	run := l.points[0]
	if len(run) > 40 {
		t.Errorf("%d points for 20 pixels, want at most 4 for each two", len(run))
	}
	found := map[float64]float64{}
	for i, p := range run {
		found[p.X] = p.Y
		if i > 0 && p.X <= run[i-1].X {
			t.Errorf("points are not in order: %v after %v", p, run[i-1])
		}
	}
	for x, want := range map[float64]float64{0: 0, 37: -50, 63: 80, 99: 1, 100: 2, 999: 5} { // i mod 7
		if got, ok := found[x]; !ok || got != want {
			t.Errorf("at %v: %v %v, want %v", x, got, ok, want)
		}
	}
}

func TestGapsBreakTheLine(t *testing.T) {
	if l := line("l", 1, 2, math.NaN(), 3, 4); len(l.points) != 2 || len(l.points[0]) != 2 || len(l.points[1]) != 2 {
		t.Errorf("runs %v", l.points)
	}
	if b := NewLine("l", hour, 10); true {
		b.Add([]core.Time{begin - 1, hour.End}, []float64{1, 2})
		if _, ok := b.Line(); ok {
			t.Error("samples outside the range are drawn")
		}
	}
}

func labels(ticks []plot.Tick) []string {
	var texts []string
	for _, t := range ticks {
		texts = append(texts, t.Label)
	}
	return texts
}

func TestValueTicks(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      int
		labels    []string
	}{
		{0, 100, 5, []string{"0", "20", "40", "60", "80", "100"}},
		{0, 1, 5, []string{"0", "0.2", "0.4", "0.6", "0.8", "1.0"}},
		{-3, 3, 3, []string{"-2", "0", "2"}},
		{0, 50_000, 5, []string{"0", "10k", "20k", "30k", "40k", "50k"}},
		{0, 3e6, 3, []string{"0", "1M", "2M", "3M"}},
		{0, 2e-6, 2, []string{"0", "1e-06", "2e-06"}},
	} {
		if diff := cmp.Diff(c.labels, labels(valueTicks(c.low, c.high, c.want))); diff != "" {
			t.Errorf("%v to %v: %s", c.low, c.high, diff)
		}
	}
}

func TestTimeTicks(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	at := func(text string) core.Time {
		parsed, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return core.TimeOf(parsed)
	}
	for _, c := range []struct {
		from, to string
		zone     *time.Location
		want     int
		labels   []string
	}{
		{"2021-05-03T10:00:00Z", "2021-05-03T11:00:00Z", time.UTC, 6, []string{"10:00", "10:10", "10:20", "10:30", "10:40", "10:50"}},
		{"2021-05-03T20:00:00Z", "2021-05-04T08:00:00Z", berlin, 4, []string{"May 4", "03:00", "06:00", "09:00"}},
		// The clocks go forward at 2 in the morning: the ticks stay at round local times.
		{"2021-03-27T23:00:00Z", "2021-03-28T22:00:00Z", berlin, 4, []string{"Mar 28", "07:00", "13:00", "19:00"}},
		{"2021-05-01T00:00:00Z", "2021-05-05T00:00:00Z", time.UTC, 5, []string{"May 1", "May 2", "May 3", "May 4"}},
		{"2021-05-01T00:00:00Z", "2021-05-30T00:00:00Z", time.UTC, 5, []string{"May 3", "May 10", "May 17", "May 24"}}, // Mondays
		{"2020-11-01T00:00:00Z", "2021-03-01T00:00:00Z", time.UTC, 5, []string{"Nov", "Dec", "2021", "Feb"}},
		{"1990-01-01T00:00:00Z", "2020-06-01T00:00:00Z", time.UTC, 7, []string{"1990", "1995", "2000", "2005", "2010", "2015", "2020"}},
		{"2021-05-03T10:00:00Z", "2021-05-03T10:00:04Z", time.UTC, 4, []string{"10:00:00", "10:00:01", "10:00:02", "10:00:03"}},
	} {
		r := core.Range{Start: at(c.from), End: at(c.to)}
		if diff := cmp.Diff(c.labels, labels(timeTicks(r, c.zone, c.want))); diff != "" {
			t.Errorf("%s to %s: %s", c.from, c.to, diff)
		}
	}
}

func TestGridOfWidgets(t *testing.T) {
	for n, want := range map[int]int{1: 1, 2: 1, 3: 2, 4: 2, 6: 2, 9: 3, 12: 3} {
		p := &Page{Width: 900, Height: 600, Widgets: make([]Widget, n)}
		if got := p.Columns(); got != want {
			t.Errorf("%d widgets stand in %d columns, want %d", n, got, want)
		}
	}
}

// TestView writes pages to the folder that TIDEMARK_CHARTS names, to be looked at.
func TestView(t *testing.T) {
	dir := os.Getenv("TIDEMARK_CHARTS")
	if dir == "" {
		t.Skip("TIDEMARK_CHARTS is not set")
	}
	for name, p := range map[string]*Page{"one": sample(Default, 1), "black": sample(Black, 2), "six": sample(Default, 6)} {
		data, err := p.PNG(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/"+name+".png", data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
