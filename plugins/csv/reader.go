package csv

import (
	"bytes"
	"iter"
	"math"
	"unicode/utf8"

	"github.com/tidemark-db/tidemark/wasm/guest"
)

// reader cuts a stream of chunks into records and cells. Records end at LF, CR LF or CR, outside the text qualifier, or at its terminator.
type reader struct {
	delimiter  byte
	qualifier  byte // 0 = none
	comment    byte // 0 = none
	padding    byte // 0 = none; fixed width only
	terminator byte // 0 = end of line
	widths     []int
	skip       int  // physical lines still to drop
	limit      int  // bytes of a record
	grid       bool // rows of empty cells count

	lines   int // read, as the terminator ends them; those to drop, and without a terminator all, are physical
	rest    []byte
	started bool
	ends    []uint32 // room for the cells of a plain row
	cells   []cell
	plain   []byte // backing of cells that had doubled qualifiers
	record  record // the one in work; pointed to, so that it is not copied from call to call
}

// record is one record. Its cells are valid until the next one. Those of a plain row are only known by their ends, which costs a guest much
// less than a slice each.
type record struct {
	line  int // of its first byte, from 1; of records that end at a terminator their number
	text  []byte
	ends  []uint32 // of a plain row: cell i lies behind ends[i], up to ends[i+1]; the first is all ones, so that one more is 0
	cells []cell   // of any other
	fault string   // why it could not be cut into cells
	place int      // cell of the fault, from 1
}

type cell struct {
	text   []byte
	quoted bool
}

// size is the number of cells.
func (r *record) size() int { return max(len(r.ends)-1, len(r.cells)) }

// isPlain reports whether a column can be asked of cut.
func (r *record) isPlain(column int) bool { return uint(column)+1 < uint(len(r.ends)) }

// cut returns a cell of a plain row with the blanks around it.
func (r *record) cut(column int) []byte {
	ends := r.ends[column : column+2]
	return r.text[ends[0]+1 : ends[1]]
}

// raw returns a cell as it was cut, nil when the record is too short. Blanks around a quoted cell are part of it.
func (r *record) raw(column int) []byte {
	if r.isPlain(column) {
		b := r.cut(column)
		if len(b) == 0 || b[0] > ' ' && b[len(b)-1] > ' ' {
			return b // nothing to trim
		}
		return trim(b)
	}
	if uint(column) < uint(len(r.cells)) {
		return r.cells[column].text
	}
	return nil
}

// blank reports whether every cell is empty: spreadsheets end their files with rows of delimiters.
func (r *record) blank() bool {
	for i := range r.size() {
		if len(r.raw(i)) > 0 {
			return false
		}
	}
	return true
}

var byteOrderMark = []byte("\uFEFF")

// records yields the records that end in chunk; with last also the text after the last end. Empty records and comments are passed over.
func (r *reader) records(chunk []byte, last bool) iter.Seq[*record] {
	return func(yield func(*record) bool) {
		data := chunk
		if len(r.rest) > 0 {
			r.rest = append(r.rest, chunk...)
			data = r.rest
		}
		if !r.started && (len(data) >= len(byteOrderMark) || last) {
			data, r.started = bytes.TrimPrefix(data, byteOrderMark), true
		}
		for r.started && len(data) > 0 {
			if size := r.plainRecord(data); size > 0 {
				data = data[size:]
				if (r.beginsCell() || r.counts()) && !r.isComment(r.record.text) && !yield(&r.record) {
					return
				}
				continue
			}
			end, size := r.end(data, last)
			if size == 0 {
				break
			}
			text, line := data[:end], r.lines+1
			r.lines += r.newlines(data[:size], last && size == len(data) && end == size)
			data = data[size:]
			if r.skip > 0 {
				r.skip--
				continue
			}
			if r.cut(line, text) && !yield(&r.record) {
				return
			}
		}
		if len(data) > r.limit && !last {
			r.lines++
			r.record = record{line: r.lines, text: data[:min(len(data), 100)], fault: "line is longer than limits.line"}
			yield(&r.record)
			return
		}
		r.rest = append(r.rest[:0], data...)
	}
}

