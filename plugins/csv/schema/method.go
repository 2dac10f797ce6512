package schema

import (
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidemark-db/tidemark/core/regular"
)

type methodFunction func(r *Run, of value, args []value) value

// methodsOf returns the functions of a kind of value. Positions in texts count characters, as Unicode does.
func methodsOf(k valueKind) map[string]methodFunction {
	switch k {
	case text:
		return textMethods
	case list:
		return listMethods
	case number, boolean:
		return numberMethods
	case pattern:
		return patternMethods
	case record:
		return recordMethods
	}
	return nil
}

var textMethods = map[string]methodFunction{
	"toLowerCase": func(r *Run, of value, _ []value) value { return r.newValue(strings.ToLower(of.text)) },
	"toUpperCase": func(r *Run, of value, _ []value) value { return r.newValue(strings.ToUpper(of.text)) },
	"trim":        func(r *Run, of value, _ []value) value { return r.newValue(strings.Clone(strings.TrimSpace(of.text))) },
	"toString":    func(_ *Run, of value, _ []value) value { return of },
	"concat": func(r *Run, of value, args []value) value {
		for _, a := range args {
			of = r.newValue(of.text + r.text(a))
		}
		return of
	},
	"substring": func(r *Run, of value, args []value) value {
		size := r.length(of.text)
		from, to := toIndex(arg(args, 0).toNumber(), size), endIndex(args, 1, size)
		return r.newValue(r.substring(of.text, min(from, to), max(from, to)))
	},
	"substr": func(r *Run, of value, args []value) value {
		size := r.length(of.text)
		from := fromEnd(arg(args, 0).toNumber(), size)
		return r.newValue(r.substring(of.text, from, from+endIndex(args, 1, size-from)))
	},
	"slice": func(r *Run, of value, args []value) value {
		size := r.length(of.text)
		from, to := fromEnd(arg(args, 0).toNumber(), size), size
		if arg(args, 1).kind != undefined {
			to = fromEnd(args[1].toNumber(), size)
		}
		return r.newValue(r.substring(of.text, from, to))
	},
	"charAt": func(r *Run, of value, args []value) value {
		n := math.Trunc(zeroIfNaN(arg(args, 0).toNumber()))
		if n < 0 || n > maxText {
			return textOf("")
		}
		return r.newValue(r.substring(of.text, int(n), int(n)+1))
	},
	"charCodeAt": func(r *Run, of value, args []value) value {
		n := math.Trunc(zeroIfNaN(arg(args, 0).toNumber()))
		if n < 0 || n > maxText {
			return numberOf(math.NaN())
		}
		s := r.substring(of.text, int(n), int(n)+1)
		if s == "" {
			return numberOf(math.NaN())
		}
		c, _ := utf8.DecodeRuneInString(s)
		return numberOf(float64(c))
	},
	"indexOf": func(r *Run, of value, args []value) value {
		size := r.length(of.text)
		skipped := r.substring(of.text, 0, toIndex(arg(args, 1).toNumber(), size))
		i := strings.Index(of.text[len(skipped):], r.text(arg(args, 0)))
		if i < 0 {
			return numberOf(-1)
		}
		return numberOf(float64(r.length(of.text[:len(skipped)+i])))
	},
	"lastIndexOf": func(r *Run, of value, args []value) value {
		i := strings.LastIndex(of.text, r.text(arg(args, 0)))
		if i < 0 {
			return numberOf(-1)
		}
		return numberOf(float64(r.length(of.text[:i])))
	},
	"startsWith": func(r *Run, of value, args []value) value {
		return boolOf(strings.HasPrefix(of.text, r.text(arg(args, 0))))
	},
	"endsWith": func(r *Run, of value, args []value) value {
		return boolOf(strings.HasSuffix(of.text, r.text(arg(args, 0))))
	},
	"includes": func(r *Run, of value, args []value) value {
		return boolOf(strings.Contains(of.text, r.text(arg(args, 0))))
	},
	"split":   splitText,
	"replace": replaceText,
	"match":   matchText,
	"search": func(r *Run, of value, args []value) value {
		p, ok := r.pattern(of.text, arg(args, 0))
		if !ok {
			return value{}
		}
		if at := p.regex.FindStringIndex(of.text); at != nil {
			return numberOf(float64(r.length(of.text[:at[0]])))
		}
		return numberOf(-1)
	},
}

