package query

import (
	"testing"

	"github.com/tidemark-db/tidemark/core"
)

// TestBudget: what one run holds at most is reserved until its end, and all runs share the budget.
func TestBudget(t *testing.T) {
	b := &Budget{Limit: 100}
	first, endFirst := Source{Samples: 80, Budget: b}.open()
	h := first.hold()
	for range 4 { // four series one after the other: the largest counts
		h.count = 0
		if err := h.add(60); err != nil {
			t.Fatal(err)
		}
	}
	group := first.hold() // what a group keeps counts beside the series at hand
	if err := group.add(30); err != nil {
		t.Fatal(err)
	}
	if used := b.used.Load(); used != 90 {
		t.Fatalf("%d samples reserved, want 60 and 30", used)
	}
	second, endSecond := Source{Samples: 80, Budget: b}.open()
	other := second.hold()
	if err := other.add(11); core.CodeOf(err) != core.Unavailable {
		t.Errorf("91st to 101st sample: %v, want Unavailable", err)
	}
	if err := h.add(30); core.CodeOf(err) != core.TooLarge {
		t.Errorf("a query of 90 samples: %v, want TooLarge", err)
	}
	endFirst()
	other = second.hold()
	if err := other.add(80); err != nil {
		t.Errorf("after the end of the first run: %v", err)
	}
	endSecond()
	if used := b.used.Load(); used != 0 {
		t.Errorf("%d samples reserved after the end of all", used)
	}
}
