package filter

import (
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/glob"
	"github.com/tidemark-db/tidemark/core/regular"
)

// Functions answers what an expression asks about the world around its record. A nil field makes an expression that needs it an error when it is
// compiled; without Collection every collection is empty.
type Functions struct {
	Properties   func(entity string, s PropertySearch) ([]string, error) // distinct values: property(), property_values()
	PropertyTags func(entity, propertyType string) (map[string]string, error)
	HasProperty  func(entity, propertyType string) (bool, error)
	HasMetric    func(entity, metric string, within time.Duration) (bool, error) // within 0 = ever
	MemberOf     func(entity, group string) (bool, error)
	EntityTags   func(entity string) (map[string]string, error)
	Collection   func(name string) []string
}

// Within returns functions that find no records and no tags of an entity that readable does not let pass.
func (f Functions) Within(readable func(entity string) bool) Functions {
	out := f
	if f.Properties != nil {
		out.Properties = func(entity string, s PropertySearch) ([]string, error) {
			if !readable(entity) {
				return nil, nil
			}
			return f.Properties(entity, s)
		}
	}
	if f.PropertyTags != nil {
		out.PropertyTags = func(entity, propertyType string) (map[string]string, error) {
			if !readable(entity) {
				return nil, nil
			}
			return f.PropertyTags(entity, propertyType)
		}
	}
	if f.EntityTags != nil {
		out.EntityTags = func(entity string) (map[string]string, error) {
			if !readable(entity) {
				return nil, nil
			}
			return f.EntityTags(entity)
		}
	}
	return out
}

// function is a callable of the language. args is checked before call runs.
type function struct {
	name     string // as documented
	min, max int
	needs    func(f *Functions) bool // nil: nothing
	call     func(r *run, args []Value) Value
	check    func(s *settings, element string) error // of the last argument, or each of its elements, where it is constant; nil: anything will do
}

// functionNamed finds a function by its lower-case name.
func functionNamed(name string) (function, bool) {
	for _, table := range [...][]function{textFunctions, worldFunctions, mathFunctions} {
		for _, f := range table {
			if strings.EqualFold(f.name, name) {
				return f, true
			}
		}
	}
	return function{}, false
}

var textFunctions = []function{
	{name: "lower", min: 1, max: 1, call: func(_ *run, a []Value) Value { return Text(strings.ToLower(a[0].String())) }},
	{name: "upper", min: 1, max: 1, call: func(_ *run, a []Value) Value { return Text(strings.ToUpper(a[0].String())) }},
	{name: "list", min: 1, max: 2, call: splitList},
	{name: "likeAny", min: 2, max: 2, call: func(_ *run, a []Value) Value {
		return Bool(slices.ContainsFunc(a[1].elements(), func(p string) bool { return glob.Compile(p).Match(a[0].String()) }))
	}},
	{name: "likeAll", min: 2, max: 2, call: func(_ *run, a []Value) Value {
		return Bool(!slices.ContainsFunc(a[1].elements(), func(p string) bool { return !glob.Compile(p).Match(a[0].String()) }))
	}},
	{name: "matches", min: 2, max: 2, call: func(_ *run, a []Value) Value {
		return Bool(slices.ContainsFunc(a[1].elements(), glob.Compile(a[0].String()).Match))
	}},
	{name: "startsWithAny", min: 2, max: 2, call: func(_ *run, a []Value) Value {
		return Bool(slices.ContainsFunc(a[1].elements(), func(p string) bool { return strings.HasPrefix(a[0].String(), p) }))
	}},
	{name: "regexAny", min: 2, max: 2, call: func(r *run, a []Value) Value {
		return Bool(slices.ContainsFunc(a[1].elements(), func(p string) bool { return r.regex(p, a[0].String()) }))
	}, check: func(_ *settings, p string) error {
		_, err := compileRegex(p)
		return err
	}},
	{name: "collection_contains", min: 2, max: 2, call: func(r *run, a []Value) Value {
		return Bool(slices.Contains(r.collection(a[1]), a[0].String()))
	}},
	{name: "collection_intersects", min: 2, max: 2, call: func(r *run, a []Value) Value {
		right := r.collection(a[1])
		return Bool(slices.ContainsFunc(a[0].elements(), func(e string) bool { return slices.Contains(right, e) }))
	}},
	{name: "collection", min: 1, max: 1, call: func(r *run, a []Value) Value { return List(r.named(a[0].String())) }},
}

