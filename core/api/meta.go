package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/filter"
	"github.com/tidemark-db/tidemark/core/query"
)

// listing holds the parameters that the lists of metadata share.
type listing struct {
	expression *filter.Expr
	tags       func(name string) bool // which tags to return; nil = no tags
	limit      int
	insertTime bool      // return lastInsertDate
	min, max   core.Time // bounds of lastInsertDate
	hasMin     bool
	hasMax     bool
}

// listing reads and checks the parameters. An empty parameter equals an absent one.
func (c *call) listing(kind filter.Context) (listing, error) {
	q := c.values
	l := listing{tags: tagNames(q.Get("tags"))}
	var err error
	if l.insertTime, err = c.wantsInsertTime(); err != nil {
		return l, err
	}
	if l.limit, err = c.limit(0); err != nil {
		return l, err
	}
	if text := strings.TrimSpace(q.Get("expression")); text != "" {
		compiler := filter.Compiler{Functions: c.functions(), Zone: c.server.Zone, Now: c.server.Clock, Calendar: c.server.Calendars().Default()}
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

// more reports whether the limit lets one more object into the list.
func (l *listing) more(out *list) bool { return l.limit <= 0 || out.n < l.limit }

// wantsInsertTime reports whether answers are to say when data came last.
func (c *call) wantsInsertTime() (bool, error) {
	return flagParameter(c.values, "addInsertTime", !c.server.HideInsertTime)
}

// flagParameter reads a boolean by URL, in any case of letters. Every other text is refused: a misspelt one must not do the opposite of what was meant.
func flagParameter(q url.Values, name string, otherwise bool) (bool, error) {
	switch text := q.Get(name); strings.ToLower(text) {
	case "":
		return otherwise, nil
	case "true":
		return true, nil
	case "false":
		return false, nil
	default:
		return false, core.Errorf(core.Invalid, "IllegalArgumentException: %s: true or false is expected, not %s", name, excerpt(text))
	}
}

// limit reads the parameter of that name; 0 and negative numbers stand for no limit.
func (c *call) limit(otherwise int) (int, error) {
	text := c.values.Get("limit")
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, core.Errorf(core.Invalid, "IllegalArgumentException: limit: a number is expected, not %s", excerpt(text))
	}
	return n, nil
}

// tagNames is the test of a comma-separated list of tag names and patterns; nil for an empty list.
func tagNames(text string) func(name string) bool {
	if text == "" {
		return nil
	}
	var patterns []string
	for part := range strings.SplitSeq(lowered(text), ",") {
		if part = strings.TrimSpace(part); part == "*" {
			return query.AllTags
		} else if part != "" {
			patterns = append(patterns, part)
		}
	}
	return func(name string) bool {
		return slices.ContainsFunc(patterns, func(pattern string) bool { return likeName(pattern, name) })
	}
}

// dateParameter reads a date by URL: ISO or a calendar expression in the server zone.
func (c *call) dateParameter(q url.Values, name string) (core.Time, bool, error) {
	text := q.Get(name)
	if text == "" {
		return 0, false, nil
	}
	t, err := c.moment().Parse(text)
	if err != nil {
		return 0, false, core.Errorf(core.Invalid, "IllegalArgumentException: Wrong %s syntax: %s", name, excerpt(text))
	}
	return t, true, nil
}

// functions are what an expression over metadata may ask of the store. Metadata is for whoever has its role; the values of property records are data, of
// which an expression must tell no more than a query.
func (c *call) functions() filter.Functions {
	source := filter.Source{Reader: c.server.Reader, Catalog: c.server.Catalog, Now: c.server.Clock}
	all := source.Functions(c.reading())
	some := all.Within(func(entity string) bool { return c.id.Grants.Roles.Has(core.DataRead) && c.readable(entity) })
	some.EntityTags = all.EntityTags
	return some
}

// matches evaluates the expression of the listing on one object.
func (l *listing) matches(env filter.Env) (bool, error) {
	if l.expression == nil {
		return true, nil
	}
	ok, err := l.expression.Match(env)
	if err != nil && core.CodeOf(err) == core.Internal {
		err = core.Wrap(core.Invalid, err, "IllegalArgumentException: expression cannot be evaluated")
	}
	return ok, err
}

// inserted reports whether the newest sample of an object lies within the bounds; known is false for an object without samples, which only an
// upper bound alone lets pass.
func (l *listing) inserted(last core.Time, known bool) bool {
	if !known {
		return !l.hasMin
	}
	return (!l.hasMin || last >= l.min) && (!l.hasMax || last < l.max)
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
	walk      func(ctx context.Context, m core.Metadata, q core.MetaQuery) iter.Seq2[described[T], error]
	env       func(*T) filter.Env
	print     func(dst []byte, one *T, f query.MetaFields) []byte
}

// described is core.MetricInfo and core.EntityInfo in one form.
type described[T any] struct {
	one      *T // shared with the store
	last     core.Time
	inserted bool
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

// put stores fresh with the patch applied. The store keeps what it has decided itself, such as the creation time.
func (k *metadata[T]) put(c *call, name string, fresh T, patch []byte) error {
	body, err := patched(fresh, patch)
	if err != nil {
		return err
	}
	return c.write(core.DocChange{Kind: k.doc, Key: name, Op: core.DocPut, Body: body})
}

// patched is the body of a document with a patch applied.
func patched(doc any, patch []byte) ([]byte, error) {
	base, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	return core.MergePatch(base, patch)
}

// update changes the fields that are sent and merges tags by name.
func (k *metadata[T]) update(c *call) error {
	_, p, err := k.patch(c)
	if err != nil {
		return err
	}
	name, _, err := k.existing(c)
	if err != nil {
		return err
	}
	return c.write(core.DocChange{Kind: k.doc, Key: name, Op: core.DocPatch, Body: p.close()})
}

// remove deletes an object with its data.
func (k *metadata[T]) remove(c *call) error {
	name, _, err := k.existing(c)
	if err != nil {
		return err
	}
	return c.write(core.DocChange{Kind: k.doc, Key: name, Op: core.DocDelete})
}

// rename gives an object another name, which nothing may have yet.
func (k *metadata[T]) rename(c *call) error {
	body, err := c.json()
	if err != nil {
		return err
	}
	var o object
	to := ""
	o.read(gjson.Parse(body), fields{"name": into(&to, (*object).text)})
	if o.err != nil {
		return o.err
	}
	name, _, err := k.existing(c)
	if err != nil {
		return err
	}
	if to == "" {
		return core.Errorf(core.Invalid, "IllegalArgumentException: name is required")
	}
	if to = lowered(to); !validName(to) {
		return core.Errorf(core.Invalid, "IllegalArgumentException: Invalid %s name '%s'", k.parameter, excerpt(to))
	}
	return c.write(core.DocChange{Kind: k.doc, Key: name, Op: core.DocRename, Body: append(appendString([]byte(`{"name":`), to), '}')})
}

// get shows one object with all its tags, an empty object when it has none.
func (k *metadata[T]) get(c *call) error {
	insertTime, err := c.wantsInsertTime()
	if err != nil {
		return err
	}
	name, _, err := k.existing(c)
	if err != nil {
		return err
	}
	for d, err := range k.walk(c.reading(), c.server.Metadata, core.MetaQuery{Name: name}) {
		if err != nil {
			return err
		}
		f := query.MetaFields{Tags: query.AllTags, Insert: d.inserted && insertTime, Last: d.last}
		return c.sendJSON(k.print(nil, d.one, f))
	}
	return notFound(k.parameter, name)
}

// list answers with the objects, by name, that the listing parameters let pass.
func (k *metadata[T]) list(c *call) error {
	l, err := c.listing(k.context)
	if err != nil {
		return err
	}
	out := list{body: []byte{'['}}
	for d, err := range k.walk(c.reading(), c.server.Metadata, core.MetaQuery{}) {
		if err != nil {
			return err
		}
		if more, err := k.add(c, &l, &out, d); err != nil {
			return err
		} else if !more {
			break
		}
	}
	return c.sendJSON(append(out.body, ']'))
}

// add puts one object into a list, if the parameters let it pass. It reports whether the list takes more: the limit counts what passed.
func (k *metadata[T]) add(c *call, l *listing, out *list, d described[T]) (more bool, err error) {
	if !l.inserted(d.last, d.inserted) {
		return true, nil
	}
	if ok, err := l.matches(k.env(d.one)); err != nil || !ok {
		return true, err
	}
	out.next()
	out.body = k.print(out.body, d.one, query.MetaFields{Tags: l.tags, Insert: l.insertTime && d.inserted, Last: d.last})
	return l.more(out), c.fits(out.body)
}

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

// appendNumber prints a stored number: the shortest text that gives it back, without an exponent; null for no number.
func appendNumber(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64)
}

// appendTagObject writes the tags whose name keep accepts, sorted.
func appendTagObject(dst []byte, tags map[string]string, keep func(name string) bool) []byte {
	return query.AppendTags(append(dst, `,"tags":`...), tags, keep)
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
