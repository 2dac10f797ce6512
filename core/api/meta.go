package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/filter"
)

// listing holds the parameters that the lists of metadata share.
type listing struct {
	expression *filter.Expr
	tags       []string // names and patterns of tags to return; nil = no tags
	limit      int
	insertTime bool      // return lastInsertDate
	min, max   core.Time // bounds of lastInsertDate
	hasMin     bool
	hasMax     bool
}

// listing reads and checks the parameters. An empty parameter equals an absent one.
func (c *call) listing(kind filter.Context) (listing, error) {
	q := c.values
	l := listing{insertTime: !strings.EqualFold(q.Get("addInsertTime"), "false")}
	var err error
	if text := q.Get("limit"); text != "" {
		if l.limit, err = strconv.Atoi(text); err != nil {
			return l, core.Errorf(core.Invalid, "IllegalArgumentException: limit: a number is expected, not %s", excerpt(text))
		}
	}
	if text := q.Get("tags"); text != "" {
		l.tags = strings.Split(lowered(text), ",")
	}
	if text := strings.TrimSpace(q.Get("expression")); text != "" {
		compiler := filter.Compiler{Functions: c.functions(), Zone: c.server.Zone, Now: c.server.Clock}
		if l.expression, err = compiler.Compile(kind, text); err != nil {
			return l, err
		}
	}
	if l.min, l.hasMin, err = c.dateParameter(q, "minInsertDate"); err != nil {
		return l, err
	}
	l.max, l.hasMax, err = c.dateParameter(q, "maxInsertDate")
	return l, err
}

// dateParameter reads a date by URL: ISO or a calendar expression in the server zone.
func (c *call) dateParameter(q url.Values, name string) (core.Time, bool, error) {
	text := q.Get(name)
	if text == "" {
		return 0, false, nil
	}
	t, err := dates.Moment{Now: c.now(), Zone: c.server.Zone}.Parse(text)
	if err != nil {
		return 0, false, core.Errorf(core.Invalid, "IllegalArgumentException: Wrong %s syntax: %s", name, excerpt(text))
	}
	return t, true, nil
}

// functions are what an expression over metadata may ask of the catalog.
func (c *call) functions() filter.Functions {
	return filter.Functions{
		MemberOf: func(entity, group string) (bool, error) { return c.server.Catalog.Member(entity, group), nil },
		EntityTags: func(entity string) (map[string]string, error) {
			e, _ := c.server.Catalog.Entity(lowered(entity))
			return e.Tags, nil
		},
	}
}

// matches evaluates the expression of the listing on one object.
func (l *listing) matches(env filter.Env) (bool, error) {
	if l.expression == nil {
		return true, nil
	}
	ok, err := l.expression.Match(env)
	if err != nil {
		return false, core.Wrap(core.Invalid, err, "IllegalArgumentException: expression cannot be evaluated")
	}
	return ok, nil
}

// inserted reports whether the newest sample of an object lies within the bounds; known is false for an object without samples, which only an
// upper bound alone lets pass.
func (l *listing) inserted(last core.Time, known bool) bool {
	if !known {
		return !l.hasMin
	}
	return (!l.hasMin || last >= l.min) && (!l.hasMax || last < l.max)
}

// wantsInsertTimes reports whether the newest samples matter at all: finding them takes a pass over all series.
func (l *listing) wantsInsertTimes() bool { return l.insertTime || l.hasMin || l.hasMax }

// lastInserts finds the newest sample time by a name of each series.
func (c *call) lastInserts(q core.SeriesQuery, by func(core.SeriesKey) string) (map[string]core.Time, error) {
	last := map[string]core.Time{}
	q.Scope, q.Range = core.AllEntities, core.AllTime // metadata is not restricted by entity permissions
	for info, err := range c.server.Reader.Keys(c.reading(), q) {
		if err != nil {
			return nil, err
		}
		name := by(info.Key)
		if t, ok := last[name]; !ok || info.Last > t {
			last[strings.Clone(name)] = info.Last
		}
	}
	return last, nil
}

