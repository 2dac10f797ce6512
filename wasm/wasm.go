// Package wasm runs plugins: WebAssembly modules, and built-in ones linked natively where only an interpreter exists, behind
// one type that does not show the difference.
//
// A Plugin is registered by Host.Add and loaded on first use: size, imports and exports are checked, the module is rewritten
// to pay for its steps (wasm/meter), compiled, instantiated, asked for its manifest and initialised. Calls take instances
// from a pool; a stream of a stateful plugin keeps one instance from Open to Close. Whatever a guest does costs one failed
// call: it is stopped at its deadline, its memory is bounded, every pointer and byte it returns is checked, and an instance
// that trapped is thrown away.
//
// A plugin that was granted it reads replacement tables and entity tags with the rights of the uploader, and remembers values that are stored
// in one batch with its output (capability.go). Input that a plugin could not take leaves Parsers as a Lost, for a dead letter (lost.go).
//
// ABI.md draws the border; package abi has its constants and codecs.
package wasm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/wasm/abi"
)

// Engine is how modules are executed.
type Engine uint8

// The engines.
const (
	EngineAuto Engine = iota // the compiler where the platform has one
	EngineCompiler
	EngineInterpreter // some 50 times slower
)

// Options of a Host. The zero value works.
type Options struct {
	Engine   Engine
	CacheDir string // of compiled modules; "" keeps them in memory. It holds native code: nobody else may write there.
	// Budget bounds linear memory and code of all plugins together, in bytes; 0 = 256 MiB.
	Budget int64
	// MemoryMB bounds the linear memory of one instance; 0 = 64. A manifest may lower it.
	MemoryMB int
	// Interpreted allows modules where only the interpreter exists; built-in plugins are native there and need no leave.
	Interpreted bool

	ParseDeadline time.Duration // a chunk or request; 0 = 2 s
	AlertDeadline time.Duration // a batch of events; 0 = 1 s
	InitDeadline  time.Duration // from instantiation to the end of tidemark_init; 0 = 5 s

	// Grants tells which capabilities the operator gave to a plugin; it is asked each time that the plugin is loaded. nil grants nothing.
	Grants func(plugin string) []string
	// Reader and Catalog are what granted capabilities reach; without them they are unavailable.
	Reader  core.Reader
	Catalog core.Catalog // also has the values of copied tags
	State   StateLimits
	Streams StreamLimits
	// Zone resolves the time zones that guests ask for; with nil they know none but their own.
	Zone func(id string) (*time.Location, error)

	Limits abi.Limits       // of one batch; the zero value is abi.DefaultLimits
	Log    *slog.Logger     // nil drops everything
	Now    func() time.Time // nil = time.Now
}

// Fixed limits; each says what it buys.
const (
	maxModule      = 16 << 20         // a Go plugin is 2 to 5 MB
	maxManifest    = 1 << 20          // bytes of the JSON
	maxErrorText   = 4 << 10          // bytes of a guest's error or log line
	fuel           = 10_000           // steps between two checks: some 50 us, so the host's collector waits 0.1 ms
	codePerByte    = 6                // compiled code resident per byte of module, measured 5 to 6
	maxCalls       = 1_000_000        // of one instance
	idleUnload     = 5 * time.Minute  // three resident Go plugins cost 70 MB
	killsToOpen    = 3                // within killWindow
	killWindow     = time.Minute      //
	maxBackoff     = 64 * time.Minute //
	forgetAfter    = 10 * time.Minute // without a kill the backoff starts over
	logLines       = 50               // a second and plugin
	retireFraction = 4                // an instance goes when less than a quarter of its memory is left
)

