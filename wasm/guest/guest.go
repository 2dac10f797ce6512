// Package guest is the Go SDK for plugins. A plugin fills a Plugin and registers it:
//
//	package main
//
//	import "github.com/tidemark-db/tidemark/wasm/guest"
//
//	func init() { guest.Register(guest.Plugin{Manifest: manifest, NewParser: newParser}) }
//
//	func main() {}
//
// and is built by the Go toolchain alone:
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -ldflags='-s -w' -o my.wasm .
//
// Such a module is a reactor: main never runs, the init functions do. The same Plugin runs inside a native program by New,
// through the same bytes; tests and 32-bit servers do so.
//
// Plugins start no goroutines and never sleep: a guest runs only while it is called. The standard library's parsing of times
// and numbers is some 10 times slower in a guest than natively: ParseTime, ParseFloat and Lines are the fast way.
package guest

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tidemark-db/tidemark/wasm/abi"
)

// Plugin is what an author writes. Only the parts that the manifest's kinds name are needed.
type Plugin struct {
	// Manifest describes the plugin. Its ABI, Kinds and SDK are filled in when they are empty.
	Manifest abi.Manifest
	// Init receives the server's settings of the plugin, JSON or empty, once per instance. It may be nil.
	Init func(settings []byte, host Host) error

	NewParser      func() Parser      // kind parser, one for each stream
	NewTransformer func() Transformer // kind transform, one for each stream
	NewAlert       func() AlertRenderer
	NewWebhook     func() WebhookDecoder
}

// Parser turns bytes into commands. A stateless parser is opened too, once per configuration, and must not carry anything
// from chunk to chunk.
type Parser interface {
	Open(request *abi.OpenRequest) error
	// Parse reads a chunk. With framing lines it holds whole lines; last marks the end of the stream, when chunk may be empty.
	// A bad line is no error: report it by out.Reject, and by out.Stop when nothing after it can be read. chunk is valid until Parse returns.
	Parse(chunk []byte, last bool, out *abi.Encoder) error
}

// Transformer rewrites batches.
type Transformer interface {
	Open(request *abi.OpenRequest) error
	Transform(in *abi.Batch, out *abi.Encoder) error
}

// AlertRenderer writes the texts of alerts. It appends one rendering for each event, in order.
type AlertRenderer interface {
	Open(request *abi.OpenRequest) error
	Render(events abi.Events, out []abi.Rendering) ([]abi.Rendering, error)
}

// WebhookDecoder turns a request into commands.
type WebhookDecoder interface {
	Open(request *abi.OpenRequest) error
	Decode(request *abi.Request, out *abi.Encoder) error
}

// Host is what a plugin may ask of the server.
type Host struct{ options abi.Options }

// Log writes a line into the server's log of this plugin, at most 4 KB and 50 lines a second.
func (h Host) Log(level uint32, text string) {
	if h.options.Log != nil {
		h.options.Log(level, text)
	}
}

// NowMs returns the receive time of the batch in work, Unix ms. Replays get the time of the first run.
func (h Host) NowMs() int64 {
	if h.options.NowMs == nil {
		return 0
	}
	return h.options.NowMs()
}

// Zone returns the offsets of the time zone with an ID such as Europe/Berlin, ordered, as the server knows it; abi.Absent when there is none.
func (h Host) Zone(id string) ([]abi.ZoneOffset, error) {
	b, err := read(func(buf []byte) int32 { return h.zone(id, buf) })
	if err != nil {
		return nil, err
	}
	return abi.DecodeZone(b)
}

// Instance runs a Plugin through bytes. It implements abi.Instance.
type Instance struct {
	plugin   Plugin
	host     Host
	manifest []byte
	lastErr  string
	opened   abi.Kind // of parser, transformer, alert, webhook only the opened one is set

	parser      Parser
	transformer Transformer
	alert       AlertRenderer
	webhook     WebhookDecoder

	batch      abi.Batch
	encoder    abi.Encoder
	renderings []abi.Rendering
	out        []byte
}

// New makes an instance. It panics when the manifest cannot be written as JSON, since that is a fault of the program.
func New(p Plugin, options abi.Options) *Instance {
	m := &p.Manifest
	if m.ABI == 0 {
		m.ABI = int(abi.Major(abi.Version))
	}
	if len(m.Kinds) == 0 {
		m.Kinds = p.kinds()
	}
	if m.SDK == "" {
		m.SDK = "go/1"
	}
	text, err := json.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("guest: manifest of %q: %v", m.Name, err))
	}
	return &Instance{plugin: p, host: Host{options}, manifest: text}
}

