package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

// Load reads every *.yaml and *.yml below the root, in name order, compiles what it finds, and lists all faults at once. What is faultless is in the
// set, so that one broken rule does not stop the others.
func Load(fsys fs.FS) (*Set, Faults) {
	var faults Faults
	var files []string
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil && name != "." && errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s went away while it was read", name) // not the same as a directory that is not there
		}
		if err != nil {
			return err
		}
		if ext := path.Ext(name); !d.IsDir() && (ext == ".yaml" || ext == ".yml") {
			files = append(files, name)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return &Set{}, nil // a server without rules needs no directory for them
	}
	if err != nil {
		return &Set{}, Faults{{File: ".", Text: "cannot read the rules directory: " + err.Error()}}
	}
	slices.Sort(files)
	l := loader{set: &Set{}, faults: &faults}
	for _, name := range files {
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			faults = append(faults, Fault{File: name, Text: "cannot read the file: " + err.Error()})
			continue
		}
		l.file(name, text)
	}
	l.finish()
	return l.set, faults
}

type loader struct {
	set    *Set
	faults *Faults
}

func (l *loader) file(name string, text []byte) {
	for _, doc := range documents(newSource(name, text), text, l.faults) {
		before := len(*l.faults)
		l.document(doc, before)
	}
}

// document reads one document; it joins the set only when it added no fault.
func (l *loader) document(doc node, before int) {
	names := map[string]node{}
	for _, kv := range doc.pairs() {
		names[kv.key] = kv.value
	}
	kind := "rule"
	if k := names["kind"]; k.ast != nil {
		kind = k.oneOf("", "rule", "endpoint", "collection")
	}
	if n := names["name"]; n.ast != nil {
		doc.r.name = kind + " " + n.text()
	}
	if v, ok := names["version"]; ok && v.text() != "1" {
		v.fault("version %s of the rule format is not known: this program reads version 1", v.text())
	}
	switch kind {
	case "rule":
		r := readRule(doc)
		if len(*l.faults) == before {
			r.full = fingerprint(doc.tree())
			l.set.Rules = append(l.set.Rules, r)
		}
	case "endpoint":
		doc.fields(append([]string{"kind", "version", "name", "enabled", "url", "params"}, endpointKeys...)...)
		if e := readEndpoint(doc, "name"); len(*l.faults) == before {
			l.set.Endpoints = append(l.set.Endpoints, e)
		}
	case "collection":
		f := doc.fields("kind", "version", "name", "items")
		c := &Collection{Name: required(doc, f, "name"), Items: f["items"].texts(), at: doc.place()}
		if len(*l.faults) == before {
			l.set.Collections = append(l.set.Collections, c)
		}
	}
}

func required(doc node, f map[string]node, key string) string {
	n, ok := f[key]
	if !ok || n.text() == "" {
		doc.fault("%s is required", key)
		return ""
	}
	return n.text()
}

// finish checks what needs the whole set: unique names, references, and expressions.
func (l *loader) finish() {
	fault := func(at place, format string, args ...any) { *l.faults = append(*l.faults, at.fault(format, args...)) }
	seen := map[string]bool{}
	l.set.Endpoints = slices.DeleteFunc(l.set.Endpoints, func(e *Endpoint) bool {
		twice := seen["e"+e.Name]
		if seen["e"+e.Name] = true; twice {
			fault(e.at, "endpoint %q is defined twice", e.Name)
		}
		return twice
	})
	l.set.Collections = slices.DeleteFunc(l.set.Collections, func(c *Collection) bool {
		twice := seen["c"+c.Name]
		if seen["c"+c.Name] = true; twice {
			fault(c.at, "collection %q is defined twice", c.Name)
		}
		return twice
	})
	l.set.Rules = slices.DeleteFunc(l.set.Rules, func(r *Rule) bool {
		if seen["r"+r.Name] {
			fault(r.at, "rule %q is defined twice", r.Name)
			return true
		}
		seen["r"+r.Name] = true
		faults := compileRule(r, l.set)
		*l.faults = append(*l.faults, faults...)
		return len(faults) > 0
	})
}

