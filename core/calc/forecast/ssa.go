package forecast

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/cmplx"
	"slices"

	"gonum.org/v1/gonum/dsp/fourier"
)

// errNoSpectrum is a failure of the eigenvalue iteration, which finite numbers do not cause.
var errNoSpectrum = errors.New("ssa: the eigenvalues of the input do not converge")

// SSA is singular spectrum analysis (GZ 2.1): the series is embedded into a trajectory matrix, which is decomposed into eigentriples; groups of them are
// turned back into series and continued by the recurrence that they obey.
type SSA struct {
	// Limit is the most eigentriples used; 0 chooses: all above Threshold if that is set, all that Groups name, else as many as forecast the score tail
	// best.
	Limit  int
	Method Method
	// Window is the number of rows of the matrix as a percentage of the input, up to 50; 0 is 50. There are 2 rows at least.
	Window float64
	// Threshold leaves out eigentriples whose singular value is less than that percentage of the root of the sum of all eigenvalues; negative is none.
	Threshold float64

	Groups     []Set // of eigentriples, greatest first; nil: grouped by what follows
	Count      int   // most groups; 0: one group of everything, or no limit for Novosibirsk and XMeans
	Clustering Clustering
	Cut        float64 // for Novosibirsk
	Stack      bool    // each group has the eigentriples of those before it as well
	Union      []Set   // of groups: the groups of the result

	Median   bool // anti-diagonals give their median instead of their mean
	Direct   bool // averages diagonals without Fourier transform
	Vector   bool // vector forecast instead of the recurrent one
	Original bool // continues the input instead of the reconstructed series
}

// MaxTriples bounds SSA.Limit and what Groups may name.
const MaxTriples = 500

// automaticTriples is how many eigentriples an automatic choice looks at.
const automaticTriples = 32

// SSAFit is the result with the parameters that gave it.
type SSAFit struct {
	Groups  []SSAGroup
	Window  int // rows of the matrix
	Method  Method
	Triples int // eigentriples used
}

// SSAGroup is the part of the series that a group of eigentriples explains, and its continuation.
type SSAGroup struct {
	Output
	Name    string
	Triples []int // counted from 1
}

// Run decomposes. The score tail defaults to the wanted values, at most a third of the input. Fewer than 3 numbers are a ShortError, unless they are all
// the same. Groups without eigentriples are left out.
func (a SSA) Run(ctx context.Context, in Input) (SSAFit, error) {
	s, err := in.prepare()
	if err != nil {
		return SSAFit{}, err
	}
	n := len(s.y)
	l, method := a.rows(n)
	if s.constant {
		return SSAFit{Groups: []SSAGroup{{Output: s.unchanging(0), Name: "A", Triples: []int{1}}}, Window: l, Method: method, Triples: 1}, nil
	}
	if n < 3 {
		return SSAFit{}, &ShortError{Have: n, Need: 3, For: "ssa"}
	}
	most, automatic := a.wanted()
	if automatic {
		if most, err = a.choose(ctx, s, most); err != nil {
			return SSAFit{}, err
		}
	}
	h := newHankel(s.y, l)
	triples, err := decompose(ctx, h, method, min(most, l))
	if err != nil {
		return SSAFit{}, err
	}
	triples = a.above(h, triples)
	fit := SSAFit{Window: l, Method: method, Triples: len(triples)}
	groups, names, err := a.group(ctx, h, triples)
	if err != nil {
		return SSAFit{}, err
	}
	for i, members := range groups {
		out, err := a.restored(ctx, s, h, pick(triples, members))
		if err != nil {
			return SSAFit{}, err
		}
		for j := range members {
			members[j]++
		}
		fit.Groups = append(fit.Groups, SSAGroup{Output: out, Name: names[i], Triples: members})
	}
	return fit, nil
}