// documents yields the documents of a kind, decoded, in key order, until f returns false.
func documents[T any](ctx context.Context, r core.Reader, kind core.DocKind, f func(T) (more bool, err error)) error {
	for doc, err := range r.Documents(ctx, core.DocumentQuery{Kind: kind}) {
		if err = cmp.Or(err, ctx.Err()); err != nil { // f may evaluate an expression, which takes longer than reading
			return err
		}
		var item T
		if err := json.Unmarshal(doc.Body, &item); err != nil {
			return fmt.Errorf("read %s %q: %w", kind, doc.Key, err)
		}
		if more, err := f(item); err != nil || !more {
			return err
		}
	}
	return nil
}

// metadata is what the routes of metrics and of entities differ in.
type metadata[T any] struct {
	doc       core.DocKind
	parameter string // of the path, and the word in errors
	context   filter.Context
	field     func(p *docPatch, name string, v gjson.Result) bool
	find      func(c core.Catalog, name string) (T, bool)
	name      func(*T) string
	named     func(core.SeriesKey) string        // this name in the key of a series
	series    func(name string) core.SeriesQuery // the series of one object
	env       func(*T) filter.Env
	tags      func(*T) map[string]string
	print     func(dst []byte, one *T) []byte // as far as tags, without the closing brace
}

// existing returns the object that the path names; none is a 404.
func (k *metadata[T]) existing(c *call) (name string, one T, err error) {
	if name, err = c.pathName(k.parameter); err != nil {
		return "", one, err
	}
	one, ok := k.find(c.server.Catalog, name)
	if !ok {
		err = notFound(k.parameter, name)
	}
	return name, one, err
}

// patch reads the fields of a PUT or PATCH.
func (k *metadata[T]) patch(c *call) (name string, p *docPatch, err error) {
	if name, err = c.pathName(k.parameter); err != nil {
		return "", nil, err
	}
	body, err := c.json()
	if err != nil {
		return "", nil, err
	}
	p, err = decodePatch(body, k.parameter, k.field)
	return name, p, err
}

// put stores fresh with the patch applied.
func (k *metadata[T]) put(c *call, name string, fresh T, patch []byte) error {
	base, err := json.Marshal(fresh)
	if err != nil {
		return err
	}
	body, err := core.MergePatch(base, patch)
	if err != nil {
		return err
	}
	return c.write(core.DocChange{Kind: k.doc, Key: name, Op: core.DocPut, Body: body})
}

// remove deletes an object with its data.
func (k *metadata[T]) remove(c *call) error {
	name, _, err := k.existing(c)
	if err != nil {
		return err
	}
	return c.write(core.DocChange{Kind: k.doc, Key: name, Op: core.DocDelete})
}

// get shows one object with all its tags, an empty object when it has none.
func (k *metadata[T]) get(c *call) error {
	name, one, err := k.existing(c)
	if err != nil {
		return err
	}
	l, err := c.listing(k.context)
	if err != nil {
		return err
	}
	body := appendTagObject(k.print(nil, &one), k.tags(&one), everyTag)
	if l.insertTime {
		last, err := c.lastInserts(k.series(name), k.named)
		if err != nil {
			return err
		}
		if t, ok := last[name]; ok {
			body = appendDate(body, "lastInsertDate", t)
		}
	}
	return c.sendJSON(append(body, '}'))
}

