package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	victoriaVersion = "v1.140.0"
	victoriaPackage = "github.com/VictoriaMetrics/VictoriaMetrics/app/victoria-metrics@" + victoriaVersion
	duckThreads     = 2
)

// install gives the systems that are wanted, each with its program in the cache; nothing is installed outside it. A peer that cannot be had here is
// skipped, and said to be.
func install(ctx context.Context, o options) (systems []system, skipped []string, err error) {
	if _, err := os.Stat(o.server); err != nil {
		return nil, nil, fmt.Errorf("%w: make build makes it", err)
	}
	if err := os.MkdirAll(o.cache, 0o755); err != nil {
		return nil, nil, err
	}
	for _, name := range systemNames {
		if !o.measures(name) {
			continue
		}
		var s system
		switch name {
		case "tidemark":
			s, err = installTidemark(ctx, o)
		case "victoriametrics":
			s, err = installVictoria(ctx, o)
		case "influxdb":
			s, err = installInflux(ctx, o)
		case "duckdb":
			s, err = installDuck(ctx, o)
		}
		switch {
		case ctx.Err() != nil:
			return nil, nil, ctx.Err()
		case err != nil && name == "tidemark":
			return nil, nil, err
		case err != nil:
			skipped = append(skipped, fmt.Sprintf("%s: %v", name, err))
		default:
			systems = append(systems, s)
		}
	}
	return systems, skipped, nil
}

func installTidemark(ctx context.Context, o options) (*server, error) {
	s := tidemark(o.server, o.cache)
	out, err := tool(ctx, "", o.server, "version")
	if err != nil {
		return nil, err
	}
	s.version = strings.Join(strings.Fields(out), " ")
	return s, nil
}

// installVictoria builds the single node. Its makers build it with cgo, for a faster zstd: so is it here where a C compiler exists.
func installVictoria(ctx context.Context, o options) (*server, error) {
	binary := filepath.Join(o.cache, "victoria-metrics-"+victoriaVersion)
	if _, err := os.Stat(binary); err != nil {
		progress("building VictoriaMetrics %s", victoriaVersion)
		cgo := "CGO_ENABLED=0"
		if _, err := exec.LookPath("gcc"); err == nil {
			cgo = "CGO_ENABLED=1"
		}
		if _, err := tool(ctx, o.cache, "env", "GOFLAGS=", cgo, "GOBIN="+o.cache, "go", "install", victoriaPackage); err != nil {
			return nil, err
		}
		if err := os.Rename(filepath.Join(o.cache, "victoria-metrics"), binary); err != nil {
			return nil, err
		}
	}
	return victoriaMetrics(binary), nil
}

// installInflux unpacks Debian's package without installing it.
func installInflux(ctx context.Context, o options) (*server, error) {
	dir := filepath.Join(o.cache, "influxdb")
	binary := filepath.Join(dir, "usr", "bin", "influxd")
	if _, err := os.Stat(binary); err != nil {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		if _, err := tool(ctx, dir, "apt-get", "download", "influxdb"); err != nil {
			return nil, err
		}
		packages, err := filepath.Glob(filepath.Join(dir, "influxdb_*.deb"))
		if err != nil || len(packages) == 0 {
			return nil, fmt.Errorf("apt-get download left no package in %s", dir)
		}
		if _, err := tool(ctx, dir, "dpkg", "-x", packages[len(packages)-1], dir); err != nil {
			return nil, err
		}
	}
	s := influxDB(binary)
	out, err := tool(ctx, "", binary, "version")
	if err != nil {
		return nil, err
	}
	s.version = strings.Join(strings.Fields(out)[:2], " ")
	return s, nil
}

func installDuck(ctx context.Context, o options) (*duck, error) {
	dir := filepath.Join(o.cache, "duckdb")
	python := filepath.Join(dir, "bin", "python")
	if _, err := tool(ctx, "", python, "-c", "import duckdb"); err != nil {
		if _, err := tool(ctx, "", "python3", "-m", "venv", dir); err != nil {
			return nil, err
		}
		if _, err := tool(ctx, "", python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "duckdb"); err != nil {
			return nil, err
		}
	}
	out, err := tool(ctx, "", python, "-c", "import duckdb; print(duckdb.__version__)")
	if err != nil {
		return nil, err
	}
	return &duck{python: python, version: "DuckDB " + strings.TrimSpace(out)}, nil
}

// tool runs a program and returns its output; an error carries the end of it.
func tool(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		text := strings.TrimSpace(string(out))
		return "", fmt.Errorf("%s: %w: %s", args[0], err, text[max(0, len(text)-400):])
	}
	return string(out), nil
}
