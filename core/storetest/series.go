package storetest

import (
	"fmt"
	"math"
	"slices"

	"github.com/tidemark-db/tidemark/core"
)

var seriesTests = []test{
	{"KeyOrder", func(s *suite) {
		b := &core.Batch{}
		for _, k := range []core.SeriesKey{keyOf("m", "b"), keyOf("m", "a", "t", "2"), keyOf("m", "a-b"), keyOf("l", "z"),
			keyOf("m", "a", "t", "1", "u", "0"), keyOf("m", "a", "t", "1"), keyOf("m", "a")} {
			numbers(b, k, 1, 1)
		}
		s.append(b)
		s.wantSeries(core.SeriesQuery{}, "l z {} 1=1", "m a {} 1=1", "m a {t=1} 1=1", "m a {t=1 u=0} 1=1", "m a {t=2} 1=1", "m a-b {} 1=1", "m b {} 1=1")
	}},
	{"LastWriteWins", func(s *suite) {
		k := keyOf("m", "e")
		s.append(numbers(&core.Batch{}, k, 30, 3, 10, 1, 20, 2, 10, 11))
		s.append(numbers(&core.Batch{}, k, 5, 0.5, 30, math.NaN(), 25, 2.5))
		s.wantSeries(core.SeriesQuery{}, "m e {} 5=0.5", "m e {} 10=11", "m e {} 20=2", "m e {} 25=2.5", "m e {} 30=NaN")
	}},
	{"RangeIsHalfOpen", func(s *suite) {
		s.append(numbers(&core.Batch{}, keyOf("m", "e"), 10, 1, 20, 2, 30, 3))
		s.wantSeries(core.SeriesQuery{Range: core.Range{Start: 10, End: 30}}, "m e {} 10=1", "m e {} 20=2")
		s.wantSeries(core.SeriesQuery{Range: core.Range{Start: 11, End: 20}})
		s.wantSeries(core.SeriesQuery{Range: core.Range{Start: 30, End: 10}})
		s.want(SeriesLines(s.Series(s.Context(), core.SeriesQuery{Scope: core.AllEntities})), nil)
	}},
	{"Limit", limits},
	{"LongSeries", longSeries},
	{"NumberKeepsText", func(s *suite) {
		k := keyOf("m", "e")
		s.append(text(&core.Batch{}, k, core.TextAt{Index: 10, Text: "on"}, 0))
		s.append(text(&core.Batch{}, k, core.TextAt{Index: 20, Text: ""}, 0))
		s.append(numbers(&core.Batch{}, k, 10, 7, 20, 8))
		s.wantSeries(core.SeriesQuery{}, `m e {} 10=7 text "on"`, `m e {} 20=8 text ""`)
	}},
	{"TextResetsNumber", func(s *suite) {
		k := keyOf("m", "e")
		s.append(numbers(&core.Batch{}, k, 10, 7))
		s.append(text(&core.Batch{}, k, core.TextAt{Index: 10, Text: "off"}, 0))
		s.wantSeries(core.SeriesQuery{}, `m e {} 10=NaN text "off"`)
	}},
	{"AppendText", appendTexts},
	{"Decimals", func(s *suite) {
		k := keyOf("m", "e")
		b := numbers(&core.Batch{}, k, 10, 0.1, 20, 2, 30, 3)
		b.Samples.Decimals = []core.DecimalAt{{Index: 0, Decimal: core.Decimal{Significand: 1234567890123456789, Exponent: -19}},
			{Index: 2, Decimal: core.Decimal{Significand: -5, Exponent: 3}}}
		s.append(b)
		s.wantSeries(core.SeriesQuery{}, "m e {} 10=0.1 decimal 1234567890123456789e-19", "m e {} 20=2", "m e {} 30=3 decimal -5e3")
		s.append(numbers(&core.Batch{}, k, 10, 0.25))
		s.wantSeries(core.SeriesQuery{Range: core.Range{Start: 0, End: 30}}, "m e {} 10=0.25", "m e {} 20=2")
	}},
	{"Versions", versions},
	{"EveryVersion", everyVersion},
	{"ManyVersions", manyVersions},
	{"VersioningChanges", versioningChanges},
	{"Stores", stores},
	{"NotStored", func(s *suite) {
		b := numbers(&core.Batch{}, keyOf("m", "seen"), 10, 1, 20, 2)
		numbers(b, keyOf("n", "unseen"), 10, 1)
		b.Samples.Flags[0] &^= core.Stored
		b.Samples.Flags[2] &^= core.Stored
		b.Samples.Texts = []core.TextAt{{Index: 0, Text: "lost"}, {Index: 1, Text: "kept"}}
		s.append(b)
		s.wantSeries(core.SeriesQuery{}, `m seen {} 20=2 text "kept"`)
		if _, ok := s.Entity("unseen"); ok {
			s.Error("a record that is not stored has made an entity")
		}
		if _, ok := s.Metric("n"); ok {
			s.Error("a record that is not stored has made a metric")
		}
	}},
	{"TagFilters", tagFilters},
	{"EntityFilters", entityFilters},
	{"Keys", func(s *suite) {
		b := numbers(&core.Batch{}, keyOf("m", "b"), 10, 1, 50, 2)
		s.append(numbers(b, keyOf("m", "a", "t", "v"), 20, 1))
		for _, c := range []struct {
			r    core.Range
			want []string
		}{
			{core.AllTime, []string{"m a {t=v} 20", "m b {} 50"}},
			{core.Range{Start: 0, End: 20}, []string{"m b {} 50"}},
			{core.Range{Start: 20, End: 50}, []string{"m a {t=v} 20"}},
			{core.Range{}, nil},
		} {
			var got []string
			for k, err := range s.Keys(s.Context(), core.SeriesQuery{Scope: core.AllEntities, Range: c.r}) {
				got = append(got, lineOf(fmt.Sprintf("%s %s %s %d", k.Key.Metric, k.Key.Entity, tagLine(k.Key.Tags), k.Last), err))
			}
			s.want(got, c.want)
		}
	}},
	{"DeleteRange", deleteRange},
	{"TagKnown", func(s *suite) {
		k := keyOf("m", "e", "site", "north")
		s.append(numbers(numbers(&core.Batch{}, k, 10, 1), keyOf("m", "e"), 10, 1))
		if !s.TagKnown("site") || s.TagKnown("north") || s.TagKnown("m") {
			s.Error("known tags are wrong after an insert")
		}
		s.append(&core.Batch{Series: []core.SeriesDelete{{Key: k, Range: core.AllTime}}})
		if s.TagKnown("site") {
			s.Error("the tag of a deleted series is still known")
		}
	}},
	{"LeavingTheLoop", func(s *suite) {
		b := &core.Batch{}
		for i := range 10 {
			numbers(b, keyOf("m", fmt.Sprint("e", i)), 10, 1)
		}
		s.append(b)
		for range s.Series(s.Context(), s.full(core.SeriesQuery{})) {
			break
		}
		for range s.Series(s.Context(), s.full(core.SeriesQuery{})) {
			s.append(numbers(&core.Batch{}, keyOf("m", "e5"), 20, 1)) // a writer must not wait for a reader's loop
			break
		}
	}},
}

