package nmon

import "github.com/tidemark-db/tidemark/wasm/abi"

// derivation computes one more value of a row from others. It gives none when an input is missing or a divisor is 0.
type derivation struct {
	name string
	of   func(values []value) (float64, bool)
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

func find(values []value, name string) (float64, bool) {
	for _, v := range values {
		if v.name == name {
			return v.v, true
		}
	}
	return 0, false
}

// rest is 100 - part.
func rest(part string) func([]value) (float64, bool) {
	return func(values []value) (float64, bool) {
		v, ok := find(values, part)
		return 100 - v, ok
	}
}

func sum(names ...string) func([]value) (float64, bool) {
	return func(values []value) (float64, bool) {
		total := 0.0
		for _, n := range names {
			v, ok := find(values, n)
			if !ok {
				return 0, false
			}
			total += v
		}
		return total, true
	}
}

func difference(whole, part string) func([]value) (float64, bool) {
	return func(values []value) (float64, bool) {
		a, ok1 := find(values, whole)
		b, ok2 := find(values, part)
		return a - b, ok1 && ok2
	}
}

// percent is part / whole * 100.
func percent(part, whole string) func([]value) (float64, bool) {
	return func(values []value) (float64, bool) {
		a, ok1 := find(values, part)
		b, ok2 := find(values, whole)
		return a / b * 100, ok1 && ok2 && b != 0
	}
}

// usedPercent is (1 - free / total) * 100.
func usedPercent(free, total string) func([]value) (float64, bool) {
	return func(values []value) (float64, bool) {
		a, ok1 := find(values, free)
		b, ok2 := find(values, total)
		return (1 - a/b) * 100, ok1 && ok2 && b != 0
	}
}

func entitledUsed(values []value) (float64, bool) {
	busy, ok1 := sum("user", "sys", "wait")(values)
	capacity, ok2 := find(values, "entitled_capacity")
	return busy / capacity * 100, ok1 && ok2 && capacity != 0
}

// derive writes the derived values of the row in s.values.
func (p *parser) derive(s *section, t int64) {
	for _, d := range s.derived {
		v, ok := d.of(s.values)
		metric := s.metric + "." + d.name
		if !ok || p.isIgnored(metric) {
			continue
		}
		var tags []abi.Pair
		if s.id != "" {
			tags = []abi.Pair{{Name: "id", Value: s.id}}
		}
		p.out.Sample(p.out.Series(p.prefix+metric, p.entity, tags...), t, v)
		p.announce(p.prefix+metric, s.title)
	}
}

// snapshotTotals are the sums of one snapshot. Parts are kept apart, so that a row which comes again replaces its part. They live as
// long as the file: a late row then corrects the total instead of replacing it by its own share.
type snapshotTotals struct {
	parts   map[string]map[string]float64 // total metric -> section name -> sum
	titles  map[string]string
	changed bool
}

func (p *parser) addTotals(s *section, id, part string) {
	sums := map[string]float64{}
	place := 0
	for i := range s.columns {
		c := &s.columns[i]
		if c.name == "" {
			continue
		}
		if place < len(s.values) && c.total != "" && s.values[place].name != "" {
			sums[c.total] += s.values[place].v
		}
		place++
	}
	if len(sums) == 0 {
		return
	}
	st := p.totals[id]
	if st == nil {
		st = &snapshotTotals{parts: map[string]map[string]float64{}, titles: map[string]string{}}
		p.totals[id] = st
	}
	st.changed = true
	for metric, v := range sums {
		if st.parts[metric] == nil {
			st.parts[metric] = map[string]float64{}
		}
		st.parts[metric][part], st.titles[metric] = v, s.title
	}
}

// flushTotals writes the totals of every snapshot that changed since the last flush.
func (p *parser) flushTotals() {
	for _, id := range sortedKeys(p.totals) {
		st := p.totals[id]
		if !st.changed {
			continue
		}
		st.changed = false
		for _, metric := range sortedKeys(st.parts) {
			if p.isIgnored(metric) {
				continue
			}
			total := 0.0
			for _, part := range sortedKeys(st.parts[metric]) {
				total += st.parts[metric][part]
			}
			ref := p.out.Series(p.prefix+metric, p.entity, abi.Pair{Name: "id", Value: "total"})
			p.out.Sample(ref, p.times[id], total)
			p.announce(p.prefix+metric, st.titles[metric])
		}
	}
}
