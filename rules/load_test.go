package rules_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tidemark-db/tidemark/rules"
)

const base = "name: r\ntype: series\nfilter: {metric: m}\ncondition: 'value > 1'\n"

func TestFaults(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"not YAML":       {"name: [", "r.yaml:1:"},
		"unknown key":    {base + "sevrity: major\n", "r.yaml:5:1: document 1 (rule r), sevrity: unknown key \"sevrity\", did you mean \"severity\"?"},
		"no name":        {"type: series\nfilter: {metric: m}\ncondition: 'true'\n", "name is required"},
		"no metric":      {"name: r\ntype: series\ncondition: 'true'\n", "filter.metric is required"},
		"no condition":   {"name: r\ntype: series\nfilter: {metric: m}\n", "condition is required"},
		"kind":           {"kind: ruel\nname: r\n", "\"ruel\" is not one of rule, endpoint, collection, did you mean \"rule\"?"},
		"version":        {base + "version: 2\n", "version 2"},
		"count+duration": {base + "window: {count: 2, duration: 5m}\n", "not both"},
		"exit of count":  {base + "window: {count: 2, check_on_exit: true}\n", "needs window.duration"},
		"interval":       {base + "window: {duration: 5 parsecs}\n", "r.yaml:5:20"},
		"severity":       {base + "severity: terrible\n", "is not a severity"},
		"email":          {base + "actions: [{kind: email, to: 'a@b'}]\n", "kind email are not supported yet"},
		"script":         {base + "actions: [{kind: script, file: x}]\n", "kind script are not supported yet"},
		"calendar":       {base + "calendar: gbr\n", "r.yaml:5:11: document 1 (rule r), calendar: calendar is not supported yet"},
		"instant":        {base + "actions: [{kind: log, instant: true}]\n", "actions[0].instant: instant is not supported yet"},
		"history":        {base + "history: {message: x}\n", "history.triggers is required"},
		"foreign key": {base + "actions: [{kind: webhook, endpoint: e, headers: {a: b}}]\n---\nkind: endpoint\nname: e\nurl: 'http://b/'\n",
			"headers belongs to the endpoint"},
		"preset":      {base + "actions: [{kind: webhook, preset: discord}]\n", "url is required"},
		"no endpoint": {base + "actions: [{kind: webhook, endpoint: chat}]\n", "endpoint \"chat\" does not exist"},
		"two names":   {base + "---\n" + base, "rule \"r\" is defined twice"},
		"override":    {base + "overrides: [{name: o, actions: [x], rows: []}]\n", "names the action \"x\""},
		"repeat":      {base + "actions: [{kind: log, repeat: {count: 1, interval: 1m}}]\n", "repeat must be"},
		"forward":     {base + "variables: [{name: a, expr: 'b'}, {name: b, expr: '1'}]\n", "variables[0].expr: unknown name b"},
		"shadow":      {base + "variables: [{name: avg, expr: '1'}]\n", "has the name of a field or function"},
		"not boolean": {strings.Replace(base, "value > 1", "value + 1", 1), "must be true or false, but is float64"},
		"avg in filter": {strings.Replace(base, "{metric: m}", "{metric: m, expression: 'avg() > 1'}", 1),
			"avg() is a function of the window, and a filter has no window yet"},
		"column": {strings.Replace(base, "value > 1", "value > 1 && valeu < 2", 1),
			"r.yaml:4:26: document 1 (rule r), condition: unknown name valeu, did you mean \"value\"?\n  condition: 'value > 1 && valeu < 2'\n                           ^"},
		"block": {"name: r\ntype: series\nfilter: {metric: m}\ncondition: |\n  value > 1 &&\n    valeu < 2\n", "r.yaml:6:5: "},
		"template": {base + "actions:\n  - kind: log\n    message: 'temperature ${valu(1)} in ${entity}'\n",
			"r.yaml:7:29: document 1 (rule r), actions[0].message: unknown name valu"},
		"open brace":   {base + "actions: [{kind: log, message: '${value'}]\n", "} is missing"},
		"if":           {base + "actions: [{kind: log, message: '@if{true} a'}]\n", "@end{} is missing"},
		"end":          {base + "actions: [{kind: log, message: 'a @end{} b'}]\n", "without a block"},
		"when":         {base + "actions: [{kind: log, when: 'stauts == \"OPEN\"'}]\n", "did you mean \"status\"?"},
		"both targets": {base + "actions: [{kind: webhook, endpoint: a, url: 'http://b/'}]\n", "set one of them"},
		"fixed": {base + "actions: [{kind: webhook, endpoint: e, params: {p: x}}]\n---\nkind: endpoint\nname: e\nurl: 'http://b/'\nparams: {p: {fixed: true}}\n",
			"parameter \"p\" of endpoint \"e\" is fixed"},
		"message metric": {"name: r\ntype: message\nfilter: {metric: m}\ncondition: 'true'\n", "does not apply to a rule on message data"},
		"anchors":        {"name: &a r\ntype: series\nfilter: {metric: m}\ncondition: 'true'\n", "anchors"},
	} {
		t.Run(name, func(t *testing.T) {
			_, faults := load(c.text)
			if len(faults) == 0 || !strings.Contains(faults.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", faults, c.want)
			}
		})
	}
}

