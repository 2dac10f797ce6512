package api

import (
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/auth"
	"github.com/tidemark-db/tidemark/core/chart"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/query"
)

// Portal is a page of charts as its file defines it. Texts may hold ${entity} and other ${NAME}, which the parameters of a request fill in.
type Portal struct {
	ID       int // 0 = it has a name only
	Name     string
	Title    string // "" = the name
	Theme    string // Default or Black; "" = Default
	Template bool   // a request must name an entity
	// UserGroups are the groups whose members may see the portal; none = all who may read data. Administrators see all portals.
	UserGroups []string
	Widgets    []PortalWidget
}

// PortalWidget is one chart.
type PortalWidget struct {
	Title    string
	Timespan string // up to now, such as `1 hour`
	Series   []PortalSeries
}

// PortalSeries selects the series of some lines, as a series query does. Of the entity selections the first that is given counts; the expression
// narrows it, or stands alone.
type PortalSeries struct {
	Metric           string
	Entity           string // may hold wildcards
	Entities         []string
	EntityGroup      string
	EntityExpression string
	Tags             map[string][]string // any of the values, which may hold wildcards
	ExactMatch       bool
	Statistic        string // aggregate function, with Period
	Period           string // such as `5 minute`
	Label            string // "" = what tells the series apart
}

// Bounds of a portal and its image.
const (
	portalWidth, portalHeight = 900, 600 // unless the request says otherwise

	maxPortalWidgets = 16
	maxPortalSeries  = 100 // selections of a widget
	maxPortalLines   = 100 // lines of a widget; the rest is counted in its legend
	maxPortalText    = 1000
)

// placeholder is ${NAME} in a text of a portal.
var placeholder = regexp.MustCompile(`\$\{[A-Za-z0-9_.-]+\}`)

// visible reports whether the members of some user groups may see the portal.
func (p *Portal) visible(groups []string) bool {
	return len(p.UserGroups) == 0 || slices.ContainsFunc(p.UserGroups, func(group string) bool { return slices.Contains(groups, group) })
}

// Validate reports what is wrong with a portal whatever a request asks for.
func (p *Portal) Validate() error {
	if strings.TrimSpace(p.Name) == "" {
		return core.Errorf(core.Invalid, "portal: name is missing")
	}
	if p.ID < 0 {
		return core.Errorf(core.Invalid, "portal %s: id is %d, it is a positive number", p.Name, p.ID)
	}
	if _, ok := chart.ParseTheme(orDefault(p.Theme, "Default")); !ok {
		return core.Errorf(core.Invalid, "portal %s: theme %q is neither Default nor Black", p.Name, p.Theme)
	}
	if len(p.Widgets) == 0 || len(p.Widgets) > maxPortalWidgets {
		return core.Errorf(core.Invalid, "portal %s: has %d widgets, there may be 1 to %d", p.Name, len(p.Widgets), maxPortalWidgets)
	}
	// Any word will do for a parameter: what a request gives is checked with the request.
	fill := filling(func(string) (string, bool) { return "x", true })
	for i := range p.Widgets {
		w := &p.Widgets[i]
		if len(w.Series) == 0 || len(w.Series) > maxPortalSeries {
			return core.Errorf(core.Invalid, "portal %s, widget %d: has %d series, there may be 1 to %d", p.Name, i+1, len(w.Series), maxPortalSeries)
		}
		for j := range w.Series {
			if _, _, err := w.Series[j].plan(w, fill, dates.Moment{Now: core.MaxTime, Zone: time.UTC}); err != nil {
				return core.Errorf(core.Invalid, "portal %s, widget %d, series %d: %s", p.Name, i+1, j+1, strings.TrimPrefix(userText(err), "IllegalArgumentException: "))
			}
		}
	}
	return nil
}

// portalExport draws a portal as PNG.
func (c *call) portalExport() error {
	p, err := c.portal()
	if err != nil {
		return err
	}
	page, err := c.portalPage(p)
	if err != nil {
		return err
	}
	if err := c.beginDrawing(); err != nil {
		return err
	}
	defer func() { <-c.server.drawing }()
	// An image is some 4 bytes a pixel until it is sent: it counts as a large request body does.
	if err := c.hold(4 * int64(page.Width) * int64(page.Height)); err != nil {
		return err
	}
	for i := range p.Widgets {
		if err := c.drawWidget(&p.Widgets[i], page, &page.Widgets[i]); err != nil {
			return err
		}
	}
	image, err := page.PNG(c.reading())
	if err != nil {
		return err
	}
	h := c.Header()
	h.Set("Content-Type", "image/png")
	h.Set("Content-Disposition", attachment(p.Name+".png"))
	h.Set("Content-Length", strconv.Itoa(len(image)))
	c.WriteHeader(http.StatusOK)
	c.Write(image) // fails only when the client is gone; an image does not get smaller by gzip
	return nil
}

// portalWait is how long a request waits for its turn to draw: longer than a common portal takes.
const portalWait = 2 * time.Second

