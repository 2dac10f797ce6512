package selfmetrics

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/tidemark-db/tidemark/core"
)

// Flat is the name of a value where there are no tags: NAME__TAG=VALUE, tags joined by two underscores. Those of the garbage collector end in the bare
// value of their tag.
func Flat(name string, tags core.Tags) string {
	if len(tags) == 0 {
		return name
	}
	var b strings.Builder
	b.WriteString(name)
	for _, t := range tags {
		if strings.HasPrefix(name, "gc_") {
			b.WriteString("_" + t.Value)
		} else {
			b.WriteString("__" + t.Name + "=" + t.Value)
		}
	}
	return b.String()
}

// AppendNumber appends a value in plain notation: whole ones without fraction, all others with one.
func AppendNumber(b []byte, r Reading) []byte {
	if math.IsNaN(r.N) || math.IsInf(r.N, 0) {
		r.N = 0
	}
	if r.Whole {
		return strconv.AppendFloat(b, math.Trunc(r.N), 'f', 0, 64)
	}
	start := len(b)
	b = strconv.AppendFloat(b, r.N, 'f', -1, 64)
	for _, c := range b[start:] {
		if c == '.' {
			return b
		}
	}
	return append(b, ".0"...)
}

// Text is the file of a round: NAME=VALUE, one a line, sorted by name.
func Text(round []Reading) []byte {
	var b []byte
	for _, r := range round {
		b = append(append(b, Flat(r.Name, r.Tags)...), '=')
		b = append(AppendNumber(b, r), '\n')
	}
	return b
}

// Domain names the bean when the question does not.
const Domain = "tidemark"

// Beans answers `DOMAIN:name=metrics`, for any domain, and the empty question, with the one bean there is; any other question with none.
func Beans(question string, round []Reading) []byte {
	domain, rest, _ := strings.Cut(question, ":")
	switch {
	case question == "":
		domain = Domain
	case domain == "" || rest != "name=metrics":
		return []byte(`{"beans":[]}`)
	}
	b := []byte(`{"beans":[{"name":`)
	b = appendString(b, domain+":name=metrics")
	b = append(b, `,"type":"metrics","MetricsMap":{`...)
	for i, r := range round {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, Flat(r.Name, r.Tags)), ':')
		b = AppendNumber(b, r)
	}
	return append(b, "}}]}"...)
}

func appendString(b []byte, s string) []byte {
	text, _ := json.Marshal(s) // a string cannot fail
	return append(b, text...)
}
