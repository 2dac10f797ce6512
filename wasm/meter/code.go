package meter

import (
	"errors"
	"fmt"
)

// Value type and opcodes that the pass writes or looks at.
const (
	typeI32 = 0x7f

	opBlock       = 0x02
	opLoop        = 0x03
	opIf          = 0x04
	opEnd         = 0x0b
	opBrTable     = 0x0e
	opCall        = 0x10
	opCallTable   = 0x11
	opSelectTyped = 0x1c
	opLocalGet    = 0x20
	opLocalSet    = 0x21
	opLocalTee    = 0x22
	opGlobalGet   = 0x23
	opGlobalSet   = 0x24
	opI32Const    = 0x41
	opI32LeS      = 0x4c
	opI32Sub      = 0x6b
	opI32ShrU     = 0x76
	opRefFunc     = 0xd2
	prefixBulk    = 0xfc
	prefixVector  = 0xfd
	emptyBlock    = 0x40
)

// body rewrites one function.
type body struct {
	*rewriter
	in       *input
	out      []byte
	locals   uint32 // parameters and declared; also the index of the added local
	depth    int    // of open blocks; the function itself is the first
	calls    bool
	pays     bool // some place uses the added local
	strayed  bool // an instruction that may leave the straight way into the function was read
	enters   bool // the straight way leads into a loop, whose payment is that of the entry
	straight int  // instructions so far of the innermost open loop, without those of closed loops in it; outside of all loops those of the function
	loops    []openLoop
	price    int  // place of the price in the payment written last
	constant bool // an initial value, where nothing can pay
}

func (r *rewriter) writeCode(in *input) ([]byte, error) {
	n := in.count()
	if in.err == nil && uint64(n) != uint64(len(r.functions)) {
		return nil, fmt.Errorf("code of %d functions, declared are %d", n, len(r.functions))
	}
	out := appendU32(make([]byte, 0, len(in.b)+len(in.b)/4), n)
	var buffers [2][]byte // of declarations and code, reused
	for i := range n {
		code := in.bytes(in.u32())
		if in.err != nil {
			break
		}
		head, tail, err := r.writeFunction(i, code, buffers)
		if err != nil {
			return nil, fmt.Errorf("function %d: %w", int(r.importedFunctions)+int(i), err)
		}
		buffers = [2][]byte{head, tail}
		out = appendU32(out, uint32(len(head)+len(tail)))
		out = append(append(out, head...), tail...)
	}
	return out, in.end("code")
}

// writeFunction returns the declarations with the payment at the entry, and the code, in two reused buffers.
func (r *rewriter) writeFunction(i uint32, code []byte, buffers [2][]byte) (head, tail []byte, err error) {
	in := &input{b: code}
	groups := in.count()
	start := in.pos
	locals := uint64(r.params[r.functions[i]])
	for range groups {
		locals += uint64(in.u32())
		in.byte()
	}
	if in.err != nil {
		return nil, nil, in.err
	}
	if locals > maxLocals {
		return nil, nil, fmt.Errorf("%d locals, the limit is %d", locals, maxLocals)
	}
	declared := code[start:in.pos]
	b := &body{rewriter: r, in: in, out: buffers[1][:0], locals: uint32(locals)}
	b.expression()
	if err := in.end("body"); err != nil {
		return nil, nil, err
	}
	head = buffers[0][:0]
	// A call costs the locals too, which are set to zero.
	cost := priceOf(b.straight + int(locals))
	pays := cost > 1 || b.calls && !b.enters
	if b.pays || pays {
		head = append(appendU32(head, groups+1), declared...)
		head = append(head, 1, typeI32)
	} else {
		head = append(appendU32(head, groups), declared...)
	}
	if pays {
		r.report.Entries++
		head = b.appendPayment(head, cost)
	}
	return head, b.out, nil
}

// stretch is how many instructions a step pays for. Ten thousand steps of the longest stretches take a few milliseconds, and nearly all loops that
// compilers write are shorter than one.
const stretch = 1024

// priceOf is the steps that a pass over instructions costs which hold no other payment.
func priceOf(instructions int) int { return 1 + instructions/stretch }

// openLoop is a loop whose end has not been read.
type openLoop struct {
	depth   int // of blocks outside of it
	price   int // place of its price in the output
	outside int // the instructions outside of it that were counted before
}

