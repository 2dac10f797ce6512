package rules

import (
	"context"
	"strings"
	"time"

	"github.com/expr-lang/expr/types"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
)

// identifier is a name of the expression language: where and for which kinds of rule it may stand (letters of series, message, property; "" = all), its
// type, and how it is read.
type identifier struct {
	in    phase
	kinds string
	typ   types.Type
	get   func(*evaluation) any
}

const (
	everywhere   = inFilter | inCondition | inTemplate
	afterFilter  = inCondition | inTemplate
	templateOnly = inTemplate
)

var (
	timeType  = types.TypeOf(time.Time{})
	tagsType  = types.TypeOf(map[string]string{})
	entityObj = types.TypeOf(&entityObject{})
	metricObj = types.TypeOf(&metricObject{})
)

// entityObject is what a dot behind `entity` reaches.
type entityObject struct {
	Name         string            `expr:"name"`
	Label        string            `expr:"label"`
	DisplayName  string            `expr:"displayName"`
	ID           string            `expr:"id"` // the name: entities have no other
	Enabled      bool              `expr:"enabled"`
	Interpolate  string            `expr:"interpolate"`
	TimeZone     string            `expr:"timeZone"`
	CreationTime time.Time         `expr:"creationTime"`
	LastInsert   any               `expr:"lastInsertTime"` // time.Time; nil = it has no samples
	Tags         map[string]string `expr:"tags"`
}

// metricObject is what a dot behind `metric` reaches.
type metricObject struct {
	Name                string            `expr:"name"`
	Label               string            `expr:"label"`
	Description         string            `expr:"description"`
	DataType            string            `expr:"dataType"`
	Interpolate         string            `expr:"interpolate"`
	Units               string            `expr:"units"`
	TimeZone            string            `expr:"timeZone"`
	Enabled             bool              `expr:"enabled"`
	Persistent          bool              `expr:"persistent"`
	Versioned           bool              `expr:"versioned"`
	Filter              string            `expr:"filter"`
	InvalidAction       string            `expr:"invalidAction"`
	MinValue            any               `expr:"minValue"`
	MaxValue            any               `expr:"maxValue"`
	RetentionDays       int               `expr:"retentionDays"`
	SeriesRetentionDays int               `expr:"seriesRetentionDays"`
	CreatedDate         time.Time         `expr:"createdDate"`
	LastInsert          any               `expr:"lastInsertDate"` // time.Time; nil = it has no samples
	Tags                map[string]string `expr:"tags"`
}

func (ev *evaluation) newEntityObject(e core.Entity) *entityObject {
	o := &entityObject{Name: e.Name, ID: e.Name, Label: e.Label, DisplayName: e.Label, Enabled: e.Enabled, Interpolate: e.Interpolate, TimeZone: e.TimeZone,
		CreationTime: e.Created.Std(), LastInsert: ev.lastInsertOfEntity(e.Name), Tags: e.Tags}
	if o.Label == "" {
		o.DisplayName = e.Name
	}
	if o.Tags == nil {
		o.Tags = map[string]string{}
	}
	return o
}

func (ev *evaluation) entityObject(name string) *entityObject {
	e, ok := ev.catalogEntity(name)
	if !ok {
		e = core.NewEntity(name, ev.now)
	}
	return ev.newEntityObject(e)
}

func (ev *evaluation) metricObject(name string) *metricObject {
	m := core.NewMetric(name, ev.now)
	if ev.host != nil && ev.host.catalog != nil {
		if stored, ok := ev.host.catalog.Metric(name); ok {
			m = stored
		}
	}
	o := &metricObject{Name: m.Name, Label: m.Label, Description: m.Description, DataType: string(m.DataType), Interpolate: m.Interpolate, Units: m.Units,
		TimeZone: m.TimeZone, Enabled: m.Enabled, Persistent: m.Persistent, Versioned: m.Versioned, Filter: m.Filter, InvalidAction: string(m.InvalidAction),
		RetentionDays: m.RetentionDays, SeriesRetentionDays: m.SeriesRetentionDays, CreatedDate: m.Created.Std(), LastInsert: ev.lastInsertOfMetric(m.Name),
		Tags: m.Tags}
	if m.MinValue != nil {
		o.MinValue = *m.MinValue
	}
	if m.MaxValue != nil {
		o.MaxValue = *m.MaxValue
	}
	if o.Tags == nil {
		o.Tags = map[string]string{}
	}
	return o
}

