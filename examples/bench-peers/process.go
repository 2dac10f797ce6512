package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stopTime is how long a database may take to stop.
const stopTime = 2 * time.Minute

// process is a database that runs.
type process struct {
	cmd  *exec.Cmd
	log  string
	done chan error // gets how it ended, once
}

// launch starts a program with its output in a file.
func launch(cmd *exec.Cmd, log string) (*process, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	// A terminal sends its interrupt to the whole group: the driver stops its children itself.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, log: log, done: make(chan error, 1)}
	go func() { p.done <- cmd.Wait() }()
	return p, nil
}

// end sends a signal and waits.
func (p *process) end(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("it is gone: %w\n%s", err, p.tail())
	}
	select {
	case <-p.done: // what it says about how it ended differs from one to the other
		return nil
	case <-time.After(stopTime):
		p.cmd.Process.Kill()
		<-p.done
		return fmt.Errorf("it did not stop within %s", stopTime)
	}
}

// tail is the end of what it wrote.
func (p *process) tail() string {
	text, _ := os.ReadFile(p.log)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// status reads one number of kB from /proc/PID/status, as bytes.
func (p *process) status(field string) (float64, error) {
	name := fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid)
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb * 1024, err
		}
	}
	return 0, fmt.Errorf("%s has no %s", name, field)
}

// forgetPeak starts VmHWM anew (proc_pid_clear_refs(5)).
func (p *process) forgetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.cmd.Process.Pid), []byte("5"), 0)
}

// processorTime is what it has used, in user and system mode, in steps of 10 ms.
func (p *process) processorTime() (time.Duration, error) {
	name := fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid)
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	return parseProcessorTime(text)
}

// parseProcessorTime adds up utime and stime, the 14th and 15th field of proc_pid_stat(5); the second is a name in brackets that may contain blanks.
func parseProcessorTime(stat []byte) (time.Duration, error) {
	const utime, stime, tick = 14 - 3, 15 - 3, 10 * time.Millisecond
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) <= stime {
		return 0, fmt.Errorf("stat has %d fields after the name", len(fields))
	}
	user, err1 := strconv.ParseInt(fields[utime], 10, 64)
	system, err2 := strconv.ParseInt(fields[stime], 10, 64)
	return time.Duration(user+system) * tick, errors.Join(err1, err2)
}

// quiet waits until the process has done next to nothing for two seconds and its directory keeps its size: compiled what it compiles, merged what it merges.
func (p *process) quiet(ctx context.Context, dir string) error {
	const pause, idle, calm, limit = 500 * time.Millisecond, 20 * time.Millisecond, 4, 3 * time.Minute
	deadline := time.Now().Add(limit)
	var before time.Duration
	var size int64
	for rounds := 0; rounds < calm; {
		if err := sleep(ctx, pause); err != nil {
			return err
		}
		now, err := p.processorTime()
		if err != nil {
			return err
		}
		used, err := diskUsage(dir)
		if err != nil {
			return err
		}
		rounds++
		if now-before > idle || used.allocated != size {
			rounds = 0
		}
		before, size = now, used.allocated
		if time.Now().After(deadline) {
			progress("  still busy after %s", limit)
			return nil
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// usage is the size of a directory: the blocks of its files as du counts them, what of them belongs to journals, and the lengths of its files.
type usage struct{ allocated, journal, apparent int64 }

// diskUsage adds up a directory. Files that vanish meanwhile count nothing: databases merge.
func diskUsage(dir string) (u usage, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		u.apparent += info.Size()
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			u.allocated += stat.Blocks * 512
			if strings.Contains(path, "/journal/") || strings.Contains(path, "/wal/") {
				u.journal += stat.Blocks * 512
			}
		}
		return nil
	})
	return u, err
}

// freePort picks a port of loopback that nobody uses.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
