package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const benchStart int64 = 1767225600000 // 2026-01-01T00:00:00Z

// jsonInsert renders 100 series of 10 samples.
func jsonInsert(i int) request {
	b := []byte{'['}
	for s := range 100 {
		if s > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"entity":"host-%d","metric":"metric_%d","tags":{"dc":"eu"},"data":[`, s/10+10*(i%10), s%10)
		for n := range 10 {
			if n > 0 {
				b = append(b, ',')
			}
			b = fmt.Appendf(b, `{"t":%d,"v":%d.%02d}`, benchStart+int64(i*10+n)*1000, (i+s+n)%100, n)
		}
		b = append(b, "]}"...)
	}
	return request{path: "/api/v1/series/insert", contentType: "application/json", body: append(b, ']')}
}

// commandInsert renders 100 lines of ten fields.
func commandInsert(i int) request {
	var b []byte
	for line := range 100 {
		b = fmt.Appendf(b, "series e:host-%d ms:%d", line, benchStart+int64(i)*1000)
		for m := range 10 {
			b = fmt.Appendf(b, " m:metric_%d=%d.%02d", m, (i+line+m)%100, m)
		}
		b = append(b, " t:dc=eu\n"...)
	}
	return request{path: "/api/v1/command", contentType: "text/plain", body: b}
}

// webhookInsert renders a build notification of 1 KB.
func webhookInsert(i int) request {
	b := fmt.Appendf(nil, `{"job":"api","build":{"number":%d,"status":"SUCCESS","branch":"main","duration":1250.5,"ok":true},"steps":[`, i)
	for s := 0; len(b) < 960; s++ {
		if s > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"name":"step-%d","ms":%d,"result":"passed"}`, s, s*17)
	}
	return request{path: "/api/v1/messages/webhook/ci?command.message=job&exclude=steps*.ms", contentType: "application/json", body: append(b, "]}"...)}
}

// messageInsert renders 100 messages.
func messageInsert(i int) request {
	b := []byte{'['}
	for n := range 100 {
		if n > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"entity":"host-%d","type":"syslog","source":"kernel","severity":"WARNING","timestamp":%d,"message":"link %d is down","tags":{"unit":"net-%d","pid":"%d"}}`,
			n, benchStart+int64(i*100+n)*10, n, n%7, i)
	}
	return request{path: "/api/v1/messages/insert", contentType: "application/json", body: append(b, ']')}
}

// Sizes of the queries that are timed.
const (
	queriedSamples = 10_000
	queryClients   = 50
	queryPause     = 500 * time.Millisecond // of a client between two queries, as of a dashboard that refreshes
	queryRounds    = 20
	listedEntities = 100_000
)

// queryTimes times queries of 10,000 samples by 50 clients that each ask twice a second.
func (b *benchCmd) queryTimes() error {
	return withServer("1s", func(s *benchServer) error {
		var fill [][]byte
		for i := range 20 {
			body := fmt.Appendf(nil, `[{"entity":"host","metric":"load","data":[`)
			for n := range queriedSamples / 20 {
				if n > 0 {
					body = append(body, ',')
				}
				body = fmt.Appendf(body, `{"t":%d,"v":%d.%02d}`, benchStart+int64(i*queriedSamples/20+n)*1000, n%100, i)
			}
			fill = append(fill, request{path: "/api/v1/series/insert", contentType: "application/json", body: append(body, "]}]"...)}.wire(s.url, benchUser))
		}
		if err := send(s.url, fill); err != nil {
			return err
		}
		query := request{path: "/api/v1/series/query", contentType: "application/json",
			body: []byte(`[{"entity":"host","metric":"load","startDate":"2026-01-01T00:00:00Z","endDate":"2026-01-02T00:00:00Z"}]`)}.wire(s.url, benchUser)
		times, err := s.timeAll(queryClients, max(1, int(queryRounds*b.Scale)), queryPause, query)
		if err != nil {
			return err
		}
		fmt.Printf("| series/query, 10,000 samples, 100 queries/s | %d | 1s | median %s, 99th percentile %s | <= 5 ms |\n", queryClients, quantile(times, 0.5), quantile(times, 0.99))
		return nil
	})
}

// listTimes times the list of 100,000 entities.
func (b *benchCmd) listTimes() error {
	return withServer("1s", func(s *benchServer) error {
		const perBody = 1000
		var fill [][]byte
		for i := range listedEntities / perBody {
			var body []byte
			for n := range perBody {
				body = fmt.Appendf(body, "entity e:host-%06d l:\"Host %d\" t:site=north t:rack=r%d\n", i*perBody+n, n, n%40)
			}
			fill = append(fill, request{path: "/api/v1/command", contentType: "text/plain", body: body}.wire(s.url, benchUser))
		}
		if err := send(s.url, fill); err != nil {
			return err
		}
		for _, path := range []string{"/api/v1/entities", "/api/v1/entities?tags=*", "/api/v1/entities?expression=tags.rack%3D'r7'"} {
			times, err := s.timeAll(1, max(3, int(20*b.Scale)), 0, request{path: path}.wire(s.url, benchUser))
			if err != nil {
				return err
			}
			fmt.Printf("| GET %s, %d entities | 1 | 1s | median %s | <= 200 ms |\n", path, listedEntities, quantile(times, 0.5))
		}
		return nil
	})
}

// permissionCost compares what inserts of an administrator cost the server with what those of a user do who may write one entity group only, in turns. It
// counts the time of the server's processors: on a machine that does something else as well, elapsed times differ more than what is looked for. Each turn
// sends samples of its own, and each user is the first every other turn: who comes second finds longer series, and a sample that is there already is
// another kind of work.
func (b *benchCmd) permissionCost() error {
	const clients, turns, first = 4, 36, 4 // the first turns fill caches
	return withServer("1s", func(s *benchServer) error {
		if err := s.restrictedUser("writer"); err != nil {
			return err
		}
		bodies := max(clients, int(120*b.Scale)/clients*clients)
		var took [2]time.Duration
		for turn := range turns {
			for place := range took {
				user := (turn + place) % len(took)
				wires := make([][]byte, bodies)
				for n := range wires {
					wires[n] = jsonInsert((len(took)*turn+place)*bodies+n).wire(s.url, [...]string{benchUser, "writer"}[user])
				}
				before, err := s.processorTime()
				if err != nil {
					return err
				}
				if _, err = s.sendAll(clients, wires); err != nil {
					return err
				}
				after, err := s.processorTime()
				if err != nil {
					return err
				}
				if turn >= first {
					took[user] += after - before
				}
			}
		}
		fmt.Printf("| insert with permission for one entity group, against an administrator's | %d | 1s | %+.1f %% of the processor time | <= 3 %% |\n", clients, (took[1].Seconds()/took[0].Seconds()-1)*100)
		return nil
	})
}

// processorTime is what the server has used so far, in user and system mode, in steps of 10 ms.
func (s *benchServer) processorTime() (time.Duration, error) {
	name := fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid)
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	// The second field is the name of the program in brackets; utime and stime are the 14th and 15th (proc_pid_stat(5)).
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	const utime, stime, tick = 14 - 3, 15 - 3, 10 * time.Millisecond
	if len(fields) <= stime {
		return 0, fmt.Errorf("%s has %d fields", name, len(fields))
	}
	user, err1 := strconv.ParseInt(fields[utime], 10, 64)
	system, err2 := strconv.ParseInt(fields[stime], 10, 64)
	return time.Duration(user+system) * tick, firstError(err1, err2)
}

// restrictedUser makes a user who may write the entities of jsonInsert, through one entity group.
func (s *benchServer) restrictedUser(name string) error {
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprintf(`"host-%d"`, i))
	}
	for _, r := range []request{
		{method: "PUT", path: "/api/v1/entity-groups/hosts", body: []byte(`{}`)},
		{path: "/api/v1/entity-groups/hosts/entities/set", body: []byte("[" + strings.Join(names, ",") + "]")},
		{method: "PUT", path: "/api/v1/admin/user-groups/writers", body: []byte(`{"write":["hosts"]}`)},
		{method: "PUT", path: "/api/v1/admin/users/" + name, body: []byte(`{"password":"` + benchPassword + `","roles":["API_DATA_WRITE"],"userGroups":["writers"]}`)},
	} {
		r.contentType = "application/json"
		if err := send(s.url, [][]byte{r.wire(s.url, benchUser)}); err != nil {
			return fmt.Errorf("%s: %w", r.path, err)
		}
	}
	return nil
}

// withServer runs do against a server of its own.
func withServer(syncMode string, do func(*benchServer) error) (err error) {
	s, err := startBenchServer(syncMode)
	if err != nil {
		return err
	}
	defer func() { err = firstError(err, s.stop()) }()
	if err := s.settle(); err != nil {
		return err
	}
	return do(s)
}

// settle waits until the server has compiled its plugins, for which it takes the better part of a processor on a cold cache.
func (s *benchServer) settle() error {
	const pause, idle, rounds = 500 * time.Millisecond, 20 * time.Millisecond, 120
	before := time.Duration(-1)
	for range rounds {
		now, err := s.processorTime()
		if err != nil {
			return err
		}
		if before >= 0 && now-before <= idle {
			break
		}
		before = now
		time.Sleep(pause)
	}
	return nil
}

// timeAll lets each client send a request for some rounds, pausing in between, and returns the times of all but the first round.
func (s *benchServer) timeAll(clients, rounds int, pause time.Duration, wire []byte) ([]time.Duration, error) {
	times, faults := make([][]time.Duration, clients), make([]error, clients)
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			time.Sleep(pause * time.Duration(c) / time.Duration(clients))
			times[c], faults[c] = s.timeOne(rounds+1, pause, wire)
		})
	}
	wg.Wait()
	return slices.Concat(times...), firstError(faults...)
}

func (s *benchServer) timeOne(rounds int, pause time.Duration, wire []byte) ([]time.Duration, error) {
	conn, err := net.Dial("tcp", s.url)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	answers := bufio.NewReaderSize(conn, 64<<10)
	var times []time.Duration
	for range rounds {
		start := time.Now()
		if _, err := conn.Write(wire); err != nil {
			return nil, err
		}
		if err := readAnswer(answers); err != nil {
			return nil, err
		}
		times = append(times, time.Since(start))
		time.Sleep(pause)
	}
	return times[1:], nil
}

// quantile returns the q-quantile, rounded to 10 us.
func quantile(times []time.Duration, q float64) time.Duration {
	slices.Sort(times)
	return times[min(len(times)-1, int(q*float64(len(times))))].Round(10 * time.Microsecond)
}
