package expr

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
)

// In is x IN (list): true when x equals an element, NULL when x is NULL or NaN. Elements that are NULL equal nothing.
func In(x Node, list []Node) Node {
	list = slices.Clone(list)
	for i := range list {
		list[i] = precise(list[i])
	}
	if s, ok := newElements(x.Type(), list); ok {
		return fold(&inConstants{x: x, elements: s})
	}
	n := &inList{x: x, list: list, compare: make([]comparer, len(list))}
	return fold(n)
}

// inList compares with one element after another.
type inList struct {
	x       Node
	list    []Node
	compare []comparer // all for equality
	out     result
}

func (n *inList) Type() column.Type { return column.Boolean }
func (n *inList) Clone() Node {
	return &inList{x: n.x.Clone(), list: cloneAll(n.list), compare: make([]comparer, len(n.list))}
}
func (n *inList) operands() []Node { return append([]Node{n.x}, n.list...) }
func (n *inList) own() trait {
	for _, element := range n.list {
		if t := (&comparison{l: n.x, r: element}).own(); t != 0 {
			return t
		}
	}
	return 0
}

func (n *inList) Eval(env *Env, in *column.Batch) (*column.Vector, error) {
	x, err := n.x.Eval(env, in)
	if err != nil {
		return nil, err
	}
	found := make([]bool, in.Len)
	for i, element := range n.list {
		v, err := element.Eval(env, in)
		if err != nil {
			return nil, err
		}
		same := n.compare[i].compare(env, x, v, in.Len)
		if same.Type == column.Null {
			continue
		}
		for row := range found {
			if !same.IsNull(row) && same.Ints[same.Index(row)] != 0 {
				found[row] = true
			}
		}
	}
	n.out.header(column.Boolean, in.Len, false)
	dst := n.out.makeInts(in.Len)
	for row := range dst {
		dst[row] = bit(found[row])
		if x.IsMissing(row) {
			n.out.makeNulls(in.Len)[row] = true
		}
	}
	return &n.out.v, nil
}

// elements are constants to look a value up in.
type elements struct {
	texts   map[string]struct{}
	numbers map[float64]struct{}
	wholes  map[int64]struct{} // those of numbers that are whole, all of them: a double may stand for several
	parse   bool               // texts are compared with numbers as well
}

// newElements collects the constants of a list for a value of type t; ok is false where hashes do not answer what comparisons would.
func newElements(t column.Type, list []Node) (s *elements, ok bool) {
	s = &elements{texts: map[string]struct{}{}, numbers: map[float64]struct{}{}, wholes: map[int64]struct{}{}}
	for _, n := range list {
		v, ok := constantOf(n)
		if !ok || n.Type() == column.Object {
			return nil, false
		}
		switch {
		case v.IsNull() || v.IsNaN():
		case v.Type == column.String && t == column.String:
			s.texts[v.Text] = struct{}{}
		case v.Type == column.String && t.Numeric():
			if !s.number(column.ParseValue(v.Text), t) {
				return nil, false
			}
		case v.Type.Numeric() && (t == column.String || t.Numeric() || t == column.Timestamp):
			if !s.number(v, t) {
				return nil, false
			}
			s.parse = true
		case v.Type == column.Timestamp && (t.Numeric() || t == column.Timestamp):
			s.number(column.IntValue(column.Bigint, v.Int), t)
		default:
			return nil, false
		}
	}
	return s, t == column.String || t.Numeric() || t == column.Timestamp
}

// number takes a number to look up values of type t by; it is false for one that only comparisons can tell from others. Only decimals have more digits than doubles.
func (s *elements) number(v column.Value, t column.Type) bool {
	f := v.Number()
	_, beyond := v.Decimal()
	beyond = beyond && t == column.Decimal
	if f != f {
		return true
	}
	if !beyond {
		s.numbers[f] = struct{}{}
	}
	switch {
	case v.Whole:
		s.wholes[v.Int] = struct{}{}
	case beyond:
		return false
	default:
		if n, err := strconv.ParseInt(v.Format(), 10, 64); err == nil {
			s.wholes[n] = struct{}{}
		}
	}
	return true
}

func (s *elements) hasText(text string) bool {
	if _, ok := s.texts[text]; ok || !s.parse {
		return ok
	}
	_, ok := s.numbers[column.ParseFloat(text)]
	return ok
}

