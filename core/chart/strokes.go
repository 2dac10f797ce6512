package chart

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// strokePoints is how many points are stroked at once. The rasterizer keeps the crossings of a path with a line of pixels in a list that it searches from
// its beginning: for one path with thousands of steep pieces that takes minutes, for many short paths milliseconds.
const strokePoints = 16

// strokes draws a line in short pieces.
type strokes struct {
	line  Line
	color color.Color
	stop  func() bool // asked between the pieces
}

// Plot draws the runs of the line. A run of one sample is a dot, since a line needs two.
func (s *strokes) Plot(c draw.Canvas, pl *plot.Plot) {
	x, y := pl.Transforms(&c)
	style := draw.LineStyle{Color: s.color, Width: 1.5}
	points := make([]vg.Point, 0, strokePoints)
	for _, run := range s.line.points {
		points = points[:0]
		for i, p := range run {
			points = append(points, vg.Point{X: x(p.X), Y: y(p.Y)})
			if len(points) < strokePoints && i < len(run)-1 {
				continue
			}
			if s.stop() {
				return
			}
			if len(run) == 1 {
				c.DrawGlyph(draw.GlyphStyle{Color: s.color, Radius: 2, Shape: draw.CircleGlyph{}}, points[0])
				continue
			}
			c.StrokeLines(style, points)
			points = append(points[:0], points[len(points)-1]) // the next piece begins where this one ends
		}
	}
}