// roomFor makes the ends of n cells.
func roomFor(n int) []uint32 {
	ends := make([]uint32, n+1)
	ends[0] = math.MaxUint32
	return ends
}

// plainRecord cuts a record in one pass, which is all that most files need: one that ends with LF or CR LF and holds no qualifier. What
// it does not understand is for end and cut; size is 0 then.
func (r *reader) plainRecord(data []byte) (size int) {
	if r.skip > 0 || r.terminator != 0 || len(r.widths) > 0 {
		return 0
	}
	if len(r.ends) == 0 {
		r.ends = roomFor(64)
	}
	row := guest.Row{Delimiter: r.delimiter, Qualifier: r.qualifier}
	cells, text, size := row.Cut(data, r.ends[1:])
	for size == 0 && cells == len(r.ends)-1 {
		r.ends = roomFor(2 * cells)
		cells, text, size = row.Cut(data, r.ends[1:])
	}
	if size > 0 {
		r.lines++
		r.record.line, r.record.text, r.record.ends = r.lines, data[:text], r.ends[:cells+1]
		r.record.cells, r.record.fault, r.record.place = nil, "", 0
	}
	return size
}

// beginsCell reports whether the first byte of the record belongs to a cell, as it does in nearly every row.
func (r *reader) beginsCell() bool {
	text := r.record.text
	return len(text) > 0 && text[0] > ' ' && text[0] != r.delimiter
}

// counts reports whether a record is one: not of empty cells only, or at least not of blanks only.
func (r *reader) counts() bool {
	return !r.record.blank() || r.grid && len(trim(r.record.text)) > 0
}

// newlines counts the lines that end in b; unfinished counts a last one without an end.
func (r *reader) newlines(b []byte, unfinished bool) int {
	if r.terminator != 0 && r.skip == 0 {
		if unfinished && len(trim(b)) == 0 {
			return 0 // the end of line behind the last terminator
		}
		return 1
	}
	n := bytes.Count(b, []byte{'\n'})
	for rest := b; ; {
		i := bytes.IndexByte(rest, '\r')
		if i < 0 {
			break
		}
		rest = rest[i+1:]
		if len(rest) == 0 || rest[0] != '\n' {
			n++
		}
	}
	if unfinished {
		n++
	}
	return n
}

// end returns the length of the first record of data and the bytes it takes with its end; size 0 = its end has not come.
func (r *reader) end(data []byte, last bool) (end, size int) {
	if r.skip > 0 {
		return r.lineEnd(data, last)
	}
	if r.terminator == 0 {
		// Most records have no qualifier: then any end of line ends them.
		end, size = r.lineEnd(data, last)
		if size == 0 || r.qualifier == 0 || len(r.widths) > 0 || bytes.IndexByte(data[:end], r.qualifier) < 0 || r.isComment(data[:end]) {
			return end, size
		}
	}
	return r.quotedEnd(data, last)
}

// lineEnd finds the first end of line.
func (r *reader) lineEnd(data []byte, last bool) (end, size int) {
	end = bytes.IndexByte(data, '\n')
	if cr := bytes.IndexByte(data[:max(end, 0)], '\r'); end > 0 && cr >= 0 {
		return r.after(data, cr, last)
	}
	if end >= 0 {
		return end, end + 1
	}
	if cr := bytes.IndexByte(data, '\r'); cr >= 0 {
		return r.after(data, cr, last)
	}
	if last {
		return len(data), len(data)
	}
	return 0, 0
}

// after returns the size of a record that ends with the CR or LF at i. After a CR at the very end an LF may still come.
func (r *reader) after(data []byte, i int, last bool) (end, size int) {
	switch {
	case data[i] == '\n':
		return i, i + 1
	case i+1 < len(data) && data[i+1] == '\n':
		return i, i + 2
	case i+1 < len(data) || last:
		return i, i + 1
	}
	return 0, 0
}