func (o *Options) setDefaults() error {
	if o.Budget == 0 {
		o.Budget = 256 << 20
	}
	if o.MemoryMB == 0 {
		o.MemoryMB = 64
	}
	if o.ParseDeadline == 0 {
		o.ParseDeadline = 2 * time.Second
	}
	if o.AlertDeadline == 0 {
		o.AlertDeadline = time.Second
	}
	if o.InitDeadline == 0 {
		o.InitDeadline = 5 * time.Second
	}
	o.State.setDefaults()
	if o.Limits == (abi.Limits{}) {
		o.Limits = abi.DefaultLimits()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	var faults []error
	if err := o.Streams.setDefaults(); err != nil {
		faults = append(faults, err)
	}
	if o.Budget < 0 {
		faults = append(faults, errors.New("wasm: the budget is negative"))
	}
	if s := o.State; s.KeyBytes < 0 || s.KeyBytes > maxLookupKey || s.ValueBytes < 0 || s.ValueBytes > 1<<30 || s.Keys < 0 {
		faults = append(faults, fmt.Errorf("wasm: limits %+v of what plugins remember: keys have at most %d bytes, values 1 GiB", s, maxLookupKey))
	}
	if o.MemoryMB < 1 || o.MemoryMB > 1024 {
		faults = append(faults, fmt.Errorf("wasm: memory of %d MB for one instance: use 1 to 1024", o.MemoryMB))
	}
	if o.ParseDeadline < 0 || o.AlertDeadline < 0 || o.InitDeadline < 0 {
		faults = append(faults, errors.New("wasm: a deadline is negative"))
	}
	return errors.Join(faults...)
}

func (o *Options) deadline(kind abi.Kind, m *abi.Manifest) time.Duration {
	d := o.ParseDeadline
	if kind == abi.KindAlert {
		d = o.AlertDeadline
	}
	if own := time.Duration(m.Limits.DeadlineMs) * time.Millisecond; own > 0 {
		d = min(d, own)
	}
	return d
}

// Fault is what kind of thing went wrong in or around a plugin.
type Fault uint8

// The faults.
const (
	FaultData        Fault = iota // the plugin refuses data or configuration; its instance is fine
	FaultUnsupported              // the plugin has no such kind
	FaultPanic                    // the plugin caught a panic of its own
	FaultTrap                     // a trap or an exit ended the instance
	FaultDeadline                 // stopped at its deadline
	FaultCanceled                 // stopped because the caller went away
	FaultOutput                   // what came back breaks the ABI
	FaultModule                   // the module cannot be loaded
	FaultBusy                     // no memory, no instance, or the breaker is open: try again later
)

var faultNames = [...]string{"data", "unsupported", "panic", "trap", "deadline", "canceled", "output", "module", "busy"}

func (f Fault) String() string {
	if int(f) < len(faultNames) {
		return faultNames[f]
	}
	return fmt.Sprintf("fault %d", uint8(f))
}

// kills reports whether the guest lost its instance by its own doing: the breaker should know.
func (f Fault) kills() bool { return f == FaultTrap || f == FaultDeadline }

// spoils reports whether the instance is gone or must not be used again.
func (f Fault) spoils() bool {
	return f.kills() || f == FaultCanceled || f == FaultPanic || f == FaultOutput
}

// again reports whether a fresh instance may do better.
func (f Fault) again() bool { return f.kills() || f == FaultPanic }

// loses reports whether the input is lost with the fault.
func (f Fault) loses() bool { return f.again() || f == FaultOutput }

// Error is a failure of a plugin.
type Error struct {
	Plugin string
	Fault  Fault
	Text   string
	// DeadLetter means that the input was not and will not be processed: it belongs into the dead letters.
	DeadLetter bool
	Offset     int64         // of a stream: bytes that were processed before
	RetryAfter time.Duration // with FaultBusy; 0 = not known
	Cause      error         // may be nil
}

func (e *Error) Error() string { return fmt.Sprintf("plugin %s: %s: %s", e.Plugin, e.Fault, e.Text) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

func faultf(plugin string, f Fault, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Plugin: plugin, Fault: f, Text: err.Error(), Cause: errors.Unwrap(err)}
}

// guest is one running plugin, compiled or native. One goroutine uses it at a time. Errors are *Error, or that of a
// context. After a fault that spoils it the guest must be closed.
type guest interface {
	describe(c callArgs) ([]byte, error)
	init(c callArgs, settings []byte) error
	open(c callArgs, request []byte) error
	call(c callArgs, kind abi.Kind, in []byte, flags uint32) (string, error)
	// worn reports that the guest should be replaced although nothing went wrong.
	worn() bool
	ticks() int64
	close()
}

// callArgs is the context of one call into a guest, with what else goes with the call.
type callArgs struct {
	context.Context
	deadline time.Duration // from the moment that the guest starts to run
	received int64         // what now_ms answers
	session  *session      // what the capabilities reach; nil in calls that have no uploader
}

// maker makes guests of one plugin. It is held while guests exist.
type maker interface {
	make(c callArgs, p *Plugin) (guest, error)
	imports() []string // the capabilities among them
	release()
}

func poolSize() int { return runtime.GOMAXPROCS(0) }
