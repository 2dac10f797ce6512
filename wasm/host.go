package wasm

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/tidemark-db/tidemark/wasm/abi"
	"github.com/tidemark-db/tidemark/wasm/meter"
)

// Host owns the runtime and all plugins.
type Host struct {
	options Options
	budget  budget
	cache   wazero.CompilationCache
	runtime wazero.Runtime
	// interpreted is set where the compiler does not exist or was not wanted.
	interpreted bool

	// endless has the values of New's context and does not end: freeing must not depend on a caller that went away.
	endless context.Context

	running   chan struct{} // a token for each guest that may run: GOMAXPROCS of them
	compiling chan struct{} // one token: compiling takes some 100 MB for a moment
	closed    chan struct{}

	mu struct {
		sync.Mutex // order: Host.mu, then Plugin.mu; never held while a guest runs or a module compiles
		plugins    map[string]*Plugin
		units      map[[sha256.Size]byte]*unit
		closed     bool
	}
}

// New makes a host. Of ctx only the values outlive New.
func New(ctx context.Context, options Options) (*Host, error) {
	if err := options.setDefaults(); err != nil {
		return nil, err
	}
	h := &Host{options: options, running: make(chan struct{}, poolSize()), compiling: make(chan struct{}, 1), closed: make(chan struct{})}
	h.budget.limit, h.endless = options.Budget, context.WithoutCancel(ctx)
	h.mu.plugins, h.mu.units = make(map[string]*Plugin), make(map[[sha256.Size]byte]*unit)

	var config wazero.RuntimeConfig
	switch options.Engine {
	case EngineInterpreter:
		config, h.interpreted = wazero.NewRuntimeConfigInterpreter(), true
	default:
		// The automatic choice rather than the compiler's own constructor, which panics where there is none.
		config, h.interpreted = wazero.NewRuntimeConfig(), !compilerExists(ctx)
		if options.Engine == EngineCompiler && h.interpreted {
			return nil, errors.New("wasm: this platform has no compiler for modules: choose the interpreter")
		}
	}
	var err error
	if h.cache, err = openCache(options.CacheDir); err != nil {
		return nil, err
	}
	h.runtime = wazero.NewRuntimeWithConfig(ctx, config.WithCompilationCache(h.cache).WithMemoryLimitPages(uint32(options.MemoryMB)*16))
	if err := h.instantiateHost(ctx); err != nil {
		return nil, errors.Join(err, h.runtime.Close(ctx), h.cache.Close(ctx))
	}
	return h, nil
}

// compilerExists tries it out: the runtime only says so by a panic. Besides the platform it depends on what the kernel lets a
// process map.
func compilerExists(ctx context.Context) (ok bool) {
	defer func() { ok = recover() == nil && ok }()
	return wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler()).Close(ctx) == nil
}

func openCache(dir string) (wazero.CompilationCache, error) {
	if dir == "" {
		return wazero.NewCompilationCache(), nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("wasm: cache of compiled modules: %w", err)
	}
	// The folder may have been there before: what lies in it is executed.
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("wasm: cache of compiled modules: %w", err)
	}
	c, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return nil, fmt.Errorf("wasm: cache of compiled modules: %w", err)
	}
	return c, nil
}

// Interpreted reports whether modules would run in the interpreter, some 50 times slower: built-in plugins are better linked natively then.
func (h *Host) Interpreted() bool { return h.interpreted }

// Source yields the bytes of a module. It is asked each time that the plugin is loaded.
type Source func() ([]byte, error)

// Add registers a plugin under a name, in place of an earlier one, whose open streams live on. Nothing is read before the
// plugin is used. Settings is the JSON for tidemark_init, nil for none.
func (h *Host) Add(name string, source Source, settings json.RawMessage) (*Plugin, error) {
	load := func(c context.Context) (maker, error) {
		module, err := source()
		if err != nil {
			return nil, faultf(name, FaultModule, "read the module: %w", err)
		}
		return h.granted(c, name, module)
	}
	return h.register(&Plugin{name: name, load: load, settings: settings})
}

// AddNative registers a plugin that is linked into the program.
func (h *Host) AddNative(name string, make Native, settings json.RawMessage) (*Plugin, error) {
	load := func(context.Context) (maker, error) { return make, nil }
	return h.register(&Plugin{name: name, load: load, settings: settings})
}

// Load checks, compiles and starts a module, and registers it only if all of that worked: for uploads.
func (h *Host) Load(ctx context.Context, name string, module []byte, settings json.RawMessage) (*Plugin, error) {
	candidate := &Plugin{name: name, settings: settings}
	candidate.load = func(c context.Context) (maker, error) { return h.granted(c, name, module) }
	candidate.start(h)
	if _, err := candidate.Manifest(ctx); err != nil {
		candidate.retire()
		return nil, err
	}
	return h.register(candidate)
}

