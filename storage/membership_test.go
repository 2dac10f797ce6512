package storage

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// TestMembershipFollowsChanges asks after each change who is a member: nothing that is remembered may outlive what it came from.
func TestMembershipFollowsChanges(t *testing.T) {
	clock := core.Time(1_900_000_000_000)
	opts := small()
	opts.Now = func() core.Time { return clock }
	db := open(t, vfs.NewMem(), opts)
	change := func(kind core.DocKind, key string, op core.DocOp, body string) *core.Batch {
		return &core.Batch{Documents: []core.DocChange{{Kind: kind, Key: key, Op: op, Body: []byte(body)}}}
	}
	sample := &core.Batch{}
	sample.Add(sample.Ref(core.SeriesKey{Metric: "m", Entity: "a"}), clock-core.Time(3_000_000), 1)
	groups := []string{"list", "other", "tagged", "inner", "outer", "property", "recent", "collected"}
	for i, step := range []struct {
		batch *core.Batch
		later core.Time
		want  string // groups that have entity a
	}{
		{batch: change(core.DocEntity, "a", core.DocPatch, `{"tags":{"site":"north"}}`)},
		{batch: change(core.DocGroup, "list", core.DocPatch, `{"members":["a","b"]}`), want: "[list]"},
		{batch: change(core.DocGroup, "list", core.DocPatch, `{"members":["b"]}`)},
		{batch: change(core.DocGroup, "other", core.DocPatch, `{"members":["a"]}`), want: "[other]"},
		{batch: change(core.DocGroup, "other", core.DocPatch, `{"enabled":false}`)},
		{batch: change(core.DocGroup, "tagged", core.DocPatch, `{"expression":"tags.site = 'north'"}`), want: "[tagged]"},
		{batch: change(core.DocEntity, "a", core.DocPatch, `{"tags":{"site":"south"}}`)},
		{batch: change(core.DocEntity, "a", core.DocPatch, `{"tags":{"site":"north"}}`), want: "[tagged]"},
		{batch: change(core.DocGroup, "outer", core.DocPatch, `{"expression":"memberOf('inner')"}`), want: "[tagged]"},
		{batch: change(core.DocGroup, "inner", core.DocPatch, `{"members":["a"]}`), want: "[tagged inner outer]"},
		{batch: change(core.DocGroup, "inner", core.DocDelete, ""), want: "[tagged]"},
		{batch: change(core.DocGroup, "property", core.DocPatch, `{"expression":"property('disk::fs') = 'ext4'"}`), want: "[tagged]"},
		{batch: &core.Batch{Properties: []core.Property{{PropertyKey: core.PropertyKey{Entity: "a", Type: "disk"}, Time: clock,
			Tags: core.Tags{{Name: "fs", Value: "ext4"}}, Flags: core.Default}}}, want: "[tagged property]"},
		{batch: &core.Batch{Removed: []core.PropertyKey{{Entity: "a", Type: "disk"}}}, want: "[tagged]"},
		{batch: change(core.DocGroup, "recent", core.DocPatch, `{"expression":"hasMetric('m', 1)"}`), want: "[tagged]"},
		{batch: sample, want: "[tagged recent]"},
		{later: 3_600_000, want: "[tagged]"},
		{batch: change(core.DocGroup, "collected", core.DocPatch, `{"expression":"name IN collection('c')"}`), want: "[tagged]"},
		{batch: change(core.DocCollection, "c", core.DocPut, `{"name":"c","values":["a"]}`), want: "[tagged collected]"},
		{batch: change(core.DocCollection, "c", core.DocDelete, ""), want: "[tagged]"},
		{batch: change(core.DocEntity, "a", core.DocRename, `{"name":"z"}`)},
		{batch: change(core.DocEntity, "z", core.DocRename, `{"name":"a"}`), want: "[tagged]"},
		{batch: change(core.DocEntity, "a", core.DocDelete, "")},
		{batch: change(core.DocEntity, "a", core.DocPatch, `{"tags":{"site":"north"}}`), want: "[tagged]"},
	} {
		clock += step.later
		if step.batch != nil {
			if _, err := db.Append(t.Context(), step.batch); err != nil {
				t.Fatal(i, err)
			}
		}
		want := step.want
		if want == "" {
			want = "[]"
		}
		for round := range 2 { // the second answer comes from what is remembered
			got := slices.DeleteFunc(slices.Clone(groups), func(g string) bool { return !db.Member("a", g) })
			if fmt.Sprint(got) != want {
				t.Errorf("step %d, round %d: member of %v, want %s", i, round, got, want)
			}
			if any := db.AnyMember(groups)("a"); any != (want != "[]") {
				t.Errorf("step %d, round %d: member of any: %v, want of %s", i, round, any, want)
			}
			for _, g := range groups {
				if one := db.AnyMember([]string{g})("a"); one != slices.Contains(got, g) {
					t.Errorf("step %d, round %d: AnyMember of %s is %v, Member is not", i, round, g, one)
				}
			}
		}
	}
}

