package wasm

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"

	"github.com/tidemark-db/tidemark/wasm/abi"
)

// instance is a guest inside the runtime.
type instance struct {
	plugin  string
	unit    *unit
	module  api.Module
	memory  api.Memory
	limit   uint32 // of the memory
	context *callContext
	jobs    map[abi.Kind]api.Function
	alloc   api.Function
	opener  api.Function // nil when the module has none
	stack   [4]uint64    // parameters and result of a call

	input    uint32 // address of the input buffer
	capacity uint32 // bytes that it holds beside the slack
	calls    int
	output   int // most bytes of a result
}

// make instantiates the module: anonymous, with real clocks since a guest's collector paces itself by them, real randomness,
// and a Go collector that stops its world, since a concurrent one may never finish in a guest. It runs on the caller's
// deadline, as _initialize is code of the guest.
func (u *unit) make(c callArgs, p *Plugin) (guest, error) {
	limit := int64(p.host.options.MemoryMB) << 20
	if own := int64(p.lowerMemoryMB()) << 20; own > 0 {
		limit = max(min(limit, own), u.leastMemory)
	}
	linear, err := newLinearMemory(p, memorySize{least: u.leastMemory, limit: limit})
	if err != nil {
		return nil, &Error{Plugin: p.name, Fault: FaultBusy, Text: err.Error(), RetryAfter: time.Minute, Cause: err}
	}
	call := &callContext{Context: c.Context, now: p.host.options.Now, log: p.log, received: c.received}
	call.until = call.now().Add(c.deadline)
	out := &stdio{call: call}
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions(abi.ExportInitialize).
		WithEnv("GODEBUG", "gcstoptheworld=1").WithSysWalltime().WithSysNanotime().WithRandSource(rand.Reader).
		WithStdin(bytes.NewReader(nil)).WithStdout(out).WithStderr(out)
	module, err := p.host.runtime.InstantiateModule(experimental.WithMemoryAllocator(call, linear), u.compiled, config)
	i := &instance{plugin: p.name, unit: u, module: module, context: call, limit: uint32(limit), output: p.host.options.Limits.Bytes}
	if err != nil {
		linear.Free()
		return nil, i.fault(err)
	}
	if module.IsClosed() {
		return nil, faultf(p.name, FaultTrap, "it exited while it started")
	}
	i.memory = module.Memory()
	i.alloc, i.opener = module.ExportedFunction(abi.ExportAlloc), module.ExportedFunction(abi.ExportOpen)
	i.jobs = make(map[abi.Kind]api.Function)
	for _, k := range abi.Kinds() {
		if f := module.ExportedFunction(k.Export()); f != nil {
			i.jobs[k] = f
		}
	}
	u.hold()
	if err := i.checkABI(c); err != nil {
		i.close()
		return nil, err
	}
	return i, nil
}

func (i *instance) checkABI(c callArgs) error {
	if err := i.run(c, i.module.ExportedFunction(abi.ExportABI)); err != nil {
		return err
	}
	if got := uint32(i.stack[0]); abi.Major(got) != abi.Major(abi.Version) {
		return faultf(i.plugin, FaultModule, "it speaks ABI major %d, this server speaks major %d: build it with a matching SDK",
			abi.Major(got), abi.Major(abi.Version))
	}
	return nil
}

// run calls f with i.stack.
func (i *instance) run(c callArgs, f api.Function) error {
	call := i.context
	call.Context, call.received, call.until = c.Context, c.received, call.now().Add(c.deadline)
	call.written, call.session = 0, c.session
	i.calls++
	if err := f.CallWithStack(call, i.stack[:]); err != nil {
		return i.fault(err)
	}
	if i.module.IsClosed() { // its memory is unmapped
		return faultf(i.plugin, FaultTrap, "it exited")
	}
	return nil
}

