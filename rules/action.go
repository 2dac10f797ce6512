package rules

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/rules/outbox"
)

// action is a compiled action.
type action struct {
	def      *Action
	when     *program
	commands *template
	message  *template
	target   *target
}

// target is a compiled webhook: an endpoint with the parameters that one rule gives it.
type target struct {
	endpoint *Endpoint
	params   [3][]namedTemplate // by trigger: open, repeat, cancel
	defaults []namedTemplate
	url      *template
	headers  []namedTemplate
	json     any // like Endpoint.JSON, with *template leaves
	form     []namedTemplate
	body     *template
	user     *template
	password *template
	bearer   *template
	secret   *template
}

type namedTemplate struct {
	name string
	text *template
}

func triggerIndex(on Triggers) int {
	switch on {
	case OnOpen:
		return 0
	case OnRepeat:
		return 1
	}
	return 2
}

func secretMark(a ...any) (any, error) { return outbox.Mark(textOf(a[0])), nil }

func isSecretMark(text string) bool {
	return strings.HasPrefix(text, "\x01") && text == outbox.Mark(strings.Trim(text, "\x01"))
}

func (c *compiler) action(def *Action, set *Set) *action {
	a := &action{def: def}
	c.strict = true
	a.when = c.boolean(def.When, inTemplate)
	c.strict = false
	switch def.Kind {
	case "command":
		a.commands = c.template(def.Commands)
	case "log":
		if def.Message.Value != "" {
			a.message = c.template(def.Message)
		}
	case "webhook":
		a.target = c.target(def, set)
	}
	return a
}

func (c *compiler) target(def *Action, set *Set) *target {
	e := def.Inline
	if e == nil {
		if e = set.endpoint(def.Endpoint); e == nil {
			var names []string
			for _, known := range set.Endpoints {
				names = append(names, known.Name)
			}
			c.fault(def.at, "endpoint %q does not exist%s", def.Endpoint, suggest(def.Endpoint, names))
			return nil
		}
	}
	t := &target{endpoint: e}
	for i, params := range [][]Param{def.Params, def.ParamsRepeat, def.ParamsCancel} {
		if params == nil {
			params = def.Params
		}
		t.params[i] = c.named(params)
	}
	for _, p := range e.Params {
		if p.Fixed && slices.ContainsFunc(def.Params, func(given Param) bool { return given.Name == p.Name }) {
			c.fault(def.at, "parameter %q of endpoint %q is fixed", p.Name, e.Name)
		}
		t.defaults = append(t.defaults, namedTemplate{p.Name, c.template(p.Default)})
	}
	added := c.declare(t)
	t.url, t.form, t.body = c.template(e.URL), c.named(e.Form), c.maybe(e.Body)
	t.json = c.tree(e.JSON)
	c.secrets = true
	t.headers = c.named(e.Headers)
	t.user, t.password, t.bearer, t.secret = c.maybe(e.User), c.maybe(e.Password), c.maybe(e.Bearer), c.maybe(e.SignSecret)
	c.secrets = false
	for _, name := range added {
		delete(c.extra, name)
	}
	return t
}

// declare makes all parameters of t names for the endpoint's own templates.
func (c *compiler) declare(t *target) []string {
	var added []string
	for _, list := range [][]namedTemplate{t.defaults, t.params[0], t.params[1], t.params[2]} {
		for _, p := range list {
			if !c.extra[p.name] {
				c.extra[p.name] = true
				added = append(added, p.name)
			}
		}
	}
	return added
}

func (c *compiler) named(params []Param) []namedTemplate {
	out := make([]namedTemplate, len(params))
	for i, p := range params {
		out[i] = namedTemplate{p.Name, c.template(p.Value)}
	}
	return out
}

func (c *compiler) maybe(t Text) *template {
	if t.Value == "" {
		return nil
	}
	return c.template(t)
}

func (c *compiler) tree(v any) any {
	switch v := v.(type) {
	case Text:
		return c.template(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out[k] = c.tree(v[k])
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = c.tree(e)
		}
		return out
	}
	return v
}

// allowed reports whether a may fire when the row of table decided the status.
func (a *action) allowed(table *Override) bool {
	if !a.def.Enabled {
		return false
	}
	if table != nil && len(table.Actions) > 0 {
		return slices.Contains(table.Actions, a.def.Name)
	}
	return !a.def.OverridesOnly
}

