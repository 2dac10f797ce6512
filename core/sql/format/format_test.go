package format

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/column"
)

// batch has a column of each kind, with a NULL in its second row where a column can have one.
func batch() *column.Batch {
	nulls := []bool{false, true, false}
	return &column.Batch{Len: 3, Columns: []*column.Vector{
		{Type: column.Boolean, Len: 3, Ints: []int64{1, 0, 0}, Nulls: nulls},
		{Type: column.Bigint, Len: 3, Ints: []int64{math.MinInt64, 0, math.MaxInt64}, Nulls: nulls},
		{Type: column.Double, Len: 3, Floats: []float64{0.1, math.NaN(), math.Inf(-1)}},
		{Type: column.Decimal, Len: 3, Floats: []float64{1, 2, 3}, Exact: []core.DecimalAt{{Index: 1, Decimal: core.Decimal{Significand: 12345678901234567, Exponent: -16}}}},
		{Type: column.String, Len: 3, Strings: []string{`say "hi", ` + "\n", "", "\x07ä\xff"}, Nulls: nulls},
		{Type: column.Timestamp, Len: 3, Ints: []int64{1709546400000, 0, -1}},
		{Type: column.Object, Len: 3, Values: []column.Value{{Type: column.String, Text: "7"}, {}, {Type: column.Double, Float: 0, Text: "0.0"}}},
		{Type: column.String, Const: true, Len: 3, Strings: []string{"same"}},
		{Type: column.Null, Const: true, Len: 3},
	}}
}

func TestRows(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options Options
		want    string
	}{
		{"csv", Options{Width: 9}, `true,-9223372036854775808,0.1,1,"say ""hi"", ` + "\n" + `","2024-03-04T10:00:00.000Z","7","same",` + "\n" +
			`,,NaN,1.2345678901234567,,"1970-01-01T00:00:00.000Z",,"same",` + "\n" +
			`false,9223372036854775807,-Infinity,3,"` + "\x07ä\xff" + `","1969-12-31T23:59:59.999Z",0.0,"same",` + "\n"},
		{"json", Options{Width: 9, JSON: true}, `[true,-9223372036854775808,0.1,1,"say \"hi\", \n","2024-03-04T10:00:00.000Z","7","same",null],` +
			`[null,null,"NaN",1.2345678901234567,null,"1970-01-01T00:00:00.000Z",null,"same",null],` +
			`[false,9223372036854775807,"-Infinity",3,"\u0007ä` + "\ufffd" + `","1969-12-31T23:59:59.999Z",0.0,"same",null]`},
		{"milliseconds", Options{Width: 6, Millis: true}, `true,-9223372036854775808,0.1,1,"say ""hi"", ` + "\n" + `",1709546400000` + "\n" +
			",,NaN,1.2345678901234567,,0\n" + `false,9223372036854775807,-Infinity,3,"` + "\x07ä\xff" + `",-1` + "\n"},
	} {
		if got := string(NewRows(tt.options).Append(nil, batch(), 0, 3)); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, got, tt.want)
		}
		r := NewRows(tt.options)
		parts := r.Append(r.Append(nil, batch(), 0, 1), batch(), 1, 3)
		if string(parts) != tt.want {
			t.Errorf("%s: in two parts\n%s\nwant\n%s", tt.name, parts, tt.want)
		}
	}
}

func TestTable(t *testing.T) {
	table := Table{Created: 1709546400000, Server: "http://h:1", Query: "SELECT \"a\"\r\nFROM m", Columns: []Column{{Label: `a,"b"`, Name: "a", Type: column.Double, Table: "m", Property: "atsd:value"},
		{Label: "t", Name: "t", Unknown: true}}}
	var read struct {
		Schema struct {
			Columns []struct {
				Index    int     `json:"columnIndex"`
				Titles   string  `json:"titles"`
				Datatype *string `json:"datatype"`
			} `json:"columns"`
		} `json:"tableSchema"`
		Comment string `json:"rdfs:comment"`
		Dialect *struct{}
	}
	line, _ := strings.CutPrefix(strings.TrimSpace(string(table.Embedded(nil))), "#")
	text, err := base64.StdEncoding.DecodeString(line)
	if err != nil || !strings.HasPrefix(string(text), `{"@context":`) || !strings.HasPrefix(line, "eyJAY29udGV4dCI6") {
		t.Fatalf("%v: %s", err, text)
	}
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	c := read.Schema.Columns
	if len(c) != 2 || c[0].Index != 1 || c[0].Titles != `a,"b"` || *c[0].Datatype != "double" || c[1].Datatype != nil || read.Comment != table.Query || read.Dialect == nil {
		t.Errorf("got %s", text)
	}
	want := "#publisher,Tidemark,http://h:1\n#created,2024-03-04T10:00:00.000Z\n#title,SQL Query\n#comment,\"SELECT \"\"a\"\"\n#FROM m\"\n#name,\"a,\"\"b\"\"\",t\n#datatype,double,java_object\n"
	if got := string(table.Comments(nil)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if table.Link() == "" {
		t.Error("no header for a short description")
	}
	table.Query = strings.Repeat("x", 12<<10)
	if table.Link() != "" {
		t.Error("a header that is too long for clients")
	}
}
