package search

import (
	"errors"
	"iter"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-db/tidemark/core"
)

const may5 = core.Time(1620172800000) // 2021-05-05

// world is five series of two entities and three metrics, in the order of their creation.
func world() []Document {
	pump := &core.Entity{Name: "pump-1", Label: "Main Pump", Tags: map[string]string{"site": "North Hall", "ip": "10.1.2.3"}}
	fan := &core.Entity{Name: "fan_2", Tags: map[string]string{"site": "south"}}
	flow := &core.Metric{Name: "flow.rate", Label: "Flow of water", Tags: map[string]string{"owner": "ops"}}
	disk := &core.Metric{Name: "disk_used"}
	series := func(m *core.Metric, e *core.Entity, last core.Time, tags ...core.Tag) Document {
		return Document{Key: core.SeriesKey{Metric: m.Name, Entity: e.Name, Tags: tags}, Last: last, Metric: m, Entity: e}
	}
	list := []Document{
		series(flow, pump, may5),
		series(disk, pump, may5+86400_000, core.Tag{Name: "fs", Value: "/opt"}),
		series(disk, fan, may5, core.Tag{Name: "fs", Value: "/"}, core.Tag{Name: "mode", Value: "Read only"}),
		series(flow, fan, may5),
		series(&core.Metric{Name: "temp"}, fan, may5-1),
	}
	for i := range list {
		list[i].Serial = uint64(10 * (i + 1))
	}
	return list
}

// all is every hit.
var all = Page{Limit: math.MaxInt}

