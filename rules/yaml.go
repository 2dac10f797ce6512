package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/nearest"
)

// reader collects the faults of one document while its fields are read.
type reader struct {
	src      *source
	document int
	name     string
	faults   *Faults
}

// node is one YAML value with the path that leads to it. A zero node is an absent field.
type node struct {
	r    *reader
	path string
	ast  ast.Node
}

// maxFileSize bounds one rule file; it holds some thousand rules.
const maxFileSize = 1 << 20

// documents parses one file. A file that is not YAML gives one fault and nothing else.
func documents(src *source, text []byte, faults *Faults) []node {
	at := place{src: src, document: 1, line: 1, column: 1}
	if len(text) > maxFileSize {
		*faults = append(*faults, at.fault("file is larger than %d bytes: split it", maxFileSize))
		return nil
	}
	if line, err := checkYAML(src.lines); err != nil {
		at.line = line
		*faults = append(*faults, at.fault("%s", err))
		return nil
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		*faults = append(*faults, syntaxFault(at, err))
		return nil
	}
	var docs []node
	for i, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.NullType || doc.Body.Type() == ast.CommentType {
			continue
		}
		docs = append(docs, node{r: &reader{src: src, document: i + 1, faults: faults}, ast: doc.Body})
	}
	return docs
}

// Bounds on the shape of a rule file. The parser recurses for every level and keeps the path of each, so that half a megabyte of `- - - -` takes many
// gigabytes.
const (
	maxLine      = 32 << 10 // an expression has at most 16 KB
	maxIndent    = 400
	maxDashes    = 100 // list items that begin on one line
	maxDepth     = 1000
	maxDocuments = 1000
)

// checkYAML refuses files that would take the parser too much, before it sees them. Quotes are not looked at: what opens a quote depends on where it stands.
func checkYAML(lines []string) (line int, err error) {
	depth, docs := 0, 0
	for i, l := range lines {
		indent := len(l) - len(strings.TrimLeft(l, " \t"))
		switch {
		case len(l) > maxLine:
			return i + 1, fmt.Errorf("line is longer than %d bytes", maxLine)
		case indent > maxIndent:
			return i + 1, fmt.Errorf("line is indented by more than %d", maxIndent)
		case strings.Count(l, "- ")+strings.Count(l, "? ")+strings.Count(l, "-\t")+strings.Count(l, "?\t") > maxDashes:
			return i + 1, fmt.Errorf("line has more than %d list items or keys", maxDashes)
		}
		if strings.HasPrefix(l, "---") {
			docs++
		}
		depth = max(depth, 0) + strings.Count(l, "[") + strings.Count(l, "{") - strings.Count(l, "]") - strings.Count(l, "}")
		deepest := depth
		for _, c := range l {
			if c == ']' || c == '}' {
				deepest++
			}
		}
		if deepest > maxDepth || docs > maxDocuments {
			return i + 1, fmt.Errorf("file nests deeper than %d or holds more than %d documents", maxDepth, maxDocuments)
		}
	}
	return 0, nil
}

func syntaxFault(at place, err error) Fault {
	var e yaml.Error
	if errors.As(err, &e) {
		if tk := e.GetToken(); tk != nil && tk.Position != nil {
			at.line, at.column = tk.Position.Line, tk.Position.Column
		}
		return at.fault("%s", e.GetMessage())
	}
	return at.fault("%s", err)
}

func (n node) present() bool { return n.ast != nil && n.ast.Type() != ast.NullType }

func (n node) place() place {
	p := place{src: n.r.src, document: n.r.document, name: n.r.name, field: n.path, line: 1, column: 1}
	if n.ast == nil {
		return p
	}
	tk := n.ast.GetToken()
	if m, ok := n.ast.(*ast.MappingNode); ok && len(m.Values) > 0 && !m.IsFlowStyle {
		tk = m.Values[0].Key.GetToken()
	}
	if tk != nil && tk.Position != nil {
		p.line, p.column = tk.Position.Line, tk.Position.Column
	}
	switch {
	case n.ast.Type() == ast.LiteralType && tk != nil && strings.HasPrefix(tk.Value, ">"):
		p.style = folded
	case n.ast.Type() == ast.LiteralType:
		p.style = literal
	case tk != nil && (tk.Type == token.SingleQuoteType || tk.Type == token.DoubleQuoteType):
		p.style = quoted
	}
	return p
}

func (n node) fault(format string, args ...any) {
	*n.r.faults = append(*n.r.faults, n.place().fault(format, args...))
}

// fields returns the values of a mapping and reports keys that are not in known. No known keys means that any key is allowed.
func (n node) fields(known ...string) map[string]node {
	out := map[string]node{}
	for _, kv := range n.pairs() {
		key := kv.key
		if len(known) > 0 && !slices.Contains(known, key) {
			kv.keyNode.fault("unknown key %q%s", key, suggest(key, known))
			continue
		}
		if _, twice := out[key]; twice {
			kv.keyNode.fault("key %q is set twice", key)
			continue
		}
		out[key] = kv.value
	}
	return out
}

type pair struct {
	key     string
	keyNode node
	value   node
}

