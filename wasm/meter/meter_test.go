package meter_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"

	"github.com/tidemark-db/tidemark/wasm/abi"
	"github.com/tidemark-db/tidemark/wasm/meter"
	"github.com/tidemark-db/tidemark/wasm/wasmtest"
)

var options = meter.Options{Module: "host", Name: "tick", Fuel: 100}

// run rewrites m, calls its export "run" with arguments, and stops it at the given number of ticks.
func run(t *testing.T, m wasmtest.Module, maxTicks int, args ...uint64) (results []uint64, ticks int, err error) {
	t.Helper()
	metered, _, err := meter.Rewrite(m.Bytes(), options)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer r.Close(ctx)
	tick := api.GoModuleFunc(func(_ context.Context, _ api.Module, stack []uint64) {
		if ticks++; ticks > maxTicks {
			panic(sys.NewExitError(1))
		}
		stack[0] = 100
	})
	host := r.NewHostModuleBuilder("host").NewFunctionBuilder().WithGoModuleFunction(tick, nil, []api.ValueType{api.ValueTypeI32}).Export("tick")
	host.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(context.Context, api.Module, []uint64) {}), nil, nil).Export("nop")
	if _, err := host.Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	mod, err := r.Instantiate(ctx, metered)
	if err != nil {
		t.Fatalf("the rewritten module is refused: %v", err)
	}
	results, err = mod.ExportedFunction("run").Call(ctx, args...)
	return results, ticks, err
}

// countdown loops as often as its parameter says and returns 42.
var countdown = wasmtest.Func{Export: "run", Params: []byte{wasmtest.I32}, Results: []byte{wasmtest.I32}, Code: []byte{
	0x03, 0x40, // loop
	0x20, 0, 0x41, 1, 0x6b, 0x22, 0, // local 0 -= 1
	0x0d, 0, // br_if 0
	0x0b,
	0x41, 42,
}}

func TestLoopPaysOneStepAnIteration(t *testing.T) {
	got, ticks, err := run(t, wasmtest.Module{Funcs: []wasmtest.Func{countdown}}, 1000, 1000)
	if err != nil || got[0] != 42 {
		t.Fatalf("result %v, error %v", got, err)
	}
	// 1000 iterations at 100 steps a tick.
	if ticks != 10 {
		t.Errorf("%d ticks, want 10", ticks)
	}
}

// 1000 calls of a function that begins with a loop: its entry costs nothing more than the loop does.
func TestEntryIntoALoopPaysOnce(t *testing.T) {
	m := wasmtest.Module{Funcs: []wasmtest.Func{
		{Export: "run", Params: []byte{wasmtest.I32}, Code: []byte{
			0x03, 0x40, // loop
			0x10, 1, // call
			0x20, 0, 0x41, 1, 0x6b, 0x22, 0, // local 0 -= 1
			0x0d, 0, // br_if 0
			0x0b,
		}},
		{Code: []byte{0x02, 0x40, 0x03, 0x40, 0x10, 2, 0x0b, 0x0b}}, // block loop call
		{Code: []byte{0x01}},
	}}
	// 1000 for the iterations, 1000 for the loops behind the calls, at 100 steps a tick.
	if _, ticks, err := run(t, m, 1000, 1000); err != nil || ticks != 20 {
		t.Errorf("%d ticks, error %v; want 20", ticks, err)
	}
}

func TestCallsAreRenumberedBehindImports(t *testing.T) {
	m := wasmtest.Module{
		Imports: []wasmtest.Import{{Module: "host", Name: "nop"}},
		Funcs: []wasmtest.Func{
			{Export: "run", Results: []byte{wasmtest.I32}, Code: []byte{0x10, 0, 0x10, 2}}, // calls the import, then the second function
			{Results: []byte{wasmtest.I32}, Code: []byte{0x41, 7}},
		},
	}
	if got, _, err := run(t, m, 1); err != nil || got[0] != 7 {
		t.Errorf("result %v, error %v, want 7", got, err)
	}
}

// 7 host calls in a row, no loop: each checks the deadline first.
func TestHostCallsPayAll(t *testing.T) {
	m := wasmtest.Module{Imports: []wasmtest.Import{{Module: "host", Name: "nop"}},
		Funcs: []wasmtest.Func{{Export: "run", Code: bytes.Repeat([]byte{0x10, 0}, 7)}}}
	if _, ticks, err := run(t, m, 100); err != nil || ticks != 7 {
		t.Errorf("%d ticks, error %v; want 7", ticks, err)
	}
}

