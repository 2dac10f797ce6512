package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// benchCmd measures a server that it starts itself in a temporary directory. Bodies are rendered before the clock starts, and sent over
// plain connections, so that the client costs the shared cores as little as possible.
type benchCmd struct {
	Scale float64       `default:"1" help:"Multiply the amount of work."`
	Idle  time.Duration `default:"60s" help:"How long to watch the idle server."`
	Only  string        `help:"Run the measurements whose name contains this text."`
}

// measurement is one row of the table.
type measurement struct {
	name    string
	sync    string // sync mode of the server
	clients int
	unit    string
	target  float64 // at least
	perBody float64 // units in one body
	bodies  int
	render  func(i int) request
}

// request is one HTTP request before it is put into bytes.
type request struct {
	method, path, contentType string // method "": GET without a body, else POST
	body                      []byte
}

var measurements = []measurement{
	{name: "series/insert JSON, 1,000 samples a request", sync: "1s", clients: 4, unit: "samples/s", target: 800_000, perBody: 1000, bodies: 3000, render: jsonInsert},
	{name: "text commands, ten m: fields a line", sync: "1s", clients: 4, unit: "samples/s", target: 500_000, perBody: 1000, bodies: 4000, render: commandInsert},
	{name: "messages/insert JSON, 100 messages a request", sync: "1s", clients: 4, unit: "messages/s", target: 150_000, perBody: 100, bodies: 6000, render: messageInsert},
	{name: "webhook, 1 KB JSON, sync=1s", sync: "1s", clients: 16, unit: "requests/s", target: 15_000, perBody: 1, bodies: 60_000, render: webhookInsert},
	{name: "webhook, 1 KB JSON, sync=always", sync: "always", clients: 16, unit: "requests/s", target: 5_000, perBody: 1, bodies: 30_000, render: webhookInsert},
}

func (b *benchCmd) Run() error {
	fmt.Printf("%s/%s, %d cores, %s\n\n| Measurement | Clients | Sync | Result | Target |\n|---|---|---|---|---|\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	for _, m := range measurements {
		if !strings.Contains(m.name, b.Only) {
			continue
		}
		m.bodies = max(m.clients, int(float64(m.bodies)*b.Scale))
		rate, err := m.run()
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		fmt.Printf("| %s | %d | %s | %.0f %s | >= %.0f |\n", m.name, m.clients, m.sync, rate, m.unit, m.target)
	}
	for _, m := range []struct {
		name string
		run  func(*benchCmd) error
	}{{"query", (*benchCmd).queryTimes}, {"entities", (*benchCmd).listTimes}, {"permissions", (*benchCmd).permissionCost}, {"idle", (*benchCmd).watchIdle}} {
		if !strings.Contains(m.name, b.Only) {
			continue
		}
		if err := m.run(b); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

// benchServer is a server in a process of its own.
type benchServer struct {
	cmd *exec.Cmd
	dir string
	url string // host:port
}

const (
	benchUser     = "bench"
	benchPassword = "bench-password"
)

func startBenchServer(syncMode string) (*benchServer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "tidemark-bench-")
	if err != nil {
		return nil, err
	}
	s := &benchServer{dir: dir}
	s.cmd = exec.Command(self, "serve", "--http", "127.0.0.1:0", "--data", filepath.Join(dir, "data"), "--config", filepath.Join(dir, "config"), "--sync", syncMode, "--log-level", "warn")
	s.cmd.Env = append(os.Environ(), "TIDEMARK_ADMIN_USER="+benchUser, "TIDEMARK_ADMIN_PASSWORD="+benchPassword)
	s.cmd.Stderr = os.Stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(out)
	for s.url == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			return nil, fmt.Errorf("the server did not start: %w", err)
		}
		if _, addr, ok := strings.Cut(line, "ready on http://"); ok {
			s.url = strings.TrimSpace(addr)
		}
	}
	go io.Copy(io.Discard, lines) // ends with the process, which stop waits for
	return s, nil
}

