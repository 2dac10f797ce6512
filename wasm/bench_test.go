package wasm_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/wasm"
	"github.com/tidemark-db/tidemark/wasm/abi"
	"github.com/tidemark-db/tidemark/wasm/guest"
	"github.com/tidemark-db/tidemark/wasm/wasmtest"
	"github.com/tidemark-db/tidemark/wasm/wasmtest/testdata/guest/plain"
)

// csv returns about n bytes of lines of some 60 bytes, of 4000 series.
func csv(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	metrics := []string{"cpu.user_pct", "cpu.system_pct", "mem.used_bytes", "disk.read_ops", "net.rx_bytes", "http.requests_total"}
	var b bytes.Buffer
	at := time.Date(2026, 1, 15, 10, 0, 0, 0, time.UTC)
	for b.Len() < n {
		at = at.Add(time.Duration(r.IntN(500)) * time.Millisecond)
		fmt.Fprintf(&b, "%s,host-%04d.dc%d,%s,%.2f\n", at.Format("2006-01-02T15:04:05.000Z"), r.IntN(220), r.IntN(3), metrics[r.IntN(6)], r.Float64()*1000)
	}
	return b.Bytes()
}

// streams opens the same parser in a module and natively.
func streams(tb testing.TB) (inWasm, native *wasm.Stream) {
	tb.Helper()
	h := newHost(tb, wasm.Options{ParseDeadline: time.Minute})
	p := goPlugin(tb, h, "go")
	n, err := h.AddNative("native", func(o abi.Options) abi.Instance {
		return guest.New(guest.Plugin{Manifest: plain.Manifest(), NewParser: plain.NewParser}, o)
	}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	var ss [2]*wasm.Stream
	for i, p := range []*wasm.Plugin{p, n} {
		if ss[i], err = p.Open(tb.Context(), abi.OpenRequest{Kind: abi.KindParser}); err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(ss[i].Close)
	}
	return ss[0], ss[1]
}

// ratio runs a and b in turns and returns the median of a's time over b's: on a noisy machine only ratios repeat.
func ratio(rounds int, a, b func()) float64 {
	var ratios []float64
	took := func(f func()) float64 {
		began := time.Now()
		f()
		return float64(time.Since(began))
	}
	a()
	b()
	for range rounds {
		ratios = append(ratios, took(a)/took(b))
	}
	slices.SortFunc(ratios, cmp.Compare[float64])
	return ratios[len(ratios)/2]
}

func BenchmarkParseRatio(b *testing.B) {
	inWasm, native := streams(b)
	chunk := csv(256 << 10)
	write := func(s *wasm.Stream) func() {
		return func() {
			if _, err := s.Write(context.Background(), chunk, 0); err != nil {
				b.Fatal(err)
			}
		}
	}
	var r float64
	for b.Loop() {
		r = ratio(15, write(inWasm), write(native))
	}
	b.ReportMetric(r, "x-native")
}

func BenchmarkParse(b *testing.B) {
	inWasm, native := streams(b)
	chunk := csv(256 << 10)
	for name, s := range map[string]*wasm.Stream{"wasm": inWasm, "native": native} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(chunk)))
			for b.Loop() {
				if _, err := s.Write(context.Background(), chunk, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// nop returns a stream whose calls do nothing.
func nop(tb testing.TB) *wasm.Stream {
	tb.Helper()
	m := abi.Manifest{ABI: 1, Name: "nop", Version: "1", Kinds: []abi.Kind{abi.KindParser}, Stateful: true}
	p := add(tb, newHost(tb, wasm.Options{}), "nop", wasmtest.Plugin(m).Bytes())
	s, err := p.Open(tb.Context(), abi.OpenRequest{Kind: abi.KindParser})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	return s
}

func BenchmarkNop(b *testing.B) {
	s := nop(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Write(context.Background(), nil, 0); err != nil {
			b.Fatal(err)
		}
	}
}

func TestCallDoesNotAllocate(t *testing.T) {
	if newHost(t, wasm.Options{}).Interpreted() {
		t.Skip("SKIPPED: the interpreter, the only engine of this platform, allocates")
	}
	s := nop(t)
	ctx, chunk := t.Context(), []byte("x")
	call := func() {
		if _, err := s.Write(ctx, chunk, 0); err != nil {
			t.Fatal(err)
		}
	}
	call()
	if n := testing.AllocsPerRun(100, call); n != 0 {
		t.Errorf("%v allocations a call, want 0", n)
	}
}

// A stream of many chunks must not grow: neither the guest, whose collector has to work, nor the host.
func TestSoakKeepsMemoryFlat(t *testing.T) {
	h := newHost(t, wasm.Options{ParseDeadline: time.Minute})
	p := goPlugin(t, h, "go")
	s, err := p.Open(t.Context(), abi.OpenRequest{Kind: abi.KindParser, Config: []byte(`"prefix."`)}) // which allocates for each line
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	chunk := csv(64 << 10)
	write := func(n int) {
		t.Helper()
		for range n {
			if _, err := s.Write(t.Context(), chunk, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(60)
	guestWarm := p.Stats().MemoryBytes
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	hostWarm := heap()
	write(160)
	if now := p.Stats().MemoryBytes; now > guestWarm+2<<20 || now > 32<<20 {
		t.Errorf("the guest grew from %d to %d bytes", guestWarm, now)
	}
	if now := heap(); now > hostWarm+4<<20 {
		t.Errorf("the host grew from %d to %d bytes", hostWarm, now)
	}
}

func TestInterpreterGivesTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("the interpreter needs a second to translate a Go plugin")
	}
	h := newHost(t, wasm.Options{Engine: wasm.EngineInterpreter, ParseDeadline: time.Minute, InitDeadline: time.Minute})
	b, err := parse(t, add(t, h, "go", goGuest), line)
	checkLine(t, b, err)
}

func TestForeignModulesNeedLeaveWhereOnlyTheInterpreterExists(t *testing.T) {
	h, err := wasm.New(t.Context(), wasm.Options{Engine: wasm.EngineInterpreter})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(context.Background())
	_, err = h.Load(t.Context(), "x", wasmtest.Plugin(abi.Manifest{}).Bytes(), nil)
	wantFault(t, err, wasm.FaultModule, "allow it")
}
