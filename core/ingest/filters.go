package ingest

import (
	"strings"
	"sync"

	"github.com/tidemark-db/tidemark/core/filter"
)

// maxFilters is how many compiled filters are kept: more than any installation has metrics with a filter of their own.
const maxFilters = 4096

// filterCache compiles each persistence filter once.
type filterCache struct {
	compiler filter.Compiler
	mu       struct {
		sync.Mutex
		byText map[string]*filter.Expr // nil for a text that does not compile
	}
}

// compile returns nil for a text that is no filter: it then has no effect.
func (c *filterCache) compile(text string) *filter.Expr {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.mu.byText[text]; ok {
		return e
	}
	if c.mu.byText == nil || len(c.mu.byText) >= maxFilters {
		c.mu.byText = make(map[string]*filter.Expr)
	}
	e, err := c.compiler.Compile(filter.Samples, text)
	if err != nil || !aboutSamples(text) {
		e = nil
	}
	c.mu.byText[text] = e
	return e
}

// sampleWords are the words that a persistence filter may hold outside of texts: variables, operators, constants and the names before a static function.
var sampleWords = map[string]bool{"entity": true, "value": true, "message": true, "timestamp": true, "tags": true, "and": true, "or": true, "not": true,
	"like": true, "in": true, "between": true, "regex": true, "true": true, "false": true, "null": true, "math": true, "double": true, "float": true}

// aboutSamples reports whether a filter uses no variable but those of a sample. The filter language takes an unknown name for an empty text, while a
// persistence filter with one is to have no effect. The text is known to parse.
func aboutSamples(text string) bool {
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"' || c == '\'':
			i = textEnd(text, i)
		case strings.HasPrefix(text[i:], "/*"):
			i = after(text, i, "*/")
		case strings.HasPrefix(text[i:], "//"):
			i = after(text, i, "\n")
		case c == '.':
			// The member after a dot is a tag or a function: any name, up to what ends one.
			end := strings.IndexAny(text[i+1:], " \t\r\n\"'()[],=!<>&|")
			if end < 0 {
				return true
			}
			i += 1 + end
		case isLetter(c):
			start := i
			for i < len(text) && (isLetter(text[i]) || text[i] >= '0' && text[i] <= '9') {
				i++
			}
			call := strings.HasPrefix(strings.TrimLeft(text[i:], " \t\r\n"), "(")
			if !call && !sampleWords[strings.ToLower(text[start:i])] {
				return false
			}
		case c >= '0' && c <= '9':
			for i < len(text) && (isLetter(text[i]) || text[i] >= '0' && text[i] <= '9' || text[i] == '.') {
				i++ // 1.5e3 holds no name
			}
		default:
			i++
		}
	}
	return true
}

// textEnd returns the place after the text literal that starts at i.
func textEnd(text string, i int) int {
	for end := i + 1; end < len(text); end++ {
		switch text[end] {
		case '\\':
			end++
		case text[i]:
			return end + 1
		}
	}
	return len(text)
}

// after returns the place after the next end mark.
func after(text string, i int, mark string) int {
	if n := strings.Index(text[i:], mark); n >= 0 {
		return i + n + len(mark)
	}
	return len(text)
}

func isLetter(c byte) bool {
	return c == '_' || c == '$' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80
}
