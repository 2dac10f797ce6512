package storage

import (
	"encoding/binary"
	"iter"
	"math"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/table"
)

// history keeps the rows of alert changes, and which changes were stored.
type history struct {
	rows     *table.Table
	events   *table.Table // the events of the changes, without values
	arrivals uint64       // written by the appender only

	// Scratch of the appender.
	key, value []byte
}

func newHistory(arrivals uint64) *history {
	return &history{rows: table.New(table.Options{}), events: table.New(table.Options{CacheBytes: eventCache}), arrivals: arrivals}
}

// eventCache is small: nearly all questions are about events that are not there, which filters answer.
const eventCache = 256 << 10

// appendRowKey is the key of a row: newest first, and of equal times what was stored last.
func appendRowKey(dst []byte, t core.Time, arrival uint64) []byte {
	const sign = 1 << 63
	dst = binary.BigEndian.AppendUint64(dst, ^(uint64(t) ^ sign))
	return binary.BigEndian.AppendUint64(dst, ^arrival)
}

// known reports whether the change was stored before. A change without an event never was.
func (h *history) known(event string) (bool, error) {
	if event == "" {
		return false, nil
	}
	h.key = append(h.key[:0], event...)
	ok, err := h.events.Has(h.key)
	if err != nil {
		return false, damaged(err)
	}
	return ok, nil
}

// replayed reports whether the changes are those of a batch that was stored before. For the appender.
func (h *history) replayed(changes []core.AlertChange) (bool, error) {
	for _, c := range changes {
		if known, err := h.known(c.Event); !known || err != nil {
			return false, err
		}
	}
	return len(changes) > 0, nil
}

// add stores one change, unless it is known.
func (h *history) add(c core.AlertChange) error {
	if known, err := h.known(c.Event); known || err != nil {
		return err
	}
	if c.Event != "" {
		h.events.Put(h.key, nil)
	}
	if c.Row != nil {
		h.arrivals++
		e := encoder{body: h.value[:0]}
		e.row(c.Row)
		h.key, h.value = appendRowKey(h.key[:0], c.Row.Time, h.arrivals), e.body
		h.rows.Put(h.key, h.value)
	}
	return nil
}

// decodeRow decodes a row, which shares memory with the value.
func decodeRow(value []byte) (*core.AlertRow, error) {
	d := decoder{rest: shared(value)}
	row := d.row()
	if d.err == nil && d.rest != "" {
		d.fail("%d bytes too many", len(d.rest))
	}
	return row, d.err
}

// within yields the rows in a range of time.
func (h *history) within(r core.Range) iter.Seq2[*core.AlertRow, error] {
	const newest = 1<<64 - 1
	from, to := appendRowKey(nil, r.End-1, newest), []byte(nil)
	if r.Start > math.MinInt64 {
		to = appendRowKey(nil, r.Start-1, newest)
	}
	return func(yield func(*core.AlertRow, error) bool) {
		for e, err := range h.rows.Ascend(from, to) {
			var row *core.AlertRow
			if err == nil {
				row, err = decodeRow(e.Value)
			}
			if err != nil {
				yield(nil, damaged(err))
				return
			}
			if !yield(row, nil) {
				return
			}
		}
	}
}

func cloneRow(r core.AlertRow) core.AlertRow {
	for _, text := range []*string{&r.Entity, &r.Metric, &r.Rule, &r.Text, &r.Condition, &r.Filter, &r.Window, &r.Schedule} {
		*text = strings.Clone(*text)
	}
	r.Type, r.Tags = core.Status(strings.Clone(string(r.Type))), r.Tags.Clone()
	return r
}