// runActions fires, or schedules, the actions of a rule that a status change triggers. After a Cancel only those act that were allowed on its Open.
func (e *Engine) runActions(w *window, fx *effects, on Triggers, table *Override) {
	ev := w.rule.compiled.ev
	for i, a := range ev.compiled.actions {
		st := &w.actions[i]
		allowed := a.allowed(table)
		if on == OnCancel {
			allowed = st.opened
		}
		pending := st.pending != 0
		if on == OnCancel {
			st.pending = 0
		}
		switch {
		case !allowed || a.def.Triggers&on == 0:
		case pending: // the recipient has not seen an Open yet: neither Repeat nor Cancel makes sense to it
		case on == OnOpen && a.def.OpenDelay > 0:
			st.pending = ev.now + core.Time(a.def.OpenDelay.Milliseconds())
		case on == OnRepeat && !a.def.Repeat.due(w.repeat, st.lastFired, ev.now):
		default:
			e.fire(w, fx, i, on)
		}
	}
	e.schedule(w)
}

// fire renders one action and adds it to the effects.
func (e *Engine) fire(w *window, fx *effects, i int, on Triggers) {
	ev := w.rule.compiled.ev
	a := ev.compiled.actions[i]
	ev.phase = inTemplate
	ev.repeatText = a.def.Repeat.String()
	last := &e.rules[w.rule.Name].lastSent[i]
	if m := core.Time(a.def.MinInterval.Milliseconds()); m > 0 && *last != 0 && ev.now-*last < m {
		return
	}
	if a.when != nil {
		ok, err := ev.truth(a.when)
		if err != nil {
			ev.report(fmt.Errorf("action %s, when: %w", a.def.Name, firstLine(err)))
		}
		if err != nil || !ok {
			return
		}
	}
	queued := len(fx.notifications)
	var err error
	switch a.def.Kind {
	case "command":
		err = ev.deriveCommands(a, fx)
	case "log":
		err = e.logLine(w, fx, a, on)
	case "webhook":
		err = e.webhook(w, fx, a, on)
	}
	if errors.Is(err, errCancelled) {
		return
	}
	if err != nil {
		ev.report(fmt.Errorf("action %s: %w", a.def.Name, err))
		return
	}
	traced := TracedAction{Name: a.def.Name, Kind: a.def.Kind, Text: fx.text}
	for _, n := range fx.notifications[queued:] {
		traced.Requests = append(traced.Requests, n.Request)
	}
	fx.fired = append(fx.fired, traced)
	fx.text = ""
	w.actions[i].lastFired, *last = ev.now, ev.now
	e.stats.actions++
}

func (e *Engine) logLine(w *window, fx *effects, a *action, on Triggers) error {
	ev := w.rule.compiled.ev
	text := defaultText(w, on)
	if a.message != nil {
		var err error
		if text, err = ev.render(a.message, asIs); err != nil {
			return err
		}
	}
	fx.text = text
	if !e.suppressed(fx) {
		e.log.Info(text, "rule", w.rule.Name, "status", string(ev.status), "entity", w.last.entity, "severity", ev.severity.String())
	}
	return nil
}

// webhook renders the request of an action, or several when the endpoint asks for one per item of a list.
func (e *Engine) webhook(w *window, fx *effects, a *action, on Triggers) error {
	ev, t := w.rule.compiled.ev, a.target
	if !t.endpoint.Enabled {
		return nil
	}
	defer ev.dropExtra()
	values, err := ev.params(t, on)
	if err != nil {
		return err
	}
	items := []string{""}
	if name := t.endpoint.ForEach; name != "" {
		items = items[:0]
		for item := range strings.SplitSeq(textOf(values[name]), ",") {
			if item = strings.TrimSpace(item); item != "" {
				items = append(items, item)
			}
		}
	}
	for i, item := range items {
		if t.endpoint.ForEach != "" {
			values[t.endpoint.ForEach] = item
		}
		maps.Copy(ev.extra, values)
		n := outbox.Notification{ID: fx.event + "-" + a.def.Name, Rule: w.rule.Name, Action: a.def.Name, Endpoint: t.endpoint.Name, Entity: w.last.entity,
			Created: ev.now, Lane: laneOf(w, a, item), Order: fx.order}
		if i > 0 {
			n.ID = fmt.Sprintf("%s-%d", n.ID, i+1)
		}
		if n.Request, err = ev.request(t, values); err != nil {
			return err
		}
		if a.def.RenderPlugin != "" {
			n.Flag = e.renderPlugin(w, fx, a, &n.Request, on)
		}
		fx.notifications = append(fx.notifications, n)
	}
	return nil
}

// laneOf names what keeps its order: the notifications of one action about one window, and to one item where a request goes to each of a list.
func laneOf(w *window, a *action, item string) string {
	h := sha256.Sum256([]byte(w.rule.Name + "\x00" + w.key + "\x00" + a.def.Name + "\x00" + item))
	return hex.EncodeToString(h[:16])
}

