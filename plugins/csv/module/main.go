// The module csv is the parser of delimited text files as a WebAssembly plugin.
package main

import (
	"github.com/tidemark-db/tidemark/plugins/csv"
	"github.com/tidemark-db/tidemark/wasm/guest"
)

func init() { guest.Register(csv.Plugin()) }

func main() {}