// TestMembershipTellsGroupsApart has names that give one text when they are joined.
func TestMembershipTellsGroupsApart(t *testing.T) {
	db := open(t, vfs.NewMem(), small())
	b := &core.Batch{}
	for name, members := range map[string]string{"x": `["a"]`, "y": `["b"]`, "x\x00y": `["c"]`, "xy": `["d"]`} {
		b.Documents = append(b.Documents, core.DocChange{Kind: core.DocGroup, Key: name, Op: core.DocPatch, Body: []byte(`{"members":` + members + `}`)})
	}
	if _, err := db.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		groups []string
		want   string
	}{{[]string{"x", "y"}, "ab"}, {[]string{"x\x00y"}, "c"}, {[]string{"xy"}, "d"}, {[]string{"x"}, "a"}, {nil, ""}, {[]string{"", "y"}, "b"}} {
		got := ""
		for _, entity := range []string{"a", "b", "c", "d"} {
			if db.AnyMember(one.groups)(entity) {
				got += entity
			}
		}
		if got != one.want {
			t.Errorf("%q: members %q, want %q", one.groups, got, one.want)
		}
	}
}

// TestMembershipIsBounded fills both memories beyond their bounds.
func TestMembershipIsBounded(t *testing.T) {
	db := open(t, vfs.NewMem(), small())
	for i := range 2 * maxMemberships {
		if db.AnyMember([]string{fmt.Sprint("g", i)})("a") {
			t.Fatal("member of a group that does not exist")
		}
	}
	if n := len(db.catalog.memberships.known); n > maxMemberships {
		t.Errorf("%d combinations are remembered, at most %d should be", n, maxMemberships)
	}
	var d decisions
	g := &group{}
	for range maxDecisions + 10 {
		d.put(g, &entity{}, decision{})
	}
	if n := len(d.known); n > maxDecisions {
		t.Errorf("%d decisions are remembered, at most %d should be", n, maxDecisions)
	}
}

// TestMembershipAllocatesNothing holds for what an insert asks for each entity, and once a batch.
func TestMembershipAllocatesNothing(t *testing.T) {
	db := open(t, vfs.NewMem(), small())
	b := &core.Batch{}
	for key, body := range map[string]string{"list": `{"members":["a"]}`, "tagged": `{"expression":"tags.site = 'north'"}`} {
		b.Documents = append(b.Documents, core.DocChange{Kind: core.DocGroup, Key: key, Op: core.DocPatch, Body: []byte(body)})
	}
	b.Documents = append(b.Documents, core.DocChange{Kind: core.DocEntity, Key: "b", Op: core.DocPatch, Body: []byte(`{"tags":{"site":"north"}}`)})
	if _, err := db.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	groups := []string{"list", "tagged"}
	if n := testing.AllocsPerRun(100, func() {
		ask := db.AnyMember(groups)
		if !ask("a") || !ask("b") || ask("c") {
			t.Error("wrong members")
		}
	}); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

// TestGroupExpressionsAreWatched calls each function that an expression may use, those of later releases included: a decision is remembered only when none
// was called.
func TestGroupExpressionsAreWatched(t *testing.T) {
	db := open(t, vfs.NewMem(), small())
	g := &group{}
	functions := reflect.ValueOf(counted(db.functions(0), g))
	for i := range functions.NumField() {
		f := functions.Field(i)
		if f.IsNil() {
			t.Errorf("%s is missing", functions.Type().Field(i).Name)
			continue
		}
		in := make([]reflect.Value, f.Type().NumIn())
		for n := range in {
			in[n] = reflect.Zero(f.Type().In(n))
		}
		before := g.foreign.Load()
		if f.Call(in); g.foreign.Load() == before {
			t.Errorf("%s is not counted", functions.Type().Field(i).Name)
		}
	}
}