func TestHangsAreStopped(t *testing.T) {
	shallow := []byte{ // calls itself twice to a depth of 30: no loop
		0x20, 0, 0x45, 0x04, 0x40, 0x0f, 0x0b, // if local 0 == 0 return
		0x20, 0, 0x41, 1, 0x6b, 0x10, 0,
		0x20, 0, 0x41, 1, 0x6b, 0x10, 0,
	}
	// Loops that are jumped over, left out, or come behind the calls do not stand for the entry.
	jumped := append([]byte{0x02, 0x40, 0x0c, 0, 0x03, 0x40, 0x0b, 0x0b}, shallow...)
	chosen := append([]byte{0x41, 0, 0x04, 0x40, 0x03, 0x40, 0x0b, 0x0b}, shallow...)
	behind := append(bytes.Clone(shallow), 0x03, 0x40, 0x0b)
	fill := []byte{0x41, 0, 0x41, 0, 0x41}
	fill = append(wasmtest.S32(fill, 60000), 0xfc, 11, 0) // memory.fill(0, 0, 60000) is 234 steps
	var fills []byte
	for range 50 {
		fills = append(fills, fill...)
	}
	for name, m := range map[string]wasmtest.Module{
		"endless loop":          {Funcs: []wasmtest.Func{{Export: "run", Code: []byte{0x03, 0x40, 0x0c, 0, 0x0b}}}},
		"recursion":             {Funcs: []wasmtest.Func{{Export: "run", Params: []byte{wasmtest.I32}, Code: shallow}}},
		"loop jumped over":      {Funcs: []wasmtest.Func{{Export: "run", Params: []byte{wasmtest.I32}, Code: jumped}}},
		"loop not chosen":       {Funcs: []wasmtest.Func{{Export: "run", Params: []byte{wasmtest.I32}, Code: chosen}}},
		"loop behind the calls": {Funcs: []wasmtest.Func{{Export: "run", Params: []byte{wasmtest.I32}, Code: behind}}},
		"fills without a loop":  {Pages: 1, Funcs: []wasmtest.Func{{Export: "run", Code: fills}}},
		"start-less empty loop": {Funcs: []wasmtest.Func{{Export: "run", Code: []byte{0x03, 0x40, 0x41, 1, 0x0d, 0, 0x0b}}}},
	} {
		t.Run(name, func(t *testing.T) {
			var args []uint64
			if len(m.Funcs[0].Params) > 0 {
				args = []uint64{30}
			}
			_, ticks, err := run(t, m, 20, args...)
			if exit := new(sys.ExitError); !errors.As(err, &exit) || ticks != 21 {
				t.Errorf("%d ticks, error %v; want an exit at the 21st", ticks, err)
			}
		})
	}
}

// straight is code that does nothing for so many instructions.
func straight(instructions int) []byte { return bytes.Repeat([]byte{0x01}, instructions) }

// wrapped puts code between others.
func wrapped(before, code []byte, after ...byte) []byte {
	return append(append(bytes.Clone(before), code...), after...)
}

// A step pays for 1024 instructions: however long the code between two places that pay, what runs between two ticks is bounded.
func TestLongCodePaysByItsLength(t *testing.T) {
	count := []byte{0x20, 0, 0x41, 1, 0x6b, 0x22, 0, 0x0d, 0, 0x0b} // local 0 -= 1, br_if 0, end of the loop: 6 instructions
	i32 := []byte{wasmtest.I32}
	loop := func(code []byte) []byte { return wrapped([]byte{0x03, 0x40}, code, count...) }
	call := loop([]byte{0x10, 1})
	for name, c := range map[string]struct {
		m     wasmtest.Module
		ticks int // of 1000 passes, 100 steps each
	}{
		// 6 instructions of the count, and the loop's own end is among them.
		"short loop":  {wasmtest.Module{Funcs: []wasmtest.Func{{Export: "run", Params: i32, Code: loop(straight(1017))}}}, 10},
		"longer loop": {wasmtest.Module{Funcs: []wasmtest.Func{{Export: "run", Params: i32, Code: loop(straight(1018))}}}, 20},
		"long loop":   {wasmtest.Module{Funcs: []wasmtest.Func{{Export: "run", Params: i32, Code: loop(straight(9 * 1024))}}}, 100},
		// The loop in it pays for its own code alone: 1 for the outer, 3 for the inner.
		"loop in a loop": {wasmtest.Module{Funcs: []wasmtest.Func{{Export: "run", Params: i32,
			Code: loop(wrapped([]byte{0x03, 0x40}, straight(2048), 0x0b))}}}, 40},
		// A function without calls is free while it is short.
		"short function": {wasmtest.Module{Funcs: []wasmtest.Func{{Export: "run", Params: i32, Code: call}, {Code: straight(1000)}}}, 10},
		"long function":  {wasmtest.Module{Funcs: []wasmtest.Func{{Export: "run", Params: i32, Code: call}, {Code: straight(8 * 1024)}}}, 100},
		"many locals":    {wasmtest.Module{Funcs: []wasmtest.Func{{Export: "run", Params: i32, Code: call}, {Locals: 8 * 1024}}}, 100},
		// The payment of the loop stands for the entry, not for what follows the loop.
		"behind a loop": {wasmtest.Module{Funcs: []wasmtest.Func{{Export: "run", Params: i32, Code: call},
			{Code: wrapped([]byte{0x03, 0x40, 0x0b}, straight(7*1024))}}}, 100},
	} {
		t.Run(name, func(t *testing.T) {
			if _, ticks, err := run(t, c.m, 1000, 1000); err != nil || ticks != c.ticks {
				t.Errorf("%d ticks, error %v; want %d", ticks, err, c.ticks)
			}
		})
	}
}

