package nmon

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/wasm/abi"
	"github.com/tidemark-db/tidemark/wasm/guest"
)

// topRow converts `TOP,pid,snapshot,values`. Columns go by their names in the header. A comma in the command shifts the columns behind it: they
// are taken from the left up to Command, then from the right.
func (p *parser) topRow(r *row, values []byte) {
	if p.process == nil {
		p.noHeader(r)
		return
	}
	names := p.process.names[1:] // after +PID comes Time
	fields := strings.Split(string(values), ",")
	at := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, "Command") })
	if at < 0 || len(fields) < len(names) {
		p.rejectAt(r.number, "process row with fewer values than its header has names", r.line)
		return
	}
	behind := len(names) - at - 1
	command := strings.Join(fields[at:len(fields)-behind], ",")
	fields = append(append(fields[:at:at], command), fields[len(fields)-behind:]...)
	pid, _ := guest.Cut(r.rest, ',')
	if len(bytes.TrimFunc(pid, isMargin)) == 0 {
		p.rejectAt(r.number, "process row without a process id", r.line)
		return
	}
	tags := []abi.Pair{{Name: "command", Value: text(command)}, {Name: "pid", Value: text(string(pid))}}
	if tags[0].Value == "" {
		tags = tags[1:]
	}
	for i, n := range names {
		if i == at || strings.EqualFold(n, "WLMclass") || n == "" {
			continue
		}
		metric := "process." + underscore(n)
		v, ok := p.number([]byte(fields[i]), r)
		if !ok || p.isIgnored(metric) {
			continue
		}
		p.out.Sample(p.out.Series(p.prefix+metric, p.entity, tags...), r.time, v)
		p.announce(p.prefix+metric, "Processes")
	}
}

// uargDefault is the header of UARG rows in files that have none.
var uargDefault = []string{"Time", "PID", "ProgName", "FullCommand"}

// commandRow writes the property of `UARG,snapshot,pid,...,full command`; the full command is the rest of the line, commas included.
func (p *parser) commandRow(r *row, values []byte) {
	names := p.commands
	if len(names) < 2 {
		names = uargDefault
	}
	names = names[1:] // the snapshot
	fields := strings.SplitN(string(values), ",", len(names))
	if len(fields) < len(names) {
		p.rejectAt(r.number, "UARG row with fewer values than its header has names", r.line)
		return
	}
	property := abi.Property{Entity: p.entity, Type: p.prefix + "process", Persist: true, Time: r.time}
	for i, n := range names {
		value := text(fields[i])
		if value == "" {
			continue
		}
		switch n = strings.ToLower(n); n {
		case "pid":
			property.Keys = []abi.Pair{{Name: "pid", Value: value}}
		case "progname", "comm":
			property.Tags = append(property.Tags, abi.Pair{Name: "command", Value: value})
		case "fullcommand", "user", "group", "ppid":
			property.Tags = append(property.Tags, abi.Pair{Name: n, Value: value})
		}
	}
	if p.properties && len(property.Keys) == 1 && len(property.Tags) > 0 {
		p.out.Property(&property)
	}
}
