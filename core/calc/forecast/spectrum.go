package forecast

import (
	"context"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// Method says how a trajectory matrix is decomposed.
type Method uint8

const (
	Auto      Method = iota // Full for windows of up to 200 rows, where it is the faster one, else Truncated
	Full                    // every eigentriple, from the lag-covariance matrix
	Truncated               // the leading ones, by a block Krylov method that only multiplies with the matrix
)

// MaxFullWindow bounds the window of Full, whose work grows with its third power: about a second at the bound.
const MaxFullWindow = 512

// autoFullWindow is the longest window for which Auto is Full.
const autoFullWindow = 200

// negligible is the eigenvalue, as a share of the greatest, below which an eigentriple is rounding.
const negligible = 1e-13

// triple is one eigentriple of a trajectory matrix: matrix = sum of u vᵀ, where u has length 1 and v the length of the singular value.
type triple struct {
	u, v  []float64
	value float64 // the eigenvalue: the square of the singular value
}

// decompose returns up to most eigentriples that are not negligible, the greatest first.
func decompose(ctx context.Context, h *hankel, method Method, most int) ([]triple, error) {
	var triples []triple
	var err error
	if method == Full {
		triples, err = fullSpectrum(ctx, h, most)
	} else {
		triples, err = krylov(ctx, h, most)
	}
	if err != nil {
		return nil, err
	}
	for i := range triples {
		t := &triples[i]
		t.v = make([]float64, h.k)
		h.mul(t.v, t.u)
		sign(t)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return triples, nil
}

// sign makes the sum of u positive, so that the result does not depend on how it was found.
func sign(t *triple) {
	if floats.Sum(t.u) < 0 {
		floats.Scale(-1, t.u)
		floats.Scale(-1, t.v)
	}
}

func fullSpectrum(ctx context.Context, h *hankel, most int) ([]triple, error) {
	return ritz(ctx, h.covariance(), func(y []float64) []float64 { return y }, most)
}

// ritz returns the greatest eigenpairs of a symmetric matrix as triples without v. vector turns an eigenvector into u.
func ritz(ctx context.Context, s *mat.SymDense, vector func([]float64) []float64, most int) ([]triple, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(s, true) {
		return nil, errNoSpectrum
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	values := eigen.Values(nil) // ascending
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	var triples []triple
	for i := len(values) - 1; i >= 0 && len(triples) < most; i-- {
		if values[i] <= negligible*values[len(values)-1] || values[i] <= 0 {
			break
		}
		triples = append(triples, triple{u: vector(mat.Col(nil, i, &vectors)), value: values[i]})
	}
	return triples, nil
}

// maxBasis bounds the basis of Truncated to 64 MiB, and its images to as much again.
const maxBasis = 8 << 20

// krylov computes leading eigenpairs of S = X Xᵀ in the space that S spans from a block of vectors (C. Musco, C. Musco, Randomized block Krylov methods,
// 2015; Golub, Van Loan 10.3). A block finds the pairs of equal singular values that every sine wave has. The basis is kept orthogonal in full, and has
// three dimensions for each wanted pair; where maxBasis makes it smaller, half as many pairs as dimensions are good enough to be used.
func krylov(ctx context.Context, h *hankel, most int) ([]triple, error) {
	const width = 8
	dimensions := min(h.l, 3*most+4*width)
	if bound := maxBasis / h.l; dimensions > bound {
		dimensions, most = bound, min(most, bound/2)
	}
	random := rand.New(rand.NewPCG(1, 2)) // the same start always
	var basis, images [][]float64
	block := make([][]float64, min(width, h.l))
	for b := range block {
		block[b] = make([]float64, h.l)
		for i := range block[b] {
			block[b][i] = random.NormFloat64()
		}
	}
	wide, scale := make([]float64, h.k), 0.0
	for len(block) > 0 && len(basis) < dimensions {
		var next [][]float64
		for _, q := range block {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			length := floats.Norm(q, 2)
			if len(basis) == dimensions || !orthogonalise(q, basis, 1e-10*max(length, scale)) {
				continue
			}
			image := make([]float64, h.l)
			h.mul(wide, q)
			h.mul(image, wide)
			scale = max(scale, floats.Norm(image, 2))
			basis, images = append(basis, q), append(images, image)
			next = append(next, append([]float64(nil), image...))
		}
		block = next
	}
	m := len(basis)
	s := mat.NewSymDense(m, nil)
	for i := range m {
		for j := i; j < m; j++ {
			s.SetSym(i, j, (floats.Dot(basis[i], images[j])+floats.Dot(basis[j], images[i]))/2)
		}
	}
	return ritz(ctx, s, func(y []float64) []float64 {
		u := make([]float64, h.l)
		for i, c := range y {
			floats.AddScaled(u, c, basis[i])
		}
		return u
	}, most)
}

// orthogonalise makes q a unit vector orthogonal to the basis. It reports false when no more than least is left of it. The second pass removes what
// rounding left in the first.
func orthogonalise(q []float64, basis [][]float64, least float64) bool {
	for range 2 {
		for _, b := range basis {
			floats.AddScaled(q, -floats.Dot(b, q), b)
		}
	}
	length := floats.Norm(q, 2)
	if length <= least || math.IsNaN(length) {
		return false
	}
	floats.Scale(1/length, q)
	return true
}
