package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// describedBy is the document as a client reads it.
func describedBy(t testing.TB) (*Server, map[string]any) {
	t.Helper()
	s := newWorld(t, Limits{}).server
	body, err := s.description()
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(body, &doc); err != nil {
		t.Fatal(err)
	}
	return s, doc
}

// member walks members of objects; a step that is not there gives nil.
func member(v any, names ...string) any {
	for _, name := range names {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	return v
}

// TestEveryRouteIsDescribed is the one that fails when a route is added: it names the row that openapi_operations.go lacks.
func TestEveryRouteIsDescribed(t *testing.T) {
	s, _ := describedBy(t)
	rows := map[string]string{} // shape -> row of the route table that has no operation yet
	for _, rt := range s.routes() {
		rows[shape(rt.method, rt.path)] = rt.method + " " + rt.path
	}
	ids, seen := map[string]string{}, map[string]bool{}
	for _, group := range operations() {
		for _, op := range group.operations {
			key, row := shape(op.method, op.path), op.method+" "+op.path
			switch {
			case seen[key]:
				t.Errorf("%s is described twice", row)
			case rows[key] == "":
				t.Errorf("openapi_operations.go describes %s, which is no row of routes.go: remove it there", row)
			case ids[op.id()] != "":
				t.Errorf("%s and %s have the same operationId %s", row, ids[op.id()], op.id())
			case op.summary == "":
				t.Errorf("%s has no summary", row)
			}
			seen[key], ids[op.id()] = true, row
			delete(rows, key)
		}
	}
	for _, row := range rows {
		t.Errorf("routes.go has the row %s, which no operation describes: add one to openapi_operations.go, and schemas of its bodies to openapi.json", row)
	}
}

// The names of parameters in a path are those of the route, except where two routes call the same place differently.
func TestPathParametersAreDescribed(t *testing.T) {
	s, doc := describedBy(t)
	for _, rt := range s.routes() {
		for path, methods := range doc["paths"].(map[string]any) {
			op := member(methods, strings.ToLower(rt.method))
			if op == nil || shape(rt.method, rt.path) != shape(rt.method, path) {
				continue
			}
			var want, got []string
			for segment := range strings.SplitSeq(rt.path, "/") {
				if segment != "" && strings.ContainsRune(":*", rune(segment[0])) {
					want = append(want, segment[1:])
				}
			}
			parameters, _ := member(op, "parameters").([]any)
			for _, p := range parameters {
				if p = resolve(t, doc, p); member(p, "in") == "path" {
					got = append(got, member(p, "name").(string))
					if member(p, "required") != true || !strings.Contains(path, "{"+got[len(got)-1]+"}") {
						t.Errorf("%s %s: parameter %s is not required or not in the path", rt.method, path, got[len(got)-1])
					}
				}
			}
			if strings.HasPrefix(path, "/api/v1/replacement-tables/{name}") {
				want = []string{"name"} // the routes of its methods call it format, too
			}
			if !slices.Equal(want, got) {
				t.Errorf("%s %s: parameters of the path are %q in routes.go and %q in the document", rt.method, path, want, got)
			}
		}
	}
}

func resolve(t testing.TB, doc map[string]any, v any) any {
	t.Helper()
	ref, ok := member(v, "$ref").(string)
	if !ok {
		return v
	}
	at, ok := strings.CutPrefix(ref, "#/")
	if v = member(doc, strings.Split(at, "/")...); !ok || v == nil {
		t.Fatalf("$ref %s leads nowhere", ref)
	}
	return v
}

// Every reference leads somewhere, and every component is used.
func TestReferencesOfDescription(t *testing.T) {
	_, doc := describedBy(t)
	used := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				resolve(t, doc, v)
				used[ref] = true
			}
			for _, inner := range v {
				walk(inner)
			}
		case map[string]string:
			used[v["$ref"]] = true
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		}
	}
	walk(doc)
	for section, components := range member(doc, "components").(map[string]any) {
		for name := range components.(map[string]any) {
			if ref := "#/components/" + section + "/" + name; section != "securitySchemes" && !used[ref] {
				t.Errorf("%s is used nowhere", ref)
			}
		}
	}
}

