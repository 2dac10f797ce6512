package storage

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/journal"
)

// replay applies what of the journal is not in files. Frames that cannot be decoded or applied are counted in the report and passed over, unless a later release
// wrote them: passed over, they would be lost with the next flush.
func (db *DB) replay(report *Report) error {
	m := &db.flusher.manifest
	end := m.Position
	db.mu.last, db.mu.reserved, db.mu.received = m.Position, m.Reserved, m.Received
	if first := core.Position(db.journal.Status().First); first > m.Position+1 {
		report.addDamage(fmt.Sprintf("the journal begins at position %d, and the files end at %d: what was between them is gone", first, m.Position))
	}
	r := replayer{packer: db.packer}
	for f, err := range db.journal.Read(journal.Position(m.Position + 1)) {
		var hole *journal.DamageError
		switch {
		case errors.As(err, &hole):
			report.addDamage(hole.String())
			continue
		case err != nil:
			return fmt.Errorf("storage: replay: %w", err)
		}
		db.mu.last = core.Position(f.Position)
		db.mu.received = max(db.mu.received, core.Time(f.Received))
		if f.Kind == frameReserve {
			db.mu.reserved = max(db.mu.reserved, reservedBy(f))
			continue
		}
		b, err := r.decode(f)
		replayed := false
		if err == nil {
			replayed, err = db.history.replayed(b.Alerts)
		}
		switch {
		case isLater(err):
			return fmt.Errorf("storage: position %d: %w", f.Position, err)
		case err != nil:
			report.addUnreadable(f.Position, err)
		case !replayed:
			if err := r.apply(db.state, b); err != nil {
				report.addUnreadable(f.Position, err)
			}
			end = core.Position(f.Position)
			report.Samples += b.Samples.Len()
		}
	}
	// Positions of batches that were not journaled may have been seen by readers before the restart: they are not given again.
	db.mu.last = max(db.mu.last, db.mu.reserved)
	db.ring.floor, db.ring.end = db.mu.last, end
	report.Series = db.index.Len()
	return nil
}

// replayer reads one record after another into the same memory: whatever is kept of a batch is a copy, as it is of one that comes in a request.
type replayer struct {
	packer *packer
	body   []byte
	batch  core.Batch
	tables keyTables
	keys   encoder // lays out the keys of a batch without samples
}

// decode returns the batch of a frame. It is valid until the next call.
func (r *replayer) decode(f journal.Frame) (*core.Batch, error) {
	if err := laterThan(f); err != nil {
		return nil, err
	}
	body, err := r.packer.body(f.Payload, r.body)
	if err != nil {
		return nil, err
	}
	if r.body = body; cap(body) > keepEncoder {
		r.body = nil // a large record is rare
	}
	c := &r.batch.Samples
	columns := core.Samples{Series: c.Series[:0], Times: c.Times[:0], Values: c.Values[:0], Flags: c.Flags[:0]}
	r.batch, r.tables.last = core.Batch{Received: core.Time(f.Received), Samples: columns}, nil
	d := decoder{rest: unsafe.String(unsafe.SliceData(body), len(body)), tables: &r.tables}
	if err := d.batch(&r.batch); err != nil {
		return nil, err
	}
	return &r.batch, nil
}

// apply makes the decoded batch visible. The series that its samples led to are remembered with its keys.
func (r *replayer) apply(st *state, b *core.Batch) error {
	t := r.tables.last
	if t == nil { // no samples
		r.keys.prepareKeys(b)
		return st.apply(b, &r.keys)
	}
	err := st.apply(b, &t.layout)
	if b.Samples.Len() == 0 { // a table without use
		return err
	}
	if t.layout.series == nil || t.layout.removals != st.removals {
		t.layout.series, t.layout.removals = nil, st.removals
		if !slices.Contains(st.resolved, nil) {
			t.layout.series = slices.Clone(st.resolved)
		}
	}
	return err
}

// keyTables remember the key tables of the records read so far: a client sends the same series again and again.
type keyTables struct {
	known map[tableStart]*keyTable
	bytes int
	last  *keyTable // of the record that is being read
}

// tableStart is where to look for a table: tables are found by how they begin, and of two that begin alike the last one is remembered.
type tableStart [64]byte

// keyTable is a key table that was read. Its memory is its own.
type keyTable struct {
	raw    string // as it stands in a record. It says where it ends, so that a record which begins with it has it
	keys   []core.SeriesKey
	layout encoder
}

// maxTableBytes bounds the tables that are remembered; keys take some four times that in all their forms.
const maxTableBytes = 8 << 20

// read reads the key table that a decoder stands on.
func (t *keyTables) read(d *decoder) []core.SeriesKey {
	var start tableStart
	copy(start[:], d.rest)
	if one := t.known[start]; one != nil && strings.HasPrefix(d.rest, one.raw) {
		d.rest, t.last = d.rest[len(one.raw):], one
		return one.keys
	}
	before := d.rest
	keys := d.keys()
	if d.err != nil {
		return nil
	}
	one := &keyTable{raw: strings.Clone(before[:len(before)-len(d.rest)]), keys: keys}
	one.layout.prepareKeys(&core.Batch{Keys: keys})
	t.last = one
	if old := t.known[start]; old != nil {
		t.bytes -= len(old.raw)
	}
	if t.known == nil || t.bytes+len(one.raw) > maxTableBytes {
		t.known, t.bytes = map[tableStart]*keyTable{}, 0
	}
	t.known[start] = one
	t.bytes += len(one.raw)
	return keys
}
