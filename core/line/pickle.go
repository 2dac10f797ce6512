package line

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/command"
)

// Pickle reads one message of Graphite's binary protocol, a pickled list of (name, (seconds, value)), and appends its samples to a batch. Samples that are
// refused are passed to failed. Of the pickle language it knows what makes lists, tuples, texts and numbers, in the protocols 0 to 5; it
// has no opcode that names or calls anything, and what it allocates is bounded by the message. An error means that nothing was added.
func (p *Parser) Pickle(b *core.Batch, message []byte, failed func(error)) error {
	m := pickleMachine{data: string(message)}
	root, err := m.run()
	if err != nil {
		return err
	}
	if root.kind != listPickle && root.kind != tuplePickle {
		return refuse(command.BadSyntax, "pickle: a list is expected, not %s", root.kind)
	}
	for _, item := range root.items {
		if err := p.pickled(b, item); err != nil {
			failed(err)
		}
	}
	return nil
}

// pickled adds one (name, (seconds, value)).
func (p *Parser) pickled(b *core.Batch, item *pickle) error {
	if !item.pair() || item.items[0].kind != textPickle || !item.items[1].pair() {
		return refuse(command.BadSyntax, "pickle: (name, (seconds, value)) is expected")
	}
	at, v := item.items[1].items[0], item.items[1].items[1]
	n, ok := v.sample()
	if v.kind == textPickle && gap(v.text) || v.kind == numberPickle && math.IsInf(v.number.Value, 0) {
		n, ok = command.Number{Value: math.NaN()}, true
	}
	if !ok {
		return refuse(command.BadValue, "pickle: %s is not a number", v.kind)
	}
	when, ok := at.sample()
	if !ok || math.IsNaN(when.Value) {
		return refuse(command.BadTime, "pickle: %s is not a time", at.kind)
	}
	t := p.Received
	if when.Value != -1 {
		const most = float64(core.MaxTime / 1000)
		if when.Value < 0 || when.Value > most {
			return refuse(command.BadTime, "pickle: the time is outside 1970-01-01T00:00:00Z to 2106-02-07T06:59:59.999Z")
		}
		t = core.Time(when.Value) * 1000
	}
	if math.IsNaN(n.Value) {
		return nil // as in the plain form
	}
	return p.Mapping.add(b, item.items[0].text, t, n)
}

type pickleKind uint8

const (
	nonePickle pickleKind = iota
	markPickle
	listPickle
	tuplePickle
	textPickle
	numberPickle
)

func (k pickleKind) String() string {
	return [...]string{"None", "a mark", "a list", "a tuple", "a text", "a number"}[k]
}

// pickle is one object.
type pickle struct {
	kind   pickleKind
	text   string
	number command.Number
	items  []*pickle
}

func (v *pickle) pair() bool {
	return (v.kind == tuplePickle || v.kind == listPickle) && len(v.items) == 2
}

// sample reads a number; senders may send it as text.
func (v *pickle) sample() (command.Number, bool) {
	switch v.kind {
	case numberPickle:
		return v.number, !math.IsInf(v.number.Value, 0)
	case textPickle:
		return command.ParseNumber(v.text)
	}
	return command.Number{}, false
}

// pickleMachine is the stack machine of the pickle language. Each opcode takes at least one byte and makes at most one object, so that a message of n bytes
// makes at most n objects; objects are shared, never copied.
type pickleMachine struct {
	data  string
	pos   int
	stack []*pickle
	memo  map[uint64]*pickle
	fault error
}

// run executes a message up to its STOP.
func (m *pickleMachine) run() (*pickle, error) {
	m.memo = map[uint64]*pickle{}
	for m.fault == nil {
		at := m.pos
		op := m.bytes(1)
		if m.fault != nil {
			break
		}
		if op == "." {
			root := m.pop()
			return root, m.fault
		}
		if !m.constant(op[0]) && !m.structure(op[0]) && m.fault == nil {
			m.refuse("opcode 0x%02x at byte %d is not allowed: only lists, tuples, texts and numbers are read", op[0], at)
		}
	}
	return nil, m.fault
}

