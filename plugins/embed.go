// Package plugins holds the built-in plugins, compiled to WebAssembly and embedded into the server.
package plugins

import (
	"embed"
	"io/fs"
)

//go:embed dist
var dist embed.FS

// Names are the built-in plugins, in the order in which they are listed.
var Names = []string{"csv", "nmon", "alert"}

// Module returns the WebAssembly module of a built-in plugin, nil when the server was built without it: `make plugins` builds them.
func Module(name string) []byte {
	data, err := fs.ReadFile(dist, "dist/"+name+".wasm")
	if err != nil {
		return nil
	}
	return data
}