// params renders the rule's parameters, and the endpoint's defaults for those that the rule leaves out.
func (ev *evaluation) params(t *target, on Triggers) (map[string]any, error) {
	values := map[string]any{}
	for _, list := range [][]namedTemplate{t.defaults, t.params[triggerIndex(on)]} {
		for _, p := range list {
			text, err := ev.render(p.text, asIs)
			if err != nil {
				return nil, err
			}
			values[p.name] = text
		}
	}
	return values, nil
}

func (ev *evaluation) request(t *target, values map[string]any) (outbox.Request, error) {
	e := t.endpoint
	r := outbox.Request{Method: e.Method, ContentType: e.ContentType, Timeout: e.Timeout, Retries: e.Retries, IgnoreTLS: e.IgnoreTLS,
		LogResponse: e.LogResponse, HexSHA1: e.Preset == "event"}
	var errs []error
	text := func(t *template, esc escaping) string {
		s, err := ev.render(t, esc)
		errs = append(errs, err)
		return s
	}
	r.URL = text(t.url, inURL)
	for _, h := range t.headers {
		r.Headers = append(r.Headers, outbox.Header{Name: h.name, Value: text(h.text, inHeader)})
	}
	r.User, r.Password, r.Bearer, r.Secret = text(t.user, inHeader), text(t.password, inHeader), text(t.bearer, inHeader), text(t.secret, inHeader)
	bodyless := e.Method == "GET" || e.Method == "HEAD" || e.Method == "DELETE"
	isForm := strings.HasPrefix(strings.ToLower(e.ContentType), "application/x-www-form-urlencoded")
	switch {
	case len(t.form) > 0 || bodyless:
		form := url.Values{}
		for _, f := range t.form {
			form.Set(f.name, text(f.text, asIs))
		}
		if bodyless {
			r.URL = withQuery(r.URL, form)
			break
		}
		r.Body = form.Encode()
		r.SignedText = r.Body
		isForm = true
	case t.body != nil:
		r.Body = text(t.body, asIs)
	case t.json != nil:
		tree := ev.jsonTree(t.json, &errs)
		for _, key := range e.Optional {
			if m, ok := tree.(map[string]any); ok && m[key] == "" {
				delete(m, key)
			}
		}
		r.Body = jsonText(tree)
	default:
		if e.Preset == "event" {
			values = ev.payload()
		}
		if !isForm {
			r.Body = jsonText(values)
			break
		}
		r.Body = formText(values)
		r.SignedText = r.Body
	}
	if r.ContentType == "" && !bodyless {
		r.ContentType = "application/json"
		if isForm {
			r.ContentType = "application/x-www-form-urlencoded"
		}
	}
	return r, errors.Join(errs...)
}

func withQuery(target string, form url.Values) string {
	switch {
	case len(form) == 0:
		return target
	case strings.Contains(target, "?"):
		return target + "&" + form.Encode()
	}
	return target + "?" + form.Encode()
}

func (ev *evaluation) jsonTree(v any, errs *[]error) any {
	switch v := v.(type) {
	case *template:
		s, err := ev.render(v, asIs)
		*errs = append(*errs, err)
		return s
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = ev.jsonTree(e, errs)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = ev.jsonTree(e, errs)
		}
		return out
	}
	return v
}

// jsonText encodes without the escapes meant for HTML: receivers compare bodies.
func jsonText(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // trees of texts, numbers and booleans: cannot fail
	return strings.TrimSuffix(b.String(), "\n")
}

// formText encodes values as a form, sorted by name, with each value as templates print it.
func formText(values map[string]any) string {
	form := url.Values{}
	for name, v := range values {
		form.Set(name, textOf(v))
	}
	return form.Encode()
}