var worldFunctions = []function{
	{name: "property", min: 1, max: 2, needs: func(f *Functions) bool { return f.Properties != nil }, check: checkSearch, call: func(r *run, a []Value) Value {
		if values := r.properties(a); len(values) > 0 {
			return Text(values[0])
		}
		return Text("")
	}},
	{name: "property_values", min: 1, max: 2, needs: func(f *Functions) bool { return f.Properties != nil }, check: checkSearch,
		call: func(r *run, a []Value) Value { return List(r.properties(a)) }},
	{name: "properties", min: 1, max: 1, needs: func(f *Functions) bool { return f.PropertyTags != nil }, call: func(r *run, a []Value) Value {
		tags, err := r.functions.PropertyTags(r.entity(), strings.ToLower(a[0].String()))
		r.note(err)
		return MapOf(StringMap(tags))
	}},
	{name: "hasProperty", min: 1, max: 1, needs: func(f *Functions) bool { return f.HasProperty != nil }, call: func(r *run, a []Value) Value {
		has, err := r.functions.HasProperty(r.entity(), strings.ToLower(a[0].String()))
		r.note(err)
		return Bool(has)
	}},
	{name: "hasMetric", min: 1, max: 2, needs: func(f *Functions) bool { return f.HasMetric != nil }, call: hasMetric},
	{name: "memberOf", min: 1, max: 1, needs: func(f *Functions) bool { return f.MemberOf != nil }, call: func(r *run, a []Value) Value {
		return Bool(slices.ContainsFunc(a[0].elements(), r.member))
	}},
	{name: "memberOfAll", min: 1, max: 1, needs: func(f *Functions) bool { return f.MemberOf != nil }, call: func(r *run, a []Value) Value {
		return Bool(!slices.ContainsFunc(a[0].elements(), func(g string) bool { return !r.member(g) }))
	}},
	{name: "entity_tags", min: 1, max: 1, needs: func(f *Functions) bool { return f.EntityTags != nil }, call: func(r *run, a []Value) Value {
		tags, err := r.functions.EntityTags(strings.ToLower(a[0].String()))
		r.note(err)
		return MapOf(StringMap(tags))
	}},
	{name: "filter_by_time_of_day", min: 2, max: 2, call: timeOfDay},
	{name: "date", min: 1, max: 1, call: func(r *run, a []Value) Value {
		t, err := r.date(a[0].String())
		r.note(err)
		return Date(t)
	}, check: func(s *settings, text string) error {
		_, err := s.date(text)
		return err
	}},
}

// mathFunctions take and return numbers; what is no number counts as NaN.
var mathFunctions = []function{
	unaryMath("Math.abs", math.Abs), unaryMath("Math.ceil", math.Ceil), unaryMath("Math.floor", math.Floor), unaryMath("Math.sqrt", math.Sqrt),
	unaryMath("Math.cbrt", math.Cbrt), unaryMath("Math.exp", math.Exp), unaryMath("Math.log", math.Log), unaryMath("Math.log10", math.Log10),
	unaryMath("Math.sin", math.Sin), unaryMath("Math.cos", math.Cos), unaryMath("Math.tan", math.Tan), unaryMath("Math.asin", math.Asin),
	unaryMath("Math.acos", math.Acos), unaryMath("Math.atan", math.Atan),
	unaryMath("Math.round", func(f float64) float64 { return math.Floor(f + 0.5) }),
	unaryMath("Math.signum", func(f float64) float64 {
		if f == 0 || math.IsNaN(f) {
			return f
		}
		return math.Copysign(1, f)
	}),
	unaryMath("Math.toRadians", func(f float64) float64 { return f * math.Pi / 180 }),
	unaryMath("Math.toDegrees", func(f float64) float64 { return f * 180 / math.Pi }),
	binaryMath("Math.min", math.Min), binaryMath("Math.max", math.Max), binaryMath("Math.pow", math.Pow), binaryMath("Math.atan2", math.Atan2),
	{name: "Double.isNaN", min: 1, max: 1, call: isNaN}, {name: "Float.isNaN", min: 1, max: 1, call: isNaN},
}

