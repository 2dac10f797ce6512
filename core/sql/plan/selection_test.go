package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core/sql/ast"
)

var storedMetrics = []string{"cpu_busy", "cpu_idle", "cpu_user", "disk*used", "disk_used", "mem", "net.in", "net.out"}

func selectionTest(without ...string) metricSelection {
	return metricSelection{
		resolve: resolveTest,
		exists:  func(name string) bool { return slices.Contains(storedMetrics, name) },
		prefixed: func(prefix string) ([]string, error) {
			return slices.DeleteFunc(slices.Clone(storedMetrics), func(name string) bool { return !strings.HasPrefix(name, prefix) }), nil
		},
		of: func(entity string) ([]string, error) {
			switch entity {
			case "web":
				return []string{"cpu_busy", "net.in"}, nil
			case "db":
				return []string{"disk_used", "net.in"}, nil
			}
			return nil, nil
		},
		limit:   3,
		without: without,
		at:      ast.Start{Line: 1, Column: 32, Token: "entity"},
	}
}

func TestMetricSelection(t *testing.T) {
	for _, c := range []struct{ where, want, rest string }{
		{"metric = 'mem'", "mem", ""},
		{"'MEM' = metric", "mem", ""},
		{"metric IN ('net.out', 'Mem', 'nosuch', 'mem')", "net.out mem", ""},
		{"metric LIKE 'cpu%'", "cpu_busy cpu_idle cpu_user", ""},
		{"metric LIKE 'net._n'", "net.in", ""},
		{`metric LIKE 'cpu\_%'`, "cpu_busy cpu_idle cpu_user", ""},
		{"metric LIKE 'disk*%'", "disk*used", ""},
		{"metric LIKE 'disk!_%' ESCAPE '!'", "disk_used", ""},
		{"metric IN metrics('WEB')", "cpu_busy net.in", ""},
		{"metric IN metrics('web', 'db')", "cpu_busy net.in disk_used", ""},
		{"metric = 'mem' AND entity = 'a'", "mem", "entity = 'a'"},

		// AND intersects and narrows, OR unites.
		{"metric LIKE '%' AND metric IN ('net.out', 'mem')", "mem net.out", ""},
		{"metric IN ('net.out', 'mem') AND metric LIKE '%'", "net.out mem", ""},
		{"metric LIKE '%' AND metric LIKE 'n%'", "net.in net.out", ""},
		{"metric = 'mem' OR metric LIKE 'net%'", "mem net.in net.out", ""},
		{"metric LIKE 'cpu%' AND metric NOT LIKE '%_idle'", "cpu_busy cpu_user", ""},
		{"metric != 'CPU_IDLE' AND metric LIKE 'cpu%'", "cpu_busy cpu_user", ""},
		{"metric LIKE 'cpu%' AND metric NOT IN ('cpu_idle', 'Cpu_User')", "cpu_busy", ""},
		{"metric LIKE 'cpu%' AND metric NOT IN metrics('web')", "cpu_idle cpu_user", ""},
		{"metric LIKE 'cpu%' AND metric >= 'cpu_idle'", "cpu_idle cpu_user", ""},
		{"metric LIKE 'cpu%' AND 'cpu_idle' > metric", "cpu_busy", ""},
		{"metric LIKE 'cpu%' AND metric REGEX 'cpu_.*s.*'", "cpu_busy cpu_user", ""},
		{"metric LIKE 'cpu%' AND metric REGEX 'cpu'", "", ""},
		{"metric LIKE 'cpu%' AND NOT (metric = 'cpu_busy' OR metric = 'cpu_user')", "cpu_idle", ""},
		{"metric LIKE 'cpu%' AND (metric = 'cpu_busy' OR metric > 'cpu_l')", "cpu_busy cpu_user", ""},

		// Whatever else is said stays with the rows.
		{"metric LIKE 'net%' AND upper(metric) = 'NET.IN'", "net.in net.out", "upper(metric) = 'NET.IN'"},
		{"metric LIKE 'net%' AND metric REGEX '('", "net.in net.out", "metric regex '('"},
		{"(metric = 'mem' AND entity = 'a') OR (metric = 'net.in' AND entity = 'b')", "mem net.in", "(metric = 'mem' and entity = 'a') or (metric = 'net.in' and entity = 'b')"},
		{"metric LIKE 'net%' AND (metric = 'net.in' OR entity = 'b')", "net.in net.out", "(metric = 'net.in' or entity = 'b')"},
		{"metric = 'mem' AND (value > 1 OR value < 0)", "mem", "(value > 1 or value < 0)"},

		// The limit is for patterns.
		{"metric IN ('cpu_busy', 'cpu_idle', 'cpu_user', 'mem', 'net.in')", "cpu_busy cpu_idle cpu_user mem net.in", ""},
		{"metric IN ('cpu_busy', 'mem') OR metric LIKE 'cpu%' OR metric = 'disk_used'", "cpu_busy mem cpu_idle cpu_user disk_used", ""},
		{"metric LIKE '%' AND metric NOT LIKE '%u%'", "mem net.in", ""},
	} {
		names, rest, err := selectionTest().metrics(whereOf(t, c.where))
		if c.want == "" {
			if err == nil || err.Error() != "No matching metrics found" {
				t.Errorf("%s: got %v and %v, want an error", c.where, names, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.where, err)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s: got %s, want %s", c.where, got, c.want)
		}
		if got := showTerms(rest); got != c.rest {
			t.Errorf("%s: rest %s, want %s", c.where, got, c.rest)
		}
	}
}

func TestMetricSelectionErrors(t *testing.T) {
	const missing = `Missing metric expression in the where clause at line 1 position 32 near "entity"`
	const invalid = "Invalid metric expression"
	const none = "No matching metrics found"
	for where, want := range map[string]string{
		"entity = 'pump-1'":                            missing,
		"metric != 'mem'":                              missing,
		"metric REGEX 'm.*'":                           missing,
		"metric NOT IN ('mem')":                        missing,
		"NOT metric = 'mem'":                           missing,
		"metric = 5":                                   missing,
		"value > 1 OR entity = 'a'":                    missing,
		"metric = 'mem' OR entity = 'b'":               invalid,
		"metric LIKE 'a%' OR metric REGEX 'b.*'":       invalid,
		"(metric = 'a' OR entity = 'b') AND value = 1": invalid,
		"metric LIKE 'x%'":                             none,
		"metric LIKE 'CPU%'":                           none,
		"metric = 'nosuch'":                            none,
		"metric IN metrics('nobody')":                  none,
		"metric = 'mem' AND metric = 'net.in'":         none,
		"metric LIKE '%'":                              "Too many metrics found. Maximum: 3",
		"metric LIKE 'n%' OR metric LIKE 'c%'":         "Too many metrics found. Maximum: 3",
	} {
		names, _, err := selectionTest().metrics(whereOf(t, where))
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v and %v, want %s", where, names, err, want)
		}
	}
}

