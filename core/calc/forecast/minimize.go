package forecast

import "context"

// minimize looks for the point of the unit cube with the least cost, by compass search (Kolda, Lewis, Torczon, Optimization by direct search, SIAM
// Review 45, 2003): from the best point of a coarse grid it steps along one axis at a time, and halves the step when no direction is better. fixed holds
// a coordinate in place; nil leaves it free. Of equal points the one visited first stays: for a series without noise that is the calmest.
func minimize(ctx context.Context, fixed []*float64, grid []float64, cost func([]float64) float64) ([]float64, float64, error) {
	best, least := make([]float64, len(fixed)), 0.0
	point := make([]float64, len(fixed))
	seen := false
	var visit func(axis int) error
	visit = func(axis int) error {
		if axis == len(fixed) {
			if c := cost(point); !seen || c < least {
				copy(best, point)
				least, seen = c, true
			}
			return ctx.Err()
		}
		if fixed[axis] != nil {
			point[axis] = *fixed[axis]
			return visit(axis + 1)
		}
		for _, v := range grid {
			point[axis] = v
			if err := visit(axis + 1); err != nil {
				return err
			}
		}
		return nil
	}
	if err := visit(0); err != nil {
		return nil, 0, err
	}
	const start, precision = 0.1, 0.002
	for step := start; step > precision; {
		improved := false
		for axis := range fixed {
			if fixed[axis] != nil {
				continue
			}
			for _, d := range [...]float64{step, -step} {
				copy(point, best)
				point[axis] = min(max(best[axis]+d, 0), 1)
				if c := cost(point); c < least*(1-1e-9) {
					copy(best, point)
					least, improved = c, true
				}
			}
		}
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		if !improved {
			step /= 2
		}
	}
	return best, least, nil
}
