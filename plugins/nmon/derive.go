package nmon

import "github.com/tidemark-db/tidemark/wasm/abi"

// derivation computes one more value of a row from others. It gives none when an input is missing or a divisor is 0.
type derivation struct {
	name string
	of   func(s *section) (float64, bool)
}

// derivations by the metric of the section's title.
var derivations = map[string][]derivation{
	"cpu":        {{"busy%", rest("idle%")}},
	"cpu_total":  {{"busy%", rest("idle%")}},
	"pcpu":       {{"total", sum("user", "sys", "wait")}},
	"scpu":       {{"total", sum("user", "sys", "wait")}},
	"scpu_total": {{"busy", sum("user", "sys", "wait")}},
	"pcpu_total": {{"busy", sum("user", "sys", "wait")}, {"entitled_capacity_used%", entitledUsed}},
	"logical_partition": {
		{"entitled_used%", percent("physicalcpu", "entitled")},
		{"physicalcpu_used%", percent("physicalcpu", "virtualcpus")},
	},
	"memory": {
		{"real_used_%", rest("real_free_%")},
		{"virtual_used_%", rest("virtual_free_%")},
		{"real_used(mb)", difference("real_total(mb)", "real_free(mb)")},
		{"virtual_used(mb)", difference("virtual_total(mb)", "virtual_free(mb)")},
	},
	"memory_new": {{"used%", rest("free%")}},
	"memory_mb": {
		{"memused", difference("memtotal", "memfree")},
		{"memused%", usedPercent("memfree", "memtotal")},
		{"swapused", difference("swaptotal", "swapfree")},
		{"swapused%", usedPercent("swapfree", "swaptotal")},
	},
}

// find returns the number of the row in work that has a name.
func find(s *section, name string) (float64, bool) {
	for i := range s.values {
		// Names of one length are common, those that begin alike are not: it spares a guest the call that compares them.
		if n := s.columns[i].name; s.values[i].ok && len(n) == len(name) && n[0] == name[0] && n == name {
			return s.values[i].v, true
		}
	}
	return 0, false
}

// rest is 100 - part.
func rest(part string) func(*section) (float64, bool) {
	return func(s *section) (float64, bool) {
		v, ok := find(s, part)
		return 100 - v, ok
	}
}

func sum(names ...string) func(*section) (float64, bool) {
	return func(s *section) (float64, bool) {
		total := 0.0
		for _, n := range names {
			v, ok := find(s, n)
			if !ok {
				return 0, false
			}
			total += v
		}
		return total, true
	}
}

func difference(whole, part string) func(*section) (float64, bool) {
	return func(s *section) (float64, bool) {
		a, ok1 := find(s, whole)
		b, ok2 := find(s, part)
		return a - b, ok1 && ok2
	}
}

// percent is part / whole * 100.
func percent(part, whole string) func(*section) (float64, bool) {
	return func(s *section) (float64, bool) {
		a, ok1 := find(s, part)
		b, ok2 := find(s, whole)
		return a / b * 100, ok1 && ok2 && b != 0
	}
}

// usedPercent is (1 - free / total) * 100.
func usedPercent(free, total string) func(*section) (float64, bool) {
	return func(s *section) (float64, bool) {
		a, ok1 := find(s, free)
		b, ok2 := find(s, total)
		return (1 - a/b) * 100, ok1 && ok2 && b != 0
	}
}

func entitledUsed(s *section) (float64, bool) {
	busy, ok1 := sum("user", "sys", "wait")(s)
	capacity, ok2 := find(s, "entitled_capacity")
	return busy / capacity * 100, ok1 && ok2 && capacity != 0
}

// derived is a derivation bound to the series of a section.
type derived struct {
	derivation
	series column
}

// bindDerived makes the series of the values that are derived from a section's rows.
func (p *parser) bindDerived(s *section) {
	for _, d := range derivations[s.metric] {
		c := column{name: d.name}
		if metric := s.metric + "." + d.name; !p.isIgnored(metric) {
			c.metric = p.prefix + metric
		}
		if s.id != "" {
			c.tags = []abi.Pair{{Name: "id", Value: s.id}}
		}
		s.derived = append(s.derived, derived{d, c})
	}
}

// derive writes the derived values of the row in s.values.
func (p *parser) derive(s *section, t int64) {
	for i := range s.derived {
		if v, ok := s.derived[i].of(s); ok {
			p.sample(s, &s.derived[i].series, t, v)
		}
	}
}

// snapshotTotals are the sums of one snapshot. Parts are kept apart, so that a row which comes again replaces its part. They live as
// long as the file: a late row then corrects the total instead of replacing it by its own share.
type snapshotTotals struct {
	parts   []partialSum
	changed bool
}

// partialSum is what one section adds to a total: a wide disk table has several sections.
type partialSum struct {
	metric, section, title string
	sum                    float64
}

func (t *snapshotTotals) set(sum partialSum) {
	for i := range t.parts {
		if t.parts[i].metric == sum.metric && t.parts[i].section == sum.section {
			t.parts[i] = sum
			return
		}
	}
	t.parts = append(t.parts, sum)
}

// total adds up the parts of the metric at i; first reports whether i is its first part.
func (t *snapshotTotals) total(i int) (sum float64, first bool) {
	for j := range t.parts {
		if t.parts[j].metric != t.parts[i].metric {
			continue
		}
		if j < i {
			return 0, false
		}
		sum += t.parts[j].sum
	}
	return sum, true
}

func (p *parser) addTotals(s *section, id string) {
	if len(s.totals) == 0 {
		return
	}
	st := p.totals[id]
	if st == nil {
		st = new(snapshotTotals)
		p.totals[id] = st
		if oldest := p.totalled.add(id, maxTotals); oldest != "" {
			p.flushTotals() // it may be among those not written yet
			delete(p.totals, oldest)
		}
	}
	for _, metric := range s.totals {
		if sum, ok := s.sum(metric); ok {
			st.set(partialSum{metric, s.name, s.title, sum})
			if !st.changed {
				st.changed = true
				p.changed = append(p.changed, id)
			}
		}
	}
}

// sum adds up the numbers of the row in work that count for a total.
func (s *section) sum(metric string) (sum float64, found bool) {
	for i := range s.values {
		if s.values[i].ok && s.columns[i].total == metric {
			sum += s.values[i].v
			found = true
		}
	}
	return sum, found
}

// flushTotals writes the totals of every snapshot that changed since the last flush.
func (p *parser) flushTotals() {
	for _, id := range p.changed {
		st := p.totals[id]
		st.changed = false
		for i, part := range st.parts {
			total, first := st.total(i)
			if !first || p.isIgnored(part.metric) {
				continue
			}
			ref := p.out.Series(p.prefix+part.metric, p.entity, abi.Pair{Name: "id", Value: "total"})
			p.out.Sample(ref, p.times[id], total)
			p.announce(p.prefix+part.metric, part.title)
		}
	}
	p.changed = p.changed[:0]
}