// lastInsertOfEntity is the time of the newest sample of an entity, nil when there is none. It is looked up for rules that ask for it.
func (ev *evaluation) lastInsertOfEntity(name string) any {
	if ev.compiled == nil || !ev.compiled.asksInserts || ev.host == nil || ev.host.metadata == nil {
		return nil
	}
	for e, err := range ev.host.metadata.Entities(ev.host.ctx, core.MetaQuery{Name: name}) {
		if err == nil && e.Inserted {
			return e.Last.Std().In(ev.zone())
		}
	}
	return nil
}

// lastInsertOfMetric is the same of a metric.
func (ev *evaluation) lastInsertOfMetric(name string) any {
	if ev.compiled == nil || !ev.compiled.asksInserts || ev.host == nil || ev.host.metadata == nil {
		return nil
	}
	for m, err := range ev.host.metadata.Metrics(ev.host.ctx, core.MetaQuery{Name: name}) {
		if err == nil && m.Inserted {
			return m.Last.Std().In(ev.zone())
		}
	}
	return nil
}

// entityByLabel is the first entity, by name, that has a label in any case.
func (ev *evaluation) entityByLabel(label string) (found core.Entity, ok bool, err error) {
	if ev.host == nil || ev.host.metadata == nil {
		return found, false, errNoReader
	}
	ctx, cancel := context.WithTimeout(ev.host.ctx, maxReadTime)
	defer cancel()
	for e, err := range ev.host.metadata.Entities(ctx, core.MetaQuery{}) {
		if err != nil {
			return found, false, err
		}
		if e.Label != "" && strings.EqualFold(e.Label, label) && (!ok || e.Name < found.Name) {
			found, ok = *e.Entity, true
		}
	}
	return found, ok, nil
}

func (ev *evaluation) catalogEntity(name string) (core.Entity, bool) {
	if ev.host == nil || ev.host.catalog == nil {
		return core.Entity{}, false
	}
	return ev.host.catalog.Entity(name)
}

// commandTagMap are the tags of the command. Messages add their fields and properties their type where no tag has that name.
func (ev *evaluation) commandTagMap() map[string]string {
	if p := ev.cmd.plan; p != nil {
		if p.tags == nil {
			p.tags = mapOf(p.key.Tags)
		}
		return p.tags
	}
	m := make(map[string]string, len(ev.cmd.tags)+3)
	switch ev.rule.Kind {
	case KindMessage:
		m["type"], m["source"], m["severity"] = ev.cmd.typ, ev.cmd.source, ev.cmd.severity.String()
	case KindProperty:
		m["type"] = ev.cmd.typ
		for _, t := range ev.cmd.keys {
			m[t.Name] = t.Value
		}
	}
	for _, t := range ev.cmd.tags {
		m[t.Name] = t.Value
	}
	return m
}

func mapOf(t core.Tags) map[string]string {
	if m := t.Map(); m != nil {
		return m
	}
	return map[string]string{}
}