func readRule(doc node) *Rule {
	f := doc.fields("kind", "version", "name", "enabled", "description", "type", "filter", "group_by", "window", "variables", "condition", "depends_on",
		"severity", "calendar", "overrides", "history", "actions", "tests")
	r := &Rule{Name: required(doc, f, "name"), at: doc.place(), Enabled: f["enabled"].bool(true), Description: f["description"].text()}
	required(doc, f, "type")
	r.Kind = Kind(f["type"].oneOf(string(KindSeries), string(KindSeries), string(KindMessage), string(KindProperty)))
	required(doc, f, "condition")
	r.Filter = readFilter(doc, f["filter"], r.Kind)
	r.Group = readGroup(f["group_by"], r.Kind)
	r.Window = readWindow(f["window"], r.Kind)
	r.Variables = readVariables(f["variables"])
	r.Condition, r.DependsOn = f["condition"].source(), f["depends_on"].source()
	r.Severity = core.Warning
	if s := f["severity"]; s.present() {
		var ok bool
		if r.Severity, ok = core.ParseSeverity(s.text()); !ok {
			s.fault("%q is not a severity: undefined, unknown, normal, warning, minor, major, critical or fatal", s.text())
		}
	}
	if f["calendar"].present() {
		f["calendar"].fault("calendar is not supported yet")
	}
	for _, item := range f["overrides"].items() {
		r.Overrides = append(r.Overrides, readOverride(item))
	}
	r.History = readHistory(f["history"])
	counts := map[string]int{}
	for _, item := range f["actions"].items() {
		r.Actions = append(r.Actions, readAction(item, counts))
	}
	checkActionNames(r, f)
	for _, item := range f["tests"].items() {
		r.Tests = append(r.Tests, readTest(item))
	}
	r.windows = fingerprint(r.Kind, r.Filter, r.Group, r.Window, r.Variables, r.Condition, r.DependsOn, r.Overrides)
	return r
}

func checkActionNames(r *Rule, f map[string]node) {
	names := map[string]bool{}
	for _, a := range r.Actions {
		if names[a.Name] {
			f["actions"].fault("action %q is defined twice", a.Name)
		}
		names[a.Name] = true
	}
	for _, o := range r.Overrides {
		for _, name := range o.Actions {
			if !names[name] {
				f["overrides"].fault("override table %q names the action %q, which the rule does not have", o.Name, name)
			}
		}
	}
}

