package api

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/command"
	"github.com/tidemark-db/tidemark/core/line"
)

// openTSDBPut stores points as OpenTSDB and its agents send them: one object or an array of them. A bad point drops itself. As there, the answer to points
// that are all good is empty, or counts when the parameters summary or details ask for them.
func (c *call) openTSDBPut() error {
	body, err := c.json()
	if err != nil {
		return err
	}
	var faults []byte // the errors of details
	listed := 0
	group := command.Group{New: c.newBatch, Parse: c.openTSDBPoint, Store: c.server.Ingest.Ingest, Failed: func(raw []byte, err error) {
		if listed++; listed > c.server.Limits.Rejects {
			return
		}
		if listed > 1 {
			faults = append(faults, ',')
		}
		faults = append(append(faults, `{"datapoint":`...), raw...)
		faults = append(appendString(append(faults, `,"error":`...), userText(err)), '}')
	}}
	err = c.objects(body, func(v gjson.Result) error {
		if group.Add([]byte(v.Raw)) {
			return group.Flush(c.r.Context())
		}
		return nil
	})
	if err == nil {
		err = group.Flush(c.r.Context())
	}
	if err != nil {
		return err
	}
	if group.Stored > 0 {
		c.durability(group.Durability)
	}
	return c.openTSDBAnswer(&group, faults)
}

func (c *call) openTSDBAnswer(group *command.Group, faults []byte) error {
	status := http.StatusOK
	if group.Refused > 0 {
		status = http.StatusBadRequest
	}
	answer := strconv.AppendInt([]byte(`"failed":`), int64(group.Refused), 10)
	answer = strconv.AppendInt(append(answer, `,"success":`...), int64(group.Stored), 10)
	switch {
	case c.values.Has("details"):
		answer = append(append([]byte(`{"errors":[`), faults...), "],"+string(answer)+"}"...)
	case c.values.Has("summary"):
		answer = []byte("{" + string(answer) + "}")
	case status == http.StatusOK:
		c.WriteHeader(http.StatusNoContent)
		return nil
	default:
		answer = []byte(`{"error":{"code":400,"message":"One or more data points had errors","details":"append ?details to the request to see them"}}`)
	}
	if status == http.StatusOK {
		return c.sendJSON(answer)
	}
	c.Header().Set("Content-Type", jsonType)
	c.WriteHeader(status)
	c.Write(answer) // fails only when the client is gone
	return nil
}

// openTSDBPoint reads one object: metric, timestamp in seconds or milliseconds, value, tags.
func (c *call) openTSDBPoint(b *core.Batch, raw []byte) error {
	var o object
	var p line.Point
	var stamp, value string
	o.each(gjson.Parse(string(raw)), func(name string, v gjson.Result) {
		switch name {
		case "metric":
			p.Metric = o.text(name, v)
		case "timestamp":
			stamp = o.text(name, v)
		case "value":
			value = o.text(name, v)
		case "tags":
			o.each(v, func(tag string, v gjson.Result) {
				if !slices.ContainsFunc(c.server.Foreign.IgnoreTags, func(ignored string) bool { return strings.EqualFold(ignored, tag) }) {
					p.Tags = append(p.Tags, core.Tag{Name: tag, Value: o.text(tag, v)})
				}
			})
		}
	})
	if o.err != nil {
		return o.err
	}
	var err error
	if p.Time, err = line.ParseTime(stamp); err != nil {
		return err
	}
	var ok bool
	if p.Number, ok = command.ParseNumber(value); !ok {
		return core.Errorf(core.Invalid, "value: a number is expected, not %q", excerpt(value))
	}
	return p.Add(b)
}
