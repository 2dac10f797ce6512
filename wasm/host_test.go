package wasm_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/wasm"
	"github.com/tidemark-db/tidemark/wasm/abi"
	"github.com/tidemark-db/tidemark/wasm/guest"
	"github.com/tidemark-db/tidemark/wasm/wasmtest"
	"github.com/tidemark-db/tidemark/wasm/wasmtest/testdata/guest/plain"
)

func newHost(t testing.TB, options wasm.Options) *wasm.Host {
	t.Helper()
	options.CacheDir = cacheDir
	options.Interpreted = true
	if options.Grants == nil { // the Go guest imports them all
		options.Grants = func(string) []string { return abi.Capabilities() }
	}
	h, err := wasm.New(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return h
}

// source serves fixed bytes.
func source(b []byte) wasm.Source { return func() ([]byte, error) { return b, nil } }

func add(t testing.TB, h *wasm.Host, name string, module []byte) *wasm.Plugin {
	t.Helper()
	p, err := h.Add(name, source(module), nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// goPlugin adds the Go guest. Where only the interpreter exists, the tests that live on it would take minutes: TestNativeAndWasmGiveTheSame stands
// for them there.
func goPlugin(t testing.TB, h *wasm.Host, name string) *wasm.Plugin {
	t.Helper()
	if h.Interpreted() {
		t.Skip("SKIPPED: this platform has no compiler for modules")
	}
	return add(t, h, name, goGuest)
}

// parse sends one chunk through a stream of its own.
func parse(t testing.TB, p *wasm.Plugin, text string) (*abi.Batch, error) {
	t.Helper()
	s, err := p.Open(t.Context(), abi.OpenRequest{Kind: abi.KindParser, Received: 1234})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.Write(t.Context(), []byte(text), abi.FlagLast)
}

func wantFault(t testing.TB, err error, want wasm.Fault, text string) *wasm.Error {
	t.Helper()
	e := (*wasm.Error)(nil)
	if !errors.As(err, &e) {
		t.Fatalf("error %v, want a fault %s", err, want)
	}
	if e.Fault != want || !strings.Contains(e.Text, text) {
		t.Fatalf("error %v, want fault %s with %q", err, want, text)
	}
	return e
}

// fast are deadlines for guests that hang on purpose.
var fast = wasm.Options{ParseDeadline: 150 * time.Millisecond, AlertDeadline: 150 * time.Millisecond}

const line = "2026-01-02T03:04:05.678Z,web-1,cpu,1.5\n"

func checkLine(t testing.TB, b *abi.Batch, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	// 2026-01-02 is day 20455 of the epoch.
	want := abi.Sample{Time: (20455*86400+3*3600+4*60+5)*1000 + 678, Value: 1.5}
	if len(b.Samples) != 1 || b.Samples[0] != want || b.Series[0].Metric != "cpu" || b.Series[0].Entity != "web-1" {
		t.Fatalf("samples %v of %v, want %v of cpu, web-1", b.Samples, b.Series, want)
	}
}

func TestGoGuestParses(t *testing.T) {
	h := newHost(t, wasm.Options{})
	p := goPlugin(t, h, "go")
	if p.Stats().Loaded {
		t.Error("the plugin is loaded before its first use")
	}
	b, err := parse(t, p, line)
	checkLine(t, b, err)
	s := p.Stats()
	if !s.Loaded || s.Version != "1.0.0" || s.Calls != 2 || s.Instances != 1 || s.MemoryBytes == 0 || s.Ticks == 0 || s.Failures != 0 {
		t.Errorf("stats %+v", s)
	}
}

func TestNativeAndWasmGiveTheSame(t *testing.T) {
	h := newHost(t, wasm.Options{})
	inWasm := add(t, h, "go", goGuest)
	native, err := h.AddNative("native", func(o abi.Options) abi.Instance {
		return guest.New(guest.Plugin{Manifest: plain.Manifest(), NewParser: plain.NewParser, NewAlert: plain.NewAlert}, o)
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text := line + "bad\n1767323045678,web-2,cpu,1e400\n1767323045678,web-2,mem,-0.125,text\n"
	request := abi.OpenRequest{Kind: abi.KindParser, Config: []byte(`"pre."`), Received: 1}
	var results [2]string
	for i, p := range []*wasm.Plugin{inWasm, native} {
		s, err := p.Open(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		if results[i], err = s.Call(t.Context(), []byte(text), abi.FlagLast); err != nil {
			t.Fatal(err)
		}
		s.Close()
	}
	if results[0] != results[1] || len(results[0]) < 100 {
		t.Errorf("wasm  %q\nnative %q", results[0], results[1])
	}
	events := abi.AppendEvents(nil, []abi.Event{{Value: 2.5, Texts: [10]string{abi.EventRule: "hot", abi.EventEntity: "pump"}}})
	for _, p := range []*wasm.Plugin{inWasm, native} {
		out, err := p.Alert(t.Context(), events)
		if err != nil {
			t.Fatal(err)
		}
		rs, err := abi.DecodeRenderings(string(out), 1, abi.Limits{})
		if err != nil || rs[0].Text != "hot on pump: 2.5" {
			t.Errorf("%s: renderings %v, error %v", p.Name(), rs, err)
		}
	}
}

// Each hostile act costs one failed call; the plugin itself and another one work right after it.
func TestHostileGoGuest(t *testing.T) {
	var ahead atomic.Int64 // of the real clock: an hour a case, so that the breaker forgets
	options := fast
	options.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	h := newHost(t, options)
	p := goPlugin(t, h, "go")
	other := add(t, h, "other", wasmtest.Plugin(abi.Manifest{}).Bytes())
	for _, c := range []struct {
		act   string
		fault wasm.Fault
		text  string
	}{
		{"panic on purpose", wasm.FaultPanic, "panic: on purpose"},
		{"exit", wasm.FaultTrap, "exited with code 3"},
		{"error no good", wasm.FaultData, "no good"},
		{"loop", wasm.FaultDeadline, "deadline"},
		{"sleep", wasm.FaultDeadline, "deadline"},
		{"recurse", wasm.FaultDeadline, "deadline"},
		{"memset", wasm.FaultDeadline, "deadline"},
		{"deadlock", wasm.FaultTrap, ""},
		{"invalid-utf8", wasm.FaultOutput, "not UTF-8"},
		{"future", wasm.FaultOutput, "time is outside"},
		{"file", wasm.FaultData, "/etc/passwd"},
	} {
		t.Run(c.act, func(t *testing.T) {
			ahead.Add(int64(time.Hour))
			began := time.Now()
			_, err := parse(t, p, "!"+c.act)
			e := wantFault(t, err, c.fault, c.text)
			// Two attempts of 150 ms at most; the rest is for a slow machine. Unchecked, most of these acts last for ever.
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
			if want := c.fault != wasm.FaultData; e.DeadLetter != want {
				t.Errorf("dead letter %v, want %v", e.DeadLetter, want)
			}
			b, err := parse(t, p, line)
			checkLine(t, b, err)
			if _, err := parse(t, other, ""); err != nil {
				t.Errorf("the other plugin: %v", err)
			}
		})
	}
}

// Memory is bounded before the deadline matters.
func TestGrowingGuestIsStoppedByItsMemory(t *testing.T) {
	h := newHost(t, wasm.Options{ParseDeadline: 20 * time.Second, MemoryMB: 32})
	p := goPlugin(t, h, "go")
	_, err := parse(t, p, "!grow")
	wantFault(t, err, wasm.FaultTrap, "")
	if used := p.Stats().MemoryBytes; used > 32<<20 {
		t.Errorf("%d bytes are in use after the kill", used)
	}
	b, err := parse(t, p, line)
	checkLine(t, b, err)
}

func TestGuestThatKeepsMuchMemoryIsReplaced(t *testing.T) {
	h := newHost(t, wasm.Options{})
	p := goPlugin(t, h, "go")
	if _, err := parse(t, p, "!keep"); err != nil {
		t.Fatal(err)
	}
	if s := p.Stats(); s.Recycled != 1 || s.Instances != 0 || s.MemoryBytes != 0 {
		t.Errorf("stats %+v, want one recycled instance and no memory", s)
	}
}

func TestGuestSeesOnlyItsEnvironment(t *testing.T) {
	h := newHost(t, wasm.Options{})
	b, err := parse(t, goPlugin(t, h, "go"), "!environment")
	if err != nil {
		t.Fatal(err)
	}
	if got := b.Messages[0].Text; got != "GODEBUG=gcstoptheworld=1" {
		t.Errorf("environment %q", got)
	}
	if got := b.Messages[0].Time; got != 1234 {
		t.Errorf("now_ms %d, want the receive time 1234", got)
	}
	clock, err := time.Parse(time.RFC3339, b.Messages[1].Text)
	if err != nil || time.Since(clock) > time.Hour {
		t.Errorf("the clock of the guest says %v, error %v", clock, err)
	}
}

// The runtime's default source of randomness gives each instance the same bytes.
func TestGuestsDrawDifferentRandomNumbers(t *testing.T) {
	seen := make(map[string]bool)
	for _, name := range []string{"a", "b"} {
		b, err := parse(t, goPlugin(t, newHost(t, wasm.Options{}), name), "!random")
		if err != nil {
			t.Fatal(err)
		}
		seen[b.Messages[0].Text] = true
	}
	if len(seen) != 2 {
		t.Errorf("two guests drew the same: %v", seen)
	}
}

func TestStandardErrorGoesToTheLog(t *testing.T) {
	var mu sync.Mutex
	var out bytes.Buffer
	h := newHost(t, wasm.Options{Log: slog.New(slog.NewTextHandler(lockedWriter{&mu, &out}, nil))})
	if _, err := parse(t, goPlugin(t, h, "go"), "!stderr from inside"); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if got := out.String(); !strings.Contains(got, `msg="from inside" plugin=go`) {
		t.Errorf("log %q", got)
	}
}

func TestCacheIsPrivateAndUsed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	module := wasmtest.Plugin(abi.Manifest{}).Bytes()
	for range 2 {
		h, err := wasm.New(t.Context(), wasm.Options{CacheDir: dir, Interpreted: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Load(t.Context(), "x", module, nil); err != nil {
			t.Fatal(err)
		}
		if err := h.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, error %v; want 0700", info.Mode(), err)
	}
	if _, err := os.Stat(filepath.Join(dir, fmt.Sprintf("valid-%x", sha256.Sum256(module)))); err != nil {
		t.Errorf("no mark of validation: %v", err)
	}
}

func TestLogIsBounded(t *testing.T) {
	var mu sync.Mutex
	var out bytes.Buffer
	options := wasm.Options{Log: slog.New(slog.NewTextHandler(lockedWriter{&mu, &out}, nil)), ParseDeadline: 10 * time.Second}
	frozen := time.Unix(1_700_000_000, 0)
	options.Now = func() time.Time { return frozen } // one second that does not end
	h := newHost(t, options)
	p := goPlugin(t, h, "go")
	if _, err := parse(t, p, "!log"); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 50 || p.Stats().DroppedLines != 150 {
		t.Errorf("%d lines, %d dropped; want 50 and 150", len(lines), p.Stats().DroppedLines)
	}
	if longest := len(lines[0]); longest > 4096+200 || !strings.Contains(lines[0], "plugin=go") {
		t.Errorf("a line of %d bytes: %.100s", longest, lines[0])
	}
}

type lockedWriter struct {
	mu *sync.Mutex
	to *bytes.Buffer
}

func (w lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}

func TestInitIsBounded(t *testing.T) {
	h := newHost(t, wasm.Options{InitDeadline: 500 * time.Millisecond})
	p, err := h.Add("go", source(goGuest), []byte(`{"loop":true}`))
	if err != nil {
		t.Fatal(err)
	}
	_, err = parse(t, p, line)
	wantFault(t, err, wasm.FaultDeadline, "deadline")
	if p, err = h.Add("go", source(goGuest), []byte(`{"fail":"no licence"}`)); err != nil {
		t.Fatal(err)
	}
	_, err = parse(t, p, line)
	wantFault(t, err, wasm.FaultData, "no licence")
}

func TestCallerThatGoesAwayStopsTheGuest(t *testing.T) {
	h := newHost(t, wasm.Options{ParseDeadline: time.Minute})
	p := goPlugin(t, h, "go")
	s, err := p.Open(t.Context(), abi.OpenRequest{Kind: abi.KindParser})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := s.Write(ctx, []byte("!loop"), 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want that of the context", err)
	}
	if s := p.Stats(); s.Kills != 0 || s.Retries != 0 {
		t.Errorf("the plugin is blamed: %+v", s)
	}
}

// replaced returns the smallest plugin with one function replaced.
func replaced(export string, code []byte) []byte {
	return wasmtest.Plugin(abi.Manifest{}, wasmtest.Func{Export: export, Code: code}).Bytes()
}

func TestModulesThatAreRefused(t *testing.T) {
	h := newHost(t, fast)
	withImport := func(module, name string) []byte {
		m := wasmtest.Plugin(abi.Manifest{})
		m.Imports = []wasmtest.Import{{Module: module, Name: name, Results: []byte{wasmtest.I32}}}
		return m.Bytes()
	}
	wrongType := wasmtest.Plugin(abi.Manifest{})
	wrongType.Funcs[5].Params = []byte{wasmtest.I32}
	noMemory := wasmtest.Plugin(abi.Manifest{})
	noMemory.Pages, noMemory.Data = 0, ""
	greedy := wasmtest.Plugin(abi.Manifest{})
	greedy.Pages = 65 * 16
	for text, module := range map[string][]byte{
		"does not begin with the wasm header":     []byte("not wasm"),
		"the limit is 16777216":                   make([]byte, 16<<20+1),
		"it does not export tidemark_describe":    replaced(abi.ExportDescribe, nil),
		"env.abort, which is not granted":         withImport("env", "abort"),
		"sock_open":                               withImport(abi.WASIModule, "sock_open"),
		"tick, which only the server":             withImport(abi.HostModule, abi.ImportTick),
		"its tidemark_parse is (i32) i64":         wrongType.Bytes(),
		"does not export its memory":              noMemory.Bytes(),
		"validate":                                replaced(abi.ExportAlloc, []byte{0x42, 0}), // an i64 where an i32 belongs
		"ABI major 2, this server speaks major 1": replaced(abi.ExportABI, wasmtest.Const32(0x20000)),
		"bytes at 0x3fffff0":                      replaced(abi.ExportDescribe, wasmtest.Packed(0x3fffff0, 100)),
		"limit is 1048576":                        replaced(abi.ExportDescribe, wasmtest.Packed(0, 1<<31)),
		"manifest: ":                              replaced(abi.ExportDescribe, wasmtest.Packed(wasmtest.DataAt, 5)),
		"over limit":                              greedy.Bytes(),
	} {
		t.Run(text, func(t *testing.T) {
			_, err := h.Load(t.Context(), "x", module, nil)
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("error %v, want one with %q", err, text)
			}
			if h.Plugin("x") != nil {
				t.Error("it is registered all the same")
			}
		})
	}
	if err := roomIsBack(h, t); err != nil {
		t.Error(err)
	}
}

// roomIsBack loads a plugin after refusals: what they had taken of the budget must be free.
func roomIsBack(h *wasm.Host, t *testing.T) error {
	for range 5 {
		if _, err := h.Load(t.Context(), "ok", wasmtest.Plugin(abi.Manifest{}).Bytes(), nil); err != nil {
			return err
		}
	}
	return nil
}

func TestHostileBytes(t *testing.T) {
	parse3 := abi.KindParser.Export()
	forever := append([]byte{0x03, 0x40, 0x0c, 0, 0x0b}, wasmtest.Const64(0)...)
	for _, c := range []struct {
		name   string
		module []byte
		fault  wasm.Fault
		text   string
	}{
		{"result outside memory", replaced(parse3, wasmtest.Packed(0x7fffffff, 16)), wasm.FaultOutput, "outside its memory"},
		{"huge result", replaced(parse3, wasmtest.Packed(0, 1<<31)), wasm.FaultOutput, "the limit is"},
		{"result wraps around", replaced(parse3, wasmtest.Packed(0x7ffffff0, 1<<24)), wasm.FaultOutput, "outside its memory"},
		{"unknown code", replaced(parse3, wasmtest.Const64(-77)), wasm.FaultOutput, "-77"},
		{"error code", replaced(parse3, wasmtest.Const64(-1)), wasm.FaultData, `{"abi":1,`},
		{"unsupported code", replaced(parse3, wasmtest.Const64(-3)), wasm.FaultUnsupported, ""},
		{"no batch", replaced(parse3, wasmtest.Packed(wasmtest.Input, 1)), wasm.FaultOutput, "batch version 88"}, // the input, "X"
		{"trap", replaced(parse3, []byte{0x00}), wasm.FaultTrap, "unreachable"},
		{"endless loop", replaced(parse3, forever), wasm.FaultDeadline, "deadline"},
		{"alloc refuses", replaced(abi.ExportAlloc, wasmtest.Const32(0)), wasm.FaultData, "no buffer"},
		{"alloc outside memory", replaced(abi.ExportAlloc, wasmtest.Const32(-16)), wasm.FaultOutput, "outside its memory"},
		{"last error outside memory", wasmtest.Plugin(abi.Manifest{}, wasmtest.Func{Export: parse3, Code: wasmtest.Const64(-1)},
			wasmtest.Func{Export: abi.ExportLastError, Code: wasmtest.Packed(0x7fffffff, 100)}).Bytes(), wasm.FaultOutput, "outside its memory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHost(t, fast)
			_, err := parse(t, add(t, h, "x", c.module), "X")
			wantFault(t, err, c.fault, c.text)
		})
	}
}

// A loop of costly host calls takes few steps of its own.
func TestHostCallsDoNotEvadeTheDeadline(t *testing.T) {
	loop := append(wasmtest.Const32(0), wasmtest.Const32(40<<16)...)
	loop = append(append([]byte{0x03, 0x40}, loop...), 0x10, 0, 0x1a, 0x0c, 0, 0x0b) // random_get over the whole memory
	m := wasmtest.Plugin(abi.Manifest{}, wasmtest.Func{Export: abi.KindParser.Export(), Code: append(loop, wasmtest.Const64(0)...)})
	two := []byte{wasmtest.I32, wasmtest.I32}
	m.Imports = []wasmtest.Import{{Module: abi.WASIModule, Name: "random_get", Params: two, Results: []byte{wasmtest.I32}}}
	h := newHost(t, fast)
	p := add(t, h, "x", m.Bytes())
	began := time.Now()
	_, err := parse(t, p, "X")
	wantFault(t, err, wasm.FaultDeadline, "deadline")
	if took := time.Since(began); took > 5*time.Second { // unchecked it would be a minute
		t.Errorf("stopped after %v", took)
	}
}

func TestBreakerPausesAPluginThatIsKilledAgainAndAgain(t *testing.T) {
	var mu sync.Mutex
	now := time.Now()
	options := wasm.Options{Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now }}
	pass := func(d time.Duration) { mu.Lock(); now = now.Add(d); mu.Unlock() }
	h := newHost(t, options)
	p := add(t, h, "x", replaced(abi.KindParser.Export(), []byte{0x00}))
	kill := func() { // a chunk is tried twice: two kills
		t.Helper()
		_, err := parse(t, p, "X")
		wantFault(t, err, wasm.FaultTrap, "")
	}
	kill()
	kill()
	_, err := parse(t, p, "X")
	if e := wantFault(t, err, wasm.FaultBusy, "paused"); e.RetryAfter != time.Minute {
		t.Errorf("retry after %v, want 1m", e.RetryAfter)
	}
	pass(time.Minute + time.Second)
	kill()
	kill()
	_, err = parse(t, p, "X")
	if e := wantFault(t, err, wasm.FaultBusy, "paused"); e.RetryAfter != 2*time.Minute {
		t.Errorf("retry after %v, want 2m", e.RetryAfter)
	}
}

func TestStatefulStream(t *testing.T) {
	h := newHost(t, fast)
	m := plain.Manifest()
	m.Stateful = true
	p, err := h.AddNative("native", func(o abi.Options) abi.Instance {
		return guest.New(guest.Plugin{Manifest: m, NewParser: plain.NewParser}, o)
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var streams []*wasm.Stream
	for range 16 {
		s, err := p.Open(t.Context(), abi.OpenRequest{Kind: abi.KindParser})
		if err != nil {
			t.Fatal(err)
		}
		streams = append(streams, s)
	}
	_, err = p.Open(t.Context(), abi.OpenRequest{Kind: abi.KindParser})
	wantFault(t, err, wasm.FaultBusy, "16 streams are open")
	// A line that spans chunks is put together within its own stream.
	for i, s := range streams[:2] {
		if b, err := s.Write(t.Context(), fmt.Appendf(nil, "100%d,e", i), 0); err != nil || len(b.Samples) != 0 {
			t.Fatalf("samples %v, error %v", b, err)
		}
	}
	for i, s := range streams[:2] {
		b, err := s.Write(t.Context(), []byte(",m,5\n"), abi.FlagLast)
		if err != nil || len(b.Samples) != 1 || b.Samples[0].Time != int64(1000+i) {
			t.Fatalf("stream %d: %v, error %v", i, b, err)
		}
	}
	for _, s := range streams {
		s.Close()
	}
	if s := p.Stats(); s.Streams != 0 {
		t.Errorf("%d streams are left", s.Streams)
	}
}

func TestStatefulStreamIsNeverRetried(t *testing.T) {
	h := newHost(t, fast)
	m := abi.Manifest{ABI: 1, Name: "s", Version: "1", Kinds: []abi.Kind{abi.KindParser}, Stateful: true}
	// It traps on the flag of the last chunk.
	code := append([]byte{0x20, 2, 0x04, 0x40, 0x00, 0x0b}, wasmtest.Const64(0)...)
	p := add(t, h, "x", wasmtest.Plugin(m, wasmtest.Func{Export: abi.KindParser.Export(), Code: code}).Bytes())
	s, err := p.Open(t.Context(), abi.OpenRequest{Kind: abi.KindParser})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(t.Context(), make([]byte, 700), 0); err != nil {
		t.Fatal(err)
	}
	_, err = s.Write(t.Context(), make([]byte, 10), abi.FlagLast)
	if e := wantFault(t, err, wasm.FaultTrap, "unreachable"); e.Offset != 700 || !e.DeadLetter {
		t.Errorf("offset %d, dead letter %v; want 700, true", e.Offset, e.DeadLetter)
	}
	_, again := s.Write(t.Context(), nil, 0)
	if again != err {
		t.Errorf("the stream goes on with %v", again)
	}
	s.Close()
	if s := p.Stats(); s.Retries != 0 || s.Kills != 1 || s.Instances != 0 || s.MemoryBytes != 0 {
		t.Errorf("stats %+v", s)
	}
}

// Two plugins of the same bytes share the code; removing one must not harm the other.
func TestIdenticalModulesLiveIndependently(t *testing.T) {
	h := newHost(t, wasm.Options{})
	a, b := goPlugin(t, h, "a"), goPlugin(t, h, "b")
	for _, p := range []*wasm.Plugin{a, b} {
		batch, err := parse(t, p, line)
		checkLine(t, batch, err)
	}
	h.Remove("a")
	batch, err := parse(t, b, line)
	checkLine(t, batch, err)
}

func TestReplacementLetsOpenStreamsFinish(t *testing.T) {
	h := newHost(t, wasm.Options{})
	old := goPlugin(t, h, "x")
	s, err := old.Open(t.Context(), abi.OpenRequest{Kind: abi.KindParser})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Load(t.Context(), "x", wasmtest.Plugin(abi.Manifest{}).Bytes(), nil); err != nil {
		t.Fatal(err)
	}
	b, err := s.Write(t.Context(), []byte(line), abi.FlagLast)
	checkLine(t, b, err)
	s.Close()
	if old.Stats().Loaded {
		t.Error("the replaced plugin is still loaded after its last stream")
	}
	if got, err := parse(t, h.Plugin("x"), line); err != nil || len(got.Samples) != 0 {
		t.Errorf("the new plugin gives %v, %v", got, err)
	}
}

func TestBudgetEvictsIdlePlugins(t *testing.T) {
	small := wasmtest.Plugin(abi.Manifest{}).Bytes() // 40 pages, 2.5 MB
	h := newHost(t, wasm.Options{Budget: 4 << 20})
	a, b := add(t, h, "a", small), add(t, h, "b", small)
	if _, err := parse(t, a, ""); err != nil {
		t.Fatal(err)
	}
	s, err := b.Open(t.Context(), abi.OpenRequest{Kind: abi.KindParser})
	if err != nil {
		t.Fatal(err)
	}
	if a.Stats().Loaded || !b.Stats().Loaded {
		t.Errorf("loaded: a %v, b %v; want only b", a.Stats().Loaded, b.Stats().Loaded)
	}
	_, err = parse(t, a, "") // b has an open stream and cannot go
	wantFault(t, err, wasm.FaultBusy, "used up")
	s.Close()
	if _, err := parse(t, a, ""); err != nil {
		t.Errorf("after the stream: %v", err)
	}
}

func TestHostCanBeClosedUnderAnOpenStream(t *testing.T) {
	h := newHost(t, wasm.Options{})
	s, err := goPlugin(t, h, "x").Open(t.Context(), abi.OpenRequest{Kind: abi.KindParser})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(t.Context(), []byte(line), 0); err == nil {
		t.Error("a write after the host was closed has no error")
	}
	s.Close()
}

func TestParallelUse(t *testing.T) {
	h := newHost(t, wasm.Options{})
	p := goPlugin(t, h, "go")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				b, err := parse(t, p, line)
				if err != nil || len(b.Samples) != 1 {
					t.Errorf("%v, %v", b, err)
				}
			}
		})
	}
	wg.Wait()
	if s := p.Stats(); s.Calls != 320 || s.Failures != 0 {
		t.Errorf("stats %+v", s)
	}
}

func TestNDJSONOutput(t *testing.T) {
	out := `{"command":"series","metric":"m","entity":"e","time":5,"value":1.5,"tags":{"b":"2","a":"1"}}
{"command":"message","entity":"e","time":6,"text":"hi","severity":3}
{"command":"reject","line":2,"reason":"bad"}
{"command":"stop","line":3,"reason":"worse"}`
	m := wasmtest.Plugin(abi.Manifest{}, wasmtest.Func{Export: abi.KindParser.Export(), Code: wasmtest.Packed(40000, uint32(len(out)))})
	m.Data += strings.Repeat(" ", 40000-wasmtest.DataAt-len(m.Data)) + out
	h := newHost(t, wasm.Options{})
	b, err := parse(t, add(t, h, "x", m.Bytes()), "")
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Samples) != 1 || b.Samples[0].Value != 1.5 || b.Series[0].Tags[0].Name != "a" || b.Messages[0].Text != "hi" ||
		!b.Messages[0].Persist || b.Rejected != 2 || !b.Stopped || b.Rejects[1].Line != 3 {
		t.Errorf("batch %+v", b)
	}
}
