package nmon

import (
	"strings"

	"github.com/tidemark-db/tidemark/wasm/abi"
)

// configLine reads `AAA,name,rest`. The pairs become the property `configuration` at the time of the first snapshot; pairs that come later are
// merged into it at the time of their snapshot.
func (p *parser) configLine(rest []byte) error {
	name, value, ok := strings.Cut(string(rest), ",")
	if !ok {
		return nil // `AAA,SubprocessorMode Unknown`
	}
	name, value = settingName(name), text(value)
	if name == "progname" && (len(p.times) > 0 || len(p.sections) > 0) {
		p.finish()
		p.reset()
	}
	switch name {
	case "host":
		p.host = value
	case "nodename":
		if p.host == "" {
			p.host = value
		}
	case "runname":
		p.run = value
	case "date":
		p.date = value
	case "x86":
		if key, v, ok := strings.Cut(value, ","); ok {
			name, value = settingName(key), text(v)
		}
	}
	if value != "" && name != "" && !strings.HasPrefix(name, "note") {
		p.config = append(p.config, abi.Pair{Name: name, Value: value})
	}
	return nil
}

// partitionLine reads the rest of `BBBL,nn,NAME,VALUE`.
func (p *parser) partitionLine(rest []byte) {
	_, pair, _ := strings.Cut(string(rest), ",")
	name, value, _ := strings.Cut(pair, ",")
	name, value = settingName(name), text(value)
	if name != "" && value != "" {
		p.config = append(p.config, abi.Pair{Name: name, Value: value})
	}
}

// jfsHeader remembers the mount points of a JFSFILE header.
func (p *parser) jfsHeader(names []string) {
	p.mounts = nil
	for _, n := range names {
		if n != "" {
			p.mounts = append(p.mounts, n)
		}
	}
	if p.current != "" {
		p.flushConfig()
	}
}

// flushConfig writes what was collected, with the time of the current snapshot.
func (p *parser) flushConfig() {
	t := p.times[p.current]
	if p.properties && len(p.config) > 0 {
		p.out.Property(&abi.Property{Entity: p.entity, Type: "configuration", Persist: true, Time: t, Tags: lastOfEach(p.config)})
	}
	if p.properties {
		for _, m := range p.mounts {
			p.out.Property(&abi.Property{Entity: p.entity, Type: p.prefix + "jfs", Persist: true, Time: t,
				Keys: []abi.Pair{{Name: "id", Value: m}}, Tags: []abi.Pair{{Name: "file_system", Value: m}}})
		}
	}
	p.config, p.mounts = nil, nil
}

// lastOfEach keeps the last value of each name, at the place of the first.
func lastOfEach(pairs []abi.Pair) []abi.Pair {
	places := map[string]int{}
	out := pairs[:0:0]
	for _, pair := range pairs {
		if i, ok := places[pair.Name]; ok {
			out[i].Value = pair.Value
			continue
		}
		places[pair.Name] = len(out)
		out = append(out, pair)
	}
	return out
}
