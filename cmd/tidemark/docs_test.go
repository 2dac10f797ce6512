package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// tree is what documents may name: packages by folder and by base name, with their declarations.
type tree struct {
	docs  map[string]bool            // folder -> has a package comment
	decls map[string]map[string]bool // package name -> declared identifiers
}

func TestPackagesHaveDocs(t *testing.T) {
	for dir, ok := range parseTree(t).docs {
		if !ok {
			t.Errorf("%s: no package comment", dir)
		}
	}
}

var (
	codeSpan = regexp.MustCompile("`([^`\n]+)`")
	pathName = regexp.MustCompile(`^\.?[\w.-]+(/[\w.-]+)*/?$`)
	goName   = regexp.MustCompile(`^([a-z][a-z0-9]*)\.([A-Z]\w*)(\.\w+)?(\(.*\))?$`)
	fence    = regexp.MustCompile("(?ms)^```.*?^```")
)

// Names in documents rot silently. A code span that looks like a path below one of our folders must exist, and one that looks like
// package.Name of one of our packages must be declared.
func TestNamesInDocsExist(t *testing.T) {
	known := parseTree(t)
	checked := 0
	for _, file := range markdownFiles(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range codeSpan.FindAllSubmatch(fence.ReplaceAll(text, nil), -1) {
			if problem, ok := checkName(known, filepath.Dir(file), string(m[1])); ok {
				checked++
				if problem != "" {
					t.Errorf("%s: `%s`: %s", file, m[1], problem)
				}
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d names were checked: the patterns no longer fit the documents", checked)
	}
}

func checkName(known tree, dir, span string) (problem string, isName bool) {
	if m := goName.FindStringSubmatch(span); m != nil && known.decls[m[1]] != nil {
		if !known.decls[m[1]][m[2]] {
			return "not declared", true
		}
		return "", true
	}
	top, _, _ := strings.Cut(span, "/")
	if !pathName.MatchString(span) || !strings.Contains(span, "/") {
		return "", false
	}
	switch top {
	case "cmd", "core", "rules", "plugins", "wasm", "storage", "examples", ".ci":
	default:
		return "", false
	}
	for _, base := range []string{root, dir} {
		if _, err := os.Stat(filepath.Join(base, span)); err == nil {
			return "", true
		}
	}
	return "no such file or folder", true
}

func markdownFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	walk(t, func(path string) {
		if strings.HasSuffix(path, ".md") {
			files = append(files, path)
		}
	})
	return files
}

func parseTree(t *testing.T) tree {
	t.Helper()
	known := tree{map[string]bool{}, map[string]map[string]bool{}}
	fset := token.NewFileSet()
	walk(t, func(path string) {
		if !strings.HasSuffix(path, ".go") {
			return
		}
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		dir := filepath.Dir(path)
		known.docs[dir] = known.docs[dir] || file.Doc.Text() != ""
		name := file.Name.Name
		if known.decls[name] == nil {
			known.decls[name] = map[string]bool{}
		}
		for _, decl := range file.Decls {
			collectNames(decl, known.decls[name])
		}
	})
	return known
}

func collectNames(decl ast.Decl, names map[string]bool) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		names[d.Name.Name] = true
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				names[s.Name.Name] = true
			case *ast.ValueSpec:
				for _, n := range s.Names {
					names[n.Name] = true
				}
			}
		}
	}
}

func walk(t *testing.T, visit func(path string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != root && d.Name() != ".."):
			return fs.SkipDir
		case !d.IsDir():
			visit(path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
