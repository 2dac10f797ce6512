package webhook

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

// oracle appends the leaves below v as the JSON library sees them: one `path name value` each.
func oracle(out []string, v gjson.Result, path, name string) []string {
	index := 0
	v.ForEach(func(key, v gjson.Result) bool {
		onePath, oneName := path, name
		switch {
		case !key.Exists() || key.Type == gjson.Number: // an element: the library counts, or says nothing
			onePath, oneName = fmt.Sprintf("%s[%d]", path, index), fmt.Sprintf("%s[%d]", name, index)
			index++
		case path != "":
			onePath, oneName = path+"."+key.Str, name+"."+tagName(key.Str)
		default:
			onePath, oneName = key.Str, name+tagName(key.Str)
		}
		switch v.Type {
		case gjson.JSON:
			out = oracle(out, v, onePath, oneName)
		case gjson.String:
			out = append(out, fmt.Sprintf("%q %q %q", onePath, oneName, cleanValue(unquote(trimMargin(v.Str)))))
		case gjson.Null:
		default:
			out = append(out, fmt.Sprintf("%q %q %q", onePath, oneName, v.Raw))
		}
		return true
	})
	return out
}

// FuzzFlatten compares the walk with one by the JSON library, for the first body and for one that follows it.
func FuzzFlatten(f *testing.F) {
	for _, json := range []string{
		`{}`, ` [ ] `, `[[[]],{},[{}],1]`, `{"a":{"b":[1,-2.5e3,true,false,null,"x"]},"C d":" y "}`, "\r\n{ \"a\"\t:\n1 , \"a\" : 2 }\t",
		`{"":1,"x":{"":{"":2}}}`, `["\u0000","\ud83d\ude00","\\\"","\"q\"","'q'"," '\" ",{"\u00c4":"ä\u007f"}]`, "{\"\xff\":\"\xfe\",\"k\":\"\x7f\"}",
		`{"a":"\\","b":"]}","c":"{[,:"}`, `[0,0.0,-0,1E5]`,
	} {
		f.Add(json)
	}
	f.Fuzz(func(t *testing.T, json string) {
		if checkJSON(json, defaultMaxDepth) != nil {
			return
		}
		want := oracle(nil, gjson.Parse(json), "", "")
		var one flat
		for round := range 2 { // the second finds its names known
			one.reset(defaultMaxDepth)
			if err := one.flatten(json, "", ""); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, l := range one.leaves {
				name := l.name
				if name == l.path && tagName(name) == "" {
					name = ""
				}
				got = append(got, fmt.Sprintf("%q %q %q", l.path, name, l.value))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("round %d: %s: -library +walk\n%s", round, json, diff)
			}
		}
	})
}

// What a mapper keeps from request to request must not show in the next one.
func TestMapperForgets(t *testing.T) {
	request := func(query, body string) Request { return post("e", query, body) }
	requests := []Request{
		request("exclude=b", `{"a":1,"b":2,"c":3}`),
		request("exclude=b", `{"a":4,"b":5,"c":6}`), // the same names, which are known by now
		request("exclude=b", `{"a":1,"b":2,"d":3}`), // as long, another name
		request("exclude=b", `{"c":1,"a":2,"b":3}`), // another order
		request("exclude=b", `{"a":"","b":2,"c":3}`),
		request("exclude=c", `{"a":1,"b":2,"c":3}`), // the same body, another filter
		request("", `{"a":1,"b":2,"c":3}`),
		request("", `{"ab":1,"c":3}`),
		request("", `{"a":1,"bc":3}`), // the same letters
		request("", `{"a":1,"a":2,"A":3}`),
		request("", `{"A":1,"a":2,"a":3}`),
		request("x=1&x=2", `{"a":1}`),
		request("a=1", `{"x":1}`),
		form("e", "x=1", "a=1&b=2"),
		form("e", "x=1", "b=2&a=1"),
		request("json.parse=j", `{"j":"{\"k\":1,\"l\":2}","m":3}`),
		request("json.parse=j", `{"j":"{\"l\":1,\"k\":2}","m":3}`),
		request("json.parse=j", `{"j":"x","m":3}`),
		request("excludeValues=2", `{"a":2,"a":1,"b":2}`),
		request("excludeValues=2", `{"a":1,"a":2,"b":1}`),
	}
	last := new(mapper)
	for round := range 2 {
		for i, r := range requests {
			r.MaxDepth, r.MaxTags = defaultMaxDepth, defaultMaxTags
			want, err := new(mapper).message(r)
			if err != nil {
				t.Fatal(err)
			}
			got, err := last.message(r)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("round %d, request %d, %s?%s: -alone +after others\n%s", round, i, r.Body, r.RawQuery, diff)
			}
			last.plain.reset(0)
			last.payload.reset(0)
		}
	}
}

// The order of tags, and which of equal names counts, by hand.
func TestTagsOfEqualNames(t *testing.T) {
	r := post("e", "b=query&z=query&header.tag.c=X-C&header.tag.request_ip=X-C", `{"c":"json","B":"first","b":"second","request_ip":"json"}`)
	r.Header = map[string][]string{"X-C": {"header"}}
	result, err := Map(r)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, tag := range result.Message.Tags {
		got = append(got, tag.Name+"="+tag.Value)
	}
	if want := "b=second c=header request_ip=" + address + " z=query"; strings.Join(got, " ") != want {
		t.Errorf("tags %v, want %s", got, want)
	}
}
