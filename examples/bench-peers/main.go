// Command bench-peers measures Tidemark and other databases with the same data and the same questions, one after the other on one machine, and prints a
// table of ratios: see README.md.
//
// It knows every system only as a program that is started with a directory and a port, and as HTTP. A round starts a system in an empty directory, loads
// it, lets it compact, asks it, and stops it; rounds go through all systems in turn, so that a machine whose speed drifts drifts for all of them. Each
// answer is compared with one computed from the data before it is timed: a wrong answer ends the measurement.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// options is what the command line says.
type options struct {
	server, cache, dir, out string
	only, systems           string
	quick                   bool
	rounds, asks            int
	clients, syncedClients  int
	hosts, startSamples     int
	fleetHosts              int
}

func parseOptions(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("bench-peers", flag.ContinueOnError)
	f.StringVar(&o.server, "server", "bin/tidemark", "tidemark binary to measure, also the generator of the data")
	f.StringVar(&o.cache, "cache", ".cache/peers", "where the peers are installed")
	f.StringVar(&o.dir, "dir", os.TempDir(), "where data and databases go, about 3 GB; removed at the end")
	f.StringVar(&o.out, "out", "", "Markdown file whose part between the marks gets the table of a whole run; default: only print it")
	f.StringVar(&o.only, "only", "", "parts to run, separated by commas, of "+strings.Join(parts, ", ")+"; default: all")
	f.StringVar(&o.systems, "systems", "", "systems to measure, separated by commas, of "+strings.Join(systemNames, ", ")+"; default: all that can be installed")
	f.BoolVar(&o.quick, "quick", false, "a small set and one round, to see that everything works; judges nothing")
	f.IntVar(&o.rounds, "rounds", 3, "rounds through all systems")
	f.IntVar(&o.asks, "asks", 7, "how often a question is asked in a round, after two askings that do not count")
	f.IntVar(&o.clients, "clients", 4, "connections that load data")
	f.IntVar(&o.syncedClients, "synced-clients", 8, "connections that load data when each write waits for the disk")
	f.IntVar(&o.hosts, "hosts", 100, "hosts of the devops set")
	f.IntVar(&o.startSamples, "start-samples", 100_000_000, "samples in the database that is killed and started again")
	f.IntVar(&o.fleetHosts, "fleet-hosts", 100_000, "hosts of the fleet set, ten series each")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.quick {
		o.hosts, o.rounds, o.asks, o.startSamples, o.fleetHosts = 20, 1, 3, 2_000_000, 5000
	}
	if o.quick || o.only != "" || o.systems != "" {
		o.out = "" // a part shall not take the place of the whole table
	}
	for _, list := range []struct {
		given string
		known []string
	}{{o.only, parts}, {o.systems, systemNames}} {
		for _, name := range split(list.given) {
			if !slices.Contains(list.known, name) {
				return o, fmt.Errorf("%q is none of %s", name, strings.Join(list.known, ", "))
			}
		}
	}
	return o, nil
}

// wants says whether a part is to be run.
func (o options) wants(part string) bool { return o.only == "" || slices.Contains(split(o.only), part) }

// measures says whether a system is to be measured.
func (o options) measures(system string) bool {
	return o.systems == "" || slices.Contains(split(o.systems), system)
}

func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

func main() {
	o, err := parseOptions(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err = run(ctx, o)
		stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-peers:", err)
		os.Exit(1)
	}
}

// run installs, renders, measures and reports.
func run(ctx context.Context, o options) (err error) {
	if o.server, err = filepath.Abs(o.server); err != nil {
		return err
	}
	if o.cache, err = filepath.Abs(o.cache); err != nil {
		return err
	}
	work, err := os.MkdirTemp(o.dir, "tidemark-peers-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()

	systems, skipped, err := install(ctx, o)
	if err != nil {
		return err
	}
	b := &bench{options: o, work: work, results: results{}, machine: describeMachine(), skipped: skipped}
	for _, why := range skipped {
		progress("SKIPPED %s", why)
	}
	if err := b.prepare(ctx, systems); err != nil {
		return err
	}
	if err := b.measure(ctx, systems); err != nil {
		fmt.Println(b.report()) // what there is
		return err
	}
	b.machine.loadAfter = loadAverage()
	table := b.report()
	fmt.Println(table)
	if o.out == "" {
		return nil
	}
	return replaceBetweenMarks(o.out, table)
}

// measure goes through the rounds, and then through what is measured once.
func (b *bench) measure(ctx context.Context, systems []system) error {
	for round := range b.rounds {
		for _, s := range systems {
			progress("round %d of %d: %s", round+1, b.rounds, s.name())
			if err := s.round(ctx, b); err != nil {
				return fmt.Errorf("%s: %w", s.name(), err)
			}
		}
	}
	for _, s := range systems {
		if s, ok := s.(*server); ok {
			if err := s.once(ctx, b); err != nil {
				return fmt.Errorf("%s: %w", s.title, err)
			}
		}
	}
	return nil
}

// progress tells who waits what is going on; the table goes to the standard output.
func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