func limits(s *suite) {
	b := &core.Batch{}
	for _, e := range []string{"a", "b"} {
		numbers(b, keyOf("m", e), 10, 1, 20, 2, 30, 3)
	}
	s.append(b)
	s.wantSeries(core.SeriesQuery{Limit: 2}, "m a {} 10=1", "m a {} 20=2", "m b {} 10=1", "m b {} 20=2")
	s.wantSeries(core.SeriesQuery{Limit: 2, NewestFirst: true}, "m a {} 20=2", "m a {} 30=3", "m b {} 20=2", "m b {} 30=3")
	s.wantSeries(core.SeriesQuery{Limit: 1, NewestFirst: true, Range: core.Range{Start: 0, End: 30}}, "m a {} 20=2", "m b {} 20=2")
	s.wantSeries(core.SeriesQuery{Limit: 9}, "m a {} 10=1", "m a {} 20=2", "m a {} 30=3", "m b {} 10=1", "m b {} 20=2", "m b {} 30=3")
}

// longSeries writes 20,000 samples out of order, so that a backend needs several blocks, and reads them both ways.
func longSeries(s *suite) {
	const n = 20_000
	k := keyOf("m", "e")
	for part := range 4 {
		b := &core.Batch{}
		ref := b.Ref(k)
		for i := part; i < n; i += 4 {
			at := (i * 7919) % n // 7919 is prime to n: every number once
			b.Add(ref, core.Time(at*10), float64(at))
		}
		s.append(b)
	}
	for _, c := range []struct {
		q           core.SeriesQuery
		first, last int
	}{
		{core.SeriesQuery{}, 0, n - 1},
		{core.SeriesQuery{NewestFirst: true}, 0, n - 1},
		{core.SeriesQuery{Limit: 9000}, 0, 8999},
		{core.SeriesQuery{Limit: 9000, NewestFirst: true}, n - 9000, n - 1},
		{core.SeriesQuery{Range: core.Range{Start: 50_001, End: 150_000}}, 5001, 14_999},
		{core.SeriesQuery{Range: core.Range{Start: 50_001, End: 150_000}, NewestFirst: true, Limit: 6000}, 9000, 14_999},
	} {
		var want []string
		for i := c.first; i <= c.last; i++ {
			want = append(want, fmt.Sprintf("m e {} %d=%v", i*10, float64(i)))
		}
		s.wantSeries(c.q, want...)
	}
	s.append(&core.Batch{Series: []core.SeriesDelete{{Key: k, Range: core.Range{Start: 5, End: 199_985}}}})
	s.wantSeries(core.SeriesQuery{}, "m e {} 0=0", "m e {} 199990=19999")
}