// inConstants looks values up.
type inConstants struct {
	x        Node
	elements *elements // shared by clones: nobody changes it
	out      result
}

func (n *inConstants) Type() column.Type { return column.Boolean }
func (n *inConstants) Clone() Node       { return &inConstants{x: n.x.Clone(), elements: n.elements} }
func (n *inConstants) operands() []Node  { return []Node{n.x} }
func (n *inConstants) own() trait        { return 0 }

func (n *inConstants) Eval(env *Env, in *column.Batch) (*column.Vector, error) {
	x, err := n.x.Eval(env, in)
	if err != nil {
		return nil, err
	}
	if x.Type == column.Null {
		return n.out.allNull(in.Len), nil
	}
	rows, constant := rowsOf(in.Len, x)
	n.out.header(column.Boolean, in.Len, constant)
	dst := n.out.makeInts(rows)
	s := n.elements
	switch {
	case x.Strings != nil:
		for i, text := range x.Strings[:rows] {
			if i > 0 && text == x.Strings[i-1] {
				dst[i] = dst[i-1]
				continue
			}
			dst[i] = bit(s.hasText(text))
		}
	case x.Floats != nil:
		for i, f := range x.Floats[:rows] {
			_, ok := s.numbers[f]
			dst[i] = bit(ok)
			if f != f {
				n.out.makeNulls(rows)[i] = true
			}
		}
		for _, d := range x.Exact {
			if i := int(d.Index); i < rows {
				whole, ok := wholeOf(d.Decimal)
				if ok {
					_, ok = s.wholes[whole]
				}
				dst[i] = bit(ok)
			}
		}
	default:
		for i, whole := range x.Ints[:rows] {
			_, ok := s.wholes[whole]
			dst[i] = bit(ok)
		}
	}
	n.out.unite(rows, cut(x.Nulls, rows))
	return &n.out.v, nil
}

// wholeOf returns a decimal as a whole number; ok is false where it is none.
func wholeOf(d core.Decimal) (n int64, ok bool) {
	n, err := strconv.ParseInt(string(calc.AppendDecimal(nil, d.Significand, d.Exponent)), 10, 64)
	return n, err == nil
}

// inSet is x IN a set of texts that the database knows.
type inSet struct {
	x    Node
	keys []Node // what names the set
	ask  func(env *Env, keys []string) ([]string, error)
	sets map[string]map[string]struct{} // that were asked for, by keys
	keep []textReader
	text textReader
	out  result
}

// InMetrics is x IN metrics(entities): x is the name of a metric of which one of the entities has series.
func InMetrics(x Node, entities []Node) Node {
	return newInSet(x, entities, func(env *Env, entities []string) ([]string, error) {
		var all []string
		for _, e := range entities {
			metrics, err := env.Facts.Metrics(strings.ToLower(e))
			if err != nil {
				return nil, err
			}
			all = append(all, metrics...)
		}
		return all, nil
	})
}

// InCollection is x IN collection(name).
func InCollection(x, name Node, at ast.Start) Node {
	return newInSet(x, []Node{name}, func(env *Env, names []string) ([]string, error) { return collection(env, names[0], at) })
}

func collection(env *Env, name string, at ast.Start) ([]string, error) {
	values, exists, err := env.Facts.Collection(name)
	if err == nil && !exists {
		err = at.Errorf("Collection not found for name '%s'", name)
	}
	return values, err
}

func newInSet(x Node, keys []Node, ask func(*Env, []string) ([]string, error)) *inSet {
	return &inSet{x: x, keys: keys, ask: ask, sets: map[string]map[string]struct{}{}, keep: make([]textReader, len(keys))}
}

func (n *inSet) Type() column.Type { return column.Boolean }
func (n *inSet) Clone() Node       { return newInSet(n.x.Clone(), cloneAll(n.keys), n.ask) }
func (n *inSet) operands() []Node  { return append([]Node{n.x}, n.keys...) }
func (n *inSet) own() trait        { return usesEnv | mayFail | costly }

