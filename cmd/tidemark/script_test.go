package main

import (
	"bytes"
	"encoding/base64"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

var rewrite = flag.Bool("rewrite", false, "write what was seen into the cmp sections of scripts")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"tidemark": main})
}

// Scripts run the real binary. Besides the commands of testscript there are
//
//	spawn NAME PROGRAM [ARG...]          start a program in the background; its output is NAME.log
//	signal NAME TERM|KILL                and wait for its end
//	serve [ARG...]                       spawn the server on a free port as "server" and wait until it is ready; sets $URL
//	http STATUS METHOD PATH [BODY] [HEADER: VALUE...]   as the administrator; BODY is @FILE or text; the answer is in the file response
//	waitfor FILE REGEXP                  until the file matches, 20 seconds at most
//	freeport NAME                        sets $NAME to a port that nobody listens on
//	replace FILE OLD NEW                 in the file
func TestScripts(t *testing.T) {
	runScripts(t, "testdata/script")
}

func TestExamples(t *testing.T) {
	dirs, err := filepath.Glob("../../examples/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			if scripts, err := filepath.Glob(filepath.Join(dir, "*.txtar")); err != nil || scripts == nil {
				t.Skip("has no script: it needs more than Go, and make clients runs it")
			}
			runScripts(t, dir)
		})
	}
}

func runScripts(t *testing.T, dir string) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		UpdateScripts:       *rewrite,
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Vars = append(e.Vars, "ROOT="+root, "TIDEMARK_ADMIN_USER=admin", "TIDEMARK_ADMIN_PASSWORD="+scriptPassword)
			for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOFLAGS", "CGO_ENABLED", "TIDEMARK_COMPILE_CACHE"} {
				e.Vars = append(e.Vars, name+"="+goEnv(name))
			}
			e.Values[processesKey] = map[string]*process{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"spawn": cmdSpawn, "signal": cmdSignal, "serve": cmdServe, "http": cmdHTTP, "waitfor": cmdWaitFor, "freeport": cmdFreePort, "replace": cmdReplace,
		},
	})
}

func goEnv(name string) string {
	if v := os.Getenv(name); v != "" || !strings.HasPrefix(name, "GO") {
		return v
	}
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

const (
	scriptPassword = "script-password"
	processesKey   = "processes"
)

// process is a program in the background.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

func processes(ts *testscript.TestScript) map[string]*process {
	return ts.Value(processesKey).(map[string]*process)
}

func cmdSpawn(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: spawn NAME PROGRAM [ARG...]")
	}
	name := args[0]
	path := args[1]
	if !strings.Contains(path, "/") {
		for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
			if _, err := os.Stat(filepath.Join(dir, path)); err == nil {
				path = filepath.Join(dir, path)
				break
			}
		}
	}
	log, err := os.Create(ts.MkAbs(name + ".log"))
	ts.Check(err)
	p := &process{cmd: exec.Command(path, args[2:]...), done: make(chan struct{})}
	p.cmd.Dir = ts.MkAbs(".")
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.Env = scriptEnv(ts)
	ts.Check(p.cmd.Start())
	go func() {
		p.cmd.Wait()
		log.Close()
		close(p.done)
	}()
	processes(ts)[name] = p
	ts.Defer(func() {
		p.cmd.Process.Kill()
		<-p.done
	})
}

func scriptEnv(ts *testscript.TestScript) []string {
	env := []string{"PATH=" + ts.Getenv("PATH"), "HOME=" + ts.Getenv("HOME"), "TMPDIR=" + ts.Getenv("TMPDIR")}
	for _, name := range []string{"TIDEMARK_ADMIN_USER", "TIDEMARK_ADMIN_PASSWORD", "TIDEMARK_COMPILE_CACHE"} {
		if v := ts.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

func cmdSignal(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]syscall.Signal{"TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL}
	if neg || len(args) != 2 || signals[args[1]] == 0 || processes(ts)[args[0]] == nil {
		ts.Fatalf("usage: signal NAME TERM|KILL")
	}
	p := processes(ts)[args[0]]
	ts.Check(p.cmd.Process.Signal(signals[args[1]]))
	select {
	case <-p.done:
	case <-time.After(15 * time.Second):
		ts.Fatalf("%s did not end within 15 s", args[0])
	}
}

var readyLine = regexp.MustCompile(`ready on (http://\S+)`)

func cmdServe(ts *testscript.TestScript, neg bool, args []string) {
	cmdSpawn(ts, neg, append([]string{"server", "tidemark", "serve", "--http", "127.0.0.1:0", "--set", "rules.wait=20s"}, args...)) // a slow machine must not see an alert later than its insert
	ts.Setenv("URL", await(ts, "server.log", readyLine)[1])
}

func cmdWaitFor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: waitfor FILE|/PATH REGEXP")
	}
	pattern, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	await(ts, args[0], pattern)
}

// await polls a file, which another process writes, or a path of the server. One that compiles a plugin under the race detector, beside other tests, may take half a
// minute.
func await(ts *testscript.TestScript, file string, pattern *regexp.Regexp) []string {
	deadline := time.After(90 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		var text []byte
		if strings.HasPrefix(file, "/api/") {
			_, text = askServer(ts, http.MethodGet, file, nil)
		} else {
			var err error
			text, err = os.ReadFile(ts.MkAbs(file))
			ts.Check(err)
		}
		if m := pattern.FindStringSubmatch(string(text)); m != nil {
			return m
		}
		select {
		case <-tick.C:
		case <-deadline:
			ts.Fatalf("%s does not match %s:\n%s", file, pattern, text)
		}
	}
}

func cmdHTTP(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: http STATUS METHOD PATH [BODY] [HEADER: VALUE...]")
	}
	var body io.Reader
	headers := args[3:]
	if len(headers) > 0 {
		text := []byte(headers[0])
		if file, ok := strings.CutPrefix(headers[0], "@"); ok {
			var err error
			text, err = os.ReadFile(ts.MkAbs(file))
			ts.Check(err)
		}
		body, headers = bytes.NewReader(text), headers[1:]
	}
	status, text := askServer(ts, args[1], args[2], body, headers...)
	ts.Check(os.WriteFile(ts.MkAbs("response"), append(text, '\n'), 0o600))
	ts.Logf("%s %s: %d\n%s", args[1], args[2], status, text)
	if got := fmt.Sprint(status); got != args[0] {
		ts.Fatalf("status %s, want %s", got, args[0])
	}
}

// askServer asks the server as its administrator.
func askServer(ts *testscript.TestScript, method, path string, body io.Reader, headers ...string) (status int, text []byte) {
	r, err := http.NewRequest(method, ts.Getenv("URL")+path, body)
	ts.Check(err)
	r.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("admin:"+scriptPassword)))
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ":")
		r.Header.Set(name, strings.TrimSpace(value))
	}
	answer, err := http.DefaultClient.Do(r)
	ts.Check(err)
	defer answer.Body.Close()
	text, err = io.ReadAll(answer.Body)
	ts.Check(err)
	return answer.StatusCode, text
}

func cmdFreePort(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: freeport NAME")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	ts.Check(l.Close())
	ts.Setenv(args[0], port)
}

func cmdReplace(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: replace FILE OLD NEW")
	}
	text := ts.ReadFile(args[0])
	if !strings.Contains(text, args[1]) {
		ts.Fatalf("%s does not contain %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.ReplaceAll(text, args[1], args[2])), 0o600))
}