// pairs returns the entries of a mapping in file order.
func (n node) pairs() []pair {
	if !n.present() {
		return nil
	}
	var values []*ast.MappingValueNode
	switch m := n.ast.(type) {
	case *ast.MappingNode:
		values = m.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{m}
	default:
		n.fault("must be a map of keys and values")
		return nil
	}
	out := make([]pair, 0, len(values))
	for _, v := range values {
		key := v.Key.GetToken().Value
		path := key
		if n.path != "" {
			path = n.path + "." + key
		}
		out = append(out, pair{key, node{n.r, path, v.Key}, node{n.r, path, v.Value}})
	}
	return out
}

// items returns the elements of a list; a single scalar counts as a list of one.
func (n node) items() []node {
	if !n.present() {
		return nil
	}
	seq, ok := n.ast.(*ast.SequenceNode)
	if !ok {
		if _, scalar := n.ast.(ast.ScalarNode); scalar {
			return []node{n}
		}
		n.fault("must be a list")
		return nil
	}
	out := make([]node, len(seq.Values))
	for i, v := range seq.Values {
		out[i] = node{n.r, fmt.Sprintf("%s[%d]", n.path, i), v}
	}
	return out
}

// text returns a scalar as it is written.
func (n node) text() string {
	if !n.present() {
		return ""
	}
	switch v := n.ast.(type) {
	case *ast.StringNode:
		return v.Value
	case *ast.LiteralNode:
		return v.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NanNode, *ast.InfinityNode:
		return v.GetToken().Value
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		n.fault("YAML anchors, aliases and tags are not supported")
	default:
		n.fault("must be a text")
	}
	return ""
}

// source returns a scalar together with its place.
func (n node) source() Text {
	if !n.present() {
		return Text{}
	}
	text := n.text()
	at := n.place()
	if at.style == literal || at.style == folded {
		text = strings.TrimRight(text, "\n")
	}
	return Text{text, at}
}

func (n node) bool(fallback bool) bool {
	if !n.present() {
		return fallback
	}
	switch strings.ToLower(n.text()) {
	case "true", "yes", "on":
		return true
	case "false", "no", "off":
		return false
	}
	n.fault("must be true or false")
	return fallback
}

// limits bound an integer field.
type limits struct{ low, high, fallback int }

func (n node) int(l limits) int {
	if !n.present() {
		return l.fallback
	}
	var v int
	if _, err := fmt.Sscanf(n.text(), "%d", &v); err != nil || v < l.low || v > l.high {
		n.fault("must be a whole number from %d to %d", l.low, l.high)
		return l.fallback
	}
	return v
}

func (n node) interval() dates.Interval {
	if !n.present() || n.text() == "0" {
		return dates.Interval{}
	}
	v, err := dates.ParseInterval(n.text())
	if err != nil {
		n.fault("%s", err)
	}
	return v
}

func (n node) duration(fallback time.Duration) time.Duration {
	if !n.present() {
		return fallback
	}
	return time.Duration(n.interval().NominalMillis()) * time.Millisecond
}

func (n node) texts() []string {
	var out []string
	for _, item := range n.items() {
		out = append(out, item.text())
	}
	return out
}

func (n node) lowered() []string {
	out := n.texts()
	for i := range out {
		out[i] = strings.ToLower(out[i])
	}
	return out
}

// oneOf reads a text that must be one of the allowed ones, in lower case.
func (n node) oneOf(fallback string, allowed ...string) string {
	if !n.present() {
		return fallback
	}
	v := strings.ToLower(n.text())
	if !slices.Contains(allowed, v) {
		n.fault("%q is not one of %s%s", v, strings.Join(allowed, ", "), suggest(v, allowed))
		return fallback
	}
	return v
}

func (n node) tags() core.Tags {
	var tags core.Tags
	for _, kv := range n.pairs() {
		tags = append(tags, core.Tag{Name: strings.ToLower(kv.key), Value: kv.value.text()})
	}
	return tags.Normal()
}

func (n node) params() []Param {
	if !n.present() {
		return nil
	}
	out := []Param{}
	for _, kv := range n.pairs() {
		out = append(out, Param{kv.key, kv.value.source()})
	}
	return out
}

// tree decodes any YAML value; text leaves become Text, numbers and booleans stay what they are.
func (n node) tree() any {
	if !n.present() {
		return nil
	}
	switch v := n.ast.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		m := map[string]any{}
		for _, kv := range n.pairs() {
			m[kv.key] = kv.value.tree()
		}
		return m
	case *ast.SequenceNode:
		list := make([]any, 0, len(v.Values))
		for _, item := range n.items() {
			list = append(list, item.tree())
		}
		return list
	case *ast.IntegerNode:
		return v.GetValue()
	case *ast.FloatNode:
		return v.Value
	case *ast.BoolNode:
		return v.Value
	}
	return n.source()
}

// suggest names the known word that is nearest to a misspelt one.
func suggest(word string, known []string) string {
	if meant := nearest.Name(word, known, 3); meant != "" {
		return fmt.Sprintf(", did you mean %q?", meant)
	}
	return ""
}

// scalarText returns a scalar as written, "" for lists and maps, without a fault.
func scalarText(n node) string {
	if _, ok := n.ast.(ast.ScalarNode); !ok {
		return ""
	}
	return n.text()
}
