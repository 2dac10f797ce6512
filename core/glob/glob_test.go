package glob_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidemark-db/tidemark/core/glob"
)

func TestMatch(t *testing.T) {
	tests := []struct {
		pattern, text string
		want          bool
	}{
		{"pump?", "pump1", true}, {"pump?", "pump12", false}, {"pump?", "p?mp", false},
		{"pump*", "pump1", true}, {"pump*", "pump12", true}, {"pump*", "p?mp", false},
		{"p?mp*", "pump1", true}, {"p?mp*", "pump12", true}, {"p?mp*", "p?mp", true},
		{`p\?mp`, "pump1", false}, {`p\?mp`, "pump12", false}, {`p\?mp`, "p?mp", true},
		{"*??????*", "pump1", false}, {"*??????*", "pump12", true}, {"*??????*", "p?mp", false},

		{"", "", true}, {"", "a", false}, {"*", "", true}, {"?", "", false}, {"**", "ab", true},
		{"a*a", "a", false}, {"a*a", "aa", true}, {"ab*ba", "aba", false}, {"*ab", "aab", true}, {"*a?c*", "aabxabc", true},
		{"*a?c*", "aabx", false}, {"?", "é", true}, {"??", "é", false}, {"*?é", "xé", true}, {"*?é", "é", false},
		{`\*`, "*", true}, {`\*`, "x", false}, {`\\`, `\`, true}, {`\a\b`, "ab", true}, {`a\`, `a\`, true},
		{"%_[a]", "%_[a]", true}, {"a%", "ab", false}, {"Pump", "pump", false}, {"*b?*d?", "abxcdxde", true}, {"?", "\xff", true},
	}
	for _, tt := range tests {
		if got := glob.Compile(tt.pattern).Match(tt.text); got != tt.want {
			t.Errorf("Compile(%q).Match(%q) = %v, want %v", tt.pattern, tt.text, got, tt.want)
		}
	}
}

func TestLiteralAndPrefix(t *testing.T) {
	tests := []struct {
		pattern, literal, prefix string
		ok                       bool
	}{
		{"pump", "pump", "pump", true}, {"", "", "", true}, {`a\*b\\`, `a*b\`, `a*b\`, true},
		{"pump*", "", "pump", false}, {"pu?p", "", "pu", false}, {"?ump", "", "", false}, {"*", "", "", false}, {"?", "", "", false},
	}
	for _, tt := range tests {
		p := glob.Compile(tt.pattern)
		if got, ok := p.Literal(); got != tt.literal || ok != tt.ok {
			t.Errorf("Compile(%q).Literal() = %q, %v, want %q, %v", tt.pattern, got, ok, tt.literal, tt.ok)
		}
		if got := p.Prefix(); got != tt.prefix {
			t.Errorf("Compile(%q).Prefix() = %q, want %q", tt.pattern, got, tt.prefix)
		}
		if p.String() != tt.pattern {
			t.Errorf("String() = %q, want %q", p.String(), tt.pattern)
		}
	}
}

func TestHasMetaAndEscape(t *testing.T) {
	for text, want := range map[string]bool{"": false, "pump": false, `a\b`: false, "a*": true, "?": true, `\*`: true} {
		if got := glob.HasMeta(text); got != want {
			t.Errorf("HasMeta(%q) = %v, want %v", text, got, want)
		}
	}
	for text, want := range map[string]string{"pump": "pump", `a*?\b`: `a\*\?\\b`, "": ""} {
		if got := glob.Escape(text); got != want {
			t.Errorf("Escape(%q) = %q, want %q", text, got, want)
		}
	}
}

// The classic trap of backtracking matchers: exponential with naive recursion, some 100 ms with a goroutine per star, microseconds here.
func TestMatchDoesNotBlowUp(t *testing.T) {
	pattern := glob.Compile(strings.Repeat("a*", 60) + "b")
	if pattern.Match(strings.Repeat("a", 20_000)) {
		t.Error("matched a text without b")
	}
}

func TestMatchDoesNotAllocate(t *testing.T) {
	p := glob.Compile("srv-*-??.db*")
	if n := testing.AllocsPerRun(100, func() { p.Match("srv-frankfurt-01.db.example") }); n != 0 {
		t.Errorf("Match allocates %v times", n)
	}
}

// naive is the definition of section 11 of the contract, by recursion over characters.
func naive(pattern, text string) bool {
	if pattern == "" {
		return text == ""
	}
	c, rest := pattern[0], pattern[1:]
	_, size := utf8.DecodeRuneInString(text)
	switch {
	case c == '*':
		return naive(rest, text) || text != "" && naive(pattern, text[size:])
	case c == '?':
		return text != "" && naive(rest, text[size:])
	case c == '\\' && rest != "":
		c, rest = rest[0], rest[1:]
	}
	return text != "" && text[0] == c && naive(rest, text[1:])
}

func FuzzMatch(f *testing.F) {
	for _, seed := range [][2]string{{"a*b?c", "axxbyc"}, {"*??x*", "éxx"}, {`\*\?`, "*?"}, {"*a?*a", "aaaa"}, {"**?", ""}, {"é*", "é\xc3"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		// The reference is exponential in stars, and compares bytes: only valid patterns keep its characters whole.
		if len(text) > 24 || strings.Count(pattern, "*") > 5 || !utf8.ValidString(pattern) {
			t.Skip()
		}
		p := glob.Compile(pattern)
		if got, want := p.Match(text), naive(pattern, text); got != want {
			t.Errorf("Compile(%q).Match(%q) = %v, want %v", pattern, text, got, want)
		}
		if !glob.Compile(glob.Escape(text)).Match(text) {
			t.Errorf("Escape(%q) does not match itself", text)
		}
		if literal, ok := p.Literal(); ok && !p.Match(literal) {
			t.Errorf("literal %q of %q does not match", literal, pattern)
		}
		if p.Match(text) && !strings.HasPrefix(text, p.Prefix()) {
			t.Errorf("%q matches %q without its prefix %q", text, pattern, p.Prefix())
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	p := glob.Compile("*disk*used?")
	for b.Loop() {
		p.Match("host.linux.disk.root.used%")
	}
}
