package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"mime"
	"mime/multipart"
	"strings"

	"github.com/tidemark-db/tidemark/core"
)

// ParserConfigs is what the interface knows of named parser configurations.
type ParserConfigs interface {
	// File reports whether a file of the configuration folder defines the parser: it beats what is stored.
	File(name string) bool
	// Check opens a configuration as an upload would, without data, and returns all that is wrong with it in an error of code Invalid.
	Check(ctx context.Context, p core.ParserConfig) error
}

// configImport counts what an import did.
type configImport struct {
	added, replaced, kept int
	lines                 []string // of the page, one for each configuration
}

// csvConfigsImport stores the parser configurations of an XML file. Either all of them are stored or none. A name that exists is kept unless the form
// says overwrite; one that a file of the server defines is always kept.
func (c *call) csvConfigsImport() error {
	form, err := c.importForm()
	if err != nil {
		return err
	}
	configs, err := parseCSVConfigs(form.file, c.server.Limits.Depth)
	if err != nil {
		return err
	}
	b := c.batch()
	var done configImport
	var faults []error
	for _, p := range configs {
		if c.server.ParserConfigs != nil {
			err := c.server.ParserConfigs.Check(c.reading(), p.ParserConfig)
			if core.CodeOf(err) == core.Invalid {
				faults = append(faults, p.explain(err))
				continue
			}
			if err != nil {
				return err
			}
		}
		change, err := c.importConfig(p.ParserConfig, form.overwrite, &done)
		if err != nil {
			return err
		}
		if change != nil {
			b.Documents = append(b.Documents, *change)
		}
	}
	if err := errors.Join(faults...); err != nil {
		return core.Errorf(core.Invalid, "IllegalArgumentException: nothing was imported: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if len(b.Documents) > 0 {
		receipt, err := c.submit(b)
		if err != nil {
			return err
		}
		c.durability(receipt.Durability)
	}
	page := fmt.Sprintf("<!DOCTYPE html>\n<html><head><meta charset=\"UTF-8\"><title>Import</title></head><body>\n"+
		"<p>Import executed successfully</p>\n<p>added: %d, replaced: %d, kept: %d</p>\n<ul>\n", done.added, done.replaced, done.kept)
	for _, line := range done.lines {
		page += "<li>" + html.EscapeString(line) + "</li>\n"
	}
	return c.send("text/html;charset=UTF-8", []byte(page+"</ul></body></html>\n"))
}

// importConfig decides about one configuration; nil keeps what there is.
func (c *call) importConfig(p core.ParserConfig, overwrite bool, done *configImport) (*core.DocChange, error) {
	if c.server.ParserConfigs != nil && c.server.ParserConfigs.File(p.Name) {
		done.kept++
		done.lines = append(done.lines, p.Name+": kept, a file of the server defines it")
		return nil, nil
	}
	exists := false
	for _, err := range c.server.Reader.Documents(c.reading(), core.DocumentQuery{Kind: core.DocParser, Key: p.Name}) {
		if err != nil {
			return nil, err
		}
		exists = true
	}
	switch {
	case exists && !overwrite:
		done.kept++
		done.lines = append(done.lines, p.Name+": kept, it exists: send overwrite=on to replace it")
		return nil, nil
	case exists:
		done.replaced++
		done.lines = append(done.lines, p.Name+": replaced")
	default:
		done.added++
		done.lines = append(done.lines, p.Name+": added")
	}
	body, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return &core.DocChange{Kind: core.DocParser, Key: p.Name, Op: core.DocPut, Body: body}, nil
}

// importForm is the multipart body of an import.
type importForm struct {
	file      string
	overwrite bool
}

// importForm reads the parts: file, or the first one with a file name, and overwrite.
func (c *call) importForm() (importForm, error) {
	var f importForm
	kind, params, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(kind, "multipart/") || params["boundary"] == "" {
		return f, core.Errorf(core.Invalid, "IllegalArgumentException: a multipart form with a part 'file' is expected")
	}
	body, err := c.body()
	if err != nil {
		return f, err
	}
	found := false
	parts := multipart.NewReader(strings.NewReader(body), params["boundary"])
	for {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return f, core.Wrap(core.Invalid, err, "IllegalArgumentException: the multipart body is not valid")
		}
		data, err := io.ReadAll(part)
		if err != nil {
			return f, core.Wrap(core.Invalid, err, "IllegalArgumentException: the multipart body is not valid")
		}
		switch {
		case !found && (part.FormName() == "file" || part.FileName() != ""):
			f.file, found = string(data), true
		case part.FormName() == "overwrite":
			value := strings.ToLower(strings.TrimSpace(string(data)))
			f.overwrite = value != "" && value != "off" && value != "false"
		}
	}
	if !found {
		return f, core.Errorf(core.Invalid, "IllegalArgumentException: No file part in the multipart body")
	}
	return f, nil
}
