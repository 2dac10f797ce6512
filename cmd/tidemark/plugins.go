package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/goccy/go-yaml"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/runes"
	"golang.org/x/text/transform"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/command"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/plugins"
	"github.com/tidemark-db/tidemark/plugins/alert"
	"github.com/tidemark-db/tidemark/plugins/csv"
	"github.com/tidemark-db/tidemark/plugins/nmon"
	"github.com/tidemark-db/tidemark/wasm"
	"github.com/tidemark-db/tidemark/wasm/abi"
	"github.com/tidemark-db/tidemark/wasm/guest"
)

// natives are the built-in plugins as Go code, for platforms where modules could only be interpreted, some 50 times slower.
var natives = map[string]func() guest.Plugin{"csv": csv.Plugin, "nmon": nmon.Plugin, "alert": alert.Plugin}

// openPlugins makes the host with the built-in plugins and those of the configuration folder. Nothing is loaded yet.
func openPlugins(ctx context.Context, c Config, configs *parserConfigs) (*wasm.Host, *wasm.Parsers, error) {
	set := &pluginSet{dir: filepath.Join(c.Dir, "plugins"), log: configs.log}
	set.files.Store(&map[string]pluginFile{})
	streams := wasm.StreamLimits{Most: int(c.PluginStreams), Reserved: int(c.PluginStreamsReserved), Sender: int(c.PluginStreamsSender)}
	host, err := wasm.New(ctx, wasm.Options{CacheDir: c.CompileCache, Budget: c.Memory / pluginShare, MemoryMB: int(c.PluginMemory >> 20), Streams: streams,
		Interpreted: c.InterpretedPlugins, Log: configs.log, Grants: set.grants, Reader: configs.reader, Catalog: configs.catalog, Zone: dates.LoadZoneOrOffset,
		State: wasm.StateLimits{KeyBytes: int(c.StateKeyBytes), ValueBytes: int(c.StateValueBytes), Keys: int(c.StateKeys)}})
	if err != nil {
		return nil, nil, err
	}
	set.host = host
	if err := set.read(); err != nil {
		set.log.Error("plugins: " + err.Error()) // the others work
	}
	configs.plugins = set
	if err := configs.read(c.Dir); err != nil {
		set.log.Error("parsers: " + err.Error()) // the others work
	}
	return host, &wasm.Parsers{Host: host, Configuration: configs.find, Transcode: transcode, Describe: configs.describe,
		Observe: configs.nmon.observe, LetterBytes: int(c.DeadLetterBytes)}, nil
}

// pluginFile is plugins/NAME.yaml: what the operator says of the plugin NAME, which is plugins/NAME.wasm or a built-in one.
type pluginFile struct {
	Grants   []string       `yaml:"grants"`   // capabilities
	Settings map[string]any `yaml:"settings"` // for the plugin, as JSON
}

// pluginSet keeps the plugins of a host in step with the folder plugins.
type pluginSet struct {
	dir     string
	log     *slog.Logger
	host    *wasm.Host
	files   atomic.Pointer[map[string]pluginFile] // by name of the plugin
	foreign map[string]bool                       // those that are files
	begun   bool
}

// grants is what wasm.Options.Grants asks for.
func (s *pluginSet) grants(plugin string) []string { return (*s.files.Load())[plugin].Grants }

