package schema

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// variable is what a program can ask of the cell in work.
type variable uint8

const (
	variableRow variable = iota
	variableColumn
	variableValue
	variableRowText
	variableCount
	variableFile
	variableMath
	variableNaN
	variableInfinity
)

var variables = map[string]variable{"row": variableRow, "col": variableColumn, "value": variableValue, "cellText": variableValue, "rowText": variableRowText,
	"columnCount": variableCount, "fileName": variableFile, "Math": variableMath, "NaN": variableNaN, "Infinity": variableInfinity}

func (v variable) get(r *Run) value {
	switch v {
	case variableRow:
		return numberOf(float64(r.number))
	case variableColumn:
		return numberOf(float64(r.column))
	case variableValue:
		return textOf(r.cellText())
	case variableRowText:
		if !r.hasText {
			r.rowText, r.hasText = r.row.Text(), true
		}
		return textOf(r.rowText)
	case variableCount:
		return numberOf(float64(r.row.Size()))
	case variableFile:
		return textOf(r.file)
	case variableMath:
		return value{kind: record, ref: r.math}
	case variableNaN:
		return numberOf(math.NaN())
	}
	return numberOf(math.Inf(1))
}

// looks is which cells a function reads.
type looks uint8

const (
	looksNowhere looks = iota
	looksAt            // those of the row that it is given
	looksUp            // those above as well
)

// native is a built-in function. It is never changed, so that all runs share it.
type native struct {
	name     string
	min, max int // arguments
	looks    looks
	call     func(r *Run, args []value) value
	self     *object
}

func (n *native) object() *object { return n.self }

// wrong says what is wrong with a number of arguments.
func (n *native) wrong(args int) string {
	switch {
	case args >= n.min && args <= n.max:
		return ""
	case n.min == n.max:
		return fmt.Sprintf("%s takes %d %s, not %d", n.name, n.min, plural(n.min, "argument"), args)
	}
	return fmt.Sprintf("%s takes %d to %d arguments, not %d", n.name, n.min, n.max, args)
}

var natives = nativesByName(
	&native{name: "cell", min: 2, max: 2, looks: looksAt, call: callCell},
	&native{name: "notEmptyLeft", min: 2, max: 2, looks: looksAt, call: callNotEmptyLeft},
	&native{name: "notEmptyUp", min: 2, max: 2, looks: looksUp, call: callNotEmptyUp},
	&native{name: "parseInt", min: 1, max: 2, call: callParseInt},
	&native{name: "parseFloat", min: 1, max: 1, call: func(r *Run, args []value) value { return numberOf(leadingNumber(r.text(arg(args, 0)))) }},
	&native{name: "Number", max: 1, call: func(_ *Run, args []value) value {
		if len(args) == 0 {
			return numberOf(0)
		}
		return numberOf(args[0].toNumber())
	}},
	&native{name: "String", max: 1, call: func(r *Run, args []value) value {
		if len(args) == 0 {
			return textOf("")
		}
		return textOf(r.text(args[0]))
	}},
	&native{name: "Boolean", max: 1, call: func(_ *Run, args []value) value { return boolOf(arg(args, 0).truth()) }},
	&native{name: "isNaN", min: 1, max: 1, call: func(_ *Run, args []value) value {
		n := arg(args, 0).toNumber()
		return boolOf(n != n)
	}},
	&native{name: "isFinite", min: 1, max: 1, call: func(_ *Run, args []value) value {
		n := arg(args, 0).toNumber()
		return boolOf(n == n && !math.IsInf(n, 0))
	}},
)

func nativesByName(all ...*native) map[string]*native {
	m := map[string]*native{}
	for _, n := range all {
		n.self = &object{native: n}
		m[n.name] = n
	}
	return m
}

// arg returns an argument, undefined for one that is not there.
func arg(args []value, i int) value {
	if i < len(args) {
		return args[i]
	}
	return value{}
}

// place reads the row and the column that a function is given.
func (r *Run) place(args []value) (row, column int, ok bool) {
	row, okRow := position32(args[0].toNumber())
	column, okColumn := position32(args[1].toNumber())
	if okRow && okColumn {
		return row, column, true
	}
	wrong, name := args[0], "row"
	if okRow {
		wrong, name = args[1], "column"
	}
	r.fail("%s %s is not a whole number", name, strconv.Quote(clip(r.text(wrong))))
	return 0, 0, false
}

func position32(n float64) (int, bool) {
	if !(math.Abs(n) <= maxPosition) { // which NaN is not either
		return 0, false
	}
	i := int(n)
	return i, float64(i) == n
}

// rowAt returns the current row or an earlier one; nil for a later one, whose cells are empty.
func (r *Run) rowAt(n int) Row {
	if n == r.number {
		return r.row
	}
	if n < 1 || n > r.number {
		return nil
	}
	row := r.history.row(n)
	if row == nil {
		r.fail("row %d is not kept: of earlier rows %d bytes are, half of them from the beginning of the file, half of them the latest", n, maxKept)
	}
	return row
}

func cellOf(row Row, column int) string {
	if row == nil || column < 1 || column > row.Size() {
		return ""
	}
	return row.Cell(column)
}

func callCell(r *Run, args []value) value {
	row, column, ok := r.place(args)
	if !ok {
		return value{}
	}
	if row == r.number && column == r.column {
		return textOf(r.cellText())
	}
	return textOf(cellOf(r.rowAt(row), column))
}

