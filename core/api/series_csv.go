package api

import (
	"encoding/csv"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/command"
	"github.com/tidemark-db/tidemark/core/dates"
)

// csvInsert is the body of one csv insert on its way into a batch.
type csvInsert struct {
	*call
	batch   *core.Batch
	version core.VersionAt // fields of every sample, from the reserved parameters
}

// seriesCSVInsert stores a table of one entity: a column of times, then a column a metric. Every query parameter is a tag.
func (c *call) seriesCSVInsert() error {
	entity := underscored(c.param("entity"))
	if entity == "" {
		return core.Errorf(core.Invalid, "IllegalArgumentException: Empty entity")
	}
	in := csvInsert{call: c, batch: c.batch()}
	var tags core.Tags
	for name, values := range c.values {
		value := trimmed(values[0])
		if value == "" {
			return core.Errorf(core.Invalid, "IllegalArgumentException: Tag \"%s\" has empty value", name)
		}
		if !in.version.TakeTag(strings.ToLower(name), value) {
			tags = append(tags, core.Tag{Name: underscored(name), Value: value})
		}
	}
	body, err := c.body()
	if err != nil {
		return err
	}
	if err := in.read(strings.NewReader(body), core.SeriesKey{Entity: entity, Tags: tags.Normal()}); err != nil {
		return err
	}
	receipt, err := c.submit(in.batch)
	if err != nil {
		return err
	}
	c.durability(receipt.Durability)
	c.WriteHeader(http.StatusNoContent) // an existing client looks for it
	return nil
}

// underscored makes a name from what may hold blanks and characters that do not print.
func underscored(text string) string {
	text = lowered(trimmed(text))
	if validName(text) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if !validName(string(r)) {
			return '_'
		}
		return r
	}, text)
}

// read reads the header and the rows into the batch.
func (in *csvInsert) read(body io.Reader, key core.SeriesKey) error {
	rows := csv.NewReader(body)
	rows.FieldsPerRecord = -1 // counted below, with a better text
	rows.LazyQuotes = true
	rows.ReuseRecord = true
	header, err := rows.Read()
	if errors.Is(err, io.EOF) {
		return core.Errorf(core.Invalid, "Empty first row")
	}
	if err != nil {
		return core.Errorf(core.Invalid, "%s", err)
	}
	if len(header) < 2 {
		return core.Errorf(core.Invalid, "CSV must have at least 2 columns")
	}
	clock := strings.ToLower(strings.TrimPrefix(trimmed(header[0]), "\ufeff"))
	if clock != "time" && clock != "date" {
		return core.Errorf(core.Invalid, "the first column must be time or date, not '%s'", excerpt(header[0]))
	}
	refs := make([]uint32, 0, len(header)-1)
	for _, metric := range header[1:] {
		if key.Metric = underscored(metric); key.Metric == "" {
			return core.Errorf(core.Invalid, "IllegalArgumentException: Empty metric")
		}
		refs = append(refs, in.batch.Ref(key))
	}
	return in.readRows(rows, clock, refs)
}

// readRows reads the lines below the header. An empty cell is no sample.
func (in *csvInsert) readRows(rows *csv.Reader, clock string, refs []uint32) error {
	some := false
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return core.Errorf(core.Invalid, "%s", err)
		}
		line, _ := rows.FieldPos(0)
		if len(row) != len(refs)+1 {
			return core.Errorf(core.Invalid, "line %d has %d columns, the header has %d", line, len(row), len(refs)+1)
		}
		some = true
		t, err := tableTime(clock, trimmed(row[0]))
		if err != nil {
			return err
		}
		for i, cell := range row[1:] {
			if cell = trimmed(cell); cell == "" {
				continue
			}
			n, ok := command.ParseNumber(cell)
			if !ok {
				return core.Errorf(core.Invalid, "line %d, column %d: '%s' is not a number", line, i+2, excerpt(cell))
			}
			if in.batch.Samples.Len() >= in.server.Limits.Records {
				return in.tooMany()
			}
			in.add(refs[i], t, n)
		}
	}
	if !some {
		return core.Errorf(core.Invalid, "No data")
	}
	return nil
}

// add appends one sample.
func (in *csvInsert) add(ref uint32, t core.Time, n command.Number) {
	s := &in.batch.Samples
	at := uint32(in.batch.Add(ref, t, n.Value))
	if n.Inexact {
		s.Decimals = append(s.Decimals, core.DecimalAt{Index: at, Decimal: n.Decimal})
	}
	if v := in.version; v != (core.VersionAt{}) {
		v.Index = at
		s.Versions = append(s.Versions, v)
	}
}

// tableTime reads the first cell of a row.
func tableTime(clock, text string) (core.Time, error) {
	if clock == "time" {
		n, ok := parseInteger(text)
		if !ok {
			return 0, core.Errorf(core.Invalid, "time: Unix milliseconds are expected, not '%s'", excerpt(text))
		}
		return core.Time(n), checkTime(core.Time(n))
	}
	t, err := dates.ParseISO(text)
	if err != nil {
		return 0, mappingFault(err)
	}
	return t, checkTime(t)
}