// fingerprint hashes values by their printed form, without the places that texts carry.
func fingerprint(values ...any) string {
	h := sha256.New()
	for _, v := range values {
		fmt.Fprintf(h, "%v\x00", v)
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// Format keeps places out of fingerprints and messages.
func (t Text) Format(s fmt.State, _ rune) { fmt.Fprintf(s, "%q", t.Value) }

func readFilter(doc, n node, kind Kind) Filter {
	f := n.fields("metric", "type", "source", "entities", "entity_groups", "expression", "max_offset", "in_order_only")
	out := Filter{Metric: strings.ToLower(f["metric"].text()), Type: strings.ToLower(f["type"].text()), Source: strings.ToLower(f["source"].text()),
		Groups: f["entity_groups"].texts(), Expression: f["expression"].source(), MaxOffset: f["max_offset"].duration(0),
		InOrderOnly: f["in_order_only"].bool(false)}
	for _, name := range f["entities"].lowered() {
		out.Entities = append(out.Entities, strings.Fields(name)...)
	}
	switch kind {
	case KindSeries:
		if out.Metric == "" {
			doc.fault("filter.metric is required for a rule on series")
		}
	case KindMessage:
		refuse(f, "metric", kind)
		return out
	case KindProperty:
		refuse(f, "metric", kind)
		refuse(f, "source", kind)
		return out
	}
	refuse(f, "type", kind)
	refuse(f, "source", kind)
	return out
}

func refuse(f map[string]node, key string, kind Kind) {
	if n := f[key]; n.present() {
		n.fault("filter.%s does not apply to a rule on %s data", key, kind)
	}
}

func readGroup(n node, kind Kind) Group {
	f := n.fields("entity", "tags")
	g := Group{Entity: f["entity"].bool(true), AllTags: kind == KindSeries}
	tags := f["tags"]
	if !tags.present() {
		return g
	}
	g.AllTags = false
	g.Tags = tags.lowered()
	if len(g.Tags) == 1 && g.Tags[0] == "all" {
		return Group{Entity: g.Entity, AllTags: true}
	}
	if len(g.Tags) == 1 && g.Tags[0] == "none" {
		g.Tags = nil
	}
	slices.Sort(g.Tags)
	g.Tags = slices.Compact(g.Tags)
	return g
}

// Caps of a window when the rule does not set its own; they bound memory against a rule that groups by something unbounded.
const (
	defaultMaxSamples = 100_000
	defaultMaxWindows = 10_000
	maxCount          = 1_000_000
)

func readWindow(n node, kind Kind) Window {
	f := n.fields("count", "duration", "check_on_exit", "load_history", "start_date", "max_samples", "max_windows")
	w := Window{Count: f["count"].int(limits{1, maxCount, 0}), Duration: f["duration"].interval(), CheckOnExit: f["check_on_exit"].bool(false),
		LoadHistory: f["load_history"].bool(false), MaxSamples: f["max_samples"].int(limits{1, 10_000_000, defaultMaxSamples}),
		MaxWindows: f["max_windows"].int(limits{1, 1_000_000, defaultMaxWindows})}
	timed := f["duration"].present()
	switch {
	case timed && f["count"].present():
		f["duration"].fault("set either window.count or window.duration, not both")
	case timed && w.Duration.NominalMillis() < 1:
		f["duration"].fault("window.duration must be above zero")
	case !timed && w.Count == 0:
		w.Count = 1
	}
	if w.CheckOnExit && !timed {
		f["check_on_exit"].fault("window.check_on_exit needs window.duration: a count window never loses samples by itself")
	}
	if w.LoadHistory && kind != KindSeries {
		f["load_history"].fault("window.load_history is for rules on series")
	}
	if f["start_date"].present() {
		f["start_date"].fault("window.start_date is not supported yet")
	}
	return w
}

func readVariables(n node) []Variable {
	var out []Variable
	for _, item := range n.items() {
		f := item.fields("name", "expr")
		name := required(item, f, "name")
		required(item, f, "expr")
		if !isName(name) {
			item.fault("variable name %q must be letters, digits and _, and not start with a digit", name)
		}
		if slices.ContainsFunc(out, func(v Variable) bool { return v.Name == name }) {
			item.fault("variable %q is defined twice", name)
		}
		out = append(out, Variable{name, f["expr"].source()})
	}
	return out
}

func isName(s string) bool {
	for i, c := range s {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

func readOverride(n node) Override {
	f := n.fields("name", "actions", "rows")
	o := Override{Name: f["name"].text(), Actions: f["actions"].texts()}
	for _, item := range f["rows"].items() {
		r := item.fields("entity_group", "entity", "tags", "entity_tags", "error", "warning")
		o.Rows = append(o.Rows, OverrideRow{Group: r["entity_group"].text(), Entity: strings.ToLower(r["entity"].text()), Tags: r["tags"].tags(),
			EntityTags: r["entity_tags"].tags(), Error: r["error"].source(), Warning: r["warning"].source()})
	}
	return o
}

func readTriggers(n node, fallback Triggers) Triggers {
	if !n.present() {
		return fallback
	}
	var t Triggers
	for _, item := range n.items() {
		switch item.oneOf("", "open", "repeat", "cancel") {
		case "open":
			t |= OnOpen
		case "repeat":
			t |= OnRepeat
		case "cancel":
			t |= OnCancel
		}
	}
	return t
}

func readRepeat(n node) Repeat {
	if !n.present() {
		return Repeat{}
	}
	if word := strings.ToLower(scalarText(n)); word == "all" || word == "none" {
		return Repeat{Never: word == "none"}
	}
	f := n.fields("count", "interval")
	r := Repeat{Count: f["count"].int(limits{1, 1 << 30, 0}), Interval: f["interval"].interval()}
	if (r.Count > 0) == (r.Interval.NominalMillis() > 0) {
		n.fault("repeat must be all, none, {count: n} or {interval: 5m}")
	}
	return r
}

func readHistory(n node) History {
	f := n.fields("triggers", "repeat", "message", "message_repeat", "message_cancel", "file")
	if f["file"].present() {
		f["file"].fault("history.file is not supported yet: use an action of kind log")
	}
	if !n.present() {
		return History{}
	}
	if !f["triggers"].present() {
		n.fault("history.triggers is required: without open, repeat or cancel nothing is recorded")
	}
	h := History{Triggers: readTriggers(f["triggers"], 0), Repeat: readRepeat(f["repeat"]), Open: f["message"].source(), Again: f["message_repeat"].source(),
		Cancel: f["message_cancel"].source()}
	if h.Again.Value == "" {
		h.Again = h.Open
	}
	return h
}

// endpointKeys are those that an endpoint and a webhook in place have in common, beside url.
var endpointKeys = []string{"preset", "method", "headers", "content_type", "json", "form", "body", "for_each", "auth", "sign", "timeout", "retries",
	"ignore_ssl", "proxy", "log_response"}

func readAction(n node, counts map[string]int) Action {
	common := []string{"kind", "name", "enabled", "triggers", "open_delay", "repeat", "min_interval", "use", "instant", "when"}
	own := map[string][]string{
		"webhook": append([]string{"endpoint", "url", "params", "params_repeat", "params_cancel", "render"}, endpointKeys...),
		"command": {"commands"},
		"log":     {"message"},
	}
	var kind node
	for _, kv := range n.pairs() {
		if kv.key == "kind" {
			kind = kv.value
		}
	}
	if !kind.present() {
		n.fault("kind is required: webhook, command or log")
		return Action{}
	}
	name := strings.ToLower(kind.text())
	if name == "email" || name == "script" {
		kind.fault("actions of kind %s are not supported yet: use webhook, command or log", name)
		return Action{}
	}
	kind.oneOf("", "webhook", "command", "log")
	f := n.fields(append(common, own[name]...)...)
	counts[name]++
	if f["instant"].bool(false) {
		f["instant"].fault("instant is not supported yet: notifications are queued by target and sent at once, so that they only wait for others to the same target")
	}
	a := Action{Kind: name, Name: f["name"].text(), Enabled: f["enabled"].bool(true), OpenDelay: f["open_delay"].duration(0), Repeat: readRepeat(f["repeat"]),
		MinInterval: f["min_interval"].duration(0), OverridesOnly: f["use"].oneOf("always", "always", "overrides") == "overrides",
		When: f["when"].source(), Commands: f["commands"].source(), Message: f["message"].source(), at: n.place()}
	if a.Name == "" {
		a.Name = fmt.Sprintf("%s-%d", name, counts[name])
	}
	fallback := OnOpen
	if name != "webhook" {
		fallback = OnOpen | OnRepeat
	}
	if name == "log" {
		fallback = OnOpen | OnRepeat | OnCancel
	}
	a.Triggers = readTriggers(f["triggers"], fallback)
	if name == "webhook" {
		readWebhook(n, f, &a)
	}
	if name == "command" {
		required(n, f, "commands")
	}
	return a
}

func readWebhook(n node, f map[string]node, a *Action) {
	a.Endpoint = f["endpoint"].text()
	a.Params, a.ParamsRepeat, a.ParamsCancel = f["params"].params(), f["params_repeat"].params(), f["params_cancel"].params()
	if r := f["render"]; r.present() {
		rf := r.fields("plugin", "format")
		a.RenderPlugin = required(r, rf, "plugin")
		a.RenderFormat = rf["format"].oneOf("text", "text", "json")
	}
	inline := f["url"].present() || f["preset"].present() && a.Endpoint == "" // a preset may know the address
	if inline == (a.Endpoint != "") {
		n.fault("a webhook names an endpoint, or has a url: set one of them")
	}
	if a.Endpoint != "" {
		for _, key := range endpointKeys {
			if f[key].present() {
				f[key].fault("%s belongs to the endpoint that the action names: set it there", key)
			}
		}
	}
	if inline {
		a.Inline = readEndpoint(n, "")
	}
}

// readEndpoint reads the keys of an endpoint from its own document, or from an action that has them in place.
func readEndpoint(n node, nameKey string) *Endpoint {
	f := map[string]node{}
	for _, kv := range n.pairs() {
		f[kv.key] = kv.value
	}
	e := &Endpoint{Enabled: f["enabled"].bool(true), Method: strings.ToUpper(f["method"].oneOf("POST", "get", "head", "delete", "post", "put", "patch")),
		URL: f["url"].source(), Headers: f["headers"].params(), ContentType: f["content_type"].text(), JSON: f["json"].tree(), Form: f["form"].params(),
		Body: f["body"].source(), ForEach: f["for_each"].text(), SignSecret: f["sign"].fields("secret")["secret"].source(),
		Timeout: f["timeout"].duration(30 * time.Second), Retries: f["retries"].int(limits{0, 100, -1}), IgnoreTLS: f["ignore_ssl"].bool(false),
		LogResponse: f["log_response"].bool(false), at: n.place()}
	if nameKey != "" {
		e.Name = required(n, f, nameKey)
		e.Params = readEndpointParams(f["params"])
	}
	if f["proxy"].present() {
		f["proxy"].fault("proxy is not supported yet")
	}
	readPreset(n, f, e)
	readAuth(f["auth"], e)
	bodies := 0
	for _, key := range []string{"json", "form", "body"} {
		if f[key].present() {
			bodies++
		}
	}
	if bodies > 1 {
		n.fault("set one of json, form and body")
	}
	return e
}

func readEndpointParams(n node) []EndpointParam {
	var out []EndpointParam
	for _, kv := range n.pairs() {
		f := kv.value.fields("default", "fixed")
		out = append(out, EndpointParam{kv.key, f["default"].source(), f["fixed"].bool(false)})
	}
	return out
}

// presets are the well-known targets: where they are, and what they want as a body. The texts are parameters that a rule fills; those that are optional
// have no field in the body while they are empty.
var presets = map[string]struct {
	url      string
	body     map[string]any
	optional []string
}{
	"slack": {"https://slack.com/api/chat.postMessage", map[string]any{"channel": Text{Value: "${channels}"}, "text": Text{Value: "${text}"}}, nil},
	"telegram": {"https://api.telegram.org/bot${token}/sendMessage", map[string]any{"chat_id": Text{Value: "${chat_id}"}, "text": Text{Value: "${text}"},
		"parse_mode": Text{Value: "${parse_mode}"}, "disable_notification": Text{Value: "${disable_notification}"},
		"disable_web_page_preview": Text{Value: "${disable_web_page_preview}"}}, []string{"parse_mode", "disable_notification", "disable_web_page_preview"}},
	"discord": {"", map[string]any{"content": Text{Value: "${content}"}}, nil},
	"event":   {"", nil, nil},
}

func readPreset(n node, f map[string]node, e *Endpoint) {
	if p := f["preset"]; p.present() {
		e.Preset = p.oneOf("", "slack", "telegram", "discord", "event")
		preset := presets[e.Preset]
		if e.URL.Value == "" {
			e.URL.Value = preset.url
		}
		if e.JSON == nil && preset.body != nil {
			e.JSON, e.Optional = preset.body, preset.optional
		}
		if e.Preset == "slack" && e.ForEach == "" {
			e.ForEach = "channels"
		}
	}
	if e.URL.Value == "" {
		n.fault("url is required")
	}
}

func readAuth(n node, e *Endpoint) {
	f := n.fields("basic", "bearer", "aws4", "azure_sas", "gcp_jwt")
	basic := f["basic"].fields("user", "password")
	e.User, e.Password, e.Bearer = basic["user"].source(), basic["password"].source(), f["bearer"].source()
	for _, kind := range []string{"aws4", "azure_sas", "gcp_jwt"} {
		if f[kind].present() {
			f[kind].fault("auth of kind %s is not supported yet: use basic or bearer", kind)
		}
	}
}

func readTest(n node) Test {
	f := n.fields("name", "date", "zone", "entities", "stored", "steps")
	t := Test{Name: f["name"].text(), Date: f["date"].text(), Zone: f["zone"].text(), Line: n.place().line}
	for _, kv := range f["entities"].pairs() {
		e := kv.value.fields("label", "tags", "groups")
		t.Entities = append(t.Entities, TestEntity{strings.ToLower(kv.key), e["label"].text(), e["tags"].tags(), e["groups"].texts()})
	}
	for _, text := range f["stored"].texts() {
		t.Stored = append(t.Stored, strings.Split(strings.TrimSpace(text), "\n")...)
	}
	for _, item := range f["steps"].items() {
		s := item.fields("at", "insert", "expect")
		step := TestStep{At: required(item, s, "at"), Insert: strings.Join(s["insert"].texts(), "\n"), Line: item.place().line}
		if e := s["expect"]; e.present() {
			e.fields("entity", "tags", "status", "severity", "repeat_count", "variables", "error", "actions")
			step.Expect = plainTree(e.tree())
		}
		t.Steps = append(t.Steps, step)
	}
	return t
}

// plainTree replaces the Text leaves of a tree by strings.
func plainTree(v any) any {
	switch v := v.(type) {
	case Text:
		return v.Value
	case map[string]any:
		for k, e := range v {
			v[k] = plainTree(e)
		}
	case []any:
		for i, e := range v {
			v[i] = plainTree(e)
		}
	}
	return v
}
