package auth

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-db/tidemark/core"
)

func TestSignedURLs(t *testing.T) {
	for _, tt := range []struct {
		signed, asked string
		want          bool
	}{
		{"/api/v1/csv", "/api/v1/csv", true},
		{"/api/v1/csv", "/api/v1/csv?", true},
		{"/api/v1/csv", "/api/v1/csv?config=x", false}, // extra
		{"/api/v1/csv?config=x", "/api/v1/csv", false}, // missing
		{"/api/v1/csv?config=x", "/api/v1/csv?config=y", false},
		{"/api/v1/csv?config=x", "/api/v1/csv?Config=x", false},
		{"/api/v1/a", "/api/a", false}, // the path is the full one
		{"/api/v1/a", "/a", false},
		{"/api/v1/a", "/api/v1/a/", false},
		{"/api/v1/a", "/api/v1/A", false},
		{"/api/csv", "/api//csv", false},
		{"/api//csv", "/api//csv", true},
		{"/x?a=1&b=2", "/x?b=2&a=1", true}, // order
		{"/x?a=1&b=2", "/x?a=1&b=2&", true},
		{"/x?a=1&a=2", "/x?a=2&a=1", true},
		{"/x?a=1&a=2", "/x?a=1&a=1", false},
		{"/x?a=1&a=1", "/x?a=1", false},
		{"/x?a", "/x?a=", true},
		{"/x?a=b%20c", "/x?a=b+c", true}, // style of encoding
		{"/x?a=%c3%a4", "/x?a=%C3%A4", true},
		{"/x?a=ä", "/x?a=%C3%A4", true},
		{"/x?%61=b", "/x?a=%62", true},
		{"/p%41", "/pA", true},
		{"/a%2Fb", "/a/b", false}, // %2F is data
		{"/a%2fb", "/a%2Fb", true},
		{"/a+b", "/a%20b", false}, // a plus in a path is a plus
		{"/a+b", "/a%2Bb", true},
		{"/x?a=1;b=2", "/x?a=1%3Bb%3D2", true}, // parameters end at & alone
		{"/api/v1/x?id=<>", "/api/v1/x?id=1", true},
		{"/api/v1/x?id=<>", "/api/v1/x?id=", true},
		{"/api/v1/x?id=<>", "/api/v1/x?id=a/b", true},
		{"/api/v1/x?id=<>", "/api/v1/x", false},
		{"/api/v1/x?id=<>", "/api/v1/x?id=1&id=2", false},
		{"/api/v1/x?id=<>", "/api/v1/x?ID=1", false},
		{"/api/v1/x?id=%3C%3E", "/api/v1/x?id=1", true},
		{"/x?q=a<>z", "/x?q=abcz", true},
		{"/x?q=a<>z", "/x?q=az", true},
		{"/x?q=a<>z", "/x?q=abc", false},
		{"/x?q=a<>a", "/x?q=a", false}, // the parts do not overlap
		{"/api/v1/csv/<>", "/api/v1/csv/a", true},
		{"/api/v1/csv/<>", "/api/v1/csv/", false}, // one character at least
		{"/api/v1/csv/<>", "/api/v1/csv", false},
		{"/api/v1/csv/<>", "/api/v1/csv/a/b", false}, // other than /
		{"/api/v1/csv/<>", "/api/v1/csv/a%2Fb", true},
		{"/api/<>/csv", "/api/v1/csv", true},
		{"/api/<>/csv", "/api//csv", false},
		{"/m/<>.x/<>", "/m/cpu.x/y", true},
		{"/m/<>.x/<>", "/m/.x/y", false},
		{"/m/a<>b<>c", "/m/a1b2c", true},
		{"/m/a<>b<>c", "/m/abbbc", true},
		{"/m/a<>b<>c", "/m/abbc", false},
		{"/m/<><>", "/m/ab", true},
		{"/m/<><>", "/m/a", false},
		{"/x?a=<>&a=1", "/x?a=1&a=2", true}, // either way round
		{"/x?a=<>&a=1", "/x?a=2&a=1", true},
		{"/x?a=<>&a=1", "/x?a=2&a=3", false},
		{"/x?a=1<>&a=<>2&a=12", "/x?a=12&a=12&a=12", true},
		{"/x?a=1<>&a=<>2&a=12", "/x?a=12&a=13&a=42", true},
		{"/x?a=1<>&a=<>2&a=12", "/x?a=13&a=14&a=12", false},
	} {
		signed, err := parseSigned(tt.signed)
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.ParseRequestURI(tt.asked)
		if err != nil {
			t.Fatal(err)
		}
		asked, ok := targetOf(u)
		if got := ok && signed.allows(asked); got != tt.want {
			t.Errorf("a token for %s: %s is %v, want %v", tt.signed, tt.asked, got, tt.want)
		}
	}
}

