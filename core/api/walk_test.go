package api

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

// FuzzWalk compares with the library: same keys, types, texts and raw values for everything that the scan lets pass.
func FuzzWalk(f *testing.F) {
	for _, seed := range []string{`{"a":1,"b" : "x\"y" , "c":[1,{"d":"]"}],"é\u00e9":null}`, `[ true, false ,null,-1.5e3, NaN,"" ,[],{} ]`, `[]`, `{"":{"":[{}]}}`,
		`["\\","\\\"",{"}":"{"}]`} {
		f.Add(seed)
	}
	type item struct {
		Key, Raw, Str string
		Type          gjson.Type
	}
	f.Fuzz(func(t *testing.T, text string) {
		root := gjson.Parse(text)
		if scanJSON(text, 64) != nil || root.Type != gjson.JSON {
			return
		}
		var descend func(raw string)
		descend = func(raw string) {
			var want, got []item
			gjson.Parse(raw).ForEach(func(key, v gjson.Result) bool {
				want = append(want, item{key.Str, v.Raw, v.Str, v.Type})
				return true
			})
			walk(raw, func(key string, v gjson.Result) bool {
				got = append(got, item{key, v.Raw, v.Str, v.Type})
				if v.Type == gjson.JSON {
					descend(v.Raw)
				}
				return true
			})
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s: want(-) got(+):\n%s", raw, d)
			}
		}
		descend(root.Raw)
	})
}

// TestWalkStops ends after the member for which f returns false.
func TestWalkStops(t *testing.T) {
	n := 0
	walk(`[1,2,3]`, func(string, gjson.Result) bool { n++; return n < 2 })
	if n != 2 {
		t.Errorf("%d elements, want 2", n)
	}
}