// rows returns the length of the window and the method that goes with it.
func (a SSA) rows(n int) (int, Method) {
	percent := a.Window
	if percent <= 0 {
		percent = 50
	}
	l := max(min(int(float64(n)*percent/100), (n+1)/2), 2)
	switch {
	case a.Method == Full:
		return min(l, MaxFullWindow), Full
	case a.Method == Auto && l <= autoFullWindow:
		return l, Full
	}
	return l, Truncated
}

// wanted returns how many eigentriples to compute at most, and whether their number is to be chosen by forecasting the score tail.
func (a SSA) wanted() (most int, automatic bool) {
	switch {
	case a.Groups != nil:
		for _, g := range a.Groups {
			n, open := g.most()
			if open {
				n = max(n, automaticTriples)
			}
			most = max(most, n)
		}
		if a.Limit > 0 {
			most = min(most, a.Limit)
		}
		return most, false
	case a.Limit > 0:
		return a.Limit, false
	case a.Threshold >= 0:
		return 100, false
	}
	return automaticTriples, true
}

// above drops the eigentriples below the threshold.
func (a SSA) above(h *hankel, triples []triple) []triple {
	if a.Threshold < 0 {
		return triples
	}
	total := 0.0
	for t, x := range h.x {
		total += x * x * h.weights[t]
	}
	limit := a.Threshold / 100 * math.Sqrt(total)
	n := 1 // the greatest stays in any case
	for n < len(triples) && math.Sqrt(triples[n].value) >= limit {
		n++
	}
	return triples[:min(n, len(triples))]
}

// choose returns the number of eigentriples of the input without its score tail whose recurrent forecast is closest to that tail. More must be better
// by a part in a hundred. There are at least as many as groups are wanted.
func (a SSA) choose(ctx context.Context, s *series, most int) (int, error) {
	n := len(s.y)
	head := n - s.scored(n, min(max(len(s.ahead), 1), n/3))
	if head < 3 {
		return max(a.Count, 1), nil
	}
	l, method := a.rows(head)
	if l > autoFullWindow {
		method = Truncated // only the leading eigentriples matter here
	}
	h := newHankel(s.y[:head], l)
	triples, err := decompose(ctx, h, method, min(most, l))
	if err != nil {
		return 0, err
	}
	chosen, least := max(a.Count, 1), math.Inf(1)
	signal, r := make([]float64, head), newRecurrence(l)
	for i, t := range triples {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		h.average(signal, t.u, t.v)
		r.add(t.u)
		c, ok := r.coefficients()
		if !ok || i+1 < a.Count {
			continue
		}
		if e := meanSquare(s.y[head:], recur(c, signal, n-head)); s.better(e, least) {
			chosen, least = i+1, e
		}
	}
	return chosen, nil
}

func pick(triples []triple, members []int) []triple {
	out := make([]triple, len(members))
	for i, m := range members {
		out[i] = triples[m]
	}
	return out
}

// restored reconstructs and continues one group.
func (a SSA) restored(ctx context.Context, s *series, h *hankel, group []triple) (Output, error) {
	fitted := make([]float64, len(h.x))
	var us, vs [][]float64
	r := newRecurrence(h.l)
	for _, t := range group {
		us, vs = append(us, t.u), append(vs, t.v)
		r.add(t.u)
		switch {
		case a.Median:
		case a.Direct:
			h.averageDirect(fitted, t.u, t.v)
		default:
			h.average(fitted, t.u, t.v)
		}
		if err := ctx.Err(); err != nil {
			return Output{}, err
		}
	}
	if a.Median {
		if err := h.median(ctx, fitted, us, vs); err != nil {
			return Output{}, err
		}
	}
	base := fitted
	if a.Original {
		base = h.x
	}
	var following []float64
	switch c, ok := r.coefficients(); {
	case !ok: // the signal has no recurrence: its last value stands
		following = make([]float64, s.steps())
		for i := range following {
			following[i] = fitted[len(fitted)-1]
		}
	case a.Vector:
		following = vector(us, c, base, s.steps())
	default:
		following = recur(c, base, s.steps())
	}
	return s.output(following, fitted, 0), nil
}

