package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/goccy/go-yaml"

	"github.com/tidemark-db/tidemark/core/api"
)

// portalFile is portals/NAME.yaml: a page of charts.
type portalFile struct {
	ID         int          `yaml:"id"`
	Name       string       `yaml:"name"` // of the file when absent
	Title      string       `yaml:"title"`
	Theme      string       `yaml:"theme"`
	Template   bool         `yaml:"template"`
	UserGroups names        `yaml:"userGroups"`
	Widgets    []widgetFile `yaml:"widgets"`
}

type widgetFile struct {
	Title    string       `yaml:"title"`
	Timespan string       `yaml:"timespan"` // 1 hour when absent
	Series   []seriesFile `yaml:"series"`
}

type seriesFile struct {
	Metric           string           `yaml:"metric"`
	Entity           string           `yaml:"entity"`
	Entities         names            `yaml:"entities"`
	EntityGroup      string           `yaml:"entityGroup"`
	EntityExpression string           `yaml:"entityExpression"`
	Tags             map[string]names `yaml:"tags"`
	ExactMatch       bool             `yaml:"exactMatch"`
	Statistic        string           `yaml:"statistic"`
	Period           string           `yaml:"period"`
	Label            string           `yaml:"label"`
}

// names is a list of texts, or one text.
type names []string

func (n *names) UnmarshalYAML(data []byte) error {
	var many []string
	if err := yaml.Unmarshal(data, &many); err == nil {
		*n = many
		return nil
	}
	var one string
	if err := yaml.Unmarshal(data, &one); err != nil {
		return fmt.Errorf("a text or a list of texts is expected")
	}
	*n = names{one}
	return nil
}

// portals are those of the configuration folder.
type portals struct {
	dir   string
	files atomic.Pointer[[]api.Portal]
}

// openPortals reads the folder for the first time. Faults are told; the portals without faults work.
func openPortals(dir string, log *slog.Logger) *portals {
	p := &portals{dir: dir}
	if err := p.read(); err != nil {
		log.Error("portals: " + err.Error())
	}
	return p
}

// list returns the portals in the order of their files.
func (p *portals) list() []api.Portal { return *p.files.Load() }

// read reads every portals/*.yaml again. All faults are listed; the others are in force.
func (p *portals) read() error {
	list := []api.Portal{}
	defer func() { p.files.Store(&list) }()
	paths, err := filepath.Glob(filepath.Join(p.dir, "portals", "*.y*ml"))
	if err != nil {
		return err
	}
	slices.Sort(paths)
	var faults []error
	for _, path := range paths {
		portal, err := readPortal(path)
		taken := func(o api.Portal) bool { return o.Name == portal.Name || o.ID == portal.ID && o.ID != 0 }
		if err == nil && slices.ContainsFunc(list, taken) {
			err = fmt.Errorf("%s: the name or the id of portal %q is that of another portal too", path, portal.Name)
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		list = append(list, portal)
	}
	return errors.Join(faults...)
}

func readPortal(path string) (api.Portal, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return api.Portal{}, fmt.Errorf("portal: %w", err)
	}
	var f portalFile
	if err := yaml.UnmarshalWithOptions(data, &f, yaml.Strict()); err != nil {
		return api.Portal{}, fmt.Errorf("%s: %s", path, yaml.FormatError(err, false, true))
	}
	p := api.Portal{ID: f.ID, Name: f.Name, Title: f.Title, Theme: f.Theme, Template: f.Template, UserGroups: f.UserGroups}
	if p.Name == "" {
		p.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	for _, w := range f.Widgets {
		widget := api.PortalWidget{Title: w.Title, Timespan: w.Timespan}
		for _, s := range w.Series {
			widget.Series = append(widget.Series, s.selection())
		}
		p.Widgets = append(p.Widgets, widget)
	}
	if err := p.Validate(); err != nil {
		return p, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

func (s seriesFile) selection() api.PortalSeries {
	out := api.PortalSeries{Metric: s.Metric, Entity: s.Entity, Entities: s.Entities, EntityGroup: s.EntityGroup, EntityExpression: s.EntityExpression,
		ExactMatch: s.ExactMatch, Statistic: s.Statistic, Period: s.Period, Label: s.Label}
	for name, values := range s.Tags {
		if out.Tags == nil {
			out.Tags = map[string][]string{}
		}
		out.Tags[name] = values
	}
	return out
}
