package api

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/cells"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/sql"
	"github.com/tidemark-db/tidemark/core/sql/column"
)

// seriesOfRows turns the rows of a query into series: a numeric column is a metric of its label, the column entity names the entity, other texts are tags.
type seriesOfRows struct {
	time    int   // column; -1 = not found
	entity  int   // column; -1 = none
	numbers []int // columns
	tags    []int // columns, by name
	names   []string

	series map[string]*rowSeries
	order  []*rowSeries // as they were found
	held   int
	most   int
}

type rowSeries struct {
	key    core.SeriesKey
	times  []core.Time
	values []float64
	digits map[int]string // of values that doubles do not give exactly
}

// noEntity is the entity of a result without such a column.
const noEntity = "sql"

// newSeriesOfRows finds what the columns of a result stand for.
func newSeriesOfRows(columns []sql.Column, most int) (*seriesOfRows, error) {
	s := &seriesOfRows{time: -1, entity: -1, series: map[string]*rowSeries{}, most: most}
	for i, c := range columns {
		label := strings.ToLower(c.Label)
		s.names = append(s.names, c.Label)
		switch {
		case label == "datetime" || label == "time" && s.time < 0:
			s.time = i
		case label == "time":
		case label == "entity":
			s.entity = i
		case c.Type.Numeric():
			s.numbers = append(s.numbers, i)
		case c.Type == column.String:
			s.tags = append(s.tags, i)
		}
	}
	if s.time < 0 {
		return nil, core.Errorf(core.Invalid, "the result needs a column time or datetime to become series")
	}
	if len(s.numbers) == 0 {
		return nil, core.Errorf(core.Invalid, "the result needs a numeric column to become series")
	}
	return s, nil
}

// add takes rows. Rows without time or number are left out.
func (s *seriesOfRows) add(b *column.Batch) error {
	for i := range b.Len {
		at, timed, err := instantOf(b.Columns[s.time].Value(i))
		if err != nil {
			return err
		}
		if !timed {
			continue
		}
		for _, n := range s.numbers {
			v := b.Columns[n].Value(i)
			number := v.Float
			if v.Whole {
				number = float64(v.Int)
			}
			if v.Type == column.Null {
				continue
			}
			if s.held++; s.held > s.most {
				return core.Errorf(core.TooLarge, "the result has more than %d samples, limits.samples allows no more: narrow the query or set a limit", s.most)
			}
			series := s.of(b, i, n)
			series.times = append(series.times, at)
			if _, ok := v.Decimal(); ok {
				if series.digits == nil {
					series.digits = map[int]string{}
				}
				series.digits[len(series.values)] = v.Format()
			}
			series.values = append(series.values, number)
		}
	}
	return nil
}

// instantOf is the time of a row; false for none.
func instantOf(v column.Value) (t core.Time, ok bool, err error) {
	switch {
	case v.Type == column.Null, v.Type == column.String && v.Text == "":
		return 0, false, nil
	case v.Type == column.String:
		if t, err = dates.ParseISO(v.Text); err != nil {
			return 0, false, core.Errorf(core.Invalid, "the time of a row is '%s': a date in ISO 8601 is expected, or milliseconds", excerpt(v.Text))
		}
		return t, true, nil
	case v.Type == column.Timestamp, v.Whole:
		return core.Time(v.Int), true, nil
	}
	return core.Time(v.Float), !math.IsNaN(v.Float), nil
}

// of returns the series of a number.
func (s *seriesOfRows) of(b *column.Batch, i, number int) *rowSeries {
	key := core.SeriesKey{Metric: s.names[number], Entity: noEntity}
	if s.entity >= 0 {
		if name := column.FormatValue(b.Columns[s.entity], i); name != "" {
			key.Entity = name
		}
	}
	for _, j := range s.tags {
		if v := b.Columns[j]; !v.IsNull(i) {
			key.Tags = append(key.Tags, core.Tag{Name: strings.TrimPrefix(s.names[j], "tags."), Value: column.FormatValue(v, i)})
		}
	}
	key.Tags = key.Tags.Normal()
	canonical := string(key.Append(nil))
	found := s.series[canonical]
	if found == nil {
		found = &rowSeries{key: key.Clone()}
		s.series[canonical] = found
		s.order = append(s.order, found)
	}
	return found
}

// sqlSeries answers a query with series instead of rows.
func (c *call) sqlSeries() error {
	get, err := c.sqlParameters()
	if err != nil {
		return err
	}
	text := get("q")
	if strings.TrimSpace(text) == "" {
		text = get("sql")
	}
	if strings.TrimSpace(text) == "" {
		return c.sqlFailure(core.Errorf(core.Invalid, `missing required parameter "q"`), false)
	}
	var s *seriesOfRows
	r := sql.Request{Text: text, ID: get("queryId"), Origin: c.sqlOrigin(), ReadOnly: true}
	err = c.server.SQL.Run(c.reading(), r, func(a *sql.Answer) (err error) {
		if s, err = newSeriesOfRows(a.Columns, c.server.Limits.Samples); err != nil {
			return err
		}
		for b, err := range a.Rows {
			if err != nil {
				return err
			}
			if err := s.add(b); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return c.sqlFailure(err, false)
	}
	request := get("requestId")
	if request == "" {
		request = "0"
	}
	return c.sendJSON(s.json(request, strings.EqualFold(get("timeFormat"), "iso")))
}

func (s *seriesOfRows) json(request string, iso bool) []byte {
	body := []byte{'['}
	for n, series := range s.order {
		if n > 0 {
			body = append(body, ',')
		}
		body = cells.AppendJSON(append(body, `{"requestId":`...), request)
		body = cells.AppendJSON(append(body, `,"metric":`...), series.key.Metric)
		body = cells.AppendJSON(append(body, `,"entity":`...), series.key.Entity)
		body = append(body, `,"tags":{`...)
		for i, tag := range series.key.Tags {
			if i > 0 {
				body = append(body, ',')
			}
			body = cells.AppendJSON(append(cells.AppendJSON(body, tag.Name), ':'), tag.Value)
		}
		body = append(body, `},"type":"HISTORY","aggregate":{"type":"DETAIL"},"data":[`...)
		body = append(series.samples(body, iso), `]}`...)
	}
	return append(body, ']')
}

// samples appends the samples, oldest first.
func (s *rowSeries) samples(body []byte, iso bool) []byte {
	order := make([]int, len(s.times))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.times[a], s.times[b]) })
	for n, i := range order {
		if n > 0 {
			body = append(body, ',')
		}
		if iso {
			body = append(dates.AppendISO(append(body, `{"d":"`...), s.times[i]), '"')
		} else {
			body = cells.AppendInteger(append(body, `{"t":`...), int64(s.times[i]))
		}
		body = append(body, `,"v":`...)
		if d, ok := s.digits[i]; ok {
			body = append(append(body, d...), '}')
		} else if v := s.values[i]; math.IsNaN(v) || math.IsInf(v, 0) {
			body = append(body, `"NaN"}`...)
		} else {
			body = append(cells.AppendNumber(body, v), '}')
		}
	}
	return body
}
