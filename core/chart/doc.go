// Package chart draws series as a PNG image: a page of line charts over time, each with a legend and a title.
//
// Axes, lines and text come from gonum.org/v1/plot, which draws with its vgimg backend and the fonts that it carries: the same page gives the same
// bytes on every machine. What is decided here is the layout (page.go), the colours (theme.go), where the ticks are (ticks.go), and which of the samples
// are drawn (reduce.go), and in which pieces (strokes.go): a chart never costs more than a few points for each pixel of its width, however many samples there are.
package chart
