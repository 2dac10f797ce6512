package rules_test

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/rules"
	"github.com/tidemark-db/tidemark/rules/rulestest"
)

// keptFiles hold a rule, hot, that needs an endpoint and a collection of other files, and a bystander.
var keptFiles = fstest.MapFS{
	"hot.yaml": &fstest.MapFile{Data: []byte(`# the only rule here
name: hot
type: series
filter: {metric: temp}
window: {count: 3}
condition: 'sum() > 200 && collection_contains(entity, "pumps")'
actions:
  - {kind: webhook, endpoint: chat, triggers: [open, cancel], params: {text: 'n=${count()}'}}
`)},
	"ends.yaml": &fstest.MapFile{Data: []byte(`kind: endpoint
name: other
url: http://other.example/
---
kind: endpoint
name: chat
url: http://chat.example/
json:
  text: |
    ${text}
params:
  text: {}
`)},
	"lists.yaml": &fstest.MapFile{Data: []byte("kind: collection\nname: pumps\nitems: [a, b]\n")},
	"z.yaml":     &fstest.MapFile{Data: []byte(base + "---\n" + strings.Replace(base, "name: r", "name: s", 1))},
}

// openWith starts an engine and lets it do its first step.
func (w *world) openWith(files fs.FS) rules.Faults {
	w.t.Helper()
	faults := w.start(files)
	w.advance()
	return faults
}

// hotWorld has one open alert of the rule hot, with two samples in its window.
func hotWorld(t *testing.T) *world {
	w := &world{t: t, box: rulestest.NewSandbox(start)}
	if f := w.openWith(keptFiles); len(f) > 0 {
		t.Fatal(f)
	}
	w.insert("series e:a m:temp=101")
	w.insert("series e:a m:temp=102")
	w.advance()
	if got := w.outcome(); len(got.Alerts) != 1 || len(got.Outbox) != 1 {
		t.Fatalf("the example opens nothing: %+v, errors %+v", got, w.engine.Errors())
	}
	return w
}

func with(name, text string) fstest.MapFS {
	files := maps.Clone(keptFiles)
	files[name] = &fstest.MapFile{Data: []byte(text)}
	return files
}

func without(names ...string) fstest.MapFS {
	files := maps.Clone(keptFiles)
	for _, name := range names {
		delete(files, name)
	}
	return files
}

func TestBrokenFilesAtStartCostNothing(t *testing.T) {
	hot, ends, z := string(keptFiles["hot.yaml"].Data), string(keptFiles["ends.yaml"].Data), string(keptFiles["z.yaml"].Data)
	renamedAway := with("z.yaml", "name: [")
	delete(renamedAway, "hot.yaml")
	for name, c := range map[string]struct {
		files fs.FS
		kept  int
	}{
		"expression":          {with("hot.yaml", strings.Replace(hot, "sum()", "smu()", 1)), 1},
		"not YAML":            {with("hot.yaml", "name: ["), 1},
		"cut in the middle":   {with("hot.yaml", hot[:len(hot)/3]), 1},
		"endpoint":            {with("ends.yaml", strings.Replace(ends, "url: http://chat", "ulr: http://chat", 1)), 1},
		"endpoint is gone":    {without("ends.yaml"), 1},
		"collection":          {with("lists.yaml", "kind: collection\nitems: [c]\n"), 0},
		"in a faulty file":    {renamedAway, 3},
		"beside a fault":      {with("hot.yaml", strings.Replace(z, "name: r", "name: q", 1)+"severity: odd\n"), 1},
		"directory is gone":   {os.DirFS(filepath.Join(t.TempDir(), "none")), 3},
		"file that is locked": {unreadable{keptFiles, "hot.yaml"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := hotWorld(t)
			want := w.outcome()
			faults := w.openWith(c.files)
			if s := w.engine.Status(); len(faults) == 0 || s.Faults != len(faults) || s.Kept != c.kept {
				t.Fatalf("faults %v, status %+v, want %d kept", faults, s, c.kept)
			}
			w.openWith(c.files) // a second start finds the same
			if diff := cmp.Diff(want, w.outcome()); diff != "" {
				t.Fatalf("after a start with a broken file:\n%s", diff)
			}
			w.insert("series e:a m:temp=-90") // 101 + 102 - 90: closes, if the window holds all three
			w.advance()
			got := w.outcome()
			if len(got.Alerts) != 0 || len(got.Outbox) != 2 || !strings.Contains(strings.Join(got.Outbox, "\n"), `"body":"{\"text\":\"n=3\"}"`) {
				t.Errorf("the rule does not go on: %+v, errors %+v", got, w.engine.Errors())
			}
			if f := w.openWith(keptFiles); len(f) > 0 || w.engine.Status().Kept != 0 {
				t.Errorf("after the repair: %v, %+v", f, w.engine.Status())
			}
			w.insert("series e:a m:temp=190") // 102 - 90 + 190: opens
			w.advance()
			if got := w.outcome(); len(got.Alerts) != 1 {
				t.Errorf("the repair emptied the window: %+v", got)
			}
		})
	}
}

// unreadable has a file that may not be read.
type unreadable struct {
	fstest.MapFS
	name string
}

func (u unreadable) ReadFile(name string) ([]byte, error) {
	if name == u.name {
		return nil, fs.ErrPermission
	}
	return u.MapFS.ReadFile(name)
}

