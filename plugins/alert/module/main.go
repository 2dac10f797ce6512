// The module alert is the alert renderer as a WebAssembly plugin.
package main

import (
	"github.com/tidemark-db/tidemark/plugins/alert"
	"github.com/tidemark-db/tidemark/wasm/guest"
)

func init() { guest.Register(alert.Plugin()) }

func main() {}
