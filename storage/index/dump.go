package index

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// DumpRun prints a run: its sections, then each key with its id, the entities with the ordinals of their series, the tags with their counts, and the
// ids that are gone. What is damaged is told in its place, and as the error.
func DumpRun(w io.Writer, r *Run) error {
	d := dumper{w: bufio.NewWriter(w), run: r, rd: newReader(r)}
	defer d.rd.done()
	d.sections()
	d.keys()
	d.names("entity", &r.entities, func(walk *names) (string, error) {
		list, err := d.rd.postings(nil, walk.column(0), walk.column(1))
		return strings.Trim(fmt.Sprint(list), "[]"), err
	})
	d.names("tag", &r.tags, func(walk *names) (string, error) { return fmt.Sprint(walk.column(0), " series"), nil })
	d.note(r.eachGone(d.rd, func(id ID) error {
		d.printf("gone %d\n", id)
		return nil
	}))
	if err := d.w.Flush(); err != nil {
		return err
	}
	return d.damage
}

type dumper struct {
	w      *bufio.Writer
	run    *Run
	rd     *reader
	damage error // the first
}

func (d *dumper) printf(format string, args ...any) {
	fmt.Fprintf(d.w, format, args...) // Flush tells
}

// note prints damage.
func (d *dumper) note(err error) {
	if err == nil {
		return
	}
	d.printf("damaged: %v\n", err)
	if d.damage == nil {
		d.damage = err
	}
}

func (d *dumper) sections() {
	r := d.run
	d.printf("run of %d bytes, version %d, ids %d to %d\n", r.length, version, r.low, r.high)
	for _, t := range []struct {
		name string
		tree tree
	}{{"keys", r.footer.keys}, {"entities", r.entities}, {"tags", r.tags}} {
		d.printf("%-9s %d in %d leaves under %d levels, root %d bytes at %d\n", t.name, t.tree.count, t.tree.leaves(), t.tree.levels, t.tree.root.n, t.tree.root.off)
	}
	for _, a := range []struct {
		name  string
		array array
	}{{"blocks", r.blocks}, {"ids", r.ids}, {"ordinals", r.ordinals}, {"gone", r.gone}} {
		d.printf("%-9s %d of %d bits from %d on at %d\n", a.name, a.array.count, a.array.width, a.array.base, a.array.off)
	}
	d.printf("%-9s %d lines at %d\n", "filter", r.filter.lines, r.filter.off)
}

func (d *dumper) keys() {
	for at := uint32(0); at < d.run.footer.keys.count; at++ {
		id, err := d.rd.idAt(at)
		var key []byte
		if err == nil {
			key, err = d.rd.keyAt(at)
		}
		if err != nil {
			d.note(err)
			at |= leafSize - 1
			continue
		}
		d.printf("key %d id %d %q\n", at, id, key)
	}
}

// names prints the names of a tree, each with what tell says of it.
func (d *dumper) names(what string, t *tree, tell func(*names) (string, error)) {
	rd := newReader(d.run)
	defer rd.done()
	walk := t.from(rd, nil)
	for walk.next() {
		text, err := tell(walk)
		d.printf("%s %q %s\n", what, walk.walk.text, text)
		d.note(err)
	}
	d.note(walk.err)
}
