package index

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidemark-db/tidemark/storage/vfs"
)

// Keys are found in the same places whether they are asked for in their order or not: in memory, in several runs, renamed, removed, and not there at all.
func TestLookupInOrder(t *testing.T) {
	const series = 600
	fs := vfs.NewMem()
	x := open(t)
	random := rand.New(rand.NewPCG(1, 2))
	key := func(i int) string { return keyOf(fmt.Sprintf("m%d", i%3), fmt.Sprintf("e%04d", i), "tag", "v") }
	want := map[string]ID{}
	for i, at := range random.Perm(series) {
		want[key(at)] = x.Add(key(at))
		if i%200 == 150 { // the rest stays in memory
			x.Freeze()
			x.Adopt(writeRun(t, fs, fmt.Sprint(i, ".index"), x.WriteFrozen))
		}
	}
	for at := range series / 10 {
		id := want[key(at*10)]
		delete(want, key(at*10))
		if at%2 == 0 {
			x.Remove(id)
		} else if renamed := key(series + at); x.Rename(id, renamed) {
			want[renamed] = id
		}
	}
	var keys []string
	for at := range series + series/5 {
		keys = append(keys, key(at))
	}
	random.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	var arena []byte
	var ends []int
	order := make([]uint32, len(keys))
	for i, k := range keys {
		arena = append(arena, k...)
		ends, order[i] = append(ends, len(arena)), uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int {
		if keys[a] < keys[b] {
			return -1
		}
		return 1
	})
	for name, order := range map[string][]uint32{"in order": order, "as they lie": nil} {
		ids := make([]ID, len(keys))
		x.LookupAll(arena, ends, ids, order)
		for i, k := range keys {
			if ids[i] != want[k] {
				t.Fatalf("%s: %q is %d, want %d", name, k, ids[i], want[k])
			}
		}
	}
}