// openLoop writes the payment of a loop, whose price is known at its end.
func (b *body) openLoop() {
	b.out = b.appendPayment(b.out, 1)
	b.loops = append(b.loops, openLoop{depth: b.depth - 1, price: b.price, outside: b.straight})
	b.straight = 0
}

// closeLoop sets the price of a loop that has ended here.
func (b *body) closeLoop() {
	last := len(b.loops) - 1
	if last < 0 || b.loops[last].depth != b.depth {
		return
	}
	l := b.loops[last]
	b.loops = b.loops[:last]
	putPrice(b.out[l.price:], priceOf(b.straight))
	b.straight = l.outside
}

// priceBytes is the width of a price in the code: 2^20 steps are sixty times what fits a module of 16 MiB.
const priceBytes = 3

// putPrice writes a price as a signed LEB128 number of fixed width.
func putPrice(b []byte, price int) {
	price = min(price, 1<<20-1)
	b[0], b[1], b[2] = byte(price)&0x7f|0x80, byte(price>>7)&0x7f|0x80, byte(price>>14)&0x7f
}

// constant copies an initial value.
func (r *rewriter) constant(in *input, out []byte) []byte {
	b := &body{rewriter: r, in: in, out: out, constant: true}
	b.expression()
	return b.out
}

// expression copies instructions up to the end that closes the first of them.
func (b *body) expression() {
	b.depth = 1
	for b.depth > 0 && b.in.err == nil {
		start := b.in.pos
		op := b.in.byte()
		b.straight++
		switch {
		case op == opCall:
			b.call()
			continue
		case op == opRefFunc:
			b.out = appendU32(append(b.out, op), b.reference(b.in))
			continue
		case op == prefixBulk:
			b.bulk()
		default:
			b.plain(op)
		}
		if b.in.err != nil {
			return
		}
		b.out = append(b.out, b.in.b[start:b.in.pos]...)
		if op == opLoop && !b.strayed {
			b.enters = true
		}
		b.strayed = b.strayed || !isStraight(op)
		if op == opLoop && !b.constant {
			b.report.Loops++
			b.pays = true
			b.openLoop()
			continue
		}
	}
}

// isStraight reports whether an instruction does nothing but work on values and leads to the next one, whatever they are. Functions of Go
// begin with a few of those and a loop around all the rest: they would pay twice at each call.
func isStraight(op byte) bool {
	return op == opBlock || op == opLoop || op >= opLocalGet && op <= opGlobalSet || op >= opI32Const && op <= 0xc4
}

// call copies a call. A function of the host may take long whatever it costs the module, so that all fuel is paid for it: the
// deadline is checked before each.
func (b *body) call() {
	b.calls, b.strayed = true, true
	f := b.function(b.in)
	if f < b.importedFunctions {
		b.report.HostCalls++
		b.out = appendU32(append(b.out, opCall), b.importedFunctions)
		b.out = appendU32(append(b.out, opGlobalSet), b.globals)
	}
	b.out = appendU32(append(b.out, opCall), f)
}

// plain reads the operands of an instruction that is copied as it is.
func (b *body) plain(op byte) {
	in := b.in
	switch {
	case op == opBlock || op == opLoop || op == opIf:
		b.depth++
		in.skipNumber()
	case op == opEnd:
		b.depth--
		b.closeLoop()
	case op >= opLocalGet && op <= opLocalTee:
		b.local(in)
	case op == opGlobalGet || op == opGlobalSet:
		b.global(in)
	case op == 0x0c || op == 0x0d || op == 0x25 || op == 0x26 || op == 0x3f || op == 0x40 || op == 0x41 || op == 0x42 || op == 0xd0:
		in.skipNumber() // br br_if table.get table.set memory.size memory.grow i32.const i64.const ref.null
	case op == opBrTable:
		for range uint64(in.count()) + 1 {
			in.skipNumber()
		}
	case op == opCallTable:
		b.calls = true
		if t := in.u32(); in.err == nil && uint64(t) >= uint64(len(b.params)) {
			in.fail(fmt.Errorf("call of type %d, there are %d", t, len(b.params)))
		}
		in.skipNumber()
	case op == opSelectTyped:
		in.bytes(in.u32())
	case op >= 0x28 && op <= 0x3e:
		in.skipNumber()
		in.skipNumber() // alignment and offset
	case op == 0x43:
		in.bytes(4) // f32.const
	case op == 0x44:
		in.bytes(8) // f64.const
	case op == prefixVector:
		b.vector()
	case op <= 0x01 || op == 0x05 || op == 0x0f || op == 0x1a || op == 0x1b || op >= 0x45 && op <= 0xc4 || op == 0xd1:
		// no operands
	default:
		in.fail(fmt.Errorf("opcode %#x is not supported", op))
	}
}