// appendTexts is the worked example of the text command, and its corners.
func appendTexts(s *suite) {
	k := keyOf("st", "p")
	s.append(text(&core.Batch{}, k, core.TextAt{Index: 10, Text: "Halt"}, 0))
	s.append(text(&core.Batch{}, k, core.TextAt{Index: 10, Text: "Start"}, core.AppendText))
	s.append(text(&core.Batch{}, k, core.TextAt{Index: 10, Text: "Halt"}, core.AppendText))
	s.append(numbers(&core.Batch{}, k, 10, 7))
	s.wantSeries(core.SeriesQuery{}, `st p {} 10=7 text "Halt;\nStart"`)
	// An appended text keeps the number, without a text as well; nothing stored makes it a plain insert.
	s.append(numbers(&core.Batch{}, k, 20, 2))
	s.append(text(&core.Batch{}, k, core.TextAt{Index: 20, Text: "a"}, core.AppendText))
	s.append(text(&core.Batch{}, k, core.TextAt{Index: 30, Text: "b"}, core.AppendText))
	// A part must match exactly.
	s.append(text(&core.Batch{}, k, core.TextAt{Index: 10, Text: "Star"}, core.AppendText))
	// Number and appended text in one sample.
	b := numbers(&core.Batch{}, k, 30, 3)
	b.Samples.Texts = []core.TextAt{{Index: 0, Text: "c"}}
	b.Samples.Flags[0] |= core.AppendText
	s.append(b)
	s.wantSeries(core.SeriesQuery{}, `st p {} 10=7 text "Halt;\nStart;\nStar"`, `st p {} 20=2 text "a"`, `st p {} 30=3 text "b;\nc"`)
	s.append(text(&core.Batch{}, k, core.TextAt{Index: 10, Text: "Fresh"}, 0))
	s.wantSeries(core.SeriesQuery{Limit: 1}, `st p {} 10=NaN text "Fresh"`)
}

