package main

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// watchEvery is how often the configuration folder is looked at. Polling works on every file system, and costs an idle box nothing that
// it would notice.
const watchEvery = 2 * time.Second

// folder is a part of the configuration that is read again when it changes.
type folder struct {
	name   string // below the configuration folder
	reload func(ctx context.Context) error
	state  string // names, sizes and times of its files when it was last read
}

// watch reads folders again when something in them changes, until ctx ends. A fault leaves what was read before in force.
func watch(dir string, folders []*folder, log *slog.Logger) func(context.Context) error {
	for _, f := range folders {
		f.state = fingerprint(filepath.Join(dir, f.name))
	}
	return func(ctx context.Context) error {
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
			for _, f := range folders {
				state := fingerprint(filepath.Join(dir, f.name))
				if state == f.state {
					continue
				}
				f.state = state
				if err := f.reload(ctx); err != nil {
					log.Error(f.name+" were read again, with faults", "error", err)
					continue
				}
				log.Info(f.name + " were read again")
			}
		}
	}
}

// fingerprint is a text that changes with the files below dir.
func fingerprint(dir string) string {
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // a file that went away changes the text by itself
		}
		if info, err := os.Stat(path); err == nil {
			fmt.Fprintln(&b, path, info.Size(), info.ModTime().UnixNano())
		}
		return nil
	})
	if err != nil {
		return err.Error()
	}
	return b.String()
}