var listMethods = map[string]methodFunction{
	"pop": func(_ *Run, of value, _ []value) value {
		n := len(of.ref.items)
		if n == 0 {
			return value{}
		}
		v := of.ref.items[n-1]
		of.ref.items = of.ref.items[:n-1]
		return v
	},
	"shift": func(r *Run, of value, _ []value) value {
		if len(of.ref.items) == 0 || !r.spend(1+len(of.ref.items)/bytesPerStep) {
			return value{}
		}
		v := of.ref.items[0]
		of.ref.items = slices.Delete(of.ref.items, 0, 1)
		return v
	},
	"push": func(r *Run, of value, args []value) value {
		for _, a := range args {
			r.setItem(of.ref, len(of.ref.items), a)
		}
		return numberOf(float64(len(of.ref.items)))
	},
	"join": func(r *Run, of value, args []value) value {
		between := ","
		if arg(args, 0).kind != undefined {
			between = r.text(args[0])
		}
		return textOf(r.join(of.ref.items, between))
	},
	"toString": func(r *Run, of value, _ []value) value { return textOf(r.text(of)) },
	"indexOf": func(r *Run, of value, args []value) value {
		for i, item := range of.ref.items {
			if !r.spend(1) {
				break
			}
			if same(item, arg(args, 0)) {
				return numberOf(float64(i))
			}
		}
		return numberOf(-1)
	},
	"slice": func(r *Run, of value, args []value) value {
		size := len(of.ref.items)
		from, to := fromEnd(arg(args, 0).toNumber(), size), size
		if arg(args, 1).kind != undefined {
			to = fromEnd(args[1].toNumber(), size)
		}
		return r.newList(of.ref.items[from:max(from, to)])
	},
	"concat": func(r *Run, of value, args []value) value {
		all := slices.Clone(of.ref.items)
		for _, a := range args {
			if a.kind == list {
				all = append(all, a.ref.items...)
			} else {
				all = append(all, a)
			}
			if len(all) > maxItems {
				break
			}
		}
		return r.newList(all)
	},
	"reverse": func(r *Run, of value, _ []value) value {
		if r.spend(len(of.ref.items) / bytesPerStep) {
			slices.Reverse(of.ref.items)
		}
		return of
	},
}

// newList copies items into an array.
func (r *Run) newList(items []value) value {
	if len(items) > maxItems {
		r.fail("an array has more than %d elements", maxItems)
	}
	if !r.took(valueBytes * len(items)) {
		return value{}
	}
	return listOf(slices.Clone(items))
}

var numberMethods = map[string]methodFunction{
	"toString": func(r *Run, of value, args []value) value {
		if base := arg(args, 0).toNumber(); base >= 2 && base <= 36 && of.number == math.Trunc(of.number) && math.Abs(of.number) < 1<<53 {
			return textOf(strconv.FormatInt(int64(of.number), int(base)))
		}
		return textOf(r.text(of))
	},
	"toFixed": func(r *Run, of value, args []value) value {
		digits := toIndex(arg(args, 0).toNumber(), 100)
		if n := of.number; n != n || math.Abs(n) >= 1e21 {
			return textOf(numberText(n))
		}
		return r.newValue(strconv.FormatFloat(of.number, 'f', digits, 64))
	},
}

var patternMethods = map[string]methodFunction{
	"test": func(r *Run, of value, args []value) value {
		s := r.text(arg(args, 0))
		return boolOf(r.matching(of.ref, s) && of.ref.regex.MatchString(s))
	},
	"exec":     func(r *Run, of value, args []value) value { return r.groups(of.ref, r.text(arg(args, 0))) },
	"toString": func(r *Run, of value, _ []value) value { return textOf(r.text(of)) },
}

var recordMethods = map[string]methodFunction{
	"hasOwnProperty": func(r *Run, of value, args []value) value {
		_, ok := of.ref.members[r.text(arg(args, 0))]
		return boolOf(ok)
	},
}

// methodNames are all of them.
var methodNames = func() map[string]bool {
	all := map[string]bool{}
	for _, methods := range []map[string]methodFunction{textMethods, listMethods, numberMethods, patternMethods, recordMethods} {
		for name := range methods {
			all[name] = true
		}
	}
	for name := range mathNatives {
		all[name] = true
	}
	return all
}()

