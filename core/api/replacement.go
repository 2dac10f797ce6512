package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/tidemark-db/tidemark/core"
)

// formatOf returns the format segment of the path and the stored form of the table's name. A path without a format names the table only, and means JSON.
func (c *call) formatOf() (format, key string, err error) {
	format, name := c.param("format"), c.param("name")
	if name == "" && c.r.Method != get {
		format, name = "json", format
	}
	if err = checkFormat(format); err != nil {
		return "", "", err
	}
	key, err = tableKey(name)
	return format, key, err
}

func checkFormat(format string) error {
	if format != "json" && format != "csv" {
		return core.Errorf(core.NotFound, "no such format of replacement tables: %s, use json or csv", excerpt(format))
	}
	return nil
}

func tableKey(name string) (string, error) {
	key := core.TableKey(trimmed(name))
	if key == "" || !validName(key) {
		return "", core.Errorf(core.Invalid, "IllegalArgumentException: Invalid replacement table name '%s'", excerpt(name))
	}
	return key, nil
}

// table reads a table; none is a 404.
func (c *call) table(key string) (t core.Table, err error) {
	for doc, err := range c.server.Reader.Documents(c.reading(), core.DocumentQuery{Kind: core.DocTable, Key: key}) {
		if err != nil {
			return t, err
		}
		if err := json.Unmarshal(doc.Body, &t); err != nil {
			return t, fmt.Errorf("read replacement table %q: %w", key, err)
		}
		return t, nil
	}
	return t, notFound("replacement table", key)
}

// tableField is the check of one field of a table; false refuses the field by name.
func tableField(key string) func(p *docPatch, name string, v gjson.Result) bool {
	return func(p *docPatch, name string, v gjson.Result) bool {
		switch name {
		case "name":
			if text := p.text(name, v); core.TableKey(trimmed(text)) != key {
				p.fail("name '%s' differs from that in the path", excerpt(text))
			}
			return true
		case "author", "description":
			return p.setText(name, v)
		case "valueFormat":
			return p.setEnum(name, v, "LIST", "LIST", "SQL", "JSON", "GRAPHQL", "TEXT", "CSV")
		case "keys":
			p.setKeys(v)
			return true
		}
		return false
	}
}

// setKeys sets records. Unlike tags they keep their case, and may have an empty value; null is no value.
func (p *docPatch) setKeys(v gjson.Result) {
	keys := map[string]string{}
	p.each(v, func(key string, v gjson.Result) {
		if keys[key] = p.text("keys."+key, v); key == "" {
			p.fail("keys: a record has an empty key")
		}
	})
	p.records(keys)
}

// records adds the member `keys`.
func (p *docPatch) records(keys map[string]string) {
	p.name("keys")
	body, err := json.Marshal(keys) // a map of texts: cannot fail
	p.body = append(p.body, body...)
	if p.err == nil {
		p.err = err
	}
}

// tablePatchBody reads the fields or, in CSV, the records of a PUT or PATCH.
func (c *call) tablePatchBody(format, key string) ([]byte, error) {
	if format == "csv" {
		body, err := c.body()
		if err != nil {
			return nil, err
		}
		keys, err := decodeRecords(body)
		if err != nil {
			return nil, err
		}
		p := &docPatch{body: []byte{'{'}}
		p.records(keys)
		return p.close(), p.err
	}
	body, err := c.json()
	if err != nil {
		return nil, err
	}
	p, err := decodePatch(body, "replacement table", tableField(key))
	if err != nil {
		return nil, err
	}
	return p.close(), nil
}

// tablePut creates a table or replaces all of it: what is not sent gets its default.
func (c *call) tablePut() error {
	format, key, err := c.formatOf()
	if err != nil {
		return err
	}
	patch, err := c.tablePatchBody(format, key)
	if err != nil {
		return err
	}
	body, err := patched(core.Table{Name: key, ValueFormat: "LIST"}, patch)
	if err != nil {
		return err
	}
	return c.write(core.DocChange{Kind: core.DocTable, Key: key, Op: core.DocPut, Body: body})
}

// tablePatch merges records, and in JSON changes the metadata that is sent.
func (c *call) tablePatch() error {
	format, key, err := c.formatOf()
	if err != nil {
		return err
	}
	patch, err := c.tablePatchBody(format, key)
	if err != nil {
		return err
	}
	if _, err := c.table(key); err != nil {
		return err
	}
	return c.write(core.DocChange{Kind: core.DocTable, Key: key, Op: core.DocPatch, Body: patch})
}

func (c *call) tableDelete() error {
	key, err := tableKey(c.param("name"))
	if err != nil {
		return err
	}
	if _, err := c.table(key); err != nil {
		return err
	}
	return c.write(core.DocChange{Kind: core.DocTable, Key: key, Op: core.DocDelete})
}

// tableList lists the names of all tables.
func (c *call) tableList() error {
	format := c.param("format")
	if err := checkFormat(format); err != nil {
		return err
	}
	var names []string
	for doc, err := range c.server.Reader.Documents(c.reading(), core.DocumentQuery{Kind: core.DocTable}) {
		if err != nil {
			return err
		}
		names = append(names, doc.Key)
	}
	if format == "json" {
		return c.sendJSON(appendStrings(nil, names))
	}
	body := []byte("Name\n")
	for _, name := range names {
		body = append(appendField(body, name, firstField), '\n')
	}
	c.describe(appendListMetadata(nil, c.site()))
	return c.send(tableCSVType, body)
}

// tableGet shows one table.
func (c *call) tableGet() error {
	format, key, err := c.formatOf()
	if err != nil {
		return err
	}
	t, err := c.table(key)
	if err != nil {
		return err
	}
	if format == "json" {
		return c.sendJSON(appendTable(nil, &t))
	}
	comments, err := flagParameter(c.values, "addComments", false)
	if err != nil {
		return err
	}
	c.describe(appendTableMetadata(nil, c.site(), &t))
	return c.send(tableCSVType, appendRecords([]byte("Key,Value\n"), t.Keys, comments))
}

// appendTable writes a table with its five fields, without those that are not set.
func appendTable(dst []byte, t *core.Table) []byte {
	dst = appendString(append(dst, `{"name":`...), t.Name)
	dst = appendText(dst, "author", t.Author)
	dst = appendText(dst, "description", t.Description)
	dst = appendText(dst, "valueFormat", t.ValueFormat)
	dst = append(dst, `,"keys":{`...)
	for i, key := range slices.Sorted(maps.Keys(t.Keys)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, key), ':')
		dst = appendString(dst, t.Keys[key])
	}
	return append(dst, "}}"...)
}
