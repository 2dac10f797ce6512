package rules

import (
	"testing"
	"testing/fstest"
)

// FuzzSources takes rules from the source that is kept of them: they must be the same rules, and keep the same source.
func FuzzSources(f *testing.F) {
	f.Add("name: r\ntype: series\nfilter: {metric: m}\ncondition: |+\n  value > 1\n\n\n---\n" +
		"kind: endpoint\nname: e\nurl: 'http://a/'\n--- # last\n{name: s, type: message, condition: 'true', actions: [{kind: webhook, endpoint: e}]}")
	f.Add("---\r\nname: r\r\ntype: message\r\ncondition: 'collection_contains(entity, \"c\")'\r\n---\r\nkind: collection\r\nname: c\r\nitems: [a]\r\n...\r\n")
	f.Add("# c\n\n---\n# d\nname: r\ntype: message\ncondition: 'true'\nhistory:\n  triggers: [open]\n  message: >\n    a\n    b\n")
	f.Fuzz(func(t *testing.T, text string) {
		text += "\n" // the parser takes a block header at the very end of a file for more than it is
		set, _ := Load(fstest.MapFS{"r.yaml": &fstest.MapFile{Data: []byte(text)}})
		for _, r := range set.Rules {
			kept := r.sources(set)
			var faults Faults
			l := loader{set: &Set{}, faults: &faults}
			l.file("r.yaml", []byte(kept))
			l.finish()
			if len(l.set.Rules) != 1 {
				t.Fatalf("kept %q: %v", kept, faults)
			}
			if got := l.set.Rules[0]; got.windows != r.windows || got.full != r.full || got.sources(l.set) != kept {
				t.Errorf("another rule: %q, kept %q", kept, got.sources(l.set))
			}
		}
	})
}