// quotedEnd finds the end of a record that may have quoted cells. A qualifier opens a cell only at its start, after blanks.
func (r *reader) quotedEnd(data []byte, last bool) (end, size int) {
	start, quoted := true, false
	for i := 0; i < len(data); i++ {
		c := data[i]
		switch {
		case quoted:
			quoted = c != r.qualifier // a doubled qualifier closes and opens again
			start = !quoted
		case c == r.terminator && r.terminator != 0:
			return i, i + 1
		case r.terminator == 0 && (c == '\n' || c == '\r'):
			return r.after(data, i, last)
		case c == r.delimiter:
			start = true
		case c == r.qualifier && r.qualifier != 0 && start:
			quoted = true
		case c != ' ' && c != '\t':
			start = false
		}
	}
	if last {
		return len(data), len(data)
	}
	return 0, 0
}

func (r *reader) isComment(text []byte) bool {
	return r.comment != 0 && len(text) > 0 && text[0] == r.comment
}

// cut makes the cells of a record; it is false for a record that does not count.
func (r *reader) cut(line int, text []byte) bool {
	if len(trim(text)) == 0 || r.isComment(text) {
		return false
	}
	r.record = record{line: line, text: text}
	r.cells = r.cells[:0]
	switch {
	case len(r.widths) > 0:
		r.fixed(text)
	case r.qualifier == 0 || bytes.IndexByte(text, r.qualifier) < 0:
		r.unquoted(text)
	default:
		r.record.fault, r.record.place = r.quotedCells(text)
	}
	r.record.cells = r.cells
	return r.record.fault != "" || r.counts()
}

func (r *reader) unquoted(text []byte) {
	for {
		i := bytes.IndexByte(text, r.delimiter)
		if i < 0 {
			break
		}
		r.cells = append(r.cells, cell{text: trim(text[:i])})
		text = text[i+1:]
	}
	r.cells = append(r.cells, cell{text: trim(text)})
}

// quotedCells cuts a record that holds a qualifier somewhere.
func (r *reader) quotedCells(text []byte) (fault string, place int) {
	r.plain = r.plain[:0]
	if cap(r.plain) < len(text) {
		r.plain = make([]byte, 0, 2*len(text)) // never grows below: the cells point into it
	}
	for more := true; more; {
		var c cell
		c, text, more, fault = r.nextCell(text)
		r.cells = append(r.cells, c)
		if fault != "" {
			return fault, len(r.cells)
		}
	}
	return "", 0
}

func (r *reader) nextCell(text []byte) (c cell, rest []byte, more bool, fault string) {
	body := bytes.TrimLeft(text, " \t")
	if len(body) == 0 || body[0] != r.qualifier {
		i := bytes.IndexByte(text, r.delimiter)
		if i < 0 {
			return cell{text: trim(text)}, nil, false, ""
		}
		return cell{text: trim(text[:i])}, text[i+1:], true, ""
	}
	start := len(r.plain)
	body = body[1:]
	for {
		i := bytes.IndexByte(body, r.qualifier)
		if i < 0 {
			return cell{text: body, quoted: true}, nil, false, "quoted cell without an end"
		}
		r.plain = append(r.plain, body[:i]...)
		body = body[i+1:]
		if len(body) == 0 || body[0] != r.qualifier {
			break
		}
		r.plain = append(r.plain, r.qualifier)
		body = body[1:]
	}
	c = cell{text: r.plain[start:len(r.plain):len(r.plain)], quoted: true}
	i := bytes.IndexByte(body, r.delimiter)
	tail := body
	if i >= 0 {
		tail, rest, more = body[:i], body[i+1:], true
	}
	if len(trim(tail)) > 0 {
		return c, nil, false, "text after a quoted cell"
	}
	return c, rest, more, ""
}

// fixed cuts by widths in characters; the last field takes the rest.
func (r *reader) fixed(text []byte) {
	for i, w := range r.widths {
		size := len(text)
		if i+1 < len(r.widths) {
			size = 0
			for n := 0; n < w && size < len(text); n++ {
				_, width := utf8.DecodeRune(text[size:])
				size += width
			}
		}
		field := text[:size]
		text = text[size:]
		if r.padding != 0 {
			field = bytes.Trim(field, string(r.padding))
		}
		r.cells = append(r.cells, cell{text: trim(field)})
	}
}

// trim is bytes.Trim without its set, which is built anew for every call.
func trim(b []byte) []byte {
	for len(b) > 0 && isBlank(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && isBlank(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }
