package parse

import (
	"math"
	"strconv"
	"strings"

	"github.com/tidemark-db/tidemark/core/sql/ast"
)

// with reads the WITH clauses that stand here. Those behind GROUP BY are read after it.
func (p *parser) with(s *ast.Select) {
	for p.begin("with") {
		list(p, func() struct{} { p.withItem(s); return struct{}{} })
	}
}

func (p *parser) withItem(s *ast.Select) {
	at := p.at()
	switch p.tok.word {
	case "interpolate":
		if s.Interpolate != nil {
			p.again()
		}
		s.Interpolate = p.interpolate()
	case "row_number":
		r := p.rowNumber()
		r.Grouped = s.GroupBy != nil
		s.RowNumbers = append(s.RowNumbers, r)
	case "time", "last_time":
		l := p.lastTime()
		l.Start = at
		s.LastTime = append(s.LastTime, l)
	case "timezone":
		if s.TimeZone != nil {
			p.again()
		}
		s.TimeZone = p.setting()
	case "workday_calendar":
		if s.Calendar != nil {
			p.again()
		}
		s.Calendar = p.setting()
	case "version":
		if s.Version != nil {
			p.again()
		}
		p.words("version", "=")
		s.Version = p.sum()
	default:
		p.noWay("{INTERPOLATE, ROW_NUMBER, TIME, LAST_TIME, TIMEZONE, WORKDAY_CALENDAR, VERSION}")
	}
}

// again fails because the current clause was there before.
func (p *parser) again() { p.syntax("more than one %s", strings.ToUpper(p.tok.text)) }

// setting reads NAME = 'text'.
func (p *parser) setting() *ast.Ident {
	p.next()
	p.expect("=")
	if p.tok.kind != text && p.tok.kind != quoted {
		p.noWay("STRING_LITERAL")
		return nil
	}
	id := p.ident()
	return &id
}

// oneOf takes one of the words and returns it in lower case, "" if there is another token.
func (p *parser) oneOf(words ...string) string {
	for _, w := range words {
		if p.accept(w) {
			return w
		}
	}
	return ""
}

func (p *parser) interpolate() *ast.Interpolate {
	i := &ast.Interpolate{Start: p.at(), Function: "auto", Boundary: "inner"}
	p.words("interpolate", "(")
	if i.Detail = p.accept("detail"); !i.Detail {
		i.Step = p.interval()
	}
	args := []func() bool{
		func() bool { return p.choose(&i.Function, "linear", "previous", "auto") },
		func() bool { return p.choose(&i.Boundary, "inner", "outer", "full") },
		func() bool { return p.interpolationFill(i) },
		func() bool {
			align := "calendar"
			ok := p.choose(&align, "calendar", "start_time")
			if align == "start_time" {
				i.Align = ast.AlignStart
			}
			return ok
		},
		func() bool { i.Zone = p.zone(); return i.Zone != nil },
	}
	if i.Detail {
		args = args[:3]
	}
	p.rest(args)
	if p.err == nil && i.Detail && i.Boundary == "full" {
		p.fail(i.Errorf("FULL boundary mode is not suitable for DETAILS interpolation"))
	}
	return i
}

// rest reads what follows the first argument, in this order, up to the parenthesis.
func (p *parser) rest(args []func() bool) {
	for _, arg := range args {
		if !p.accept(",") {
			break
		}
		if !arg() {
			p.noWay("an argument")
			return
		}
	}
	if !p.accept(")") {
		p.noWay("')'")
	}
}

// choose takes one of the words into to.
func (p *parser) choose(to *string, words ...string) bool {
	w := p.oneOf(words...)
	if w != "" {
		*to = w
	}
	return w != ""
}

func (p *parser) interpolationFill(i *ast.Interpolate) bool {
	switch p.oneOf("true", "yes", "extend", "false", "no", "nan", "value") {
	case "true", "yes", "extend":
		i.Fill = ast.FillExtend
	case "false", "no":
	case "nan":
		i.Fill, i.Number = ast.FillValue, math.NaN()
	case "value":
		i.Fill, i.Number = ast.FillValue, p.fillNumber()
	default:
		return false
	}
	return true
}

// fillNumber reads a number with or without a sign, or NaN.
func (p *parser) fillNumber() float64 {
	if p.accept("nan") {
		return math.NaN()
	}
	sign := 1.0
	if p.accept("-") {
		sign = -1
	}
	if p.tok.kind != integer && p.tok.kind != decimal {
		p.noWay("a number")
		return 0
	}
	// Too large a number becomes an infinity, as everywhere.
	n, _ := strconv.ParseFloat(p.tok.text, 64)
	p.next()
	return sign * n
}

// zone reads a time zone: a text, entity.timeZone or metric.timeZone. It returns nil for anything else.
func (p *parser) zone() ast.Expr {
	if p.tok.kind == text {
		return p.stringLiteral()
	}
	if p.tok.kind != word && p.tok.kind != quoted || !p.peek(1).is(".") {
		return nil
	}
	n := p.name()
	if !isZoneField(n.Parts) {
		return nil
	}
	return n
}

