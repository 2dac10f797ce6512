package expr

import (
	"math"
	"math/rand/v2"

	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/sql/column"
)

var nan = math.NaN()

func mathFunctions() map[string]definition {
	all := map[string]definition{
		"pi": {0, 0, func(*call) (Node, error) { return Const(column.FloatValue(column.Double, math.Pi)), nil }},
		"random": {0, 0, func(*call) (Node, error) {
			return scalar{kind: column.Double, flags: volatile, make: randomKernel}.node(), nil
		}},
		"mod":   {2, 2, binary(modulo)},
		"power": {2, 2, binary(calc.Power)},
		"log":   {2, 2, binary(calc.Logarithm)},
		"round": {1, 2, round},
	}
	for name, f := range map[string]func(float64) float64{
		"abs": math.Abs, "ceil": math.Ceil, "floor": math.Floor, "exp": calc.Exp, "sqrt": math.Sqrt, "ln": calc.Log, "degrees": degrees, "radians": radians,
		"sin": sin, "cos": cos, "tan": tan, "cot": cot, "asin": asin, "acos": acos, "atan": atan,
	} {
		all[name] = definition{1, 1, unary(f)}
	}
	return all
}

func degrees(x float64) float64 { return x * (180 / math.Pi) }
func radians(x float64) float64 { return x / 180 * math.Pi }

func unary(f func(float64) float64) func(c *call) (Node, error) {
	return func(c *call) (Node, error) {
		return scalar{kind: column.Double, args: c.args, make: func() kernel {
			var x numberReader
			return func(_ *Env, args []*column.Vector, rows int, out *result) error {
				dst := out.makeFloats(rows)
				for i, v := range x.read(args[0]).values[:rows] {
					dst[i] = f(v) + 0 // no negative zero
				}
				return nil
			}
		}}.node(), nil
	}
}

func binary(f func(a, b float64) float64) func(c *call) (Node, error) {
	return func(c *call) (Node, error) {
		return scalar{kind: column.Double, args: c.args, make: func() kernel {
			var x, y numberReader
			return func(_ *Env, args []*column.Vector, rows int, out *result) error {
				a, b := x.read(args[0]), y.read(args[1])
				dst := out.makeFloats(rows)
				for i := range dst {
					p, q := a.at(i), b.at(i)
					if dst[i] = nan; p == p && q == q { // also where math.Pow would find an answer
						dst[i] = f(p, q) + 0
					}
				}
				return nil
			}
		}}.node(), nil
	}
}

func randomKernel() kernel {
	return func(_ *Env, _ []*column.Vector, rows int, out *result) error {
		for i := range out.makeFloats(rows) {
			out.v.Floats[i] = rand.Float64()
		}
		return nil
	}
}

// round is ROUND(x, decimals): the decimals are 0 without the second argument.
func round(c *call) (Node, error) {
	args := c.args
	if len(args) == 1 {
		args = append(args, Const(column.IntValue(column.Bigint, 0)))
	}
	return binary(func(x, decimals float64) float64 { return calc.Round(x, int(max(min(decimals, 400), -400))) })(&call{args: args})
}
