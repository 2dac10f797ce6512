package index

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"maps"
	"slices"
)

// output counts what it writes and remembers the first error, after which it does nothing.
type output struct {
	w   *bufio.Writer
	off int64
	sum uint32 // CRC-32C of what was written
	err error
}

func (o *output) write(b []byte) {
	if o.err == nil {
		_, o.err = o.w.Write(b)
	}
	o.off += int64(len(b))
	o.sum = crc32.Update(o.sum, castagnoli, b)
}

// treeWriter writes the leaves of a tree as they are filled, and the nodes, which it keeps until then, behind the last leaf: a 32nd of the leaves' texts.
type treeWriter struct {
	kind   kind
	out    *output
	leaf   blockWriter
	first  []byte // least text that tells the leaf from the one before
	last   []byte // of all texts
	leaves uint32
	count  uint32
	parent *level
	root   piece
	placed func(off int64) // called with the offset of each leaf
	buf    []byte
}

// level is the nodes of one level, made from bottom to top.
type level struct {
	node  blockWriter
	first []byte
	done  []sealed
}

// sealed is a node that is yet to be written.
type sealed struct {
	first []byte
	bytes []byte
}

func newTree(k kind, out *output) *treeWriter {
	return &treeWriter{kind: k, out: out, parent: &level{}, placed: func(int64) {}}
}

func (t *treeWriter) add(text []byte, numbers [2]uint64) {
	if t.leaf.n == 0 {
		t.first = append(t.first[:0], text[:min(len(text), commonPrefix(t.last, text)+1)]...)
		if t.count == 0 {
			t.first = t.first[:0]
		}
	}
	t.leaf.add(text, numbers)
	t.last = append(t.last[:0], text...)
	if t.count++; t.leaf.n == leafSize {
		t.flush()
	}
}

func (t *treeWriter) flush() {
	t.buf = t.leaf.flush(t.buf[:0], t.kind.columns(0), t.kind.seed(0, t.leaves))
	t.placed(t.out.off)
	t.root = piece{off: t.out.off, n: int64(len(t.buf))}
	t.parent.add(t.kind.seed(1, t.leaves/nodeSize), t.first, t.root)
	t.out.write(t.buf)
	t.leaves++
}

// add puts a child into the node that is being made, whose seed is given.
func (l *level) add(seed uint32, first []byte, at piece) {
	if l.node.n == 0 {
		l.first = append(l.first[:0], first...)
	}
	l.node.add(first, [2]uint64{uint64(at.off), uint64(at.n)})
	if l.node.n == nodeSize {
		l.seal(seed)
	}
}

func (l *level) seal(seed uint32) {
	l.done = append(l.done, sealed{bytes.Clone(l.first), l.node.flush(nil, 2, seed)})
}

// finish writes the last leaf and the nodes.
func (t *treeWriter) finish() tree {
	if t.leaf.n > 0 {
		t.flush()
	}
	at := tree{kind: t.kind, count: t.count, root: t.root}
	if t.leaves == 0 {
		at.root = piece{off: t.out.off}
		return at
	}
	children := t.leaves
	for l := t.parent; children > 1; {
		at.levels++
		if l.node.n > 0 {
			l.seal(t.kind.seed(at.levels, (children-1)/nodeSize))
		}
		above := &level{}
		for i, node := range l.done {
			at.root = piece{off: t.out.off, n: int64(len(node.bytes))}
			above.add(t.kind.seed(at.levels+1, uint32(i)/nodeSize), node.first, at.root)
			t.out.write(node.bytes)
		}
		children, l = uint32(len(l.done)), above
	}
	return at
}

// runWriter writes a run from front to back: keys, ids, entities, the rest. Its memory is some two bytes a key: the filter, the offsets of the leaves and
// the nodes of one tree.
type runWriter struct {
	footer
	out    output
	tree   *treeWriter // of the keys, then of the entities
	leaves []int64     // offsets
	lines  []byte      // of the filter
	tags   map[string]uint64
	buf    []byte
}

// newRunWriter begins a run of at most upTo keys.
func newRunWriter(w io.Writer, upTo int) *runWriter {
	rw := &runWriter{out: output{w: bufio.NewWriterSize(w, 256<<10)}, tags: map[string]uint64{}}
	rw.filter.lines = linesFor(uint32(upTo))
	rw.lines = make([]byte, rw.filter.size())
	rw.out.write(encodeHeader())
	rw.tree = newTree(kindKeys, &rw.out)
	rw.tree.placed = func(off int64) { rw.leaves = append(rw.leaves, off) }
	return rw
}