func TestRewriteRefuses(t *testing.T) {
	one := func(code ...byte) []byte { return wasmtest.Module{Funcs: []wasmtest.Func{{Code: code}}}.Bytes() }
	for want, module := range map[string][]byte{
		"header":                  []byte("\x00asm\x02\x00\x00\x00"),
		"global 0, there are 0":   one(0x23, 0, 0x1a),
		"local 0, there are 0":    one(0x20, 0, 0x1a),
		"function 1, there are 1": one(0x10, 1),
		"call of type 1":          one(0x41, 0, 0x11, 1, 0),
		"reference to imported function 0": wasmtest.Module{Imports: []wasmtest.Import{{Module: "host", Name: "nop"}},
			Funcs: []wasmtest.Func{{Code: []byte{0xd2, 0, 0x1a}}}}.Bytes(),
		"table.grow":                 one(0xd0, 0x70, 0x41, 1, 0xfc, 15, 0),
		"opcode 0xfe":                one(0xfe, 0, 0, 0),
		"opcode 0x12":                one(0x12, 0),
		"locals, the limit is 50000": wasmtest.Module{Funcs: []wasmtest.Func{{Locals: 1 << 31}}}.Bytes(),
		"entries, the limit is":      wasmtest.Module{Table: 1<<20 + 1}.Bytes(),
		"out of order":               []byte("\x00asm\x01\x00\x00\x00\x0a\x01\x00\x01\x01\x00"),
		"middle of something":        []byte("\x00asm\x01\x00\x00\x00\x01\x7f"),
	} {
		_, _, err := meter.Rewrite(module, options)
		if !errors.Is(err, meter.ErrModule) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestReportNamesImportsAndExports(t *testing.T) {
	m := wasmtest.Plugin(abi.Manifest{})
	m.Imports = []wasmtest.Import{{Module: "env", Name: "abort"}}
	_, report, err := meter.Rewrite(m.Bytes(), options)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Imports) != 1 || report.Imports[0] != (meter.Import{Module: "env", Name: "abort"}) {
		t.Errorf("imports %v", report.Imports)
	}
	if len(report.Exports) != 7 || report.Exports[0] != (meter.Export{Name: "memory", Kind: 2}) || report.Functions != 6 {
		t.Errorf("exports %v, %d functions", report.Exports, report.Functions)
	}
}

// FuzzRewrite: arbitrary bytes never panic, and what a runtime accepts is accepted after the rewrite too.
func FuzzRewrite(f *testing.F) {
	f.Add(wasmtest.Plugin(abi.Manifest{}).Bytes())
	f.Add(wasmtest.Module{Pages: 1, Table: 3, Start: true, Data: "x", Funcs: []wasmtest.Func{{Code: []byte{0x01}}, countdown}}.Bytes())
	f.Add([]byte("\x00asm\x01\x00\x00\x00"))
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	f.Fuzz(func(t *testing.T, module []byte) {
		metered, _, err := meter.Rewrite(module, options)
		if err != nil {
			return
		}
		original, err := r.CompileModule(ctx, module)
		if err != nil {
			return
		}
		defer original.Close(ctx)
		rewritten, err := r.CompileModule(ctx, bytes.Clone(metered))
		if err != nil {
			t.Fatalf("a valid module is invalid after the rewrite: %v", err)
		}
		rewritten.Close(ctx)
	})
}
