// Package meter rewrites a WebAssembly module so that it cannot run for long without asking its host: every loop header, and
// the entry of every function that calls, pays one unit of fuel, and one more for each 1024 instructions up to the next place that pays, but a function that begins with a
// loop pays only there, and a long function without calls pays too; bulk memory and table operations pay a 256th of their
// length; a call of the host pays all there is. When the fuel is gone the module calls an imported function, which checks the
// deadline and returns new fuel.
//
// The rewrite adds one type, one function import, one global, and one local in each function that pays. A function index at
// or above the number of imported functions moves by one; everything else keeps its place.
//
// The pass also bounds what the size of a module does not: table entries and locals, which cost a runtime memory that the
// module does not have to contain. It does not validate code. Whoever runs the result validates the original first: an index
// that is out of range there could otherwise name what the pass appends, though the pass refuses those too.
package meter

import (
	"errors"
	"fmt"
)

// Options name the import that grants fuel.
type Options struct {
	Module, Name string // () -> i32
	Fuel         int32  // steps before the first call
}

// Import is a thing the module asks for.
type Import struct {
	Module, Name string
	Kind         byte // 0 function, 1 table, 2 memory, 3 global
}

// Export is a thing the module offers.
type Export struct {
	Name string
	Kind byte // as in Import
}

// Report says what the pass saw and did.
type Report struct {
	Imports              []Import
	Exports              []Export
	Functions            int // defined in the module
	Loops, Entries, Bulk int // places that pay
	HostCalls            int // places that pay all
}

// Bounds on what costs more than its bytes in the module. They are those of web browsers, except for tables: a Go module of
// 16 MB has some 50,000 entries.
const (
	maxLocals       = 50_000
	maxValues       = 1_000 // parameters, or results, of one type
	maxTableEntries = 1 << 20
	maxTypes        = 1_000_000
)

// ErrModule is wrapped by every error of Rewrite.
var ErrModule = errors.New("unusable wasm module")

// Section ids of the binary format, in the order in which sections must appear.
const (
	sectionCustom    = 0
	sectionType      = 1
	sectionImport    = 2
	sectionFunction  = 3
	sectionTable     = 4
	sectionMemory    = 5
	sectionGlobal    = 6
	sectionExport    = 7
	sectionStart     = 8
	sectionElement   = 9
	sectionDataCount = 12
	sectionCode      = 10
	sectionData      = 11
)

var sectionOrder = [...]byte{sectionType, sectionImport, sectionFunction, sectionTable, sectionMemory, sectionGlobal, sectionExport,
	sectionStart, sectionElement, sectionDataCount, sectionCode, sectionData}

const header = "\x00asm\x01\x00\x00\x00"

// rewriter holds the counts of the original module that every index is checked against.
type rewriter struct {
	options  Options
	report   Report
	sections map[byte][]byte
	names    []byte // content of the name section, nil without one

	params            []uint32 // parameters of each type
	functions         []uint32 // type of each defined function
	importedFunctions uint32
	globals           uint32 // imported and defined; also the index of the fuel
	entries           uint64 // of all tables
	out               []byte
}

// Rewrite returns the metered form of module. It never panics, whatever the bytes.
func Rewrite(module []byte, options Options) ([]byte, *Report, error) {
	r := &rewriter{options: options, sections: make(map[byte][]byte)}
	for _, step := range []func([]byte) error{r.split, r.readTypes, r.readImports, r.readCounts, r.write} {
		if err := step(module); err != nil {
			return nil, nil, fmt.Errorf("%w: %w", ErrModule, err)
		}
	}
	return r.out, &r.report, nil
}

// split finds the sections. Custom sections are dropped, but for the names of functions, which stack traces show.
func (r *rewriter) split(module []byte) error {
	if len(module) < len(header) || string(module[:len(header)]) != header {
		return errors.New("it does not begin with the wasm header of version 1")
	}
	in := &input{b: module, pos: len(header)}
	at := 0 // in sectionOrder
	for in.more() {
		id := in.byte()
		content := in.bytes(in.u32())
		if in.err != nil {
			return in.err
		}
		if id == sectionCustom {
			custom := &input{b: content}
			if string(custom.bytes(custom.u32())) == "name" && custom.err == nil {
				r.names = content[custom.pos:]
			}
			continue
		}
		for at < len(sectionOrder) && sectionOrder[at] != id {
			at++
		}
		if at == len(sectionOrder) {
			return fmt.Errorf("section %d is unknown, repeated or out of order", id)
		}
		at++
		r.sections[id] = content
	}
	return nil
}

