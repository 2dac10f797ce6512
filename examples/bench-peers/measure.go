package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// parts are what -only chooses among.
var parts = []string{"ingest", "disk", "rss", "avg", "max", "export", "sql", "start", "fleet"}

// results are the values measured: by measure, by system, one a run.
type results map[string]map[string][]float64

func (r results) add(measure, system string, value float64) {
	if r[measure] == nil {
		r[measure] = map[string][]float64{}
	}
	r[measure][system] = append(r[measure][system], value)
}

// bench is one run of the command.
type bench struct {
	options
	work      string
	results   results
	machine   machine
	versions  []string
	skipped   []string
	floor     string              // what the generator says of the devops set
	bodies    map[string][][]byte // the devops set as requests, by format
	csv       string              // the devops set as a table
	reference reference
}

// linesABody is how many lines one write carries, ten samples each.
const linesABody = 16_384

// system is anything that goes through rounds.
type system interface {
	name() string
	round(ctx context.Context, b *bench) error
}

// prepare renders the devops set for all systems, so that nothing is generated while a clock runs.
func (b *bench) prepare(ctx context.Context, systems []system) (err error) {
	b.csv, b.bodies = filepath.Join(b.work, "devops.csv"), map[string][][]byte{}
	if b.floor, err = b.render(ctx, b.csv, "--format", "csv", "--hosts", strconv.Itoa(b.hosts)); err != nil {
		return err
	}
	progress("%s", b.floor)
	if b.reference, err = readReference(b.csv); err != nil {
		return err
	}
	for _, s := range systems {
		s, ok := s.(*server)
		if !ok {
			continue
		}
		b.versions = append(b.versions, s.version)
		if b.bodies[s.format] != nil {
			continue
		}
		name := filepath.Join(b.work, "devops."+s.format)
		if _, err := b.render(ctx, name, "--format", s.format, "--hosts", strconv.Itoa(b.hosts)); err != nil {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		b.bodies[s.format] = cutLines(text, linesABody)
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

// render has the generator write a file, and returns what it says of it.
func (b *bench) render(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, b.server, append([]string{"bench", "devops", "--out", name}, args...)...)
	text, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%v: %w: %s", cmd.Args, err, text)
	}
	return string(bytes.TrimSpace(text)), nil
}

// cutLines cuts text into bodies of n lines.
func cutLines(text []byte, n int) (bodies [][]byte) {
	for len(text) > 0 {
		end := 0
		for range n {
			i := bytes.IndexByte(text[end:], '\n')
			if i < 0 {
				end = len(text)
				break
			}
			end += i + 1
		}
		bodies = append(bodies, text[:end])
		text = text[end:]
	}
	return bodies
}

// round loads a server, lets it compact and asks it.
func (s *server) round(ctx context.Context, b *bench) error {
	asked := b.wants("avg") || b.wants("max") || b.wants("export") || b.wants("sql")
	if b.wants("ingest") || b.wants("disk") || b.wants("rss") || asked {
		if err := b.with(ctx, s, lazy, func(i *instance) error { return b.loadAndAsk(ctx, i) }); err != nil {
			return err
		}
	}
	if !b.wants("ingest") {
		return nil
	}
	return b.with(ctx, s, synced, func(i *instance) error {
		rate, err := i.load(ctx, b.bodies[s.format], b.syncedClients)
		if err != nil {
			return err
		}
		b.record("ingest, synced", s, float64(b.reference.all.rows)/rate.Seconds())
		return nil
	})
}

// with runs do against a new server.
func (b *bench) with(ctx context.Context, s *server, m mode, do func(*instance) error) error {
	i, err := s.open(ctx, b, m)
	if err != nil {
		return err
	}
	return errors.Join(do(i), i.close())
}

// record keeps a value and shows it.
func (b *bench) record(measure string, s system, value float64) {
	b.results.add(measure, s.name(), value)
	progress("  %-28s %s", measure, format(unitOf(measure), value))
}

func (b *bench) loadAndAsk(ctx context.Context, i *instance) error {
	before, err := i.processorTime()
	if err != nil {
		return err
	}
	elapsed, err := i.load(ctx, b.bodies[i.format], b.clients)
	if err != nil {
		return err
	}
	samples := float64(b.reference.all.rows)
	b.record("ingest", i.server, samples/elapsed.Seconds())
	after, err := i.processorTime()
	if err != nil {
		return err
	}
	b.record("processor time of ingest", i.server, (after-before).Seconds()/samples*1e6)
	rss, err := i.status("VmRSS")
	if err != nil {
		return err
	}
	b.record("rss", i.server, rss)
	if rss, err = i.status("RssAnon"); err != nil {
		return err
	}
	b.record("rss, anonymous", i.server, rss)
	if err := i.compact(ctx); err != nil {
		return err
	}
	if after, err = i.processorTime(); err != nil {
		return err
	}
	b.record("processor time, compacted", i.server, (after-before).Seconds()/samples*1e6)
	size, err := diskUsage(i.data())
	if err != nil {
		return err
	}
	b.record("disk", i.server, float64(size.allocated)/samples)
	b.record("disk, without journal", i.server, float64(size.allocated-size.journal)/samples)
	b.record("disk, lengths of files", i.server, float64(size.apparent)/samples)
	return b.askAll(ctx, i)
}

// load shares bodies out among clients and returns how long all took.
func (i *instance) load(ctx context.Context, bodies [][]byte, clients int) (time.Duration, error) {
	syscall.Sync() // what was written before must not be written during this measurement
	next := make(chan []byte)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	start := time.Now()
	for range clients {
		wg.Go(func() {
			for body := range next {
				if _, err := i.send(ctx, i.write, body, io.Discard); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
feed:
	for _, body := range bodies {
		select {
		case next <- body:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	wg.Wait()
	return time.Since(start), context.Cause(ctx)
}

// askAll asks all questions that are wanted. Of several ways to ask one the fastest counts.
func (b *bench) askAll(ctx context.Context, i *instance) error {
	for _, m := range measures {
		if !b.wants(m.part) {
			continue
		}
		var best []float64
		for _, q := range i.questions[m.name] {
			times, err := b.ask(ctx, i, q)
			if errors.Is(err, errUnknown) {
				progress("  %-28s %v", m.name, err)
				continue
			}
			if err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			if best == nil || median(times) < median(best) {
				best = times
			}
		}
		if best == nil {
			continue
		}
		for _, t := range best {
			b.results.add(m.name, i.title, t)
		}
		progress("  %-28s %s", m.name, format(m.unit, median(best)))
		if m.name == "sql, export of all" {
			if err := b.memoryOfExport(ctx, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// ask asks twice to warm up, the first time comparing the answer, and then for the clock: it returns seconds.
func (b *bench) ask(ctx context.Context, i *instance, q question) (times []float64, err error) {
	var body bytes.Buffer
	if _, err = i.send(ctx, q.request, nil, &body); err != nil {
		return nil, err
	}
	if q.want != nil {
		got, err := q.parse(body.Bytes())
		if err == nil {
			err = got.matches(q.want(b.reference))
		}
		if err != nil {
			return nil, err
		}
	}
	for n := range b.asks + 1 {
		took, err := i.send(ctx, q.request, nil, io.Discard)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			times = append(times, took.Seconds())
		}
	}
	return times, nil
}

// memoryOfExport exports everything once more and records how much memory that took at its highest above what the server had before.
func (b *bench) memoryOfExport(ctx context.Context, i *instance) error {
	before, err := i.status("VmRSS")
	if err != nil {
		return err
	}
	if err := i.forgetPeak(); err != nil {
		return err
	}
	if _, err := i.send(ctx, i.questions["sql, export of all"][0].request, nil, io.Discard); err != nil {
		return err
	}
	peak, err := i.status("VmHWM")
	if err != nil {
		return err
	}
	b.record("memory of the export of all", i.server, peak-before)
	return nil
}