func (m *pickleMachine) refuse(format string, args ...any) {
	if m.fault == nil {
		m.fault = refuse(command.BadSyntax, "pickle: "+format, args...)
	}
}

// constant executes an opcode that pushes a text, a number or None; false for any other.
func (m *pickleMachine) constant(op byte) bool {
	switch op {
	case 'S':
		m.pushText(unquotePython(m.line()))
	case 'V':
		m.pushText(unescapePython(m.line()))
	case 'T', 'X', 'B':
		m.pushText(m.bytes(m.uint(4)))
	case 'U', 'C', 0x8c:
		m.pushText(m.bytes(m.uint(1)))
	case 0x8d, 0x8e:
		m.pushText(m.bytes(m.uint(8)))
	case 'I':
		m.pushNumber(m.line())
	case 'L':
		m.pushNumber(strings.TrimSuffix(m.line(), "L"))
	case 'F':
		m.pushFloat(m.line())
	case 'J':
		m.pushInt(int64(int32(m.uint(4))))
	case 'K':
		m.pushInt(int64(m.uint(1)))
	case 'M':
		m.pushInt(int64(m.uint(2)))
	case 'G':
		if raw := m.bytes(8); m.fault == nil {
			f := math.Float64frombits(binary.BigEndian.Uint64([]byte(raw)))
			m.push(&pickle{kind: numberPickle, number: command.Number{Value: f}})
		}
	case 0x8a:
		m.pushLong(m.bytes(m.uint(1)))
	case 0x8b:
		m.pushLong(m.bytes(m.uint(4)))
	case 0x88:
		m.pushInt(1)
	case 0x89:
		m.pushInt(0)
	case 'N':
		m.push(&pickle{})
	default:
		return false
	}
	return true
}

// structure executes an opcode that makes a list or tuple, or moves objects; false for any other.
func (m *pickleMachine) structure(op byte) bool {
	switch op {
	case 0x80: // protocol
		m.bytes(1)
	case 0x95: // frame
		m.bytes(8)
	case '(':
		m.push(&pickle{kind: markPickle})
	case ']':
		m.push(&pickle{kind: listPickle})
	case ')':
		m.push(&pickle{kind: tuplePickle})
	case 'l':
		m.push(&pickle{kind: listPickle, items: m.sinceMark()})
	case 't':
		m.push(&pickle{kind: tuplePickle, items: m.sinceMark()})
	case 0x85, 0x86, 0x87:
		m.tuple(int(op) - 0x84)
	case 'a':
		item := m.pop()
		m.extend(item)
	case 'e':
		m.extend(m.sinceMark()...)
	case 'p':
		m.put(m.index(m.line()))
	case 'q':
		m.put(m.uint(1))
	case 'r':
		m.put(m.uint(4))
	case 0x94:
		m.put(uint64(len(m.memo)))
	case 'g':
		m.get(m.index(m.line()))
	case 'h':
		m.get(m.uint(1))
	case 'j':
		m.get(m.uint(4))
	case '0':
		m.pop()
	case '1':
		m.sinceMark()
	case '2':
		m.push(m.top())
	default:
		return false
	}
	return true
}

// bytes takes n bytes.
func (m *pickleMachine) bytes(n uint64) string {
	if n > uint64(len(m.data)-m.pos) {
		m.refuse("the message ends in the middle of an object")
		return ""
	}
	text := m.data[m.pos : m.pos+int(n)]
	m.pos += int(n)
	return text
}

// uint takes a little-endian number.
func (m *pickleMachine) uint(size uint64) uint64 {
	n, raw := uint64(0), m.bytes(size)
	for i := range len(raw) {
		n |= uint64(raw[i]) << (8 * i)
	}
	return n
}

// line takes the text up to a line end.
func (m *pickleMachine) line() string {
	text, _, found := strings.Cut(m.data[m.pos:], "\n")
	if !found {
		m.refuse("the message ends in the middle of a line")
		return ""
	}
	m.pos += len(text) + 1
	return strings.TrimSuffix(text, "\r")
}

func (m *pickleMachine) index(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		m.refuse("bad index %q", excerpt(text))
	}
	return n
}

