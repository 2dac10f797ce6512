package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/tidemark-db/tidemark/"

// policy says which packages of ours each package may import. It is a statement of policy: change it on purpose, with the reason in
// RATIONALE.md, in the same commit as the import. A package that is not named here may not exist; "*" allows anything.
var policy = parsePolicy(`
core core/glob core/inorder core/invariant core/nearest core/regular core/sql/ast storage/vfs wasm/abi wasm/meter plugins:
core/dates core/auth core/search core/selfmetrics storage/chunk: core
core/cells: core core/dates
core/calc: core core/cells
core/calc/forecast: core core/calc
core/memstore: core core/filter core/glob
core/storetest: core core/memstore
core/ingest: core core/filter core/glob
core/command: core core/calc core/dates
core/webhook: core core/dates core/glob
core/filter: core core/glob core/dates core/regular
core/query: core core/calc core/calc/forecast core/cells core/dates core/filter core/glob core/inorder
core/network: core core/auth core/command core/line
core/line: core core/calc core/command core/dates core/glob
core/chart: core core/calc
core/console: core
core/sql/parse: core/sql/ast
core/sql/column: core core/calc core/dates
core/sql/expr: core core/calc core/dates core/sql/ast core/sql/column
core/sql/plan: core core/dates core/filter core/glob core/nearest core/sql/ast core/sql/column core/sql/expr
core/sql/exec: core core/calc core/dates core/glob core/inorder core/sql/ast core/sql/column core/sql/expr core/sql/plan
core/sql/format: core core/calc core/cells core/dates core/sql/column
core/sql: core core/calc core/command core/dates core/filter core/glob core/sql/ast core/sql/parse core/sql/column core/sql/expr core/sql/plan core/sql/exec
core/api: core core/auth core/cells core/chart core/command core/line core/dates core/filter core/query core/search core/selfmetrics core/sql core/sql/column core/sql/format core/webhook
storage/journal storage/index storage/table storage/sealed: storage/vfs
storage/events: core storage/vfs storage/sealed
storage/samples: core storage/vfs storage/chunk storage/sealed
storage: core core/calc core/filter core/glob core/invariant storage/vfs storage/journal storage/chunk storage/index storage/table storage/events storage/samples storage/sealed
rules/outbox: core
rules: core core/calc core/command core/dates core/filter core/glob core/nearest rules/outbox
rules/rulestest: core core/command core/dates core/filter core/glob core/memstore rules rules/outbox
wasm: core wasm/abi wasm/meter
wasm/guest: wasm/abi
wasm/wasmtest: wasm wasm/abi wasm/guest core
plugins/nmon plugins/alert: wasm/abi wasm/guest core core/dates core/glob core/filter
plugins/csv/schema: core/nearest core/regular
plugins/csv: wasm/abi wasm/guest core core/dates core/filter plugins/csv/schema
plugins/csv/module: plugins/csv wasm/guest
plugins/nmon/module: plugins/nmon wasm/guest
plugins/alert/module: plugins/alert wasm/guest
cmd/tidemark examples: *
`)

// thirdParty says where a library may be used. A library that is not named here may not be used at all.
var thirdParty = parsePolicy(`
github.com/tetratelabs/wazero: wasm wasm/meter wasm/wasmtest
github.com/expr-lang/expr: rules
github.com/julienschmidt/httprouter: core/api
github.com/VictoriaMetrics/fastcache: storage/index
github.com/VictoriaMetrics/metrics: core/api cmd/tidemark
github.com/tidwall/gjson: core/api core/webhook rules
github.com/goccy/go-yaml: cmd/tidemark rules wasm
github.com/klauspost/compress: core/api storage storage/chunk storage/events storage/table
github.com/alecthomas/kong: cmd/tidemark
gonum.org/v1/gonum: core/calc/forecast
gonum.org/v1/plot: core/chart
golang.org/x/sys: storage/vfs wasm
golang.org/x/crypto: core/auth
golang.org/x/text: cmd/tidemark
golang.org/x/term: cmd/tidemark
`)

func parsePolicy(text string) map[string][]string {
	p := map[string][]string{}
	for line := range strings.Lines(strings.TrimSpace(text)) {
		names, allowed, _ := strings.Cut(line, ":")
		for _, name := range strings.Fields(names) {
			p[name] = strings.Fields(allowed)
		}
	}
	return p
}

func TestImportPolicy(t *testing.T) {
	for _, target := range []string{"", "GOOS=wasip1 GOARCH=wasm"} {
		t.Run(target, func(t *testing.T) {
			for pkg, imports := range packages(t, target) {
				checkImports(t, pkg, imports)
			}
		})
	}
}

func checkImports(t *testing.T, pkg string, imports []string) {
	allowed, ok := policy[pkg]
	switch {
	case !ok && strings.HasPrefix(pkg, "examples/"):
		allowed = []string{"*"}
	case !ok:
		t.Errorf("package %s is not in the policy: name it there with what it may import", pkg)
		return
	}
	for _, path := range imports {
		if ours, ok := strings.CutPrefix(path, module); ok {
			if !slices.Contains(allowed, "*") && !slices.Contains(allowed, ours) {
				t.Errorf("%s may not import %s", pkg, ours)
			}
			continue
		}
		if !strings.Contains(strings.Split(path, "/")[0], ".") {
			continue // standard library
		}
		if !thirdPartyAllowed(pkg, path) {
			t.Errorf("%s may not import %s", pkg, path)
		}
	}
}

func thirdPartyAllowed(pkg, path string) bool {
	for library, users := range thirdParty {
		if path == library || strings.HasPrefix(path, library+"/") {
			return slices.Contains(users, pkg)
		}
	}
	return false
}

// packages lists our packages with their direct imports, tests left out, keyed by path below the module.
func packages(t *testing.T, target string) map[string][]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-f", "{{.ImportPath}} {{join .Imports \" \"}}", "./...")
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), strings.Fields(target)...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	pkgs := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if name, ok := strings.CutPrefix(fields[0], module); ok {
			pkgs[name] = fields[1:]
		}
	}
	if len(pkgs) < 5 {
		t.Fatalf("go list found only %d packages", len(pkgs))
	}
	return pkgs
}
