package main

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"math/bits"
	"os"
	"slices"
	"strconv"
)

// The sets below are frozen: names, order of drawing, generator and seed decide every byte, and the golden test says when one moves. Who changes
// them on purpose makes all measurements that were taken with them void.

// benchSeed starts all series.
const benchSeed uint64 = 0x5eed_71de_0a4b_0001

// benchVerbs is `tidemark bench`: without a verb, everything that needs no other database.
type benchVerbs struct {
	All    benchCmd    `cmd:"" default:"withargs" help:"Measure a server that it starts itself, through HTTP."`
	Devops benchSetCmd `cmd:"" help:"Write a frozen set of samples as text, and say how small it can be stored at best."`
}

// benchSetCmd renders a set into a file, so that who measures a server generates nothing while the clock runs.
type benchSetCmd struct {
	Set    string `default:"devops" enum:"devops,sensors,events,fleet" help:"devops: 100 hosts x 10 metrics every 10 seconds; sensors: 1 Hz; events: irregular; fleet: 1,000,000 series, one sample each."`
	Format string `default:"commands" enum:"commands,influx,csv,none" help:"commands (text commands), influx (line protocol, milliseconds), csv (metric, entity, time in milliseconds, value), none: only the floor."`
	Hosts  int    `help:"Hosts or devices (default: those of the set)."`
	Steps  int    `help:"Samples of each series (default: those of the set)."`
	Out    string `default:"-" help:"File to write; - is the standard output."`
}

func (c *benchSetCmd) Run() (err error) {
	set := benchSets[slices.IndexFunc(benchSets, func(s benchSet) bool { return s.name == c.Set })]
	if c.Hosts < 0 || c.Steps < 0 {
		return usageError{fmt.Errorf("--hosts %d --steps %d: both must be positive", c.Hosts, c.Steps)}
	}
	if c.Hosts > 0 {
		set.hosts = c.Hosts
	}
	if c.Steps > 0 {
		set.steps = c.Steps
	}
	out := os.Stdout
	if c.Out != "-" {
		if out, err = os.Create(c.Out); err != nil {
			return err
		}
		defer func() { err = firstError(err, out.Close()) }()
	}
	w := bufio.NewWriterSize(out, 1<<20)
	floor, err := set.write(w, c.Format)
	if err != nil {
		return err
	}
	samples := set.hosts * len(set.waves) * set.steps
	fmt.Fprintf(os.Stderr, "%s: %d hosts x %d metrics x %d steps = %d samples; seed %#x; entropy floor %.3f bytes a sample\n",
		set.name, set.hosts, len(set.waves), set.steps, samples, benchSeed, floor/8/float64(samples))
	return w.Flush()
}

// benchSet is a table of samples: each host has a series for each wave, and each step gives every series one sample.
type benchSet struct {
	name   string
	host   string // format of the names of entities
	hosts  int
	steps  int
	every  int64 // ms between samples
	jitter int64 // 0: samples are every ms apart; else 1 to every+jitter, each as likely
	racks  int   // each host carries the tag rack, one of so many; 0: no tags
	waves  []wave
}

// wave is how the values of one metric move. Values are whole numbers of 1/scale: what is drawn is exact, and so is what is printed.
type wave struct {
	metric string
	kind   waveKind
	scale  int64 // 100 for two decimals, 1 for whole numbers
	limit  int64 // gauge, sparse, noisy: values are 0 to limit-1; counter: the mean increment
	width  int64 // gauge, counter, bell: bin width of the bell, odd
	rarity int64 // sparse: one sample in so many changes; a power of two
}

type waveKind int

const (
	gauge   waveKind = iota // a random walk between two walls
	counter                 // grows by the mean and a bell around it
	sparse                  // constant, and now and then another value
	noisy                   // any value, each as likely
	bell                    // noise around the middle of the range
)

