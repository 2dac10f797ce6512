package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// once measures what takes too long for every round.
func (s *server) once(ctx context.Context, b *bench) error {
	if b.wants("start") {
		progress("start after kill -9: %s", s.title)
		if err := b.with(ctx, s, lazy, func(i *instance) error { return b.killAndStart(ctx, i) }); err != nil {
			return err
		}
	}
	if b.wants("fleet") {
		progress("fleet: %s", s.title)
		if err := b.with(ctx, s, small, func(i *instance) error { return b.fleet(ctx, i) }); err != nil {
			return err
		}
	}
	return nil
}

const (
	restarts    = 3                // how often the start is measured
	flushTime   = 10 * time.Second // before the first kill: who keeps rows in memory for some seconds shall not start with nothing
	answerLimit = 3 * time.Minute  // until the answer after a start
)

// killAndStart loads a server, kills it and measures the time from its start until it answers a question about the first hour. The data comes straight
// from the generator: how fast it goes in does not matter here.
func (b *bench) killAndStart(ctx context.Context, i *instance) error {
	steps := max(360, b.startSamples/b.hosts/len(metrics))
	if err := b.stream(ctx, i, "--hosts", strconv.Itoa(b.hosts), "--steps", strconv.Itoa(steps)); err != nil {
		return err
	}
	probe := i.questions["probe"]
	if len(probe) == 0 {
		return fmt.Errorf("%s has no probe", i.title)
	}
	if err := sleep(ctx, flushTime); err != nil {
		return err
	}
	for range restarts {
		if err := i.end(syscall.SIGKILL); err != nil {
			return err
		}
		start := time.Now()
		if err := i.start(ctx); err != nil {
			return err
		}
		for {
			body, err := i.call(ctx, probe[0].request)
			if err == nil {
				if d, err := probe[0].parse(body); err == nil && d.rows > 0 {
					break
				}
			}
			if time.Since(start) > answerLimit {
				return fmt.Errorf("no answer within %s of the start", answerLimit)
			}
			if err := i.wait(ctx, time.Millisecond); err != nil {
				return err
			}
		}
		b.record("start", i.server, time.Since(start).Seconds())
	}
	return nil
}

// stream loads what the generator writes, as it writes it.
func (b *bench) stream(ctx context.Context, i *instance, args ...string) (err error) {
	cmd := exec.CommandContext(ctx, b.server, append([]string{"bench", "devops", "--format", i.format}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			cmd.Process.Kill()
		}
		err = errors.Join(err, cmd.Wait())
	}()
	lines := bufio.NewReaderSize(out, 1<<20)
	for {
		body, err := readLines(lines, linesABody)
		if err != nil && err != io.EOF {
			return err
		}
		if len(body) > 0 {
			if _, err := i.send(ctx, i.write, body, io.Discard); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
	}
}

// readLines reads at most n lines; io.EOF comes with the last of them.
func readLines(r *bufio.Reader, n int) (lines []byte, err error) {
	for range n {
		line, err := r.ReadSlice('\n')
		lines = append(lines, line...)
		if err != nil {
			return lines, err
		}
	}
	return lines, nil
}

const (
	fleetRounds = 10              // samples that each series of the fleet gets
	fleetLimit  = 5 * time.Minute // who needs more for them has failed
)

// fleet measures a million series: one sample each, then ten each.
func (b *bench) fleet(ctx context.Context, i *instance) error {
	name := filepath.Join(b.work, "fleet")
	hosts := strconv.Itoa(b.fleetHosts)
	if _, err := b.render(ctx, name, "--set", "fleet", "--format", i.format, "--hosts", hosts, "--steps", strconv.Itoa(fleetRounds)); err != nil {
		return err
	}
	text, err := readAndRemove(name)
	if err != nil {
		return err
	}
	rounds := cutLines(text, b.fleetHosts) // a line holds ten series
	var total time.Duration
	limited, cancel := context.WithTimeout(ctx, fleetLimit)
	defer cancel()
	for n, round := range rounds {
		took, err := i.load(limited, cutLines(round, linesABody), b.clients)
		if err != nil && limited.Err() != nil && ctx.Err() == nil {
			b.skipped = append(b.skipped, fmt.Sprintf("%s: fleet, given up after %s with %d of %d samples each", i.title, fleetLimit, n, len(rounds)))
			progress("SKIPPED %s", b.skipped[len(b.skipped)-1])
			return nil
		}
		if err != nil {
			return err
		}
		total += took
		if n != 0 && n != len(rounds)-1 {
			continue
		}
		when := "first samples"
		if n > 0 {
			when = "all samples"
		}
		rss, err := i.status("VmRSS")
		if err != nil {
			return err
		}
		b.record("fleet, "+when, i.server, total.Seconds())
		b.record("fleet, rss after "+when, i.server, rss)
	}
	peak, err := i.status("VmHWM")
	if err != nil {
		return err
	}
	b.record("fleet, highest rss", i.server, peak)
	if err := i.compact(ctx); err != nil {
		return err
	}
	size, err := diskUsage(i.data())
	if err != nil {
		return err
	}
	b.record("fleet, disk", i.server, float64(size.allocated)/float64(b.fleetHosts*len(metrics)*fleetRounds))
	return nil
}