func versions(s *suite) {
	s.append(put(core.DocMetric, "v", `{"name":"v","enabled":true,"versioned":true}`))
	k := keyOf("v", "e")
	b := numbers(&core.Batch{}, k, 10, 1, 20, 2)
	b.Samples.Texts = []core.TextAt{{Index: 0, Text: "first"}}
	b.Samples.Versions = []core.VersionAt{{Index: 0, Source: "form", Status: "ok", Written: 777}}
	r := s.append(b)
	s.wantSeries(core.SeriesQuery{}, `v e {} 10=1 text "first" version "form" "ok" 777`, fmt.Sprintf(`v e {} 20=2 version "" "" %d`, r.Received))
	// A version stands alone: a number has no text of an earlier version.
	b = numbers(&core.Batch{}, k, 10, 5)
	b.Samples.Versions = []core.VersionAt{{Index: 0, Source: "fix", Written: 888}}
	s.append(b)
	s.wantSeries(core.SeriesQuery{Limit: 1}, `v e {} 10=5 version "fix" "" 888`)
	// The first sample of a metric makes it versioned when it has version fields; a metric that is not drops them.
	b = numbers(&core.Batch{}, keyOf("born", "e"), 10, 1)
	b.Samples.Versions = []core.VersionAt{{Index: 0, Source: "x", Written: 9}}
	s.append(b)
	if m, _ := s.Metric("born"); !m.Versioned {
		s.Error("a metric made by a sample with version fields is not versioned")
	}
	s.append(numbers(&core.Batch{}, keyOf("plain", "e"), 10, 1))
	b = numbers(&core.Batch{}, keyOf("plain", "e"), 10, 2)
	b.Samples.Versions = []core.VersionAt{{Index: 0, Source: "x", Written: 9}}
	s.append(b)
	s.wantSeries(core.SeriesQuery{Metric: "plain"}, "plain e {} 10=2")
}

// wantAllSamples compares every version of every sample that q selects.
func (s *suite) wantAllSamples(q core.SeriesQuery, want ...string) {
	s.Helper()
	q = s.full(q)
	q.Versions = true
	s.want(VersionLines(s.Series(s.Context(), q)), want)
}

// version adds a sample with version fields to a batch.
func version(b *core.Batch, k core.SeriesKey, t core.Time, v float64, at core.VersionAt) *core.Batch {
	i := b.Add(b.Ref(k), t, v)
	at.Index = uint32(i)
	b.Samples.Versions = append(b.Samples.Versions, at)
	return b
}

// everyVersion writes versions in and out of the order of their times, and reads them all.
func everyVersion(s *suite) {
	k := keyOf("v", "e")
	b := version(&core.Batch{}, k, 10, 1, core.VersionAt{Source: "a", Written: 100})
	version(b, k, 10, 2, core.VersionAt{Source: "b", Written: 300})
	version(b, k, 20, 5, core.VersionAt{Written: 100})
	s.append(b)
	// Two of one millisecond stay in order of arrival; one that was written before the latest does not become it.
	b = version(&core.Batch{}, k, 10, 3, core.VersionAt{Source: "c", Written: 200})
	version(b, k, 10, 4, core.VersionAt{Source: "d", Written: 200})
	b.Samples.Texts = []core.TextAt{{Index: 0, Text: "late"}}
	b.Samples.Decimals = []core.DecimalAt{{Index: 1, Decimal: core.Decimal{Significand: 4, Exponent: 0}}}
	s.append(b)
	latest := []string{`v e {} 10=2 version "b" "" 300`, `v e {} 20=5 version "" "" 100`}
	all := []string{`v e {} 10=1 version "a" "" 100`, `v e {} 10=3 text "late" version "c" "" 200`,
		`v e {} 10=4 decimal 4e0 version "d" "" 200`, latest[0], latest[1]}
	s.wantSeries(core.SeriesQuery{}, latest...)
	s.wantAllSamples(core.SeriesQuery{}, all...)
	// The limit counts rows and may cut between the versions of one time.
	s.wantAllSamples(core.SeriesQuery{Limit: 3}, all[:3]...)
	s.wantAllSamples(core.SeriesQuery{Limit: 3, NewestFirst: true}, all[2:]...)
	s.wantAllSamples(core.SeriesQuery{Limit: 1, NewestFirst: true, Range: core.Range{Start: 0, End: 20}}, all[3])
	s.wantAllSamples(core.SeriesQuery{Range: core.Range{Start: 11, End: 21}}, all[4])
	// Deleting takes all versions; what comes back has none of them.
	s.append(&core.Batch{Series: []core.SeriesDelete{{Key: k, Range: core.Range{Start: 10, End: 11}}}})
	s.append(version(&core.Batch{}, k, 10, 9, core.VersionAt{Status: "new", Written: 400}))
	s.wantAllSamples(core.SeriesQuery{}, `v e {} 10=9 version "" "new" 400`, latest[1])
}

