package main

import (
	"bufio"
	"fmt"
	"net"
	"slices"
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

// permissionCost compares inserts of an administrator with those of a user who may write one entity group only, in turns. Each sends samples of its own,
// and each is the first every other turn: who comes second finds longer series, and a sample that is there already is another kind of work.
func (b *benchCmd) permissionCost() error {
	const clients, turns = 4, 7
	return withServer("1s", func(s *benchServer) error {
		if err := s.restrictedUser("writer"); err != nil {
			return err
		}
		bodies := max(clients, int(600*b.Scale)/clients*clients)
		var shares []float64
		for turn := range turns {
			var took [2]time.Duration
			for place := range took {
				i := (turn + place) % len(took)
				wires := make([][]byte, bodies)
				for n := range wires {
					wires[n] = jsonInsert((len(took)*turn+place)*bodies+n).wire(s.url, [...]string{benchUser, "writer"}[i])
				}
				var err error
				if took[i], err = s.sendAll(clients, wires); err != nil {
					return err
				}
			}
			if turn > 0 { // the first fills caches
				shares = append(shares, (took[1].Seconds()/took[0].Seconds()-1)*100)
			}
		}
		slices.Sort(shares)
		fmt.Printf("| insert with permission for one entity group, against an administrator's | %d | 1s | median %+.1f %% of the time | <= 3 %% |\n", clients, shares[len(shares)/2])
		return nil
	})
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
	return do(s)
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
