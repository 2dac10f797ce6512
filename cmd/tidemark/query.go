package main

import (
	"os"
	"path/filepath"

	"github.com/tidemark-db/tidemark/core/sql"
)

// The share of the memory budget that one query may take, and its bounds: eight at one time are half of it.
const (
	queryShare      = 16
	leastQueryBytes = 8 << 20
	mostQueryBytes  = 256 << 20
)

// openSQL returns the engine as it is configured. Temporary files that a crash left are removed.
func openSQL(c Config, o sql.Options) *sql.Engine {
	o.Zone = c.Zone
	if o.Memory = c.SQLMemory; o.Memory == 0 {
		o.Memory = min(max(c.Memory/queryShare, leastQueryBytes), mostQueryBytes)
	}
	o.SpillDir = filepath.Join(c.Data, "spill")
	if err := os.RemoveAll(o.SpillDir); err != nil {
		o.Log.Warn("temporary files of queries cannot be removed", "err", err)
	}
	if o.Spill = c.SQLSpill; o.Spill == 0 {
		o.Spill = -1
	}
	o.Queries, o.Time, o.Length, o.Width, o.Likes = int(c.SQLQueries), c.SQLTime, int(c.SQLLength), int(c.SQLColumns), int(c.SQLLikes)
	return sql.New(o)
}
