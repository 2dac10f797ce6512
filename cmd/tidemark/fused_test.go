package main

import (
	"bufio"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// fusing are the packages whose numbers may differ in their last digits from one processor to another, and why; those of all others may not. RATIONALE.md has
// the reason.
var fusing = map[string]string{
	"core/chart":         "positions of pixels",
	"core/search":        "relevance sorts documents and is computed from logarithms",
	"core/calc/forecast": "the linear algebra of gonum has an order of additions of its own on each processor",
	"rules/outbox":       "waits that are random anyway",
}

// inexact are the functions of package math whose last digit depends on the processor: some have theirs in assembly, and others fuse products. portable says
// which of them a package outside fusing may use: core/calc where the result is exact, as of 0 and infinity, storage/chunk to estimate sizes. Programs of
// plugins/csv/schema run as WebAssembly, which has neither assembly nor fused products: the same on every processor.
var (
	inexact = strings.Fields("Acos Acosh Asin Asinh Atan Atan2 Atanh Cbrt Cos Cosh Erf Erfc Erfcinv Erfinv Exp Exp2 Expm1 Gamma Hypot J0 J1 Jn Lgamma Log Log10 Log1p Log2 " +
		"Pow Sin Sincos Sinh Tan Tanh Y0 Y1 Yn")
	portable = parsePolicy(`
core/calc: Log Pow
storage/chunk: Log2
rules: Cbrt
core/filter: Acos Asin Atan Atan2 Cbrt Cos Exp Log Log10 Pow Sin Tan
plugins/csv/schema: Acos Asin Atan Atan2 Cbrt Cos Exp Log Log10 Log2 Pow Sin Tan
cmd/tidemark: Log2
`)
)

// fusedInstruction is a line of the compiler's listing for arm64: offset, place in the source and an instruction that adds to a product without rounding it.
var fusedInstruction = regexp.MustCompile(`\(([^()]+):(\d+)\)\tFN?M(?:ADD|SUB)[DS]\t`)

// The compiler may make one instruction of x*y + z, which does not round the product, on processors that have it (and of x/8 + z, since that is a product too); in
// float64(x*y) + z it may not. So the same question has the same answer, to the last digit, on an arm64 appliance and an amd64 desktop.
func TestProductsAreRounded(t *testing.T) {
	if os.Getenv("TIDEMARK_FUSED") == "" {
		t.Skip("compiles everything for arm64, 2 minutes the first time: TIDEMARK_FUSED=1 or make check")
	}
	found := fusedInstructions(t)
	for pkg, places := range found {
		if _, ok := fusing[pkg]; !ok {
			t.Errorf("%s: products that arm64 adds without rounding them; write float64(x*y) + z at\n\t%s", pkg, strings.Join(places, "\n\t"))
		}
	}
	for pkg := range fusing {
		if len(found[pkg]) == 0 {
			t.Errorf("%s is in fusing and has no fused product: take it off, or this test has gone blind", pkg)
		}
	}
}

// fusedInstructions lists the places of fused instructions by package, those that math.FMA asks for left out.
func fusedInstructions(t *testing.T) map[string][]string {
	t.Helper()
	cmd := exec.Command("go", "build", "-gcflags=-S", "./core/...", "./rules/...", "./storage/...", "./plugins/...", "./wasm/...")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	listing, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	found, pkg, tail := map[string]map[string]bool{}, "", []string(nil)
	lines := bufio.NewScanner(listing)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		line := lines.Text()
		if name, ok := strings.CutPrefix(line, "# "+module); ok {
			pkg = name
		}
		if !strings.HasPrefix(line, "\t") {
			tail = append(tail[max(len(tail)-9, 0):], line)
		}
		if m := fusedInstruction.FindStringSubmatch(line); m != nil && !asked(m[1], m[2]) {
			if found[pkg] == nil {
				found[pkg] = map[string]bool{}
			}
			found[pkg][m[1]+":"+m[2]] = true
		}
	}
	if err := cmd.Wait(); err != nil || lines.Err() != nil {
		t.Fatalf("go build: %v, %v; its output ends with\n%s", err, lines.Err(), strings.Join(tail, "\n"))
	}
	sorted := map[string][]string{}
	for pkg, places := range found {
		sorted[pkg] = slices.Sorted(maps.Keys(places))
	}
	return sorted
}

// asked reports whether a line of source calls math.FMA.
func asked(file, line string) bool {
	text, err := os.ReadFile(file)
	n, _ := strconv.Atoi(line)
	lines := strings.Split(string(text), "\n")
	return err == nil && n > 0 && n <= len(lines) && strings.Contains(lines[n-1], "math.FMA(")
}

// What takes part in the same promise: core/calc has Exp, Log, Power and Logarithm for all, and core/sql/expr the functions of angles.
func TestInexactMathIsPolicy(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && strings.HasPrefix(name, ".") && path != root {
			return fs.SkipDir
		}
		pkg, _ := filepath.Rel(root, filepath.Dir(path))
		if _, ok := fusing[pkg]; ok || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(pkg, "examples") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if name, ok := mathName(n); ok && slices.Contains(inexact, name) {
				if seen[pkg+" "+name] = true; !slices.Contains(portable[pkg], name) {
					t.Errorf("%s: math.%s has another last digit on another processor: see core/calc for one that has not, or name it in the policy", path, name)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for pkg, names := range portable {
		for _, name := range names {
			if !seen[pkg+" "+name] {
				t.Errorf("%s does not use math.%s: take it off the policy", pkg, name)
			}
		}
	}
}

// mathName returns X of math.X.
func mathName(n ast.Node) (string, bool) {
	if s, ok := n.(*ast.SelectorExpr); ok {
		if id, ok := s.X.(*ast.Ident); ok && id.Name == "math" {
			return s.Sel.Name, true
		}
	}
	return "", false
}