// Roles become security requirements.
func TestSecurityOfDescription(t *testing.T) {
	_, doc := describedBy(t)
	health := member(doc, "paths", "/health", "get")
	if text := fmt.Sprint(member(health, "security")); text != "[]" {
		t.Errorf("/health needs %s", text)
	}
	put := member(doc, "paths", "/api/v1/entity-groups/{group}", "put")
	if text := member(put, "description"); text != "Needs the role API_META_WRITE and ENTITY_GROUP_ADMIN." {
		t.Errorf("a change of a group: %s", text)
	}
	if member(put, "security") != nil || member(put, "responses", "403") == nil {
		t.Error("a change of a group is described as public")
	}
}

func TestDescriptionIsServed(t *testing.T) {
	w := newWorld(t, Limits{})
	rec := w.do("", http.MethodGet, openAPIPath, "")
	if rec.Code != http.StatusOK || rec.Header().Get("Content-Type") != jsonType {
		t.Fatalf("status %d, type %s", rec.Code, rec.Header().Get("Content-Type"))
	}
	if n := rec.Body.Len(); n > 300<<10 {
		t.Errorf("the document has %d bytes", n)
	}
	again, err := describeRoutes(newWorld(t, Limits{}).server.routes(), "1.2.3")
	if err != nil || !bytes.Equal(again, rec.Body.Bytes()) {
		t.Errorf("a second server describes itself differently: %v", err)
	}
}

// schemas checks values against the subset of JSON Schema 2020-12 that the document uses.
type schemas struct {
	doc map[string]any
	// strict refuses members that an object schema does not name, unless it has additionalProperties: so a description that lacks a member of an answer
	// is found. Clients read the same schema openly.
	strict bool
}