// manyVersions writes 3,000 samples of three versions each out of order, so that columns split and several blocks are needed.
func manyVersions(s *suite) {
	const n = 3000
	k := keyOf("v", "e")
	for round := range 3 {
		b := &core.Batch{}
		for i := range n {
			at := (i * 7919) % n // 7919 is prime to n: every number once
			version(b, k, core.Time(at*10), float64(at*10+round), core.VersionAt{Written: core.Time(1 + round)})
		}
		s.append(b)
	}
	var all, latest []string
	for i := range n {
		for round := range 3 {
			all = append(all, fmt.Sprintf(`v e {} %d=%v version "" "" %d`, i*10, float64(i*10+round), 1+round))
		}
		latest = append(latest, all[len(all)-1])
	}
	s.wantSeries(core.SeriesQuery{}, latest...)
	s.wantAllSamples(core.SeriesQuery{}, all...)
	s.wantAllSamples(core.SeriesQuery{NewestFirst: true}, all...)
	s.wantAllSamples(core.SeriesQuery{Limit: 5000}, all[:5000]...)
	s.wantAllSamples(core.SeriesQuery{Limit: 5000, NewestFirst: true}, all[len(all)-5000:]...)
}

// versioningChanges turns versions on and off: samples from before are the oldest version; one write without versions leaves only itself.
func versioningChanges(s *suite) {
	k := keyOf("m", "e")
	b := numbers(&core.Batch{}, k, 10, 1, 20, 2)
	b.Samples.Texts = []core.TextAt{{Index: 1, Text: "old"}}
	s.append(b)
	s.append(patch(core.DocMetric, "m", `{"versioned":true}`))
	s.append(version(version(&core.Batch{}, k, 10, 3, core.VersionAt{Source: "x", Written: 50}), k, 20, 4, core.VersionAt{Source: "y", Written: 50}))
	s.wantAllSamples(core.SeriesQuery{}, "m e {} 10=1", `m e {} 10=3 version "x" "" 50`, `m e {} 20=2 text "old"`, `m e {} 20=4 version "y" "" 50`)
	s.append(patch(core.DocMetric, "m", `{"versioned":false}`))
	s.append(numbers(&core.Batch{}, k, 20, 5))
	s.wantAllSamples(core.SeriesQuery{}, "m e {} 10=1", `m e {} 10=3 version "x" "" 50`, "m e {} 20=5")
	s.wantSeries(core.SeriesQuery{}, `m e {} 10=3 version "x" "" 50`, "m e {} 20=5")
}

