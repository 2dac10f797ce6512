package api

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/command"
	"github.com/tidemark-db/tidemark/core/line"
)

// Paths of InfluxDB's interface, versions 1 and 2, as far as agents that write need it.
const (
	influxWritePath  = "/write"
	influxQueryPath  = "/query"
	influxWritePath2 = "/api/v2/write"

	// influxVersion is what clients are told: they choose by it how they write.
	influxVersion = "1.8.10"
)

// Foreign says how data of other products is named.
type Foreign struct {
	EntityTag  string   // "influx.entity": tag of an Influx line that becomes the entity. Default host.
	IgnoreTags []string // "opentsdb.ignore": tags that are left out of OpenTSDB points, ignoring case. Default environment, role.
}

func (f *Foreign) setDefaults() {
	if f.EntityTag == "" {
		f.EntityTag = "host"
	}
	if f.IgnoreTags == nil {
		f.IgnoreTags = []string{"environment", "role"}
	}
}

// adoptCredentials brings the credentials of InfluxDB clients into the form that everything else knows: `Authorization: Token X`, where X is a token of ours
// or user:password, and on version 1 the parameters u and p. On other paths credentials in the URL are nothing.
func adoptCredentials(r *http.Request, path string) {
	if path != influxWritePath && path != influxQueryPath && path != influxWritePath2 {
		return
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	switch {
	case strings.EqualFold(scheme, "Token"):
		name, password, basic := strings.Cut(strings.TrimSpace(token), ":")
		if basic {
			r.SetBasicAuth(name, password)
			return
		}
		r.Header.Set("Authorization", "Bearer "+name)
	case scheme == "" && path != influxWritePath2:
		values, err := parseQuery(r.URL.RawQuery)
		if err == nil && values.Has("u") {
			r.SetBasicAuth(values.Get("u"), values.Get("p"))
		}
	}
}

// influxPing tells clients that the server is there; it needs no credentials, as they send none.
func (c *call) influxPing() error {
	h := c.Header()
	h.Set("X-Influxdb-Version", influxVersion)
	h.Set("X-Influxdb-Build", "Tidemark")
	if strings.EqualFold(c.values.Get("verbose"), "true") {
		return c.sendJSON([]byte(`{"version":"` + influxVersion + `"}`))
	}
	c.WriteHeader(http.StatusNoContent)
	return nil
}

// influxWrite is POST /write of version 1. The parameters db and rp select nothing here.
func (c *call) influxWrite() error {
	unit, ok := line.ParseUnit(c.values.Get("precision"))
	if !ok {
		return core.Errorf(core.Invalid, `invalid precision %q (use n, u, ms, s, m or h)`, excerpt(c.values.Get("precision")))
	}
	if err := c.influx(unit); err != nil {
		return err
	}
	c.WriteHeader(http.StatusNoContent)
	return nil
}

// influxWrite2 is POST /api/v2/write. The parameters org and bucket select nothing here.
func (c *call) influxWrite2() error {
	precision := c.values.Get("precision")
	unit, ok := line.ParseUnit(precision)
	var err error
	if !ok || unit > line.Second {
		err = core.Errorf(core.Invalid, "invalid precision %q (use ns, us, ms or s)", excerpt(precision))
	} else {
		err = c.influx(unit)
	}
	if err == nil {
		c.WriteHeader(http.StatusNoContent)
		return nil
	}
	code, known := influxCodes[core.CodeOf(err)]
	if !known {
		return err
	}
	body := appendString([]byte(`{"code":`), code)
	body = append(appendString(append(body, `,"message":`...), userText(err)), '}')
	h := c.Header()
	h.Set("Content-Type", jsonType)
	if core.CodeOf(err) == core.Unavailable || core.CodeOf(err) == core.NoSpace {
		h.Set("Retry-After", "1")
	}
	c.WriteHeader(statuses[core.CodeOf(err)])
	c.Write(body) // fails only when the client is gone
	return nil
}

// influxCodes are the names of errors in version 2.
var influxCodes = map[core.Code]string{
	core.Invalid:     "invalid",
	core.Forbidden:   "forbidden",
	core.TooLarge:    "request too large",
	core.Unsupported: "invalid",
	core.Unavailable: "unavailable",
	core.NoSpace:     "unavailable",
}

// influx stores a body of lines. A bad line drops itself: the answer is then an error that says so, and everything else is stored.
func (c *call) influx(unit line.Unit) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	parser := line.Influx{Received: c.now(), EntityTag: c.server.Foreign.EntityTag, Unit: unit}
	var first error
	group := command.Group{New: c.newBatch, Parse: parser.Line, Store: c.server.Ingest.Ingest, Failed: func(_ []byte, err error) {
		if first == nil {
			first = err
		}
	}}
	for text := range line.Lines(body) {
		text = strings.TrimSpace(text)
		if text == "" || text[0] == '#' {
			continue
		}
		if len(text) > c.server.Limits.Line {
			group.Refuse(nil, core.Errorf(core.Invalid, "unable to parse '%s': the line is longer than limits.line (%d bytes)", excerpt(text), c.server.Limits.Line))
			continue
		}
		if group.Add([]byte(text)) {
			if err := group.Flush(c.r.Context()); err != nil {
				return err
			}
		}
	}
	if err := group.Flush(c.r.Context()); err != nil {
		return err
	}
	if group.Stored > 0 {
		c.durability(group.Durability)
	}
	switch {
	case first == nil:
		return nil
	case group.Stored == 0 && core.CodeOf(first) == core.Forbidden:
		return first
	}
	return core.Errorf(core.Invalid, "partial write: %s dropped=%d", userText(first), group.Refused)
}

// influxQuery answers what agents ask before they write: whether their database exists, and to create it. There is one database here.
func (c *call) influxQuery() error {
	q := c.values.Get("q")
	if q == "" && c.r.Method == http.MethodPost {
		body, err := c.body()
		if err != nil {
			return err
		}
		form, err := url.ParseQuery(body)
		if err != nil {
			return core.Errorf(core.Invalid, "error parsing query: the form is not readable")
		}
		q = form.Get("q")
	}
	if strings.TrimSpace(q) == "" {
		return core.Errorf(core.Invalid, `missing required parameter "q"`)
	}
	answer := []byte(`{"results":[`)
	n := 0
	for statement := range strings.SplitSeq(q, ";") {
		words := strings.Fields(strings.ToUpper(statement))
		if len(words) == 0 {
			continue
		}
		if n > 0 {
			answer = append(answer, ',')
		}
		answer = strconv.AppendInt(append(answer, `{"statement_id":`...), int64(n), 10)
		n++
		switch {
		case len(words) > 2 && words[0] == "CREATE" && (words[1] == "DATABASE" || words[1] == "RETENTION"):
		case len(words) == 2 && words[0] == "SHOW" && words[1] == "DATABASES":
			answer = append(answer, `,"series":[{"name":"databases","columns":["name"],"values":[["tidemark"]]}]`...)
		default:
			return core.Errorf(core.Invalid, "error parsing query: only CREATE DATABASE and SHOW DATABASES are answered here, query with /api/sql")
		}
		answer = append(answer, '}')
	}
	return c.sendJSON(append(answer, "]}"...))
}
