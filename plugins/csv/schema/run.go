package schema

import (
	"fmt"
	"slices"
)

// Run takes one file through a program. It is not safe for use by several goroutines.
type Run struct {
	program *Program
	file    string
	history history
	globals []value
	math    *object
	done    int      // statements of the program that ran
	setting bool     // they are running
	ready   [][]span // per chain its columns, then its rows; nil until it is used

	// The cell in work.
	row     Row
	number  int // of the row
	column  int
	loaded  int // column of active, 0 = none
	active  string
	rowText string
	hasText bool
	chain   *chain
	frame   *frame
	stack   []value // arguments of the calls in work
	at      int     // of the call in work
	steps   int     // left
	made    int     // bytes
	unheld  int     // bytes made since the variables were measured
	calls   int
	joining int
	result  value // of the function that returns
	fault   *Fault

	emit    func(*Command) bool
	command Command
	begun   bool
	skip    bool // the command lacks a value
	stopped bool // emit wants no more of the row
}

// Start begins a file; its name may be empty.
func (p *Program) Start(file string) *Run {
	r := &Run{program: p, file: file, history: history{needs: p.needs}, globals: make([]value, p.globals), ready: make([][]span, len(p.chains)), math: newMath()}
	for _, f := range p.functions {
		r.globals[f.slot] = functionOf(f.code, nil)
	}
	return r
}

// Pass counts a row that could not be cut into cells.
func (r *Run) Pass() {
	r.number++
	r.history.add(r.number, nil)
}

// Row takes the next row, hands out the commands that it becomes, and reports whether a chain visited it. A row whose cells are all empty counts, but is not visited.
// After emit returned false nothing more of the row is visited. Commands are valid during the call of emit.
func (r *Run) Row(row Row, emit func(*Command) bool) (visited bool, f *Fault) {
	r.number++
	r.row, r.emit, r.hasText, r.fault, r.stopped = row, emit, false, nil, false
	if !isEmpty(row) {
		for _, c := range r.program.chains {
			visited = r.visit(c) || visited
			if r.fault != nil || r.stopped {
				break
			}
		}
	}
	r.history.add(r.number, row)
	r.row = nil
	if r.fault == nil && r.unheld > maxHeld {
		r.measure()
	}
	return visited, r.fault
}

func isEmpty(row Row) bool {
	for column := range row.Size() {
		if row.Cell(column+1) != "" {
			return false
		}
	}
	return true
}

// visit runs a chain for the cells of the row that it selects.
func (r *Run) visit(c *chain) (visited bool) {
	r.chain = c
	spans := r.ready[c.place]
	if spans == nil {
		r.begin(1)
		if spans = r.spans(c); spans == nil {
			return false
		}
	}
	columns, rows := spans[:len(c.selects)], spans[len(c.selects):]
	for _, s := range rows {
		if !s.has(r.number) {
			return false
		}
	}
	narrow, several := 0, false
	for i, s := range columns {
		if s != everything {
			several = columns[narrow] != everything && narrow != i
			narrow = i
		}
	}
	size := r.row.Size()
	cells := columns[narrow].within(size)
	for column := cells.from; column <= cells.to; column += cells.step {
		if several && slices.ContainsFunc(columns, func(s span) bool { return !s.within(size).has(column) }) {
			continue
		}
		visited = true
		r.begin(column)
		r.run(c.ops)
		r.flush()
		if r.fault != nil || r.stopped {
			break
		}
	}
	return visited
}

// begin sets up the visit of a cell.
func (r *Run) begin(column int) {
	r.column, r.loaded = column, 0
	r.steps, r.made = maxSteps, 0
	r.frame, r.stack, r.calls, r.joining = nil, r.stack[:0], 0, 0
	r.begun, r.skip = false, false
}

