package wasm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/ingest"
	"github.com/tidemark-db/tidemark/storage"
	"github.com/tidemark-db/tidemark/storage/vfs"
	"github.com/tidemark-db/tidemark/wasm"
	"github.com/tidemark-db/tidemark/wasm/abi"
	"github.com/tidemark-db/tidemark/wasm/guest"
	"github.com/tidemark-db/tidemark/wasm/wasmtest"
	"github.com/tidemark-db/tidemark/wasm/wasmtest/testdata/guest/plain"
)

// keeper is a database with the Go guest on it.
type keeper struct {
	t    *testing.T
	db   *storage.DB
	pipe *ingest.Pipeline
	host *wasm.Host
	user core.Grants
}

// uploader may write all data, and read what a test adds.
var uploader = core.Grants{Roles: core.DataWrite.Expand(), WriteAll: true}

func newKeeper(t *testing.T, dir string, options wasm.Options) *keeper {
	t.Helper()
	db, _, err := storage.Open(vfs.OS{}, dir, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	k := &keeper{t: t, db: db, pipe: ingest.New(db, db, ingest.Options{}), user: uploader}
	options.Reader, options.Catalog = db, db
	t.Cleanup(func() {
		if err := db.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	k.host = newHost(t, options)
	goPlugin(t, k.host, "go")
	return k
}

// upload sends a file, stores what comes back, and returns the text of the last message, or the error.
func (k *keeper) upload(text string) (string, error) {
	k.t.Helper()
	parsers := wasm.Parsers{Host: k.host}
	request := core.ParseRequest{Parser: "go", Format: "lines", Origin: core.Origin{User: "ada", Door: core.DoorPlugin, Grants: k.user}}
	answer := ""
	for parsed, err := range parsers.Parse(k.t.Context(), request, strings.NewReader(text)) {
		if err != nil {
			return "", err
		}
		for _, m := range parsed.Batch.Messages {
			answer = m.Text
		}
		if _, err := k.pipe.Ingest(k.t.Context(), parsed.Batch); err != nil {
			return "", err
		}
	}
	return answer, nil
}

func (k *keeper) want(act, want string) {
	k.t.Helper()
	if got, err := k.upload(act); got != want || err != nil {
		k.t.Errorf("%s: %q, error %v; want %q", act, got, err, want)
	}
}

func (k *keeper) documents(docs ...core.DocChange) {
	k.t.Helper()
	if _, err := k.pipe.Ingest(k.t.Context(), &core.Batch{Origin: core.SystemOrigin(0), Documents: docs}); err != nil {
		k.t.Fatal(err)
	}
}

func TestPluginsRemember(t *testing.T) {
	dir := t.TempDir()
	t.Run("before", func(t *testing.T) {
		k := newKeeper(t, dir, wasm.Options{})
		k.want("!get key", "no such value")
		k.want("!put key=first", "first")
		k.want("!get key", "first")
		k.want("!put gone=x", "x")
		k.want("!put gone=", "")
		k.want("!get gone", "no such value")
		k.want("!put "+strings.Repeat("k", 256)+"=v", "v")
		long := strings.Repeat("v", 16<<10)
		k.want("!put long="+long, long)
		k.want("!get long", long) // does not fit the first buffer of the SDK
		// A call that fails leaves nothing, whether the guest caught it or not, and whatever the second attempt did.
		for _, act := range []string{"put-and-panic", "put-and-exit"} {
			if _, err := k.upload("!" + act + " lost"); err == nil {
				t.Errorf("%s has no error", act)
			}
			k.want("!get key", "first")
		}
		// Instances were replaced by now.
		if s := k.host.Plugin("go").Stats(); s.Retries != 2 {
			t.Errorf("%d retries, want 2", s.Retries)
		}
	})
	t.Run("after a restart", func(t *testing.T) {
		k := newKeeper(t, dir, wasm.Options{})
		k.want("!get key", "first")
	})
	t.Run("another plugin", func(t *testing.T) {
		k := newKeeper(t, dir, wasm.Options{})
		add(t, k.host, "other", goGuest)
		parsers := wasm.Parsers{Host: k.host}
		for parsed, err := range parsers.Parse(t.Context(), core.ParseRequest{Parser: "other"}, strings.NewReader("!get key")) {
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range parsed.Batch.Messages {
				if m.Text != "no such value" {
					t.Errorf("it reads %q", m.Text)
				}
			}
		}
	})
}

// What is not stored is not remembered: the output of the call and the state are one batch.
func TestStateIsLostWithTheOutput(t *testing.T) {
	k := newKeeper(t, t.TempDir(), wasm.Options{})
	k.user.WriteAll = false // the message of the guest is refused
	if _, err := k.upload("!put key=v"); core.CodeOf(err) != core.Forbidden {
		t.Fatalf("error %v, want forbidden", err)
	}
	k.user.WriteAll = true
	k.want("!get key", "no such value")
	// The role that the state needs is not lent to anything else.
	k.user.Roles = core.Authenticated
	if _, err := k.upload("!put key=v"); core.CodeOf(err) != core.Forbidden {
		t.Errorf("error %v, want forbidden", err)
	}
}

func TestStateIsBounded(t *testing.T) {
	k := newKeeper(t, t.TempDir(), wasm.Options{State: wasm.StateLimits{KeyBytes: 4, ValueBytes: 5, Keys: 2}})
	over := "over a limit, which the log names"
	k.want("!put key55=v", over)
	k.want("!put key=123456", over)
	k.want("!put a=12345", "12345")
	k.want("!put b=2", "2")
	k.want("!put c=3", over)
	k.want("!put b=3", "3")
	k.want("!put a=", "")
	k.want("!put c=4", "4") // the place that a left
	k.want("!put a=5", over)
	// A guest that gives up tells the user which limit it was.
	if _, err := k.upload("!put-and-panic 123456"); core.CodeOf(err) != core.Invalid ||
		!strings.Contains(err.Error(), "a value has 6 bytes, plugins.state.value allows 5") {
		t.Errorf("error %v", err)
	}
}

func TestLookup(t *testing.T) {
	k := newKeeper(t, t.TempDir(), wasm.Options{})
	k.documents(
		core.DocChange{Kind: core.DocTable, Key: core.TableKey("My Sites"), Body: []byte(`{"name":"My Sites","valueFormat":"LIST","keys":{"n":"North","s":""}}`)},
		core.DocChange{Kind: core.DocEntity, Key: "pump", Op: core.DocPatch, Body: []byte(`{"tags":{"loc":"b2"}}`)},
		core.DocChange{Kind: core.DocEntity, Key: "valve", Op: core.DocPatch, Body: []byte(`{"tags":{"loc":"b3"}}`)},
		core.DocChange{Kind: core.DocGroup, Key: "pumps", Op: core.DocPatch, Body: []byte(`{"members":["pump"]}`)})
	k.want("!table My Sites=n", "not granted") // an uploader without roles to read
	k.want("!tag pump=loc", "not granted")
	k.user.Roles |= core.MetaRead
	k.want("!table My Sites=n", "North")
	k.want("!table my_sites=n", "North")
	k.want("!table My Sites=s", "")
	k.want("!table My Sites=x", "no such value")
	k.want("!table My Sites=N", "no such value") // keys are exact
	k.want("!table Sites=n", "no such value")
	k.want("!table =n", "malformed key or buffer")
	k.want("!tag pump=loc", "no such value") // in none of the uploader's groups
	k.user.ReadGroups = []string{"pumps"}
	k.want("!tag Pump=LOC", "b2")
	k.want("!tag pump=none", "no such value")
	k.want("!tag valve=loc", "no such value")
	k.user.ReadAll = true
	k.want("!tag valve=loc", "b3")
}

// asks returns a parser that calls one capability with constants and gives its result, less 1000, as an unknown code.
func asks(capability string, args [4]int32, manifest ...string) []byte {
	var code []byte
	for _, a := range args {
		code = append(code, wasmtest.Const32(a)...)
	}
	code = append(append(code, 0x10, 0, 0xac), append(wasmtest.Const64(-1000), 0x7c)...) // call 0, i64.extend_i32_s, i64.add
	m := wasmtest.Plugin(abi.Manifest{ABI: 1, Name: "asks", Version: "1", Kinds: []abi.Kind{abi.KindParser}, Capabilities: manifest},
		wasmtest.Func{Export: abi.KindParser.Export(), Code: code})
	m.Imports = []wasmtest.Import{{Module: abi.HostModule, Name: capability, Params: []byte{wasmtest.I32, wasmtest.I32, wasmtest.I32, wasmtest.I32},
		Results: []byte{wasmtest.I32}}}
	return m.Bytes()
}

// The memory of the module has 40 pages, and its input lies at wasmtest.Input.
func TestCapabilitiesWithHostileArguments(t *testing.T) {
	const end, in = 40 << 16, wasmtest.Input
	k := newKeeper(t, t.TempDir(), wasm.Options{})
	k.documents(core.DocChange{Kind: core.DocPluginState, Key: "asks\x00k", Body: []byte("value")})
	for _, c := range []struct {
		name       string
		capability string
		input      string
		args       [4]int32
		want       int
	}{
		{"a value that fits", abi.ImportKVGet, "k", [4]int32{in, 1, in + 8, 5}, 5},
		{"a value that does not fit", abi.ImportKVGet, "k", [4]int32{in, 1, in + 8, 4}, 5},
		{"no buffer", abi.ImportKVGet, "k", [4]int32{in, 1, 0, 0}, 5},
		{"the last byte of the memory", abi.ImportKVGet, "k", [4]int32{in, 1, end - 5, 5}, 5},
		{"a buffer over the end", abi.ImportKVGet, "k", [4]int32{in, 1, end - 4, 5}, int(abi.Malformed)},
		{"a buffer that wraps around", abi.ImportKVGet, "k", [4]int32{in, 1, -1, 8}, int(abi.Malformed)},
		{"a huge buffer", abi.ImportKVGet, "k", [4]int32{in, 1, 8, -1}, int(abi.Malformed)},
		{"a key over the end", abi.ImportKVGet, "k", [4]int32{end, 1, in, 8}, int(abi.Malformed)},
		{"a huge key", abi.ImportKVGet, "k", [4]int32{8, -1, in, 8}, int(abi.Malformed)},
		{"a key of half the memory", abi.ImportKVGet, "k", [4]int32{8, end / 2, in, 8}, int(abi.OverLimit)},
		{"an empty key", abi.ImportKVGet, "k", [4]int32{in, 0, in, 8}, int(abi.Malformed)},
		{"a key that is not UTF-8", abi.ImportKVGet, "\xff", [4]int32{in, 1, in, 8}, int(abi.Malformed)},
		{"a value over the end", abi.ImportKVPut, "k", [4]int32{in, 1, end - 1, 2}, int(abi.Malformed)},
		{"a huge value", abi.ImportKVPut, "k", [4]int32{in, 1, 8, end - 8}, int(abi.OverLimit)},
		{"a value is counted", abi.ImportKVPut, "kv", [4]int32{in, 1, in + 1, 1}, 1},
		{"a lookup of no kind", abi.ImportLookup, "k", [4]int32{in, 1, in, 8}, int(abi.Malformed)},
		{"a lookup of an unknown kind", abi.ImportLookup, "user\x00admin\x00hash", [4]int32{in, 15, in, 8}, int(abi.Malformed)},
		{"a lookup of a name too long", abi.ImportLookup, "k", [4]int32{8, 5000, in, 8}, int(abi.OverLimit)},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := add(t, k.host, "asks", asks(c.capability, c.args, c.capability))
			s, err := p.OpenAs(t.Context(), core.SystemGrants, abi.OpenRequest{Kind: abi.KindParser})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			_, err = s.Write(t.Context(), []byte(c.input), 0)
			wantFault(t, err, wasm.FaultOutput, fmt.Sprintf("result %d is", c.want-1000))
			if len(s.Remembered()) != 0 {
				t.Error("a call that failed is remembered")
			}
		})
	}
}

func TestCapabilitiesNeedAGrantAndTheManifest(t *testing.T) {
	var grants []string
	h := newHost(t, wasm.Options{Grants: func(plugin string) []string {
		if plugin == "trusted" {
			return grants
		}
		return nil
	}})
	args := [4]int32{wasmtest.Input, 1, 0, 0}
	for _, c := range []struct {
		name   string
		module []byte
		grants []string
		want   string // "" = it loads
	}{
		{"trusted", asks(abi.ImportKVPut, args, abi.ImportKVPut), nil, "kv_put, which is not granted: the operator may add kv_put to the grants of trusted"},
		{"trusted", asks(abi.ImportKVPut, args, abi.ImportKVPut), []string{"kv_get"}, "kv_put, which is not granted"},
		{"trusted", asks(abi.ImportKVPut, args, "kv_get"), []string{"kv_get", "kv_put"}, "but its manifest does not name the capability"},
		{"trusted", asks(abi.ImportKVPut, args, abi.ImportKVPut), []string{"kv_put"}, ""},
		{"same-module", asks(abi.ImportKVPut, args, abi.ImportKVPut), []string{"kv_put"}, "which is not granted"},
		{"trusted", asks("kv_list", args, "kv_list"), []string{"kv_list"}, "tidemark_v1.kv_list, which is not granted"},
	} {
		grants = c.grants
		_, err := h.Load(t.Context(), c.name, c.module, nil)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s with %v: error %v, want %q", c.name, c.grants, err, c.want)
		}
	}
	// Without an uploader there is nobody with rights.
	s, err := h.Plugin("trusted").Open(t.Context(), abi.OpenRequest{Kind: abi.KindParser})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = s.Write(t.Context(), []byte("k"), 0)
	wantFault(t, err, wasm.FaultOutput, fmt.Sprintf("result %d is", int(abi.Unavailable)-1000))
}

