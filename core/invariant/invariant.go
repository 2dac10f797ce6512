// Package invariant states what must be true between two lines of code, and checks it in builds with the tag `invariants`.
//
//	if invariant.Enabled {
//		invariant.Check(slices.IsSorted(times), "series %d: times out of order", id)
//	}
//
// The constant Enabled lets the compiler drop the whole block from ordinary builds, the evaluation of its arguments included.
package invariant

import "fmt"

// Check panics with the text when ok is false. A broken invariant is a fault of the program, never of its input.
func Check(ok bool, format string, args ...any) {
	if !ok {
		panic("invariant: " + fmt.Sprintf(format, args...))
	}
}
