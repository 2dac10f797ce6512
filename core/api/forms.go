package api

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
)

// The forms that automation uses outside the API. Their parameters are in the query string; a body is ignored.

// collectionForm creates or replaces a named collection: `name`, and `values` separated by commas.
func (c *call) collectionForm() error {
	name := strings.TrimSpace(c.values.Get("name"))
	if name == "" {
		return core.Errorf(core.Invalid, "IllegalArgumentException: name is required")
	}
	doc := core.Collection{Name: name, Values: []string{}}
	for value := range strings.SplitSeq(c.values.Get("values"), ",") {
		if value = strings.TrimSpace(value); value != "" && !slices.Contains(doc.Values, value) {
			doc.Values = append(doc.Values, value)
		}
	}
	body, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	b := c.batch()
	b.Documents = []core.DocChange{{Kind: core.DocCollection, Key: name, Op: core.DocPut, Body: body}}
	receipt, err := c.submit(b)
	if err != nil {
		return err
	}
	c.durability(receipt.Durability)
	return c.found("/")
}

// compactionForm answers who asks for maintenance of the storage, which goes on by itself.
func (c *call) compactionForm() error { return c.found("/") }
