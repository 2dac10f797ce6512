// Package wasmtest makes guests for tests: small modules put together by hand, which misbehave in ways that no compiler
// would produce, and Go plugins built by the toolchain.
package wasmtest

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tidemark-db/tidemark/wasm/abi"
)

// Value types of WebAssembly.
const (
	I32 byte = 0x7f
	I64 byte = 0x7e
)

// Import is an imported function.
type Import struct {
	Module, Name    string
	Params, Results []byte
}

// Func is a defined function. Code comes without the final end.
type Func struct {
	Export          string
	Params, Results []byte
	Locals          uint32 // of type i32
	Code            []byte
}

// Module is what Bytes assembles. Function indices count the imports first.
type Module struct {
	Imports []Import
	Funcs   []Func
	Pages   uint32 // minimum of the memory; there is none when it is zero
	Data    string // at address DataAt
	Table   uint32 // minimum of the table; there is none when it is zero
	Start   bool   // the first function is the start function
}

// DataAt is where Module.Data lies.
const DataAt = 1024

// Bytes returns the binary form.
func (m Module) Bytes() []byte {
	var types, imports, funcs, exports, code []byte
	n := uint32(0)
	typeOf := func(params, results []byte) {
		types = append(types, 0x60)
		types = append(U32(types, uint32(len(params))), params...)
		types = append(U32(types, uint32(len(results))), results...)
		n++
	}
	for _, i := range m.Imports {
		imports = U32(append(name(name(imports, i.Module), i.Name), 0), n)
		typeOf(i.Params, i.Results)
	}
	exported := uint32(0)
	if m.Pages > 0 {
		exports = append(name(exports, abi.ExportMemory), 2, 0)
		exported++
	}
	for _, f := range m.Funcs {
		if f.Export != "" {
			exports = U32(append(name(exports, f.Export), 0), n)
			exported++
		}
		funcs = U32(funcs, n)
		typeOf(f.Params, f.Results)
		body := []byte{0}
		if f.Locals > 0 {
			body = append(U32([]byte{1}, f.Locals), I32)
		}
		body = append(append(body, f.Code...), 0x0b)
		code = append(U32(code, uint32(len(body))), body...)
	}
	out := []byte("\x00asm\x01\x00\x00\x00")
	section := func(id byte, count uint32, content []byte) {
		if count > 0 {
			content = append(U32(nil, count), content...)
			out = append(U32(append(out, id), uint32(len(content))), content...)
		}
	}
	section(1, n, types)
	section(2, uint32(len(m.Imports)), imports)
	section(3, uint32(len(m.Funcs)), funcs)
	section(4, min(m.Table, 1), U32([]byte{0x70, 0}, m.Table))
	section(5, min(m.Pages, 1), U32([]byte{0}, m.Pages))
	section(7, exported, exports)
	if m.Start {
		start := U32(nil, uint32(len(m.Imports)))
		out = append(U32(append(out, 8), uint32(len(start))), start...)
	}
	section(10, uint32(len(m.Funcs)), code)
	if m.Data != "" {
		data := append(S32([]byte{0, 0x41}, DataAt), 0x0b)
		section(11, 1, name(data, m.Data))
	}
	return out
}

func name(b []byte, s string) []byte { return append(U32(b, uint32(len(s))), s...) }

// U32 appends an unsigned LEB128 number.
func U32(b []byte, v uint32) []byte { return binary.AppendUvarint(b, uint64(v)) }

// S32 appends a signed LEB128 number.
func S32(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// Const32 is the code of i32.const.
func Const32(v int32) []byte { return S32([]byte{0x41}, int64(v)) }

// Const64 is the code of i64.const.
func Const64(v int64) []byte { return S32([]byte{0x42}, v) }

// Packed is the code of the constant ptr << 32 | n.
func Packed(ptr, n uint32) []byte { return Const64(int64(uint64(ptr)<<32 | uint64(n))) }

// Input is the address of the buffer that the plugins of Plugin return from tidemark_alloc; it ends with the memory.
const Input = 2 * 65536

// Plugin returns the smallest plugin that loads: a stateless parser named raw, whose result is always empty. A function in
// replace takes the place of the one with its export name; one without code removes it.
func Plugin(manifest abi.Manifest, replace ...Func) Module {
	if manifest.Name == "" {
		manifest = abi.Manifest{ABI: 1, Name: "raw", Version: "1", Kinds: []abi.Kind{abi.KindParser}}
	}
	text, err := json.Marshal(manifest)
	if err != nil {
		panic(err)
	}
	two, three := []byte{I32, I32}, []byte{I32, I32, I32}
	m := Module{Pages: 40, Data: string(text), Funcs: []Func{
		{Export: abi.ExportABI, Results: []byte{I32}, Code: Const32(abi.Version)},
		{Export: abi.ExportAlloc, Params: []byte{I32}, Results: []byte{I32}, Code: Const32(Input)},
		{Export: abi.ExportDescribe, Results: []byte{I64}, Code: Packed(DataAt, uint32(len(text)))},
		{Export: abi.ExportInit, Params: two, Results: []byte{I32}, Code: Const32(0)},
		{Export: abi.ExportLastError, Results: []byte{I64}, Code: Packed(DataAt, 9)},
		{Export: abi.KindParser.Export(), Params: three, Results: []byte{I64}, Code: Const64(0)},
	}}
	for _, f := range replace {
		kept := m.Funcs[:0]
		for _, old := range m.Funcs {
			switch {
			case old.Export != f.Export:
				kept = append(kept, old)
			case f.Code != nil:
				old.Code, old.Locals = f.Code, f.Locals
				kept = append(kept, old)
			}
		}
		m.Funcs = kept
	}
	return m
}

// Build compiles the Go package in dir, relative to the test, to a plugin and returns its bytes.
func Build(tb testing.TB, dir string) []byte {
	tb.Helper()
	b, err := BuildInto(tb.TempDir(), dir)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// BuildInto is Build for a TestMain, which has no testing.TB.
func BuildInto(out, dir string) ([]byte, error) {
	file := filepath.Join(out, "guest.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", file, ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, &buildError{dir, err, text}
	}
	return os.ReadFile(file)
}

type buildError struct {
	dir    string
	err    error
	output []byte
}

func (e *buildError) Error() string {
	return "build guest in " + e.dir + ": " + e.err.Error() + "\n" + string(e.output)
}

func (e *buildError) Unwrap() error { return e.err }