// isZoneField reports whether a name ends in entity.timeZone or metric.timeZone.
func isZoneField(parts []ast.Ident) bool {
	last := len(parts) - 1
	if last < 1 || !strings.EqualFold(parts[last].Text, "timezone") {
		return false
	}
	owner := parts[last-1].Text
	return strings.EqualFold(owner, "entity") || strings.EqualFold(owner, "metric")
}

// interval reads a count and a unit.
func (p *parser) interval() ast.Interval {
	i := ast.Interval{Start: p.at()}
	if i.Count = p.integer(); i.Count == 0 && p.err == nil {
		p.fail(i.Errorf("The count of an interval must be greater than 0"))
	}
	i.Unit = p.unit()
	return i
}

func (p *parser) unit() string {
	w := p.tok.word
	if !units[w] {
		p.noWay("a unit of time")
		return ""
	}
	p.next()
	return w
}

func (p *parser) rowNumber() ast.RowNumber {
	r := ast.RowNumber{Start: p.at()}
	p.words("row_number", "(")
	r.Partition = list(p, p.expr)
	p.expect("order")
	r.Order = p.orderBy()
	p.expect(")")
	if p.accept("between") {
		r.Preceding = p.preceding()
		return r
	}
	if r.Op = p.oneOf("=", "<", "<=", ">", ">="); r.Op == "" {
		p.noWay("a condition")
	}
	r.Number = p.integer()
	return r
}

// preceding reads what follows BETWEEN. Errors repeat the clause, not only the token.
func (p *parser) preceding() *ast.Interval {
	i := &ast.Interval{Start: p.at(), Count: p.integer()}
	if i.Count == 0 && p.err == nil {
		p.fail(i.Errorf("The count of an interval must be greater than 0"))
	}
	if units[p.tok.word] {
		i.Unit = p.unit()
	}
	for _, w := range []string{"preceding", "and", "current", "row"} {
		if !p.accept(w) {
			p.noWay(strings.ToUpper(w))
		}
	}
	return i
}

var mirrored = map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}

// lastTime reads time >= last_time - 1 * HOUR, in either order.
func (p *parser) lastTime() ast.LastTime {
	var l ast.LastTime
	reversed := !p.accept("time")
	if reversed {
		l.Offset = p.lastOffset()
	}
	if l.Op = p.oneOf("=", "<", "<=", ">", ">="); l.Op == "" {
		p.noWay("a comparison")
	}
	if !reversed {
		l.Offset = p.lastOffset()
		return l
	}
	if l.Op = mirrored[l.Op]; !p.accept("time") {
		p.noWay("TIME")
	}
	return l
}

// lastOffset reads LAST_TIME and what is added to it; nil = nothing.
func (p *parser) lastOffset() *ast.Interval {
	if !p.accept("last_time") {
		p.noWay("LAST_TIME")
		return nil
	}
	i := &ast.Interval{Start: p.at(), Count: 1}
	negative := p.is("-")
	if !negative && !p.is("+") {
		return nil
	}
	p.next()
	if p.tok.kind == integer {
		i.Count = p.integer()
		p.expect("*")
	}
	if negative {
		i.Count = -i.Count
	}
	i.Unit = p.unit()
	return i
}

// period reads PERIOD(...); the current token is its keyword.
func (p *parser) period(table *ast.Ident, at ast.Start) *ast.Period {
	e := &ast.Period{Start: at, Table: table}
	p.next()
	p.expect("(")
	e.Step = p.interval()
	var filled, extended, aligned bool
	for p.accept(",") {
		e.Options = true
		var seen *bool
		switch {
		case p.periodFill(e):
			seen = &filled
		case p.accept("extend"):
			e.Extend, seen = true, &extended
		case p.periodAlign(e):
			seen = &aligned
		default:
			again := e.Zone != nil
			if e.Zone = p.zone(); e.Zone == nil {
				p.noWay("an option of PERIOD")
				return e
			}
			seen = &again
		}
		if *seen {
			p.fail(e.Errorf("PERIOD has more than one option of a kind"))
		}
		*seen = true
	}
	p.expect(")")
	p.height = 1
	return e
}

func (p *parser) periodFill(e *ast.Period) bool {
	switch p.oneOf("none", "previous", "next", "linear", "value") {
	case "none":
		e.Fill = ast.FillNone
	case "previous":
		e.Fill = ast.FillPrevious
	case "next":
		e.Fill = ast.FillNext
	case "linear":
		e.Fill = ast.FillLinear
	case "value":
		e.Fill, e.Number = ast.FillValue, p.fillNumber()
	default:
		return false
	}
	return true
}

func (p *parser) periodAlign(e *ast.Period) bool {
	switch p.oneOf("calendar", "start_time", "end_time", "first_value_time") {
	case "calendar":
		e.Align = ast.AlignCalendar
	case "start_time":
		e.Align = ast.AlignStart
	case "end_time":
		e.Align = ast.AlignEnd
	case "first_value_time":
		e.Align = ast.AlignFirst
	default:
		return false
	}
	return true
}