func unaryMath(name string, f func(float64) float64) function {
	return function{name: name, min: 1, max: 1, call: func(_ *run, a []Value) Value {
		x, _ := a[0].number()
		return Number(f(x))
	}}
}

func binaryMath(name string, f func(x, y float64) float64) function {
	return function{name: name, min: 2, max: 2, call: func(_ *run, a []Value) Value {
		x, _ := a[0].number()
		y, _ := a[1].number()
		return Number(f(x, y))
	}}
}

func isNaN(_ *run, a []Value) Value {
	f, _ := a[0].number()
	return Bool(math.IsNaN(f))
}

// splitList splits a text and drops what occurred before.
func splitList(_ *run, a []Value) Value {
	sep := ","
	if len(a) > 1 {
		sep = a[1].String()
	}
	if a[0].String() == "" {
		return List(nil)
	}
	var out []string
	seen := make(map[string]bool)
	for part := range strings.SplitSeq(a[0].String(), sep) {
		if !seen[part] {
			seen[part] = true
			out = append(out, part)
		}
	}
	return List(out)
}

func hasMetric(r *run, a []Value) Value {
	var within time.Duration
	if len(a) > 1 {
		hours, ok := a[1].number()
		if !ok || !(hours > 0 && hours < math.MaxInt64/float64(time.Hour)) {
			r.note(core.Errorf(core.Invalid, "hasMetric: %q is not a number of hours", a[1].String()))
			return Bool(false)
		}
		within = time.Duration(hours * float64(time.Hour))
	}
	has, err := r.functions.HasMetric(r.entity(), strings.ToLower(a[0].String()), within)
	r.note(err)
	return Bool(has)
}

// properties runs a property search for the entity given first, or for the one the record belongs to.
func (r *run) properties(a []Value) []string {
	entity := r.entity()
	if len(a) > 1 {
		entity = strings.ToLower(a[0].String())
	}
	search, err := ParsePropertySearch(a[len(a)-1].String())
	if err != nil {
		r.note(err)
		return nil
	}
	values, err := r.functions.Properties(entity, search)
	r.note(err)
	return values
}

func checkSearch(_ *settings, text string) error {
	_, err := ParsePropertySearch(text)
	return err
}

func (r *run) member(group string) bool {
	is, err := r.functions.MemberOf(r.entity(), group)
	r.note(err)
	return is
}

// collection is the second argument of the collection_ functions: a list, or the name of one.
func (r *run) collection(v Value) []string {
	if v.kind == kindText {
		return r.named(v.text)
	}
	return v.elements()
}

func (r *run) named(collection string) []string {
	if r.functions.Collection == nil {
		return nil
	}
	return r.functions.Collection(collection)
}

// regex reports whether a regular expression (RE2) covers the whole text.
func (r *run) regex(expr, text string) bool {
	re, err := r.patterns.compile(expr)
	if err != nil {
		r.note(err)
		return false
	}
	return re.covers(r, text)
}

