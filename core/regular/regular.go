// Package regular judges regular expressions of users before they are compiled.
package regular

import "regexp/syntax"

// Size estimates the steps that a parsed expression compiles to. The parser bounds nested repetitions to 1000 in all, so that nothing overflows.
func Size(re *syntax.Regexp) int {
	size := 1
	if re.Op == syntax.OpLiteral {
		size = len(re.Rune)
	}
	for _, part := range re.Sub {
		size += Size(part)
	}
	if re.Op == syntax.OpRepeat {
		size *= max(re.Min, re.Max, 1)
	}
	return size
}
