package storage

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"unsafe"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/table"
)

// Documents, property records, alert history and what goes with them are entries of tables. Keys are texts whose bytes are in the order in which the records
// are read; FORMAT.md draws keys and values. Values that come from a table are never changed, so what is read from them may share their memory.

// namedTable is a table, and the name under which the manifest lists its files.
type namedTable struct {
	name  string
	table *table.Table
}

// tables are those that the appender writes to.
func (st *state) tables() []namedTable {
	return []namedTable{
		{"documents", st.catalog.documents}, {"properties", st.props.Table}, {"history", st.history.rows}, {"events", st.history.events},
	}
}

// tableShelves are the shelves of all tables.
func (st *state) tableShelves(db *DB) []shelf {
	var list []shelf
	for _, one := range st.tables() {
		list = append(list, newTableShelf(db, one.name, one.table))
	}
	newest := newTableShelf(db, "newest", st.catalog.saved)
	newest.ops.freeze, newest.ops.write = st.catalog.freezeNewest, st.catalog.writeNewest
	return append(list, newest)
}

// tableBytes is about how many bytes of tables are in no file, and how many of them are not frozen.
func (st *state) tableBytes() (unwritten, fresh int64) {
	for _, one := range st.tables() {
		unwritten, fresh = unwritten+one.table.Bytes(), fresh+one.table.Fresh()
	}
	return unwritten, fresh
}

// A part of a key is a text that a byte 0 ends. The bytes 0 and 1, which no name from outside has, are written as 1 1 and 1 2, so that parts are in the order
// of the texts.
const (
	partEnd    = 0
	partEscape = 1
)

func appendPart(dst []byte, text string) []byte {
	if strings.IndexByte(text, partEnd) < 0 && strings.IndexByte(text, partEscape) < 0 {
		return append(append(dst, text...), partEnd)
	}
	for i := range len(text) {
		if c := text[i]; c <= partEscape {
			dst = append(dst, partEscape, c+1)
		} else {
			dst = append(dst, c)
		}
	}
	return append(dst, partEnd)
}

// cutPart reads a part from the front of a key. The text is a part of the key unless it was escaped.
func cutPart(key string) (text, rest string, ok bool) {
	text, rest, ok = strings.Cut(key, "\x00")
	if strings.IndexByte(text, partEscape) >= 0 {
		text = strings.NewReplacer("\x01\x01", "\x00", "\x01\x02", "\x01").Replace(text)
	}
	return text, rest, ok
}

// behindPrefix is the key before which all keys end that begin with a prefix, whose last byte is not 255.
func behindPrefix(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	end[len(end)-1]++
	return end
}

// shared returns the text of bytes that nobody writes to again.
func shared(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// describeEntry is the text of an entry of a table, for a dump; a value is nil when the entry says that the key is gone. An error is an entry that cannot be
// read.
func describeEntry(name string, key, value []byte) (string, error) {
	if value == nil {
		return fmt.Sprintf("%q is gone", key), nil
	}
	switch name {
	case "documents":
		kind, rest, ok := bytes.Cut(key, []byte{partEnd})
		if !ok {
			return "", malformed("document key %q", key)
		}
		if _, err := decodeBody(core.DocKind(kind), string(rest), value); err != nil {
			return "", err
		}
		return fmt.Sprintf("%s %q %s", bytes.TrimPrefix(kind, []byte{partEscape}), rest, bodyText(core.DocChange{Kind: core.DocKind(kind), Body: value})), nil
	case "properties":
		r, err := new(recordReader).read(key, value)
		if err != nil {
			return "", err
		}
		var tags strings.Builder
		for _, tag := range r.Tags {
			fmt.Fprintf(&tags, " %s=%q at %d", tag.Name, tag.Value, tag.Time)
		}
		return fmt.Sprintf("%q type %q key %s%s", r.Entity, r.Type, tagText(r.Key), tags.String()), nil
	case "history":
		row, err := decodeRow(value)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%d %q rule %q entity %q value %s", row.Time, row.Type, row.Rule, row.Entity, number(row.Value)), nil
	case "newest":
		at, n := binary.Uvarint(value)
		if n != len(value) || len(key) == 0 {
			return "", malformed("time of a newest sample %x", value)
		}
		return fmt.Sprintf("%c %q %d", key[0], key[1:], int64(at)-1), nil
	}
	return fmt.Sprintf("%q %q", key, value), nil
}
