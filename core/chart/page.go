package chart

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/tidemark-db/tidemark/core"
)

// Bounds of a page in pixels. An image takes 4 bytes a pixel while it is drawn: at most 64 MiB.
const (
	MinSize = 64
	MaxSize = 4096
)

// dpi makes one point of the plotting library one pixel.
const dpi = 72

// Page is what one image shows. Widgets fill a grid, line by line.
type Page struct {
	Title         string
	Width, Height int // pixels, MinSize to MaxSize
	Theme         Theme
	Zone          *time.Location // of the dates on the axes
	Widgets       []Widget
}

// Widget is one chart.
type Widget struct {
	Title string
	Range core.Range // of the time axis; not empty
	Lines []Line
	Note  string // stands below the legend; where there are no lines, in their place
}

// Columns is in how many columns n widgets stand on a page: as many as bring them closest to twice as wide as high, the shape in which a line over
// time reads best.
func (p *Page) Columns() int {
	best, least := 1, math.Inf(1)
	n := len(p.Widgets)
	for columns := 1; columns <= n; columns++ {
		rows := (n + columns - 1) / columns
		ratio := float64(p.Width) / float64(columns) / (float64(p.Height) / float64(rows))
		if off := math.Abs(math.Log(ratio / 2)); off < least-1e-9 {
			best, least = columns, off
		}
	}
	return best
}

// LineWidth is how many pixels the lines of a widget may take at most: what NewLine wants to know.
func (p *Page) LineWidth() int { return max(1, p.Width/p.Columns()) }

// PNG draws the page. It ends with the error of ctx when that ends first: noise on many lines of a large page takes the library seconds.
func (p *Page) PNG(ctx context.Context) ([]byte, error) {
	if p.Width < MinSize || p.Width > MaxSize || p.Height < MinSize || p.Height > MaxSize {
		return nil, fmt.Errorf("chart: %d x %d pixels are not in %d to %d", p.Width, p.Height, MinSize, MaxSize)
	}
	canvas := vgimg.NewWith(vgimg.UseWH(vg.Length(p.Width), vg.Length(p.Height)), vgimg.UseDPI(dpi), vgimg.UseBackgroundColor(p.Theme.background))
	area := draw.Crop(draw.New(canvas), gap, -gap, gap, -gap)
	if title := clean(p.Title); title != "" {
		style := p.style(15)
		style.Font.Weight = bold
		style.YAlign = draw.YTop
		area.FillText(style, vg.Point{X: area.Min.X + 2, Y: area.Max.Y}, fit(style, title, area.Size().X-4))
		area.Max.Y -= 26
	}
	columns := p.Columns()
	rows := (len(p.Widgets) + columns - 1) / columns
	for i := range p.Widgets {
		cell := p.cell(area, i%columns, i/columns, columns, rows)
		cell.SetColor(p.Theme.panel)
		cell.Fill(cell.Rectangle.Path())
		p.widget(ctx, &p.Widgets[i], draw.Crop(cell, gap, -gap, gap, -gap))
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("chart: %w", err)
	}
	var out bytes.Buffer
	if _, err := (vgimg.PngCanvas{Canvas: canvas}).WriteTo(&out); err != nil {
		return nil, fmt.Errorf("chart: %w", err)
	}
	return out.Bytes(), nil
}

// gap is the distance of things, in pixels.
const gap = 10

// bold is the weight of titles: golang.org/x/image/font.WeightBold, which has the number 3.
const bold = 3

// cell is the place of a widget.
func (p *Page) cell(area draw.Canvas, column, row, columns, rows int) draw.Canvas {
	size := area.Size()
	w := (size.X - gap*vg.Length(columns-1)) / vg.Length(columns)
	h := (size.Y - gap*vg.Length(rows-1)) / vg.Length(rows)
	left := (w + gap) * vg.Length(column)
	top := (h + gap) * vg.Length(row)
	return draw.Crop(area, left, left+w-size.X, size.Y-top-h, -top)
}

// style is the text style of a size.
func (p *Page) style(size vg.Length) draw.TextStyle {
	return draw.TextStyle{Color: p.Theme.text, Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}, XAlign: draw.XLeft, YAlign: draw.YCenter,
		Handler: plot.DefaultTextHandler}
}

// leastPlot is the size below which a chart has no room for axes: then the lines are drawn alone.
const leastPlot = 90

// widget draws one chart: title, plot, legend.
func (p *Page) widget(ctx context.Context, w *Widget, area draw.Canvas) {
	small := area.Size().X < leastPlot || area.Size().Y < leastPlot
	if title := clean(w.Title); title != "" && !small {
		style := p.style(12)
		style.Font.Weight = bold
		style.YAlign = draw.YTop
		area.FillText(style, vg.Point{X: area.Min.X, Y: area.Max.Y}, fit(style, title, area.Size().X))
		area.Max.Y -= 22
	}
	if !small {
		area = p.legend(w, area)
	}
	if area.Size().X < 16 || area.Size().Y < 16 {
		return
	}
	if len(w.Lines) == 0 {
		p.empty(w, area)
		return
	}
	pl := p.plot(w, area)
	for i, line := range w.Lines {
		pl.Add(&strokes{line: line, color: p.Theme.line(i), stop: func() bool { return ctx.Err() != nil }})
	}
	pl.Draw(area)
}

