package auth

import (
	"net/url"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
)

// signedURL is what a token allows: a path and query parameters, both decoded, so that the style of percent-encoding does not matter. The text `<>` stands
// for any part of a path segment, one character at least, and for any part of a parameter value, also none.
type signedURL struct {
	segments []pattern // of the path, split at / before decoding: %2F is data
	params   []param
}

type param struct {
	name  string
	value pattern
}

const (
	placeholder = "<>"
	// maxParams bounds the work of a match; it is far beyond any signed URL.
	maxParams = 64
	maxURL    = 8 << 10
)

// parseSigned reads a signed URL.
func parseSigned(text string) (signedURL, error) {
	invalid := func(why string) error { return core.Errorf(core.Invalid, "token URL %q: %s", text, why) }
	switch {
	case len(text) > maxURL:
		return signedURL{}, core.Errorf(core.Invalid, "token URL: %d bytes, at most %d are allowed", len(text), maxURL)
	case !strings.HasPrefix(text, "/"):
		return signedURL{}, invalid("must be a path that starts with /, such as /api/v1/csv?config=x")
	case strings.Contains(text, "#"):
		return signedURL{}, invalid("must not hold a fragment")
	}
	path, query, _ := strings.Cut(text, "?")
	segments, ok := splitPath(path)
	if !ok {
		return signedURL{}, invalid("the path is not percent-encoded correctly")
	}
	params, ok := splitQuery(query)
	if !ok {
		return signedURL{}, invalid("the query string is not percent-encoded correctly, or has too many parameters")
	}
	u := signedURL{segments: make([]pattern, len(segments)), params: make([]param, len(params))}
	for i, segment := range segments {
		u.segments[i] = pattern{strings.Split(segment, placeholder), 1}
	}
	for i, p := range params {
		u.params[i] = param{p[0], pattern{strings.Split(p[1], placeholder), 0}}
	}
	return u, nil
}

// splitPath returns the decoded segments of an encoded path.
func splitPath(path string) ([]string, bool) {
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		decoded, err := url.PathUnescape(segment)
		if err != nil {
			return nil, false
		}
		segments[i] = decoded
	}
	return segments, true
}

// splitQuery returns the decoded names and values of a query string, which is taken apart as handlers do: at & alone.
func splitQuery(query string) ([][2]string, bool) {
	var params [][2]string
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, err1 := url.QueryUnescape(name)
		value, err2 := url.QueryUnescape(value)
		if err1 != nil || err2 != nil || len(params) >= maxParams {
			return nil, false
		}
		params = append(params, [2]string{name, value})
	}
	return params, true
}

// splitURLs takes apart a list of signed URLs: at line breaks, and at commas before a slash. Other commas are part of a value.
func splitURLs(list string) []string {
	var urls []string
	for line := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == '\n' || r == '\r' }) {
		rest := line
		for rest != "" {
			next := len(rest)
			for i := range len(rest) {
				if rest[i] == ',' && strings.HasPrefix(strings.TrimLeft(rest[i+1:], " \t"), "/") {
					next = i
					break
				}
			}
			if one := strings.Trim(rest[:next], " \t,"); one != "" {
				urls = append(urls, one)
			}
			rest = rest[min(next+1, len(rest)):]
		}
	}
	return urls
}

// target is the URL of a request, taken apart once for all signed URLs of a token.
type target struct {
	segments []string
	params   [][2]string
}

// targetOf takes the path apart as it was sent, which is how it is routed: EscapedPath would encode a path anew that holds a byte it would not leave as it
// is, and so make a separator of every %2F in it.
func targetOf(u *url.URL) (target, bool) {
	path := u.RawPath
	if path == "" {
		path = u.EscapedPath()
	}
	segments, ok1 := splitPath(path)
	params, ok2 := splitQuery(u.RawQuery)
	return target{segments, params}, ok1 && ok2
}

// allows reports whether path and parameters equal the signed ones. Parameters may come in any order.
func (u signedURL) allows(t target) bool {
	if len(u.segments) != len(t.segments) || len(u.params) != len(t.params) {
		return false
	}
	for i, p := range u.segments {
		if !p.match(t.segments[i]) {
			return false
		}
	}
	// Each parameter of the request belongs to one of the signed ones. A name may come more than once, with and without placeholders: then a greedy
	// choice can be wrong, so this is a matching in a bipartite graph by augmenting paths.
	taken := make([]int, len(u.params)) // 1 + index of the parameter that has it
	for i := range t.params {
		if !u.assign(t.params, i, taken, make([]bool, len(u.params))) {
			return false
		}
	}
	return true
}

// assign finds a signed parameter for parameter i of the request, moving earlier ones when that helps.
func (u signedURL) assign(params [][2]string, i int, taken []int, seen []bool) bool {
	for j, p := range u.params {
		if seen[j] || p.name != params[i][0] || !p.value.match(params[i][1]) {
			continue
		}
		seen[j] = true
		if taken[j] == 0 || u.assign(params, taken[j]-1, taken, seen) {
			taken[j] = i + 1
			return true
		}
	}
	return false
}

// pattern is a text with placeholders: what stands between them, and how many bytes each of them covers at least.
type pattern struct {
	parts []string
	least int
}

// match takes the leftmost place for each part, which leaves the most room for those after it.
func (p pattern) match(text string) bool {
	last := len(p.parts) - 1
	if last == 0 {
		return text == p.parts[0]
	}
	if !strings.HasPrefix(text, p.parts[0]) {
		return false
	}
	text = text[len(p.parts[0]):]
	for _, part := range p.parts[1:last] {
		if len(text) < p.least {
			return false
		}
		i := strings.Index(text[p.least:], part)
		if i < 0 {
			return false
		}
		text = text[p.least+i+len(part):]
	}
	return len(text) >= p.least+len(p.parts[last]) && strings.HasSuffix(text, p.parts[last])
}

// checkURLs reads the signed URLs of a token that is to be issued.
func checkURLs(urls []string) error {
	if len(urls) == 0 {
		return core.Errorf(core.Invalid, "token without a URL")
	}
	const most = 100
	if len(urls) > most {
		return core.Errorf(core.Invalid, "token with %d URLs: at most %d are allowed", len(urls), most)
	}
	for _, one := range urls {
		if _, err := parseSigned(one); err != nil {
			return err
		}
	}
	return nil
}

// methods are those that a token can be issued for.
var methods = [...]string{"GET", "POST", "PUT", "PATCH", "DELETE"}

func checkMethod(method string) error {
	if !slices.Contains(methods[:], method) {
		return core.Errorf(core.Invalid, "token method %q: use one of %s", method, strings.Join(methods[:], ", "))
	}
	return nil
}