// list answers with the objects, by name, that include accepts and the listing parameters let pass. The limit counts what passed.
func (k *metadata[T]) list(c *call, include func(name string) bool) error {
	l, err := c.listing(k.context)
	if err != nil {
		return err
	}
	var last map[string]core.Time
	if l.wantsInsertTimes() {
		if last, err = c.lastInserts(core.SeriesQuery{}, k.named); err != nil {
			return err
		}
	}
	out := list{body: []byte{'['}}
	err = documents(c.reading(), c.server.Reader, k.doc, func(one T) (bool, error) {
		name := k.name(&one)
		t, known := last[name]
		if !include(name) || !l.inserted(t, known) {
			return true, nil
		}
		if ok, err := l.matches(k.env(&one)); err != nil || !ok {
			return true, err
		}
		out.next()
		out.body = k.print(out.body, &one)
		if l.tags != nil {
			out.body = appendTagObject(out.body, k.tags(&one), l.keeps)
		}
		if l.insertTime && known {
			out.body = appendDate(out.body, "lastInsertDate", t)
		}
		out.body = append(out.body, '}')
		if err := c.fits(out.body); err != nil {
			return false, err
		}
		return l.limit <= 0 || out.n < l.limit, nil
	})
	if err != nil {
		return err
	}
	return c.sendJSON(append(out.body, ']'))
}

// everyName includes all objects in a list.
func everyName(string) bool { return true }

// write stores one document change and answers it.
func (c *call) write(change core.DocChange) error {
	b := c.batch()
	b.Documents = []core.DocChange{change}
	return c.ingest(b)
}

// pathName returns a name from the path. A blank in it is refused; any other character is a name nobody has.
func (c *call) pathName(parameter string) (string, error) {
	name := c.param(parameter)
	if strings.ContainsRune(name, ' ') || name == "" {
		return "", core.Errorf(core.Invalid, "IllegalArgumentException: Invalid %s name '%s'", parameter, excerpt(name))
	}
	return lowered(name), nil
}

// notFound is the answer about a name in a path that nothing has.
func notFound(kind, name string) error {
	return core.Errorf(core.NotFound, "%s not found for name: '%s'", strings.ToUpper(kind), name)
}

// member writers of the JSON of metadata.

// appendText leaves out a text that is not set: answers hold no null fields.
func appendText(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	dst = append(appendString(append(dst, ','), name), ':')
	return appendString(dst, value)
}

func appendDate(dst []byte, name string, t core.Time) []byte {
	dst = append(appendString(append(dst, ','), name), ':', '"')
	return append(dates.AppendISO(dst, t), '"')
}

func appendFlag(dst []byte, name string, on bool) []byte {
	dst = append(appendString(append(dst, ','), name), ':')
	return strconv.AppendBool(dst, on)
}

func appendInt(dst []byte, name string, n int64) []byte {
	dst = append(appendString(append(dst, ','), name), ':')
	return strconv.AppendInt(dst, n, 10)
}

// appendFloat leaves out a number that is not set.
func appendFloat(dst []byte, name string, f *float64) []byte {
	if f == nil {
		return dst
	}
	dst = append(appendString(append(dst, ','), name), ':')
	return appendNumber(dst, *f)
}

// appendNumber prints a stored number: the shortest text that gives it back, without an exponent; null for no number.
func appendNumber(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64)
}

// appendTagObject writes the tags whose name keep accepts, sorted.
func appendTagObject(dst []byte, tags map[string]string, keep func(name string) bool) []byte {
	dst = append(dst, `,"tags":{`...)
	first := true
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		if !keep(name) {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(appendString(dst, name), ':')
		dst = appendString(dst, tags[name])
	}
	return append(dst, '}')
}

// everyTag keeps all tags, as the routes for a single object do.
func everyTag(string) bool { return true }

// keeps is everyTag for a list: what its parameter asks for.
func (l *listing) keeps(name string) bool {
	return slices.ContainsFunc(l.tags, func(pattern string) bool { return likeName(pattern, name) })
}

// likeName matches a name with a pattern of literal text and `*`, which is all that a list of tag names takes.
func likeName(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == name
	}
	first, last := parts[0], parts[len(parts)-1]
	if len(name) < len(first)+len(last) || !strings.HasPrefix(name, first) || !strings.HasSuffix(name, last) {
		return false
	}
	rest := name[len(first) : len(name)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return true
}
