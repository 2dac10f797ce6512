package index

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"sync"
)

// reader is what reading a run needs: copies of the pieces that were read last. It is used by one goroutine.
type reader struct {
	run   *Run
	leaf  page
	node  page
	group page
	list  page

	above  block // of node
	block  block // of leaf
	number uint32
	parsed bool // that block is leaf number of the keys of run
	walk   walker
}

// readers keeps the buffers of readers, some KiB each.
var readers = sync.Pool{New: func() any { return new(reader) }}

func newReader(r *Run) *reader {
	rd := readers.Get().(*reader)
	rd.use(r)
	return rd
}

// use turns to another run.
func (rd *reader) use(r *Run) {
	if rd.run != r {
		rd.run, rd.parsed = r, false
	}
}

// done gives the reader back. It must not keep the run from the collector, nor take a later one at the same address for it.
func (rd *reader) done() {
	rd.use(nil)
	for _, p := range []*page{&rd.leaf, &rd.node, &rd.group, &rd.list} {
		p.run, p.body = nil, nil
		if cap(p.buf) > maxKept {
			p.buf = nil
		}
	}
	readers.Put(rd)
}

// open reads a block into b.
func (rd *reader) open(p *page, at piece, b *block, columns int) error {
	body, err := p.read(rd.run, at)
	if err != nil {
		return err
	}
	if err := b.parse(body, columns); err != nil {
		return rd.run.damage(at, err)
	}
	return nil
}

// descend returns the number and the place of the leaf that holds text, or would. The tree is not empty.
func (t *tree) descend(rd *reader, text []byte) (uint32, piece, error) {
	return t.down(rd, func(b *block, _ int) (int, error) {
		slot, found, err := b.search(text)
		if !found && slot > 0 {
			slot--
		}
		return slot, err
	})
}

// leaf returns the place of leaf number of the tree.
func (t *tree) leaf(rd *reader, number uint32) (piece, error) {
	_, at, err := t.down(rd, func(b *block, level int) (int, error) {
		n := number
		for range level - 1 {
			n /= nodeSize
		}
		if int(n%nodeSize) >= b.n {
			return 0, errBlock
		}
		return int(n % nodeSize), nil
	})
	return at, err
}

// down goes from the root to a leaf, through the children that choose names.
func (t *tree) down(rd *reader, choose func(b *block, level int) (int, error)) (uint32, piece, error) {
	b := &rd.above
	number, at := uint32(0), t.root
	for level := t.levels; level > 0; level-- {
		at.seed = t.kind.seed(level, number)
		if err := rd.open(&rd.node, at, b, t.kind.columns(level)); err != nil {
			return 0, at, err
		}
		slot, err := choose(b, level)
		if err != nil {
			return 0, at, rd.run.damage(at, err)
		}
		number = number*nodeSize + uint32(slot)
		at.off, at.n = int64(b.columns[0].at(slot)), int64(b.columns[1].at(slot))
	}
	at.seed = t.kind.seed(0, number)
	return number, at, nil
}

// openLeaf reads leaf number of the keys, through the array of their offsets.
func (rd *reader) openLeaf(number uint32) error {
	if rd.parsed && rd.number == number {
		return nil
	}
	start, err := rd.run.blocks.at(rd, number)
	if err != nil {
		return err
	}
	end, err := rd.run.blocks.at(rd, number+1)
	if err != nil {
		return err
	}
	return rd.takeLeaf(number, piece{int64(start), int64(end) - int64(start), kindKeys.seed(0, number)})
}

// takeLeaf reads leaf number of the keys, which lies at the piece.
func (rd *reader) takeLeaf(number uint32, at piece) error {
	rd.parsed = false
	if err := rd.open(&rd.leaf, at, &rd.block, kindKeys.columns(0)); err != nil {
		return err
	}
	if want := min(leafSize, int64(rd.run.keys.count)-int64(number)*leafSize); int64(rd.block.n) != want {
		return rd.run.damage(at, errBlock)
	}
	rd.number, rd.parsed = number, true
	rd.walk.start(&rd.block)
	return nil
}

// place is where a key is, or would be.
type place struct {
	ordinal uint32 // of the first key that is not below
	id      ID     // None when the key is not in the run
	leaf    piece
}

// find looks a key up. The ordinal of a key beyond the last one is the number of keys.
func (rd *reader) find(key []byte) (p place, err error) {
	t := &rd.run.keys
	if t.count == 0 {
		return place{}, nil
	}
	number, at, err := t.descend(rd, key)
	if err != nil {
		return place{}, err
	}
	if number >= t.leaves() {
		return place{}, rd.run.damage(at, errBlock)
	}
	return rd.findIn(number, at, key)
}

// findIn is find when the leaf is known.
func (rd *reader) findIn(number uint32, at piece, key []byte) (p place, err error) {
	if !rd.parsed || rd.number != number {
		if err := rd.takeLeaf(number, at); err != nil {
			return place{}, err
		}
	}
	slot, found, err := rd.block.search(key)
	if err != nil {
		return place{}, rd.run.damage(at, err)
	}
	p = place{ordinal: number*leafSize + uint32(slot), leaf: at}
	if found {
		p.id = ID(rd.block.columns[0].at(slot))
	}
	return p, nil
}

// idAt returns the id of an ordinal below the number of keys.
func (rd *reader) idAt(ordinal uint32) (ID, error) {
	if err := rd.openLeaf(ordinal / leafSize); err != nil {
		return None, err
	}
	return ID(rd.block.columns[0].at(int(ordinal % leafSize))), nil
}

