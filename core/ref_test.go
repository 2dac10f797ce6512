package core

import (
	"fmt"
	"testing"
)

// Ref gives each key one number, in the order in which they come, whatever the table behind it has grown to meanwhile.
func TestRefOfManyKeys(t *testing.T) {
	const keys = 5000
	var b Batch
	b.Grow(10, 10)
	key := func(i int) SeriesKey {
		k := SeriesKey{Metric: fmt.Sprint("m", i%7), Entity: fmt.Sprint("e", i/7)}
		if i%3 == 0 {
			k.Tags = Tags{{"disk", fmt.Sprint(i % 2)}}
		}
		return k
	}
	for round := range 2 {
		for i := range keys {
			if ref := b.Ref(key(i)); ref != uint32(i) {
				t.Fatalf("round %d: key %d has the reference %d", round, i, ref)
			}
		}
	}
	if len(b.Keys) != keys {
		t.Errorf("%d keys", len(b.Keys))
	}
	// What is no part of one name is none of another: the parts are compared, not their concatenation.
	if b.Ref(SeriesKey{Metric: "m", Entity: "0e0"}) == b.Ref(SeriesKey{Metric: "m0", Entity: "e0"}) {
		t.Error("two keys have one reference")
	}
}