// group returns the members of each group of the result, from 0, and its name.
func (a SSA) group(ctx context.Context, h *hankel, triples []triple) (groups [][]int, names []string, err error) {
	add := func(members []int, name string) {
		if len(members) > 0 {
			groups, names = append(groups, members), append(names, name)
		}
	}
	if a.Groups != nil {
		for i, set := range a.Groups {
			add(set.of(len(triples)), Letters(i+1))
		}
		return groups, names, nil
	}
	formed, err := a.formed(ctx, h, triples)
	if err != nil {
		return nil, nil, err
	}
	if a.Union == nil {
		for i, members := range formed {
			add(members, Letters(i+1))
		}
		return groups, names, nil
	}
	for i, set := range a.Union {
		var members []int
		for _, g := range set.of(len(formed)) {
			members = append(members, formed[g]...)
		}
		slices.Sort(members)
		add(slices.Compact(members), Letters(i+1))
	}
	return groups, names, nil
}

// formed clusters the eigentriples and orders the groups by what they explain, the most first.
func (a SSA) formed(ctx context.Context, h *hankel, triples []triple) ([][]int, error) {
	all := make([]int, len(triples))
	for i := range all {
		all[i] = i
	}
	if len(triples) < 2 || a.Count == 1 || a.Count == 0 && a.Clustering == Hierarchical {
		return [][]int{all}, nil
	}
	distance, err := separations(ctx, h, triples)
	if err != nil {
		return nil, err
	}
	groups := a.clusters(distance, features(triples))
	weight := func(members []int) (sum float64) {
		for _, m := range members {
			sum += triples[m].value
		}
		return sum
	}
	slices.SortStableFunc(groups, func(x, y []int) int { return cmp.Compare(weight(y), weight(x)) })
	for i := 1; i < len(groups) && a.Stack; i++ {
		groups[i] = append(slices.Clone(groups[i-1]), groups[i]...)
	}
	for _, g := range groups {
		slices.Sort(g)
	}
	return groups, nil
}

// separations returns 1 - |w-correlation| between the series of single eigentriples (GZ 2.3.3): 0 for two that mix, 1 for two that are separable.
func separations(ctx context.Context, h *hankel, triples []triple) ([][]float64, error) {
	n := len(triples)
	single, length := make([][]float64, n), make([]float64, n)
	product := func(a, b []float64) (sum float64) {
		for t, w := range h.weights {
			sum += w * a[t] * b[t]
		}
		return sum
	}
	distance := make([][]float64, n)
	for i, t := range triples {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		single[i], distance[i] = make([]float64, len(h.x)), make([]float64, n)
		h.average(single[i], t.u, t.v)
		length[i] = math.Sqrt(product(single[i], single[i]))
		for j := range i {
			if length[i] > 0 && length[j] > 0 {
				distance[i][j] = max(1-math.Abs(product(single[i], single[j]))/length[i]/length[j], 0)
			} else {
				distance[i][j] = 1
			}
			distance[j][i] = distance[i][j]
		}
	}
	return distance, nil
}

// features places each eigentriple by the frequency that dominates its left vector, 0 to 1 for the highest, and by the logarithm of its singular value,
// 1 for the greatest and 0 for a millionth of it.
func features(triples []triple) [][]float64 {
	size := fastSize(2 * len(triples[0].u))
	fft := fourier.NewFFT(size)
	padded := make([]float64, size)
	out := make([][]float64, len(triples))
	for i, t := range triples {
		clear(padded[copy(padded, t.u):])
		at, most := 0, -1.0
		for f, c := range fft.Coefficients(nil, padded) {
			if p := cmplx.Abs(c); p > most {
				at, most = f, p
			}
		}
		share := math.Log10(t.value/triples[0].value) / 12
		out[i] = []float64{2 * float64(at) / float64(size), max(1+share, 0)}
	}
	return out
}