// check returns the first fault, "" for none.
func (s schemas) check(at string, schema, v any) string {
	if schema == true {
		return ""
	}
	object, ok := schema.(map[string]any)
	if !ok {
		return at + ": the schema is no object"
	}
	if ref, ok := object["$ref"].(string); ok {
		target := member(s.doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
		if target == nil {
			return at + ": " + ref + " leads nowhere"
		}
		return s.check(at, target, v)
	}
	if options, ok := object["anyOf"].([]any); ok {
		first := ""
		for _, option := range options {
			fault := s.check(at, option, v)
			if fault == "" {
				return ""
			}
			if first == "" {
				first = fault
			}
		}
		return first
	}
	if fault := s.checkKind(at, object, v); fault != "" {
		return fault
	}
	switch v := v.(type) {
	case map[string]any:
		return s.checkMembers(at, object, v)
	case []any:
		return s.checkElements(at, object, v)
	}
	return ""
}

// checkKind checks everything but what is in objects and arrays.
func (s schemas) checkKind(at string, schema map[string]any, v any) string {
	if kinds := schema["type"]; kinds != nil {
		list, ok := kinds.([]any)
		if !ok {
			list = []any{kinds}
		}
		if !slices.ContainsFunc(list, func(kind any) bool { return isKind(kind.(string), v) }) {
			return fmt.Sprintf("%s: %v is no %v", at, v, kinds)
		}
	}
	if allowed, ok := schema["enum"].([]any); ok && !slices.Contains(allowed, v) {
		return fmt.Sprintf("%s: %v is none of %v", at, v, allowed)
	}
	if fixed, ok := schema["const"]; ok && fixed != v {
		return fmt.Sprintf("%s: %v is not %v", at, v, fixed)
	}
	switch v := v.(type) {
	case string:
		if least, ok := schema["minLength"].(float64); ok && utf8.RuneCountInString(v) < int(least) {
			return at + ": too short"
		}
		if pattern, ok := schema["pattern"].(string); ok && !regexp.MustCompile(pattern).MatchString(v) {
			return fmt.Sprintf("%s: %q does not match %s", at, v, pattern)
		}
	case float64:
		least, most := math.Inf(-1), math.Inf(1)
		if n, ok := schema["minimum"].(float64); ok {
			least = n
		}
		if n, ok := schema["maximum"].(float64); ok {
			most = n
		}
		if v < least || v > most {
			return fmt.Sprintf("%s: %v is not within %v and %v", at, v, least, most)
		}
	}
	return ""
}

func isKind(kind string, v any) bool {
	switch v := v.(type) {
	case nil:
		return kind == "null"
	case bool:
		return kind == "boolean"
	case string:
		return kind == "string"
	case float64:
		return kind == "number" || kind == "integer" && v == math.Trunc(v)
	case []any:
		return kind == "array"
	}
	return kind == "object"
}

func (s schemas) checkMembers(at string, schema map[string]any, v map[string]any) string {
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if _, ok := v[name.(string)]; !ok {
			return at + ": " + name.(string) + " is missing"
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	patterns, _ := schema["patternProperties"].(map[string]any)
	others, open := schema["additionalProperties"]
	if !open && (len(properties) == 0 || !s.strict) {
		others = true
	}
	for name, value := range v {
		inner, known := properties[name]
		for pattern, schema := range patterns {
			if regexp.MustCompile(pattern).MatchString(name) {
				inner, known = schema, true
			}
		}
		if !known {
			inner = others
		}
		if inner == nil || inner == false {
			return at + ": " + name + " is not described"
		}
		if fault := s.check(at+"."+name, inner, value); fault != "" {
			return fault
		}
	}
	return ""
}

func (s schemas) checkElements(at string, schema map[string]any, v []any) string {
	if least, ok := schema["minItems"].(float64); ok && len(v) < int(least) {
		return at + ": too few elements"
	}
	if most, ok := schema["maxItems"].(float64); ok && len(v) > int(most) {
		return at + ": too many elements"
	}
	first, _ := schema["prefixItems"].([]any)
	for i, item := range v {
		inner := schema["items"]
		if i < len(first) {
			inner = first[i]
		}
		if inner == nil {
			continue
		}
		if fault := s.check(at+"["+strconv.Itoa(i)+"]", inner, item); fault != "" {
			return fault
		}
	}
	return ""
}

// A keyword that the validator does not know would be a condition that nobody checks.
func TestSchemasAndTheirExamples(t *testing.T) {
	_, doc := describedBy(t)
	known := []string{"$ref", "anyOf", "type", "enum", "const", "minLength", "pattern", "minimum", "maximum", "required", "properties", "patternProperties",
		"additionalProperties", "minItems", "maxItems", "prefixItems", "items",
		"description", "examples", "format", "contentEncoding", "contentMediaType"} // these are no conditions
	var walk func(at string, v any)
	walk = func(at string, v any) {
		object, _ := v.(map[string]any)
		for _, keyword := range keysOf(object) {
			if !slices.Contains(known, keyword) {
				t.Errorf("%s: keyword %s is not known to the validator", at, keyword)
			}
			switch inner := object[keyword].(type) {
			case map[string]any:
				if keyword == "properties" || keyword == "patternProperties" {
					for name, schema := range inner {
						walk(at+"."+name, schema)
					}
				} else {
					walk(at+"/"+keyword, inner)
				}
			case []any:
				if keyword == "anyOf" || keyword == "prefixItems" {
					for _, schema := range inner {
						walk(at+"/"+keyword, schema)
					}
				}
			}
		}
		examples, _ := object["examples"].([]any)
		for _, example := range examples {
			if fault := (schemas{doc, true}).check(at, v, example); fault != "" {
				t.Errorf("example of %s", fault)
			}
		}
	}
	for name, schema := range member(doc, "components", "schemas").(map[string]any) {
		walk(name, schema)
	}
	for key, p := range member(doc, "components", "parameters").(map[string]any) {
		walk(key, member(p, "schema"))
		if example := member(p, "example"); example != nil {
			if fault := (schemas{doc, true}).check(key, member(p, "schema"), example); fault != "" {
				t.Errorf("example of %s", fault)
			}
		}
	}
}

func keysOf(object map[string]any) []string {
	var names []string
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// The validator itself: each case is a value that a schema takes, and one that it refuses.
func TestSchemaValidator(t *testing.T) {
	for _, c := range []struct{ schema, good, bad string }{
		{`{"type":"integer"}`, `1`, `1.5`},
		{`{"type":["number","null"]}`, `null`, `"1"`},
		{`{"enum":["a","b"]}`, `"a"`, `"c"`},
		{`{"const":"a"}`, `"a"`, `"b"`},
		{`{"type":"string","minLength":1}`, `"ä"`, `""`},
		{`{"type":"string","pattern":"^a"}`, `"ab"`, `"ba"`},
		{`{"type":"integer","minimum":0,"maximum":7}`, `7`, `8`},
		{`{"type":"object","required":["a"]}`, `{"a":1}`, `{"b":1}`},
		{`{"type":"object","properties":{"a":{"type":"string"}}}`, `{"a":"x"}`, `{"a":1}`},
		{`{"type":"object","properties":{"a":{"type":"string"}}}`, `{}`, `{"b":"x"}`},
		{`{"type":"object","additionalProperties":{"type":"string"}}`, `{"b":"x"}`, `{"b":1}`},
		{`{"type":"object","patternProperties":{"^t:":{"type":"string"}},"additionalProperties":false}`, `{"t:a":"x"}`, `{"a":"x"}`},
		{`{"type":"array","items":{"type":"string"}}`, `["a"]`, `["a",1]`},
		{`{"type":"array","minItems":1,"maxItems":2}`, `[1]`, `[]`},
		{`{"type":"array","minItems":1,"maxItems":2}`, `[1]`, `[1,2,3]`},
		{`{"type":"array","prefixItems":[{"type":"string"}]}`, `["a",1]`, `[1]`},
		{`{"anyOf":[{"type":"string"},{"type":"array"}]}`, `[]`, `1`},
		{`{"$ref":"#/a/b"}`, `"x"`, `1`},
	} {
		s := schemas{doc: map[string]any{"a": map[string]any{"b": map[string]any{"type": "string"}}}, strict: true}
		if fault := s.check("", parsed(t, c.schema), parsed(t, c.good)); fault != "" {
			t.Errorf("%s refuses %s: %s", c.schema, c.good, fault)
		}
		if fault := s.check("", parsed(t, c.schema), parsed(t, c.bad)); fault == "" {
			t.Errorf("%s takes %s", c.schema, c.bad)
		}
	}
}

func parsed(t testing.TB, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

// TestAnswersAreAsDescribed holds the answers of the scenario files against the schema of their operation. TestScenarios proves that the server gives them.
func TestAnswersAreAsDescribed(t *testing.T) {
	s, doc := describedBy(t)
	files, err := filepath.Glob("testdata/*.http")
	if err != nil {
		t.Fatal(err)
	}
	checked := map[string]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, cases := parseScenarios(t, string(text))
		for _, sc := range cases {
			rt := routeOf(s, sc.method, sc.target)
			if rt == nil || !json.Valid([]byte(sc.want)) {
				continue // no JSON, or the start of a longer one
			}
			if fault := answerFault(doc, rt, sc); fault != "" {
				t.Errorf("%s: %s: %s %s answers %s with what its description does not allow: %s", filepath.Base(file), sc.name, sc.method, rt.path, sc.status, fault)
			}
			checked[rt.method+" "+rt.path]++
		}
	}
	total := 0
	for _, n := range checked {
		total += n
	}
	if total < 500 || len(checked) < 50 {
		t.Errorf("only %d answers of %d routes were checked", total, len(checked))
	}
}

// answerFault is the fault of one answer, "" for none.
func answerFault(doc map[string]any, rt *route, sc scenario) string {
	for path, methods := range doc["paths"].(map[string]any) {
		op := member(methods, strings.ToLower(rt.method))
		if op == nil || shape(rt.method, path) != shape(rt.method, rt.path) {
			continue
		}
		answer := member(op, "responses", sc.status)
		if answer == nil {
			if sc.status < "400" {
				return "the status is not described"
			}
			answer = member(op, "responses", "default")
		}
		if ref, ok := member(answer, "$ref").(string); ok {
			answer = member(doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
		}
		schema := member(answer, "content", "application/json", "schema")
		if schema == nil {
			return "no JSON is described"
		}
		var v any
		if err := json.Unmarshal([]byte(sc.want), &v); err != nil {
			return err.Error()
		}
		fault := schemas{doc, true}.check("answer", schema, v)
		if fault != "" && sc.status >= "400" && (schemas{doc, true}).check("answer", member(doc, "components", "schemas", "Error"), v) == "" {
			return "" // what any request may be refused with
		}
		return fault
	}
	return "the route is not described"
}

// routeOf finds the row for a target: of those that fit the one with the most fixed segments.
func routeOf(s *Server, method, target string) *route {
	path, _, _ := strings.Cut(target, "?")
	if method == http.MethodHead {
		method = http.MethodGet
	}
	var best *route
	most := -1
	for _, rt := range s.routes() {
		if fixed, fits := fitsPath(strings.Split(rt.path, "/"), strings.Split(path, "/")); fits && rt.method == method && fixed > most {
			best, most = &rt, fixed
		}
	}
	return best
}

func fitsPath(pattern, path []string) (fixed int, fits bool) {
	for i, segment := range pattern {
		switch {
		case i == len(path):
			return 0, false
		case strings.HasPrefix(segment, "*"):
			return fixed, true
		case strings.HasPrefix(segment, ":") && path[i] != "":
		case segment == path[i]:
			fixed++
		default:
			return 0, false
		}
	}
	return fixed, len(pattern) == len(path)
}