func (h *Host) register(p *Plugin) (*Plugin, error) {
	p.start(h)
	h.mu.Lock()
	if h.mu.closed {
		h.mu.Unlock()
		return nil, errClosed
	}
	old := h.mu.plugins[p.name]
	h.mu.plugins[p.name] = p
	h.mu.Unlock()
	if old != nil {
		old.retire()
	}
	return p, nil
}

// Remove takes a plugin away. Its open streams live on.
func (h *Host) Remove(name string) {
	h.mu.Lock()
	p := h.mu.plugins[name]
	delete(h.mu.plugins, name)
	h.mu.Unlock()
	if p != nil {
		p.retire()
	}
}

// Plugin returns the plugin of that name, nil when there is none.
func (h *Host) Plugin(name string) *Plugin {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.plugins[name]
}

// Plugins returns all plugins by name.
func (h *Host) Plugins() []*Plugin {
	h.mu.Lock()
	defer h.mu.Unlock()
	ps := slices.Collect(maps.Values(h.mu.plugins))
	slices.SortFunc(ps, func(a, b *Plugin) int { return strings.Compare(a.name, b.name) })
	return ps
}

var errClosed = errors.New("wasm: the host is closed")

// Close waits for guests that run, at most their deadline, then frees everything. Streams that are still open fail.
func (h *Host) Close(ctx context.Context) error {
	h.mu.Lock()
	if h.mu.closed {
		h.mu.Unlock()
		return nil
	}
	h.mu.closed = true
	plugins := slices.Collect(maps.Values(h.mu.plugins))
	h.mu.Unlock()
	close(h.closed)
	h.compiling <- struct{}{}
	for range cap(h.running) {
		h.running <- struct{}{} // with all tokens here no guest runs, and memory can be unmapped
	}
	for _, p := range plugins {
		p.retire()
	}
	return errors.Join(h.runtime.Close(ctx), h.cache.Close(ctx))
}

