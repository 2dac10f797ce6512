package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/wasm"
	"github.com/tidemark-db/tidemark/wasm/abi"
)

// parserFile is a named parser configuration, from parsers/*.yaml of the configuration folder or a document of kind DocParser. Files win.
type parserFile struct {
	Name   string         `yaml:"name" json:"name"`
	Plugin string         `yaml:"plugin" json:"plugin"`
	Config map[string]any `yaml:"config" json:"config"`

	body json.RawMessage
}

// parserConfigs resolves names of parser configurations.
type parserConfigs struct {
	files   atomic.Pointer[map[string]parserFile]
	plugins *pluginSet // that they run on
	reader  core.Reader
	catalog core.Catalog
	ingest  core.Ingester
	nmon    nmonGroups
	zone    *time.Location
	log     *slog.Logger
}

// loadParsers reads every parsers/*.yaml below dir. All faults are listed; a file with a fault is left out.
func loadParsers(dir string) (map[string]parserFile, error) {
	files := map[string]parserFile{}
	var faults []error
	paths, err := filepath.Glob(filepath.Join(dir, "parsers", "*.y*ml"))
	if err != nil {
		return nil, err
	}
	slices.Sort(paths)
	for _, path := range paths {
		p, err := readParser(path)
		if err == nil && files[p.Name].Name != "" {
			err = fmt.Errorf("%s: a parser %q is configured in another file too", path, p.Name)
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		files[p.Name] = p
	}
	return files, errors.Join(faults...)
}

// read reads the files again. Those without a fault are in force.
func (c *parserConfigs) read(dir string) error {
	files, err := loadParsers(dir)
	c.files.Store(&files)
	return err
}

func readParser(path string) (parserFile, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return parserFile{}, fmt.Errorf("parser: %w", err)
	}
	var p parserFile
	if err := yaml.UnmarshalWithOptions(data, &p, yaml.Strict()); err != nil {
		return parserFile{}, fmt.Errorf("%s: %s", path, yaml.FormatError(err, false, true))
	}
	if p.Name == "" {
		p.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	if p.Plugin == "" {
		return parserFile{}, fmt.Errorf("%s: plugin is missing: name the plugin that reads such files, csv for example", path)
	}
	if p.body, err = json.Marshal(p.Config); err != nil {
		return parserFile{}, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// find resolves the parser of an upload. The zone and the encoding of the request beat those of the configuration.
func (c *parserConfigs) find(ctx context.Context, r core.ParseRequest) (wasm.Configuration, error) {
	p, err := c.lookup(ctx, r.Format, r.Parser)
	if err != nil {
		return wasm.Configuration{}, err
	}
	if enabled, ok := p.Config["enabled"].(bool); ok && !enabled {
		return wasm.Configuration{}, core.Errorf(core.Invalid, "IllegalArgumentException: Configuration with name = '%s' is disabled", r.Parser)
	}
	found := p.configuration()
	if found.Config, err = c.replacements(ctx, p); err != nil {
		return wasm.Configuration{}, err
	}
	if r.Encoding != "" {
		found.Encoding = r.Encoding
	}
	zone, _ := p.Config["timezone"].(string)
	if r.Zone != "" {
		zone = r.Zone
	}
	found.Zone, err = c.location(zone, r.Format)
	return found, err
}

// replacements puts the replacement table that a csv configuration names into it: the table is chosen by whoever wrote the configuration, so that the uploader needs
// no right to read it, and the plugin no way to ask. An upload sees the table as it was when it began.
func (c *parserConfigs) replacements(ctx context.Context, p parserFile) (json.RawMessage, error) {
	name, _ := p.Config["entityLookup"].(string)
	if p.Plugin != "csv" || name == "" {
		return p.body, nil
	}
	for d, err := range c.reader.Documents(ctx, core.DocumentQuery{Kind: core.DocTable, Key: core.TableKey(name)}) {
		if err != nil {
			return nil, err
		}
		var table core.Table
		if err := json.Unmarshal(d.Body, &table); err != nil {
			return nil, core.Wrap(core.Internal, err, "replacement table '"+name+"' is not readable")
		}
		config := maps.Clone(p.Config)
		config["entityReplacements"] = table.Keys
		return json.Marshal(config)
	}
	return nil, core.Errorf(core.Invalid, "IllegalArgumentException: Configuration with name = '%s' replaces entities by table '%s', which does not exist", p.Name, name)
}

// configuration is what the file says by itself.
func (p parserFile) configuration() wasm.Configuration {
	found := wasm.Configuration{Plugin: p.Plugin, Config: p.body}
	found.Encoding, _ = p.Config["encoding"].(string)
	if events, ok := p.Config["processEvents"].(bool); p.Plugin == "csv" {
		found.SkipRules = !ok || !events
	}
	return found
}

// abbreviations are the zones that shells print and nmon scripts send, as offsets in hours.
var abbreviations = map[string]float64{"BST": 1, "CEST": 2, "EEST": 3, "IST": 5.5, "JST": 9, "MSK": 3, "WEST": 1, "AEST": 10, "AEDT": 11,
	"EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7, "BRT": -3}

// location resolves a zone. The streams of nmon may carry anything that a shell prints; what is unknown there is the server's zone.
func (c *parserConfigs) location(id, format string) (*time.Location, error) {
	if id == "" {
		return c.zone, nil
	}
	loc, err := dates.LoadZoneOrOffset(id)
	if err == nil {
		return loc, nil
	}
	if format != "nmon" {
		return nil, core.Errorf(core.Invalid, "IllegalArgumentException: Unknown time zone '%s': use an IANA name such as Europe/Berlin", id)
	}
	if hours, ok := abbreviations[strings.ToUpper(id)]; ok {
		return time.FixedZone(id, int(hours*3600)), nil
	}
	c.log.Warn("nmon: unknown time zone, the server's is used", "zone", id)
	return c.zone, nil
}

// lookup returns the configuration of that name. Without one, nmon has its defaults under the name default.
func (c *parserConfigs) lookup(ctx context.Context, format, name string) (parserFile, error) {
	if p, ok := (*c.files.Load())[name]; ok {
		return p, nil
	}
	for d, err := range c.reader.Documents(ctx, core.DocumentQuery{Kind: core.DocParser, Key: name}) {
		if err != nil {
			return parserFile{}, err
		}
		var p parserFile
		if err := json.Unmarshal(d.Body, &p); err != nil {
			return parserFile{}, core.Wrap(core.Internal, err, "stored parser configuration is not readable")
		}
		p.body, err = json.Marshal(p.Config)
		return p, err
	}
	if format != "nmon" {
		return parserFile{}, core.Errorf(core.Invalid, "IllegalArgumentException: Configuration with name = '%s' not found", name)
	}
	if name != "default" {
		return parserFile{}, core.Errorf(core.Invalid, "IllegalArgumentException: Parser '%s' not found", name)
	}
	return parserFile{Name: name, Plugin: "nmon", body: json.RawMessage(`{}`)}, nil
}

// descriptions are the fields of a metric that say something to people. A plugin may set them without a right of whoever uploads; what changes how samples
// are kept, such as enabled or retentionDays, it may not: a plugin could otherwise delete every metric.
var descriptions = []string{"label", "description", "units", "tags"}

// described is the part of a patch that describes; empty when there is none.
func described(patch json.RawMessage) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(patch, &fields); err != nil {
		return nil, core.Wrap(core.Internal, err, "what a plugin says of a metric is not readable")
	}
	for name := range fields {
		if !slices.Contains(descriptions, name) {
			delete(fields, name)
		}
	}
	if len(fields) == 0 {
		return nil, nil
	}
	return json.Marshal(fields)
}

// describe writes what a plugin says of its metrics, for those metrics that do not say it yet.
func (c *parserConfigs) describe(ctx context.Context, metrics []core.DocChange) error {
	b := &core.Batch{Origin: core.SystemOrigin(0)}
	for _, d := range metrics {
		if known, ok := c.catalog.Metric(d.Key); ok && known.Tags["table"] != "" {
			continue
		}
		var err error
		if d.Body, err = described(d.Body); err != nil {
			return err
		}
		if d.Op == core.DocPatch && d.Body != nil {
			b.Documents = append(b.Documents, d)
		}
	}
	if len(b.Documents) == 0 {
		return nil
	}
	_, err := c.ingest.Ingest(ctx, b)
	return err
}

// File reports whether a file defines the parser.
func (c *parserConfigs) File(name string) bool {
	_, ok := (*c.files.Load())[name]
	return ok
}

// Check opens a configuration as an upload would, without data. What is wrong with it is an error of code Invalid; any other error says that the plugin
// could not be asked.
func (c *parserConfigs) Check(ctx context.Context, p core.ParserConfig) error {
	f := parserFile{Name: p.Name, Plugin: p.Plugin, body: p.Config}
	if err := json.Unmarshal(p.Config, &f.Config); err != nil {
		return core.Errorf(core.Invalid, "the configuration is not a JSON object")
	}
	zone, _ := f.Config["timezone"].(string)
	if _, err := c.location(zone, p.Plugin); err != nil {
		return err
	}
	if _, err := transcode(f.configuration().Encoding, strings.NewReader("")); err != nil {
		return err
	}
	plugin := c.plugins.host.Plugin(p.Plugin)
	if plugin == nil {
		return core.Errorf(core.Invalid, "there is no plugin '%s'", p.Plugin)
	}
	s, err := plugin.OpenAs(ctx, core.Grants{}, abi.OpenRequest{Kind: abi.KindParser, Format: p.Plugin, Config: p.Config, ConfigName: p.Name})
	if err == nil {
		s.Close()
		return nil
	}
	if e := (*wasm.Error)(nil); errors.As(err, &e) && e.Fault == wasm.FaultData {
		return core.Errorf(core.Invalid, "%s", e.Text)
	}
	return core.Wrap(core.Unavailable, err, "the plugin '"+p.Plugin+"' cannot check the configuration now")
}

// secretSource reads secrets/* of the configuration folder, one secret a file. Environment variables TIDEMARK_SECRET_NAME beat them. Secrets
// are read when they are used, so that they can be replaced, and never logged.
func secretSource(dir string) func(name string) (string, bool) {
	return func(name string) (string, bool) {
		if v, ok := os.LookupEnv("TIDEMARK_SECRET_" + name); ok {
			return v, true
		}
		if name == "" || strings.ContainsAny(name, "/\\.") {
			return "", false
		}
		data, err := os.ReadFile(filepath.Join(dir, "secrets", name))
		if errors.Is(err, fs.ErrNotExist) || err != nil {
			return "", false
		}
		return strings.TrimSpace(string(data)), true
	}
}