// key adds the next key in order.
func (rw *runWriter) key(key []byte, id ID) error {
	if rw.tree.count > 0 && bytes.Compare(rw.tree.last, key) >= 0 {
		return fmt.Errorf("index: write: key %q of series %d is not above the one before it, %q", key, id, rw.tree.last)
	}
	rw.tree.add(key, [2]uint64{uint64(id)})
	hash := filterHash(key)
	line := int64(lineOf(hash, rw.filter.lines)) * lineBytes
	set(rw.lines[line+crcBytes:line+lineBytes], hash)
	if rw.low == None || id < rw.low {
		rw.low = id
	}
	rw.high = max(rw.high, id)
	for tag := range tagNames(key) {
		rw.tags[string(tag)]++
	}
	return rw.out.err
}

// endKeys writes what the leaves need to be found, and the ids, which come in ascending order, twice.
func (rw *runWriter) endKeys(ids iter.Seq2[ID, uint32]) {
	if rw.tree.leaf.n > 0 {
		rw.tree.flush()
	}
	end := rw.out.off
	rw.keys = rw.tree.finish()
	blocks := newArray(&rw.out, fit(kindBlocks, headerBytes, uint64(end)))
	if rw.keys.count > 0 {
		for _, off := range rw.leaves {
			blocks.add(uint64(off))
		}
		blocks.add(uint64(end))
	}
	rw.blocks = blocks.finish()
	count := rw.keys.count
	sparse := count > 0 && uint64(rw.high-rw.low) >= 2*uint64(count)
	list := newArray(&rw.out, fit(kindIDs, uint64(rw.low), uint64(rw.high)))
	if sparse {
		for id := range ids {
			list.add(uint64(id))
		}
	}
	rw.ids = list.finish()
	ordinals := newArray(&rw.out, fit(kindOrdinals, 0, uint64(count)))
	next := rw.low
	for id, ordinal := range ids {
		for ; !sparse && next < id; next++ {
			ordinals.add(uint64(count))
		}
		ordinals.add(uint64(ordinal))
		next = id + 1
	}
	rw.ordinals = ordinals.finish()
	rw.tree = newTree(kindEntities, &rw.out)
}

// entity adds the next entity in order of the names, with the ordinals of its series in ascending order. The postings go out before the leaf does.
func (rw *runWriter) entity(name []byte, ordinals []uint32) error {
	buf := append(rw.buf[:0], make([]byte, crcBytes)...)
	buf = binary.AppendUvarint(buf, uint64(len(ordinals)))
	before := uint32(0)
	for _, ordinal := range ordinals {
		buf = binary.AppendUvarint(buf, uint64(ordinal-before))
		before = ordinal
	}
	off := rw.out.off
	seal(buf, kindPostings.seed(0, uint32(off)))
	rw.out.write(buf)
	rw.tree.add(name, [2]uint64{uint64(off), uint64(len(buf))})
	rw.buf = buf
	return rw.out.err
}

// finish writes what is left. Gone ids come in ascending order.
func (rw *runWriter) finish(gone []ID) error {
	rw.entities = rw.tree.finish()
	tags := newTree(kindTags, &rw.out)
	for _, name := range slices.Sorted(maps.Keys(rw.tags)) {
		tags.add([]byte(name), [2]uint64{rw.tags[name]})
	}
	rw.footer.tags = tags.finish()
	rw.gone = array{kind: kindGone, off: rw.out.off}
	if len(gone) > 0 {
		list := newArray(&rw.out, fit(kindGone, uint64(gone[0]), uint64(gone[len(gone)-1])))
		for _, id := range gone {
			list.add(uint64(id))
		}
		rw.gone = list.finish()
	}
	rw.filter.off = rw.out.off
	for n := range rw.filter.lines {
		line := rw.lines[int64(n)*lineBytes:][:lineBytes]
		seal(line, kindFilter.seed(0, n))
		rw.out.write(line)
	}
	rw.length, rw.content = rw.out.off+footerBytes, rw.out.sum
	rw.out.write(rw.encode())
	if rw.out.err == nil {
		rw.out.err = rw.out.w.Flush()
	}
	if rw.out.err != nil {
		return fmt.Errorf("index: write: %w", rw.out.err)
	}
	return nil
}