// counter is a native stateful parser that remembers how many chunks it saw, and may not write while it is opened.
type counter struct {
	host guest.Host
	t    *testing.T
}

func (c counter) Open(*abi.OpenRequest) error {
	if err := c.host.Put("k", []byte("x")); !errors.Is(err, abi.Unavailable) {
		c.t.Errorf("a write while opening: %v", err)
	}
	if _, err := c.host.Get("k"); !errors.Is(err, abi.Absent) && err != nil {
		c.t.Errorf("a read while opening: %v", err)
	}
	return nil
}

func (c counter) Parse([]byte, bool, *abi.Encoder) error {
	before, err := c.host.Get("k")
	if err != nil && !errors.Is(err, abi.Absent) {
		return err
	}
	if err := c.host.Put("k", append(before, 'x')); err != nil {
		return err
	}
	if now, err := c.host.Get("k"); err != nil || len(now) != len(before)+1 {
		return fmt.Errorf("it does not see its own write: %q, %v", now, err)
	}
	return nil
}

func TestNativePluginsRemember(t *testing.T) {
	k := newKeeper(t, t.TempDir(), wasm.Options{})
	_, err := k.host.AddNative("go", func(o abi.Options) abi.Instance {
		var host guest.Host
		return guest.New(guest.Plugin{Manifest: abi.Manifest{Name: "n", Version: "1", Stateful: true, Capabilities: abi.Capabilities()},
			Init:      func(_ []byte, h guest.Host) error { host = h; return nil },
			NewParser: func() guest.Parser { return counter{host, t} }}, o)
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	// 600,000 bytes are three chunks and the end mark.
	if _, err := k.upload(strings.Repeat("x", 600_000)); err != nil {
		t.Fatal(err)
	}
	for d, err := range k.db.Documents(t.Context(), core.DocumentQuery{Kind: core.DocPluginState}) {
		if err != nil || d.Key != "go\x00k" || string(d.Body) != "xxxx" {
			t.Errorf("state %q of %q, error %v; want xxxx", d.Body, d.Key, err)
		}
	}
	k.host.Remove("go")
}

// lines of a stateless plugin: the bad chunk is lost, those around it are not.
func TestOneChunkOfAStatelessPluginIsLost(t *testing.T) {
	h := newHost(t, wasm.Options{})
	nativePlain(t, h, plain.Manifest())
	_, err := h.AddNative("fragile", func(o abi.Options) abi.Instance {
		return guest.New(guest.Plugin{Manifest: plain.Manifest(), NewParser: func() guest.Parser { return fragile{plain.NewParser()} }}, o)
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	row := strings.Repeat("1000,e,m,1\n", 24_000) // 264,000 bytes, a little more than a chunk of 262,144
	text := row + "BOOM\n" + row
	parsers := &wasm.Parsers{Host: h}
	samples, stored := 0, ""
	var letters []*wasm.Lost
	for parsed, err := range parsers.Parse(t.Context(), core.ParseRequest{Parser: "fragile", Format: "lines"}, iotest.OneByteReader(strings.NewReader(text))) {
		var lost *wasm.Lost
		if errors.As(err, &lost) {
			letters = append(letters, lost)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		samples += parsed.Batch.Samples.Len()
	}
	if len(letters) != 1 {
		t.Fatalf("%d letters", len(letters))
	}
	kept, skip := letters[0].LostInput()
	headless, truncated := letters[0].LostParts()
	plugin, at := letters[0].LostAt()
	stored = text[:at] + text[at+int64(len(kept)):]
	if plugin != "fragile" || skip != 0 || headless || truncated || !strings.Contains(string(kept), "BOOM") || string(kept) != text[at:][:len(kept)] {
		t.Errorf("letter of %s at %d with %d bytes, skip %d, %v %v", plugin, at, len(kept), skip, headless, truncated)
	}
	if want := strings.Count(stored, "\n"); samples != want {
		t.Errorf("%d samples, want %d", samples, want)
	}
}

type fragile struct{ guest.Parser }

func (f fragile) Parse(chunk []byte, last bool, out *abi.Encoder) error {
	if strings.Contains(string(chunk), "BOOM") {
		panic("boom")
	}
	return f.Parser.Parse(chunk, last, out)
}

// A stateful plugin reads the head of a letter again; what it makes of it is not stored twice.
func TestStatefulStreamCanBeResumed(t *testing.T) {
	h := newHost(t, wasm.Options{})
	m := plain.Manifest()
	m.Stateful = true
	broken := true
	_, err := h.AddNative("fragile", func(o abi.Options) abi.Instance {
		return guest.New(guest.Plugin{Manifest: m, NewParser: func() guest.Parser {
			if broken {
				return fragile{plain.NewParser()}
			}
			return plain.NewParser()
		}}, o)
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	// Chunks end anywhere: the line at byte 262144 is in both.
	row := strings.Repeat("1000,e,m,1\n", 24_000)
	text := row + "2000,BOOM,m,1\n" + row + row
	for _, c := range []struct {
		limit               int
		skip, kept          int
		headless, truncated bool
	}{
		{1 << 20, 262_144, len(text), false, false},
		{512 << 10, 262_144, 512 << 10, false, true},
		{300_000, 0, 300_000, true, true},
	} {
		broken = true
		request := core.ParseRequest{Parser: "fragile", Format: "raw"}
		parsers := &wasm.Parsers{Host: h, LetterBytes: c.limit}
		stored := 0
		var lost *wasm.Lost
		for parsed, err := range parsers.Parse(t.Context(), request, strings.NewReader(text)) {
			if err == nil {
				stored += parsed.Batch.Samples.Len()
			} else if !errors.As(err, &lost) {
				t.Fatal(err)
			}
		}
		if lost == nil {
			t.Fatal("nothing is lost")
		}
		kept, skip := lost.LostInput()
		headless, truncated := lost.LostParts()
		if _, at := lost.LostAt(); at != 262_144 || int(skip) != c.skip || len(kept) != c.kept || headless != c.headless || truncated != c.truncated {
			t.Errorf("limit %d: at %d, skip %d, %d bytes, %v %v", c.limit, at, skip, len(kept), headless, truncated)
		}
		if c.truncated {
			continue
		}
		broken = false
		for parsed, err := range parsers.Resume(t.Context(), request, strings.NewReader(string(kept)), skip) {
			if err != nil {
				t.Fatal(err)
			}
			stored += parsed.Batch.Samples.Len()
		}
		if want := strings.Count(text, "\n"); stored != want {
			t.Errorf("%d samples, want %d", stored, want)
		}
	}
}