// enter waits for a token; leave gives it back.
func (h *Host) enter(ctx context.Context, tokens chan struct{}) error {
	select {
	case <-h.closed:
		return errClosed
	default:
	}
	select {
	case tokens <- struct{}{}:
		return nil
	case <-h.closed:
		return errClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (h *Host) leave(tokens chan struct{}) { <-tokens }

// unit is a compiled module. It is shared by all plugins of the same bytes, since the runtime keys code by content: closing
// one of two identical modules would pull the code from under the other.
type unit struct {
	host        *Host
	key         [sha256.Size]byte
	compiled    wazero.CompiledModule
	leastMemory int64
	// capabilities are those that the module imports.
	capabilities []string
	code         int64 // bytes charged to the budget
	holders      int   // guarded by Host.mu
}

// unit compiles module, or finds it compiled, and holds it.
func (h *Host) unit(ctx context.Context, name string, module []byte) (*unit, error) {
	if len(module) > maxModule {
		return nil, faultf(name, FaultModule, "the module has %d bytes, the limit is %d", len(module), maxModule)
	}
	if h.interpreted && !h.options.Interpreted {
		return nil, faultf(name, FaultModule, "this platform can only interpret modules, some 50 times slower: allow it in the configuration")
	}
	if err := h.enter(ctx, h.compiling); err != nil {
		return nil, err
	}
	defer h.leave(h.compiling)
	key := sha256.Sum256(module)
	h.mu.Lock()
	u := h.mu.units[key]
	if u != nil {
		u.holders++
	}
	h.mu.Unlock()
	if u != nil {
		return u, nil
	}
	u = &unit{host: h, key: key, code: int64(len(module)) * codePerByte, holders: 1}
	if !h.makeRoom(u.code) {
		return nil, &Error{Plugin: name, Fault: FaultBusy, Text: errNoBudget.Error(), RetryAfter: idleUnload, Cause: errNoBudget}
	}
	if err := u.compile(ctx, module); err != nil {
		h.budget.give(u.code)
		return nil, faultf(name, FaultModule, "%w", err)
	}
	h.mu.Lock()
	h.mu.units[key] = u
	h.mu.Unlock()
	return u, nil
}

// compile runs the passes in the order in which each may trust the one before: bounds and metering, which trust nothing;
// validation of the original, so that no index of it can name what metering appended; then the compiler.
func (u *unit) compile(ctx context.Context, module []byte) error {
	metered, report, err := meter.Rewrite(module, meter.Options{Module: abi.HostModule, Name: abi.ImportTick, Fuel: fuel})
	if err != nil {
		return err
	}
	if u.capabilities, err = checkImports(report.Imports); err != nil {
		return err
	}
	if err := u.validate(ctx, module); err != nil {
		return err
	}
	if u.compiled, err = u.host.runtime.CompileModule(experimental.WithCompilationWorkers(ctx, 2), metered); err != nil {
		return fmt.Errorf("compile: %w", err)
	}
	if err := u.checkExports(); err != nil {
		return errors.Join(err, u.compiled.Close(ctx))
	}
	return nil
}

// validate asks the interpreter, whose translation is ten times faster than compiling, whether the module is valid. A mark in
// the cache folder, which is trusted with code anyway, spares that the next time.
func (u *unit) validate(ctx context.Context, module []byte) error {
	mark := ""
	if dir := u.host.options.CacheDir; dir != "" {
		mark = filepath.Join(dir, fmt.Sprintf("valid-%x", u.key))
		if _, err := os.Stat(mark); err == nil {
			return nil
		}
	}
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().
		WithDebugInfoEnabled(false).WithMemoryLimitPages(uint32(u.host.options.MemoryMB)*16))
	if _, err := r.CompileModule(ctx, module); err != nil {
		return errors.Join(fmt.Errorf("validate: %w", err), r.Close(ctx))
	}
	if err := r.Close(ctx); err != nil {
		return err
	}
	if mark != "" {
		// Without the mark the module is validated again: nothing depends on it.
		_ = os.WriteFile(mark, nil, 0o600)
	}
	return nil
}

// signatures of the exports; the ones that start with "R" are required.
var signatures = map[string]string{
	abi.ExportABI: "R() i32", abi.ExportAlloc: "R(i32) i32", abi.ExportDescribe: "R() i64", abi.ExportInit: "R(i32 i32) i32",
	abi.ExportLastError: "R() i64", abi.ExportOpen: "(i32 i32) i32", abi.ExportInitialize: "() ",
	abi.KindParser.Export(): "(i32 i32 i32) i64", abi.KindTransform.Export(): "(i32 i32 i32) i64",
	abi.KindAlert.Export(): "(i32 i32 i32) i64", abi.KindWebhook.Export(): "(i32 i32 i32) i64",
}

func (u *unit) checkExports() error {
	memory := u.compiled.ExportedMemories()[abi.ExportMemory]
	if memory == nil {
		return fmt.Errorf("it does not export its memory as %q", abi.ExportMemory)
	}
	u.leastMemory = int64(memory.Min()) << 16
	functions := u.compiled.ExportedFunctions()
	for _, name := range slices.Sorted(maps.Keys(signatures)) {
		want, required := strings.CutPrefix(signatures[name], "R")
		f := functions[name]
		if f == nil {
			if required {
				return fmt.Errorf("it does not export %s", name)
			}
			continue
		}
		if got := signature(f); got != want {
			return fmt.Errorf("its %s is %s, not %s", name, got, want)
		}
	}
	return nil
}

func signature(f api.FunctionDefinition) string {
	names := func(types []api.ValueType) string {
		var s []string
		for _, t := range types {
			s = append(s, api.ValueTypeName(t))
		}
		return strings.Join(s, " ")
	}
	return "(" + names(f.ParamTypes()) + ") " + names(f.ResultTypes())
}

// granted is unit for a plugin that may import what the module does.
func (h *Host) granted(ctx context.Context, name string, module []byte) (maker, error) {
	u, err := h.unit(ctx, name, module)
	if err != nil {
		return nil, err
	}
	grants := h.grants(name)
	for _, c := range u.capabilities {
		if !slices.Contains(grants, c) {
			u.release()
			return nil, faultf(name, FaultModule, "it imports %s.%s, which is not granted: the operator may add %s to the grants of %s",
				abi.HostModule, c, c, name)
		}
	}
	return u, nil
}

func (h *Host) grants(plugin string) []string {
	if h.options.Grants == nil {
		return nil
	}
	return h.options.Grants(plugin)
}

func (u *unit) imports() []string { return u.capabilities }

func (u *unit) hold() {
	u.host.mu.Lock()
	u.holders++
	u.host.mu.Unlock()
}

// release closes the module with its last holder.
func (u *unit) release() {
	h := u.host
	h.mu.Lock()
	defer h.mu.Unlock()
	if u.holders--; u.holders > 0 {
		return
	}
	delete(h.mu.units, u.key)
	h.budget.give(u.code)
	// The runtime itself closes what is left when the host has been closed; the error is always nil.
	_ = u.compiled.Close(h.endless)
}