// read registers what is in the folder: modules, which take the place of a built-in plugin of their name, and the files beside them. All faults are
// listed; a file with a fault leaves what was read before in force.
func (s *pluginSet) read() error {
	before := *s.files.Load()
	files, fault := s.readFiles(before)
	s.files.Store(&files)
	faults := []error{fault}
	paths, err := filepath.Glob(filepath.Join(s.dir, "*.wasm"))
	if err != nil {
		return err
	}
	foreign := map[string]bool{}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".wasm")
		foreign[name] = true
		settings, err := files[name].settings()
		if err == nil {
			_, err = s.host.Add(name, func() ([]byte, error) { return os.ReadFile(path) }, settings)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("plugin %s: %w", path, err))
			continue
		}
		s.log.Info("plugin "+name+" from "+path, "grants", files[name].Grants)
	}
	for _, name := range plugins.Names {
		same := s.begun && !s.foreign[name] && reflect.DeepEqual(before[name], files[name])
		if foreign[name] || same {
			continue // a plugin that did not change stays loaded
		}
		settings, err := files[name].settings()
		if err == nil {
			err = addBuiltIn(s.host, name, settings, s.log)
		}
		if err != nil {
			faults = append(faults, err)
		}
	}
	for name := range s.foreign {
		if !foreign[name] && !slices.Contains(plugins.Names, name) {
			s.host.Remove(name)
			s.log.Info("plugin " + name + " is gone")
		}
	}
	for name := range files {
		if !foreign[name] && !slices.Contains(plugins.Names, name) {
			faults = append(faults, fmt.Errorf("%s: there is no plugin %s.wasm beside it, nor a built-in one of that name", filepath.Join(s.dir, name+".yaml"), name))
		}
	}
	s.foreign, s.begun = foreign, true
	return errors.Join(faults...)
}

// readFiles reads plugins/*.yaml.
func (s *pluginSet) readFiles(before map[string]pluginFile) (map[string]pluginFile, error) {
	paths, err := filepath.Glob(filepath.Join(s.dir, "*.y*ml"))
	if err != nil {
		return nil, err
	}
	files := map[string]pluginFile{}
	var faults []error
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
		f, err := readPluginFile(path)
		if err != nil {
			faults = append(faults, err)
			old, known := before[name]
			if !known {
				continue
			}
			f = old
		}
		files[name] = f
	}
	return files, errors.Join(faults...)
}

func readPluginFile(path string) (pluginFile, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return pluginFile{}, fmt.Errorf("plugin: %w", err)
	}
	var f pluginFile
	if err := yaml.UnmarshalWithOptions(data, &f, yaml.Strict()); err != nil {
		return f, fmt.Errorf("%s: %s", path, yaml.FormatError(err, false, true))
	}
	for _, g := range f.Grants {
		if !slices.Contains(abi.Capabilities(), g) {
			return f, fmt.Errorf("%s: grants: no capability is called %q: there are %s", path, g, strings.Join(abi.Capabilities(), ", "))
		}
	}
	_, err = f.settings()
	return f, err
}

func (f pluginFile) settings() (json.RawMessage, error) {
	if len(f.Settings) == 0 {
		return nil, nil
	}
	return json.Marshal(f.Settings)
}

// addBuiltIn registers a plugin of this program.
func addBuiltIn(host *wasm.Host, name string, settings json.RawMessage, log *slog.Logger) error {
	module := plugins.Module(name)
	var err error
	switch {
	case host.Interpreted():
		_, err = host.AddNative(name, func(o abi.Options) abi.Instance { return guest.New(natives[name](), o) }, settings)
	case module == nil:
		log.Warn("built without the plugin " + name + ": run make plugins, then build again")
	default:
		_, err = host.Add(name, func() ([]byte, error) { return module, nil }, settings)
	}
	if err != nil {
		return fmt.Errorf("plugin %s: %w", name, err)
	}
	return nil
}

// transcode makes valid UTF-8 of a named charset (the names of the web, case ignored); bytes that mean nothing become U+FFFD.
func transcode(charset string, r io.Reader) (io.Reader, error) {
	if charset == "" || strings.EqualFold(charset, "utf-8") {
		return transform.NewReader(r, runes.ReplaceIllFormed()), nil
	}
	e, err := htmlindex.Get(charset)
	if err != nil {
		return nil, core.Errorf(core.Invalid, "IllegalArgumentException: Unsupported encoding: %s", charset)
	}
	return transform.NewReader(r, e.NewDecoder()), nil
}

type pluginCmd struct {
	Inspect pluginInspectCmd `cmd:"" help:"Check a module and print what it says of itself."`
	Warm    pluginWarmCmd    `cmd:"" help:"Compile the built-in plugins into the folder TIDEMARK_COMPILE_CACHE."`
	Run     pluginRunCmd     `cmd:"" help:"Run a file through a parser plugin and print the commands it gives."`
	Letters pluginLettersCmd `cmd:"" help:"Work with the dead letters of a running server: input that a plugin could not take."`
}

type pluginWarmCmd struct{}