func TestRemovedRuleTakesItsAlertsAlongAtStart(t *testing.T) {
	w := hotWorld(t)
	if f := w.openWith(without("hot.yaml")); len(f) > 0 {
		t.Fatal(f)
	}
	if got, s := w.outcome(), w.engine.Status(); len(got.Alerts) != 0 || s.Rules != 2 || s.Windows != 0 {
		t.Errorf("open %+v, status %+v", got.Alerts, s)
	}
	w.openWith(with("hot.yaml", "name: ["))
	if s := w.engine.Status(); s.Rules != 2 || s.Kept != 0 {
		t.Errorf("a removed rule came back: %+v", s)
	}
	for d := range w.box.Documents(t.Context(), core.DocumentQuery{Kind: core.DocRule}) {
		if d.Key == "hot" {
			t.Errorf("a removed rule is still stored: %s", d.Body)
		}
	}
}

func TestReloadRemovesNothingWhileAFileIsFaulty(t *testing.T) {
	w := hotWorld(t)
	want := w.outcome().Alerts
	w.files = with("z.yaml", "name: [")
	delete(w.files, "hot.yaml")
	w.openWith(w.files)
	serve(t, w, func(ctx context.Context) {
		if err := w.engine.Reload(ctx); err == nil || w.engine.Status().Kept != 3 {
			t.Errorf("reload: %v, status %+v", err, w.engine.Status())
		}
		if diff := cmp.Diff(want, w.outcome().Alerts); diff != "" {
			t.Errorf("open after the reload:\n%s", diff)
		}
		w.files["z.yaml"] = keptFiles["z.yaml"]
		if err := w.engine.Reload(ctx); err != nil || w.engine.Status().Kept != 0 || len(w.outcome().Alerts) != 0 {
			t.Errorf("reload without faults: %v, status %+v", err, w.engine.Status())
		}
	})
}

func TestLongSourceIsNotKept(t *testing.T) {
	var list strings.Builder
	list.WriteString("kind: collection\nname: pumps\nitems:\n")
	for i := range 8000 {
		fmt.Fprintf(&list, "  - pump-%d\n", i)
	}
	w := hotWorld(t)
	w.openWith(with("lists.yaml", list.String()+"  - a\n"))
	if e := w.engine.Errors(); len(e) != 1 || e[0].Rule != "hot" || !strings.Contains(e[0].Text, "more than 65536 bytes") {
		t.Errorf("errors %+v", e)
	}
	for d := range w.box.Documents(t.Context(), core.DocumentQuery{Kind: core.DocRule}) {
		if len(d.Body) > 64<<10 || d.Key == "hot" && strings.Contains(string(d.Body), "pump-1") {
			t.Errorf("document of %s has %d bytes", d.Key, len(d.Body))
		}
	}
	// A long list that the rule does not name is left out instead.
	w = hotWorld(t)
	files := with("long.yaml", strings.Replace(list.String(), "name: pumps", "name: valves", 1))
	w.openWith(files)
	files["hot.yaml"] = &fstest.MapFile{Data: []byte("name: [")}
	w.openWith(files)
	if got := w.outcome().Alerts; len(got) != 1 || w.engine.Status().Kept != 1 {
		t.Errorf("open %+v, errors %+v", got, w.engine.Errors())
	}
}

func TestCapsOverAllRules(t *testing.T) {
	const two = `
name: one
type: series
filter: {metric: x}
window: {duration: 1h}
condition: 'value > 99 && count() < 100'
---
name: two
type: series
filter: {metric: y}
window: {count: 50}
condition: 'false'
`
	w := &world{t: t, box: rulestest.NewSandbox(start), files: fstest.MapFS{"r.yaml": &fstest.MapFile{Data: []byte(two)}}}
	c := w.config()
	c.MaxWindows, c.MaxSamples = 5, 20
	var err error
	if w.engine, err = rules.Open(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		w.insert(fmt.Sprintf("series e:a m:x=%d", i), fmt.Sprintf("series e:a m:y=%d", i))
	}
	for i := range 10 {
		w.insert(fmt.Sprintf("series e:b%d m:x=1", i))
	}
	w.insert("series e:a m:x=100")
	w.advance()
	// Each of the three windows that came after the cap on samples still has one.
	if s := w.engine.Status(); s.Windows != 5 || s.Samples != 23 || s.OpenAlerts != 1 {
		t.Errorf("status %+v, want 5 windows, 20 samples and 3, and a rule that still evaluates", s)
	}
	errs := w.engine.Errors()
	if len(errs) != 2 || errs[0].Count+errs[1].Count != 2 || !strings.Contains(errs[0].Text, "rules.samples") || !strings.Contains(errs[1].Text, "rules.windows") {
		t.Errorf("errors %+v, want one for each cap", errs)
	}
	w.box.SetClock(start + 61_000)
	w.insert("series e:c m:x=1", "series e:a m:x=1")
	w.advance()
	count := 0
	for _, e := range w.engine.Errors() {
		count += e.Count
	}
	if count != 4 {
		t.Errorf("a minute later: %+v, want each cap reported twice", w.engine.Errors())
	}
	w.engine, err = rules.Open(t.Context(), c)
	if err != nil || w.engine.Status().Samples != 23 || w.engine.Status().Windows != 5 {
		t.Errorf("after a restart: %+v, %v", w.engine.Status(), err)
	}
	w.files["r.yaml"] = &fstest.MapFile{Data: []byte(base)}
	w.reopen()
	if s := w.engine.Status(); s.Windows != 0 || s.Samples != 0 {
		t.Errorf("after the rules were removed: %+v", s)
	}
}
