package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestKill kills the server while clients write, starts it again, and asks for everything that was acknowledged: samples, messages and the
// open alert. TIDEMARK_KILL_ROUNDS sets how often.
func TestKill(t *testing.T) {
	rounds := 3
	if n, err := strconv.Atoi(os.Getenv("TIDEMARK_KILL_ROUNDS")); err == nil {
		rounds = n
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "config")
	if err := os.MkdirAll(filepath.Join(config, "rules"), 0o700); err != nil {
		t.Fatal(err)
	}
	rule := "name: always\ntype: series\nfilter: {metric: kill}\ngroup_by: {entity: true}\ncondition: 'value >= 0'\nseverity: major\n"
	if err := os.WriteFile(filepath.Join(config, "rules", "always.yaml"), []byte(rule), 0o600); err != nil {
		t.Fatal(err)
	}
	const clients = 4
	acknowledged := make([]int, clients) // by client: samples 0..n-1
	for round := range rounds {
		s := startKillServer(t, dir, config)
		s.verify(t, acknowledged)
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
		var wg sync.WaitGroup
		writing := make(chan struct{}, clients*1000)
		for c := range clients {
			wg.Go(func() { acknowledged[c] = s.writeUntilDead(c, acknowledged[c], writing) })
		}
		select { // the first login hashes a password, which takes long under the race detector
		case <-writing:
		case <-time.After(20 * time.Second):
		}
		delay := time.Duration(50+rand.IntN(400)) * time.Millisecond
		<-time.After(delay)
		if err := s.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		s.cmd.Wait() // killed: the error is the point
	}
	s := startKillServer(t, dir, config)
	s.verify(t, acknowledged)
	s.cmd.Process.Kill()
	s.cmd.Wait()
	t.Logf("%d rounds, %v batches acknowledged", rounds, acknowledged)
	if acknowledged[0] == 0 {
		t.Error("nothing was written")
	}
}

type killServer struct {
	cmd *exec.Cmd
	url string
}

func startKillServer(t *testing.T, dir, config string) *killServer {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "tidemark") // the test binary acts as the command of its name
	if _, err := os.Lstat(link); errors.Is(err, os.ErrNotExist) {
		if err := os.Symlink(self, link); err != nil {
			t.Fatal(err)
		}
	}
	s := &killServer{cmd: exec.Command(link, "serve", "--http", "127.0.0.1:0", "--data", filepath.Join(dir, "data"), "--config", config, "--log-level", "warn")}
	s.cmd.Env = append(os.Environ(), "TIDEMARK_ADMIN_USER=admin", "TIDEMARK_ADMIN_PASSWORD="+scriptPassword)
	s.cmd.Stderr = os.Stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	for s.url == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("the server did not start: %v", err)
		}
		if m := readyLine.FindStringSubmatch(line); m != nil {
			s.url = m[1]
		}
	}
	go io.Copy(io.Discard, lines)
	t.Cleanup(func() { s.cmd.Process.Kill() })
	return s
}

func (s *killServer) post(path, body string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	r.SetBasicAuth("admin", scriptPassword)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	return string(text), err
}

const killStart = 1767225600000 // 2026-01-01T00:00:00Z

// writeUntilDead writes one sample and one message at a time, and returns how many of both were acknowledged. It tells of its progress.
func (s *killServer) writeUntilDead(client, next int, progress chan<- struct{}) int {
	for {
		sample := fmt.Sprintf(`[{"entity":"client-%d","metric":"kill","data":[{"t":%d,"v":%d}]}]`, client, killStart+next*1000, next)
		if _, err := s.post("/api/v1/series/insert", sample); err != nil {
			return next
		}
		at := time.UnixMilli(killStart + int64(next)*1000).UTC().Format(time.RFC3339)
		message := fmt.Sprintf(`[{"entity":"client-%d","type":"kill","date":"%s","message":"%d"}]`, client, at, next)
		if _, err := s.post("/api/v1/messages/insert", message); err != nil {
			return next
		}
		next++
		select {
		case progress <- struct{}{}:
		default: // nobody has to know of every one
		}
	}
}

// verify asks for everything that was acknowledged. More may be there: what was written and not answered.
func (s *killServer) verify(t *testing.T, acknowledged []int) {
	t.Helper()
	for client, n := range acknowledged {
		if n == 0 {
			continue
		}
		interval := `"startDate":"2026-01-01T00:00:00Z","endDate":"2027-01-01T00:00:00Z"`
		text, err := s.post("/api/v1/series/query", fmt.Sprintf(`[{"entity":"client-%d","metric":"kill",%s}]`, client, interval))
		if err != nil {
			t.Fatal(err)
		}
		var series []struct{ Data []struct{ V float64 } }
		if err := json.Unmarshal([]byte(text), &series); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if got := len(series[0].Data); got < n {
			t.Errorf("client %d: %d samples, %d were acknowledged", client, got, n)
			continue
		}
		for i := range n {
			if series[0].Data[i].V != float64(i) {
				t.Errorf("client %d: sample %d is %v", client, i, series[0].Data[i].V)
				break
			}
		}
		text, err = s.post("/api/v1/messages/query", fmt.Sprintf(`[{"entity":"client-%d","type":"kill","limit":0,%s}]`, client, interval))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(text, `"message":`); got < n {
			t.Errorf("client %d: %d messages, %d were acknowledged", client, got, n)
		}
		text, err = s.post("/api/v1/alerts/query", fmt.Sprintf(`[{"entity":"client-%d"}]`, client))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(text, `"rule":"always"`) != 1 {
			t.Errorf("client %d: alerts are %s", client, text)
		}
	}
}