// Run compiles what is not compiled yet.
func (pluginWarmCmd) Run() error {
	ctx := context.Background()
	host, err := wasm.New(ctx, wasm.Options{CacheDir: os.Getenv("TIDEMARK_COMPILE_CACHE"), Interpreted: true})
	if err != nil {
		return err
	}
	for _, name := range plugins.Names {
		if err := addBuiltIn(host, name, nil, slog.Default()); err != nil {
			return errors.Join(err, host.Close(ctx))
		}
	}
	return errors.Join(host.Warm(ctx), host.Close(ctx))
}

// warm fills the cache after the start, beside the work of the server.
func warm(host *wasm.Host, log *slog.Logger) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := host.Warm(ctx); err != nil && ctx.Err() == nil {
			log.Error("plugins: " + err.Error())
		}
		debug.FreeOSMemory() // compiling takes some 100 MB for a moment
		<-ctx.Done()
		return nil
	}
}

type pluginInspectCmd struct {
	Module string `arg:"" help:"File, or the name of a built-in plugin."`
}

// Run loads the module as the server would, with all its checks.
func (c *pluginInspectCmd) Run() error {
	ctx := context.Background()
	host, err := loadOne(ctx, c.Module)
	if err != nil {
		return err
	}
	defer host.Close(ctx)
	m, err := host.Plugin("plugin").Manifest(ctx)
	if err != nil {
		return err
	}
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", "  ")
	return e.Encode(m)
}

// loadOne loads a module under the name "plugin".
func loadOne(ctx context.Context, module string) (*wasm.Host, error) {
	data := plugins.Module(module)
	if data == nil {
		var err error
		if data, err = os.ReadFile(module); err != nil {
			return nil, fmt.Errorf("plugin: %w", err)
		}
	}
	host, err := wasm.New(ctx, wasm.Options{CacheDir: os.Getenv("TIDEMARK_COMPILE_CACHE"), Interpreted: true, Zone: dates.LoadZoneOrOffset,
		Grants: func(string) []string { return abi.Capabilities() }}) // which reach nothing here: there is no database
	if err != nil {
		return nil, err
	}
	if _, err := host.Load(ctx, "plugin", data, nil); err != nil {
		return nil, errors.Join(err, host.Close(ctx))
	}
	return host, nil
}

type pluginRunCmd struct {
	Module string            `arg:"" help:"File, or the name of a built-in plugin."`
	Input  string            `arg:"" help:"File to parse." type:"existingfile"`
	Config string            `help:"YAML file of a parser configuration." type:"existingfile"`
	Param  map[string]string `help:"Request parameters, for example --param e=web-1."`
}

// Run prints the commands, and the rejected lines on standard error.
func (c *pluginRunCmd) Run() error {
	ctx := context.Background()
	host, err := loadOne(ctx, c.Module)
	if err != nil {
		return err
	}
	defer host.Close(ctx)
	config := parserFile{Plugin: "plugin", body: json.RawMessage("{}")}
	if c.Config != "" {
		if config, err = readParser(c.Config); err != nil {
			return err
		}
	}
	input, err := os.Open(c.Input)
	if err != nil {
		return err
	}
	defer input.Close()
	parsers := wasm.Parsers{Host: host, Transcode: transcode, Configuration: func(context.Context, core.ParseRequest) (wasm.Configuration, error) {
		found := config.configuration()
		found.Plugin = "plugin"
		return found, nil
	}}
	rejected := 0
	request := core.ParseRequest{Params: c.Param, FileName: filepath.Base(c.Input), Received: core.TimeOf(time.Now())}
	for parsed, err := range parsers.Parse(ctx, request, input) {
		if err != nil {
			return err
		}
		text, err := command.AppendBatch(nil, parsed.Batch)
		if err != nil {
			return err
		}
		os.Stdout.Write(text)
		for _, r := range parsed.Rejects {
			fmt.Fprintf(os.Stderr, "line %d: %s: %s\n", r.Line, r.Reason, r.Text)
		}
		rejected += len(parsed.Rejects) + parsed.Dropped
	}
	if rejected > 0 {
		return fmt.Errorf("%d lines were rejected", rejected)
	}
	return nil
}
