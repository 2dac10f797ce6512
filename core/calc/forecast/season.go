package forecast

import (
	"cmp"
	"math"
	"math/cmplx"
	"slices"

	"gonum.org/v1/gonum/dsp/fourier"
)

// maxSeasons is how many periods are tried: each costs some two hundred runs over the input.
const maxSeasons = 6

// seasons returns candidate periods up to longest places, ascending: the lags at which the autocorrelation of the series without its line has its
// highest peaks. Lags before it first falls below zero are nearness, not season, unless it never falls.
func seasons(s *series, longest int) []int {
	r := autocorrelation(s, longest+1)
	from := slices.IndexFunc(r, func(v float64) bool { return v < 0 })
	if from < 0 {
		from = 1
	}
	// Four standard errors of the correlation of noise, since there are many lags; a short series has no such peaks, and gets the benefit of the doubt.
	chance := min(max(4/math.Sqrt(float64(len(s.y))), 0.1), 0.3)
	var peaks []int
	for lag := max(from, 2); lag <= longest; lag++ {
		if r[lag] > chance && r[lag] >= r[lag-1] && r[lag] > r[lag+1] {
			peaks = append(peaks, lag)
		}
	}
	slices.SortStableFunc(peaks, func(a, b int) int { return cmp.Compare(r[b], r[a]) })
	var chosen []int
	for _, lag := range peaks {
		near := func(other int) bool { return max(lag-other, other-lag) <= other/10 }
		if !slices.ContainsFunc(chosen, near) {
			chosen = append(chosen, lag)
		}
		if len(chosen) == maxSeasons {
			break
		}
	}
	slices.Sort(chosen)
	return fundamental(chosen, r, s.slots[len(s.y)-1]-s.slots[0]+1)
}

// fundamental leaves out the multiples of a shorter period at which the series, span places long, resembles itself no more than at that one. The
// correlation is compared without the bias that shrinks it for long lags.
func fundamental(lags []int, r []float64, span int) []int {
	resemblance := func(lag int) float64 { return r[lag] * float64(span) / float64(span-lag) }
	var kept []int
	for _, lag := range lags {
		repeats := func(shorter int) bool {
			times := (lag + shorter/2) / shorter
			off := lag - times*shorter
			return times > 1 && max(off, -off) <= max(lag/50, 1) && resemblance(lag) < 1.05*resemblance(shorter)
		}
		if !slices.ContainsFunc(kept, repeats) {
			kept = append(kept, lag)
		}
	}
	return kept
}

// autocorrelation returns the correlation of the series with itself at lags 0 to most, by places; places without a value count as zero. It is the biased
// estimate (Brockwell, Davis 1.4.1), which prefers a period to its multiples, computed as the inverse transform of the power spectrum.
func autocorrelation(s *series, most int) []float64 {
	span := s.slots[len(s.y)-1] - s.slots[0] + 1
	slope, level := line(s)
	size := fastSize(span + most + 1)
	padded := make([]float64, size)
	for i, v := range s.y {
		at := s.slots[i] - s.slots[0]
		padded[at] = v - (level + slope*float64(at))
	}
	fft := fourier.NewFFT(size)
	power := fft.Coefficients(nil, padded)
	for i, c := range power {
		power[i] = complex(real(c*cmplx.Conj(c)), 0)
	}
	r := fft.Sequence(padded, power)[:most+1]
	if r[0] == 0 {
		return r
	}
	norm := 1 / r[0]
	for i := range r {
		r[i] *= norm
	}
	return r
}

// line is the least squares line through the values by place, counted from the first.
func line(s *series) (slope, level float64) {
	n := float64(len(s.y))
	var x, y float64
	for i, v := range s.y {
		x += float64(s.slots[i]-s.slots[0]) / n
		y += v / n
	}
	var xx, xy float64
	for i, v := range s.y {
		d := float64(s.slots[i]-s.slots[0]) - x
		xx += d * d
		xy += d * (v - y)
	}
	if xx > 0 {
		slope = xy / xx
	}
	return slope, y - slope*x
}

// fastSize returns the least product of 2, 3 and 5 that is not below n: transforms of other lengths are slow.
func fastSize(n int) int {
	for ; ; n++ {
		rest := n
		for _, p := range [...]int{2, 3, 5} {
			for rest%p == 0 {
				rest /= p
			}
		}
		if rest == 1 {
			return n
		}
	}
}
