package api

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-db/tidemark/core"
)

// every is a configuration with all elements of the exchange format.
const every = `<list><com.example.CsvConfiguration>
 <name>every</name><enabled>true</enabled><description>all of it</description><putType>METRIC</putType><writeProperty>true</writeProperty>
 <defaultType>disk</defaultType><entityColumn>site, room</entityColumn><entityPrefix>e-</entityPrefix><defaultEntity>hall</defaultEntity>
 <entityLookupName/><processEvents>false</processEvents><metricPrefix>m.</metricPrefix><metricNameColumn>name</metricNameColumn>
 <metricValueColumn>value</metricValueColumn><defaultMetric>dm</defaultMetric><messageColumn>text</messageColumn>
 <timestampColumn>day;hour</timestampColumn><timestampType>PATTERN</timestampType><timestampFormat>dd.MM.yyyy HH</timestampFormat>
 <timeZoneDiffColumn>diff</timeZoneDiffColumn><timeZone>Europe/Berlin</timeZone><filter>number('value') &gt; 0</filter>
 <tagColumns><a class="string-array"><string>loc, at</string><string> </string><string>kind</string></a></tagColumns>
 <defaultTags><entry><string>src</string><string>csv</string></entry></defaultTags><entityTags/><metricTags><string/></metricTags>
 <excludedColumns><string>junk</string></excludedColumns><propertyColumns><string>p1</string></propertyColumns>
 <propertyKeyColumns><string>k1</string></propertyKeyColumns><renamedColumns>Input=stored
 b = c</renamedColumns><header>a,b,c</header><schema> </schema><delimiter>` + "\t" + `</delimiter><recordDelimiter>
</recordDelimiter><textQualifier>'</textQualifier><comment>#</comment><padding>*</padding><decimalSeparator>,</decimalSeparator>
 <groupingSeparator> </groupingSeparator><fieldLengths><int>5</int><int>10</int></fieldLengths><discardNan>true</discardNan>
 <ignoreParseErrors>on</ignoreParseErrors><skipLines>3</skipLines><encoding>ISO-8859-1</encoding>
</com.example.CsvConfiguration></list>`

// The names of the settings are those of the contract's table of native keys.
func TestEveryElementOfAConfiguration(t *testing.T) {
	configs, err := parseCSVConfigs(every, 64)
	if err != nil || len(configs) != 1 {
		t.Fatal(configs, err)
	}
	var got map[string]any
	if err := json.Unmarshal(configs[0].Config, &got); err != nil {
		t.Fatal(err)
	}
	list := func(names ...any) []any { return names }
	want := map[string]any{
		"enabled": true, "description": "all of it", "commandType": "METRIC", "writeProperty": true, "propertyType": "disk",
		"entityColumns": list("site", "room"), "entityPrefix": "e-", "defaultEntity": "hall", "processEvents": false, "metricPrefix": "m.",
		"metricNameColumn": "name", "metricValueColumn": "value", "defaultMetric": "dm", "messageColumn": "text", "timestampColumns": list("day", "hour"),
		"timestampType": "PATTERN", "timestampPattern": "dd.MM.yyyy HH", "timezoneDiffColumn": "diff", "timezone": "Europe/Berlin",
		"filter": "number('value') > 0", "tagColumns": list("loc, at", "kind"), "defaultTags": map[string]any{"src": "csv"},
		"ignoredColumns": list("junk"), "propertyColumns": list("p1"), "propertyKeyColumns": list("k1"),
		"renamedColumns": map[string]any{"Input": "stored", "b": "c"}, "header": list("a", "b", "c"), "delimiter": "\t", "textQualifier": "'",
		"comment": "#", "padding": "*", "decimalSeparator": ",", "groupingSeparator": " ", "fieldLengths": list(5.0, 10.0), "discardNaN": true,
		"ignoreLineErrors": true, "skipLines": 3.0, "encoding": "ISO-8859-1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if configs[0].Name != "every" || configs[0].Plugin != "csv" {
		t.Errorf("name %s, plugin %s", configs[0].Name, configs[0].Plugin)
	}
}