// stores keeps a forecast, a named one and deviations beside what was measured, each with samples of its own.
func stores(s *suite) {
	k := keyOf("m", "e", "t", "v")
	b := numbers(&core.Batch{}, k, 10, 1)
	numbers(b, k.In(core.Predicted, ""), 10, 2, 20, 3)
	numbers(b, k.In(core.Predicted, "plan"), 10, 4)
	numbers(b, k.In(core.Deviation, "plan"), 10, 5)
	numbers(b, keyOf("m", "a").In(core.Predicted, ""), 10, 6)
	s.append(b)
	s.wantSeries(core.SeriesQuery{}, "m e {t=v} 10=1")
	s.wantSeries(core.SeriesQuery{Kind: core.Predicted}, "m a {} 10=6", "m e {t=v} 10=2", "m e {t=v} 20=3")
	s.wantSeries(core.SeriesQuery{Kind: core.Predicted, Forecast: "plan"}, "m e {t=v} 10=4")
	s.wantSeries(core.SeriesQuery{Kind: core.Deviation})
	s.wantSeries(core.SeriesQuery{Kind: core.Deviation, Forecast: "plan"}, "m e {t=v} 10=5")
	s.wantSeries(core.SeriesQuery{Kind: core.Predicted, ExactTags: true}, "m a {} 10=6")
	s.wantSeries(core.SeriesQuery{Kind: core.Predicted, TagExpression: "tags.t = 'v'", Metric: "m"}, "m e {t=v} 10=2", "m e {t=v} 20=3")
	keys := func(q core.SeriesQuery) (got []string) {
		for k, err := range s.Keys(s.Context(), s.full(q)) {
			got = append(got, lineOf(fmt.Sprintf("%s %s %d", k.Key.Entity, tagLine(k.Key.Tags), k.Last), err))
		}
		return got
	}
	s.want(keys(core.SeriesQuery{}), []string{"e {t=v} 10"})
	s.want(keys(core.SeriesQuery{Kind: core.Predicted}), []string{"a {} 10", "e {t=v} 20"})
	// Deleting what was measured leaves the forecasts, deleting the metric does not.
	s.append(&core.Batch{Series: []core.SeriesDelete{{Key: k, Range: core.AllTime}, {Key: k.In(core.Predicted, ""), Range: core.AllTime}}})
	s.wantSeries(core.SeriesQuery{})
	s.wantSeries(core.SeriesQuery{Kind: core.Predicted}, "m a {} 10=6")
	s.append(drop(core.DocMetric, "m"))
	s.wantSeries(core.SeriesQuery{Kind: core.Predicted})
	s.wantSeries(core.SeriesQuery{Kind: core.Deviation, Forecast: "plan"})
}

// tagFilters is the table of the series contract: A{k1=a,k2=b}, B{k1=a}, C{k2=b}, D{}.
func tagFilters(s *suite) {
	b := &core.Batch{}
	for i, k := range []core.SeriesKey{keyOf("m", "a", "k1", "a", "k2", "b"), keyOf("m", "b", "k1", "a"), keyOf("m", "c", "k2", "b"), keyOf("m", "d")} {
		numbers(b, k, 1, float64(i))
	}
	s.append(b)
	filter := func(name string, patterns ...string) core.TagFilter {
		return core.TagFilter{Name: name, Patterns: patterns}
	}
	for _, c := range []struct {
		q    core.SeriesQuery
		want string
	}{
		{core.SeriesQuery{}, "abcd"},
		{core.SeriesQuery{ExactTags: true}, "d"},
		{core.SeriesQuery{Tags: []core.TagFilter{filter("k1", "a")}}, "ab"},
		{core.SeriesQuery{Tags: []core.TagFilter{filter("k1", "a")}, ExactTags: true}, "b"},
		{core.SeriesQuery{Tags: []core.TagFilter{filter("k2", "*")}}, "ac"},
		{core.SeriesQuery{Tags: []core.TagFilter{filter("k2", "*")}, ExactTags: true}, "c"},
		{core.SeriesQuery{Tags: []core.TagFilter{filter("k1", "z", "a")}}, "ab"},
		{core.SeriesQuery{Tags: []core.TagFilter{filter("k1", "A")}}, ""},
		{core.SeriesQuery{Tags: []core.TagFilter{filter("k1")}}, ""},
		{core.SeriesQuery{Tags: []core.TagFilter{filter("k1", "*"), filter("k2", "?")}, ExactTags: true}, "a"},
		{core.SeriesQuery{TagExpression: "tags.k1 = '' OR tags.k2 LIKE 'b*'"}, "acd"},
		{core.SeriesQuery{Metric: "m", Tags: []core.TagFilter{filter("k1", "a")}}, "ab"},
		{core.SeriesQuery{Metric: "other"}, ""},
	} {
		got := ""
		for k, err := range s.Keys(s.Context(), s.full(c.q)) {
			got += lineOf(k.Key.Entity, err)
		}
		if got != c.want {
			s.Errorf("%+v selects %q, want %q", c.q, got, c.want)
		}
	}
	s.wantSeries(core.SeriesQuery{TagExpression: "tags.k1 ="}, "error invalid")
}

