package plan

import (
	"math"

	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/expr"
)

// shape says what an aggregate takes and gives.
type shape struct {
	args     int         // expressions
	first    bool        // a number stands before them
	kind     column.Type // of the result; Decimal may be Timestamp or Bigint, as the argument
	ordered  bool        // the result depends on the order of rows, or may do so in its last digit
	timed    bool        // it needs the time of rows
	divisor  bool        // SAMPLE or POPULATION may follow
	windowed bool        // it stands over windows only
	groups   bool        // it stands over groups only
}

// aggregates are the functions of many rows.
var aggregates = map[string]shape{
	"count":          {args: 1, kind: column.Bigint},
	"sum":            {args: 1, kind: column.Decimal},
	"avg":            {args: 1, kind: column.Decimal},
	"min":            {args: 1, kind: column.Decimal},
	"max":            {args: 1, kind: column.Decimal},
	"product":        {args: 1, kind: column.Double, ordered: true},
	"first":          {args: 1, kind: column.Decimal, ordered: true, timed: true},
	"last":           {args: 1, kind: column.Decimal, ordered: true, timed: true},
	"min_value_time": {args: 1, kind: column.Bigint, ordered: true, timed: true, groups: true},
	"max_value_time": {args: 1, kind: column.Bigint, ordered: true, timed: true, groups: true},
	"median":         {args: 1, kind: column.Decimal, groups: true},
	"percentile":     {args: 1, first: true, kind: column.Decimal, groups: true},
	"stddev":         {args: 1, kind: column.Decimal, ordered: true, divisor: true},
	"median_abs_dev": {args: 1, kind: column.Double, groups: true},
	"delta":          {args: 1, kind: column.Double, ordered: true, timed: true},
	"counter":        {args: 1, kind: column.Double, ordered: true, timed: true},
	"wavg":           {args: 1, kind: column.Double, ordered: true, timed: true},
	"wtavg":          {args: 1, kind: column.Double, ordered: true, timed: true},
	"correl":         {args: 2, kind: column.Double, ordered: true},
	"covar":          {args: 2, kind: column.Double, ordered: true, divisor: true},
	"regr_slope":     {args: 2, kind: column.Double, ordered: true},
	"regr_intercept": {args: 2, kind: column.Double, ordered: true},
	"ema":            {args: 1, first: true, kind: column.Double, ordered: true, windowed: true},
}

// isAggregate reports whether a function is one of many rows. FIRST_VALUE is one in groups, and one of a window otherwise.
func isAggregate(name string) bool {
	_, ok := aggregates[name]
	return ok || name == "last_value"
}

// isAnalytic reports whether a function looks at other rows of the result.
func isAnalytic(name string) bool { return name == "lag" || name == "lead" || name == "first_value" }

func isNumbering(name string) bool {
	return name == "row_number" || name == "rank" || name == "dense_rank"
}

// synonyms are older names, in groups.
var synonyms = map[string]string{"first_value": "first", "last_value": "last"}

// aggregate makes an aggregate of a call; its arguments are bound in the scope of rows.
func (sc *scope) aggregate(e *ast.Call) (Aggregate, error) {
	name := e.Name
	if s, ok := synonyms[name]; ok {
		name = s
	}
	a := Aggregate{Func: name, Distinct: e.Distinct}
	f := aggregates[name]
	args := e.Args
	if e.Star && name == "count" {
		a.Type = f.kind
		return a, nil
	}
	if n := len(args); f.divisor && n == f.args+1 {
		word, ok := args[n-1].(*ast.Word)
		if !ok || word.Text != "sample" && word.Text != "population" {
			return a, args[n-1].At().Errorf("Unexpected expression: '%s'", sc.text(args[n-1]))
		}
		a.Population, args = word.Text == "population", args[:n-1]
	}
	if f.first && len(args) > 0 {
		n, err := sc.number64(args[0])
		if err != nil {
			return a, err
		}
		if name == "percentile" {
			a.Percent = n
		} else {
			a.Factor = n
		}
		if err := checkFactor(name, n, args[0]); err != nil {
			return a, err
		}
		args = args[1:]
	}
	if e.Star || len(args) != f.args {
		return a, e.Errorf("Invalid number of arguments: '%s'", sc.text(e))
	}
	var err error
	if a.Args, err = sc.all(args); err != nil {
		return a, err
	}
	if a.Type = f.kind; a.Type == column.Decimal && (name == "min" || name == "max" || name == "first" || name == "last") {
		a.Type = sc.extreme(args[0], a.Args[0])
	}
	if f.timed {
		a.Time, err = sc.rowTime()
	}
	return a, err
}

// extreme is the type of the least, greatest, first or last of some values.
func (sc *scope) extreme(e ast.Expr, n expr.Node) column.Type {
	if n.Type() == column.Timestamp {
		return column.Timestamp
	}
	if sc.isTime(e, n) {
		return column.Bigint
	}
	return column.Decimal
}

