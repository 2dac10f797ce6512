package expr

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// naiveLike is LIKE by trying everything.
func naiveLike(s, p []rune, escape rune) bool {
	switch {
	case len(p) == 0:
		return len(s) == 0
	case p[0] == escape && len(p) > 1:
		return len(s) > 0 && s[0] == p[1] && naiveLike(s[1:], p[2:], escape)
	case p[0] == escape:
		return len(s) == 1 && s[0] == escape
	case p[0] == '%':
		for i := range len(s) + 1 {
			if naiveLike(s[i:], p[1:], escape) {
				return true
			}
		}
		return false
	case p[0] == '_':
		return len(s) > 0 && naiveLike(s[1:], p[1:], escape)
	}
	return len(s) > 0 && s[0] == p[0] && naiveLike(s[1:], p[1:], escape)
}

func FuzzLike(f *testing.F) {
	for _, seed := range [][2]string{{"abcabd", "%ab_"}, {"aüc", `a_c`}, {`a%`, `a\%`}, {"aaa", "%a%a%"}, {"", "%"}, {"x", `\`}, {"abab", "_b%_b"}} {
		f.Add(seed[0], seed[1], '\\')
	}
	f.Add("a!b", "a!!b", '!')
	f.Fuzz(func(t *testing.T, s, pattern string, escape rune) {
		if !utf8.ValidString(s) || !utf8.ValidString(pattern) || !utf8.ValidRune(escape) || len(s) > 40 || strings.Count(pattern, "%") > 4 {
			return
		}
		if got, want := compileLike(pattern, escape).match(s, &effort{env: &Env{}}), naiveLike([]rune(s), []rune(pattern), escape); got != want {
			t.Errorf("%q LIKE %q ESCAPE %q is %v", s, pattern, escape, got)
		}
	})
}

// A pattern either is refused or compiles into something that does not fail; what has no special characters matches itself.
func FuzzRegex(f *testing.F) {
	for _, seed := range []string{"a+b", `[\p{Alpha}&&x]`, `\Qa.b\E`, "(?iu)a", `[^\h\v]`, "(?<name>a)", `\u00e9`, `\p{IsAlphabetic}`, "[[:alpha:]]", "(?-i:x)", "(?u)", `\`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		translated, err := translateRegex(pattern)
		if err != nil {
			return
		}
		re, err := regexp.Compile(`\A(?:` + translated + `)\z`)
		if err != nil {
			return
		}
		if regexp.QuoteMeta(pattern) == pattern && utf8.ValidString(pattern) && !re.MatchString(pattern) {
			t.Errorf("%q does not match itself", pattern)
		}
	})
}

func FuzzZone(f *testing.F) {
	for _, seed := range []string{"asia/tokyo", "GMT+8", "+5", "pst", "america/port-au-prince", "gmt-", "//", "etc/gmt-14"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, id string) {
		zone, err := LoadZone(id)
		if (zone == nil) == (err == nil) {
			t.Errorf("%q is %v, %v", id, zone, err)
		}
	})
}