func (s *benchServer) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	err := s.cmd.Wait()
	return firstError(err, os.RemoveAll(s.dir))
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// run returns units a second.
func (m *measurement) run() (rate float64, err error) {
	s, err := startBenchServer(m.sync)
	if err != nil {
		return 0, err
	}
	defer func() { err = firstError(err, s.stop()) }()
	if err := s.settle(); err != nil {
		return 0, err
	}
	wires := make([][]byte, m.bodies/m.clients*m.clients)
	for i := range wires {
		wires[i] = m.render(i).wire(s.url, benchUser)
	}
	elapsed, err := s.sendAll(m.clients, wires)
	return float64(len(wires)) * m.perBody / elapsed.Seconds(), err
}

// sendAll shares requests out among clients and returns how long they took.
func (s *benchServer) sendAll(clients int, wires [][]byte) (time.Duration, error) {
	runtime.GC()
	syscall.Sync() // what was measured before must not be written during this measurement
	var wg sync.WaitGroup
	perClient := len(wires) / clients
	faults := make([]error, clients)
	start := time.Now()
	for c := range clients {
		wg.Go(func() { faults[c] = send(s.url, wires[c*perClient:(c+1)*perClient]) })
	}
	wg.Wait()
	return time.Since(start), firstError(faults...)
}

// wire renders a request as a user sends it, whose password is that of all users of a measurement.
func (r request) wire(host, user string) []byte {
	var b bytes.Buffer
	credentials := base64.StdEncoding.EncodeToString([]byte(user + ":" + benchPassword))
	method := cmp.Or(r.method, "POST")
	if r.body == nil {
		method = "GET"
	}
	fmt.Fprintf(&b, method+" %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Basic %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", r.path, host, credentials, r.contentType, len(r.body))
	b.Write(r.body)
	return b.Bytes()
}

// send writes requests over one connection, each after the answer to the one before.
func send(host string, wires [][]byte) error {
	conn, err := net.Dial("tcp", host)
	if err != nil {
		return err
	}
	defer conn.Close()
	answers := bufio.NewReaderSize(conn, 16<<10)
	for _, wire := range wires {
		if _, err := conn.Write(wire); err != nil {
			return err
		}
		if err := readAnswer(answers); err != nil {
			return err
		}
	}
	return nil
}

// readAnswer reads one answer with a Content-Length and insists on 2xx. It allocates nothing unless that fails: what the client uses, the server lacks.
func readAnswer(r *bufio.Reader) error {
	status, err := r.ReadSlice('\n')
	if err != nil {
		return err
	}
	fault := ""
	if !bytes.HasPrefix(status, []byte("HTTP/1.1 2")) {
		fault = string(bytes.TrimSpace(status))
	}
	length := 0
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			break
		}
		if name, v, _ := bytes.Cut(line, []byte(":")); bytes.EqualFold(name, []byte("Content-Length")) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(v))); err != nil {
				return err
			}
		}
	}
	if fault == "" {
		_, err = r.Discard(length)
		return err
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(r, body); err != nil {
		return err
	}
	return fmt.Errorf("%s: %s", fault, body)
}

// watchIdle reports what a server without work writes and how much memory it holds, once its first work is done.
func (b *benchCmd) watchIdle() error {
	s, err := startBenchServer("always")
	if err != nil {
		return err
	}
	written, rss, err := s.idle(b.Idle)
	fmt.Printf("| idle for %s: bytes written | 0 | always | %d | 0 |\n| idle: RSS, no plugin resident | 0 | always | %d MB | <= 64 |\n", b.Idle, written, rss>>10)
	return firstError(err, s.stop())
}

// settled is how long a new server must write nothing to count as idle: on a cold cache it compiles its plugins first.
const settled = 5 * time.Second

// idle waits until the server is idle and then watches it: bytes written to disk, and resident KiB at the end.
func (s *benchServer) idle(watch time.Duration) (written, rss int64, err error) {
	pid := s.cmd.Process.Pid
	last := int64(-1)
	for wait := settled; ; {
		time.Sleep(wait)
		now, err := processNumber(pid, "io", "write_bytes:")
		if err != nil {
			return 0, 0, err
		}
		if wait == watch && last >= 0 {
			rss, err = processNumber(pid, "status", "VmRSS:")
			return now - last, rss, err
		}
		if now == last {
			wait = watch
		}
		last = now
	}
}

// processNumber reads one number of /proc.
func processNumber(pid int, file, field string) (int64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, field); ok {
			return strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
		}
	}
	return 0, fmt.Errorf("/proc/%d/%s has no %s", pid, file, field)
}