func (m *pickleMachine) push(v *pickle) {
	if m.fault == nil {
		m.stack = append(m.stack, v)
	}
}

func (m *pickleMachine) pushText(text string) { m.push(&pickle{kind: textPickle, text: text}) }

func (m *pickleMachine) pushInt(n int64) { m.pushNumber(strconv.FormatInt(n, 10)) }

// pushNumber pushes an integer with all of its digits.
func (m *pickleMachine) pushNumber(text string) {
	n, ok := command.ParseNumber(text)
	if !ok {
		m.refuse("bad number %q", excerpt(text))
	}
	m.push(&pickle{kind: numberPickle, number: n})
}

// pushFloat pushes a float: its text may be nan or inf.
func (m *pickleMachine) pushFloat(text string) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		m.refuse("bad number %q", excerpt(text))
	}
	m.push(&pickle{kind: numberPickle, number: command.Number{Value: f}})
}

// pushLong pushes a little-endian number in two's complement.
func (m *pickleMachine) pushLong(raw string) {
	if len(raw) > 8 {
		m.refuse("an integer of %d bytes: at most 8 are read", len(raw))
		return
	}
	n := int64(0)
	for i := range len(raw) {
		n |= int64(raw[i]) << (8 * i)
	}
	if shift := 64 - 8*len(raw); len(raw) > 0 && shift > 0 { // extend the sign
		n = n << shift >> shift
	}
	m.pushInt(n)
}

// noPickle stands in for what a faulty message does not have.
var noPickle pickle

func (m *pickleMachine) top() *pickle {
	if len(m.stack) == 0 {
		m.refuse("the stack is empty")
		return &noPickle
	}
	return m.stack[len(m.stack)-1]
}

func (m *pickleMachine) pop() *pickle {
	v := m.top()
	m.stack = m.stack[:max(len(m.stack)-1, 0)]
	return v
}

// sinceMark takes everything above the last mark, and the mark.
func (m *pickleMachine) sinceMark() []*pickle {
	for i := len(m.stack) - 1; i >= 0; i-- {
		if m.stack[i].kind == markPickle {
			items := append([]*pickle(nil), m.stack[i+1:]...)
			m.stack = m.stack[:i]
			return items
		}
	}
	m.refuse("no mark")
	return nil
}

func (m *pickleMachine) tuple(n int) {
	if len(m.stack) < n {
		m.refuse("the stack is empty")
		return
	}
	items := append([]*pickle(nil), m.stack[len(m.stack)-n:]...)
	m.stack = m.stack[:len(m.stack)-n]
	m.push(&pickle{kind: tuplePickle, items: items})
}

func (m *pickleMachine) extend(items ...*pickle) {
	list := m.top()
	if list.kind != listPickle {
		m.refuse("only lists can be extended")
		return
	}
	list.items = append(list.items, items...)
}

func (m *pickleMachine) put(index uint64) {
	v := m.top()
	if m.fault == nil {
		m.memo[index] = v
	}
}

func (m *pickleMachine) get(index uint64) {
	v, ok := m.memo[index]
	if !ok {
		m.refuse("no object %d", index)
	}
	m.push(v)
}

// unquotePython reads a string literal of Python 2.
func unquotePython(text string) string {
	if n := len(text); n >= 2 && (text[0] == '\'' || text[0] == '"') && text[n-1] == text[0] {
		text = text[1 : n-1]
	}
	return unescapePython(text)
}

// unescapePython reads the escapes of string literals; one that it does not know stays as it is.
func unescapePython(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		i++
		size := map[byte]int{'x': 2, 'u': 4, 'U': 8}[text[i]]
		code, err := strconv.ParseUint(text[i+1:min(len(text), i+1+size)], 16, 32)
		switch {
		case size > 0 && err == nil && text[i] == 'x':
			b.WriteByte(byte(code))
			i += size
		case size > 0 && err == nil:
			b.WriteRune(rune(code))
			i += size
		case strings.IndexByte(`\'"`, text[i]) >= 0:
			b.WriteByte(text[i])
		default:
			b.WriteByte('\\')
			b.WriteByte(text[i])
		}
	}
	return b.String()
}