// fault says why the runtime gave up on the guest.
func (i *instance) fault(err error) error {
	exit := new(sys.ExitError)
	switch {
	case i.context.killed == errOverrun:
		return faultf(i.plugin, FaultDeadline, "%w", errOverrun)
	case i.context.killed != nil:
		return faultf(i.plugin, FaultCanceled, "the caller went away: %w", i.context.killed)
	case errors.As(err, &exit):
		return faultf(i.plugin, FaultTrap, "it exited with code %d", exit.ExitCode())
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return faultf(i.plugin, FaultTrap, "%s", text)
}

// put copies in into the guest and leaves pointer and length on the stack.
func (i *instance) put(c callArgs, in []byte) error {
	n := uint64(len(in))
	if n > uint64(i.capacity) || i.input == 0 {
		n = (n + 4095) &^ 4095
		if n+abi.InputSlack >= uint64(i.limit) {
			return faultf(i.plugin, FaultData, "input of %d bytes is larger than its memory", len(in))
		}
		i.stack[0], i.input = n, 0
		if err := i.run(c, i.alloc); err != nil {
			return err
		}
		ptr := uint32(i.stack[0])
		if ptr == 0 {
			return faultf(i.plugin, FaultData, "it has no buffer for an input of %d bytes", len(in))
		}
		if uint64(ptr)+n+abi.InputSlack > uint64(i.memory.Size()) {
			return faultf(i.plugin, FaultOutput, "%s returned a buffer outside its memory", abi.ExportAlloc)
		}
		i.input, i.capacity = ptr, uint32(n)
	}
	if !i.memory.Write(i.input, in) {
		return faultf(i.plugin, FaultOutput, "its input buffer lies outside its memory")
	}
	i.stack[0], i.stack[1] = uint64(i.input), uint64(len(in))
	return nil
}

// text copies the result on the stack, a packed pointer and length, out of the guest.
func (i *instance) text(limit int) (string, error) {
	ptr, n := uint32(i.stack[0]>>32), uint32(i.stack[0])
	if uint64(n) > uint64(limit) {
		return "", faultf(i.plugin, FaultOutput, "it returned %d bytes, the limit is %d", n, limit)
	}
	b, ok := i.memory.Read(ptr, n)
	if !ok {
		return "", faultf(i.plugin, FaultOutput, "it returned %d bytes at %#x, outside its memory", n, ptr)
	}
	return string(b), nil
}

func (i *instance) describe(c callArgs) ([]byte, error) {
	if err := i.run(c, i.module.ExportedFunction(abi.ExportDescribe)); err != nil {
		return nil, err
	}
	s, err := i.text(maxManifest)
	return []byte(s), err
}

func (i *instance) init(c callArgs, settings []byte) error {
	return i.hand(c, i.module.ExportedFunction(abi.ExportInit), settings)
}

func (i *instance) open(c callArgs, request []byte) error {
	if i.opener == nil {
		return nil
	}
	return i.hand(c, i.opener, request)
}

// hand calls a function (ptr, len) -> code.
func (i *instance) hand(c callArgs, f api.Function, in []byte) error {
	if err := i.put(c, in); err != nil {
		return err
	}
	if err := i.run(c, f); err != nil {
		return err
	}
	return i.result(c, int64(int32(uint32(i.stack[0]))))
}

func (i *instance) call(c callArgs, kind abi.Kind, in []byte, flags uint32) (string, error) {
	f := i.jobs[kind]
	if f == nil {
		return "", faultf(i.plugin, FaultUnsupported, "it exports no %s", kind.Export())
	}
	if err := i.put(c, in); err != nil {
		return "", err
	}
	i.stack[2] = uint64(flags)
	if err := i.run(c, f); err != nil {
		return "", err
	}
	if packed := int64(i.stack[0]); packed < 0 {
		return "", i.result(c, packed)
	}
	return i.text(i.output)
}

// result turns a result below zero into an error with the guest's own words.
func (i *instance) result(c callArgs, code int64) error {
	if code >= 0 {
		return nil
	}
	if err := i.run(c, i.module.ExportedFunction(abi.ExportLastError)); err != nil {
		return err
	}
	ptr, n := uint32(i.stack[0]>>32), uint32(i.stack[0])
	words, ok := i.memory.Read(ptr, min(n, maxErrorText))
	if !ok {
		return faultf(i.plugin, FaultOutput, "%s returned %d bytes at %#x, outside its memory", abi.ExportLastError, n, ptr)
	}
	return codeError(i.plugin, code, string(words))
}

// codeError is shared with native guests.
func codeError(plugin string, code int64, words string) error {
	words = strings.ToValidUTF8(words[:min(len(words), maxErrorText)], "\uFFFD")
	if words == "" {
		words = "it gives no reason"
	}
	switch code {
	case int64(abi.Failed):
		return faultf(plugin, FaultData, "%s", words)
	case int64(abi.Panicked):
		return faultf(plugin, FaultPanic, "%s", words)
	case int64(abi.Unsupported):
		return faultf(plugin, FaultUnsupported, "%s", words)
	}
	return faultf(plugin, FaultOutput, "result %d is none of the ABI's: %s", code, words)
}

func (i *instance) worn() bool {
	return i.calls >= maxCalls || i.memory.Size() > i.limit-i.limit/retireFraction
}

func (i *instance) ticks() int64 { return i.context.steps }

// close frees the memory. Nothing of the guest may be running.
func (i *instance) close() {
	// Close reports what open files of the guest report; it has none.
	_ = i.module.Close(context.WithoutCancel(i.context.Context))
	i.unit.release()
}

var (
	errNoBudget = errors.New("the memory for plugins is used up")
	errOverrun  = errors.New("stopped at its deadline")
)
