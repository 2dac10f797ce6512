package invariant

import "testing"

func TestCheck(t *testing.T) {
	Check(true, "never shown")
	defer func() {
		if got := recover(); got != "invariant: 3 is not 4" {
			t.Errorf("panic %v", got)
		}
	}()
	Check(false, "%d is not %d", 3, 4)
	t.Error("a broken invariant did not panic")
}
