package expr

import "errors"

// What a constant expression may cost when it is folded, without a query that could be ended. What costs more is left to the rows that need it.
const (
	foldedBytes = 16 << 10 // of a text
	stepsAtOnce = 1 << 20  // some milliseconds
)

var errCostly = errors.New("expr: too costly to be folded")

// growth takes the memory of the query for the texts that a node makes of a batch; short ones are free. It keeps what it took: the next batch is like this one.
type growth struct{ held int64 }

// to takes what is missing to so many bytes.
func (g *growth) to(env *Env, bytes int64) error {
	if bytes <= max(g.held, foldedBytes) {
		return nil
	}
	if env == nil {
		return errCostly
	}
	if env.Room == nil {
		return nil
	}
	step := max(bytes-g.held, foldedBytes)
	if err := env.Room(step); err != nil {
		return err
	}
	g.held += step
	return nil
}

// effort counts steps of what may take long, and asks now and then whether the query is to end.
type effort struct {
	env   *Env
	steps int
	err   error
}

// spend counts steps and reports whether to go on.
func (e *effort) spend(steps int) bool {
	if e.steps += steps; e.steps < stepsAtOnce {
		return true
	}
	e.steps = 0
	switch {
	case e.env == nil:
		e.err = errCostly
	case e.env.Halt != nil:
		e.err = e.env.Halt()
	}
	return e.err == nil
}