func checkFactor(name string, n float64, e ast.Expr) error {
	switch {
	case name == "percentile" && !(n >= 0 && n <= 100):
		return e.At().Errorf("Invalid percentile: '%s'. It must be between 0 and 100", ast.Text(e))
	case name == "ema" && !(n > 0 && n < 1):
		return e.At().Errorf("Invalid smoothing factor: '%s'. It must be between 0 and 1, both exclusive", ast.Text(e))
	}
	return nil
}

// number64 evaluates an argument that must be a constant number.
func (sc *scope) number64(e ast.Expr) (float64, error) {
	n, err := sc.bind(e)
	if err != nil {
		return 0, err
	}
	v, ok, err := expr.Constant(n, sc.env)
	if err != nil {
		return 0, err
	}
	if f := v.Number(); ok && !math.IsNaN(f) {
		return f, nil
	}
	if sc.Meta {
		return 0.5, nil // placeholders stand for anything
	}
	return 0, e.At().Errorf("Invalid argument: '%s'. A constant number is required", sc.text(e))
}

// function binds an aggregate or a function of a window to the column that holds it.
func (sc *scope) function(e *ast.Call) (expr.Node, error) {
	switch {
	case sc.groups != nil && !aggregates[e.Name].windowed && (isAggregate(e.Name) || e.Name == "first_value"):
		return sc.groups.aggregate(e)
	case sc.window != nil:
		return sc.window.function(sc, e)
	case isAggregate(e.Name):
		return nil, e.Errorf("Aggregate function is not allowed here: '%s'", sc.text(e))
	}
	return nil, e.Errorf("Analytic function is not allowed here: '%s'", sc.text(e))
}

// windows collects the functions of one Window.
type windows struct {
	under     *scope // of its input
	texts     *numbering
	functions map[int]Analytic
}

// function returns the column of a function.
func (w *windows) function(sc *scope, e *ast.Call) (expr.Node, error) {
	i := w.texts.place(ast.Key(e))
	a, ok := w.functions[i]
	if !ok {
		var err error
		switch {
		case isAnalytic(e.Name):
			a, err = w.analytic(e)
		case aggregates[e.Name].groups:
			err = e.Errorf("Aggregate function is not allowed here: '%s'", w.under.text(e))
		default:
			a.Aggregate, err = w.under.aggregate(e)
		}
		if err != nil {
			return nil, err
		}
		if w.functions == nil {
			w.functions = map[int]Analytic{}
		}
		w.functions[i] = a
	}
	return expr.Input(sc.base+i, a.Type), nil
}

// analytic makes LAG, LEAD or FIRST_VALUE.
func (w *windows) analytic(e *ast.Call) (a Analytic, err error) {
	most := 3
	if e.Name == "first_value" {
		most = 1
	}
	if len(e.Args) == 0 || len(e.Args) > most || e.Star || e.Distinct {
		return a, e.Errorf("Invalid number of arguments: '%s'", w.under.text(e))
	}
	a.Func, a.Offset = e.Name, 1
	if a.Args, err = w.under.all(e.Args[:1]); err != nil {
		return a, err
	}
	a.Type = a.Args[0].Type()
	if len(e.Args) > 1 {
		n, err := w.under.number64(e.Args[1])
		if err != nil {
			return a, err
		}
		a.Offset = int64(n)
		if n < 0 || n != math.Trunc(n) && !w.under.Meta {
			return a, e.Args[1].At().Errorf("Invalid offset: '%s'. A whole number from 0 is required", w.under.text(e.Args[1]))
		}
	}
	if len(e.Args) > 2 {
		if a.Default, err = w.under.bind(e.Args[2]); err != nil {
			return a, err
		}
		a.Type = expr.CommonType(a.Type, a.Default.Type())
	}
	return a, nil
}

// list returns the functions in the order of their columns.
func (w *windows) list() []Analytic {
	out := make([]Analytic, len(*w.texts))
	for i := range out {
		out[i] = w.functions[i]
	}
	return out
}

// numbering binds ROW_NUMBER(), RANK() and DENSE_RANK().
func (sc *scope) numbering(e *ast.Call) (expr.Node, error) {
	if sc.insideNumber {
		return nil, e.Errorf("%s() function is not allowed inside row_number clause", e.Name)
	}
	if sc.number < 0 {
		return nil, e.Errorf("%s function requires WITH ROW_NUMBER clause.", e.Name)
	}
	if len(e.Args) > 0 || e.Star {
		return nil, e.Errorf("Invalid number of arguments: '%s'", sc.text(e))
	}
	place := map[string]int{"row_number": 0, "rank": 1, "dense_rank": 2}[e.Name]
	return expr.Input(sc.number+place, column.Bigint), nil
}
