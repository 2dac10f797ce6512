package filter

import (
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
)

// TestRegexSize: what a short text makes of a regular expression is bounded, whether it is known when the expression is compiled or comes from data.
func TestRegexSize(t *testing.T) {
	large := `(` + strings.Repeat("pump", 30) + `){500}` // 60,000 steps
	for _, source := range []string{`name REGEX '` + large + `'`, `regexAny(name, list('` + large + `', ';'))`} {
		x, err := Compiler{}.Compile(Entities, source)
		if err == nil {
			_, err = x.Match(EntityEnv{Entity: &core.Entity{Name: "a"}})
		}
		if core.CodeOf(err) != core.TooLarge && (err == nil || !strings.Contains(err.Error(), "more than 10000 steps")) {
			t.Errorf("%.20s...: error %v, want the limit of steps", source, err)
		}
	}
	if _, err := compileRegex(`[a-z0-9]{1,1000}(-(pump|valve)){0,9}`); err != nil {
		t.Errorf("an ordinary expression: %v", err)
	}
}

// TestFunctionsWithin: the functions that take the name of an entity find nothing of one that may not be read.
func TestFunctionsWithin(t *testing.T) {
	f := Functions{
		Properties:   func(entity string, _ PropertySearch) ([]string, error) { return []string{"of " + entity}, nil },
		PropertyTags: func(entity, _ string) (map[string]string, error) { return map[string]string{"k": "of " + entity}, nil },
		EntityTags:   func(entity string) (map[string]string, error) { return map[string]string{"k": "of " + entity}, nil },
	}.Within(func(entity string) bool { return entity == "open" })
	for _, c := range []struct {
		source string
		want   bool
	}{
		{`property('open', 'type::k') = 'of open'`, true},
		{`property('secret', 'type::k') = ''`, true},
		{`property_values('secret', 'type::k').size() > 0`, false},
		{`entity_tags('open').k = 'of open'`, true},
		{`entity_tags('secret').k = ''`, true},
		{`properties('type').k = 'of open'`, true},
	} {
		x, err := Compiler{Functions: f}.Compile(Entities, c.source)
		if err != nil {
			t.Fatalf("%s: %v", c.source, err)
		}
		if got, err := x.Match(EntityEnv{Entity: &core.Entity{Name: "open"}}); got != c.want || err != nil {
			t.Errorf("%s: %v, %v; want %v", c.source, got, err, c.want)
		}
	}
}