// The widths are chosen so that the devops set holds 0.846 bytes of information a sample.
var (
	devopsWaves = []wave{
		{metric: "cpu_user", kind: gauge, scale: 100, limit: 10_000, width: 51},
		{metric: "cpu_system", kind: gauge, scale: 100, limit: 10_000, width: 25},
		{metric: "net_bytes", kind: counter, scale: 1, limit: 40_000, width: 101},
		{metric: "disk_ops", kind: counter, scale: 1, limit: 1_700, width: 51},
		{metric: "disk_free", kind: sparse, scale: 100, limit: 1_000, rarity: 64},
		{metric: "processes", kind: sparse, scale: 1, limit: 512, rarity: 16},
		{metric: "fan_speed", kind: sparse, scale: 1, limit: 512, rarity: 256},
		{metric: "latency", kind: noisy, scale: 100, limit: 1_000},
		{metric: "io_wait", kind: noisy, scale: 100, limit: 500},
		{metric: "temperature", kind: bell, scale: 100, limit: 9_000, width: 25},
	}
	benchSets = []benchSet{
		{name: "devops", host: "host-%03d", hosts: 100, steps: 8640, every: 10_000, waves: devopsWaves},
		{name: "sensors", host: "sensor-%02d", hosts: 20, steps: 86_400, every: 1000, waves: []wave{
			{metric: "pressure", kind: gauge, scale: 100, limit: 100_000, width: 3},
			{metric: "vibration", kind: noisy, scale: 100, limit: 4_096},
			{metric: "valve", kind: sparse, scale: 1, limit: 4, rarity: 1024},
		}},
		{name: "events", host: "device-%03d", hosts: 200, steps: 5_000, every: 1, jitter: 19_999, waves: []wave{
			{metric: "event_code", kind: noisy, scale: 1, limit: 16},
			{metric: "event_seconds", kind: bell, scale: 100, limit: 9_000, width: 99},
		}},
		{name: "fleet", host: "node-%06d", hosts: 100_000, steps: 1, every: 60_000, racks: 1000, waves: devopsWaves},
	}
)

// dice is the generator splitmix64 (Steele, Lea, Flood 2014), written out: no release of Go can change what it rolls.
type dice uint64

const golden = 0x9E3779B97F4A7C15

