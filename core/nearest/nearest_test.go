package nearest

import (
	"strings"
	"testing"
)

func TestName(t *testing.T) {
	known := []string{"value", "valve", "Entity", "entity.label", ""}
	for _, tt := range []struct {
		name  string
		below int
		want  string
	}{
		{"valeu", 3, "value"},   // two letters replaced
		{"valuee", 3, "value"},  // one too many
		{"valu", 2, "value"},    // one too few, and valve is two away
		{"vale", 3, "value"},    // one from both: the first
		{"ENTITI", 3, "Entity"}, // case does not count, the spelling is that of the list
		{"valeu", 2, ""},        // not near enough
		{"", 1, ""},             // the empty name is known
		{"nothing like it", 3, ""},
		{strings.Repeat("v", 200), 300, ""}, // not compared
	} {
		if got := Name(tt.name, known, tt.below); got != tt.want {
			t.Errorf("%q below %d: got %q, want %q", tt.name, tt.below, got, tt.want)
		}
	}
	if got := Name("value", nil, 3); got != "" {
		t.Errorf("got %q of nothing", got)
	}
}
