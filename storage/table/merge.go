package table

import (
	"io"
	"slices"
)

const (
	// maxFiles bounds the files that a Get may have to look at.
	maxFiles = 6
	// mergeRun is how many files of similar size are merged: each entry is rewritten once for each factor of four in size.
	mergeRun = 4
	// tierFactor is what "similar" means: a file belongs to the newer ones when it is at most so many times as large as all of them.
	tierFactor = 2
	// deadShare is the part of the entries that may be marks of deleted keys before everything is merged.
	deadShare = 4
)

// PlanMerge returns the files that should be merged next, from old to new, neighbours in age; nil when all is well.
func (t *Table) PlanMerge() []*File {
	files := t.parts.Load().files
	var entries, dead int64
	sizes := make([]int64, len(files))
	for i, f := range files {
		entries, dead, sizes[i] = entries+f.entries, dead+f.tombstones, f.Size()
	}
	from := planMerge(sizes)
	if dead*deadShare > entries {
		from = 0
	}
	if from >= len(files) {
		return nil
	}
	return slices.Clone(files[from:])
}

// planMerge returns the first of the files to merge, given their sizes from old to new; all newer ones go with it. len(sizes) is none.
func planMerge(sizes []int64) int {
	n := len(sizes)
	if n < 2 {
		return n
	}
	from, sum := n-1, sizes[n-1]
	for from > 0 && sizes[from-1] <= tierFactor*sum {
		from--
		sum += sizes[from]
	}
	if n > maxFiles {
		return min(from, maxFiles-2) // so many stay, with the merged one, that there is room for the next
	}
	if n-from >= mergeRun {
		return from
	}
	return n
}

// Merge writes the entries of some files, neighbours from old to new, as one. Marks of deleted keys are dropped when the oldest file is among them.
func (t *Table) Merge(w io.Writer, files []*File) error {
	p := plan{marks: keepTombstones}
	if all := t.parts.Load().files; len(all) > 0 && files[0] == all[0] {
		p.marks = dropTombstones
	}
	var sources []source
	for _, f := range slices.Backward(files) {
		p.entries += f.entries
		if f.entries > 0 {
			sources = append(sources, &fileSource{file: f})
		}
	}
	return writeAll(w, sources, p)
}
