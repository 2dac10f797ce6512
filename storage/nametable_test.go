package storage

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestNameTable compares with a map: names come, go and come back under other objects, through many a growth.
func TestNameTable(t *testing.T) {
	type object struct {
		name string
		n    int
	}
	table, want := newNameTable(func(o *object) string { return o.name }), map[string]*object{}
	r := rand.New(rand.NewPCG(1, 2))
	put := func(name string, n int) {
		o := table.next()
		o.name, o.n = name, n
		table.put()
		want[name] = o
	}
	const puts = 20_000
	for i := range puts {
		put(fmt.Sprint("n", r.IntN(5000)), i)
		if gone := fmt.Sprint("n", r.IntN(5000)); i%3 == 0 {
			table.remove(gone)
			delete(want, gone)
		}
	}
	for i := range 6000 {
		name := fmt.Sprint("n", i)
		if got := table.find(name); got != want[name] {
			t.Fatalf("%s is %+v, want %+v", name, got, want[name])
		}
	}
	n := 0
	for o := range table.objects() {
		if o.n != n {
			t.Fatalf("object %d is %d", n, o.n)
		}
		n++
	}
	if n != puts {
		t.Errorf("%d objects", n)
	}
	if len(table.slots) > 3*5000 {
		t.Errorf("%d slots for at most 5000 names", len(table.slots))
	}
}
