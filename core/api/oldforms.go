package api

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/tidemark-db/tidemark/core"
)

// Forms of routes that older clients send.

// nmonForm is the older form of an nmon upload: the same with other names of its parameters, and a parser that must be named.
func (c *call) nmonForm() error {
	name := c.values.Get("config")
	if name == "" {
		return core.Errorf(core.Invalid, "IllegalArgumentException: Parameter config is required")
	}
	u, err := c.newUpload("nmon", name, nil)
	if err != nil {
		return err
	}
	if entity := c.values.Get("entity"); entity != "" {
		u.request.Params["e"] = entity
	}
	u.request.Zone = c.values.Get("timeZone")
	return u.run()
}

// alertAction is one element of the older form of changing alerts.
type alertAction struct {
	remove bool
	flag   core.Acknowledgement
	ids    []uint64
}

// alertsPatch changes alerts by the older form: actions, each with its alerts. All of them are judged before the first takes effect.
func (c *call) alertsPatch() error {
	if c.server.Alerts == nil {
		return c.missing()
	}
	body, err := c.json()
	if err != nil {
		return err
	}
	var actions []alertAction
	var ids []uint64
	err = c.objects(body, func(v gjson.Result) error {
		a, err := decodeAlertAction(v)
		actions, ids = append(actions, a), append(ids, a.ids...)
		if err == nil && len(ids) > c.server.Limits.Records {
			return c.tooMany()
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := c.mayChangeAlerts(slices.Compact(slices.Sorted(slices.Values(ids)))); err != nil {
		return err
	}
	for _, a := range actions {
		if len(a.ids) == 0 {
			continue
		}
		origin := c.id.Origin(core.DoorHTTP)
		if a.remove {
			err = c.server.Alerts.Delete(c.r.Context(), origin, a.ids)
		} else {
			err = c.server.Alerts.Acknowledge(c.r.Context(), origin, a.ids, a.flag)
		}
		if err != nil {
			return err
		}
	}
	return c.ping() // an empty 200
}

// decodeAlertAction reads {"action":"update","fields":{"acknowledge":true},"alerts":[{"id":"1"}]}. A missing flag un-acknowledges.
func decodeAlertAction(v gjson.Result) (alertAction, error) {
	var a alertAction
	var o object
	action := ""
	flag := func(o *object, name string, v gjson.Result) {
		if o.flag(name, v) {
			a.flag = core.Acknowledge
		}
	}
	o.read(v, fields{
		"action": into(&action, (*object).text),
		"fields": func(o *object, _ string, v gjson.Result) {
			o.read(v, fields{"acknowledge": flag, "acknowledged": flag})
		},
		"alerts": func(o *object, name string, v gjson.Result) {
			if !v.IsArray() {
				o.fail("%s: an array is expected, not %s", name, excerpt(v.Raw))
				return
			}
			v.ForEach(func(_, item gjson.Result) bool {
				id, _, err := decodeAlertChange(item)
				if o.err == nil {
					o.err = err
				}
				a.ids = append(a.ids, id)
				return o.err == nil
			})
		},
	})
	switch strings.ToLower(action) {
	case "update":
	case "delete":
		a.remove = true
	default:
		o.fail("action: update or delete is expected, not '%s'", excerpt(action))
	}
	return a, o.err
}