func TestMetricSelectionInJoin(t *testing.T) {
	names, rest, err := selectionTest("net.in").metrics(whereOf(t, "f.metric IN metrics('web') AND t.metric = 'x'"))
	if got := strings.Join(names, " "); got != "cpu_busy" || showTerms(rest) != "t.metric = 'x'" || err != nil {
		t.Errorf("got %s, rest %s, error %v", got, showTerms(rest), err)
	}
	if _, _, err := selectionTest().metrics(whereOf(t, "t.metric = 'mem'")); err == nil || !strings.HasPrefix(err.Error(), "Missing metric") {
		t.Errorf("a condition on another table: %v", err)
	}
	anything := selectionTest()
	anything.exists = nil
	if names, _, err := anything.metrics(whereOf(t, "metric = 'nosuch'")); len(names) != 1 || err != nil {
		t.Errorf("without checks: %v, %v", names, err)
	}
}

// TestMetricSelectionFailure: what fails below is not mistaken for a fault of the statement.
func TestMetricSelectionFailure(t *testing.T) {
	broken := errors.New("disk")
	m := selectionTest()
	m.of = func(string) ([]string, error) { return nil, broken }
	for _, where := range []string{"metric IN metrics('e')", "metric = 'mem' AND metric IN metrics('e')", "metric = 'mem' OR (metric IN metrics('e') AND value = 1)"} {
		if _, _, err := m.metrics(whereOf(t, where)); !errors.Is(err, broken) {
			t.Errorf("%s: %v", where, err)
		}
	}
}