func (r *rewriter) readTypes([]byte) error {
	in := &input{b: r.sections[sectionType]}
	n := in.count()
	if n > maxTypes {
		return fmt.Errorf("%d types, the limit is %d", n, maxTypes)
	}
	for range n {
		if form := in.byte(); form != 0x60 && in.err == nil {
			return fmt.Errorf("type form %#x is not a function", form)
		}
		params := in.u32()
		in.bytes(params)
		results := in.u32()
		in.bytes(results)
		if params > maxValues || results > maxValues {
			return fmt.Errorf("a type of %d parameters and %d results, the limit is %d", params, results, maxValues)
		}
		r.params = append(r.params, params)
	}
	return in.end("types")
}

func (r *rewriter) readImports([]byte) error {
	in := &input{b: r.sections[sectionImport]}
	for range in.count() {
		i := Import{Module: string(in.bytes(in.u32())), Name: string(in.bytes(in.u32())), Kind: in.byte()}
		switch i.Kind {
		case 0:
			in.u32()
			r.importedFunctions++
		case 1:
			in.byte()
			r.entries += uint64(in.limits())
		case 2:
			in.limits()
		case 3:
			in.bytes(2)
			r.globals++
		default:
			in.fail(fmt.Errorf("import of unknown kind %d", i.Kind))
		}
		if in.err != nil {
			break
		}
		r.report.Imports = append(r.report.Imports, i)
	}
	return in.end("imports")
}

// readCounts reads what the code section is checked against.
func (r *rewriter) readCounts([]byte) error {
	in := &input{b: r.sections[sectionFunction]}
	for range in.count() {
		t := in.u32()
		if in.err == nil && uint64(t) >= uint64(len(r.params)) {
			return fmt.Errorf("function of type %d, there are %d", t, len(r.params))
		}
		r.functions = append(r.functions, t)
	}
	if err := in.end("functions"); err != nil {
		return err
	}
	r.report.Functions = len(r.functions)
	in = &input{b: r.sections[sectionTable]}
	for range in.count() {
		in.byte()
		r.entries += uint64(in.limits())
	}
	if err := in.end("tables"); err != nil {
		return err
	}
	if r.entries > maxTableEntries {
		return fmt.Errorf("tables of %d entries, the limit is %d", r.entries, maxTableEntries)
	}
	if b := r.sections[sectionGlobal]; b != nil {
		in = &input{b: b}
		r.globals += in.count()
		return in.err
	}
	return nil
}

// function maps the index of a function to its place behind the fuel import.
func (r *rewriter) function(in *input) uint32 {
	i := in.u32()
	if in.err == nil && uint64(i) >= uint64(r.importedFunctions)+uint64(len(r.functions)) {
		in.fail(fmt.Errorf("function %d, there are %d", i, int(r.importedFunctions)+len(r.functions)))
	}
	if i >= r.importedFunctions {
		i++
	}
	return i
}

// reference maps the index of a function that something points to. Imported ones are refused: a call through a table would
// not pay for them.
func (r *rewriter) reference(in *input) uint32 {
	i := r.function(in)
	if in.err == nil && i < r.importedFunctions {
		in.fail(fmt.Errorf("reference to imported function %d: wrap it in a function of the module", i))
	}
	return i
}

// write puts the sections out in order, each with what the pass adds.
func (r *rewriter) write([]byte) error {
	r.out = append(make([]byte, 0, 1<<16), header...)
	writers := map[byte]func(*input) ([]byte, error){
		sectionType: r.writeTypes, sectionImport: r.writeImports, sectionGlobal: r.writeGlobals, sectionExport: r.writeExports,
		sectionStart: r.writeStart, sectionElement: r.writeElements, sectionCode: r.writeCode,
	}
	for _, id := range sectionOrder {
		content, present := r.sections[id]
		rewrite := writers[id]
		adds := id == sectionType || id == sectionImport || id == sectionGlobal
		if !present && !adds {
			continue
		}
		if rewrite != nil {
			var err error
			if content, err = rewrite(&input{b: content}); err != nil {
				return err
			}
		}
		r.out = appendSection(r.out, id, content)
	}
	if names := r.writeNames(); names != nil {
		r.out = appendSection(r.out, sectionCustom, names)
	}
	return nil
}

