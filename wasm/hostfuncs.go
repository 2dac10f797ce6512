package wasm

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/tidemark-db/tidemark/wasm/abi"
	"github.com/tidemark-db/tidemark/wasm/meter"
)

// allowedWASI are the functions that Go programs link, also those that only touch the os and time packages. No folder is
// mounted, so that the ones with files fail; sockets are absent.
var allowedWASI = map[string]bool{
	"args_get": true, "args_sizes_get": true, "environ_get": true, "environ_sizes_get": true,
	"clock_res_get": true, "clock_time_get": true, "random_get": true, "sched_yield": true, "poll_oneoff": true, "proc_exit": true,
	"fd_close": true, "fd_fdstat_get": true, "fd_fdstat_set_flags": true, "fd_filestat_get": true, "fd_filestat_set_size": true,
	"fd_pread": true, "fd_prestat_dir_name": true, "fd_prestat_get": true, "fd_pwrite": true, "fd_read": true, "fd_readdir": true,
	"fd_seek": true, "fd_sync": true, "fd_write": true,
	"path_create_directory": true, "path_filestat_get": true, "path_filestat_set_times": true, "path_link": true, "path_open": true,
	"path_readlink": true, "path_remove_directory": true, "path_rename": true, "path_symlink": true, "path_unlink_file": true,
}

// checkImports refuses the first import that is not on the list, by name, and returns the capabilities among the imports: who may have them
// depends on the plugin, not on the module.
func checkImports(imports []meter.Import) (capabilities []string, err error) {
	for _, i := range imports {
		ok := i.Kind == 0 && (i.Module == abi.WASIModule && allowedWASI[i.Name] ||
			i.Module == abi.HostModule && (i.Name == abi.ImportLog || i.Name == abi.ImportNowMs || i.Name == abi.ImportZone))
		if ok {
			continue
		}
		if i.Kind == 0 && i.Module == abi.HostModule && slices.Contains(abi.Capabilities(), i.Name) {
			capabilities = append(capabilities, i.Name)
			continue
		}
		if i.Module == abi.HostModule && i.Name == abi.ImportTick {
			return nil, fmt.Errorf("it imports %s.%s, which only the server inserts", i.Module, i.Name)
		}
		return nil, fmt.Errorf("it imports %s.%s, which is not granted: plugins get %s.%s, %s.%s, %s.%s and a part of %s",
			i.Module, i.Name, abi.HostModule, abi.ImportLog, abi.HostModule, abi.ImportNowMs, abi.HostModule, abi.ImportZone, abi.WASIModule)
	}
	return capabilities, nil
}

// callContext is the context of all calls of one instance: calls set its fields rather than wrap a context each, so that a
// call allocates nothing. Host functions find it by callKey.
type callContext struct {
	context.Context // of the caller, for the time of a call
	until           time.Time
	received        int64
	now             func() time.Time
	steps           int64 // ticks so far
	killed          error // why tick ended the guest
	log             *guestLog
	written         int // bytes of standard output and error in this call
	session         *session
}

type callKey struct{}

// Value finds the callContext itself, or what the caller's context holds.
func (c *callContext) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// exitKilled is the code with which tick leaves the guest. No guest sees it.
const exitKilled = 0xffff_fff0

// tick runs every fuel steps and before each call of the host. Being a Go function it is also where the host's scheduler and collector get their turn.
func tick(ctx context.Context, _ api.Module, stack []uint64) {
	c := ctx.Value(callKey{}).(*callContext)
	c.steps++
	if c.Context.Err() != nil {
		c.killed = context.Cause(c.Context)
	} else if c.now().After(c.until) {
		c.killed = errOverrun
	}
	if c.killed != nil {
		panic(sys.NewExitError(exitKilled))
	}
	stack[0] = fuel
}

func nowMs(ctx context.Context, _ api.Module, stack []uint64) {
	stack[0] = uint64(ctx.Value(callKey{}).(*callContext).received)
}

// guestLogCall is tidemark_v1.log. The upper halves of i32 parameters are undefined.
func guestLogCall(ctx context.Context, m api.Module, stack []uint64) {
	c := ctx.Value(callKey{}).(*callContext)
	memory := m.Memory()
	if memory == nil {
		return
	}
	ptr, n := uint32(stack[1]), uint32(stack[2])
	if text, ok := memory.Read(ptr, min(n, maxErrorText)); ok {
		c.log.line(c.Context, uint32(stack[0]), text)
	}
}

// instantiateHost gives the runtime what modules may import.
func (h *Host) instantiateHost(ctx context.Context) error {
	r := h.runtime
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, r); err != nil {
		return fmt.Errorf("wasm: wasi: %w", err)
	}
	i32, i64 := api.ValueTypeI32, api.ValueTypeI64
	b := r.NewHostModuleBuilder(abi.HostModule)
	b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(tick), nil, []api.ValueType{i32}).Export(abi.ImportTick)
	b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(nowMs), nil, []api.ValueType{i64}).Export(abi.ImportNowMs)
	b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(guestLogCall), []api.ValueType{i32, i32, i32}, nil).Export(abi.ImportLog)
	for name, f := range map[string]func(*session, string, []byte) int32{
		abi.ImportLookup: (*session).lookup, abi.ImportKVGet: (*session).get, abi.ImportKVPut: (*session).put,
		abi.ImportZone: func(_ *session, id string, buf []byte) int32 { return h.zone(id, buf) }, // free: zones are no secret
	} {
		b.NewFunctionBuilder().WithGoModuleFunction(capability(f), []api.ValueType{i32, i32, i32, i32}, []api.ValueType{i32}).Export(name)
	}
	if _, err := b.Instantiate(ctx); err != nil {
		return fmt.Errorf("wasm: host functions: %w", err)
	}
	return nil
}

// guestLog passes lines of one plugin on, not more than logLines a second.
type guestLog struct {
	plugin string
	to     *slog.Logger
	now    func() time.Time

	mu      sync.Mutex
	second  int64
	lines   int
	dropped int64
}

var logLevels = [...]slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}

func (l *guestLog) line(ctx context.Context, level uint32, text []byte) {
	if !l.admit() {
		return
	}
	clean := strings.ToValidUTF8(string(text[:min(len(text), maxErrorText)]), "\uFFFD")
	l.to.LogAttrs(ctx, logLevels[min(level, uint32(len(logLevels)-1))], clean, slog.String("plugin", l.plugin))
}

func (l *guestLog) admit() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.now().Unix(); s != l.second {
		l.second, l.lines = s, 0
	}
	if l.lines >= logLines {
		l.dropped++
		return false
	}
	l.lines++
	return true
}

func (l *guestLog) droppedLines() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dropped
}

// stdio is the standard output and error of one instance: whole lines go to the log.
type stdio struct {
	call *callContext
	rest []byte
}

// maxWritten bounds what a call may write: one fd_write may name the same megabyte a million times.
const maxWritten = 256 << 10

// Write never fails: a guest must not behave differently because its log is full.
func (s *stdio) Write(p []byte) (int, error) {
	n := len(p)
	p = p[:min(n, max(0, maxWritten-s.call.written))]
	s.call.written += len(p)
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			s.rest = append(s.rest, p[:min(len(p), maxErrorText-len(s.rest))]...)
			break
		}
		line := p[:end]
		p = p[end+1:]
		if len(s.rest) > 0 {
			line = append(s.rest, line[:min(len(line), maxErrorText-len(s.rest))]...)
			s.rest = s.rest[:0]
		}
		if len(line) > 0 {
			s.call.log.line(s.call.Context, abi.LogInfo, line)
		}
	}
	return n, nil
}