// beginDrawing waits for a turn, which the caller gives back: drawing keeps a processor busy for up to limits.time.
func (c *call) beginDrawing() error {
	select {
	case c.server.drawing <- struct{}{}:
		return nil
	default:
	}
	timer := time.NewTimer(portalWait)
	defer timer.Stop()
	select {
	case c.server.drawing <- struct{}{}:
		return nil
	case <-c.reading().Done():
		return c.reading().Err()
	case <-timer.C:
		text := fmt.Sprintf("%d portals are being drawn, as many as limits.portals allows: try again", cap(c.server.drawing))
		return &core.Error{Code: core.Unavailable, Text: text, RetryAfter: portalWait}
	}
}

// portal finds the portal of the request, which the caller must be allowed to see.
func (c *call) portal() (*Portal, error) {
	id, name := c.values.Get("id"), c.values.Get("name")
	if id == "" && name == "" {
		return nil, core.Errorf(core.Invalid, "IllegalArgumentException: id or name of the portal is required")
	}
	var number int
	if id != "" { // wins
		var err error
		if number, err = strconv.Atoi(id); err != nil {
			return nil, core.Errorf(core.Invalid, "IllegalArgumentException: id: a number is expected, not %s", excerpt(id))
		}
	}
	var portals []Portal
	if c.server.Portals != nil {
		portals = c.server.Portals()
	}
	for i := range portals {
		p := &portals[i]
		if id != "" && (p.ID != number || p.ID == 0) || id == "" && p.Name != name {
			continue
		}
		if !c.id.Grants.Roles.Has(core.Admin) && !p.visible(c.id.User.Groups) {
			return nil, auth.Denied()
		}
		if p.Template && c.values.Get("entity") == "" {
			return nil, core.Errorf(core.Invalid, "IllegalArgumentException: portal '%s' is a template: entity is required", p.Name)
		}
		return p, nil
	}
	return nil, core.Errorf(core.NotFound, "PORTAL not found for name: '%s'", excerpt(orDefault(id, name)))
}

// portalPage is the empty page that the request asks for.
func (c *call) portalPage(p *Portal) (*chart.Page, error) {
	page := &chart.Page{Width: portalWidth, Height: portalHeight, Zone: c.server.Zone, Widgets: make([]chart.Widget, len(p.Widgets))}
	for name, into := range map[string]*int{"width": &page.Width, "height": &page.Height} {
		text := c.values.Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < chart.MinSize || n > chart.MaxSize {
			return nil, core.Errorf(core.Invalid, "IllegalArgumentException: %s: %d to %d pixels are possible, not %s", name, chart.MinSize, chart.MaxSize, excerpt(text))
		}
		*into = n
	}
	theme := orDefault(c.values.Get("theme"), orDefault(p.Theme, "Default"))
	var ok bool
	if page.Theme, ok = chart.ParseTheme(theme); !ok {
		return nil, core.Errorf(core.Invalid, "IllegalArgumentException: theme: Default or Black is expected, not %s", excerpt(theme))
	}
	var err error
	page.Title, err = c.filling().text(orDefault(p.Title, p.Name))
	return page, err
}

// filling is how the parameters of the request fill placeholders.
func (c *call) filling() filling {
	return func(name string) (string, bool) { return c.values.Get(name), c.values.Has(name) }
}

// drawWidget runs the queries of a widget and adds their lines to its chart. The samples of one series at a time are held.
func (c *call) drawWidget(w *PortalWidget, page *chart.Page, to *chart.Widget) error {
	fill := c.filling()
	var err error
	if to.Title, err = fill.text(w.Title); err != nil {
		return err
	}
	var results []labelled
	hidden := 0
	for i := range w.Series {
		s := &w.Series[i]
		plan, r, err := s.plan(w, fill, c.moment())
		if err != nil {
			return err
		}
		to.Range = r
		label, err := fill.text(s.Label)
		if err != nil {
			return err
		}
		for r, err := range plan.Run(c.reading(), c.source()) {
			if err != nil {
				return err
			}
			if r.Samples.Len() == 0 {
				continue
			}
			if len(results) == maxPortalLines {
				hidden++
				continue
			}
			b := chart.NewLine("", to.Range, page.LineWidth())
			b.Add(r.Samples.Times, r.Samples.Values)
			if line, ok := b.Line(); ok {
				r.Samples = query.Samples{}
				results = append(results, labelled{line, label, r})
			}
		}
	}
	if hidden > 0 {
		to.Note = fmt.Sprintf("%d more series", hidden)
	}
	to.Lines = labelLines(results)
	return nil
}

// labelled is a line with what it may be called.
type labelled struct {
	line   chart.Line
	label  string // as the portal has it
	result *query.Result
}