// TestKeysWithoutFaults are the neighbours of faults.
func TestKeysWithoutFaults(t *testing.T) {
	for name, text := range map[string]string{
		"instant off":        base + "actions: [{kind: log, instant: false}]\n",
		"preset with target": base + "actions: [{kind: webhook, preset: slack, params: {channels: a, text: b}}]\n",
		"history off":        base + "history: {triggers: []}\n",
	} {
		if set, faults := load(text); len(faults) > 0 || len(set.Rules) != 1 {
			t.Errorf("%s: %v", name, faults)
		}
	}
}

// vanishing is a directory of which a file goes away between the listing and the look at it.
type vanishing struct{ fstest.MapFS }

func (v vanishing) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == "gone" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return v.MapFS.ReadDir(name)
}

func TestDirectoryThatIsNotThereIsNoFaultAndOneThatGoesAwayIs(t *testing.T) {
	if set, faults := rules.Load(os.DirFS(filepath.Join(t.TempDir(), "none"))); len(faults) > 0 || len(set.Rules) > 0 {
		t.Errorf("missing directory: %v", faults)
	}
	dir := vanishing{fstest.MapFS{"gone/r.yaml": &fstest.MapFile{Data: []byte(base)}}}
	if _, faults := rules.Load(dir); len(faults) != 1 || !strings.Contains(faults.Error(), "gone went away while it was read") {
		t.Errorf("faults %v", faults)
	}
}

func TestAllFaultsAtOnceAndTheRestLoads(t *testing.T) {
	set, faults := rules.Load(fstest.MapFS{
		"a/one.yaml": &fstest.MapFile{Data: []byte(strings.Replace(base, "value", "valeu", 1) + "severity: odd\n")},
		"b.yml":      &fstest.MapFile{Data: []byte(strings.Replace(base, "name: r", "name: good", 1) + "---\nkind: collection\nname: c\nitems: [x, y]\n")},
		"z.yaml":     &fstest.MapFile{Data: []byte("name: bad\ntype: odd\ncondition: 'x'\nwindow: {count: 0}\n")},
		"README.md":  &fstest.MapFile{Data: []byte("name: [")},
	})
	if len(set.Rules) != 1 || set.Rules[0].Name != "good" || len(set.Collections) != 1 {
		t.Errorf("loaded %+v", set)
	}
	var files []string
	for _, f := range faults {
		files = append(files, f.File)
	}
	if got := strings.Join(files, " "); got != "a/one.yaml z.yaml z.yaml z.yaml" {
		t.Errorf("faults in %s:\n%v", got, faults)
	}
}

func TestWindowText(t *testing.T) {
	for text, want := range map[string]string{"{count: 3}": "length(3)", "{duration: 5m}": "time(5 minute)", "{duration: 2 HOURS}": "time(2 hour)"} {
		set, faults := load(base + "window: " + text + "\n")
		if len(faults) > 0 || set.Rules[0].Window.String() != want {
			t.Errorf("%s: %v %v", text, set.Rules, faults)
		}
	}
}
