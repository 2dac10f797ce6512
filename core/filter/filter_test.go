package filter_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/filter"
)

// entities of common.md 21.4.
var entities = []*core.Entity{
	{Name: "a1", Enabled: true, Tags: map[string]string{"app": "web", "dc": "EU"}},
	{Name: "a2", Enabled: true, Tags: map[string]string{"app": "Web"}},
	{Name: "b1", Enabled: true},
}

func matching(t *testing.T, k filter.Compiler, text string) string {
	t.Helper()
	e, err := k.Compile(filter.Entities, text)
	if err != nil {
		t.Errorf("Compile(%s): %v", text, err)
		return ""
	}
	var names []string
	for _, entity := range entities {
		ok, err := e.Match(filter.EntityEnv{Entity: entity})
		if err != nil {
			t.Errorf("Match(%s): %v", text, err)
		}
		if ok {
			names = append(names, entity.Name)
		}
	}
	return strings.Join(names, " ")
}

func TestEntityExpressions(t *testing.T) {
	for text, want := range map[string]string{
		// the worked table
		"name LIKE 'a?'":                             "a1 a2",
		"tags.app = 'web'":                           "a1",
		"lower(tags.app) = 'web'":                    "a1 a2",
		"tags.app != 'web'":                          "a2 b1",
		"tags.dc = ''":                               "a2 b1",
		"tags.DC IN ('EU','US') AND NOT name = 'b1'": "a1",
		"likeAny(tags.app, ['we*','da*']) || tags.size() == 0": "a1 b1",
		"tags.app >= 'a'": "a1",
		"null":            "",

		// precedence: NOT, then AND, then OR
		"name = 'b1' OR name = 'a1' AND tags.app = 'x'":     "b1",
		"(name = 'b1' OR name = 'a1') AND tags.app = 'web'": "a1",
		"NOT name = 'a1' AND NOT name = 'a2'":               "b1",
		"not not name = 'a1'":                               "a1",
		"!(name = 'a1' || name = 'a2')":                     "b1",
		"id = 'a1' && tags.app == \"web\"":                  "a1",

		// a missing tag is the empty text
		"tags.app != ''":         "a1 a2",
		"tags.app LIKE '*'":      "a1 a2 b1",
		"tags.app < 'A'":         "b1",
		"tags.app NOT LIKE 'w*'": "a2 b1",
		"tags.app = null":        "b1",
		"label = '' AND label = null AND timeZone = ''": "a1 a2 b1",
		"unknown = ''":        "a1 a2 b1",
		"tags['app'] = 'web'": "a1",
		"tags[\"DC\"] = 'EU'": "a1",
		"tags":                "a1 a2",

		// operators
		"name NOT IN ('a1', 'a2')":                 "b1",
		"name in ['a1', 'b1']":                     "a1 b1",
		"name IN list('a1,b1')":                    "a1 b1",
		"name LIKE ('*1', 'x')":                    "a1 b1",
		"name BETWEEN 'a1' AND 'a2'":               "a1 a2",
		"name NOT BETWEEN 'a1' AND 'a2'":           "b1",
		"name REGEX '[ab]1'":                       "a1 b1",
		"name REGEX 'a'":                           "",
		"name NOT REGEX 'a.'":                      "b1",
		"enabled AND enabled = true":               "a1 a2 b1",
		"enabled = 'TRUE'":                         "a1 a2 b1",
		"1 + 2 * 3 = 7 AND 7 % 4 = 3 AND -2 < -1":  "a1 a2 b1",
		"'10' > 9":                                 "a1 a2 b1",
		"'10' > '9'":                               "",
		"name + '-x' = 'a1-x'":                     "a1",
		"name LIKE ('a') + '1'":                    "a1",
		"0/0 = 0/0 OR 0/0 != 1":                    "",
		"Double.isNaN(0/0) and Math.max(1, 2) = 2": "a1 a2 b1",

		// comments
		"name = /* one */ 'a1' // the end": "a1",
		"name // first\n = 'a1'":           "a1",

		// functions and methods
		"upper(name) = 'A1'":                                                 "a1",
		"LOWER(tags.app) = 'web'":                                            "a1 a2",
		"list('x,y,x').size() = 2":                                           "a1 a2 b1",
		"list('x;y', ';')[1] = 'y'":                                          "a1 a2 b1",
		"list('x;y', ';').get(0) = 'x'":                                      "a1 a2 b1",
		"list('x').get(7) = ''":                                              "a1 a2 b1",
		"likeAll(name, ['a*', '*1'])":                                        "a1",
		"matches('a?', [name, 'z'])":                                         "a1 a2",
		"startsWithAny(name, ['b', 'x'])":                                    "b1",
		"regexAny(name, ['a[2-9]', 'b.'])":                                   "a2 b1",
		"['a1', 'b1'].contains(name)":                                        "a1 b1",
		"collection_contains(name, ['a1'])":                                  "a1",
		"collection_intersects([name, 'q'], ['a1'])":                         "a1",
		"collection('nowhere').isEmpty()":                                    "a1 a2 b1",
		"tags.isEmpty()":                                                     "b1",
		"tags.app.toLowerCase() = 'web'":                                     "a1 a2",
		"tags.app.length() = 3 AND name.length() = 2":                        "a1 a2",
		"tags.values().contains('EU')":                                       "a1",
		"name.startsWith('a') AND name.endsWith('2') AND name.contains('a')": "a2",
		"tags.app.toUpperCase() = 'WEB'":                                     "a1 a2",
	} {
		if got := matching(t, filter.Compiler{}, text); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestTagNames(t *testing.T) {
	tags := core.TagsOf(map[string]string{"docker-host": "h", "label.com.acme.code": "c", "a+b*c": "p", "list[0].x": "l", "size": "s", "n": "5", "empty.list": "e",
		"any name": "any"})
	for text, want := range map[string]bool{
		"tags.docker-host = 'h'":                true,
		"tags.label.com.acme.code='c'":          true,
		"tags.a+b*c = 'p'":                      true,
		"tags.list[0].x = 'l'":                  true,
		"tags.size = 's'":                       true,
		"tags.size() = 8":                       true,
		"tags.empty.list.length() = 1":          true,
		"tags.n - 1 = 4":                        true,
		"tags['any name'] = 'any'":              true,
		"['s', 't'].contains(tags.size)":        true,
		"(tags.n)=5&&(tags.n)<6":                true,
		"['5', tags.n][1] = '5'":                true,
		"tags.n!='5'||tags.docker-host='h'":     true,
		"TAGS.N = 5":                            true,
		"tags.missing = 'x'":                    false,
		"tags.n IN (4, 5)":                      true,
		"tags.n IN ('4', '6')":                  false,
		"tags.n BETWEEN 1 AND 5":                true,
		"tags.docker-host > 1":                  true, // not a number: compared as texts
		"tags['docker-host'].toUpperCase()='H'": true,
	} {
		e, err := filter.Compile(filter.SeriesTags, text)
		if err != nil {
			t.Errorf("Compile(%s): %v", text, err)
			continue
		}
		if got, err := e.Match(&filter.TagsEnv{Tags: tags}); got != want || err != nil {
			t.Errorf("%s = %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestMessages(t *testing.T) {
	m := &core.Message{Entity: "e", Type: "ops", Source: "plc", Severity: core.Warning, Text: "valve stuck", Tags: core.Tags{{Name: "line", Value: "A1"}}}
	for text, want := range map[string]bool{
		"severity != 'FATAL'":                             true,
		"severity = 'warning' and severity = 'WARN'":      true,
		"severity IN ('minor', 'Warning')":                true,
		"severity LIKE 'warn*'":                           true,
		"severity >= 'MINOR'":                             false,
		"severity < 'fatal'":                              true,
		"'normal' < severity":                             true,
		"severity = 'nonsense'":                           false,
		"lower(severity) = 'warning'":                     true,
		"tags.x = ''":                                     true,
		"tags.size() = 1 && !tags.isEmpty()":              true,
		"message LIKE '*stuck' and message NOT LIKE 'v?'": true,
		"type IN ('a','ops') or source == 'x'":            true,
		"type = 'Ops'":                                    false,
		"entity = 'e' and tags['Line'] = \"A1\"":          true,
	} {
		e, err := filter.Compile(filter.Messages, text)
		if err != nil {
			t.Errorf("Compile(%s): %v", text, err)
			continue
		}
		if got, err := e.Match(filter.MessageEnv{Message: m}); got != want || err != nil {
			t.Errorf("%s = %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestProperties(t *testing.T) {
	env := &filter.PropertyEnv{Key: core.Tags{{Name: "dev", Value: "sda"}, {Name: "id", Value: "k"}}, Tags: core.Tags{{Name: "dev", Value: "tag"}, {Name: "size", Value: "3"}, {Name: "twin", Value: "k"}}}
	for text, want := range map[string]bool{
		"dev LIKE 'sd*'":                    true, // key first
		"SIZE = '3' and size = 3":           true, // then tag
		"keys.Dev = 'sda'":                  true,
		"tags.dev = 'tag'":                  true,
		"keys.none = ''":                    true,
		"tags.twin = keys.id":               true,
		"keys.size() = 2":                   true,
		"nothing = ''":                      true,
		"upper(keys.dev) = 'SDA'":           true,
		"keys.dev = 'SDA'":                  false,
		"keys.dev = 'a' OR tags.size = '3'": true,
	} {
		e, err := filter.Compile(filter.Properties, text)
		if err != nil {
			t.Errorf("Compile(%s): %v", text, err)
			continue
		}
		if got, err := e.Match(env); got != want || err != nil {
			t.Errorf("%s = %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestSamples(t *testing.T) {
	env := &filter.SampleEnv{Entity: "e", Time: 1000, Value: -4, Text: "x", Tags: core.Tags{{Name: "k", Value: "v"}}}
	for text, want := range map[string]bool{
		"Math.abs(value) > 3 and tags.k = 'v'": true,
		"value > 0":                            false,
		"timestamp = 1000 and message = 'x'":   true,
		"entity LIKE 'e*'":                     true,
	} {
		e, err := filter.Compile(filter.Samples, text)
		if err != nil {
			t.Errorf("Compile(%s): %v", text, err)
			continue
		}
		if got, err := e.Match(env); got != want || err != nil {
			t.Errorf("%s = %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestRows(t *testing.T) {
	cells := map[string]string{"site": "north-1", "max": "12.5", "blank": " ", "text": "abc"}
	env := &filter.RowEnv{Time: 1577836800000, Find: func(c string) (string, bool) { v, ok := cells[c]; return v, ok }}
	now := func() core.Time { return 1609459200000 } // 2021-01-01T00:00:00Z
	for text, want := range map[string]bool{
		"row['site'] LIKE 'north*'":                                       true,
		"row['max'] > 0 and row['max'] < 13":                              true,
		"number('max') = 12.5":                                            true,
		"number('text') > 0 or number('text') < 0 or number('text') != 0": false,
		"isNumber('max') && !isNumber('text')":                            true,
		"isBlank('blank') and not isBlank('site')":                        true,
		"upper('site') = 'NORTH-1'":                                       true,
		"lower(row['site']) = 'north-1'":                                  true,
		"timestamp = date('2020-01-01T00:00:00Z')":                        true,
		"timestamp >= date('now - 2 * year')":                             true,
		"timestamp >= date('now')":                                        false,
	} {
		e, err := filter.Compiler{Now: now}.Compile(filter.Rows, text)
		if err != nil {
			t.Errorf("Compile(%s): %v", text, err)
			continue
		}
		if got, err := e.Match(env); got != want || err != nil {
			t.Errorf("%s = %v, %v, want %v", text, got, err, want)
		}
	}
	e, err := filter.Compile(filter.Rows, "row['no'] = 'x'")
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := e.Match(env); ok || err == nil || !strings.Contains(err.Error(), "'no'") {
		t.Errorf("unknown column: %v, %v, want an error that names it", ok, err)
	}
}

func TestGroupsAndTexts(t *testing.T) {
	g := &core.Group{Name: "it's \"x\"", Tags: map[string]string{"a": `b*c`, "n": ".5"}}
	for text, want := range map[string]bool{
		`name = "it's \"x\""`:                                            true,
		`name = 'it\'s "x"'`:                                             true,
		`tags.a LIKE 'b\*c'`:                                             true,
		`tags.a LIKE 'b\?c'`:                                             false,
		`tags.a = 'b\*c'`:                                                false, // no pattern: the backslash is itself
		`tags.z != '\'`:                                                  true,
		".5 = tags.n and 5e-1 = tags.n":                                  true,
		"tags.size() = 2 and tags.a REGEX ('b.' + 'c')":                  true,
		"['a', 'b'] = ['a', 'b'] and ['a'] != ['b']":                     true,
		"true = 'true' and 'FALSE' = false and 1 = true":                 true,
		"-name = 1 or -name != 1":                                        false, // not a number
		"'2' * 3 = 6 and '2' + 3 = 5 and 'a' + 3 = 'a3' and 7 / 2 = 3.5": true,
		"2 BETWEEN 3 AND 4 or 'x' NOT BETWEEN 'a' AND 'y'":               false,
	} {
		e, err := filter.Compile(filter.Groups, text)
		if err != nil {
			t.Errorf("Compile(%s): %v", text, err)
			continue
		}
		if e.String() != text {
			t.Errorf("String() = %s, want %s", e, text)
		}
		if got, err := e.Match(filter.GroupEnv{Group: g}); got != want || err != nil {
			t.Errorf("%s = %v, %v, want %v", text, got, err, want)
		}
	}
}

// Texts order by UTF-16 code unit: a character above U+FFFF starts with a surrogate, which sorts before U+E000 and up.
func TestTextOrder(t *testing.T) {
	for text, want := range map[string]bool{"'\U0001F600' < '\uFF01'": true, "'\U0001F600' > '\u4E2D'": true, "'ab' > 'a'": true, "'B' < 'a'": true, "'\uFF01' > '\uE000'": true} {
		if got, err := mustCompile(t, filter.SeriesTags, text).Match(&filter.TagsEnv{}); got != want || err != nil {
			t.Errorf("%s = %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestMetricsAndDates(t *testing.T) {
	low := -3.0
	m := &core.Metric{Name: "m", DataType: core.TypeFloat, Enabled: true, MinValue: &low, Created: 1616025600000, RetentionDays: 7} // 2021-03-18T00:00:00Z
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	k := filter.Compiler{Zone: berlin, Now: func() core.Time { return m.Created + 3_600_000 }}
	for text, want := range map[string]bool{
		"minValue > -10 and dataType = 'FLOAT'":             true,
		"maxValue > -10":                                    false,
		"maxValue = null and minValue != null":              true,
		"retentionDays = 7 and versioned = false":           true,
		"versioning = false":                                true,
		"createdDate > '2021-03-17T23:59:59Z'":              true,
		"createdDate = '2021-03-18T00:00:00Z'":              true,
		"creationDate > '2021-03-18'":                       true, // midnight in Berlin is an hour earlier in UTC
		"createdDate > 'now - 2 * hour'":                    true,
		"createdDate > 'current_hour'":                      false,
		"createdDate BETWEEN '2021-03-01' AND '2021-04-01'": true,
		"createdDate = ''":                                  false,
		"'2021-03-17' < createdDate":                        true,
	} {
		e, err := k.Compile(filter.Metrics, text)
		if err != nil {
			t.Errorf("Compile(%s): %v", text, err)
			continue
		}
		if got, err := e.Match(filter.MetricEnv{Metric: m}); got != want || err != nil {
			t.Errorf("%s = %v, %v, want %v", text, got, err, want)
		}
	}
	if ok, err := mustCompile(t, filter.Entities, "versionDate > '2021-01-01'").Match(filter.EntityEnv{Entity: entities[0]}); ok || err != nil {
		t.Errorf("an entity without versionDate: %v, %v, want false", ok, err)
	}
}

func mustCompile(t *testing.T, c filter.Context, text string) *filter.Expr {
	t.Helper()
	e, err := filter.Compile(c, text)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestWorldFunctions(t *testing.T) {
	records := []core.PropertyRecord{
		{PropertyKey: core.PropertyKey{Entity: "a1", Type: "disk", Key: core.Tags{{Name: "fs", Value: "ext4"}, {Name: "name", Value: "sda"}}},
			Tags: []core.PropertyTag{{Tag: core.Tag{Name: "mount", Value: "/"}}}},
		{PropertyKey: core.PropertyKey{Entity: "a1", Type: "disk", Key: core.Tags{{Name: "fs", Value: "xfs"}, {Name: "name", Value: "sdb"}}},
			Tags: []core.PropertyTag{{Tag: core.Tag{Name: "mount", Value: "/data"}}}},
	}
	k := filter.Compiler{Functions: filter.Functions{
		Properties: func(entity string, s filter.PropertySearch) (values []string, err error) {
			for i := range records {
				if records[i].Entity == entity {
					values = s.Values(values, &records[i])
				}
			}
			return values, nil
		},
		PropertyTags: func(entity, typ string) (map[string]string, error) {
			if entity == "a1" && typ == "cfg" {
				return map[string]string{"os": "linux", "kernel-build": "7"}, nil
			}
			return nil, nil
		},
		HasProperty: func(entity, typ string) (bool, error) { return entity == "a2" && typ == "disk", nil },
		HasMetric: func(entity, metric string, within time.Duration) (bool, error) {
			return metric == "cpu" && (entity == "a1" || entity == "a2" && within == 0) && within <= 90*time.Minute, nil
		},
		MemberOf:   func(entity, group string) (bool, error) { return strings.Contains(group, entity), nil },
		EntityTags: func(entity string) (map[string]string, error) { return map[string]string{"boss": entity}, nil },
		Collection: func(name string) []string {
			if name == "hosts" {
				return []string{"a1", "zz"}
			}
			return nil
		},
	}}
	for text, want := range map[string]string{
		"property_values('disk:fs=ext4,name=sd*:mount').contains('/')": "a1",
		"property_values('DISK:FS=*:m*').size() = 2":                   "a1",
		"property('disk:name=sdb:mount') = '/data'":                    "a1",
		"property('disk::mount') = ''":                                 "a2 b1",
		"property('a1', 'disk::mount') = '/'":                          "a1 a2 b1",
		"property_values('disk::none').isEmpty()":                      "a1 a2 b1",
		"properties('CFG').os = 'linux'":                               "a1",
		"properties('cfg').kernel-build = 7":                           "a1",
		"properties('cfg').size() = 0":                                 "a2 b1",
		"hasProperty('Disk')":                                          "a2",
		"hasMetric('CPU')":                                             "a1 a2",
		"hasMetric('cpu', 1.5)":                                        "a1",
		"memberOf('a1,a2')":                                            "a1 a2",
		"memberOf(['a1', 'b1'])":                                       "a1 b1",
		"memberOfAll(['a1 b1', 'b1'])":                                 "b1",
		"entity_tags('X').boss = 'x'":                                  "a1 a2 b1",
		"name IN collection('hosts')":                                  "a1",
		"collection_contains(name, 'hosts')":                           "a1",
		"collection_intersects([name], collection('hosts'))":           "a1",
	} {
		if got := matching(t, k, text); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestFunctionErrorsReachTheCaller(t *testing.T) {
	boom := errors.New("boom")
	k := filter.Compiler{Functions: filter.Functions{MemberOf: func(string, string) (bool, error) { return true, boom }}}
	e, err := k.Compile(filter.Entities, "name = 'zz' OR memberOf('g')")
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := e.Match(filter.EntityEnv{Entity: entities[0]}); ok || !errors.Is(err, boom) {
		t.Errorf("Match = %v, %v, want the error of the function", ok, err)
	}
}

func TestErrors(t *testing.T) {
	for _, tt := range []struct {
		context filter.Context
		text    string
		want    string
	}{
		{filter.SeriesTags, "app lke 'x'", "Syntax error at line 1 position 4: no viable alternative at input 'app lke'"},
		{filter.Messages, "source lkie 'a'", "Syntax error at line 1 position 7: no viable alternative at input 'source lkie'"},
		{filter.Messages, "type = 'x'\nand source lkie 'a'", "Syntax error at line 2 position 11: no viable alternative at input 'source lkie'"},
		{filter.SeriesTags, "tags.a = 'x' and", "Syntax error at line 1 position 16: no viable alternative at input '<EOF>'"},
		{filter.SeriesTags, "", "Syntax error at line 1 position 0: no viable alternative at input '<EOF>'"},
		{filter.SeriesTags, "tags.a = ", "Syntax error at line 1 position 9: no viable alternative at input 'tags.a ='"},
		{filter.SeriesTags, "tags.a = 'x", "Syntax error at line 1 position 9: text is not closed"},
		{filter.SeriesTags, "é # 1", "Syntax error at line 1 position 2: token recognition error at: '#'"},
		{filter.SeriesTags, "/* x", "Syntax error at line 1 position 0: comment is not closed"},
		{filter.SeriesTags, "(tags.a = 'x'", "Syntax error at line 1 position 13: no viable alternative at input 'tags.a = 'x''"},
		{filter.SeriesTags, "tags. = 'x'", "Syntax error at line 1 position 6: no viable alternative at input 'tags. ='"},
		{filter.Entities, "nope(1)", "Syntax error at line 1 position 0: unknown function 'nope'"},
		{filter.Entities, "name.nope()", "Syntax error at line 1 position 5: unknown method 'nope'"},
		{filter.Entities, "lower()", "Syntax error at line 1 position 0: wrong number of arguments for function 'lower'"},
		{filter.Entities, "name = 'x' OR memberOf('g')", "Syntax error at line 1 position 14: function 'memberOf' is not available here"},
		{filter.Entities, "name REGEX '('", "Syntax error at line 1 position 11: bad regular expression '('"},
		{filter.Entities, "createdDate > 'soon'", "Syntax error at line 1 position 14: 'soon' needs a clock"},
		{filter.Entities, "createdDate > '2021-13-01'", "Syntax error at line 1 position 14: '2021-13-01' is not a date"},
		{filter.Metrics, "filter = 'x'", "Syntax error at line 1 position 0: 'filter' is not allowed in an expression"},
	} {
		_, err := filter.Compile(tt.context, tt.text)
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%q: error %v, want %s", tt.text, err, tt.want)
		}
		if core.CodeOf(err) != core.Invalid {
			t.Errorf("%q: code %v, want invalid", tt.text, core.CodeOf(err))
		}
	}
}

func TestCheckTakesFunctionsForAvailable(t *testing.T) {
	if err := filter.Check(filter.Entities, "memberOf('g') and hasMetric('m', 2) and createdDate > 'now - 1 * day'"); err != nil {
		t.Error(err)
	}
	if err := filter.Check(filter.Entities, "memberOf('g') nd 1"); core.CodeOf(err) != core.Invalid {
		t.Errorf("error %v, want code invalid", err)
	}
}

func TestCaret(t *testing.T) {
	_, err := filter.Compile(filter.Entities, "name = 'a'\nOR lable LKE 'b'")
	var syntax *filter.SyntaxError
	if !errors.As(err, &syntax) {
		t.Fatalf("error %v is no SyntaxError", err)
	}
	want := "Syntax error at line 2 position 9: no viable alternative at input 'lable LKE'\n  OR lable LKE 'b'\n           ^"
	if got := syntax.Caret(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestFences(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("(", n) + "1" + strings.Repeat(")", n) }
	if _, err := filter.Compile(filter.Entities, deep(200)); err != nil {
		t.Errorf("200 levels: %v", err)
	}
	for name, text := range map[string]string{
		"201 parentheses": deep(201), "a million parentheses": deep(1_000_000), "a million open brackets": strings.Repeat("[", 1_000_000),
		"20 KB": "name = '" + strings.Repeat("x", 20_000) + "'",
	} {
		if _, err := filter.Compile(filter.Entities, text); core.CodeOf(err) != core.TooLarge {
			t.Errorf("%s: error %v, want code too large", name, err)
		}
	}
	if _, err := filter.Compile(filter.Entities, "name = '\xff'"); core.CodeOf(err) != core.Invalid {
		t.Errorf("not UTF-8: error %v, want code invalid", err)
	}
	// Long chains are flat or harmless, and nested lists are read once.
	for _, text := range []string{
		strings.Repeat("not ", 4000) + "name", "1" + strings.Repeat("+1", 8000), strings.Repeat("-", 16000) + "1", "name" + strings.Repeat(".a", 8000),
		strings.Repeat("name LIKE (", 190) + "name" + strings.Repeat(") + ''", 190), "name = 'a'" + strings.Repeat(" or 1", 3000),
	} {
		e, err := filter.Compile(filter.Entities, text)
		if err != nil {
			t.Errorf("%.30s...: %v", text, err)
			continue
		}
		if _, err := e.Match(filter.EntityEnv{Entity: entities[0]}); err != nil {
			t.Errorf("%.30s...: %v", text, err)
		}
	}
}

func TestConcatenationIsBounded(t *testing.T) {
	e := mustCompile(t, filter.SeriesTags, "tags.a"+strings.Repeat(" + tags.a", 1000)+" = 'x'")
	if _, err := e.Match(&filter.TagsEnv{Tags: core.Tags{{Name: "a", Value: strings.Repeat("v", 10_000)}}}); core.CodeOf(err) != core.TooLarge {
		t.Errorf("error %v, want code too large", err)
	}
}

func TestPropertySearch(t *testing.T) {
	s, err := filter.ParsePropertySearch("Disk:FS=Ext4,name=sd*:Mount")
	if err != nil {
		t.Fatal(err)
	}
	if s.Type != "disk" || s.Tag != "mount" || !slices.Equal(s.Keys, []core.Tag{{Name: "fs", Value: "Ext4"}, {Name: "name", Value: "sd*"}}) {
		t.Errorf("got %+v", s)
	}
	for _, bad := range []string{"", "disk", "disk:", "disk::", ":a=b:c", "disk:x:tag"} {
		if _, err := filter.ParsePropertySearch(bad); core.CodeOf(err) != core.Invalid {
			t.Errorf("%q: error %v, want code invalid", bad, err)
		}
	}
}

func FuzzCompile(f *testing.F) {
	for _, seed := range []string{"name LIKE 'a?' AND NOT tags.x IN ('a', 1)", "tags.list[0].x = \"y\" || lower(tags['a b']) REGEX 'a+'", "((", "tags.", "a.b(c)[1].d",
		"likeAny(tags.app, ['we*','da*'])", "/* c */ value BETWEEN -1 AND 2e3 // d", "'\\", "x LIKE (y) + 'z'"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for c := filter.Entities; c <= filter.Rows; c++ {
			e, err := filter.Compile(c, text)
			if err != nil {
				if err.Error() == "" || core.CodeOf(err) == core.Internal {
					t.Errorf("%q: error %v of code %v", text, err, core.CodeOf(err))
				}
				var syntax *filter.SyntaxError
				if errors.As(err, &syntax) {
					syntax.Caret()
				}
				continue
			}
			if ok, err := e.Match(&filter.SampleEnv{Entity: "e", Value: 1, Tags: core.Tags{{Name: "x", Value: "a"}}}); ok && err != nil {
				t.Errorf("%q matches and fails: %v", text, err)
			}
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	e, err := filter.Compile(filter.SeriesTags, "tags.app = 'web' AND tags.dc LIKE 'e*' AND NOT tags.host IN ('a', 'b')")
	if err != nil {
		b.Fatal(err)
	}
	env := &filter.TagsEnv{Tags: core.Tags{{Name: "app", Value: "web"}, {Name: "dc", Value: "eu"}, {Name: "host", Value: "c"}}}
	b.ReportAllocs()
	for b.Loop() {
		if ok, err := e.Match(env); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}
