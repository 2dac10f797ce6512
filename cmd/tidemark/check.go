package main

import (
	"os"

	"github.com/tidemark-db/tidemark/storage"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

type checkCmd struct {
	Data string `default:"./tidemark-data" help:"Data directory." type:"path"`
}

// Run verifies the directory and lists what it found on standard output.
func (c *checkCmd) Run() error {
	return storage.Check(vfs.OS{}, c.Data, os.Stdout)
}

type dumpCmd struct {
	File string `arg:"" help:"File to print." type:"existingfile"`
}

// Run prints the file.
func (c *dumpCmd) Run() error { return storage.Dump(vfs.OS{}, c.File, os.Stdout) }