// keyAt returns the key of an ordinal, valid until the reader reads another leaf or key. Going up from key to key costs one step each.
func (rd *reader) keyAt(ordinal uint32) ([]byte, error) {
	if err := rd.openLeaf(ordinal / leafSize); err != nil {
		return nil, err
	}
	slot := int(ordinal % leafSize)
	if rd.walk.slot > slot {
		rd.walk.start(&rd.block)
	}
	for rd.walk.slot < slot {
		if err := rd.walk.next(); err != nil {
			return nil, rd.run.damage(piece{off: rd.leaf.off, n: int64(len(rd.leaf.buf))}, err)
		}
	}
	return rd.walk.text, nil
}

// ordinalOf returns the ordinal of an id, the number of keys when the run does not have it.
func (rd *reader) ordinalOf(id ID) (uint32, error) {
	r := rd.run
	none := r.keys.count
	if none == 0 || id < r.low || id > r.high {
		return none, nil
	}
	i := uint32(id - r.low)
	if r.ids.count > 0 {
		var err error
		if i, err = r.ids.search(rd, uint64(id)); err != nil || i == r.ids.count {
			return none, err
		}
		if got, err := r.ids.at(rd, i); err != nil || got != uint64(id) {
			return none, err
		}
	}
	ordinal, err := r.ordinals.at(rd, i)
	if err != nil {
		return none, err
	}
	if ordinal > uint64(none) {
		return none, r.damage(piece{off: r.ordinals.off, n: r.ordinals.size()}, errBlock)
	}
	return uint32(ordinal), nil
}

// names walks the names of a tree of entities or tags in order, from the first that is not below a text.
type names struct {
	rd     *reader // of its own: block points into its leaf
	tree   *tree
	number uint32 // of the leaf that is read next
	block  block
	walk   walker
	ahead  bool // next has been called for the first name already
	err    error
}

// from starts a walk. Both it and the reader are the caller's.
func (t *tree) from(rd *reader, text []byte) *names {
	n := &names{rd: rd, tree: t}
	if t.count == 0 || len(text) == 0 {
		return n
	}
	if n.number, _, n.err = t.descend(rd, text); n.err != nil {
		return n
	}
	for n.next() {
		if bytes.Compare(n.walk.text, text) >= 0 {
			n.ahead = true
			break
		}
	}
	return n
}

// next goes to the next name; false at the end and after an error.
func (n *names) next() bool {
	if n.ahead {
		n.ahead = false
		return true
	}
	for n.err == nil && n.walk.slot+1 >= n.block.n {
		if n.number >= n.tree.leaves() {
			return false
		}
		n.err = n.open()
	}
	if n.err != nil {
		return false
	}
	if err := n.walk.next(); err != nil {
		n.err = n.rd.run.damage(piece{off: n.rd.leaf.off, n: int64(len(n.rd.leaf.buf))}, err)
	}
	return n.err == nil
}

func (n *names) open() error {
	at, err := n.tree.leaf(n.rd, n.number)
	if err != nil {
		return err
	}
	n.rd.parsed = false
	if err := n.rd.open(&n.rd.leaf, at, &n.block, n.tree.kind.columns(0)); err != nil {
		return err
	}
	n.number++
	n.walk.start(&n.block)
	return nil
}

// column returns a number of the current name.
func (n *names) column(c int) uint64 { return n.block.columns[c].at(n.walk.slot) }

// lookup returns the numbers of a name, false when the tree does not have it.
func (t *tree) lookup(rd *reader, text []byte) (numbers [2]uint64, found bool, err error) {
	if t.count == 0 {
		return numbers, false, nil
	}
	_, at, err := t.descend(rd, text)
	if err != nil {
		return numbers, false, err
	}
	b := &rd.block
	rd.parsed = false
	if err := rd.open(&rd.leaf, at, b, t.kind.columns(0)); err != nil {
		return numbers, false, err
	}
	slot, found, err := b.search(text)
	if err != nil {
		return numbers, false, rd.run.damage(at, err)
	}
	if found {
		for c := range t.kind.columns(0) {
			numbers[c] = b.columns[c].at(slot)
		}
	}
	return numbers, found, nil
}

// postings appends the ordinals of the series of an entity, in ascending order. The list is
//
//	crc u32 | uvarint count | uvarint first | (count-1) * uvarint difference to the one before
func (rd *reader) postings(dst []uint32, off, n uint64) ([]uint32, error) {
	at := piece{int64(off), int64(n), kindPostings.seed(0, uint32(off))}
	body, err := rd.list.read(rd.run, at)
	if err != nil {
		return dst, err
	}
	count, k := binary.Uvarint(body)
	if k <= 0 || count > uint64(len(body)-k) {
		return dst, rd.run.damage(at, errBlock)
	}
	dst = slices.Grow(dst, int(count))
	body = body[k:]
	ordinal := uint64(0)
	for i := range count {
		step, k := binary.Uvarint(body)
		if ordinal += step; k <= 0 || step > math.MaxUint32 || ordinal >= uint64(rd.run.keys.count) || i > 0 && step == 0 {
			return dst, rd.run.damage(at, errBlock)
		}
		body = body[k:]
		dst = append(dst, uint32(ordinal))
	}
	return dst, nil
}

// ofEntity appends the ordinals of the series of a named entity.
func (rd *reader) ofEntity(dst []uint32, name []byte) ([]uint32, error) {
	numbers, found, err := rd.run.entities.lookup(rd, name)
	if err != nil || !found {
		return dst, err
	}
	return rd.postings(dst, numbers[0], numbers[1])
}
