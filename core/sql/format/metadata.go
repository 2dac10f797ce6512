package format

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/cells"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/sql/column"
)

// Column is what a result says of one of its columns.
type Column struct {
	Label, Name            string
	Type                   column.Type
	Unknown                bool   // the type is not known: null
	Table, Property, About string // "" = left out
}

// Table describes a result as "Metadata Vocabulary for Tabular Data" (W3C, https://www.w3.org/TR/tabular-metadata/) has it.
type Table struct {
	Created core.Time
	Server  string // its URL
	Query   string // as received
	Columns []Column
}

// publisher is the name that results give for who made them.
const publisher = "Tidemark"

// dialect says how the CSV is written. Its members are in the order of the contract.
const dialect = `"dialect":{"commentPrefix":"#","delimiter":",","doubleQuote":true,"quoteChar":"\"","headerRowCount":1,"encoding":"utf-8","header":true,` +
	`"lineTerminators":["\r\n","\n"],"skipBlankRows":false,"skipColumns":0,"skipRows":0,"skipInitialSpace":false,"trim":false,"@type":"Dialect"}`

// JSON appends the description, compact. withDialect adds how the CSV is written.
func (t *Table) JSON(dst []byte) []byte { return append(t.members(dst), '}') }

// WithDialect appends the description with how the CSV is written.
func (t *Table) WithDialect(dst []byte) []byte {
	return append(append(append(t.members(dst), ','), dialect...), '}')
}

func (t *Table) members(dst []byte) []byte {
	dst = append(dst, `{"@context":["http://www.w3.org/ns/csvw",{"atsd":`...)
	dst = cells.AppendJSON(dst, t.Server+"/sql/schema")
	dst = append(dst, `}],"dc:created":{"@value":"`...)
	dst = dates.AppendISO(dst, t.Created)
	dst = append(dst, `","@type":"xsd:date"},"dc:publisher":{"schema:name":"`+publisher+`","schema:url":{"@id":`...)
	dst = cells.AppendJSON(dst, t.Server)
	dst = append(dst, `}},"dc:title":"SQL Query","rdfs:comment":`...)
	dst = cells.AppendJSON(dst, t.Query)
	dst = append(dst, `,"@type":"Table","url":"sql.csv","tableSchema":{"columns":[`...)
	for i := range t.Columns {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = t.Columns[i].json(dst, i+1)
	}
	return append(dst, `]}`...)
}

func (c *Column) json(dst []byte, index int) []byte {
	dst = append(dst, `{"columnIndex":`...)
	dst = strconv.AppendInt(dst, int64(index), 10)
	member := func(name, value string) {
		dst = append(append(append(dst, `,"`...), name...), `":`...)
		dst = cells.AppendJSON(dst, value)
	}
	member("name", c.Name)
	member("titles", c.Label)
	if c.Unknown {
		dst = append(dst, `,"datatype":null`...)
	} else {
		member("datatype", c.Type.String())
	}
	for _, m := range [...][2]string{{"table", c.Table}, {"propertyUrl", c.Property}, {"dc:description", c.About}} {
		if m[1] != "" {
			member(m[0], m[1])
		}
	}
	return append(dst, '}')
}

// linkLimit is how long a header may be: some clients and proxies take no more than 12 KB of all headers.
const linkLimit = 12<<10 - 512

// Link returns the header Link that holds the description; "" when it would be too long.
func (t *Table) Link() string {
	text := t.WithDialect(nil)
	const before, after = `<data:application/csvm+json;base64,`, `>; rel="describedBy"; type="application/csvm+json"`
	if len(before)+base64.StdEncoding.EncodedLen(len(text))+len(after) > linkLimit {
		return ""
	}
	return before + base64.StdEncoding.EncodeToString(text) + after
}

// Embedded appends the description as the first line of the CSV.
func (t *Table) Embedded(dst []byte) []byte {
	dst = append(dst, '#')
	dst = base64.StdEncoding.AppendEncode(dst, t.WithDialect(nil))
	return append(dst, '\n')
}

// Comments appends the description as lines of comments.
func (t *Table) Comments(dst []byte) []byte {
	dst = append(append(append(dst, `#publisher,`+publisher+`,`...), t.Server...), '\n')
	dst = append(dates.AppendISO(append(dst, `#created,`...), t.Created), '\n')
	dst = append(dst, "#title,SQL Query\n#comment,"...)
	query := strings.ReplaceAll(strings.ReplaceAll(t.Query, "\r\n", "\n"), "\r", "\n")
	dst = cells.AppendQuoted(dst, strings.ReplaceAll(query, "\n", "\n#"))
	dst = append(dst, "\n#name"...)
	for _, c := range t.Columns {
		dst = append(append(dst, ','), oneLine(c.Label)...)
	}
	dst = append(dst, "\n#datatype"...)
	for _, c := range t.Columns {
		dst = append(append(dst, ','), c.Type.String()...)
	}
	return append(dst, '\n')
}

// oneLine keeps a label on its line, and in quotes where it holds the delimiter.
func oneLine(label string) string {
	label = strings.NewReplacer("\r", " ", "\n", " ").Replace(label)
	if strings.ContainsAny(label, `",`) {
		return string(cells.AppendQuoted(nil, label))
	}
	return label
}
