package filter

import (
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
)

// TestRegexWorkIsBounded: no deadline interrupts a match, so a long text and a large pattern are refused together, each alone is not.
func TestRegexWorkIsBounded(t *testing.T) {
	large := strings.Repeat("a?", 2000) + strings.Repeat("a", 2000) // some 6,000 steps
	for _, test := range []struct {
		name, pattern string
		bytes         int
		refused       bool
	}{
		{"large pattern, short text", large, 3000, false},
		{"small pattern, long text", "a*b", 4_000_000, false},
		{"large pattern, long text", large, 1_000_000, true},
	} {
		m := core.Message{Text: strings.Repeat("a", test.bytes)}
		for _, expression := range []string{"message REGEX '" + test.pattern + "'", "regexAny(message, list('" + test.pattern + "'))"} {
			e, err := Compile(Messages, expression)
			if err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
			if _, err = e.Match(MessageEnv{&m}); (core.CodeOf(err) == core.TooLarge) != test.refused {
				t.Errorf("%s: %v", test.name, err)
			}
		}
	}
}