// payload is the fixed body of the preset `event`.
func (ev *evaluation) payload() map[string]any {
	w, r := ev.win, ev.rule
	date := func(t core.Time) string {
		if t == 0 {
			return ""
		}
		return strings.TrimSuffix(strings.Replace(dates.FormatISO(t), ".000Z", "Z", 1), "Z") + "Z[Etc/UTC]"
	}
	duration, interval := clockText(ev.now-w.openTime), unitText(ev.now-w.openTime)
	if ev.status == core.StatusOpen {
		duration, interval = clockText(0), ""
	}
	var properties any = ""
	if r.Kind == KindProperty {
		properties = mapOf(ev.cmd.props)
	}
	entity := ev.entityObject(ev.cmd.entity)
	p := map[string]any{"status": string(ev.status), "alert_type": string(ev.status), "rule": r.Name, "rule_name": r.Name, "expression": r.Condition.Value,
		"rule_expression": r.Condition.Value, "rule_filter": r.Filter.Expression.Value, "window": r.Window.String(), "schedule": "",
		"severity": strings.ToLower(ev.severity.String()), "entity": ev.cmd.entity, "entity.name": entity.Name, "entity.label": entity.Label,
		"entity.id": entity.ID, "entity.enabled": entity.Enabled, "entity.tags": entity.Tags, "metric": ev.cmd.metric, "tags": ev.commandTagMap(),
		"value": jsonNumber(ev.cmd.value), "open_value": jsonNumber(w.openValue), "count": w.len(), "repeat_count": w.repeat, "message": ev.cmd.text, "properties": properties,
		"command_time": date(w.commandTime), "command_first_time": date(w.firstTime()), "open_time": date(w.openTime),
		"update_time": date(max(w.addTime, w.removeTime)), "alert_duration": duration,
		"alert_duration_interval": interval, "alert_message": ev.historyText, "repeat_interval": ev.repeatText,
		"min_interval_expired": true}
	if r.Kind == KindSeries {
		m := ev.metricObject(ev.cmd.metric)
		maps.Copy(p, map[string]any{"metric.name": m.Name, "metric.id": m.Name, "metric.dataType": m.DataType, "metric.enabled": m.Enabled,
			"metric.interpolate": m.Interpolate, "metric.invalidValueAction": m.InvalidAction, "metric.persistent": m.Persistent,
			"metric.seriesRetentionDays": m.SeriesRetentionDays, "metric.versioning": m.Versioned, "metric.tags": m.Tags, "metric.label": m.Label})
	}
	return p
}

// jsonNumber is null for what JSON has no number for.
func jsonNumber(v float64) any {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return v
}

// maxRender is how long an alert plugin may hold up the engine. The plugin host bounds the call itself to one second; the rest is for compiling the plugin
// at its first use, which takes seconds where nothing is cached: an alert must not lose its text because the server has just started.
const maxRender = 30 * time.Second

// renderPlugin replaces the body by what an alert plugin makes of the transition. When that fails the built-in text goes out, and the flag says why.
func (e *Engine) renderPlugin(w *window, fx *effects, a *action, r *outbox.Request, on Triggers) (flag string) {
	if e.suppressed(fx) {
		return ""
	}
	ev := w.rule.compiled.ev
	event := core.AlertEvent{ID: fx.event, Rule: w.rule.Name, Condition: w.rule.Condition.Value, Window: w.rule.Window.String(), Status: ev.status,
		Before: ev.before, Alert: alertOf(w), Type: ev.cmd.typ, Source: ev.cmd.source, Tags: ev.cmd.tags, Time: w.commandTime, Received: ev.now}
	for _, name := range slices.Sorted(maps.Keys(ev.extra)) {
		event.Fields = append(event.Fields, core.Tag{Name: name, Value: textOf(ev.extra[name])})
	}
	for i, v := range ev.rule.Variables {
		if ev.memoSet[i] && ev.memoErr[i] == nil {
			event.Fields = append(event.Fields, core.Tag{Name: v.Name, Value: valueText(ev.memo[i])})
		}
	}
	event.Fields = event.Fields.Normal()
	text, body, err := e.callRenderer(a.def.RenderPlugin, event)
	switch {
	case err != nil:
		ev.report(fmt.Errorf("action %s, plugin %s: %w", a.def.Name, a.def.RenderPlugin, err))
		flag = "plugin " + a.def.RenderPlugin + " failed: the built-in text was used"
		r.Body = jsonText(map[string]any{"text": defaultText(w, on), "flag": flag})
		r.ContentType = "application/json"
	case a.def.RenderFormat == "json":
		r.Body, r.ContentType = body, "application/json"
	default:
		r.Body, r.ContentType = text, "text/plain; charset=UTF-8"
	}
	return flag
}

func (e *Engine) callRenderer(plugin string, event core.AlertEvent) (text, body string, err error) {
	if e.renderer == nil {
		return "", "", errors.New("no plugins are loaded")
	}
	ctx, cancel := context.WithTimeout(e.ctx, maxRender)
	defer cancel()
	out, err := e.renderer.Render(ctx, plugin, []core.AlertEvent{event})
	if err != nil {
		return "", "", err
	}
	if len(out) != 1 {
		return "", "", fmt.Errorf("%d results for one event", len(out))
	}
	if len(out[0].JSON) > maxText || len(out[0].Text) > maxText || len(out[0].JSON) > 0 && !json.Valid(out[0].JSON) {
		return "", "", errors.New("result is too long or not JSON")
	}
	return out[0].Text, string(out[0].JSON), nil
}