func TestSplitURLs(t *testing.T) {
	for list, want := range map[string][]string{
		"/api/v1/a,/api/v1/b":           {"/api/v1/a", "/api/v1/b"},
		"/api/v1/a\n/api/v1/b\r\n/c":    {"/api/v1/a", "/api/v1/b", "/c"},
		"/a?k=1,2,/b?k=3":               {"/a?k=1,2", "/b?k=3"},
		" /a , /b ,":                    {"/a", "/b"},
		"/a?k=1":                        {"/a?k=1"},
		"":                              nil,
		"\n,\n":                         nil,
		"/a,\n/b":                       {"/a", "/b"},
		"/a?from=2030-01-01T00:00:00,1": {"/a?from=2030-01-01T00:00:00,1"},
	} {
		if diff := cmp.Diff(want, splitURLs(list)); diff != "" {
			t.Errorf("%q: %s", list, diff)
		}
	}
}

func TestSignedURLsAreChecked(t *testing.T) {
	for _, text := range []string{"", "api/v1/a", "http://h/api", "/a%", "/a?b=%zz", "/a#b", "/" + strings.Repeat("x", maxURL), "/a?" + strings.Repeat("a&", maxParams+1)} {
		if _, err := parseSigned(text); core.CodeOf(err) != core.Invalid {
			t.Errorf("%.40q: %v", text, err)
		}
	}
	if err := checkURLs(slices.Repeat([]string{"/a"}, 101)); core.CodeOf(err) != core.Invalid {
		t.Error(err)
	}
	if err := checkURLs(nil); core.CodeOf(err) != core.Invalid {
		t.Error(err)
	}
}

// slowMatch is the definition of a pattern: some text of the least length in place of each placeholder.
func slowMatch(parts []string, least int, text string) bool {
	if len(parts) == 1 {
		return text == parts[0]
	}
	rest, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	for n := least; n <= len(rest); n++ {
		if slowMatch(parts[1:], least, rest[n:]) {
			return true
		}
	}
	return false
}

// FuzzSignedURLs holds the matching to its definition, and every URL without placeholders to itself.
func FuzzSignedURLs(f *testing.F) {
	for _, seed := range [][2]string{{"/api/v1/x?id=<>", "/api/v1/x?id=1"}, {"/a<>b<>/c?x=1&x=<>", "/a1b2/c?x=<>&x=1"}, {"/%3C%3E", "/a%2Fb"}, {"//", "//"}, {"/?&&=", "/?="}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, signed, asked string) {
		u, err := parseSigned(signed)
		if err != nil {
			if core.CodeOf(err) != core.Invalid {
				t.Fatal(err)
			}
			return
		}
		path, query, _ := strings.Cut(signed, "?")
		segments, _ := splitPath(path)
		params, _ := splitQuery(query)
		if !u.allows(target{segments, params}) { // a placeholder covers the text <>
			t.Fatalf("%q does not allow itself", signed)
		}
		slices.Reverse(params)
		if !u.allows(target{segments, params}) {
			t.Fatalf("%q with its parameters reversed is not allowed", signed)
		}
		if r, err := url.ParseRequestURI(asked); err == nil {
			if to, ok := targetOf(r); ok {
				u.allows(to)
			}
		}
		if len(signed)+len(asked) > 40 {
			return
		}
		parts := strings.Split(signed, placeholder)
		for least := range 2 {
			if got, want := (pattern{parts, least}).match(asked), slowMatch(parts, least, asked); got != want {
				t.Fatalf("pattern %q with at least %d matches %q: %v, want %v", parts, least, asked, got, want)
			}
		}
	})
}
