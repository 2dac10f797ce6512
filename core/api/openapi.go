package api

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidemark-db/tidemark/core"
)

// openAPIPath serves the description of the interface. It holds no secret: a client reads it before it has credentials.
const openAPIPath = "/api/v1/openapi.json"

// openAPIComponents are the parts of the description that are not in the route table: parameters, schemas, answers that many routes share.
//
//go:embed openapi.json
var openAPIComponents []byte

// openAPI answers with the description, which is built by the first request: nobody else waits for it or pays for it.
func (c *call) openAPI() error {
	body, err := c.server.description()
	if err != nil {
		return err
	}
	return c.sendJSON(body)
}

// describeRoutes joins the route table with the operations, and both with the components, into an OpenAPI 3.1 document
// (https://spec.openapis.org/oas/v3.1.0). A route without an operation is left out here and found by a test. Equal tables give equal bytes.
func describeRoutes(routes []route, version string) ([]byte, error) {
	var parts struct {
		Info       map[string]string                     `json:"info"`
		Tags       json.RawMessage                       `json:"tags"`
		Components map[string]map[string]json.RawMessage `json:"components"`
	}
	if err := json.Unmarshal(openAPIComponents, &parts); err != nil {
		return nil, fmt.Errorf("read the components of the description: %w", err)
	}
	byShape := map[string]*route{}
	for i := range routes {
		byShape[shape(routes[i].method, routes[i].path)] = &routes[i]
	}
	paths := map[string]map[string]any{}
	for _, group := range operations() {
		for i := range group.operations {
			op := &group.operations[i]
			rt := byShape[shape(op.method, op.path)]
			if rt == nil {
				continue
			}
			if paths[op.path] == nil {
				paths[op.path] = map[string]any{}
			}
			paths[op.path][strings.ToLower(op.method)] = op.describe(rt, group.tag, parts.Components["parameters"])
		}
	}
	parts.Info["version"] = version
	return json.Marshal(map[string]any{
		"openapi": "3.1.0", "info": parts.Info, "tags": parts.Tags, "components": parts.Components, "paths": paths,
		"servers":  []any{map[string]string{"url": "/"}},
		"security": []any{map[string][]string{"basic": {}}, map[string][]string{"session": {}}, map[string][]string{"bearer": {}}},
	})
}

// shape is what a route and its operation have in common: the names of parameters are no part of it.
func shape(method, path string) string {
	var b strings.Builder
	b.WriteString(method)
	for segment := range strings.SplitSeq(path, "/") {
		if segment != "" && strings.ContainsRune(":*{", rune(segment[0])) {
			segment = "{}"
		}
		b.WriteString("/" + segment)
	}
	return b.String()
}

// describe gives the operation object of a route.
func (op *operation) describe(rt *route, tag string, components map[string]json.RawMessage) map[string]any {
	responses := map[string]any{"default": reference("responses", "error")}
	object := map[string]any{
		"operationId": op.id(), "tags": []string{tag}, "summary": op.summary, "description": needs(rt.role), "responses": responses,
	}
	if rt.role == core.Public {
		object["security"] = []any{}
	} else {
		responses["401"] = reference("responses", "unauthenticated")
		responses["403"] = reference("responses", "forbidden")
	}
	if parameters := op.parameterList(components); len(parameters) > 0 {
		object["parameters"] = parameters
	}
	if op.body != "" {
		object["requestBody"] = map[string]any{"required": true, "content": contentOf(op.body)}
	}
	status := op.status
	if status == 0 {
		status = 200
	}
	responses[strconv.Itoa(status)] = answerOf("Done.", op.answer)
	for other := range strings.FieldsSeq(op.also) {
		code, kind, _ := strings.Cut(other, "=")
		responses[code] = answerOf("Another answer.", strings.ReplaceAll(kind, ",", " "))
	}
	return object
}

// needs says in a sentence what a role asks for.
func needs(role core.Roles) string {
	switch role {
	case core.Public:
		return "Needs no credentials."
	case core.Authenticated:
		return "Needs credentials."
	}
	return "Needs the role " + strings.Join(role.Names(), " and ") + "."
}

// id names an operation after its method and path, so that generators of clients have a name that stays.
func (op *operation) id() string {
	path, ok := strings.CutPrefix(op.path, "/api/v1")
	if !ok {
		path = "/root" + path
	}
	id := strings.ToLower(op.method)
	for word := range strings.FieldsFuncSeq(path, func(r rune) bool { return strings.ContainsRune("/-_.{}", r) }) {
		id += strings.ToUpper(word[:1]) + word[1:]
	}
	return id
}

// parameterList refers to the parameters of the path, then to the others.
func (op *operation) parameterList(components map[string]json.RawMessage) []any {
	var list []any
	named := map[string]bool{} // parameters of the path that the operation describes itself
	for key := range strings.FieldsSeq(op.parameters) {
		var p struct{ Name, In string }
		if json.Unmarshal(components[key], &p) == nil && p.In == "path" {
			named[p.Name] = true
			list = append(list, reference("parameters", key))
		}
	}
	for _, name := range op.pathParameters() {
		if !named[name] {
			list = append(list, reference("parameters", "path."+name))
		}
	}
	for key := range strings.FieldsSeq(op.parameters) {
		var p struct{ In string }
		if json.Unmarshal(components[key], &p) != nil || p.In != "path" {
			list = append(list, reference("parameters", key))
		}
	}
	return list
}

// pathParameters are the names in braces.
func (op *operation) pathParameters() []string {
	var names []string
	for segment := range strings.SplitSeq(op.path, "/") {
		if strings.HasPrefix(segment, "{") {
			names = append(names, strings.Trim(segment, "{}"))
		}
	}
	return names
}

func reference(section, name string) map[string]string {
	return map[string]string{"$ref": "#/components/" + section + "/" + name}
}

func answerOf(description, kinds string) map[string]any {
	answer := map[string]any{"description": description}
	if kinds != "" {
		answer["content"] = contentOf(kinds)
	}
	return answer
}

// contentOf reads kinds of a body, separated by blanks: SCHEMA is JSON of that schema, []SCHEMA an array of it, MEDIA/TYPE a text, MEDIA/TYPE:SCHEMA
// another form of a schema.
func contentOf(kinds string) map[string]any {
	content := map[string]any{}
	for kind := range strings.FieldsSeq(kinds) {
		media, schema := "application/json", kind
		if strings.Contains(kind, "/") {
			media, schema, _ = strings.Cut(kind, ":")
		}
		item, array := strings.CutPrefix(schema, "[]")
		var form any = reference("schemas", item)
		switch {
		case array:
			form = map[string]any{"type": "array", "items": form}
		case schema == "":
			form = map[string]any{"type": "string"}
		}
		content[media] = map[string]any{"schema": form}
	}
	return content
}
