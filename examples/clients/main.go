// Command clients runs real, unmodified clients of the interface against a tidemark binary and checks the values that arrive: see README.md.
//
// Each folder beside this file is one client. Its script install fetches the client with the client's own package manager into a cache; its script run drives the
// client and prints one line a check, "ok   NAME", "FAIL NAME: why" or "skip NAME: why". A client that cannot be installed is skipped, loudly: only what ran can fail.
package main

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The limits add up to what `make clients` promises: 10 minutes at most.
const (
	installTime = 6 * time.Minute
	runTime     = 100 * time.Second
	totalTime   = 10 * time.Minute
	// installers is how many clients are fetched at one time: they wait for the network more than for the processor.
	installers = 3
	// noise is how many other lines of a client that failed are shown.
	noise = 60
)

// folders are the clients, in the order they run: the one that sends nonsense comes last.
var folders = []string{"python", "java", "jdbc", "node", "libraries", "telegraf", "statsd", "collectd", "nmon", "streams", "schemathesis"}

// tally counts checks.
type tally struct{ passed, failed, skipped int }

func (t *tally) add(o tally) {
	t.passed, t.failed, t.skipped = t.passed+o.passed, t.failed+o.failed, t.skipped+o.skipped
}

func (t tally) String() string {
	return fmt.Sprintf("clients: %d passed, %d failed, %d skipped", t.passed, t.failed, t.skipped)
}

func main() {
	binary := flag.String("server", "bin/tidemark", "tidemark binary to test")
	dir := flag.String("dir", "examples/clients", "this folder")
	cache := flag.String("cache", ".cache/clients", "where clients are installed")
	only := flag.String("only", "", "names of the clients to run, separated by commas; default: all")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, totalTime)
	defer cancel()
	var total tally
	err := fmt.Errorf("-only %s names none of %s", *only, strings.Join(folders, ", "))
	if names := choose(*only); len(names) > 0 {
		total, err = runAll(ctx, setup{binary: *binary, dir: *dir, cache: *cache, names: names})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		total.failed++
	}
	fmt.Println(total)
	if total.failed > 0 {
		os.Exit(1)
	}
}

// choose gives the folders that were asked for, in their own order.
func choose(only string) []string {
	if only == "" {
		return folders
	}
	var names []string
	for _, name := range folders {
		if strings.Contains(","+only+",", ","+name+",") {
			names = append(names, name)
		}
	}
	return names
}

// setup says what is run against what.
type setup struct {
	binary, dir, cache string
	names              []string
}

// absolute makes paths good for scripts that run in their own folder.
func (s *setup) absolute() error {
	for _, path := range []*string{&s.binary, &s.dir, &s.cache} {
		full, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = full
	}
	return os.MkdirAll(s.cache, 0o755)
}

func runAll(ctx context.Context, s setup) (total tally, err error) {
	if err := s.absolute(); err != nil {
		return total, err
	}
	fmt.Printf("installing %d clients into %s\n", len(s.names), s.cache)
	reasons := installAll(ctx, s)
	srv, err := startServer(ctx, s)
	if err != nil {
		return total, err
	}
	for _, name := range s.names {
		if why := reasons[name]; why != "" {
			fmt.Printf("\n== %s\nSKIPPED %s: %s\n", name, name, why)
			total.skipped++
			continue
		}
		if srv.ended() {
			fmt.Println("\nthe server has ended: the rest is not run")
			break
		}
		fmt.Printf("\n== %s\n", name)
		total.add(runClient(ctx, s, name, srv.environment()))
	}
	fmt.Printf("\n== server\n")
	total.add(srv.stop(ctx))
	return total, nil
}

// installAll gives the reason of each client that cannot run.
func installAll(ctx context.Context, s setup) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, installTime)
	defer cancel()
	var (
		mu      sync.Mutex
		wait    sync.WaitGroup
		slots   = make(chan struct{}, installers)
		reasons = make(map[string]string)
	)
	for _, name := range s.names {
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			started := time.Now()
			out, err := command(ctx, s, name, "install").CombinedOutput()
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				reasons[name] = reason(out, err)
				return
			}
			fmt.Printf("installed %s in %.0f s\n", name, time.Since(started).Seconds())
		})
	}
	wait.Wait()
	return reasons
}

// colors are what tools write to make terminals look nice.
var colors = regexp.MustCompile("\x1b\\[[0-9;]*m")

// reason is why a script gave up: what it says itself after "skip: ", else the end of what it wrote.
func reason(out []byte, err error) string {
	text := strings.TrimSpace(colors.ReplaceAllString(string(out), ""))
	if _, why, ok := strings.Cut(text, "skip: "); ok {
		return why
	}
	why := fmt.Sprintf("its installation failed: %v", err)
	if text == "" {
		return why
	}
	lines := strings.Split(text, "\n")
	return why + "\n   | " + strings.Join(lines[max(0, len(lines)-12):], "\n   | ")
}

// command runs a client's script in its folder, in a process group of its own, so that ending it ends what it started.
func command(ctx context.Context, s setup, name, script string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", script)
	cmd.Dir = filepath.Join(s.dir, name)
	cmd.Env = append(os.Environ(), "CACHE="+filepath.Join(s.cache, name), "DATA="+filepath.Join(s.dir, "../quickstart/data"), "PYTHONDONTWRITEBYTECODE=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// runClient prints what the client's script prints and counts its checks. A script that fails without a failed check is one.
func runClient(ctx context.Context, s setup, name string, env []string) tally {
	ctx, cancel := context.WithTimeout(ctx, runTime)
	defer cancel()
	cmd := command(ctx, s, name, "run")
	cmd.Env = append(cmd.Env, env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	started := time.Now()
	err := cmd.Run()
	t := count(out.String(), name)
	if ctx.Err() != nil {
		err = fmt.Errorf("not done after %.0f s", time.Since(started).Seconds())
	}
	if (err != nil && t.failed == 0) || t.passed+t.failed+t.skipped == 0 {
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		fmt.Printf("   | %s\nFAIL %s: its script did not run to the end: %v\n", strings.Join(lines[max(0, len(lines)-noise):], "\n   | "), name, err)
		t.failed++
	}
	fmt.Printf("-- %s: %d passed, %d failed, %d skipped in %.1f s\n", name, t.passed, t.failed, t.skipped, time.Since(started).Seconds())
	return t
}

// count prints the lines that are checks, and all other lines when one of them failed.
func count(out, name string) tally {
	var t tally
	var rest []string
	lines := bufio.NewScanner(strings.NewReader(out))
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "ok   "):
			t.passed++
		case strings.HasPrefix(line, "FAIL "):
			t.failed++
		case strings.HasPrefix(line, "skip "):
			t.skipped++
			line = "SKIPPED " + name + ": " + strings.TrimPrefix(line, "skip ")
		default:
			rest = append(rest, line)
			continue
		}
		fmt.Println(line)
	}
	if t.failed > 0 {
		for _, line := range rest[:min(len(rest), noise)] {
			fmt.Println("   |", line)
		}
	}
	return t
}