func (b *body) local(in *input) {
	if i := in.u32(); in.err == nil && i >= b.locals {
		in.fail(fmt.Errorf("local %d, there are %d", i, b.locals))
	}
}

// global returns an index that cannot be the fuel's.
func (r *rewriter) global(in *input) uint32 {
	i := in.u32()
	if in.err == nil && i >= r.globals {
		in.fail(fmt.Errorf("global %d, there are %d", i, r.globals))
	}
	return i
}

// bulk reads an instruction with the prefix 0xfc. Those that touch as much memory as an operand says pay for it first; the
// instruction itself is copied behind the payment.
func (b *body) bulk() {
	in := b.in
	switch sub := in.u32(); {
	case sub <= 7: // saturating conversions
	case sub == 8 || sub == 10 || sub == 12 || sub == 14: // memory.init memory.copy table.init table.copy
		in.skipNumber()
		in.skipNumber()
		b.payForLength()
	case sub == 11 || sub == 17: // memory.fill table.fill
		in.skipNumber()
		b.payForLength()
	case sub == 9 || sub == 13 || sub == 16: // data.drop elem.drop table.size
		in.skipNumber()
	case sub == 15:
		in.fail(errors.New("table.grow is not allowed: a table lies in the memory of the host"))
	default:
		in.fail(fmt.Errorf("opcode 0xfc %d is not supported", sub))
	}
}

// vector reads an instruction with the prefix 0xfd.
func (b *body) vector() {
	in := b.in
	switch sub := in.u32(); {
	case sub <= 11 || sub == 92 || sub == 93:
		in.skipNumber()
		in.skipNumber()
	case sub == 12 || sub == 13:
		in.bytes(16)
	case sub >= 21 && sub <= 34:
		in.byte()
	case sub >= 84 && sub <= 91:
		in.skipNumber()
		in.skipNumber()
		in.byte()
	case sub > 0xff:
		in.fail(fmt.Errorf("opcode 0xfd %d is not supported", sub))
	}
}

// appendPayment writes: fuel -= price; if fuel <= 0 { fuel = tick() }.
func (b *body) appendPayment(out []byte, price int) []byte {
	out = append(out, opGlobalGet)
	out = appendU32(out, b.globals)
	out = append(out, opI32Const)
	b.price = len(out)
	out = append(out, make([]byte, priceBytes)...)
	putPrice(out[b.price:], price)
	out = append(out, opI32Sub, opLocalTee)
	out = appendU32(out, b.locals)
	out = append(out, opGlobalSet)
	out = appendU32(out, b.globals)
	return b.appendTick(out)
}

// appendTick writes: if local <= 0 { fuel = tick() }, where local holds the fuel.
func (b *body) appendTick(out []byte) []byte {
	out = append(out, opLocalGet)
	out = appendU32(out, b.locals)
	out = append(out, opI32Const, 0, opI32LeS, opIf, emptyBlock, opCall)
	out = appendU32(out, b.importedFunctions)
	out = append(out, opGlobalSet)
	out = appendU32(out, b.globals)
	return append(out, opEnd)
}

// payForLength writes: fuel -= length >> 8; if fuel <= 0 { fuel = tick() }, where length stays on top of the stack. The
// check follows at once: the longest operation costs 2^24, so that 128 of them in a row would turn the fuel positive.
func (b *body) payForLength() {
	if b.constant {
		return
	}
	b.report.Bulk++
	b.pays = true
	out := append(b.out, opLocalTee)
	out = appendU32(out, b.locals)
	out = append(out, opGlobalGet)
	out = appendU32(out, b.globals)
	out = append(out, opLocalGet)
	out = appendU32(out, b.locals)
	out = append(out, opI32Const, 8, opI32ShrU, opI32Sub, opGlobalSet)
	out = appendU32(out, b.globals)
	// The local held the length; from here on it holds the fuel.
	out = append(out, opGlobalGet)
	out = appendU32(out, b.globals)
	out = append(out, opLocalSet)
	out = appendU32(out, b.locals)
	b.out = b.appendTick(out)
}
