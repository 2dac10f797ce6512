package api

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// linkOf returns the metadata in the header of an answer.
func linkOf(t *testing.T, w *world, target string) string {
	t.Helper()
	link := w.do("admin", get, target, "").Header().Get("Link")
	data, ok := strings.CutPrefix(link, "<data:application/csvm+json;base64,")
	data, ok2 := strings.CutSuffix(data, `>; rel="describedBy"; type="application/csvm+json"`)
	if !ok || !ok2 {
		t.Fatalf("link %q", link)
	}
	text, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTableMetadata(t *testing.T) {
	const dialect = `{"commentPrefix":"#","delimiter":",","doubleQuote":true,"quoteChar":"\"","headerRowCount":1,"encoding":"utf-8","header":true,
		"lineTerminators":["\r\n","\n"],"skipBlankRows":false,"skipColumns":0,"skipRows":0,"skipInitialSpace":false,"trim":false,"@type":"Dialect"}`
	const publisher = `{"schema:name":"edge-1","schema:url":{"@id":"http://edge-1:8088"}}`
	w := newWorld(t, Limits{})
	w.do("admin", put, "/api/v1/replacement-tables/json/t", `{"author":"ann","description":"of a \"pump\"","valueFormat":"SQL","keys":{"a":"b"}}`)
	for target, want := range map[string]string{
		"/api/v1/replacement-tables/csv/T?addComments=true": `{"@context":["http://www.w3.org/ns/csvw"],
			"url":"http://example.com/api/v1/replacement-tables/csv/T?addComments=true","@type":"Table","dc:title":"t","dc:description":"of a \"pump\"",
			"dc:publisher":` + publisher + `,"dc:creator":"ann","dc:type":"SQL","tableSchema":{"columns":[
			{"columnIndex":0,"titles":"Key","datatype":"string"},{"columnIndex":1,"titles":"Value","datatype":"string"}]},
			"dialect":` + dialect + `,"primaryKey":"Key"}`,
		"/api/v1/replacement-tables/csv": `{"@context":["http://www.w3.org/ns/csvw"],"url":"http://example.com/api/v1/replacement-tables/csv","@type":"Table",
			"dc:title":"Replacement Tables","dc:description":"List of replacement table names","dc:publisher":` + publisher + `,
			"tableSchema":{"columns":[{"columnIndex":0,"titles":"Name","datatype":"string"}]},"dialect":` + dialect + `}`,
	} {
		got := linkOf(t, w, target)
		if !strings.HasPrefix(got, `{"@context":`) {
			t.Errorf("%s: clients look for the first member: %s", target, got)
		}
		if d := cmp.Diff(decoded(t, want), decoded(t, got)); d != "" {
			t.Errorf("%s: -want +got\n%s", target, d)
		}
	}
	if link := w.do("admin", get, "/api/v1/replacement-tables/json/t", "").Header().Get("Link"); link != "" {
		t.Errorf("JSON has a link: %s", link)
	}
	// A description that makes the header too long goes without it; the table comes all the same.
	w.do("admin", patch, "/api/v1/replacement-tables/json/t", `{"description":"`+strings.Repeat("x", maxLinkBytes)+`"}`)
	rec := w.do("admin", get, "/api/v1/replacement-tables/csv/t", "")
	if link := rec.Header().Get("Link"); link != "" || rec.Body.String() != "Key,Value\na,b\n" {
		t.Errorf("link of %d bytes, body %q", len(link), rec.Body)
	}
}

func decoded(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

// FuzzRecords: what is printed with comments reads back as the same records, as far as a comment without quotes goes.
func FuzzRecords(f *testing.F) {
	for _, seed := range []string{"-1,low\n0,\"mid, normal\"\n", "a", "#c,d,e\nx,y", "\"a\"\"b\",\" c \"\r\nk,", "\ufeffk,v", "\"", ",", "é,ü\n\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := decodeRecords(text)
		if err != nil {
			return
		}
		maps.DeleteFunc(keys, func(key, value string) bool {
			return key[0] == '#' && strings.ContainsAny(key+value, "\",\r\n")
		})
		printed := string(appendRecords(nil, keys, true))
		again, err := decodeRecords(printed)
		if err != nil || !maps.Equal(keys, again) {
			t.Errorf("%q printed as %q gives %q, %v", keys, printed, again, err)
		}
	})
}