func (p *Plugin) kinds() []abi.Kind {
	var ks []abi.Kind
	for _, k := range []struct {
		kind abi.Kind
		has  bool
	}{
		{abi.KindParser, p.NewParser != nil},
		{abi.KindTransform, p.NewTransformer != nil},
		{abi.KindAlert, p.NewAlert != nil},
		{abi.KindWebhook, p.NewWebhook != nil},
	} {
		if k.has {
			ks = append(ks, k.kind)
		}
	}
	return ks
}

// Describe returns the manifest as JSON.
func (i *Instance) Describe() []byte { return i.manifest }

// LastError is the text of the last result below zero.
func (i *Instance) LastError() string { return i.lastErr }

// Init hands settings to the plugin.
func (i *Instance) Init(settings []byte) (code abi.Code) {
	defer i.recover(&code)
	if i.plugin.Init == nil {
		return abi.OK
	}
	return i.result(i.plugin.Init(append([]byte(nil), settings...), i.host))
}

// Open begins a stream: whatever an earlier stream left behind is dropped.
func (i *Instance) Open(request []byte) (code abi.Code) {
	defer i.recover(&code)
	r := new(abi.OpenRequest)
	if err := json.Unmarshal(request, r); err != nil {
		return i.result(fmt.Errorf("open request: %w", err))
	}
	return i.result(i.open(r))
}

var errUnsupported = errors.New("plugin has no such kind")

// open makes the object of the requested kind and opens it.
func (i *Instance) open(r *abi.OpenRequest) error {
	p := &i.plugin
	i.opened, i.parser, i.transformer, i.alert, i.webhook = "", nil, nil, nil, nil
	var err error
	switch {
	case r.Kind == abi.KindParser && p.NewParser != nil:
		i.parser = p.NewParser()
		err = i.parser.Open(r)
	case r.Kind == abi.KindTransform && p.NewTransformer != nil:
		i.transformer = p.NewTransformer()
		err = i.transformer.Open(r)
	case r.Kind == abi.KindAlert && p.NewAlert != nil:
		i.alert = p.NewAlert()
		err = i.alert.Open(r)
	case r.Kind == abi.KindWebhook && p.NewWebhook != nil:
		i.webhook = p.NewWebhook()
		err = i.webhook.Open(r)
	default:
		return fmt.Errorf("%w: %q", errUnsupported, r.Kind)
	}
	if err == nil {
		i.opened = r.Kind
	}
	return err
}

// Call does one job. A kind that is not open is opened with an empty request first.
func (i *Instance) Call(kind abi.Kind, in []byte, flags uint32) (out []byte, code abi.Code) {
	defer i.recover(&code)
	if i.opened != kind {
		if err := i.open(&abi.OpenRequest{Kind: kind}); err != nil {
			return nil, i.result(err)
		}
	}
	var err error
	i.encoder.Reset()
	switch kind {
	case abi.KindParser:
		err = i.parser.Parse(in, flags&abi.FlagLast != 0, &i.encoder)
	case abi.KindTransform:
		if err = i.batch.Decode(string(in), abi.Limits{}); err == nil {
			err = i.transformer.Transform(&i.batch, &i.encoder)
		}
	case abi.KindAlert:
		return i.render(in)
	case abi.KindWebhook:
		var r *abi.Request
		if r, err = abi.DecodeRequest(string(in), abi.Limits{}); err == nil {
			err = i.webhook.Decode(r, &i.encoder)
		}
	}
	if err != nil {
		return nil, i.result(err)
	}
	return i.encoder.Finish(), abi.OK
}

func (i *Instance) render(in []byte) ([]byte, abi.Code) {
	events, err := abi.ParseEvents(in)
	if err != nil {
		return nil, i.result(err)
	}
	if i.renderings, err = i.alert.Render(events, i.renderings[:0]); err != nil {
		return nil, i.result(err)
	}
	i.out = abi.AppendRenderings(i.out[:0], i.renderings)
	return i.out, abi.OK
}

func (i *Instance) result(err error) abi.Code {
	if err == nil {
		return abi.OK
	}
	i.lastErr = err.Error()
	if errors.Is(err, errUnsupported) {
		return abi.Unsupported
	}
	return abi.Failed
}

// recover turns a panic of the plugin into a result, so that the host learns what happened and not only that it trapped.
func (i *Instance) recover(code *abi.Code) {
	if p := recover(); p != nil {
		i.lastErr = fmt.Sprintf("panic: %v", p)
		*code = abi.Panicked
	}
}