// spans reads the selections of a chain, once per file.
func (r *Run) spans(c *chain) []span {
	all := make([]span, 2*len(c.selects))
	for i := range c.selects {
		s, ok := r.selection(&c.selects[i])
		if !ok {
			r.fault.Final = true
			return nil
		}
		all[i], all[len(c.selects)+i] = s.columns, s.rows
	}
	r.ready[c.place] = all
	return all
}

func (r *Run) selection(s *selected) (selection, bool) {
	if s.text == nil {
		return s.selection, true
	}
	text := r.text(s.text.eval(r))
	found, reason := parseSelection(text)
	if reason != "" {
		r.failAt(s.at, "%s", reason)
	}
	return found, r.fault == nil
}

// run calls the functions of a chain. Those behind forEach run once for each of its cells.
func (r *Run) run(ops []op) {
	for i := range ops {
		o := &ops[i]
		r.at = o.at
		if !r.spend(1) || r.stopped {
			return
		}
		switch {
		case o.do == opFilter:
			if !o.args[0].eval(r).truth() {
				return
			}
		case o.do == opAdd:
			r.flush()
			r.command = Command{Kind: o.kind, Column: r.column, Keys: r.command.Keys[:0], Tags: r.command.Tags[:0]}
			r.begun, r.skip = true, false
			if o.kind == Series && !o.hasValue {
				r.command.Value.Text = r.cellText()
				r.skip = r.command.Value.Text == ""
			}
			if r.skip && !o.more {
				return
			}
		case o.do == opEach:
			r.each(o, ops[i+1:])
			return
		case !r.skip:
			r.apply(o)
		}
	}
}

func (r *Run) each(o *op, rest []op) {
	s, ok := r.selection(&o.each)
	if !ok {
		return
	}
	if s.rows != everything {
		r.failAt(o.each.at, "forEach takes columns of the row: '#col=2-*'")
		return
	}
	outer := r.column
	cells := s.columns.within(r.row.Size())
	for column := cells.from; column <= cells.to && r.fault == nil && !r.stopped; column += cells.step {
		r.column = column
		r.run(rest)
	}
	r.column = outer
}

// apply evaluates a function that sets a field of the command.
func (r *Run) apply(o *op) {
	v := o.args[0].eval(r)
	c := &r.command
	switch o.do {
	case opEntity:
		c.Entity = r.field(v)
	case opTime:
		c.Time = r.scalar(v)
	case opMetric:
		c.Metric = r.field(v)
	case opValue:
		c.Value = r.scalar(v)
		r.skip = c.Value.Empty()
	case opType:
		c.Type = r.field(v)
	case opText:
		c.Text = r.field(v)
	case opAppend:
		between := r.field(o.args[1].eval(r))
		more := r.field(v)
		if c.Text != "" && more != "" {
			more = between + more
		}
		c.Text = r.newText(c.Text + more)
	case opKey:
		c.Keys = r.put(o, c.Keys, v)
	case opTag:
		c.Tags = r.put(o, c.Tags, v)
	}
}

// put sets a tag or a key; without a value there is none.
func (r *Run) put(o *op, pairs []Pair, name value) []Pair {
	p := Pair{r.field(name), r.field(o.args[1].eval(r))}
	if p.Value == "" {
		return pairs
	}
	if p.Name == "" {
		r.failAt(o.at, "%q has no name", clip(p.Value))
		return pairs
	}
	if len(pairs) >= maxPairs {
		r.failAt(o.at, "a command has more than %d tags or keys", maxPairs)
		return pairs
	}
	return append(pairs, p)
}

// flush hands out the command in work.
func (r *Run) flush() {
	if r.begun && !r.skip && r.fault == nil && !r.stopped {
		r.stopped = !r.emit(&r.command)
	}
	r.begun = false
}

// field converts what a function of a chain takes; what stands for nothing is empty.
func (r *Run) field(v value) string {
	if v.none() {
		return ""
	}
	return r.text(v)
}

