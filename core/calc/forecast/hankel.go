package forecast

import (
	"context"
	"slices"

	"gonum.org/v1/gonum/dsp/fourier"
	"gonum.org/v1/gonum/mat"
)

// hankel is the trajectory matrix of a series (GZ 2.1.1): L rows, K = N-L+1 columns, element [i][j] = x[i+j]. It is never built: products are
// correlations of the series with a vector, computed by fast Fourier transform in N log N.
type hankel struct {
	x        []float64
	l, k     int
	fft      *fourier.FFT
	spectrum []complex128 // of x, padded
	padded   []float64
	product  []complex128
	weights  []float64 // how many elements of the matrix hold x[t]
}

func newHankel(x []float64, l int) *hankel {
	h := &hankel{x: x, l: l, k: len(x) - l + 1}
	size := fastSize(len(x))
	h.fft = fourier.NewFFT(size)
	h.padded = make([]float64, size)
	copy(h.padded, x)
	h.spectrum = h.fft.Coefficients(nil, h.padded)
	h.product = make([]complex128, len(h.spectrum))
	h.weights = make([]float64, len(x))
	for t := range h.weights {
		h.weights[t] = float64(min(t+1, len(x)-t, h.l, h.k))
	}
	return h
}

// mul sets dst[i] to the sum of x[i+j]*v[j]: the matrix times v of length K, or its transpose times v of length L, by the length of v.
func (h *hankel) mul(dst, v []float64) {
	clear(h.padded[copy(h.padded, v):])
	h.fft.Coefficients(h.product, h.padded)
	for i, c := range h.product {
		h.product[i] = h.spectrum[i] * complex(real(c), -imag(c))
	}
	h.fft.Sequence(h.padded, h.product)
	norm := 1 / float64(len(h.padded))
	for i := range dst {
		dst[i] = h.padded[i] * norm
	}
}

// covariance returns the lag-covariance matrix S = X Xᵀ, in which each element follows from the one diagonally before it.
func (h *hankel) covariance() *mat.SymDense {
	s := mat.NewSymDense(h.l, nil)
	for j := range h.l {
		sum := 0.0
		for t := range h.k {
			sum += h.x[t] * h.x[t+j]
		}
		s.SetSym(0, j, sum)
		for i := 1; i+j < h.l; i++ {
			sum += h.x[i-1+h.k]*h.x[i+j-1+h.k] - h.x[i-1]*h.x[i+j-1]
			s.SetSym(i, i+j, sum)
		}
	}
	return s
}

// average adds the series of the matrix u vᵀ to dst: each value is the mean of an anti-diagonal (GZ 2.1.1, diagonal averaging). The sums along
// the diagonals are the convolution of u and v.
func (h *hankel) average(dst, u, v []float64) {
	clear(h.padded[copy(h.padded, u):])
	a := h.fft.Coefficients(nil, h.padded)
	clear(h.padded[copy(h.padded, v):])
	h.fft.Coefficients(h.product, h.padded)
	for i := range h.product {
		h.product[i] *= a[i]
	}
	h.fft.Sequence(h.padded, h.product)
	norm := 1 / float64(len(h.padded))
	for t := range dst {
		dst[t] += h.padded[t] * norm / h.weights[t]
	}
}

// averageDirect is average without the transform, in L*K steps.
func (h *hankel) averageDirect(dst, u, v []float64) {
	for t := range dst {
		sum := 0.0
		for i := max(0, t-h.k+1); i < min(t+1, h.l); i++ {
			sum += u[i] * v[t-i]
		}
		dst[t] += sum / h.weights[t]
	}
}

// median sets dst to the medians of the anti-diagonals of the sum of u vᵀ over several pairs.
func (h *hankel) median(ctx context.Context, dst []float64, us, vs [][]float64) error {
	var diagonal []float64
	for t := range dst {
		if err := ctx.Err(); err != nil {
			return err
		}
		diagonal = diagonal[:0]
		for i := max(0, t-h.k+1); i < min(t+1, h.l); i++ {
			sum := 0.0
			for p, u := range us {
				sum += u[i] * vs[p][t-i]
			}
			diagonal = append(diagonal, sum)
		}
		slices.Sort(diagonal)
		middle := len(diagonal) / 2
		dst[t] = diagonal[middle]
		if len(diagonal)%2 == 0 {
			dst[t] = (diagonal[middle-1] + diagonal[middle]) / 2
		}
	}
	return nil
}