// Bounds of regular expressions, as no deadline interrupts one.
const (
	// maxRegex is how many steps one may compile to: repetitions within repetitions of a short text could otherwise take 100 MB and seconds.
	maxRegex = 10_000
	// maxRegexWork bounds steps x bytes of the text, to which the time of a match is proportional; it is about a second.
	maxRegexWork = 100_000_000
	// maxPatterns is how many computed patterns an expression remembers.
	maxPatterns = 64
)

// regex is a compiled regular expression that has to cover a whole text.
type regex struct {
	*regexp.Regexp
	steps int
}

// covers matches a text, or notes that it is too long for that.
func (re *regex) covers(r *run, text string) bool {
	if len(text) > maxRegexWork/re.steps {
		r.note(core.Errorf(core.TooLarge, "text of %d bytes is too long for a regular expression of %d steps: at most %d", len(text), re.steps, maxRegexWork/re.steps))
		return false
	}
	return re.MatchString(text)
}

func compileRegex(expr string) (*regex, error) {
	// It is parsed alone: within the group around it `a)(b` would be sound, and mean something else.
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, core.Errorf(core.Invalid, "bad regular expression '%s': %v", expr, err)
	}
	steps := regular.Size(parsed) + 2 // for the two ends
	if steps > maxRegex {
		return nil, core.Errorf(core.TooLarge, "regular expression of more than %d steps: use smaller repetitions", maxRegex)
	}
	re, err := regexp.Compile(`^(?s:` + expr + `)$`)
	if err != nil {
		return nil, core.Errorf(core.Invalid, "bad regular expression '%s': %v", expr, err)
	}
	return &regex{re, steps}, nil
}

// patterns remembers the regular expressions that an expression computes, most often the elements of one list, for all records.
type patterns struct {
	mu    sync.Mutex // guards known
	known map[string]*regex
}

func (p *patterns) compile(expr string) (*regex, error) {
	p.mu.Lock()
	re := p.known[expr]
	p.mu.Unlock()
	if re != nil {
		return re, nil
	}
	re, err := compileRegex(expr)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil || len(p.known) >= maxPatterns {
		p.known = map[string]*regex{}
	}
	p.known[expr] = re
	return re, nil
}

// PropertySearch is a parsed search `type:[key=value[,key=value]]:tag`.
type PropertySearch struct {
	Type string     // lower case
	Keys []core.Tag // names in lower case; values are patterns; all must be in the record key
	Tag  string     // pattern over tag names, lower case
}

// ParsePropertySearch reads a property search. Key values must not hold a colon, a comma or an equals sign.
func ParsePropertySearch(text string) (PropertySearch, error) {
	propertyType, rest, ok1 := strings.Cut(text, ":")
	last := strings.LastIndexByte(rest, ':')
	if !ok1 || propertyType == "" || last < 0 || last == len(rest)-1 {
		return PropertySearch{}, core.Errorf(core.Invalid, "property search '%s' is not of the form type:[key=value[,key=value]]:tag", text)
	}
	s := PropertySearch{Type: strings.ToLower(propertyType), Tag: strings.ToLower(rest[last+1:])}
	if last == 0 {
		return s, nil
	}
	for pair := range strings.SplitSeq(rest[:last], ",") {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return PropertySearch{}, core.Errorf(core.Invalid, "property search '%s': '%s' is not of the form key=value", text, pair)
		}
		s.Keys = append(s.Keys, core.Tag{Name: strings.ToLower(strings.TrimSpace(name)), Value: value})
	}
	return s, nil
}

// Values appends to values those tag values of r that the search finds and that are not in values yet.
func (s PropertySearch) Values(values []string, r *core.PropertyRecord) []string {
	if r.Type != s.Type {
		return values
	}
	for _, k := range s.Keys {
		if v, ok := r.Key.Get(k.Name); !ok || !glob.Compile(k.Value).Match(v) {
			return values
		}
	}
	tag := glob.Compile(s.Tag)
	for _, t := range r.Tags {
		if tag.Match(t.Name) && !slices.Contains(values, t.Value) {
			values = append(values, t.Value)
		}
	}
	return values
}