// What stands for "none" is not set, except for the qualifier, whose default is a quote.
func TestCharactersThatAreNone(t *testing.T) {
	for text, want := range map[string]string{
		"<textQualifier/><comment/><padding/><groupingSeparator/>":                                                                      `{"textQualifier":""}`,
		"<textQualifier>\uffff</textQualifier><comment>\ufffd</comment><padding>?</padding><groupingSeparator>&#0;</groupingSeparator>": `{"textQualifier":""}`,
		"<recordDelimiter>\r\n</recordDelimiter>":                                                                                       `{}`,
		"<recordDelimiter>;</recordDelimiter><delimiter>;</delimiter>":                                                                  `{"delimiter":";","lineDelimiter":";"}`,
		"<header/><tagColumns><a class='string-array'><string/></a></tagColumns>":                                                       `{}`,
		"<timestampColumn><string>a,b</string><string>c</string></timestampColumn>":                                                     `{"timestampColumns":["a,b","c"]}`,
		"<fieldLengths>5, 10;7</fieldLengths><entityColumn>a\nb</entityColumn>":                                                         `{"entityColumns":["a","b"],"fieldLengths":[5,10,7]}`,
	} {
		configs, err := parseCSVConfigs("<list><CsvConfiguration><name>n</name>"+text+"</CsvConfiguration></list>", 64)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := string(configs[0].Config); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// What is imported is the document that uploads look up.
func TestImportedDocument(t *testing.T) {
	w := newWorld(t, Limits{})
	body := "--xx\nContent-Disposition: form-data; name=\"file\"\n\n" + strings.ReplaceAll(every, "<schema> </schema>", "") + "\n--xx--"
	r := w.request(t)
	r.Method, r.URL = http.MethodPost, &url.URL{Path: "/csv/configs/import"}
	rec := w.form(r, body)
	if rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), "Import executed successfully") || !strings.Contains(rec.Body.String(), "replaced: 0") {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	for d, err := range w.store.Documents(t.Context(), core.DocumentQuery{Kind: core.DocParser, Key: "every"}) {
		var p core.ParserConfig
		if err != nil || json.Unmarshal(d.Body, &p) != nil || p.Plugin != "csv" || !strings.Contains(string(p.Config), `"timestampPattern":"dd.MM.yyyy HH"`) {
			t.Errorf("%s %v", d.Body, err)
		}
		return
	}
	t.Error("nothing is stored")
}

// A file may be as large as limits.body; what it costs is bounded by the number of its elements.
func TestImportBounds(t *testing.T) {
	w := newWorld(t, Limits{Body: 1 << 20})
	send := func(xml string) (int, string) {
		r := w.request(t)
		r.Method, r.URL = http.MethodPost, &url.URL{Path: "/csv/configs/import"}
		rec := w.form(r, "--xx\nContent-Disposition: form-data; name=\"file\"\n\n"+xml+"\n--xx--")
		return rec.Code, rec.Body.String()
	}
	if code, text := send("<list>" + strings.Repeat("<a/>", maxConfigElements) + "</list>"); code != 400 || !strings.Contains(text, "more than 100000 elements") {
		t.Errorf("%d %s", code, text)
	}
	if code, text := send("<list>" + strings.Repeat(" ", 1<<20) + "</list>"); code != 413 || !strings.Contains(text, "limits.body") {
		t.Errorf("%d %s", code, text)
	}
}

func FuzzConfigImport(f *testing.F) {
	f.Add(every)
	for _, seed := range []string{"<list><CsvConfiguration><name>n</name><defaultTags><entry><string>a</string><string>b</string></entry></defaultTags></CsvConfiguration></list>",
		`<!DOCTYPE l [<!ENTITY a "b">]><list>&a;</list>`, "<list><a:CsvConfiguration>&#xffff;<![CDATA[x]]></a:CsvConfiguration></list>", "<?xml version='1.1'?><list/>"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		configs, err := parseCSVConfigs(text, 16)
		if err != nil {
			if core.CodeOf(err) != core.Invalid {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		for _, p := range configs {
			if p.Name == "" || !json.Valid(p.Config) {
				t.Fatalf("%q gives %+v", text, p)
			}
		}
	})
}