func (n *inSet) Eval(env *Env, in *column.Batch) (*column.Vector, error) {
	x, err := n.x.Eval(env, in)
	if err != nil {
		return nil, err
	}
	keys, err := evalTexts(env, in, n.keys, n.keep)
	if err != nil {
		return nil, err
	}
	text := n.text.read(x)
	n.out.header(column.Boolean, in.Len, false)
	dst := n.out.makeInts(in.Len)
	var set map[string]struct{}
	known := false // set is that of all rows
	for i := range dst {
		dst[i] = 0
		if isNull(text.nulls, i) {
			n.out.makeNulls(in.Len)[i] = true
			continue
		}
		if !known {
			if set, err = n.set(env, keys, i); err != nil {
				return nil, err
			}
			known = single(keys)
		}
		_, ok := set[at(text.values, i)]
		dst[i] = bit(ok)
	}
	return &n.out.v, nil
}

// set returns the set for row i. Keys that are NULL name nothing.
func (n *inSet) set(env *Env, keys []texts, i int) (map[string]struct{}, error) {
	var names []string
	for _, k := range keys {
		if !isNull(k.nulls, i) {
			names = append(names, at(k.values, i))
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	id := strings.Join(names, "\x00")
	if set, ok := n.sets[id]; ok {
		return set, nil
	}
	cloneTexts(names, names)
	members, err := n.ask(env, names)
	if err != nil {
		return nil, err
	}
	set := make(map[string]struct{}, len(members))
	for _, m := range members {
		set[m] = struct{}{}
	}
	n.sets[strings.Clone(id)] = set
	return set, nil
}

// single reports whether lists have one text for all rows.
func single(lists []texts) bool {
	return !slices.ContainsFunc(lists, func(l texts) bool { return len(l.values) != 1 })
}

// evalTexts evaluates nodes and reads them as texts.
func evalTexts(env *Env, in *column.Batch, nodes []Node, readers []textReader) ([]texts, error) {
	list := make([]texts, len(nodes))
	for i, n := range nodes {
		v, err := n.Eval(env, in)
		if err != nil {
			return nil, err
		}
		list[i] = readers[i].read(v)
	}
	return list, nil
}

// inGroups tells whether one of some names is in a list of groups, such as north;pumps.
type inGroups struct {
	groups Node
	names  []Node
	list   textReader
	keep   []textReader
	out    result
}

// InGroups is entity.groups IN (names), and 'name' IN entity.groups. It is never NULL: who has no groups is in none.
func InGroups(groups Node, names []Node) Node {
	return fold(&inGroups{groups: groups, names: names, keep: make([]textReader, len(names))})
}

func (n *inGroups) Type() column.Type { return column.Boolean }
func (n *inGroups) Clone() Node {
	return &inGroups{groups: n.groups.Clone(), names: cloneAll(n.names), keep: make([]textReader, len(n.names))}
}
func (n *inGroups) operands() []Node { return append([]Node{n.groups}, n.names...) }
func (n *inGroups) own() trait       { return 0 }

func (n *inGroups) Eval(env *Env, in *column.Batch) (*column.Vector, error) {
	groups, err := n.groups.Eval(env, in)
	if err != nil {
		return nil, err
	}
	names, err := evalTexts(env, in, n.names, n.keep)
	if err != nil {
		return nil, err
	}
	constant := groups.Const || groups.Type == column.Null
	for _, x := range names {
		constant = constant && len(x.values) == 1
	}
	rows := in.Len
	if constant {
		rows = min(rows, 1)
	}
	list := n.list.read(groups)
	n.out.header(column.Boolean, in.Len, constant)
	dst := n.out.makeInts(rows)
	for i := range dst {
		dst[i] = 0
		if isNull(list.nulls, i) {
			continue
		}
		for _, x := range names {
			if !isNull(x.nulls, i) && contains(at(list.values, i), at(x.values, i)) {
				dst[i] = 1
				break
			}
		}
	}
	return &n.out.v, nil
}

// contains reports whether a list separated by semicolons holds a name.
func contains(list, name string) bool {
	for member := range strings.SplitSeq(list, ";") {
		if member == name {
			return true
		}
	}
	return false
}

// jsonList is the text of a list in a column.
func jsonList(values []string) string {
	if values == nil {
		values = []string{}
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(values); err != nil {
		return "[]" // strings are always encoded
	}
	return strings.TrimSuffix(b.String(), "\n")
}
