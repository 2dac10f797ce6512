package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// startTime is how long the server may take until it is ready, and to stop.
const startTime = 30 * time.Second

var (
	readyLine = regexp.MustCompile(`is ready on (http://\S+)`)
	doorLine  = regexp.MustCompile(`network: (\w+) is open on ([0-9.:]+)`)
)

// server is the one tidemark that all clients talk to: on loopback, at ports of its own, with a password nobody knows.
type server struct {
	cmd           *exec.Cmd
	binary        string
	dir, password string
	url           string
	doors         map[string]string // tcp, udp and pickle: host:port
	done          chan struct{}     // closed at the end of the process
	err           error             // how it ended; read it after done
}

// startServer returns when the server says that it is ready.
func startServer(ctx context.Context, s setup) (*server, error) {
	dir, err := os.MkdirTemp("", "tidemark-clients-")
	if err != nil {
		return nil, err
	}
	srv := &server{binary: s.binary, dir: dir, password: rand.Text(), doors: make(map[string]string), done: make(chan struct{})}
	srv.cmd = exec.Command(s.binary, "serve", "--data", filepath.Join(dir, "data"), "--config", filepath.Join(s.dir, "config"), "--http", "127.0.0.1:0",
		"--set", "tcp=127.0.0.1:0", "--set", "udp=127.0.0.1:0", "--set", "pickle=127.0.0.1:0")
	srv.cmd.Env = append(os.Environ(), "TIDEMARK_ADMIN_PASSWORD="+srv.password)
	out, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	pipe, w := io.Pipe()
	srv.cmd.Stdout, srv.cmd.Stderr = w, w
	if err := srv.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w (make build makes it)", s.binary, err)
	}
	ready := make(chan struct{})
	read := make(chan struct{})
	go func() {
		defer close(read)
		srv.read(io.TeeReader(pipe, out), ready)
	}()
	go func() {
		srv.err = srv.cmd.Wait()
		w.Close()
		<-read
		out.Close()
		close(srv.done)
	}()
	select {
	case <-ready:
		return srv, nil
	case <-srv.done:
		return nil, fmt.Errorf("the server ended at its start (%v):\n%s", srv.err, srv.log())
	case <-time.After(startTime):
		err = fmt.Errorf("the server is not ready after %s", startTime)
	case <-ctx.Done():
		err = ctx.Err()
	}
	srv.cmd.Process.Kill()
	<-srv.done
	return nil, fmt.Errorf("%w:\n%s", err, srv.log())
}

// read takes the addresses from what the server says, and goes on reading so that it never waits for us.
func (s *server) read(r io.Reader, ready chan<- struct{}) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if m := doorLine.FindStringSubmatch(lines.Text()); m != nil && ready != nil {
			s.doors[m[1]] = m[2]
		}
		if m := readyLine.FindStringSubmatch(lines.Text()); m != nil && ready != nil {
			s.url = m[1]
			close(ready)
			ready = nil
		}
	}
	io.Copy(io.Discard, r)
}

// environment is what scripts know of the server.
func (s *server) environment() []string {
	return []string{"URL=" + s.url, "LOGIN=admin", "PASSWORD=" + s.password, "TCP=" + s.doors["tcp"], "UDP=" + s.doors["udp"], "PICKLE=" + s.doors["pickle"]}
}

// log is the end of what the server wrote.
func (s *server) log() string {
	text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}

// ended says whether the server is gone.
func (s *server) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// end asks the server to stop.
func (s *server) end() error {
	if s.ended() {
		return fmt.Errorf("it ended by itself: %v", s.err)
	}
	s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.done:
		return s.err
	case <-time.After(startTime):
		s.cmd.Process.Kill()
		<-s.done
		return fmt.Errorf("it does not stop within %s", startTime)
	}
}

// stop ends the server as its owner would, and checks what it leaves behind.
func (s *server) stop(ctx context.Context) (t tally) {
	check := func(name string, err error) {
		if err != nil {
			t.failed++
			fmt.Printf("FAIL %s: %v\n", name, err)
			return
		}
		t.passed++
		fmt.Println("ok   " + name)
	}
	check("the server ran all the time and stops when asked", s.end())
	out, err := exec.CommandContext(ctx, s.binary, "check", "--data", filepath.Join(s.dir, "data")).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	check("tidemark check finds no fault in the data", err)
	if t.failed > 0 {
		fmt.Printf("the server's log, %s, ends:\n%s\n", filepath.Join(s.dir, "log"), s.log())
		return t
	}
	os.RemoveAll(s.dir)
	return t
}
