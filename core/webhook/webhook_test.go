package webhook

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-db/tidemark/core"
)

const (
	address           = "198.51.100.7"
	now     core.Time = 1904628423819 // 2030-05-10T07:27:03.819Z
)

func post(rest, query, body string) Request {
	return Request{Method: "POST", RawQuery: query, Rest: rest, Body: body, ContentType: "application/json; charset=utf-8", RemoteIP: address, Now: now}
}

func get(rest, query string) Request {
	return Request{Method: "GET", RawQuery: query, Rest: rest, RemoteIP: address, Now: now}
}

func form(rest, query, body string) Request {
	r := post(rest, query, body)
	r.ContentType = "application/x-www-form-urlencoded"
	return r
}

func mustMap(t *testing.T, r Request) Result {
	t.Helper()
	result, err := Map(r)
	if err != nil {
		t.Fatalf("?%s: %v", r.RawQuery, err)
	}
	return result
}

// wantTags compares all tags but request_ip, which it expects to be there.
func wantTags(t *testing.T, got core.Tags, want map[string]string) {
	t.Helper()
	all := map[string]string{"request_ip": address}
	for name, value := range want {
		all[name] = value
	}
	if d := cmp.Diff(all, got.Map()); d != "" {
		t.Errorf("tags, want(-) got(+):\n%s", d)
	}
}

