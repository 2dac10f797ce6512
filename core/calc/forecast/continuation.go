package forecast

import (
	"gonum.org/v1/gonum/floats"
)

// recurrence is the linear recurrence x[t] = sum of r[i]*x[t-L+1+i], i = 0..L-2, that the signal of some left vectors obeys (GZ 3.1.2.1):
// r = sum of last(u)*u without its last element, over 1 - sum of last(u)².
type recurrence struct {
	sum      []float64
	vertical float64 // the sum of last(u)²
}

func newRecurrence(l int) *recurrence { return &recurrence{sum: make([]float64, l-1)} }

func (r *recurrence) add(u []float64) {
	last := u[len(u)-1]
	floats.AddScaled(r.sum, last, u[:len(u)-1])
	r.vertical += last * last
}

// coefficients returns r, or false when the space is vertical and no recurrence exists.
func (r *recurrence) coefficients() ([]float64, bool) {
	rest := 1 - r.vertical
	if rest < 1e-10 {
		return nil, false
	}
	c := append([]float64(nil), r.sum...)
	floats.Scale(1/rest, c)
	return c, true
}

// recur continues base by the recurrence c.
func recur(c, base []float64, steps int) []float64 {
	n := len(c)
	x := append(make([]float64, 0, n+steps), base[len(base)-n:]...)
	for i := range steps {
		x = append(x, floats.Dot(c, x[i:i+n]))
	}
	return x[n:]
}

// vector continues base by vector forecasting (GZ 3.1.2.2). Columns of the trajectory matrix stay in the span of the left vectors us: the column that
// follows one has its last L-1 elements, projected, and the value of the recurrence c below them. In the coordinates of the span that step is one small
// matrix A. The value h ahead is the mean of row L-1-i of us times column h+i, i = 0..L-1, over the diagonal; since column h+i is A^i times column h,
// the rows can be summed up beforehand: the sum of (Aᵀ)^i times row L-1-i, by Horner's rule.
func vector(us [][]float64, c, base []float64, steps int) []float64 {
	l, r := len(us[0]), len(us)
	step := shift(us, c)
	sum, row := make([]float64, r), make([]float64, r)
	for k := range l {
		for j := range r {
			row[j] = floats.Dot(step[j], sum) + us[j][k]
		}
		sum, row = row, sum
	}
	column, next := coordinates(us, base[len(base)-l:]), make([]float64, r)
	out := make([]float64, steps)
	for h := range out {
		clear(next)
		for j, share := range column {
			floats.AddScaled(next, share, step[j])
		}
		column, next = next, column
		out[h] = floats.Dot(sum, column) / float64(l)
	}
	return out
}

// coordinates projects z on the span of us.
func coordinates(us [][]float64, z []float64) []float64 {
	out := make([]float64, len(us))
	for i, u := range us {
		out[i] = floats.Dot(u, z)
	}
	return out
}

// shift returns the columns of the matrix that takes the coordinates of one column of the trajectory matrix to those of the next.
func shift(us [][]float64, c []float64) [][]float64 {
	l := len(us[0])
	vertical := 0.0
	for _, u := range us {
		vertical += u[l-1] * u[l-1]
	}
	step := make([][]float64, len(us))
	next := make([]float64, l)
	for j, from := range us {
		z := from[1:]
		clear(next)
		for _, u := range us {
			floats.AddScaled(next[:l-1], floats.Dot(u[:l-1], z), u[:l-1])
		}
		tail := floats.Dot(c, z)
		floats.AddScaled(next[:l-1], (1-vertical)*tail, c)
		next[l-1] = tail
		step[j] = coordinates(us, next)
	}
	return step
}