func callNotEmptyLeft(r *Run, args []value) value {
	at, column, ok := r.place(args)
	if !ok {
		return value{}
	}
	row := r.rowAt(at)
	if row == nil {
		return textOf("")
	}
	for column = min(column, row.Size()); column >= 1 && r.spend(1); column-- {
		if s := row.Cell(column); s != "" {
			return textOf(s)
		}
	}
	return textOf("")
}

func callNotEmptyUp(r *Run, args []value) value {
	at, column, ok := r.place(args)
	if !ok || at > r.number || column < 1 {
		return textOf("")
	}
	if at == r.number {
		if s := cellOf(r.row, column); s != "" {
			return textOf(s)
		}
		at--
	}
	if column > maxColumns {
		r.fail("notEmptyUp looks at columns up to %d", maxColumns)
		return textOf("")
	}
	if r.history.liftFull {
		r.fail("notEmptyUp: the latest cells of all columns hold more than %d bytes", maxKept)
		return textOf("")
	}
	if column > len(r.history.above) {
		return textOf("")
	}
	above := r.history.above[column-1]
	if above.row <= at {
		return textOf(above.cell)
	}
	for ; at >= 1 && r.spend(1); at-- {
		if s := cellOf(r.rowAt(at), column); s != "" {
			return textOf(s)
		}
	}
	return textOf("")
}

// leadingNumber reads the number at the beginning of a text.
func leadingNumber(s string) float64 {
	s = strings.TrimSpace(s)
	s = s[:min(len(s), maxDigits)]
	end, digits, dot, exponent := 0, false, false, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case isDigit(c):
			digits = true
			end = i + 1
			continue
		case (c == '+' || c == '-') && (i == 0 || s[i-1]|0x20 == 'e'):
			continue
		case c == '.' && !dot && !exponent:
			dot = true
			if digits {
				end = i + 1
			}
			continue
		case c|0x20 == 'e' && digits && !exponent:
			exponent = true
			continue
		}
		break
	}
	if unsigned := strings.TrimLeft(s, "+-"); end == 0 && strings.HasPrefix(unsigned, "Infinity") {
		return numberIn(s[:len(s)-len(unsigned)] + "Infinity")
	}
	if end == 0 {
		return math.NaN()
	}
	return numberIn(s[:end])
}

func callParseInt(r *Run, args []value) value {
	s := strings.TrimSpace(r.text(arg(args, 0)))
	s = s[:min(len(s), maxDigits)]
	base := toInt32(arg(args, 1).toNumber())
	sign := 1.0
	if s != "" && (s[0] == '-' || s[0] == '+') {
		if s[0] == '-' {
			sign = -1
		}
		s = s[1:]
	}
	if (base == 0 || base == 16) && len(s) > 1 && s[0] == '0' && s[1]|0x20 == 'x' {
		s, base = s[2:], 16
	}
	if base == 0 {
		base = 10
	}
	if base < 2 || base > 36 {
		return numberOf(math.NaN())
	}
	end := 0
	for end < len(s) && digitOf(s[end]) < int(base) {
		end++
	}
	if end == 0 {
		return numberOf(math.NaN())
	}
	if base == 10 {
		return numberOf(sign * numberIn(s[:end]))
	}
	n := 0.0
	for _, c := range []byte(s[:end]) {
		n = float64(n*float64(base)) + float64(digitOf(c))
	}
	return numberOf(sign * n)
}

func digitOf(c byte) int {
	switch {
	case isDigit(c):
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'z':
		return int(c|0x20-'a') + 10
	}
	return 99
}

// mathFunctions are those of one number; random is left out: an upload that is sent again must give the same.
var mathFunctions = map[string]func(float64) float64{"abs": math.Abs, "ceil": math.Ceil, "floor": math.Floor, "round": func(n float64) float64 { return math.Floor(n + 0.5) },
	"trunc": math.Trunc, "sqrt": math.Sqrt, "cbrt": math.Cbrt, "exp": math.Exp, "log": math.Log, "log10": math.Log10, "log2": math.Log2, "sin": math.Sin, "cos": math.Cos,
	"tan": math.Tan, "asin": math.Asin, "acos": math.Acos, "atan": math.Atan, "sign": func(n float64) float64 {
		switch {
		case n > 0:
			return 1
		case n < 0:
			return -1
		}
		return n
	}}

var mathConstants = map[string]float64{"PI": math.Pi, "E": math.E, "LN2": math.Ln2, "LN10": math.Ln10, "SQRT2": math.Sqrt2}

var mathNatives = func() map[string]*native {
	var all []*native
	for name, f := range mathFunctions {
		all = append(all, &native{name: name, call: func(_ *Run, args []value) value { return numberOf(f(arg(args, 0).toNumber())) }})
	}
	pair := func(name string, f func(x, y float64) float64) *native {
		return &native{name: name, call: func(_ *Run, args []value) value { return numberOf(f(arg(args, 0).toNumber(), arg(args, 1).toNumber())) }}
	}
	fold := func(name string, empty float64, f func(x, y float64) float64) *native {
		return &native{name: name, call: func(_ *Run, args []value) value {
			n := empty
			for _, a := range args {
				n = f(n, a.toNumber())
			}
			return numberOf(n)
		}}
	}
	return nativesByName(append(all, pair("pow", math.Pow), pair("atan2", math.Atan2), fold("max", math.Inf(-1), math.Max), fold("min", math.Inf(1), math.Min))...)
}()

// newMath makes the object Math of a run.
func newMath() *object {
	o := &object{members: map[string]value{}}
	for name, n := range mathNatives {
		o.members[name] = value{kind: function, ref: n.object()}
	}
	for name, n := range mathConstants {
		o.members[name] = numberOf(n)
	}
	return o
}
