package expr

import (
	"errors"
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/sql/column"
)

// arithmetic is one of + - * / %. Its type is double; whole numbers stay whole as long as 64 bits hold them.
type arithmetic struct {
	op          byte
	below       trait // of both operands
	l, r        Node
	left, right numberReader
	out         result
}

// Arithmetic is l op r, where op is one of + - * / %. The first three are exact in decimals.
func Arithmetic(op string, l, r Node) Node {
	return fold(&arithmetic{op: op[0], below: traits(l) | traits(r), l: l, r: r})
}

// Negate is -x. A whole number as written stays one.
func Negate(x Node) Node {
	if v, ok := constantOf(x); ok && v.Whole && v.Int != math.MinInt64 {
		v.Int, v.Text = -v.Int, ""
		return Const(v)
	}
	if c, ok := x.(*constant); ok && c.digits != "" {
		digits, negative := strings.CutPrefix(c.digits, "-")
		if !negative {
			digits = "-" + digits
		}
		return &constant{kind: c.kind, value: column.FloatValue(c.kind, -c.value.Float), digits: digits}
	}
	return Arithmetic("-", Const(column.IntValue(column.Bigint, 0)), x)
}

func (n *arithmetic) Type() column.Type { return column.Double }
func (n *arithmetic) Clone() Node {
	return &arithmetic{op: n.op, below: n.below, l: n.l.Clone(), r: n.r.Clone()}
}
func (n *arithmetic) operands() []Node { return []Node{n.l, n.r} }
func (n *arithmetic) own() trait       { return 0 }
func (n *arithmetic) all() trait       { return n.below }

func (n *arithmetic) Eval(env *Env, in *column.Batch) (*column.Vector, error) {
	a, b, err := evalTwo(env, in, n.l, n.r)
	if err != nil {
		return nil, err
	}
	if a.Type == column.Null || b.Type == column.Null {
		return n.out.allNull(in.Len), nil
	}
	rows, constant := rowsOf(in.Len, a, b)
	n.out.header(column.Double, in.Len, constant)
	if whole(a) && whole(b) && n.integers(a, b, rows) {
		n.out.unite(rows, cut(a.Nulls, stored(a)), cut(b.Nulls, stored(b)))
		return &n.out.v, nil
	}
	x, y := n.left.read(a), n.right.read(b)
	dst := n.out.makeFloats(rows)
	n.out.v.Ints = nil
	n.floats(dst, x.values, y.values)
	if n.op != '/' && n.op != '%' && (hasDigits(a) || hasDigits(b)) {
		n.digits(dst, a, b)
	}
	n.out.unite(rows, x.nulls, y.nulls)
	return &n.out.v, nil
}

func evalTwo(env *Env, in *column.Batch, l, r Node) (a, b *column.Vector, err error) {
	if a, err = l.Eval(env, in); err != nil {
		return nil, nil, err
	}
	b, err = r.Eval(env, in)
	return a, b, err
}

// whole reports whether a vector holds whole numbers or instants.
func whole(v *column.Vector) bool { return v.Ints != nil && v.Type != column.Boolean }

func (n *arithmetic) floats(dst, a, b []float64) {
	switch n.op {
	case '+':
		calc.PlusRun(dst, a, b)
	case '-':
		calc.MinusRun(dst, a, b)
	case '*':
		calc.TimesRun(dst, a, b)
	case '/':
		for i := range dst {
			dst[i] = at(a, i)/at(b, i) + 0 // results have no negative zero
		}
	default:
		for i := range dst {
			dst[i] = modulo(at(a, i), at(b, i))
		}
	}
}

// digits computes the rows again in which an operand has more digits than a double.
func (n *arithmetic) digits(dst []float64, a, b *column.Vector) {
	for i := range dst {
		if a.IsNull(i) || b.IsNull(i) {
			continue
		}
		p, long := digitsOfValue(a.Value(i))
		q, long2 := digitsOfValue(b.Value(i))
		if dst[i]-dst[i] == 0 && (long || long2) {
			dst[i] = exactly(n.op, p, q)
		}
	}
}

// digitsOfValue returns a finite number as the decimal that it stands for; long: that is none of a double.
func digitsOfValue(v column.Value) (d core.Decimal, long bool) {
	if v.Type == column.String {
		v = column.ParseValue(v.Text)
	}
	if d, long = v.Decimal(); long || v.IsNull() {
		return d, long
	}
	if n, err := calc.ParseNumber(v.Format()); err == nil && n.Exact {
		d = core.Decimal{Significand: n.Significand, Exponent: n.Exponent}
	}
	return d, false
}

// exactly returns the double nearest to p op q, where op is + - or *.
func exactly(op byte, p, q core.Decimal) float64 {
	x, y := big.NewInt(p.Significand), big.NewInt(q.Significand)
	exponent := min(p.Exponent, q.Exponent)
	const far = 400 // more than any two doubles have between them would need memory for nothing
	if op == '*' {
		x.Mul(x, y)
		exponent = p.Exponent + q.Exponent
	} else {
		shift := func(n *big.Int, e int32) {
			n.Mul(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(min(e-exponent, far))), nil))
		}
		shift(x, p.Exponent)
		shift(y, q.Exponent)
		if op == '-' {
			y.Neg(y)
		}
		x.Add(x, y)
	}
	v, err := strconv.ParseFloat(x.String()+"e"+strconv.Itoa(int(exponent)), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return nan
	}
	return v + 0 // results have no negative zero
}

// modulo has the sign of m, and is computed in doubles; by 0 it is NaN. The product is rounded by itself on every processor.
func modulo(x, m float64) float64 { return x - float64(m*math.Floor(x/m)) }

// integers computes in whole numbers; it is false when a result is none, or has more than 64 bits. NULLs hold anything and must do no harm.
func (n *arithmetic) integers(a, b *column.Vector, rows int) bool {
	x, y := a.Ints[:stored(a)], b.Ints[:stored(b)]
	dst := n.out.makeInts(rows)
	switch n.op {
	case '+':
		for i := range dst {
			p, q := at(x, i), at(y, i)
			sum := p + q
			if (p^sum)&(q^sum) < 0 {
				return false
			}
			dst[i] = sum
		}
	case '-':
		for i := range dst {
			p, q := at(x, i), at(y, i)
			difference := p - q
			if (p^q)&(p^difference) < 0 {
				return false
			}
			dst[i] = difference
		}
	case '*':
		for i := range dst {
			product, ok := multiply(at(x, i), at(y, i))
			if !ok {
				return false
			}
			dst[i] = product
		}
	case '%':
		for i := range dst {
			p, m := at(x, i), at(y, i)
			if m == 0 {
				return false
			}
			if dst[i] = p % m; dst[i] != 0 && (dst[i] < 0) != (m < 0) {
				dst[i] += m
			}
		}
	default:
		return false
	}
	return true
}

func multiply(a, b int64) (product int64, ok bool) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	// As signed numbers the high word is less by the other factor for each negative one.
	high := int64(hi) - a>>63&b - b>>63&a
	return int64(lo), high == int64(lo)>>63
}