func documents(list []Document) iter.Seq2[Document, error] {
	return func(yield func(Document, error) bool) {
		for _, d := range list {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// TestQueries names the found series by their place in world, in the order of creation.
func TestQueries(t *testing.T) {
	for _, test := range []struct{ query, parsed, found string }{
		{`pump-1`, `contents:pump-1`, "01"},
		{`PUMP-1`, `contents:pump-1`, "01"},
		{`pump`, `contents:pump`, "01"},                    // a word of the label
		{`north`, `contents:north`, "01"},                  // a word of a value
		{`site`, `contents:site`, "01234"},                 // the name of a tag
		{`owner`, `contents:owner`, "03"},                  // of a metric
		{`mode`, `contents:mode`, "2"},                     // of a series
		{`10.1.2.3`, `contents:10.1.2.3`, "01"},            // dots join
		{`flow`, `contents:flow`, "03"},                    // flow.rate is one word, the label has another
		{`flow.*`, `contents:flow.*`, "03"},                //
		{`f*n_2`, `contents:f*n_2`, "234"},                 //
		{`f?n_2`, `contents:f?n_2`, "234"},                 //
		{`p?mp-1`, `contents:p?mp-1`, "01"},                //
		{`nothing`, `contents:nothing`, ""},                //
		{`"north hall"`, `contents:"north hall"`, "01"},    //
		{`"hall north"`, `contents:"hall north"`, ""},      // in this order only
		{`"of water"`, `contents:"of water"`, "03"},        //
		{`"/opt"`, `contents:"/opt"`, "1"},                 //
		{`\/opt`, `contents:"/opt"`, "1"},                  //
		{`fs:"/"`, `fs:"/"`, "2"},                          //
		{`entity:pump-1`, `entity:pump-1`, "01"},           //
		{`entity:pump`, `entity:pump`, ""},                 // pump-1 is one word, the label is another field
		{`entity.label:pump`, `entity.label:pump`, "01"},   //
		{`metric:temp`, `metric:temp`, "4"},                //
		{`Metric.Label:water`, `metric.label:water`, "03"}, //
		{`site:south`, `site:south`, "234"},                //
		{`mode:"read only"`, `mode:"read only"`, "2"},      //
		{`date:2021-05-06`, `date:2021-05-06`, "1"},        //
		{`date:2021-05-*`, `date:2021-05-*`, "01234"},      //
		{`date:2021-05-04`, `date:2021-05-04`, "4"},        //
		{`contents:temp`, `contents:temp`, "4"},            //
		{`temp flow`, `contents:temp contents:flow`, "034"},
		{`temp OR flow`, `contents:temp contents:flow`, "034"},
		{`temp || flow`, `contents:temp contents:flow`, "034"},
		{`pump AND flow`, `+contents:pump +contents:flow`, "0"},
		{`pump && flow`, `+contents:pump +contents:flow`, "0"},
		{`pump AND NOT flow`, `+contents:pump -contents:flow`, "1"},
		{`pump NOT flow`, `+contents:pump -contents:flow`, "1"},
		{`pump !flow`, `+contents:pump -contents:flow`, "1"},
		{`temp OR pump AND flow`, `contents:temp (+contents:pump +contents:flow)`, "04"},
		{`(temp OR pump) AND south`, `+(contents:temp contents:pump) +contents:south`, "4"},
		{`((pump) AND (flow)) OR (temp)`, `(+contents:pump +contents:flow) contents:temp`, "04"},
		{`fs:("/opt" OR "/")`, `fs:"/opt" fs:"/"`, "12"},
		{`and`, `contents:and`, ""},
		{`"AND"`, `contents:and`, ""},
		{`pump\-1`, `contents:pump-1`, "01"},
		{`\*`, `contents:"*"`, ""},
		{"  temp\t", `contents:temp`, "4"},
	} {
		q, err := Parse(test.query)
		if err != nil {
			t.Errorf("%s: %v", test.query, err)
			continue
		}
		if got := q.String(); got != test.parsed {
			t.Errorf("%s: parsed as %s, want %s", test.query, got, test.parsed)
		}
		r, err := q.Run(documents(world()), all)
		if err != nil || r.Total != 5 || r.Found != len(r.Hits) {
			t.Errorf("%s: %d documents, %d found, %v", test.query, r.Total, r.Found, err)
		}
		if got := places(r.Hits); got != test.found {
			t.Errorf("%s: found %q, want %q", test.query, got, test.found)
		}
	}
}

func places(hits []Hit) string {
	var b strings.Builder
	for i, d := range world() {
		for _, h := range hits {
			if h.Key.Compare(d.Key) == 0 {
				b.WriteByte(byte('0' + i))
			}
		}
	}
	return b.String()
}

func TestSyntaxErrors(t *testing.T) {
	for _, test := range []struct{ query, text string }{
		{``, "search: at position 1: a term is expected"},
		{`   `, "search: at position 4: a term is expected"},
		{`NOT a`, "search: at position 1: a query must not begin with NOT"},
		{`a AND`, "search: at position 6: a term is expected"},
		{`a AND OR b`, "search: at position 7: a term is expected"},
		{`OR a`, "search: at position 1: a term is expected"},
		{`(a`, "search: at position 3: a closing parenthesis is missing"},
		{`a)`, `search: at position 2: unexpected ")"`},
		{`"a`, "search: at position 1: the quote is not closed"},
		{`*a`, "search: at position 1: a wildcard must not be the first character of a term"},
		{`b OR ?a`, "search: at position 6: a wildcard must not be the first character of a term"},
		{`a[b`, `search: at position 2: '[' is reserved: write \[, or put the text in quotes`},
		{`+a`, `search: at position 1: '+' is reserved: write \+, or put the text in quotes`},
		{`-a`, `search: at position 1: '-' is reserved: write \-, or put the text in quotes`},
		{`a^2`, `search: at position 2: '^' is reserved: write \^, or put the text in quotes`},
		{`a\`, "search: at position 1: the escape at the end escapes nothing"},
		{`f:`, "search: at position 3: a term is expected after the field f"},
		{strings.Repeat("(", 40) + "a", "search: at position 34: parentheses are nested deeper than 32"},
		{strings.Repeat("a ", 65), "search: at position 131: more than 64 terms"},
		{strings.Repeat("a", 4097), "search: the query is longer than 4096 bytes"},
	} {
		q, err := Parse(test.query)
		var e *core.Error
		if !errors.As(err, &e) || e.Code != core.Invalid || e.Text != test.text {
			t.Errorf("%.40s: %v, %v; want %s", test.query, q, err, test.text)
		}
	}
}

// TestRelevance computes the formula of the package comment by hand.
func TestRelevance(t *testing.T) {
	run := func(text string) []Hit {
		q, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		r, err := q.Run(documents(world()), all)
		if err != nil {
			t.Fatal(err)
		}
		return r.Hits
	}
	rare, common := 1+math.Log(5.0/1), 1+math.Log(5.0/3)
	// "south" is the whole value of the tag site of three series, "read" a word of one of them.
	want := []float64{2*common + rare, 2 * common, 2 * common}
	var got []float64
	for _, h := range run("south read") {
		got = append(got, h.Relevance)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if first := run("south read")[0].Key.Metric; first != "disk_used" {
		t.Errorf("the most relevant is %s", first)
	}
	for _, h := range run("pump-* NOT temp") {
		if h.Relevance != 1 {
			t.Errorf("a wildcard counts %v, want 1", h.Relevance)
		}
	}
	// Equals stay in the order of the documents.
	if hits := run("site"); hits[0].Key.Metric != "flow.rate" || hits[4].Key.Metric != "temp" {
		t.Errorf("equal relevance: %v", hits)
	}
}

func TestSynonyms(t *testing.T) {
	s, err := ParseSynonyms("# words of the plant\nPump => compressor, blower\n\nblower => fan\n")
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{"compressor": "01", "blower": "01", "pump": "01", "entity.label:blower": "01", "compressor:x": "", "compress*": ""} {
		q, err := Parse(query)
		if err != nil {
			t.Fatal(err)
		}
		r, _ := q.Expand(s).Run(documents(world()), all)
		if got := places(r.Hits); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	for _, bad := range []string{"a", "a =>", "=> b", "a => b,,c"} {
		if _, err := ParseSynonyms("x => y\n" + bad); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestLike(t *testing.T) {
	for _, test := range []struct {
		pattern, text string
		want          bool
	}{{"a*", "a", true}, {"a*c", "abc", true}, {"a*c", "abcd", false}, {"a?c", "abc", true}, {"a?c", "ac", false}, {"ä*ö", "äxö", true},
		{"a*b*c", "aXbXbXc", true}, {"a**", "a", true}, {"a" + strings.Repeat("*a", 30) + "b", strings.Repeat("a", 5000), false}} {
		var pattern []glyph
		for _, r := range test.pattern {
			g := glyph{r: r}
			if r == '*' || r == '?' {
				g.kind = byte(r)
			}
			pattern = append(pattern, g)
		}
		if got := like(pattern, test.text); got != test.want {
			t.Errorf("%.20s like %.20s: %v", test.text, test.pattern, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`a AND (b OR "c d") NOT e:f*`, `\(a\)`, `date:2030-06-*`, `a:(b c)`, `((((`, "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := Parse(text)
		if err != nil {
			if core.CodeOf(err) != core.Invalid {
				t.Fatalf("%v", err)
			}
			return
		}
		_ = q.String()
		if _, err := q.Run(documents(world()), all); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkSearch(b *testing.B) {
	entities := make([]*core.Entity, 1000)
	for i := range entities {
		entities[i] = &core.Entity{Name: "host-" + strings.Repeat("x", i%7), Tags: map[string]string{"site": "north"}}
	}
	m := &core.Metric{Name: "cpu"}
	tags := core.Tags{{Name: "core", Value: "1"}, {Name: "mode", Value: "user"}}
	q, err := Parse("mode:user AND host-* NOT south")
	if err != nil {
		b.Fatal(err)
	}
	const series = 100_000
	for b.Loop() {
		_, _ = q.Run(func(yield func(Document, error) bool) {
			for i := range series {
				e := entities[i%len(entities)]
				yield(Document{Key: core.SeriesKey{Metric: m.Name, Entity: e.Name, Tags: tags}, Serial: uint64(i), Last: may5, Metric: m, Entity: e}, nil)
			}
		}, Page{Limit: 100})
	}
	b.ReportMetric(float64(b.N)*series/b.Elapsed().Seconds(), "series/s")
}