func zeroIfNaN(n float64) float64 {
	if n != n {
		return 0
	}
	return n
}

// endIndex is an end that may be left out.
func endIndex(args []value, i, size int) int {
	if arg(args, i).kind == undefined {
		return size
	}
	return toIndex(args[i].toNumber(), size)
}

// fromEnd is a position that counts from the end when it is negative.
func fromEnd(n float64, size int) int {
	if n < 0 {
		n = math.Ceil(n) + float64(size)
	}
	return toIndex(n, size)
}

// length counts characters.
func (r *Run) length(s string) int {
	r.spend(len(s) / bytesPerStep)
	return utf8.RuneCountInString(s)
}

// substring cuts by characters.
func (r *Run) substring(s string, from, to int) string {
	r.spend(min(len(s), max(to, 0)) / bytesPerStep)
	start, at := -1, 0
	for i := range s {
		if at == from {
			start = i
		}
		if at == to {
			if start < 0 {
				return ""
			}
			return strings.Clone(s[start:i])
		}
		at++
	}
	if start < 0 {
		return ""
	}
	return strings.Clone(s[start:])
}

// maxPattern is the size of a regular expression in steps, of which each may be tried for each byte of a text.
const maxPattern = 1000

// compilePattern makes a regular expression of the language one of Go. What looks around or back, Go's expressions do not have.
func compilePattern(body, flags string) (o *object, reason string) {
	o = &object{}
	mode := ""
	for _, f := range flags {
		switch f {
		case 'g':
			o.global = true
		case 'i', 'm', 's':
			if !strings.ContainsRune(mode, f) {
				mode += string(f)
			}
		case 'u':
		default:
			return nil, "flag " + strconv.QuoteRune(f) + " is none of g, i, m, s"
		}
	}
	expr := unicodeEscapes(body)
	if mode != "" {
		expr = "(?" + mode + ")" + expr
	}
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, strings.TrimPrefix(err.Error(), "error parsing regexp: ")
	}
	o.unbounded = hasLoop(parsed)
	if size := regular.Size(parsed); size > maxPattern {
		return nil, "it compiles to more than " + strconv.Itoa(maxPattern) + " steps"
	}
	if o.regex, err = regexp.Compile(expr); err != nil {
		return nil, strings.TrimPrefix(err.Error(), "error parsing regexp: ")
	}
	return o, ""
}

// unicodeEscapes writes \u0041 as Go does.
func unicodeEscapes(body string) string {
	var b strings.Builder
	for i := 0; i < len(body); i++ {
		b.WriteByte(body[i])
		if body[i] != '\\' || i+1 == len(body) {
			continue
		}
		i++
		if body[i] == 'u' && i+4 < len(body) {
			if _, err := strconv.ParseUint(body[i+1:i+5], 16, 32); err == nil {
				b.WriteString("x{" + body[i+1:i+5] + "}")
				i += 4
				continue
			}
		}
		b.WriteByte(body[i])
	}
	return b.String()
}

// hasLoop reports whether a match may be of any length.
func hasLoop(re *syntax.Regexp) bool {
	return re.Op == syntax.OpStar || re.Op == syntax.OpPlus || re.Op == syntax.OpRepeat && re.Max < 0 || slices.ContainsFunc(re.Sub, hasLoop)
}

// matching takes what a match costs: at worst each step of the expression is tried for each byte, and with the flag g that again for each match
// when one may be of any length.
func (r *Run) matching(o *object, s string) bool {
	n := min(len(s), maxSteps) // so that the product fits 32 bits
	cost := 1 + n*(1+len(o.regex.String())/bytesPerStep)
	if o.global && o.unbounded {
		n = min(n, 1<<15) / 32
		cost += n * n
	}
	return r.spend(cost)
}

// pattern returns a regular expression, also from a text.
func (r *Run) pattern(s string, v value) (*object, bool) {
	if v.kind == pattern {
		return v.ref, r.matching(v.ref, s)
	}
	expr := r.text(v)
	if !r.spend(10 + len(expr)) {
		return nil, false
	}
	o, reason := compilePattern(expr, "")
	if reason != "" {
		r.fail("regular expression %s: %s", strconv.Quote(clip(expr)), reason)
		return nil, false
	}
	return o, r.matching(o, s)
}