// writeTypes appends the type of the fuel import, () -> i32.
func (r *rewriter) writeTypes(in *input) ([]byte, error) {
	n := in.count()
	out := append(appendU32(nil, n+1), in.rest()...)
	return append(out, 0x60, 0, 1, typeI32), in.err
}

// writeImports appends the fuel import behind the others: it is the last imported function.
func (r *rewriter) writeImports(in *input) ([]byte, error) {
	n := in.count()
	out := append(appendU32(nil, n+1), in.rest()...)
	out = appendName(out, r.options.Module)
	out = appendName(out, r.options.Name)
	return appendU32(append(out, 0), uint32(len(r.params))), in.err
}

// writeGlobals appends the fuel, a mutable i32.
func (r *rewriter) writeGlobals(in *input) ([]byte, error) {
	n := in.count()
	out := appendU32(nil, n+1)
	for range n {
		out = append(out, in.bytes(2)...)
		out = r.constant(in, out)
		if in.err != nil {
			break
		}
	}
	out = append(out, typeI32, 1, opI32Const)
	out = append(appendS32(out, r.options.Fuel), opEnd)
	return out, in.end("globals")
}

func (r *rewriter) writeExports(in *input) ([]byte, error) {
	n := in.count()
	out := appendU32(nil, n)
	for range n {
		name := in.bytes(in.u32())
		kind := in.byte()
		var i uint32
		switch kind {
		case 0:
			i = r.function(in)
		case 3:
			i = r.global(in)
		default:
			i = in.u32()
		}
		if in.err != nil {
			break
		}
		out = appendU32(append(appendName(out, string(name)), kind), i)
		r.report.Exports = append(r.report.Exports, Export{string(name), kind})
	}
	return out, in.end("exports")
}

func (r *rewriter) writeStart(in *input) ([]byte, error) {
	out := appendU32(nil, r.function(in))
	return out, in.end("start")
}

// writeElements rewrites function indices in table segments. The flags are those of the binary format: bit 0 passive or
// declared, bit 1 explicit table or declared, bit 2 expressions instead of indices.
func (r *rewriter) writeElements(in *input) ([]byte, error) {
	n := in.count()
	out := appendU32(nil, n)
	for range n {
		flags := in.u32()
		if flags > 7 {
			in.fail(fmt.Errorf("element segment with flags %#x", flags))
		}
		out = appendU32(out, flags)
		if flags&1 == 0 {
			if flags&2 != 0 {
				out = appendU32(out, in.u32())
			}
			out = r.constant(in, out)
		}
		if flags&3 != 0 {
			out = append(out, in.byte()) // element kind or reference type
		}
		items := in.count()
		out = appendU32(out, items)
		for range items {
			if flags&4 != 0 {
				out = r.constant(in, out)
			} else {
				out = appendU32(out, r.reference(in))
			}
			if in.err != nil {
				return nil, in.end("elements")
			}
		}
	}
	return out, in.end("elements")
}

// writeNames returns a name section with the function names alone, nil when there is none that can be read: names serve
// stack traces, so a broken section is left out rather than refused.
func (r *rewriter) writeNames() []byte {
	in := &input{b: r.names}
	for in.more() {
		id := in.byte()
		content := in.bytes(in.u32())
		if id != 1 || in.err != nil {
			continue
		}
		fs := &input{b: content}
		n := fs.count()
		out := appendU32(nil, n)
		for range n {
			i := r.function(fs)
			name := fs.bytes(fs.u32())
			if fs.err != nil {
				return nil
			}
			out = appendName(appendU32(out, i), string(name))
		}
		return appendSection(appendName(nil, "name"), 1, out)
	}
	return nil
}
