package api

import (
	"encoding/base64"
	"encoding/csv"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidemark-db/tidemark/core"
)

// tableCSVType is the content type of tables, spelled as the contract does.
const tableCSVType = "text/csv;charset=utf-8"

// decodeRecords reads the two columns of CSV without header. A line with one column has an empty value; a key that starts with `#` is a comment, whose
// value goes to the end of the line. Of equal keys the last counts.
func decodeRecords(text string) (map[string]string, error) {
	if !utf8.ValidString(text) {
		return nil, core.Errorf(core.Invalid, "the body is not valid UTF-8")
	}
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
	r.FieldsPerRecord, r.ReuseRecord = -1, true
	keys := map[string]string{}
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return keys, nil
		}
		if err != nil {
			return nil, core.Errorf(core.Invalid, "IllegalArgumentException: malformed CSV: %s", err)
		}
		line, _ := r.FieldPos(0)
		switch {
		case record[0] == "":
			return nil, core.Errorf(core.Invalid, "IllegalArgumentException: line %d has an empty key", line)
		case len(record) == 1:
			keys[strings.Clone(record[0])] = ""
		case len(record) > 2 && record[0][0] != '#':
			return nil, core.Errorf(core.Invalid, "IllegalArgumentException: line %d has %d columns, key and value are expected: quote a value that has commas",
				line, len(record))
		default:
			keys[strings.Clone(record[0])] = strings.Join(record[1:], ",")
		}
	}
}

// appendRecords writes records by key. Comments come as they are, when they are wanted.
func appendRecords(dst []byte, keys map[string]string, comments bool) []byte {
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		value := keys[key]
		switch {
		case key[0] != '#' || strings.ContainsAny(key+value, "\r\n"):
			if key[0] == '#' && !comments {
				continue
			}
			dst = append(appendField(dst, key, firstField), ',')
			dst = append(appendField(dst, value, otherField), '\n')
		case comments:
			dst = append(append(dst, key...), ',')
			dst = append(append(dst, value...), '\n')
		}
	}
	return dst
}

// fieldPlace says whether a field is the first of its row, which is quoted more often.
type fieldPlace uint8

const (
	firstField fieldPlace = iota
	otherField
)

// appendField writes one field of CSV, in quotes where a reader could take it for something else.
func appendField(dst []byte, text string, place fieldPlace) []byte {
	if !needsQuotes(text, place) {
		return append(dst, text...)
	}
	dst = append(dst, '"')
	dst = append(dst, strings.ReplaceAll(text, `"`, `""`)...)
	return append(dst, '"')
}

func needsQuotes(text string, place fieldPlace) bool {
	if text == "" {
		return place == firstField
	}
	first, _ := utf8.DecodeRuneInString(text)
	return strings.ContainsAny(text, ",\"\r\n") || first <= '#' || text[len(text)-1] <= ' ' ||
		place == firstField && !unicode.IsLetter(first) && !unicode.IsDigit(first)
}

// site is what the metadata of a table says about the server and the request.
type site struct {
	request, name, url string
}

func (c *call) site() site {
	scheme := "http"
	if c.r.TLS != nil {
		scheme = "https"
	}
	return site{request: scheme + "://" + c.r.Host + c.r.URL.RequestURI(), name: c.server.Hostname, url: c.server.URL}
}

// maxLinkBytes bounds the header with the metadata: many clients refuse longer ones.
const maxLinkBytes = 12 << 10

// describe sends the metadata of a table in a header, unless it would be too long.
func (c *call) describe(metadata []byte) {
	link := "<data:application/csvm+json;base64," + base64.StdEncoding.EncodeToString(metadata) +
		`>; rel="describedBy"; type="application/csvm+json"`
	if len(link) <= maxLinkBytes {
		c.Header().Set("Link", link)
	}
}

// csvDialect is the form of all CSV that the server writes, in the terms of CSV on the Web.
const csvDialect = `{"commentPrefix":"#","delimiter":",","doubleQuote":true,"quoteChar":"\"","headerRowCount":1,"encoding":"utf-8","header":true,` +
	`"lineTerminators":["\r\n","\n"],"skipBlankRows":false,"skipColumns":0,"skipRows":0,"skipInitialSpace":false,"trim":false,"@type":"Dialect"}`

// appendTableMetadata writes the description of one table (https://www.w3.org/TR/tabular-metadata/).
func appendTableMetadata(dst []byte, s site, t *core.Table) []byte {
	dst = s.appendHead(dst, t.Name, t.Description)
	dst = appendText(dst, "dc:creator", t.Author)
	dst = appendText(dst, "dc:type", t.ValueFormat)
	dst = append(dst, `,"tableSchema":{"columns":[{"columnIndex":0,"titles":"Key","datatype":"string"},{"columnIndex":1,"titles":"Value","datatype":"string"}]},"dialect":`...)
	return append(append(dst, csvDialect...), `,"primaryKey":"Key"}`...)
}

// appendListMetadata writes the description of the list of tables.
func appendListMetadata(dst []byte, s site) []byte {
	dst = s.appendHead(dst, "Replacement Tables", "List of replacement table names")
	dst = append(dst, `,"tableSchema":{"columns":[{"columnIndex":0,"titles":"Name","datatype":"string"}]},"dialect":`...)
	return append(append(dst, csvDialect...), '}')
}

func (s site) appendHead(dst []byte, title, description string) []byte {
	dst = append(dst, `{"@context":["http://www.w3.org/ns/csvw"]`...)
	dst = appendText(dst, "url", s.request)
	dst = append(dst, `,"@type":"Table"`...)
	dst = appendText(dst, "dc:title", title)
	dst = appendText(dst, "dc:description", description)
	dst = appendString(append(dst, `,"dc:publisher":{"schema:name":`...), s.name)
	dst = appendString(append(dst, `,"schema:url":{"@id":`...), s.url)
	return append(dst, "}}"...)
}
