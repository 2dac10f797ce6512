package chart

import (
	"image/color"
	"strings"
)

// Theme is the colours of a page.
type Theme struct {
	background, panel, text, faint, grid color.Color
	lines                                []color.Color
}

// The themes of the contract.
var (
	Default = Theme{
		background: rgb(0xf4f5f7), panel: rgb(0xffffff), text: rgb(0x24292f), faint: rgb(0x6b7280), grid: rgb(0xe3e6ea),
		lines: palette(0x2f6fde, 0xe8590c, 0x2b9348, 0xc92a6b, 0x7048c6, 0x0b9aa6, 0xb58900, 0x8a4b2d, 0x5c677d, 0xd62828),
	}
	Black = Theme{
		background: rgb(0x0e1116), panel: rgb(0x171b22), text: rgb(0xe6e9ee), faint: rgb(0x97a1af), grid: rgb(0x2b313b),
		lines: palette(0x5b9bff, 0xff9f45, 0x5fd38d, 0xff6fa5, 0xb197fc, 0x3fd0d4, 0xf2d04b, 0xd69a74, 0xa9b4c4, 0xff6b6b),
	}
)

// ParseTheme takes Default or Black, in any case; ok is false for any other name.
func ParseTheme(name string) (t Theme, ok bool) {
	switch strings.ToLower(name) {
	case "default":
		return Default, true
	case "black":
		return Black, true
	}
	return Theme{}, false
}

// line is the colour of the i-th line of a chart; past the palette colours come again.
func (t *Theme) line(i int) color.Color { return t.lines[i%len(t.lines)] }

func rgb(v uint32) color.Color { return color.NRGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 0xff} }

func palette(values ...uint32) []color.Color {
	colors := make([]color.Color, len(values))
	for i, v := range values {
		colors[i] = rgb(v)
	}
	return colors
}
