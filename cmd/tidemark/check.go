package main

import (
	"context"
	"os"

	"github.com/tidemark-db/tidemark/storage"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

type checkCmd struct {
	Data string `default:"./tidemark-data" help:"Data directory, or a backup." type:"path"`
}

// Run verifies the directory and lists what it found on standard output. Ctrl-C ends it.
func (c *checkCmd) Run() error {
	ctx, stop := interrupted()
	defer stop()
	return check(ctx, c.Data)
}

func check(ctx context.Context, dir string) error {
	bar := newProgress()
	defer bar.end()
	return ended(storage.Check(ctx, vfs.OS{}, dir, storage.Checking{Out: wiping{bar}, Progress: bar.show}))
}

// wiping writes to standard output, where the line of progress may stand.
type wiping struct{ bar *progress }

func (w wiping) Write(b []byte) (int, error) {
	w.bar.end()
	return os.Stdout.Write(b)
}

type dumpCmd struct {
	Rows bool   `short:"v" help:"Print the rows of blocks and the messages as well."`
	File string `arg:"" help:"File to print: a journal segment, a manifest, or a file of the data folder." type:"existingfile"`
}

// Run prints the file.
func (c *dumpCmd) Run() error {
	detail := storage.Outline
	if c.Rows {
		detail = storage.Rows
	}
	return storage.Dump(vfs.OS{}, c.File, os.Stdout, detail)
}
