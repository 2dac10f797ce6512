package forecast

import (
	"context"
	"math"

	"gonum.org/v1/gonum/mat"
)

// regression is a least squares problem with columns 1, x[t-1], ..., x[t-p] and right side x[t], reduced to its triangle by QR decomposition of blocks
// of rows (Golub, Van Loan, Matrix Computations, 5.2). The triangle of all columns holds those of the first ones: one decomposition serves every
// order up to p.
type regression struct {
	r *mat.Dense // upper triangle, (p+2)²; the last column is the right side
	p int
}

// regress reads x[p:] as rows.
func regress(ctx context.Context, x []float64, p int) (*regression, error) {
	cols := p + 2
	rows := max(2*cols, 1024)
	g := &regression{p: p}
	for t := p; t < len(x); {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		kept := 0
		if g.r != nil {
			kept = cols
		}
		n := min(rows, len(x)-t)
		block := mat.NewDense(max(kept+n, cols), cols, nil) // rows of zeros change nothing
		if g.r != nil {
			block.Slice(0, cols, 0, cols).(*mat.Dense).Copy(g.r)
		}
		for i := range n {
			row := block.RawRowView(kept + i)
			row[0] = 1
			for lag := 1; lag <= p; lag++ {
				row[lag] = x[t+i-lag]
			}
			row[p+1] = x[t+i]
		}
		var qr mat.QR
		qr.Factorize(block)
		var full mat.Dense
		qr.RTo(&full)
		g.r = mat.DenseCopyOf(full.Slice(0, cols, 0, cols))
		t += n
	}
	return g, nil
}

// rank returns the greatest order whose columns are independent: a column depends on those before it when almost nothing of it is left.
func (g *regression) rank() int {
	for j := 1; j <= g.p; j++ {
		whole := 0.0
		for i := 0; i <= j; i++ {
			whole = math.Hypot(whole, g.r.At(i, j))
		}
		if math.Abs(g.r.At(j, j)) <= 1e-9*whole {
			return j - 1
		}
	}
	return g.p
}

// solve returns the constant and the p coefficients, p up to rank.
func (g *regression) solve(p int) []float64 {
	c := make([]float64, p+1)
	for i := p; i >= 0; i-- {
		v := g.r.At(i, g.p+1)
		for j := i + 1; j <= p; j++ {
			v -= g.r.At(i, j) * c[j]
		}
		c[i] = v / g.r.At(i, i)
	}
	return c
}
