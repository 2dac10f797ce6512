package wasm_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/wasm"
	"github.com/tidemark-db/tidemark/wasm/abi"
	"github.com/tidemark-db/tidemark/wasm/guest"
	"github.com/tidemark-db/tidemark/wasm/wasmtest"
)

// arrivals is a body whose parts come one by one: it is not ready between two of them.
type arrivals struct {
	parts []string
	end   error
}

func (a *arrivals) Read(p []byte) (int, error) {
	if len(a.parts) == 0 {
		return 0, a.end
	}
	n := copy(p, a.parts[0])
	if a.parts[0] = a.parts[0][n:]; a.parts[0] == "" {
		a.parts = a.parts[1:]
		return n, nil
	}
	return n, nil
}

func (a *arrivals) Ready() bool { return false }

// calls is a plugin that remembers its calls; "crash" makes it panic.
type calls struct{ list *[]string }

func (calls) Open(*abi.OpenRequest) error { return nil }

func (c calls) Parse(chunk []byte, last bool, out *abi.Encoder) error {
	text := string(chunk)
	if last {
		text += "$"
	}
	*c.list = append(*c.list, text)
	if text == "crash\n" {
		panic(text)
	}
	out.AddLines(1)
	return nil
}

// callsFor parses body and returns the calls and the error.
func callsFor(t *testing.T, framing abi.Framing, parse func(*wasm.Parsers) error) ([]string, error) {
	t.Helper()
	var list []string
	h := newHost(t, wasm.Options{})
	manifest := abi.Manifest{Name: "c", Version: "1", Stateful: true, Formats: []abi.Format{{Name: "c", Framing: framing}}}
	if _, err := h.AddNative("c", func(o abi.Options) abi.Instance {
		return guest.New(guest.Plugin{Manifest: manifest, NewParser: func() guest.Parser { return calls{&list} }}, o)
	}, nil); err != nil {
		t.Fatal(err)
	}
	err := parse(&wasm.Parsers{Host: h})
	return list, err
}

// What has come is parsed while more is to come; an empty chunk follows, for what a parser keeps back.
func TestLiveBodiesAreParsedAsTheyCome(t *testing.T) {
	reset := errors.New("connection reset")
	for name, c := range map[string]struct {
		framing abi.Framing
		body    io.Reader
		want    []string
		err     error
	}{
		"parts":            {abi.FramingNone, &arrivals{[]string{"a\n", "b", "c\n"}, io.EOF}, []string{"a\n", "", "b", "", "c\n", "", "$"}, nil},
		"lines":            {abi.FramingLines, &arrivals{[]string{"a\nb", "c", "\nd"}, io.EOF}, []string{"a\n", "", "bc\n", "", "d", "", "$"}, nil},
		"broken":           {abi.FramingNone, &arrivals{[]string{"a\n"}, reset}, []string{"a\n", ""}, reset},
		"broken in a line": {abi.FramingLines, &arrivals{[]string{"a\nb"}, reset}, []string{"a\n", ""}, reset},
		"upload":           {abi.FramingNone, io.MultiReader(strings.NewReader("a\n"), strings.NewReader("b\n")), []string{"a\nb\n", "$"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := callsFor(t, c.framing, func(p *wasm.Parsers) error {
				var last error
				for _, err := range p.Parse(t.Context(), core.ParseRequest{Parser: "c", Format: "c"}, c.body) {
					last = err
				}
				return last
			})
			if !slices.Equal(got, c.want) || !errors.Is(err, c.err) {
				t.Errorf("calls %q, error %v; want %q, %v", got, err, c.want, c.err)
			}
		})
	}
}

// A plugin that breaks ends a live stream at once: its sender may go on for days.
func TestLiveStreamEndsWithItsPlugin(t *testing.T) {
	body := &arrivals{[]string{"a\n", "crash\n", "b\n"}, io.EOF}
	_, err := callsFor(t, abi.FramingNone, func(p *wasm.Parsers) error {
		var last error
		for _, err := range p.Parse(t.Context(), core.ParseRequest{Parser: "c", Format: "c"}, body) {
			last = err
		}
		return last
	})
	var lost *wasm.Lost
	if !errors.As(err, &lost) || len(body.parts) != 1 {
		t.Errorf("error %v with %q unread, want a loss before the last part", err, body.parts)
	}
}

// The head of a file is read before its rest, and gives nothing.
func TestContinueReadsTheHeadFirst(t *testing.T) {
	given := 0
	got, err := callsFor(t, abi.FramingNone, func(p *wasm.Parsers) error {
		for parsed, err := range p.Continue(t.Context(), core.ParseRequest{Parser: "c", Format: "c"}, []byte("head\n"), &arrivals{[]string{"a\n"}, io.EOF}) {
			if err != nil {
				return err
			}
			given += parsed.Lines
		}
		return nil
	})
	if want := []string{"head\n", "a\n", "", "$"}; !slices.Equal(got, want) || err != nil || given != 3 {
		t.Errorf("calls %q gave %d lines, error %v; want %q and 3", got, given, err, want)
	}
}

// Uploads keep their large chunks.
func TestUploadsHaveFullChunks(t *testing.T) {
	got, err := callsFor(t, abi.FramingNone, func(p *wasm.Parsers) error {
		for _, err := range p.Parse(t.Context(), core.ParseRequest{Parser: "c", Format: "c"}, iotestSmall{strings.NewReader(strings.Repeat("x", 600<<10))}) {
			if err != nil {
				return err
			}
		}
		return nil
	})
	if len(got) != 4 || len(got[0]) != 256<<10 || len(got[1]) != 256<<10 || len(got[2]) != 88<<10 || err != nil {
		t.Errorf("%d calls, error %v, want chunks of 256, 256 and 88 KiB and the end", len(got), err)
	}
}

// iotestSmall gives a thousand bytes a read.
type iotestSmall struct{ r io.Reader }

func (s iotestSmall) Read(p []byte) (int, error) { return s.r.Read(p[:min(len(p), 1000)]) }

// A loop around a million instructions without another loop stops at its deadline, and not up to ten thousand passes later.
func TestLoopOfLongCodeStopsAtItsDeadline(t *testing.T) {
	step := []byte{0x20, 0, 0x41, 3, 0x6c, 0x41, 7, 0x6a, 0x21, 0} // local 0 = local 0 * 3 + 7: each needs the one before
	code := append(append([]byte{0x03, 0x40}, bytes.Repeat(step, 200_000)...), 0x0c, 0, 0x0b)
	h := newHost(t, fast)
	m := abi.Manifest{ABI: 1, Name: "s", Version: "1", Kinds: []abi.Kind{abi.KindParser}, Stateful: true}
	p := add(t, h, "s", wasmtest.Plugin(m, wasmtest.Func{Export: abi.KindParser.Export(), Code: append(code, wasmtest.Const64(0)...)}).Bytes())
	s, err := p.Open(t.Context(), abi.OpenRequest{Kind: abi.KindParser})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	began := time.Now()
	_, err = s.Write(t.Context(), []byte("x"), 0)
	wantFault(t, err, wasm.FaultDeadline, "deadline")
	// 200,000 dependent multiplications take 200 us at least: ten thousand passes more than 2 s.
	if took := time.Since(began); took > fast.ParseDeadline+time.Second {
		t.Errorf("it ran for %v, the deadline is %v", took, fast.ParseDeadline)
	}
}
