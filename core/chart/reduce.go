package chart

import (
	"math"

	"gonum.org/v1/plot/plotter"

	"github.com/tidemark-db/tidemark/core"
)

// Line is one series of a chart.
type Line struct {
	Label  string
	points []plotter.XYs // runs without a gap; x is in milliseconds since the start of the range
}

// maxMagnitude is where values are cut: axes compute with differences and powers of what they show, which must stay finite.
const maxMagnitude = 1e150

// pixels is how much of the width is one piece of time to a line: about as much as the line is wide.
const pixels = 2

// NewLine makes a line of samples, ascending by time, for a chart that shows r on width pixels. Of the samples that fall on one piece of two pixels only the
// first, the last, the least and the greatest are kept: the drawing looks the same, and the samples may be forgotten. A sample that is no number breaks
// the line.
func NewLine(label string, r core.Range, width int) *LineBuilder {
	return &LineBuilder{line: Line{Label: label}, span: r, bucket: max(1, pixels*float64(r.End-r.Start)/float64(max(width, 1)))}
}

// LineBuilder collects the samples of a line.
type LineBuilder struct {
	line   Line
	span   core.Range
	bucket float64 // milliseconds of a piece
	open   bool    // the last run goes on
	at     int64   // bucket of held
	held   []plotter.XY
}

// Add appends samples, which are not older than those before. Those outside the range are left out.
func (b *LineBuilder) Add(times []core.Time, values []float64) {
	for i, t := range times {
		if !b.span.Contains(t) {
			continue
		}
		v := values[i]
		if math.IsNaN(v) {
			b.flush()
			b.open = false
			continue
		}
		x := float64(t - b.span.Start)
		if at := int64(x / b.bucket); len(b.held) > 0 && at != b.at {
			b.flush()
		}
		b.at = int64(x / b.bucket)
		b.hold(plotter.XY{X: x, Y: min(max(v, -maxMagnitude), maxMagnitude)})
	}
}

// hold keeps first, least, greatest and last of a bucket in the order of time: a new point replaces the last one unless that is needed.
func (b *LineBuilder) hold(p plotter.XY) {
	n := len(b.held)
	if n < 3 {
		b.held = append(b.held, p)
		return
	}
	least, greatest := 0, 0
	for i, q := range b.held {
		if q.Y < b.held[least].Y {
			least = i
		}
		if q.Y > b.held[greatest].Y {
			greatest = i
		}
	}
	for i := 1; i < n; i++ { // the first stays
		if i != least && i != greatest || i == least && p.Y <= b.held[least].Y || i == greatest && p.Y >= b.held[greatest].Y {
			b.held = append(append(b.held[:i], b.held[i+1:]...), p)
			return
		}
	}
	b.held = append(b.held, p)
}

func (b *LineBuilder) flush() {
	if len(b.held) == 0 {
		return
	}
	runs := &b.line.points
	if !b.open {
		*runs, b.open = append(*runs, nil), true
	}
	(*runs)[len(*runs)-1] = append((*runs)[len(*runs)-1], b.held...)
	b.held = b.held[:0]
}

// Line returns the line; ok is false when it has no point.
func (b *LineBuilder) Line() (line Line, ok bool) {
	b.flush()
	return b.line, len(b.line.points) > 0
}
