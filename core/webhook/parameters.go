package webhook

import (
	"net/url"
	"slices"
	"strings"
	"unsafe"
)

// parameter is one name=value pair, decoded.
type parameter struct {
	name, value string
	form        bool // from the body, not from the query string
}

// parameters are in the order of the request, the query string before the form.
type parameters []parameter

// query is a query string taken apart. Services send the same one with each request, so that the work on the last one often need not be repeated.
type query struct {
	raw    string
	params parameters
	filter *tagFilter // nil: not compiled yet
	rank   ranking    // of the leaves of the last request with it
}

// size is about how much memory q holds on to, besides the few kilobytes of its text. The names are parts of one text, which counts where it was made.
func (q *query) size() int {
	return cap(q.rank.names)*int(unsafe.Sizeof("")) + cap(q.rank.order)*4
}

// maxQuery bounds what is kept of a query string.
const maxQuery = 4096

// parse returns the parameters of a query string. The caller appends to a copy only.
func (q *query) parse(raw string) (parameters, error) {
	if raw == q.raw {
		return q.params, nil
	}
	*q = query{}
	var params parameters
	if len(raw) > maxQuery {
		err := params.add(raw)
		return params, err
	}
	raw = strings.Clone(raw) // what is kept must not hold on to the request around it
	if err := params.add(raw); err != nil {
		return nil, err
	}
	q.raw, q.params = raw, slices.Clip(params)
	return q.params, nil
}

// add splits a query string. Not url.ParseQuery: senders leave `;` between patterns as it is, and that function drops such a parameter.
func (p *parameters) add(raw string) error { return p.split(raw, parameter{}) }

// addForm splits a form body.
func (p *parameters) addForm(body string) error {
	return p.split(strings.TrimSpace(body), parameter{form: true})
}

// split appends the pairs of raw, each made from like.
func (p *parameters) split(raw string, like parameter) error {
	for pair := range strings.SplitSeq(raw, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if name = unescape(name); name == "" {
			continue
		}
		if len(*p) == maxLeaves {
			return errTooMany
		}
		like.name, like.value = name, unescape(value)
		*p = append(*p, like)
	}
	return nil
}

// unescape decodes percent and plus; text with a broken escape stays as it is.
func unescape(text string) string {
	if decoded, err := url.QueryUnescape(text); err == nil {
		return decoded
	}
	return text
}

const headerTag = "header.tag."

// reservedNames are the parameters that control the mapping and never become tags. Their case matters.
var reservedNames = map[string]bool{
	"type": true, "source": true, "entity": true, "message": true, "date": true, "severity": true, "datetimePattern": true,
	"command.type": true, "command.source": true, "command.entity": true, "command.message": true, "command.severity": true, "command.date": true,
	"header.type": true, "header.source": true, "header.entity": true, "header.message": true, "header.severity": true, "header.date": true,
	"exclude": true, "include": true, "excludeValues": true, "includeValues": true, "json.parse": true, "debug": true,
}

func isReserved(name string) bool { return reservedNames[name] || strings.HasPrefix(name, headerTag) }

// reserved returns the first value of a reserved parameter; the form counts when the query string does not have it.
func (p parameters) reserved(name string) string {
	for _, one := range p {
		if one.name == name {
			return one.value
		}
	}
	return ""
}

// list returns all values of a reserved parameter, cut at `;`, without blank ones.
func (p parameters) list(name string) []string {
	var out []string
	inQuery := false
	for _, one := range p {
		if one.name != name || one.form && inQuery {
			continue
		}
		inQuery = inQuery || !one.form
		for part := range strings.SplitSeq(one.value, ";") {
			if part = strings.TrimSpace(part); part != "" {
				out = append(out, part)
			}
		}
	}
	return out
}