func entityFilters(s *suite) {
	b := &core.Batch{}
	for _, e := range []string{"pump-1", "pump-2", "fan-1", "p?mp"} {
		numbers(b, keyOf("m", e), 1, 1)
	}
	s.append(b)
	s.append(patch(core.DocEntity, "fan-1", `{"tags":{"site":"north"}}`))
	s.append(put(core.DocGroup, "pumps", `{"enabled":true,"members":["pump-1","pump-2"]}`))
	for _, c := range []struct {
		f    core.EntityFilter
		want []string
	}{
		{core.EntityFilter{}, []string{"fan-1", "p?mp", "pump-1", "pump-2"}},
		{core.EntityFilter{Names: []string{"pump-2", "fan-1", "nobody", "fan-1"}}, []string{"fan-1", "pump-2"}},
		{core.EntityFilter{Names: []string{"p?mp"}}, []string{"p?mp"}},
		{core.EntityFilter{Patterns: []string{"pump-?"}}, []string{"pump-1", "pump-2"}},
		{core.EntityFilter{Patterns: []string{`p\?mp`}}, []string{"p?mp"}},
		{core.EntityFilter{Names: []string{"fan-1"}, Patterns: []string{"*-1"}}, []string{"fan-1", "pump-1"}},
		{core.EntityFilter{Group: "pumps"}, []string{"pump-1", "pump-2"}},
		{core.EntityFilter{Group: "nobody"}, nil},
		{core.EntityFilter{Patterns: []string{"*-1"}, Group: "pumps"}, []string{"pump-1"}},
		{core.EntityFilter{Names: []string{"fan-1"}, Group: "pumps"}, nil},
		{core.EntityFilter{Expression: "tags.site = 'north'"}, []string{"fan-1"}},
		{core.EntityFilter{Group: "pumps", Expression: "name LIKE '*-2'"}, []string{"pump-2"}},
		{core.EntityFilter{Expression: "memberOf('pumps') AND hasMetric('m') AND NOT hasMetric('n')"}, []string{"pump-1", "pump-2"}},
		{core.EntityFilter{Expression: "name ="}, []string{"error invalid"}},
	} {
		for _, metric := range []string{"", "m"} {
			var got []string
			for k, err := range s.Keys(s.Context(), s.full(core.SeriesQuery{Metric: metric, Entities: c.f})) {
				got = append(got, lineOf(k.Key.Entity, err))
			}
			if !slices.Equal(got, c.want) {
				s.Errorf("metric %q, %+v selects %q, want %q", metric, c.f, got, c.want)
			}
		}
	}
}

func deleteRange(s *suite) {
	a, b := keyOf("m", "e"), keyOf("m", "e", "t", "v")
	s.append(numbers(numbers(&core.Batch{}, a, 10, 1, 20, 2, 30, 3), b, 10, 1))
	s.append(text(&core.Batch{}, a, core.TextAt{Index: 20, Text: "gone"}, 0))
	s.append(&core.Batch{Series: []core.SeriesDelete{{Key: a, Range: core.Range{Start: 20, End: 30}}, {Key: keyOf("no", "such"), Range: core.AllTime}}})
	s.wantSeries(core.SeriesQuery{}, "m e {} 10=1", "m e {} 30=3", "m e {t=v} 10=1")
	// What was deleted may come back, without what it had.
	s.append(numbers(&core.Batch{}, a, 20, 22))
	s.wantSeries(core.SeriesQuery{ExactTags: true}, "m e {} 10=1", "m e {} 20=22", "m e {} 30=3")
	s.append(&core.Batch{Series: []core.SeriesDelete{{Key: a, Range: core.AllTime}}})
	s.wantSeries(core.SeriesQuery{}, "m e {t=v} 10=1")
	if _, ok := s.Metric("m"); !ok {
		s.Error("deleting a series took its metric away")
	}
	// Deletes of a batch come before its samples.
	s.append(numbers(&core.Batch{Series: []core.SeriesDelete{{Key: b, Range: core.AllTime}}}, b, 40, 4))
	s.wantSeries(core.SeriesQuery{}, "m e {t=v} 40=4")
}