// identifiers is the table of section 2.3 of the rule contract.
var identifiers = map[string]identifier{
	"rule":            {afterFilter, "", types.String, func(ev *evaluation) any { return ev.rule.Name }},
	"rule_name":       {templateOnly, "", types.String, func(ev *evaluation) any { return ev.rule.Name }},
	"rule_filter":     {afterFilter, "", types.String, func(ev *evaluation) any { return ev.rule.Filter.Expression.Value }},
	"window":          {afterFilter, "", types.String, func(ev *evaluation) any { return ev.rule.Window.String() }},
	"before_status":   {afterFilter, "", types.String, func(ev *evaluation) any { return string(ev.before) }},
	"status":          {templateOnly, "", types.String, func(ev *evaluation) any { return string(ev.status) }},
	"alert_type":      {templateOnly, "", types.String, func(ev *evaluation) any { return string(ev.status) }},
	"condition":       {templateOnly, "", types.String, func(ev *evaluation) any { return ev.rule.Condition.Value }},
	"expression":      {templateOnly, "", types.String, func(ev *evaluation) any { return ev.rule.Condition.Value }},
	"rule_expression": {templateOnly, "", types.String, func(ev *evaluation) any { return ev.rule.Condition.Value }},
	"threshold":       {templateOnly, "", types.String, func(ev *evaluation) any { return ev.threshold }},
	"repeat_count":    {templateOnly, "", types.Int, func(ev *evaluation) any { return ev.win.repeat }},
	"severity": {everywhere, "", types.String, func(ev *evaluation) any {
		if ev.phase == inTemplate {
			return ev.severity.String()
		}
		return ev.cmd.severity.String()
	}},
	"delay_expired":        {templateOnly, "", types.Bool, func(ev *evaluation) any { return ev.delayed }},
	"min_interval_expired": {templateOnly, "", types.Bool, func(*evaluation) any { return true }},
	"repeat_interval":      {templateOnly, "", types.String, func(ev *evaluation) any { return ev.repeatText }},
	"alert_message":        {templateOnly, "", types.String, func(ev *evaluation) any { return ev.historyText }},

	"entity":   {everywhere, "", types.String, func(ev *evaluation) any { return ev.cmd.entity }},
	"__entity": {everywhere, "", entityObj, func(ev *evaluation) any { return ev.entityObject(ev.cmd.entity) }},
	"metric":   {everywhere, "", types.String, func(ev *evaluation) any { return ev.cmd.metric }},
	"__metric": {everywhere, "", metricObj, func(ev *evaluation) any { return ev.metricObject(ev.cmd.metric) }},
	"tags":     {everywhere, "", tagsType, func(ev *evaluation) any { return ev.commandTagMap() }},
	"window_entity": {afterFilter, "", types.Any, func(ev *evaluation) any {
		if !ev.rule.Group.Entity {
			return nil
		}
		return ev.win.entity
	}},
	"window_tags":         {afterFilter, "", tagsType, func(ev *evaluation) any { return mapOf(ev.win.tags) }},
	"value":               {everywhere, "", types.Float64, func(ev *evaluation) any { return ev.cmd.value }},
	"open_value":          {templateOnly, "", types.Float64, func(ev *evaluation) any { return ev.win.openValue }},
	"type":                {everywhere, "mp", types.String, func(ev *evaluation) any { return ev.cmd.typ }},
	"source":              {everywhere, "m", types.String, func(ev *evaluation) any { return ev.cmd.source }},
	"message":             {everywhere, "m", types.String, func(ev *evaluation) any { return ev.cmd.text }},
	"keys":                {everywhere, "p", tagsType, func(ev *evaluation) any { return mapOf(ev.cmd.keys) }},
	"properties":          {everywhere, "p", tagsType, func(ev *evaluation) any { return mapOf(ev.cmd.props) }},
	"properties_all":      {afterFilter, "p", tagsType, func(ev *evaluation) any { return mapOf(ev.win.current) }},
	"properties_previous": {afterFilter, "p", tagsType, func(ev *evaluation) any { return mapOf(ev.win.previous) }},

	"timestamp":          {everywhere, "", types.Int64, func(ev *evaluation) any { return int64(ev.cmd.time) }},
	"now":                {everywhere, "", timeType, func(ev *evaluation) any { return ev.clock() }},
	"precise_now":        {everywhere, "", timeType, func(ev *evaluation) any { return ev.clock() }},
	"today":              {everywhere, "", timeType, func(ev *evaluation) any { return ev.midnight(0) }},
	"yesterday":          {everywhere, "", timeType, func(ev *evaluation) any { return ev.midnight(-1) }},
	"tomorrow":           {everywhere, "", timeType, func(ev *evaluation) any { return ev.midnight(1) }},
	"command_time":       {afterFilter, "", timeType, func(ev *evaluation) any { return ev.win.commandTime.Std().In(ev.zone()) }},
	"command_first_time": {afterFilter, "", types.Any, func(ev *evaluation) any { return ev.at(ev.win.firstTime()) }},
	"command_last_time":  {afterFilter, "", types.Any, func(ev *evaluation) any { return ev.at(ev.win.lastTime()) }},
	"add_time":           {afterFilter, "", types.Any, func(ev *evaluation) any { return ev.at(ev.win.addTime) }},
	"previous_add_time":  {afterFilter, "", types.Any, func(ev *evaluation) any { return ev.at(ev.win.previousAdd) }},
	"remove_time":        {afterFilter, "", types.Any, func(ev *evaluation) any { return ev.at(ev.win.removeTime) }},
	"update_time":        {afterFilter, "", types.Any, func(ev *evaluation) any { return ev.at(max(ev.win.addTime, ev.win.removeTime)) }},
	"open_time":          {afterFilter, "", types.Any, func(ev *evaluation) any { return ev.at(ev.win.openTime) }},
	"repeat_time":        {afterFilter, "", types.Any, func(ev *evaluation) any { return ev.at(ev.win.repeatTime) }},
	"cancel_time":        {afterFilter, "", types.Any, func(ev *evaluation) any { return ev.at(ev.win.cancelTime) }},
	"change_time":        {afterFilter, "", types.Any, func(ev *evaluation) any { return ev.at(ev.win.changeTime) }},
	"window_duration":    {afterFilter, "", types.Int64, func(ev *evaluation) any { return int64(ev.win.lastTime() - ev.win.firstTime()) }},
	"is_exiting":         {afterFilter, "", types.Bool, func(ev *evaluation) any { return ev.exiting }},
	"alert_duration": {templateOnly, "", types.String, func(ev *evaluation) any {
		if ev.status == core.StatusOpen {
			return ""
		}
		return clockText(ev.now - ev.win.openTime)
	}},
	"alert_duration_interval": {templateOnly, "", types.String, func(ev *evaluation) any {
		if ev.status == core.StatusOpen {
			return ""
		}
		return unitText(ev.now - ev.win.openTime)
	}},
	"commandTags": {templateOnly, "", types.String, func(ev *evaluation) any { return commandTags(ev.cmd.tags) }},
	"serverLink":  {templateOnly, "", types.String, func(ev *evaluation) any { return ev.link("") }},
	"ruleLink":    {templateOnly, "", types.String, func(ev *evaluation) any { return ev.link("/rule/edit.xhtml?name=" + escape(ev.rule.Name)) }},
	"entityLink":  {templateOnly, "", types.String, func(ev *evaluation) any { return ev.link("/entities/" + escape(ev.cmd.entity)) }},
}

func (ev *evaluation) link(path string) string {
	if ev.host == nil {
		return path
	}
	return strings.TrimSuffix(ev.host.serverURL, "/") + path
}

// commandTags writes tags as fields of a text command.
func commandTags(tags core.Tags) string {
	var b strings.Builder
	for i, t := range tags {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString("t:" + quoteField(t.Name) + "=" + quoteField(t.Value))
	}
	return b.String()
}

// intervalText is the form inside `time(...)`: 5 minute.
func intervalText(v dates.Interval) string {
	text := v.String()
	count, unit, _ := strings.Cut(text, "-")
	return count + " " + strings.ToLower(unit)
}