func debug(t *testing.T, r Result) string {
	t.Helper()
	text, err := AppendJSON(nil, r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestWorkedExamples are the examples A to F of the contract.
func TestWorkedExamples(t *testing.T) {
	t.Run("A flattening", func(t *testing.T) {
		r := mustMap(t, post("CI-Main", "type=build&Stage%20Name=unit&command.message=job.title&command.severity=job.level&debug=true",
			`{"job":{"title":"Nightly","level":"WARN","Run No":17,"ok":true,"steps":["fetch",{"Name":"test","ms":1250.5}],"notes":null,"labels":[],"owner":""},"Ref":"\"main\""}`))
		wantTags(t, r.Message.Tags, map[string]string{"job.level": "WARN", "job.ok": "true", "job.run_no": "17", "job.steps[0]": "fetch",
			"job.steps[1].ms": "1250.5", "job.steps[1].name": "test", "job.title": "Nightly", "ref": "main", "stage_name": "unit"})
		r.Message.Tags = nil
		want := Result{Debug: true, HasSeverity: true, Message: core.Message{Time: now, Entity: "ci-main", Type: "build", Source: "ci-main",
			Severity: core.Warning, Text: "Nightly", Flags: core.Default}}
		if d := cmp.Diff(want, r); d != "" {
			t.Error(d)
		}
	})
	t.Run("B filters", func(t *testing.T) {
		r := mustMap(t, post("x", "exclude=node.*;*_at&include=node.id;node.net.*&excludeValues=http*&excludeValues=n/a&includeValues=https://ok.*",
			`{"kind":"join","created_at":"x","node":{"id":7,"url":"http://a/1","net":{"v4":"n/a","gw":"https://ok.example/gw"}},"home":"http://b"}`))
		wantTags(t, r.Message.Tags, map[string]string{"kind": "join", "node.id": "7", "node.net.gw": "https://ok.example/gw"})
	})
	t.Run("C form and json.parse", func(t *testing.T) {
		r := mustMap(t, form("", "entity=Relay-3&json.parse=data", "mode=push&data=%7B%22n%22%3A%5B1%2C2%5D%2C%22t%22%3A%7B%22Zone%22%3A%22eu%22%7D%7D"))
		wantTags(t, r.Message.Tags, map[string]string{"mode": "push", "data.n[0]": "1", "data.n[1]": "2", "data.t.zone": "eu"})
		if m := r.Message; m.Entity != "relay-3" || m.Type != "webhook" || m.Source != "" || r.HasSeverity {
			t.Errorf("got %+v", r)
		}
	})
	t.Run("D headers and date", func(t *testing.T) {
		request := post("alarm", "header.entity=X-Site&header.severity=x-level&command.date=at&datetimePattern=seconds&debug=true", `{"at":1767225600,"v":"hi"}`)
		request.Header = map[string][]string{"X-Site": {"Plant-9"}, "X-Level": {"6"}}
		want := `{"entity":"plant-9","type":"webhook","source":"alarm","severity":"CRITICAL","tags":{"at":"1767225600","request_ip":"198.51.100.7","v":"hi"},"date":"2026-01-01T00:00:00.000Z"}`
		if got := debug(t, mustMap(t, request)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
	t.Run("E precedence", func(t *testing.T) {
		request := post("", "entity=a&command.entity=srv&header.entity=User-Agent", `{"srv":"b"}`)
		request.Header = map[string][]string{"User-Agent": {"curl"}}
		r := mustMap(t, request)
		wantTags(t, r.Message.Tags, map[string]string{"srv": "b"})
		if r.Message.Entity != "a" {
			t.Errorf("entity %q", r.Message.Entity)
		}
	})
	t.Run("F get", func(t *testing.T) {
		want := `{"entity":"probe","type":"webhook","source":"probe","severity":null,"tags":{"ping":"true","request_ip":"198.51.100.7"},"date":"2030-05-10T07:27:03.819Z"}`
		if got := debug(t, mustMap(t, get("probe", "ping=true&debug=true"))); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

func TestFieldSources(t *testing.T) {
	for _, test := range []struct {
		name         string
		query        string
		body         string
		want         core.Message // Entity "e" when empty
		header       map[string][]string
		undefined    bool
		wantEntity   string
		restOverride string
	}{
		{name: "defaults", want: core.Message{Type: "webhook", Source: "e", Time: now}},
		{name: "literals are lower case", query: "type=Ops&source=PLC%201&message=Hi%20There&severity=error",
			want: core.Message{Type: "ops", Source: "plc_1", Text: "Hi There", Severity: core.Critical, Time: now}},
		{name: "a literal severity by code", query: "severity=3", want: core.Message{Type: "webhook", Source: "e", Severity: core.Warning, Time: now}},
		{name: "missing command falls through to the header", query: "command.type=nope&header.type=X-T", header: map[string][]string{"X-T": {"from header"}},
			want: core.Message{Type: "from_header", Source: "e", Time: now}},
		{name: "blank literal counts as missing", query: "type=%20&command.type=t", body: `{"t":"c"}`, want: core.Message{Type: "c", Source: "e", Time: now}},
		{name: "blank field counts as missing", query: "command.message=a&header.message=X-M", body: `{"a":" "}`, header: map[string][]string{"X-M": {"m"}},
			want: core.Message{Type: "webhook", Source: "e", Text: "m", Time: now}},
		{name: "paths ignore case", query: "command.message=JOB.Title", body: `{"job":{"title":"t"}}`,
			want: core.Message{Type: "webhook", Source: "e", Text: "t", Time: now}},
		{name: "an exact path wins", query: "command.message=a.B", body: `{"A":{"b":"1"},"a":{"B":"2"}}`,
			want: core.Message{Type: "webhook", Source: "e", Text: "2", Time: now}},
		{name: "path by tag name", query: "command.message=run_no", body: `{"Run No":17}`, want: core.Message{Type: "webhook", Source: "e", Text: "17", Time: now}},
		{name: "excluded field still feeds a command", query: "exclude=*&command.date=at", body: `{"at":"2026-01-01T00:00:00+01:00"}`,
			want: core.Message{Type: "webhook", Source: "e", Time: 1767222000000}},
		{name: "command reads json.parse fields", query: "json.parse=p&command.message=p.x", body: `{"p":"{\"x\":\"deep\"}"}`,
			want: core.Message{Type: "webhook", Source: "e", Text: "deep", Time: now}},
		{name: "payload type is no type", body: `{"type":"x","source":"y","entity":"z","severity":"7"}`, want: core.Message{Type: "webhook", Source: "e", Time: now}},
		{name: "date literal", query: "date=1970-01-01T00:00:01Z", want: core.Message{Type: "webhook", Source: "e", Time: 1000}},
		{name: "date header", query: "header.date=X-D", header: map[string][]string{"X-D": {"1970-01-01T00:00:02Z"}},
			want: core.Message{Type: "webhook", Source: "e", Time: 2000}},
		{name: "fractional seconds", query: "command.date=d", body: `{"d":1530000000.000066}`, want: core.Message{Type: "webhook", Source: "e", Time: 1530000000000}},
		{name: "fraction is cut", query: "command.date=d", body: `{"d":"1715673600.1239"}`, want: core.Message{Type: "webhook", Source: "e", Time: 1715673600123}},
		{name: "the largest seconds", query: "command.date=d", body: `{"d":99999999999}`, want: core.Message{Type: "webhook", Source: "e", Time: 99999999999000}},
		{name: "the smallest milliseconds", query: "command.date=d", body: `{"d":100000000000}`, want: core.Message{Type: "webhook", Source: "e", Time: 100000000000}},
		{name: "seconds with an exponent", query: "command.date=d", body: `{"d":1.53e9}`, want: core.Message{Type: "webhook", Source: "e", Time: 1530000000000}},
		{name: "milliseconds", query: "command.date=d&datetimePattern=milliseconds", body: `{"d":5}`, want: core.Message{Type: "webhook", Source: "e", Time: 5}},
		{name: "user pattern in the server zone", query: "command.date=d&datetimePattern=dd.MM.yyyy%20HH:mm", body: `{"d":"01.01.1970 00:01"}`,
			want: core.Message{Type: "webhook", Source: "e", Time: 60000}},
		{name: "form field with a reserved name", query: "", body: "form:type=a&message=b", want: core.Message{Type: "a", Source: "e", Text: "b", Time: now}},
		{name: "the query string wins over the form", query: "type=q", body: "form:type=f", want: core.Message{Type: "q", Source: "e", Time: now}},
		{name: "credentials are not read", query: "header.message=authorization", header: map[string][]string{"Authorization": {"Basic x"}},
			want: core.Message{Type: "webhook", Source: "e", Time: now}},
		{name: "path of two segments", restOverride: "A/b c", wantEntity: "a/b_c", want: core.Message{Type: "webhook", Source: "a/b_c", Time: now}},
	} {
		t.Run(test.name, func(t *testing.T) {
			request := post("e", test.query, test.body)
			if body, ok := strings.CutPrefix(test.body, "form:"); ok {
				request = form("e", test.query, body)
			}
			request.Header = test.header
			test.want.Entity, test.want.Flags = "e", core.Default
			if test.restOverride != "" {
				request.Rest, test.want.Entity = test.restOverride, test.wantEntity
			}
			got := mustMap(t, request).Message
			got.Tags = nil
			if d := cmp.Diff(test.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestTags(t *testing.T) {
	for _, test := range []struct {
		name, query, body string
		want              map[string]string
	}{
		{"reserved names never become tags", "type=a&source=b&message=c&datetimePattern=iso&exclude=q&header.tag.x=None&command.date=z&json.parse=n&debug=false", "", nil},
		{"reserved names are matched by case", "Type=x", "", map[string]string{"type": "x"}},
		{"names are cleaned", "A%09B%20c=v", "", map[string]string{"a_b_c": "v"}},
		{"first of repeated parameters", "a=1&A=2", "", map[string]string{"a": "1"}},
		{"broken escapes stay", "a=100%&b=%zz", "", map[string]string{"a": "100%", "b": "%zz"}},
		{"plus is a blank", "a=x+y", "", map[string]string{"a": "x y"}},
		{"semicolons stay", "a=x;y", "", map[string]string{"a": "x;y"}},
		{"scalars", "", `{"s":"t","n":371662529,"f":1250.50,"big":123456789012345678901234567890,"e":1e3,"b":false,"z":null}`,
			map[string]string{"s": "t", "n": "371662529", "f": "1250.50", "big": "123456789012345678901234567890", "e": "1e3", "b": "false"}},
		{"nested arrays", "", `{"a":[[0,1],[{"X":[]}]],"o":{}}`, map[string]string{"a[0][0]": "0", "a[0][1]": "1"}},
		{"root array", "", `["x",{"Y":1}]`, map[string]string{"[0]": "x", "[1].y": "1"}},
		{"quotes", "", `{"a":"'x'","b":"\"y","c":"it's","d":"''","e":" \" z \" "}`, map[string]string{"a": "x", "b": "y", "c": "it's", "e": "z"}},
		{"JSON over parameters", "a=param", `{"A":"json"}`, map[string]string{"a": "json"}},
		{"header tags over JSON, after the filters", "exclude=*&header.tag.Dev=x-dev&header.tag.none=X-None", `{"dev":"json"}`, map[string]string{"dev": "d7"}},
		{"the address cannot be forged", "request_ip=1.2.3.4&header.tag.request_ip=X-Dev", `{"request_ip":"5.6.7.8"}`, nil},
		{"payload fields with field names stay", "", `{"Type":"x","severity":"low","Entity":"q"}`, map[string]string{"type": "x", "severity": "low", "entity": "q"}},
		{"json.parse: several names, nested path", "json.parse=a;o.B&json.parse=c", `{"a":"{\"x\":1}","o":{"B":"[true]"},"c":"not json","d":"{}"}`,
			map[string]string{"a.x": "1", "o.b[0]": "true", "c": "not json", "d": "{}"}},
		{"json.parse of an empty object leaves nothing", "json.parse=a", `{"a":"{}","b":1}`, map[string]string{"b": "1"}},
		{"json.parse of a broken object keeps the text", "json.parse=a", `{"a":"{x"}`, map[string]string{"a": "{x"}},
		{"json.parse in what was parsed", "json.parse=a;a.b", `{"a":"{\"b\":\"{\\\"c\\\":5}\"}"}`, map[string]string{"a.b.c": "5"}},
		{"exclude covers the whole name", "exclude=url", `{"url":"1","my.url":"2"}`, map[string]string{"my.url": "2"}},
		{"one character", "exclude=a?", `{"ab":"1","abc":"2"}`, map[string]string{"abc": "2"}},
		{"patterns ignore case in names only", "exclude=AB&excludeValues=V", `{"Ab":"1","c":"v","d":"V"}`, map[string]string{"c": "v"}},
		{"include alone has no effect", "include=a", `{"a":"1","b":"2"}`, map[string]string{"a": "1", "b": "2"}},
		{"include does not protect from values", "exclude=*&include=a;b&excludeValues=1", `{"a":"1","b":"2"}`, map[string]string{"b": "2"}},
		{"includeValues does not protect from exclude", "exclude=a&includeValues=1", `{"a":"1"}`, nil},
		{"the published contradiction follows the rules", "exclude=*.id", `{"sender":{"id":"1","login":"l"}}`, map[string]string{"sender.login": "l"}},
		{"filters apply to parameters and json.parse", "x.a=1&exclude=x.*;p.q&json.parse=p", `{"p":"{\"q\":1,\"r\":2}"}`, map[string]string{"p.r": "2"}},
		{"control characters", "", `{"a\u0000b":"c\u0001d\u0000"}`, map[string]string{"a_b": "c_d"}},
		{"unicode", "", `{"Größe":"große Ölpumpe"}`, map[string]string{"größe": "große Ölpumpe"}},
		{"white space body", "a=1", " \r\n", map[string]string{"a": "1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			request := post("e", test.query, test.body)
			request.Header = map[string][]string{"X-Dev": {"d7"}}
			wantTags(t, mustMap(t, request).Message.Tags, test.want)
		})
	}
}

func TestErrors(t *testing.T) {
	deep := strings.Repeat(`[`, 65) + strings.Repeat(`]`, 65)
	plain := post("e", "", "hello")
	plain.ContentType = "text/plain"
	var many, patterns strings.Builder
	for i := range 1100 {
		fmt.Fprintf(&many, "&p%d=1", i)
	}
	patterns.WriteString("exclude=" + strings.Repeat("a;", 257))
	for _, test := range []struct {
		name    string
		request Request
		code    core.Code
		text    string
	}{
		{"no entity", post("", "", `{}`), core.Invalid, "IllegalArgumentException: Empty entity"},
		{"bad date", get("e", "date=2030-01-01%2000:00:00"), core.Invalid, "IllegalArgumentException: Failed to parse date 2030-01-01 00:00:00"},
		{"bad date by command", post("e", "command.date=d", `{"d":"soon"}`), core.Invalid, "IllegalArgumentException: Failed to parse date soon"},
		{"bad pattern", post("e", "command.date=d&datetimePattern=qqqqqqq", `{"d":"soon"}`), core.Invalid, "IllegalArgumentException: Failed to parse date soon"},
		{"bad severity", get("e", "severity=8"), core.Invalid, "IllegalArgumentException: Unknown severity 8"},
		{"bad JSON", post("e", "", `{"a":}`), core.Invalid, "webhook body is not valid JSON"},
		{"scalar JSON", post("e", "", `"a"`), core.Invalid, "webhook body is not a JSON object or array"},
		{"deep JSON", post("e", "", deep), core.Invalid, "JSON is nested deeper than limits.depth (64 levels)"},
		{"deep JSON in a text", post("e", "json.parse=a", `{"a":"`+deep+`"}`), core.Invalid, "JSON is nested deeper than limits.depth (64 levels)"},
		{"hostile depth", post("e", "", strings.Repeat(`[`, 10_000_000)), core.Invalid, "JSON is nested deeper than limits.depth (64 levels)"},
		{"other content", plain, core.Unsupported, ""},
		{"many tags", get("e", many.String()), core.Invalid, ""},
		{"many patterns", get("e", patterns.String()), core.Invalid, ""},
		{"many parses", get("e", "json.parse="+strings.Repeat("a;", 65)), core.Invalid, ""},
		{"many fields", post("e", "", "["+strings.Repeat("1,", 70000)+"1]"), core.TooLarge, ""},
		{"long names repeated", post("e", "", `{"`+strings.Repeat("n", 1<<20)+`":[`+strings.Repeat("1,", 1000)+`1]}`), core.TooLarge, ""},
		{"many form fields", form("e", "", strings.Repeat("a&", 70000)), core.TooLarge, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Map(test.request)
			var e *core.Error
			if !errors.As(err, &e) || e.Code != test.code || test.text != "" && e.Text != test.text {
				t.Errorf("got %v, want code %v and text %q", err, test.code, test.text)
			}
		})
	}
	if _, err := Map(post("e", "", strings.Repeat(`[`, 64)+strings.Repeat(`]`, 64))); err != nil {
		t.Errorf("64 levels: %v", err)
	}
	if _, err := Map(get("e", "exclude=p1*;p2*;p3*;p4*;p5*"+many.String())); err != nil {
		t.Errorf("filtered down to few tags: %v", err)
	}
}

func TestChallenge(t *testing.T) {
	r := mustMap(t, post("", "", `{"token":"t","challenge":"3eZbrw1aB","type":"url_verification"}`))
	if r.Challenge != "3eZbrw1aB" {
		t.Errorf("got %+v", r)
	}
	if r := mustMap(t, post("e", "", `{"challenge":"x","type":"event"}`)); r.Challenge != "" {
		t.Errorf("got a challenge %q from an ordinary event", r.Challenge)
	}
}

func TestDebugJSON(t *testing.T) {
	r := Result{HasSeverity: true, Message: core.Message{Entity: "e", Type: "t", Source: "s", Severity: core.Fatal, Text: `a <b> "c"`, Time: 1,
		Tags: core.Tags{{Name: "a", Value: "1"}, {Name: "b", Value: "2"}}}}
	want := `{"entity":"e","type":"t","source":"s","message":"a <b> \"c\"","severity":"FATAL","tags":{"a":"1","b":"2"},"date":"1970-01-01T00:00:00.001Z"}`
	if got := debug(t, r); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := debug(t, Result{}); !strings.Contains(got, `"severity":null,"tags":{}`) {
		t.Errorf("got %s", got)
	}
}

func TestMapIsPure(t *testing.T) {
	request := post("e", "json.parse=p&exclude=x", `{"p":"{\"a\":1}","x":2}`)
	body := request.Body
	first, second := mustMap(t, request), mustMap(t, request)
	if d := cmp.Diff(first, second); d != "" || request.Body != body {
		t.Errorf("the second call differs: %s", d)
	}
}

// FuzzMap checks what holds for any request: no panic, and a message that the pipeline will take.
func FuzzMap(f *testing.F) {
	f.Add("e", "type=a&command.date=d&json.parse=p", `{"d":1,"p":"{\"x\":[1,{}]}"}`, false)
	f.Add("", "entity=e&exclude=a;b*&include=%zz", "a=1&b=%7B%7D", true)
	f.Add("a/b", "header.tag.x=X&datetimePattern=yyyy&command.date=y", `[[["\u0000",null]]]`, false)
	f.Fuzz(func(t *testing.T, rest, query, body string, asForm bool) {
		request := post(rest, query, body)
		if asForm {
			request = form(rest, query, body)
		}
		request.Header = map[string][]string{"X": {body}}
		r, err := Map(request)
		if err != nil {
			if code := core.CodeOf(err); code != core.Invalid && code != core.TooLarge && code != core.Unsupported {
				t.Fatalf("error of code %v: %v", code, err)
			}
			return
		}
		if r.Challenge != "" {
			return
		}
		m := r.Message
		if m.Entity == "" || len(m.Tags) > defaultMaxTags || m.Tags.Value("request_ip") != address {
			t.Fatalf("message %+v", m)
		}
		for _, name := range []string{m.Entity, m.Type, m.Source} {
			if strings.ContainsFunc(name, isMargin) || !utf8.ValidString(name) {
				t.Fatalf("name %q", name)
			}
		}
		for i, tag := range m.Tags {
			if tag.Name == "" || tag.Value == "" || strings.ContainsFunc(tag.Name, isMargin) || strings.ContainsAny(tag.Value, "\x00\x01") ||
				!utf8.ValidString(tag.Value) || i > 0 && m.Tags[i-1].Name >= tag.Name {
				t.Fatalf("tag %q", tag)
			}
		}
		if _, err := AppendJSON(nil, r); err != nil {
			t.Fatal(err)
		}
	})
}

// TestRequestsShareNothing maps requests in turn: none may see what the one before left in the memory they share.
func TestRequestsShareNothing(t *testing.T) {
	long := "note=" + strings.Repeat("n", maxQuery)
	requests := []Request{
		notification(),
		post("a", "exclude=b", `{"a":"1","b":"2"}`),
		form("a", "exclude=b", "exclude=a&a=1&b=2&c=3"),
		post("a", "exclude=b", `{"a":"1","b":"2"}`),
		post("a", long, `{"B":[{"X":1},[2,[3]],"four"]}`),
		get("a", ""),
		post("a", "json.parse=e", `{"e":"{\"Deep\":[1]}","f":2}`),
		post("a", "", `{"a":`),
		get("a", "a=1"),
	}
	want := make([]map[string]string, len(requests))
	want[1] = map[string]string{"a": "1", "request_ip": address}
	want[2] = map[string]string{"a": "1", "c": "3", "request_ip": address} // the exclude of the query string hides that of the form
	want[3] = want[1]
	want[4] = map[string]string{"note": strings.Repeat("n", maxQuery), "b[0].x": "1", "b[1][0]": "2", "b[1][1][0]": "3", "b[2]": "four", "request_ip": address}
	want[5] = map[string]string{"request_ip": address}
	want[6] = map[string]string{"e.deep[0]": "1", "f": "2", "request_ip": address}
	want[8] = map[string]string{"a": "1", "request_ip": address}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for round := range 50 {
				i := (round * 7) % len(requests)
				r, err := Map(requests[i])
				if i == 7 {
					if err == nil {
						t.Error("a cut body was taken")
					}
					continue
				}
				if err != nil {
					t.Errorf("request %d: %v", i, err)
				}
				if d := cmp.Diff(want[i], r.Message.Tags.Map()); want[i] != nil && d != "" {
					t.Errorf("request %d, want(-) got(+):\n%s", i, d)
				}
			}
		})
	}
	wg.Wait()
}

// TestMapAllocates holds the price of a request: the tags, and one string for all their names.
func TestMapAllocates(t *testing.T) {
	request := notification()
	request.MaxDepth, request.MaxTags = defaultMaxDepth, defaultMaxTags
	m := new(mapper) // not from the pool, which forgets some under the race detector
	n := testing.AllocsPerRun(100, func() {
		if _, err := m.message(request); err != nil {
			t.Fatal(err)
		}
	})
	if n > 2 {
		t.Errorf("a request of 1 KB allocates %v times", n)
	}
}
