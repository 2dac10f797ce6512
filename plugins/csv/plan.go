package csv

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/tidemark-db/tidemark/wasm/abi"
)

// plan is what the settings mean for one header.
type plan struct {
	names   []string // stored names, after renaming
	byName  map[string]int
	entity  []int
	time    []int
	diff    int
	tags    []place
	metrics []place // wide layout
	name    int     // long layout: the column with the metric's name
	value   int     // and the one with its value
	text    int     // messages
	others  []place // messages: the columns that become tags
	keys    []place // properties
	fields  []place
}

// place is a column with the name it is stored under.
type place struct {
	column int
	name   string
}

// named gives the columns of a header their stored names. A setting may name a column by its input or its stored name, in any case.
func (p *parser) named(header []string) *plan {
	pl := &plan{byName: map[string]int{}}
	for i, input := range header {
		input = strings.TrimSpace(input)
		stored := p.renamed(input)
		pl.names = append(pl.names, stored)
		for _, name := range []string{input, stored, strings.ToLower(input), strings.ToLower(stored)} {
			if _, taken := pl.byName[name]; !taken && name != "" {
				pl.byName[name] = i
			}
		}
	}
	return pl
}

// renamed applies renamedColumns to a name: an exact one first, then the first in order that differs in case.
func (p *parser) renamed(name string) string {
	stored, ok := p.RenamedColumns[name]
	if ok {
		return stored
	}
	stored, first := name, ""
	for from, to := range p.RenamedColumns {
		if strings.EqualFold(from, name) && (first == "" || from < first) {
			stored, first = to, from
		}
	}
	return stored
}

// newPlan finds the columns of the settings in a header.
func (p *parser) newPlan(header []string) (*plan, error) {
	pl := p.named(header)
	var missing []string
	find := func(name string) int {
		if name == "" {
			return -1
		}
		i, ok := pl.find(name)
		if !ok {
			missing = append(missing, name)
			return -1
		}
		return i
	}
	for _, name := range p.EntityColumns {
		pl.entity = append(pl.entity, find(name))
	}
	for _, name := range p.TimestampColumns {
		pl.time = append(pl.time, find(name))
	}
	pl.diff, pl.text = find(p.TimezoneDiffColumn), find(p.MessageColumn)
	pl.name, pl.value = find(p.MetricNameColumn), find(p.MetricValueColumn)
	for _, name := range p.TagColumns {
		if i := find(name); i >= 0 {
			pl.tags = append(pl.tags, place{i, cleanName(pl.names[i])})
		}
	}
	for _, name := range p.PropertyKeyColumns {
		if i := find(name); i >= 0 {
			pl.keys = append(pl.keys, place{i, cleanName(pl.names[i])})
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("the header has no column %s; it has %s", strings.Join(missing, ", "), strings.Join(header, ", "))
	}
	p.assign(pl)
	return pl, nil
}

func (pl *plan) find(name string) (int, bool) {
	i, ok := pl.byName[name]
	if !ok {
		i, ok = pl.byName[strings.ToLower(name)]
	}
	return i, ok
}

// assign gives every remaining column its use.
func (p *parser) assign(pl *plan) {
	ignored := map[int]bool{}
	for _, name := range p.IgnoredColumns {
		if i, ok := pl.find(name); ok {
			ignored[i] = true
		}
	}
	tag := func(i int) bool {
		return slices.ContainsFunc(pl.tags, func(t place) bool { return t.column == i })
	}
	key := func(i int) bool {
		return slices.ContainsFunc(pl.keys, func(t place) bool { return t.column == i })
	}
	for i, name := range pl.names {
		if name == "" || slices.Contains(pl.entity, i) || slices.Contains(pl.time, i) || i == pl.diff {
			continue
		}
		if !key(i) && p.isPropertyColumn(pl, i) {
			pl.fields = append(pl.fields, place{i, cleanName(name)})
		}
		if ignored[i] {
			continue
		}
		if i != pl.text {
			pl.others = append(pl.others, place{i, cleanName(name)})
		}
		if pl.value < 0 && !tag(i) {
			pl.metrics = append(pl.metrics, place{i, cleanName(p.MetricPrefix + name)})
		}
	}
}

func (p *parser) isPropertyColumn(pl *plan, i int) bool {
	if len(p.PropertyColumns) == 0 {
		return true
	}
	return slices.ContainsFunc(p.PropertyColumns, func(name string) bool {
		at, ok := pl.find(name)
		return ok && at == i
	})
}

// cleanName makes a name storable: lower case, and _ for each blank or character that cannot be printed.
func cleanName(s string) string {
	s = strings.TrimSpace(s)
	if plainName(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return '_'
		}
		return unicode.ToLower(r)
	}, s)
}

func plainName(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f || s[i] >= 'A' && s[i] <= 'Z' {
			return false
		}
	}
	return true
}

// seriesRefs are the places of one row's series in the tables of a batch: rows of the same entity and tags share them.
type seriesRefs struct {
	batch  uint32
	key    string // entity and tags as they are in the row, each with a 0 behind it
	entity string
	tags   []abi.Pair
	refs   []abi.SeriesRef // by place in plan.metrics; unset where known is false
	known  []bool
}
