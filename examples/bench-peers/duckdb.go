package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// duck is DuckDB: a library, so that its questions go through no HTTP. It is asked what the SQL questions ask, over a table of its own in the order that
// suits it best.
type duck struct{ python, version string }

//go:embed duckdb.py
var duckScript []byte

func (d *duck) name() string { return "duckdb" }

// duckAnswer is one line of the script: a question with its times in seconds, or the size of the database.
type duckAnswer struct {
	Measure string
	Times   []float64
	Rows    int
	Sum     float64
	Bytes   float64
}

func (d *duck) round(ctx context.Context, b *bench) error {
	if !b.wants("sql") {
		return nil
	}
	dir, err := os.MkdirTemp(b.work, "duckdb-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	script := filepath.Join(dir, "ask.py")
	if err := os.WriteFile(script, duckScript, 0o644); err != nil {
		return err
	}
	out, err := tool(ctx, dir, d.python, script, b.csv, dir, strconv.Itoa(duckThreads), strconv.Itoa(b.asks), fmt.Sprint(threshold))
	if err != nil {
		return err
	}
	want := map[string]digest{"sql, averages": b.reference.averages, "sql, maxima": b.reference.maxima, "sql, filter": wantAbove(b.reference), "sql, export": b.reference.export, "sql, export of all": b.reference.all}
	for line := range strings.Lines(out) {
		var a duckAnswer
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			return fmt.Errorf("%w: %s", err, line)
		}
		if w, ok := want[a.Measure]; ok {
			if err := (digest{rows: a.Rows, sum: a.Sum}).matches(digest{rows: w.rows, sum: w.sum}); err != nil {
				return fmt.Errorf("%s: %w", a.Measure, err)
			}
		}
		if a.Measure == "disk" {
			b.record("disk", d, a.Bytes/float64(b.reference.all.rows))
			continue
		}
		for _, t := range a.Times {
			b.results.add(a.Measure, d.name(), t)
		}
		progress("  %-28s %s", a.Measure, format(unitOf(a.Measure), median(b.results[a.Measure][d.name()])))
	}
	return nil
}
