package guest

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/tidemark-db/tidemark/wasm/abi"
)

// spy is a parser that does what its fields say and remembers its last request.
type spy struct {
	request *abi.OpenRequest
	err     error
	boom    bool
}

func (s *spy) Open(r *abi.OpenRequest) error { s.request = r; return s.err }

func (s *spy) Parse(chunk []byte, last bool, out *abi.Encoder) error {
	if s.boom {
		panic("boom")
	}
	if last {
		out.AddLines(len(chunk))
	}
	return s.err
}

func newInstance(s *spy) *Instance {
	return New(Plugin{Manifest: abi.Manifest{Name: "spy"}, NewParser: func() Parser { return s }}, abi.Options{})
}

func TestManifestIsFilledIn(t *testing.T) {
	m, err := abi.ParseManifest(newInstance(&spy{}).Describe())
	if err != nil {
		t.Fatal(err)
	}
	if m.ABI != 1 || m.SDK != "go/1" || len(m.Kinds) != 1 || m.Kinds[0] != abi.KindParser {
		t.Errorf("manifest %+v", m)
	}
}

func TestCallPassesFlagsAndRequest(t *testing.T) {
	s := &spy{}
	i := newInstance(s)
	request, err := json.Marshal(abi.OpenRequest{Kind: abi.KindParser, Params: map[string]string{"p": "x"}, Test: true})
	if err != nil {
		t.Fatal(err)
	}
	if code := i.Open(request); code != abi.OK || s.request.Params["p"] != "x" || !s.request.Test {
		t.Fatalf("code %v, request %+v", code, s.request)
	}
	for flags, want := range map[uint32]uint32{0: 0, abi.FlagLast: 3} {
		out, code := i.Call(abi.KindParser, []byte("abc"), flags)
		var b abi.Batch
		if err := b.Decode(string(out), abi.Limits{}); code != abi.OK || err != nil || b.Lines != want {
			t.Errorf("flags %d: code %v, error %v, %d lines; want %d", flags, code, err, b.Lines, want)
		}
	}
}

func TestFaultsBecomeCodes(t *testing.T) {
	for name, c := range map[string]struct {
		spy  spy
		kind abi.Kind
		code abi.Code
		text string
	}{
		"error":        {spy{err: errors.New("no good")}, abi.KindParser, abi.Failed, "no good"},
		"panic":        {spy{boom: true}, abi.KindParser, abi.Panicked, "panic: boom"},
		"missing kind": {spy{}, abi.KindAlert, abi.Unsupported, `plugin has no such kind: "alert"`},
	} {
		i := newInstance(&c.spy)
		if _, code := i.Call(c.kind, nil, 0); code != c.code || i.LastError() != c.text {
			t.Errorf("%s: code %v, error %q; want %v, %q", name, code, i.LastError(), c.code, c.text)
		}
	}
	if i := newInstance(&spy{}); i.Open([]byte("{")) != abi.Failed || i.LastError() == "" {
		t.Error("a broken open request is accepted")
	}
}