func (d *dice) roll() uint64 {
	*d += golden
	z := uint64(*d)
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// below rolls 0 to n-1; it holds log2(n) bits. The bias of the multiplication is below n/2^64.
func (d *dice) below(n int64) int64 {
	high, _ := bits.Mul64(d.roll(), uint64(n))
	return int64(high)
}

// bell rolls a whole number around 0, as likely as its negative: the number of ones among 64 bits, binomial with a deviation of 4, times an odd width,
// and a part of the bin.
func (d *dice) bell(width int64) (value int64, information float64) {
	ones := bits.OnesCount64(d.roll())
	value = int64(ones-32) * width
	if width > 1 {
		value += d.below(width) - width/2
	}
	return value, binomialBits[ones] + math.Log2(float64(width))
}

// binomialBits is the information of k ones among 64 bits: 64 - log2 of 64 over k.
var binomialBits = func() (table [65]float64) {
	for k := range table {
		choose := 1.0
		for i := range min(k, 64-k) {
			choose = choose * float64(64-i) / float64(i+1)
		}
		table[k] = 64 - math.Log2(choose)
	}
	return table
}()

// walker is the state of one series.
type walker struct {
	dice  dice
	value int64
}

// start draws the first value and returns its information in bits.
func (w *walker) start(s wave) float64 {
	n := s.limit
	if s.kind == counter {
		n = 1_000_000
	}
	w.value = w.dice.below(n)
	return math.Log2(float64(n))
}

// outside says whether a gauge would be in its wall.
func (s wave) outside(v int64) bool { return v < 0 || v >= s.limit }

// step draws the next value and returns its information in bits: minus log2 of how likely this value was after the one before. No code that is right
// about the distribution can be shorter on average, so that the sum is the floor of every lossless encoding.
func (w *walker) step(s wave) float64 {
	switch s.kind {
	case gauge:
		d, information := w.dice.bell(s.width)
		next, mirrored := w.value+d, w.value-d
		if s.outside(next) || s.outside(mirrored) {
			information-- // near a wall a step and its mirror image, both as likely, end at one place
		}
		if s.outside(next) {
			next = mirrored
		}
		w.value = next
		return information
	case counter:
		d, information := w.dice.bell(s.width)
		w.value += s.limit + d
		return information
	case sparse:
		if w.dice.below(s.rarity) > 0 {
			return -math.Log2(1 - 1/float64(s.rarity))
		}
		w.value = (w.value + 1 + w.dice.below(s.limit-1)) % s.limit // never the value it has
		return math.Log2(float64(s.rarity)) + math.Log2(float64(s.limit-1))
	case noisy:
		w.value = w.dice.below(s.limit)
		return math.Log2(float64(s.limit))
	default: // bell
		d, information := w.dice.bell(s.width)
		w.value = s.limit/2 + d
		return information
	}
}

// write renders the set, step by step and in each step host by host, and returns its information in bits.
func (s *benchSet) write(w io.Writer, format string) (information float64, err error) {
	line, ok := lineFormats[format]
	if !ok {
		return 0, fmt.Errorf("format %q is none of commands, influx, csv, none", format)
	}
	if format == "csv" {
		if _, err := io.WriteString(w, "metric,entity,time,value\n"); err != nil {
			return 0, err
		}
	}
	series := make([]walker, s.hosts*len(s.waves))
	for i := range series {
		series[i].dice = dice(benchSeed + uint64(i)*0xD1B54A32D192ED03)
		series[i].dice = dice(series[i].dice.roll()) // neighbours in the index shall not be neighbours in the sequence
		information += series[i].start(s.waves[i%len(s.waves)])
	}
	clocks := make([]walker, s.hosts) // the time of each host in ms after benchStart
	for i := range clocks {
		clocks[i].dice = dice(^benchSeed - uint64(i)*0xD1B54A32D192ED03)
	}
	names := make([]string, s.hosts)
	for i := range names {
		names[i] = fmt.Sprintf(s.host, i+1)
	}
	var buf []byte
	for step := range s.steps {
		for host, name := range names {
			walkers := series[host*len(s.waves):][:len(s.waves)]
			if step > 0 {
				for i := range walkers {
					information += walkers[i].step(s.waves[i])
				}
				clocks[host].value += s.every
				if s.jitter > 0 {
					clocks[host].value += clocks[host].dice.below(s.jitter + 1)
					information += math.Log2(float64(s.jitter + 1))
				}
			}
			buf = line(buf[:0], row{set: s, host: name, rack: host % max(1, s.racks), time: benchStart + clocks[host].value, values: walkers})
			if _, err := w.Write(buf); err != nil {
				return 0, err
			}
		}
	}
	return information, nil
}

// row is one sample of each series of a host.
type row struct {
	set    *benchSet
	host   string
	rack   int
	time   int64
	values []walker
}

// lineFormats append a row.
var lineFormats = map[string]func([]byte, row) []byte{
	"commands": appendCommand, "influx": appendInflux, "csv": appendTable, "none": func(b []byte, _ row) []byte { return b },
}

func appendCommand(b []byte, r row) []byte {
	b = append(append(b, "series e:"...), r.host...)
	b = strconv.AppendInt(append(b, " ms:"...), r.time, 10)
	if r.set.racks > 0 {
		b = appendPadded(append(b, " t:rack=r"...), r.rack)
	}
	for i, s := range r.set.waves {
		b = append(append(append(b, " m:"...), s.metric...), '=')
		b = appendScaled(b, r.values[i].value, s.scale)
	}
	return append(b, '\n')
}

func appendInflux(b []byte, r row) []byte {
	b = append(append(append(b, r.set.name...), ",host="...), r.host...)
	if r.set.racks > 0 {
		b = appendPadded(append(b, ",rack=r"...), r.rack)
	}
	for i, s := range r.set.waves {
		separator := byte(',')
		if i == 0 {
			separator = ' '
		}
		b = append(append(append(b, separator), s.metric...), '=')
		b = appendScaled(b, r.values[i].value, s.scale)
	}
	return append(strconv.AppendInt(append(b, ' '), r.time, 10), '\n')
}

func appendTable(b []byte, r row) []byte {
	for i, s := range r.set.waves {
		b = append(append(append(append(b, s.metric...), ','), r.host...), ',')
		b = append(strconv.AppendInt(b, r.time, 10), ',')
		b = append(appendScaled(b, r.values[i].value, s.scale), '\n')
	}
	return b
}

// appendPadded appends a number of three digits.
func appendPadded(b []byte, n int) []byte {
	return append(b, byte('0'+n/100%10), byte('0'+n/10%10), byte('0'+n%10))
}

// appendScaled appends v/scale as agents print it: without trailing zeros. Values are not negative.
func appendScaled(b []byte, v, scale int64) []byte {
	b = strconv.AppendInt(b, v/scale, 10)
	if scale == 1 || v%scale == 0 {
		return b
	}
	tenths, hundredths := v%100/10, v%10
	b = append(b, '.', byte('0'+tenths))
	if hundredths > 0 {
		b = append(b, byte('0'+hundredths))
	}
	return b
}
