package schema

// history keeps earlier rows as far as the program can ask for them: those that it names (cell(1, col)), those at a distance (cell(row-1, col)), and when it
// computes a row, all of them while they fit. maxKept bounds the rows: half of it is for the first rows of the file, the rest for the latest ones. With notEmptyUp
// also the latest cell of each column that is not empty is kept, up to maxColumns columns and maxKept bytes.
type history struct {
	needs    needs
	head     []keptRow // rows 1, 2 and so on
	headSize int
	headFull bool
	tail     []keptRow // the latest rows behind head, without a gap
	tailEnd  int       // number of the last one
	tailSize int
	above    []lifted // by column
	liftSize int
	liftFull bool
}

// keptRow is a row with its cells in one text.
type keptRow struct {
	cells string
	ends  []uint32
}

// lifted is the latest cell of a column that is not empty.
type lifted struct {
	row  int
	cell string
}

func (k keptRow) Size() int    { return len(k.ends) }
func (k keptRow) Text() string { return k.cells }

func (k keptRow) Cell(column int) string {
	start := uint32(0)
	if column > 1 {
		start = k.ends[column-2]
	}
	return k.cells[start:k.ends[column-1]]
}

func (k keptRow) bytes() int { return len(k.cells) + 4*len(k.ends) + 48 }

func keepRow(row Row) keptRow {
	if row == nil {
		return keptRow{}
	}
	k := keptRow{ends: make([]uint32, row.Size())}
	cells := make([]byte, 0, len(row.Text()))
	for i := range k.ends {
		cells = append(cells, row.Cell(i+1)...)
		k.ends[i] = uint32(len(cells))
	}
	k.cells = string(cells)
	return k
}

// add keeps a row that was dealt with; nil is one without cells.
func (h *history) add(n int, row Row) {
	if h.needs.above && row != nil {
		h.lift(n, row)
	}
	inHead := !h.headFull && (n <= h.needs.first || h.needs.any)
	if !inHead && h.needs.back == 0 && !h.needs.any {
		return
	}
	k := keepRow(row)
	if inHead && h.headSize+k.bytes() <= maxKept/2 {
		h.head = append(h.head, k)
		h.headSize += k.bytes()
		return
	}
	h.headFull = true
	if h.needs.back == 0 && !h.needs.any {
		return
	}
	h.tail = append(h.tail, k)
	h.tailEnd = n
	h.tailSize += k.bytes()
	for len(h.tail) > 0 && (h.tailSize > maxKept/2 || !h.needs.any && len(h.tail) > h.needs.back) {
		h.tailSize -= h.tail[0].bytes()
		h.tail[0] = keptRow{}
		h.tail = h.tail[1:]
	}
}

func (h *history) lift(n int, row Row) {
	for column := 1; column <= min(row.Size(), maxColumns); column++ {
		cell := row.Cell(column)
		if cell == "" {
			continue
		}
		for len(h.above) < column {
			h.above = append(h.above, lifted{})
		}
		l := &h.above[column-1]
		h.liftSize += len(cell) - len(l.cell)
		if h.liftSize > maxKept {
			h.liftFull = true
			return
		}
		*l = lifted{n, cell}
	}
}

// row returns an earlier row, nil when it is not kept.
func (h *history) row(n int) Row {
	if n <= len(h.head) {
		return h.head[n-1]
	}
	if first := h.tailEnd - len(h.tail) + 1; n >= first && n <= h.tailEnd {
		return h.tail[n-first]
	}
	return nil
}
