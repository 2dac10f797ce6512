// Command guest is the plugin of the tests: a CSV-like parser, an alert renderer, and misbehaviour on demand.
package main

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/tidemark-db/tidemark/wasm/abi"
	"github.com/tidemark-db/tidemark/wasm/guest"
	"github.com/tidemark-db/tidemark/wasm/wasmtest/testdata/guest/plain"
)

func init() {
	guest.Register(guest.Plugin{
		Manifest:  plain.Manifest(),
		Init:      start,
		NewParser: func() guest.Parser { return &hostile{plain: plain.NewParser()} },
		NewAlert:  plain.NewAlert,
	})
}

func main() {}

var host guest.Host

func start(settings []byte, h guest.Host) error {
	host = h
	var s struct {
		Loop bool   `json:"loop"`
		Fail string `json:"fail"`
	}
	if len(settings) > 0 {
		if err := json.Unmarshal(settings, &s); err != nil {
			return err
		}
	}
	for s.Loop {
	}
	if s.Fail != "" {
		return errors.New(s.Fail)
	}
	return nil
}

// hostile obeys chunks that begin with "!" and parses the others.
type hostile struct {
	plain guest.Parser
}

func (p *hostile) Open(r *abi.OpenRequest) error {
	if string(r.Config) == "null" { // a parser file without config
		r.Config = nil
	}
	return p.plain.Open(r)
}

func (p *hostile) Parse(chunk []byte, last bool, out *abi.Encoder) error {
	if len(chunk) == 0 || chunk[0] != '!' {
		return p.plain.Parse(chunk, last, out)
	}
	verb, arg, _ := strings.Cut(strings.TrimSpace(string(chunk[1:])), " ")
	return p.misbehave(verb, arg, out)
}

// kept is what a growing guest never lets go of.
var kept [][]byte

func (p *hostile) misbehave(verb, arg string, out *abi.Encoder) error {
	switch verb {
	case "panic":
		panic(arg)
	case "exit":
		os.Exit(3)
	case "error":
		return errors.New(arg)
	case "loop":
		for {
		}
	case "sleep":
		time.Sleep(time.Hour)
	case "recurse":
		recurse(100)
	case "grow":
		for {
			kept = append(kept, make([]byte, 1<<20))
		}
	case "keep":
		kept = append(kept, make([]byte, 52<<20))
	case "memset":
		b := make([]byte, 30<<20)
		for {
			clear(b)
		}
	case "deadlock":
		select {}
	case "invalid-utf8":
		out.Message(&abi.Message{Entity: "e", Text: "\xff"})
	case "future":
		out.Sample(out.Series("m", "e"), abi.MaxTime+1, 1)
	case "log":
		for i := range 200 {
			host.Log(abi.LogInfo, fmt.Sprintf("line %d %s", i, strings.Repeat("x", 5000)))
		}
	case "stderr":
		fmt.Fprintln(os.Stderr, arg)
	case "environment":
		out.Message(&abi.Message{Entity: "e", Text: strings.Join(os.Environ(), ";"), Time: host.NowMs()})
		out.Message(&abi.Message{Entity: "e", Text: time.Now().UTC().Format(time.RFC3339), Time: host.NowMs()})
	case "random":
		b := make([]byte, 16)
		rand.Read(b)
		out.Message(&abi.Message{Entity: "e", Text: fmt.Sprintf("%x", b)})
	case "get", "put", "table", "tag":
		return p.remember(verb, arg, out)
	case "put-and-panic":
		if err := host.Put("key", []byte(arg)); err != nil {
			return err
		}
		panic(arg)
	case "put-and-exit":
		if err := host.Put("key", []byte(arg)); err != nil {
			return err
		}
		os.Exit(3)
	case "file":
		_, err := os.ReadFile("/etc/passwd")
		return err
	default:
		return fmt.Errorf("unknown verb %q", verb)
	}
	return nil
}

// remember uses a capability and tells the answer in a message.
func (p *hostile) remember(verb, arg string, out *abi.Encoder) error {
	name, value, _ := strings.Cut(arg, "=")
	var err error
	switch verb {
	case "get":
		var b []byte
		b, err = host.Get(name)
		value = string(b)
	case "put":
		err = host.Put(name, []byte(value))
	case "table":
		value, err = host.Table(name, value)
	case "tag":
		value, err = host.EntityTag(name, value)
	}
	if err != nil {
		value = err.Error()
	}
	out.Message(&abi.Message{Entity: "e", Type: verb, Text: value, Persist: true})
	return nil
}

// recurse calls itself twice: it ends when the stars do, without a loop.
func recurse(n int) int {
	if n == 0 {
		return 1
	}
	return recurse(n-1) + recurse(n-1)
}
