package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
)

// testPortals are the portals of every test server.
func testPortals() []Portal {
	one := func(s PortalSeries) []PortalWidget { return []PortalWidget{{Title: "W", Series: []PortalSeries{s}}} }
	return []Portal{
		{ID: 1, Name: "pumps", Widgets: one(PortalSeries{Metric: "temp", Entity: "pump-*"})},
		{ID: 2, Name: "machine", Template: true, Title: "Machine ${entity}", Widgets: one(PortalSeries{Metric: "temp", Entity: "${entity}", Label: "${unit}"})},
		{ID: 3, Name: "secret", UserGroups: []string{"ops"}, Widgets: one(PortalSeries{Metric: "temp", Entity: "pump-1"})},
		{Name: "a\"b\r\nSet-Cookie: x=y;é", Widgets: one(PortalSeries{Metric: "none", Entity: "*"})},
		{ID: 5, Name: "black", Theme: "Black", Widgets: one(PortalSeries{Metric: "temp", EntityExpression: "name = '${who}'"})},
		{ID: 6, Name: "hourly", Widgets: one(PortalSeries{Metric: "temp", Entity: "*", Statistic: "AVG", Period: "5 minute"})},
	}
}

// testConfigs refuses what names a setting that it does not know.
type testConfigs struct{}

func (testConfigs) File(name string) bool { return name == "on-disk" }

func (testConfigs) Check(_ context.Context, p core.ParserConfig) error {
	var settings map[string]any
	if err := json.Unmarshal(p.Config, &settings); err != nil {
		return core.Errorf(core.Invalid, "no object")
	}
	for _, name := range []string{"schema", "entityLookup"} {
		if settings[name] != nil {
			return core.Errorf(core.Invalid, "csv configuration: %s is not supported yet", name)
		}
	}
	if settings["encoding"] == "down" {
		return core.Errorf(core.Unavailable, "the plugin is down")
	}
	return nil
}

