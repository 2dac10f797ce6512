package core

import (
	"bytes"
	"testing"
)

func TestStoresOfASeries(t *testing.T) {
	k := SeriesKey{"flow", "pump-3", Tags{{"a", "1"}, {"b", "2"}}}
	seen := map[string]bool{}
	for _, c := range []struct {
		kind     Kind
		forecast string
	}{{Measured, ""}, {Predicted, ""}, {Predicted, "plan"}, {Predicted, "f"}, {Deviation, ""}, {Deviation, "plan"}} {
		in := k.In(c.kind, c.forecast)
		canonical := in.Append(nil)
		if seen[string(canonical)] {
			t.Errorf("%v %q: the key %q is taken", c.kind, c.forecast, canonical)
		}
		seen[string(canonical)] = true
		back, err := ParseSeriesKey(canonical)
		if err != nil || back.Compare(in) != 0 {
			t.Errorf("%v %q: %q comes back as %v, %v", c.kind, c.forecast, canonical, back, err)
		}
		measured, kind, forecast, ok := back.Store()
		if !ok || kind != c.kind || forecast != c.forecast || measured.Compare(k) != 0 {
			t.Errorf("%v %q: got %v, %v, %q, %v", c.kind, c.forecast, measured, kind, forecast, ok)
		}
		if in.IsMeasured() != (c.kind == Measured) {
			t.Errorf("%v %q: measured %v", c.kind, c.forecast, in.IsMeasured())
		}
		for _, q := range []SeriesQuery{{}, {Kind: Predicted}, {Kind: Predicted, Forecast: "plan"}, {Kind: Deviation, Forecast: "plan"}} {
			tags, ok := q.InStore(&in)
			if want := q.Kind == c.kind && q.Forecast == c.forecast; ok != want || ok && !tags.Equal(k.Tags) {
				t.Errorf("%v %q in the store of %v %q: %v, %v, want %v", c.kind, c.forecast, q.Kind, q.Forecast, tags, ok, want)
			}
		}
	}
	// All series of a metric and entity lie together, the measured one without tags first.
	first, second := SeriesKey{Metric: "m", Entity: "e"}, SeriesKey{Metric: "m", Entity: "e", Tags: Tags{{"a", "1"}}}
	if f := first.In(Predicted, ""); first.Compare(f) >= 0 || f.Compare(second) >= 0 || bytes.Compare(f.Append(nil), second.Append(nil)) >= 0 {
		t.Errorf("the key of a forecast is out of order")
	}
	if (Tag{Name: kindTag, Value: "x"}).SetsStore() || (Tag{Name: "a", Value: "f"}).SetsStore() || !(Tag{Name: kindTag, Value: "f"}).SetsStore() {
		t.Error("a tag that sets the store is not told from others")
	}
}