// labelLines names the lines: as the portal says, with what tells lines of one name apart behind it; otherwise by the parts of the series that are not
// the same in all lines.
func labelLines(all []labelled) []chart.Line {
	metrics, entities, labels := map[string]bool{}, map[string]bool{}, map[string]int{}
	for _, l := range all {
		metrics[l.result.Metric], entities[l.result.Entity] = true, true
		labels[l.label]++
	}
	lines := make([]chart.Line, len(all))
	for i, l := range all {
		lines[i] = l.line
		if l.label != "" && labels[l.label] == 1 {
			lines[i].Label = l.label
			continue
		}
		var parts []string
		if l.label != "" {
			parts = append(parts, l.label)
		}
		if len(entities) > 1 || len(metrics) == 1 && l.label == "" {
			parts = append(parts, l.result.Entity)
		}
		if len(metrics) > 1 && l.label == "" {
			parts = append(parts, l.result.Metric)
		}
		for _, tag := range l.result.Tags {
			parts = append(parts, tag.Name+"="+tag.Value)
		}
		lines[i].Label = strings.Join(parts, " ")
	}
	return lines
}

// plan makes the query of a selection, and its range.
func (s *PortalSeries) plan(w *PortalWidget, fill filling, m dates.Moment) (*query.Plan, core.Range, error) {
	q := query.Series{ExactMatch: s.ExactMatch, Dates: query.DateFilter{Interval: orDefault(w.Timespan, "1 hour")}}
	f := filler{filling: fill}
	q.Metric = f.text(s.Metric)
	q.Entities = query.EntityFilter{Entity: f.pattern(s.Entity), Group: f.text(s.EntityGroup), Expression: f.expression(s.EntityExpression)}
	for _, entity := range s.Entities {
		q.Entities.Entities = append(q.Entities.Entities, f.pattern(entity))
	}
	for name, values := range s.Tags {
		if q.Tags == nil {
			q.Tags = map[string][]string{}
		}
		for _, value := range values {
			q.Tags[name] = append(q.Tags[name], f.pattern(value))
		}
	}
	if f.err != nil {
		return nil, core.Range{}, f.err
	}
	switch {
	case s.Statistic != "" && s.Period != "":
		q.Aggregate = &query.Aggregate{Types: []string{s.Statistic}, Period: &query.Period{}}
		if err := parsePeriod(q.Aggregate.Period, s.Period); err != nil {
			return nil, core.Range{}, err
		}
	case s.Statistic != "" || s.Period != "":
		return nil, core.Range{}, core.Errorf(core.Invalid, "IllegalArgumentException: statistic and period go together")
	}
	r, err := q.Dates.Range(m)
	if err != nil {
		return nil, r, err
	}
	plan, err := q.Validate(m)
	return plan, r, err
}

// filling gives the value of a placeholder.
type filling func(name string) (value string, ok bool)

// text fills the placeholders of a text.
func (f filling) text(text string) (string, error) {
	return f.fill(text, func(value string) (string, error) { return value, nil })
}

// fill replaces each placeholder by what spell makes of its value.
func (f filling) fill(text string, spell func(string) (string, error)) (string, error) {
	var fault error
	filled := placeholder.ReplaceAllStringFunc(text, func(match string) string {
		name := match[len("${") : len(match)-1]
		value, ok := f(name)
		switch {
		case fault != nil:
		case !ok:
			fault = core.Errorf(core.Invalid, "IllegalArgumentException: the portal needs the parameter %s", name)
		case len(value) > maxPortalText:
			fault = core.Errorf(core.Invalid, "IllegalArgumentException: parameter %s has more than %d bytes", name, maxPortalText)
		default:
			value, fault = spell(value)
		}
		return value
	})
	return filled, fault
}

// filler fills the texts of a query and keeps the first fault.
type filler struct {
	filling
	err error
}

func (f *filler) keep(text string, err error) string {
	if f.err == nil {
		f.err = err
	}
	return text
}

func (f *filler) text(text string) string { return f.keep(f.filling.text(text)) }

// pattern fills a text that may hold wildcards: those of a value are ordinary characters.
func (f *filler) pattern(text string) string {
	return f.keep(f.fill(text, func(value string) (string, error) { return query.Quote(value, query.EscapesAlways), nil }))
}

// expression fills a condition. A value must not be able to change what surrounds it.
func (f *filler) expression(text string) string {
	return f.keep(f.fill(text, func(value string) (string, error) {
		if strings.ContainsAny(value, `'"\`) {
			return "", core.Errorf(core.Invalid, `IllegalArgumentException: a parameter in an entity expression must not hold ', " or \`)
		}
		return value, nil
	}))
}

// attachment is a Content-Disposition with a file name. What could end the quoted text or the header is replaced; a name beyond ASCII follows in the form
// of RFC 5987 for those who know it.
func attachment(name string) string {
	plain := strings.Map(func(r rune) rune {
		switch {
		case r < ' ' || r >= 0x7f || strings.ContainsRune(`"\/:;%`, r):
			return '_'
		}
		return r
	}, name)
	value := `attachment; filename="` + plain + `"`
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || strings.ContainsRune(`"\/:`, r) {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(name, "_"))
	if clean == plain {
		return value
	}
	if encoded, ok := strings.CutPrefix(mime.FormatMediaType("attachment", map[string]string{"filename": clean}), "attachment; filename*="); ok {
		value += "; filename*=" + encoded
	}
	return value
}
