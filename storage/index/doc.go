// Package index finds series by name: canonical key bytes to id, id to key, metric or entity to the ids of their series in key order, and the names
// of entities, metrics and tags in use.
//
// A key has the canonical form `metric 00 entity 00 (tag 01 value 00)*`, so that the bytes sort as metric, entity, tags.
//
// The state is a stack of layers, from new to old: the memory part, which takes all changes; the frozen part, which is being written to a file; and
// runs, immutable sorted files (FORMAT.md, Index). Each living series is in exactly one layer. A series that is removed or gets another key while an
// older layer holds it is marked stale in that layer, in a bitmap, and its id is noted in the memory part, which hands it on to the next run: so the
// marks can be made again when the files are opened. A lookup therefore may ask the layers in any order, and need not resolve who overrides whom.
//
//	part.go, table.go, postings.go   the memory part: byte arenas and open addressing tables without pointers, which the collector need not scan
//	block.go, array.go, filter.go    what a run is made of; tree.go finds in it; run.go opens it
//	write.go, frozen.go, merge.go    a run is written in one sequential pass
//	index.go, lookup.go, select.go, names.go, layers.go   the stack
//	check.go, dump.go                a run verified and printed
//
// In front of the runs stands a fastcache of hot keys outside the Go heap, which remembers the block of a key. That cache may drop or confuse
// entries, so each hit is verified in the block, and a miss falls through to the runs: it can make a lookup slow, never wrong.
//
// # Locks
//
// One writer at a time may call Add, Remove, Rename and Freeze, and one worker beside it WriteFrozen, Adopt, PlanMerge, MergeRuns and Replace;
// everything else may run beside both. Index.mu guards the stack and the memory part; part.sorting, which guards the sorted lists, is taken inside it.
// Runs are read outside of Index.mu: a reader holds the stack it started with (attempt), and the last one to let go of a run ends its mapping.
//
// # Damage
//
// Every block that is read from a run is checked first. A damaged one is as if its contents were not there, its run remembers the first such error
// (Run.Err), and Index.OnDamage and Index.Err tell it.
package index