func (r *Run) scalar(v value) Scalar {
	if v.kind == number {
		return Scalar{Number: v.number, IsNumber: true}
	}
	return Scalar{Text: r.field(v)}
}

// cellText is the text of the active cell.
func (r *Run) cellText() string {
	if r.loaded != r.column {
		r.loaded, r.active = r.column, ""
		if r.column <= r.row.Size() {
			r.active = r.row.Cell(r.column)
		}
	}
	return r.active
}

// setUp runs the statements of the program before the chain in work when the first variable is used: programs read rows there that come after the beginning.
func (r *Run) setUp() {
	if r.setting || r.done >= r.chain.before {
		return
	}
	r.setting = true
	inner := r.frame
	r.frame = nil
	for ; r.done < r.chain.before && r.fault == nil; r.done++ {
		r.program.statements[r.done].exec(r)
	}
	if r.fault != nil {
		r.fault.Final = true
	}
	r.frame, r.setting = inner, false
}

// spend takes steps and reports whether evaluation goes on. It is in every node, so that it is kept small.
func (r *Run) spend(steps int) bool {
	r.steps -= steps
	return r.steps >= 0 && r.fault == nil || r.exhausted()
}

func (r *Run) exhausted() bool {
	if r.fault == nil {
		r.failAt(r.at, "the program takes more than %d steps for one cell", maxSteps)
		r.fault.Final = true
	}
	return false
}

// bytesPerStep makes long texts cost what they take to copy.
const bytesPerStep = 64

// reads makes an operand or an argument that is a long text cost what it takes to look through it.
func (r *Run) reads(v value) {
	if v.kind == text {
		r.steps -= len(v.text) / bytesPerStep
	}
}

// took counts bytes that the program makes.
func (r *Run) took(bytes int) bool {
	r.made += bytes
	r.unheld += bytes
	if r.fault == nil && r.made > maxMade {
		r.failAt(r.at, "the program makes more than %d bytes of texts and arrays for one cell", maxMade)
		r.fault.Final = true
	}
	return r.spend(bytes / bytesPerStep)
}

// newValue returns a text that the program made.
func (r *Run) newValue(s string) value { return textOf(r.newText(s)) }

// newText counts a text that the program made.
func (r *Run) newText(s string) string {
	if len(s) > maxText {
		r.fail("a text grows longer than %d bytes", maxText)
		return ""
	}
	if !r.took(len(s)) {
		return ""
	}
	return s
}

// fail notes a fault at the call in work.
func (r *Run) fail(format string, args ...any) { r.failAt(r.at, format, args...) }

// failAt notes the first fault of a row.
func (r *Run) failAt(at int, format string, args ...any) {
	if r.fault != nil {
		return
	}
	line, column := position(r.program.source, at)
	r.fault = &Fault{Column: r.column, Reason: fmt.Sprintf("schema line %d, column %d: ", line, column) + fmt.Sprintf(format, args...)}
}

// valueBytes is what a value takes in an array.
const valueBytes = 48

// measure adds up what the variables hold, through all that they refer to.
func (r *Run) measure() {
	r.unheld = 0
	held := 0
	seen := map[*object]bool{}
	frames := map[*frame]bool{}
	work := append([]value(nil), r.globals...)
	for len(work) > 0 && held <= maxHeld {
		v := work[len(work)-1]
		work = work[:len(work)-1]
		held += valueBytes + len(v.text)
		if v.ref == nil || seen[v.ref] {
			continue
		}
		seen[v.ref] = true
		work = append(work, v.ref.items...)
		for name, member := range v.ref.members {
			held += len(name) + valueBytes
			work = append(work, member)
		}
		if v.ref.code == nil {
			continue
		}
		for f := v.ref.code.around; f != nil && !frames[f]; f = f.around {
			frames[f] = true
			work = append(work, f.vars...)
		}
	}
	if held > maxHeld {
		r.failAt(0, "the variables of the program hold more than %d bytes", maxHeld)
		r.fault.Final = true
	}
}
