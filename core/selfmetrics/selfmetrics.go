// Package selfmetrics turns what the server counts about itself into the forms in which it is asked for: series of the server's own entity, a JSON
// document, and a text file. All of them show one round of values, taken at one instant.
//
// The names are those of the contract, the Java ones among them: charts and rules refer to them. jvm_ stands for the process and its heap.
package selfmetrics

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

// Kind says how a value is to be read.
type Kind uint8

const (
	Gauge     Kind = iota // as it is now
	PerSecond             // a running total; shown as its growth in the round, a second
	PerMinute             // the same, a minute
	Percent               // the same as PerSecond of hundredths of seconds at work, which never exceeds 100
)

// Value is one measurement as the server takes it.
type Value struct {
	Name  string
	Tags  core.Tags // sorted, without host
	Kind  Kind
	N     float64
	Whole bool // a count or a size: printed without fraction
}

// Reading is one value of a round.
type Reading struct {
	Name  string
	Tags  core.Tags
	N     float64
	Whole bool
}

// Options of a Recorder.
type Options struct {
	Collect  func() []Value     // takes all values; called once a round
	Now      func() core.Time   // clock of the rounds
	Interval time.Duration      // of rounds; 0 = 15 s
	Ingest   core.Ingester      // stores each round as series; nil = not stored
	Entity   string             // of these series
	Host     string             // value of their tag host
	File     func([]byte) error // takes the text of each round; nil = no file
	Logger   *slog.Logger       // nil = discard
}

// Recorder takes the rounds.
type Recorder struct {
	opts Options

	mu     sync.Mutex // guards what follows
	last   core.Time
	totals map[string]float64 // of the last round, by key
	round  []Reading          // nil = no whole interval is over
}

// New returns a recorder. The first round is one interval after the start of Run.
func New(o Options) *Recorder {
	if o.Interval <= 0 {
		o.Interval = 15 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Recorder{opts: o, last: o.Now(), totals: map[string]float64{}}
}

// Run takes a round every interval until ctx ends. No round is taken while the server stops.
func (r *Recorder) Run(ctx context.Context) error {
	ticker := time.NewTicker(r.opts.Interval)
	defer ticker.Stop()
	r.begin()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := r.publish(ctx, r.Take()); err != nil && ctx.Err() == nil {
				r.opts.Logger.Warn("self-metrics: a round was not written", "error", err)
			}
		}
	}
}

// Readings returns the last round, sorted by flat name. Before the first one it takes the values as they are, with rates over the time since the start of Run.
func (r *Recorder) Readings() []Reading {
	r.mu.Lock()
	round := r.round
	r.mu.Unlock()
	if round != nil {
		return round
	}
	values := r.opts.Collect()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.readings(values, r.opts.Now())
}

// begin takes the totals that the first round counts from.
func (r *Recorder) begin() {
	values := r.opts.Collect()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count(values, r.opts.Now())
}

// count keeps the totals of values; it is called with mu held.
func (r *Recorder) count(values []Value, now core.Time) {
	for _, v := range values {
		if v.Kind != Gauge {
			r.totals[Flat(v.Name, v.Tags)] = v.N
		}
	}
	r.last = now
}

// Round is the values of one instant.
type Round struct {
	At       core.Time
	Readings []Reading // sorted by flat name
}

// Take takes a round now. A rate is never NaN: it is zero in a round of no length.
func (r *Recorder) Take() Round {
	values := r.opts.Collect()
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.opts.Now()
	r.round = r.readings(values, now)
	r.count(values, now)
	return Round{now, r.round}
}

// readings are values with the growth of their totals since the last count; it is called with mu held.
func (r *Recorder) readings(values []Value, now core.Time) []Reading {
	seconds := float64(now-r.last) / 1000
	readings := make([]Reading, 0, len(values))
	for _, v := range values {
		reading := Reading{v.Name, v.Tags, v.N, v.Whole}
		if v.Kind != Gauge {
			grown := v.N - r.totals[Flat(v.Name, v.Tags)]
			reading.N, reading.Whole = 0, false
			if seconds > 0 && grown > 0 {
				reading.N = grown / seconds
			}
			switch v.Kind {
			case PerMinute:
				reading.N *= 60
			case Percent: // the clocks of processors advance in steps, which a short time may meet two of
				reading.N = min(reading.N, 100)
			}
		}
		readings = append(readings, reading)
	}
	slices.SortFunc(readings, func(a, b Reading) int { return cmp.Compare(Flat(a.Name, a.Tags), Flat(b.Name, b.Tags)) })
	return readings
}

// publish stores a round and writes its file.
func (r *Recorder) publish(ctx context.Context, round Round) error {
	if r.opts.File != nil {
		if err := r.opts.File(Text(round.Readings)); err != nil {
			return err
		}
	}
	if r.opts.Ingest == nil {
		return nil
	}
	_, err := r.opts.Ingest.Ingest(ctx, r.Batch(round))
	return err
}

// Batch makes the series of a round: entity and host of the options, all at the time of the round.
func (r *Recorder) Batch(round Round) *core.Batch {
	b := &core.Batch{Origin: core.SystemOrigin(0)}
	for _, reading := range round.Readings {
		tags := append(core.Tags{{Name: "host", Value: r.opts.Host}}, reading.Tags...).Normal()
		b.Add(b.Ref(core.SeriesKey{Metric: reading.Name, Entity: r.opts.Entity, Tags: tags}), round.At, reading.N)
	}
	return b
}