// groups returns the first match with its groups, null for none.
func (r *Run) groups(o *object, s string) value {
	if !r.matching(o, s) {
		return value{}
	}
	found := o.regex.FindStringSubmatchIndex(s)
	if found == nil {
		return value{kind: null}
	}
	items := make([]value, len(found)/2)
	for i := range items {
		if from := found[2*i]; from >= 0 {
			items[i] = r.newValue(strings.Clone(s[from:found[2*i+1]]))
		}
	}
	return listOf(items)
}

func matchText(r *Run, of value, args []value) value {
	o, ok := r.pattern(of.text, arg(args, 0))
	if !ok {
		return value{}
	}
	if !o.global {
		return r.groups(o, of.text)
	}
	found := o.regex.FindAllString(of.text, maxItems+1)
	if found == nil {
		return value{kind: null}
	}
	return r.texts(found)
}

// texts makes an array.
func (r *Run) texts(all []string) value {
	if len(all) > maxItems {
		r.fail("an array has more than %d elements", maxItems)
		return value{}
	}
	if !r.took(valueBytes * len(all)) {
		return value{}
	}
	items := make([]value, len(all))
	for i, s := range all {
		items[i] = r.newValue(strings.Clone(s))
	}
	return listOf(items)
}

func splitText(r *Run, of value, args []value) value {
	by := arg(args, 0)
	if by.kind == undefined {
		return r.texts([]string{of.text})
	}
	var parts []string
	if by.kind == pattern {
		if !r.matching(by.ref, of.text) {
			return value{}
		}
		parts = by.ref.regex.Split(of.text, maxItems+2)
	} else {
		r.spend(len(of.text) / bytesPerStep)
		parts = strings.SplitN(of.text, r.text(by), maxItems+2)
	}
	if limit := arg(args, 1); limit.kind != undefined {
		parts = parts[:toIndex(limit.toNumber(), len(parts))]
	}
	return r.texts(parts)
}

// replaceText changes the first occurrence of a text, or of a regular expression, all of them with the flag g.
func replaceText(r *Run, of value, args []value) value {
	by := arg(args, 1)
	if what := arg(args, 0); what.kind != pattern {
		old := r.text(what)
		i := strings.Index(of.text, old)
		if i < 0 {
			return of
		}
		with := r.replacement(by, of.text, []int{i, i + len(old)})
		return r.newValue(of.text[:i] + with + of.text[i+len(old):])
	}
	o := args[0].ref
	if !r.matching(o, of.text) {
		return value{}
	}
	most := 1
	if o.global {
		most = -1
	}
	var b strings.Builder
	end := 0
	for _, found := range o.regex.FindAllStringSubmatchIndex(of.text, most) {
		b.WriteString(of.text[end:found[0]])
		b.WriteString(r.replacement(by, of.text, found))
		end = found[1]
		if b.Len() > maxText || !r.spend(1) {
			break
		}
	}
	b.WriteString(of.text[end:])
	return r.newValue(b.String())
}

// replacement is what stands in the place of a match: a text in which $1 and $& stand for parts of it, or what a function returns for them.
func (r *Run) replacement(by value, s string, found []int) string {
	group := func(i int) string {
		if 2*i >= len(found) || found[2*i] < 0 {
			return ""
		}
		return s[found[2*i]:found[2*i+1]]
	}
	if by.kind == function {
		var args []value
		for i := range len(found) / 2 {
			args = append(args, textOf(group(i)))
		}
		return r.text(r.call(r.at, by, args))
	}
	with := r.text(by)
	if !strings.Contains(with, "$") {
		return with
	}
	var b strings.Builder
	for i := 0; i < len(with); i++ {
		if with[i] != '$' || i+1 == len(with) {
			b.WriteByte(with[i])
			continue
		}
		switch c := with[i+1]; {
		case c == '$':
			b.WriteByte('$')
			i++
		case c == '&':
			b.WriteString(group(0))
			i++
		case isDigit(c) && c != '0' && 2*int(c-'0') < len(found):
			b.WriteString(group(int(c - '0')))
			i++
		default:
			b.WriteByte('$')
		}
	}
	return r.newText(b.String())
}