func TestGlobOf(t *testing.T) {
	for _, c := range []struct{ like, escape, want string }{
		{"a%b_c", "", "a*b?c"},
		{`a\%b\_c\\d\e`, "", `a%b_c\\de`},
		{`a*b?c`, "", `a\*b\?c`},
		{`a!%b\c`, "!", `a%b\\c`},
		{`ab\`, "", `ab\\`},
		{"aéé%é%é", "é", "aé*%é"},
		{"%%__", "%", "%??"},
	} {
		var escape *ast.Literal
		if c.escape != "" {
			escape = &ast.Literal{Kind: ast.String, Text: c.escape}
		}
		if got := globOf(c.like, escape); got != c.want {
			t.Errorf("%s with the escape %q: got %s, want %s", c.like, c.escape, got, c.want)
		}
	}
}

func TestPushDown(t *testing.T) {
	for _, c := range []struct{ where, want, rest string }{
		{"value > 1", "[] [] []", "value > 1"},
		{"entity = 'Pump-1'", "[pump-1] [] []", ""},
		{"'Pump-1' = entity AND value > 1", "[pump-1] [] []", "value > 1"},
		{"entity IN ('A', 'b', 'a', NULL)", "[a b] [] []", ""},
		{"entity IN ('a', 5)", "[] [] []", "entity in ('a', 5)"},
		{"entity IN (NULL)", "[] [] []", "entity in (null)"},
		{"entity = ''", "[] [] []", "entity = ''"},
		{"entity LIKE 'a_*%'", `[] [a?\**] []`, ""},
		{"entity LIKE 'A%'", "[] [] []", "entity like 'A%'"},
		{"entity = 'a' OR entity LIKE 'b%' OR entity IN ('c')", "[a c] [b*] []", ""},
		{"entity = 'a' OR value > 1", "[] [] []", "entity = 'a' or value > 1"},
		{"entity = 'a' OR tags.x = 'b'", "[] [] []", "entity = 'a' or tags.x = 'b'"},
		{"entity IN ('a', 'b', 'c') AND entity IN ('C', 'b', 'd')", "[c b] [] []", ""},
		{"entity = 'a' AND entity = 'b'", "[a] [] []", "entity = 'b'"},
		{"entity LIKE 'a%' AND entity LIKE '%b'", "[] [a*] []", "entity like '%b'"},
		{"entity = 'ab' AND entity LIKE '%b'", "[ab] [] []", "entity like '%b'"},
		{"entity LIKE '%b' AND entity = 'ab' AND entity LIKE 'a%' AND entity IN ('ab', 'b')", "[ab] [] []", "entity like '%b' | entity like 'a%'"},
		{"entity != 'a' AND entity NOT IN ('b') AND entity NOT LIKE 'c%' AND entity REGEX 'd' AND NOT entity = 'e' AND entity > 'f'", "[] [] []",
			"entity != 'a' | entity not in ('b') | entity not like 'c%' | entity regex 'd' | not entity = 'e' | entity > 'f'"},

		{"tags.x = 'V*1'", `[] [] [{x [V\*1]}]`, ""},
		{`tags.x = 'a\b'`, `[] [] [{x [a\\b]}]`, ""},
		{"tags.x IN ('a', 'A')", "[] [] [{x [a A]}]", ""},
		{"tags.x LIKE 'A%' AND tags.y IS NOT NULL", "[] [] [{x [A*]} {y [*]}]", ""},
		{"tags.x = 'a' OR tags.x LIKE 'b%'", "[] [] [{x [a b*]}]", ""},
		{"tags.x = 'a' OR tags.y = 'b'", "[] [] []", "tags.x = 'a' or tags.y = 'b'"},
		{"tags.x = 'a' AND tags.x LIKE '%b'", "[] [] [{x [a]} {x [*b]}]", ""},
		{"tags.x = 1 AND tags.x > 'a' AND tags.x IS NULL AND entity IS NOT NULL", "[] [] []", "tags.x = 1 | tags.x > 'a' | tags.x is null | entity is not null"},
		{"tags.x = tags.y AND tags.x = upper('a') AND tags.x LIKE entity", "[] [] []", "tags.x = tags.y | tags.x = upper('a') | tags.x like entity"},
		{"tags.x NOT IN collection('a') AND tags.x IN collection('b')", "[] [] []", "tags.x not in collection('a') | tags.x in collection('b')"},
		{"entity.tags.x = 'a' AND metric = 'm'", "[] [] []", "entity.tags.x = 'a' | metric = 'm'"},
		{"f.tags.x = 'a' AND t.tags.x = 'b' AND t.entity = 'c'", "[] [] [{x [a]}]", "t.tags.x = 'b' | t.entity = 'c'"},
	} {
		push, rest := pushDown(whereOf(t, c.where), resolveTest, 0)
		if got := fmt.Sprint(push.entities.Names, push.entities.Patterns, push.tags); got != c.want {
			t.Errorf("%s: got %s, want %s", c.where, got, c.want)
		}
		if got := showTerms(rest); got != c.rest {
			t.Errorf("%s: rest %s, want %s", c.where, got, c.rest)
		}
	}
}

func TestNarrowing(t *testing.T) {
	for where, want := range map[string]string{
		"tags.x IS NULL AND tags.y IS NOT NULL AND tags.z = 'v' AND tags.w LIKE 'a%'": "tags.x is null | tags.y is not null | tags.z = 'v' | tags.w like 'a%'",
		"NOT tags.x IS NULL":                             "",
		"NOT tags.x IS NOT NULL AND value > 1":           "",
		"tags.x = 'a' OR tags.x = 'b'":                   "",
		"entity = 'a' OR entity LIKE 'b%'":               "entity = 'a' or entity like 'b%'",
		"NOT entity = 'a' AND metric = 'm'":              "not entity = 'a' | metric = 'm'",
		"entity = 'a' OR value > 1":                      "",
		"entity.tags.x = 'a' AND value > 1 AND time > 5": "",
		"tags.x = value":                                 "",
		"upper(entity) = 'A'":                            "",
		"tags.x IN collection('c') AND tags = 'a=b'":     "tags.x in collection('c') | tags = 'a=b'",
		"f.tags.x = 'a' AND t.tags.x = 'b' AND 1 = 1":    "f.tags.x = 'a'",
		"metric IN metrics('e') AND tags.x NOT IN ('a')": "metric in metrics('e') | tags.x not in ('a')",
	} {
		if got := showTerms(narrowing(whereOf(t, where), resolveTest, 0)); got != want {
			t.Errorf("%s: got %s, want %s", where, got, want)
		}
	}
}