// seedPumps writes an hour of samples, one a minute, for two pumps with two locations.
func (w *world) seedPumps(t testing.TB) {
	t.Helper()
	b := &core.Batch{Origin: core.SystemOrigin(0)}
	for _, entity := range []string{"pump-1", "pump-2"} {
		for _, loc := range []string{"east", "west"} {
			ref := b.Ref(core.SeriesKey{Metric: "temp", Entity: entity, Tags: core.Tags{{Name: "loc", Value: loc}}})
			for i := range 60 {
				b.Add(ref, w.clock()-core.Time(60-i)*60_000, 50+20*math.Sin(float64(i)/8+float64(ref)))
			}
		}
	}
	if _, err := w.server.Ingest.Ingest(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

func (w *world) png(t testing.TB, target string) image.Image {
	t.Helper()
	rec := w.do("admin", http.MethodGet, "/api/v1/portal/export?"+target, "")
	if rec.Code != http.StatusOK || rec.Header().Get("Content-Type") != "image/png" {
		t.Fatalf("%s: %d %s %s", target, rec.Code, rec.Header().Get("Content-Type"), rec.Body)
	}
	if n := rec.Header().Get("Content-Length"); n != fmt.Sprint(rec.Body.Len()) {
		t.Errorf("%s: Content-Length %s of %d bytes", target, n, rec.Body.Len())
	}
	img, err := png.Decode(bytes.NewReader(rec.Body.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// count counts the pixels of a colour.
func count(img image.Image, r, g, b uint8) int {
	n := 0
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			if img.At(x, y) == color.Color(color.RGBA{r, g, b, 255}) || color.NRGBAModel.Convert(img.At(x, y)) == color.Color(color.NRGBA{r, g, b, 255}) {
				n++
			}
		}
	}
	return n
}

func TestPortalIsDrawn(t *testing.T) {
	w := newWorld(t, Limits{})
	w.seedPumps(t)
	for target, size := range map[string]image.Point{"id=1": {X: 900, Y: 600}, "name=pumps": {X: 900, Y: 600}, "id=1&name=none&width=320&height=200": {X: 320, Y: 200},
		"name=machine&entity=pump-1&unit=C": {X: 900, Y: 600}} {
		if got := w.png(t, target).Bounds().Max; got != size {
			t.Errorf("%s: the image is %v, want %v", target, got, size)
		}
	}
	first := w.png(t, "id=1")
	if n := count(first, 0x2f, 0x6f, 0xde); n < 300 {
		t.Errorf("the first line has %d pixels", n)
	}
	if n := count(first, 0xc9, 0x2a, 0x6b); n < 300 {
		t.Errorf("the fourth line has %d pixels", n)
	}
	if n := count(w.png(t, "name=machine&entity=pump-1&unit=C"), 0xc9, 0x2a, 0x6b); n != 0 {
		t.Errorf("one machine has two lines, the fourth has %d pixels", n)
	}
	if n := count(w.png(t, "id=1&theme=black"), 0x17, 0x1b, 0x22); n < 100_000 {
		t.Errorf("the theme of the request gives %d dark pixels", n)
	}
	if n := count(w.png(t, "id=5&who=pump-1"), 0x17, 0x1b, 0x22); n < 100_000 {
		t.Errorf("the theme of the portal gives %d dark pixels", n)
	}
	again := w.do("admin", http.MethodGet, "/api/v1/portal/export?id=1", "").Body.Bytes()
	if !bytes.Equal(again, w.do("admin", http.MethodGet, "/api/v1/portal/export?id=1", "").Body.Bytes()) {
		t.Error("two images of the same data differ")
	}
}

// Who may not read an entity sees its lines nowhere: wildcards find the others, an exact name is refused.
func TestPortalKeepsPermissions(t *testing.T) {
	w := newWorld(t, Limits{})
	w.seedPumps(t)
	w.document(t, core.DocGroup, "pumps", core.Group{Name: "pumps", Enabled: true, Members: []string{"pump-1"}})
	all := w.do("admin", http.MethodGet, "/api/v1/portal/export?id=1", "")
	some := w.do("tom", http.MethodGet, "/api/v1/portal/export?id=1", "")
	if some.Code != http.StatusOK || bytes.Equal(all.Body.Bytes(), some.Body.Bytes()) {
		t.Errorf("tom reads one pump of two and gets %d with the same image", some.Code)
	}
	img, err := png.Decode(some.Body)
	if err != nil {
		t.Fatal(err)
	}
	if n := count(img, 0x2b, 0x93, 0x48); n != 0 { // the third line
		t.Errorf("tom sees %d pixels of a third line", n)
	}
	for target, want := range map[string]int{"name=machine&entity=pump-1&unit=C": 200, "name=machine&entity=pump-2&unit=C": 403, "id=3": 200} {
		if rec := w.do("tom", http.MethodGet, "/api/v1/portal/export?"+target, ""); rec.Code != want {
			t.Errorf("tom %s: %d, want %d", target, rec.Code, want)
		}
	}
	for user, want := range map[string]int{"admin": 200, "reader": 403, "writer": 403, "": 401} {
		if rec := w.do(user, http.MethodGet, "/api/v1/portal/export?id=3", ""); rec.Code != want {
			t.Errorf("%s: %d, want %d", user, rec.Code, want)
		}
	}
}

// A name cannot end the header, nor the quotes around it.
func TestPortalNameInHeader(t *testing.T) {
	w := newWorld(t, Limits{})
	name := testPortals()[3].Name
	rec := w.do("admin", http.MethodGet, "/api/v1/portal/export?name="+url.QueryEscape(name), "")
	if rec.Code != http.StatusOK || rec.Header().Get("Set-Cookie") == "x=y" {
		t.Fatalf("%d %v", rec.Code, rec.Header())
	}
	value := rec.Header().Get("Content-Disposition")
	if !strings.HasPrefix(value, `attachment; filename="a_b__Set-Cookie_ x=y__.png"`) || strings.ContainsAny(value, "\r\n") {
		t.Errorf("Content-Disposition is %q", value)
	}
	if _, params, err := mime.ParseMediaType(strings.Replace(value, `filename="a_b__Set-Cookie_ x=y__.png"; `, "", 1)); err != nil || params["filename"] != "a_b__Set-Cookie_ x=y;é.png" {
		t.Errorf("%q gives %v %v", value, params, err)
	}
}

func TestPortalValidate(t *testing.T) {
	good := func() Portal {
		return Portal{Name: "p", Widgets: []PortalWidget{{Timespan: "2 hour", Series: []PortalSeries{{Metric: "${m}", Entity: "e"}}}}}
	}
	if p := good(); p.Validate() != nil {
		t.Fatal(p.Validate())
	}
	for want, change := range map[string]func(*Portal){
		"name is missing":       func(p *Portal) { p.Name = " " },
		"id is -1":              func(p *Portal) { p.ID = -1 },
		"neither Default nor":   func(p *Portal) { p.Theme = "Pink" },
		"has 0 widgets":         func(p *Portal) { p.Widgets = nil },
		"has 17 widgets":        func(p *Portal) { p.Widgets = make([]PortalWidget, 17) },
		"has 0 series":          func(p *Portal) { p.Widgets[0].Series = nil },
		"widget 1, series 1":    func(p *Portal) { p.Widgets[0].Series[0].Entity = "" },
		"Empty metric":          func(p *Portal) { p.Widgets[0].Series[0].Metric = "" },
		"Wrong interval syntax": func(p *Portal) { p.Widgets[0].Timespan = "soon" },
		"go together":           func(p *Portal) { p.Widgets[0].Series[0].Statistic = "AVG" },
		"unknown aggregate":     func(p *Portal) { p.Widgets[0].Series[0].Statistic, p.Widgets[0].Series[0].Period = "MIDDLE", "1 hour" },
		"Wrong period syntax":   func(p *Portal) { p.Widgets[0].Series[0].Statistic, p.Widgets[0].Series[0].Period = "AVG", "hour" },
		"widget 1, series 1: col": func(p *Portal) {
			p.Widgets[0].Series[0].Entity, p.Widgets[0].Series[0].EntityExpression = "", "name LIKE"
		},
	} {
		p := good()
		change(&p)
		err := p.Validate()
		if strings.HasSuffix(want, ": col") {
			want = strings.TrimSuffix(want, ": col")
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

// Large images count against limits.bodies, as large bodies do.
func TestPortalMemory(t *testing.T) {
	w := newWorld(t, Limits{Bodies: 4 << 20})
	if rec := w.do("admin", http.MethodGet, "/api/v1/portal/export?id=1&width=2000&height=2000", ""); rec.Code != http.StatusServiceUnavailable {
		t.Errorf("16 MB of pixels with limits.bodies of 4 MB: %d", rec.Code)
	}
	if rec := w.do("admin", http.MethodGet, "/api/v1/portal/export?id=1", ""); rec.Code != http.StatusOK {
		t.Errorf("2 MB of pixels after that: %d", rec.Code)
	}
}

func TestLinesAreNamedByWhatTellsThemApart(t *testing.T) {
	w := newWorld(t, Limits{})
	w.seedPumps(t)
	c := &call{server: w.server, r: w.request(t)}
	id, err := w.server.Users.Authenticate(c.r)
	if err != nil {
		t.Fatal(err)
	}
	c.id = id
	plan := func(s PortalSeries) []string {
		p := Portal{Name: "x", Widgets: []PortalWidget{{Series: []PortalSeries{s}}}}
		page, err := c.portalPage(&p)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.drawWidget(&p.Widgets[0], page, &page.Widgets[0]); err != nil {
			t.Fatal(err)
		}
		var labels []string
		for _, l := range page.Widgets[0].Lines {
			labels = append(labels, l.Label)
		}
		return labels
	}
	for want, s := range map[string]PortalSeries{
		"pump-1 loc=east|pump-1 loc=west|pump-2 loc=east|pump-2 loc=west": {Metric: "temp", Entity: "*"},
		"pump-1 loc=east|pump-1 loc=west":                                 {Metric: "temp", Entities: []string{"pump-1", "pump-3"}},
		"heat pump-1 loc=west|heat pump-2 loc=west":                       {Metric: "temp", Entity: "*", Tags: map[string][]string{"loc": {"w*"}}, Label: "heat"},
		"only": {Metric: "temp", Entity: "pump-2", Tags: map[string][]string{"loc": {"east"}}, ExactMatch: true, Label: "only"},
		"":     {Metric: "temp", Entity: "pump-2", ExactMatch: true},
	} {
		if got := strings.Join(plan(s), "|"); got != want {
			t.Errorf("labels %q, want %q", got, want)
		}
	}
}

func (w *world) request(t testing.TB) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth("admin", password)
	return r
}
