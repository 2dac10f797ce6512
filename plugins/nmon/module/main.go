// The module nmon is the parser of nmon files as a WebAssembly plugin.
package main

import (
	"github.com/tidemark-db/tidemark/plugins/nmon"
	"github.com/tidemark-db/tidemark/wasm/guest"
)

func init() { guest.Register(nmon.Plugin()) }

func main() {}