// empty says why there is nothing to see.
func (p *Page) empty(w *Widget, area draw.Canvas) {
	style := p.style(12)
	style.Color, style.XAlign = p.Theme.faint, draw.XCenter
	text := clean(w.Note)
	if text == "" {
		text = "no data"
	}
	area.FillText(style, area.Center(), fit(style, text, area.Size().X))
}

// plot builds the axes and the grid of a widget for the size of its area.
func (p *Page) plot(w *Widget, area draw.Canvas) *plot.Plot {
	low, high := math.Inf(1), math.Inf(-1)
	for _, line := range w.Lines {
		for _, run := range line.points {
			for _, point := range run {
				low, high = min(low, point.Y), max(high, point.Y)
			}
		}
	}
	low, high = valueRange(low, high)
	pl := plot.New()
	pl.BackgroundColor = nil
	size := area.Size()
	bare := size.X < leastPlot || size.Y < leastPlot/2
	for _, axis := range []*plot.Axis{&pl.X, &pl.Y} {
		axis.Padding, axis.LineStyle.Width, axis.LineStyle.Color = 0, 1, p.Theme.grid
		label := p.style(10)
		label.Color, label.XAlign, label.YAlign = p.Theme.faint, axis.Tick.Label.XAlign, axis.Tick.Label.YAlign
		axis.Tick.Label, axis.Tick.Length, axis.Tick.LineStyle.Color = label, 3, p.Theme.grid
		axis.Label.TextStyle.Font = label.Font
	}
	pl.X.Min, pl.X.Max = 0, float64(w.Range.End-w.Range.Start)
	pl.Y.Min, pl.Y.Max = low, high
	pl.X.Tick.Marker = plot.ConstantTicks(timeTicks(w.Range, p.zone(), int(size.X/62)))
	pl.Y.Tick.Marker = plot.ConstantTicks(valueTicks(low, high, max(4, int(size.Y/32))))
	if bare {
		pl.HideAxes()
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = p.Theme.grid, p.Theme.grid
	grid.Vertical.Width, grid.Horizontal.Width = 0.7, 0.7
	pl.Add(grid)
	return pl
}

func (p *Page) zone() *time.Location {
	if p.Zone == nil {
		return time.UTC
	}
	return p.Zone
}

const (
	legendLine = 16 // pixels of a line of the legend
	legendMark = 14 // of the piece of line before a label
)

// legend draws the labels at the foot of area, as many as a third of it holds, and returns what is left above them.
func (p *Page) legend(w *Widget, area draw.Canvas) draw.Canvas {
	if len(w.Lines) == 0 {
		return area
	}
	style := p.style(10.5)
	lines := max(1, int(area.Size().Y/3/legendLine))
	entries, used := p.flow(w, style, area.Size().X, lines)
	note := clean(w.Note)
	if hidden := len(w.Lines) - len(entries); hidden > 0 {
		note = strings.TrimPrefix(fmt.Sprintf("%s, and %d more", note, hidden), ", ")
	}
	height := vg.Length(used * legendLine)
	if note != "" {
		faint := style
		faint.Color = p.Theme.faint
		area.FillText(faint, vg.Point{X: area.Min.X, Y: area.Min.Y + legendLine/2}, fit(faint, note, area.Size().X))
		area.Min.Y += legendLine
	}
	for i, e := range entries {
		x, y := area.Min.X+e.x, area.Min.Y+height-vg.Length(e.line*legendLine)-legendLine/2
		area.StrokeLine2(draw.LineStyle{Color: p.Theme.line(i), Width: 3}, x, y, x+legendMark, y)
		area.FillText(style, vg.Point{X: x + legendMark + 5, Y: y}, e.text)
	}
	area.Min.Y += height + 6
	return area
}

// entry is a label in the legend.
type entry struct {
	text string
	line int
	x    vg.Length
}

// flow places the labels one after another in lines of a width.
func (p *Page) flow(w *Widget, style draw.TextStyle, width vg.Length, lines int) (entries []entry, used int) {
	x, line := vg.Length(0), 0
	for _, l := range w.Lines {
		text := fit(style, clean(l.Label), width-legendMark-5)
		need := legendMark + 5 + style.Width(text)
		if x > 0 && x+need > width {
			x, line = 0, line+1
		}
		if line >= lines {
			return entries, line
		}
		entries = append(entries, entry{text, line, x})
		x += need + 16
	}
	return entries, line + 1
}

// fit cuts a text to a width.
func fit(style draw.TextStyle, text string, width vg.Length) string {
	if style.Width(text) <= width {
		return text
	}
	runes := []rune(text)
	low, high := 0, len(runes)
	for low < high { // the longest beginning that fits with the dots behind it
		middle := (low + high + 1) / 2
		if style.Width(string(runes[:middle])+"...") <= width {
			low = middle
		} else {
			high = middle - 1
		}
	}
	if low == 0 {
		return ""
	}
	return strings.TrimRight(string(runes[:low]), " ") + "..."
}

// maxText is how much of a text is looked at: no image has room for more.
const maxText = 400

// clean makes a text one line of characters that print.
func clean(text string) string {
	text = strings.ToValidUTF8(text, "?")
	if runes := []rune(text); len(runes) > maxText {
		text = string(runes[:maxText])
	}
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text))
}
