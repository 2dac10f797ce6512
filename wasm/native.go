package wasm

import (
	"fmt"

	"github.com/tidemark-db/tidemark/wasm/abi"
)

// Native makes an instance of a plugin that is linked into the program, usually by guest.New.
type Native func(abi.Options) abi.Instance

// native is a guest without a border: trusted, since it is a part of this program. Nothing can stop it at a deadline.
type native struct {
	plugin   string
	instance abi.Instance
	current  callArgs // of the call in work, for log and clock
}

func (n Native) make(c callArgs, p *Plugin) (guest, error) {
	g := &native{plugin: p.name, current: c}
	g.instance = n(abi.Options{
		Log:   func(level uint32, text string) { p.log.line(g.current, level, []byte(text)) },
		NowMs: func() int64 { return g.current.received },
		Zone:  p.host.zone,

		Lookup: func(key string, buf []byte) int32 { return g.current.session.lookup(key, buf) },
		KVGet:  func(key string, buf []byte) int32 { return g.current.session.get(key, buf) },
		KVPut:  func(key string, value []byte) int32 { return g.current.session.put(key, value) },
	})
	return g, nil
}

// imports is nothing: a native plugin is refused when it asks.
func (n Native) imports() []string { return nil }

func (n Native) release() {}

func (n *native) describe(callArgs) ([]byte, error) { return n.instance.Describe(), nil }

func (n *native) init(c callArgs, settings []byte) error {
	n.current = c
	return n.result(n.instance.Init(settings))
}

func (n *native) open(c callArgs, request []byte) error {
	n.current = c
	return n.result(n.instance.Open(request))
}

func (n *native) call(c callArgs, kind abi.Kind, in []byte, flags uint32) (_ string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = faultf(n.plugin, FaultPanic, "%s", fmt.Sprint(p))
		}
	}()
	n.current = c
	out, code := n.instance.Call(kind, in, flags)
	if err := n.result(code); err != nil {
		return "", err
	}
	return string(out), nil
}

func (n *native) result(code abi.Code) error {
	if code >= 0 {
		return nil
	}
	return codeError(n.plugin, int64(code), n.instance.LastError())
}

func (n *native) worn() bool   { return false }
func (n *native) ticks() int64 { return 0 }
func (n *native) close()       {}
