package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"

	"github.com/tidemark-db/tidemark/core"
)

// The groups of machines that nmon watches select them by the property that their files become.
const (
	nmonLinux = `property('configuration::os') LIKE 'Linux*'`
	nmonAIX   = `property('configuration::build') LIKE 'AIX*' OR property('configuration::aix') != '' OR property('configuration::progname') = 'topas_nmon'`
)

// nmonGroup returns the group that the configuration of a machine belongs to, "" for none.
func nmonGroup(configuration core.Tags) (name, expression string) {
	switch {
	case strings.HasPrefix(configuration.Value("os"), "Linux"):
		return "nmon-linux", nmonLinux
	case strings.HasPrefix(configuration.Value("build"), "AIX"), configuration.Value("aix") != "", configuration.Value("progname") == "topas_nmon":
		return "nmon-aix", nmonAIX
	}
	return "", ""
}

// nmonGroups creates the group of an operating system with the first file that needs it, with the rights of the server. From then on it belongs to the
// administrators: a group of that name is never touched.
type nmonGroups struct {
	reader core.Reader
	ingest core.Ingester
	log    *slog.Logger
	known  sync.Map // names of groups that are there, or were
}

// observe looks for the configuration of a machine among what the plugin made of a chunk.
func (g *nmonGroups) observe(ctx context.Context, plugin string, b *core.Batch) {
	if plugin != "nmon" || !b.Origin.Grants.Roles.Has(core.DataWrite) { // who may write nothing causes nothing
		return
	}
	for i := range b.Properties {
		p := &b.Properties[i]
		if p.Type != "configuration" {
			continue
		}
		name, expression := nmonGroup(p.Tags)
		if _, known := g.known.Load(name); known || name == "" {
			continue
		}
		if err := g.create(ctx, name, expression); err != nil {
			g.log.Warn("nmon: an entity group could not be created; the next file tries again", "group", name, "error", err)
			continue
		}
		g.known.Store(name, true)
	}
}

func (g *nmonGroups) create(ctx context.Context, name, expression string) error {
	for d, err := range g.reader.Documents(ctx, core.DocumentQuery{Kind: core.DocGroup, Key: name}) {
		if err != nil || d.Key == name {
			return err
		}
	}
	body, err := json.Marshal(core.Group{Name: name, Enabled: true, Expression: expression})
	if err != nil {
		return err
	}
	b := &core.Batch{Origin: core.SystemOrigin(0)}
	b.Documents = []core.DocChange{{Kind: core.DocGroup, Key: name, Op: core.DocPut, Body: body}}
	_, err = g.ingest.Ingest(ctx, b)
	return err
}
