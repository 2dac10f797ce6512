package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The first numbers of splitmix64 from the seed 1234567, as its other implementations print them.
func TestDice(t *testing.T) {
	d := dice(1234567)
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821} {
		if got := d.roll(); got != want {
			t.Errorf("roll %d is %d, want %d", i, got, want)
		}
	}
}

func setNamed(t *testing.T, name string) benchSet {
	t.Helper()
	i := slices.IndexFunc(benchSets, func(s benchSet) bool { return s.name == name })
	if i < 0 {
		t.Fatalf("no set %s", name)
	}
	return benchSets[i]
}

// The bytes are frozen: measurements of different days compare only as long as these sums hold.
func TestSetsAreFrozen(t *testing.T) {
	tests := []struct{ set, format, sum string }{
		{"devops", "commands", "4b6c60b461a95891"},
		{"devops", "influx", "f9e1db0a86c2a73c"},
		{"devops", "csv", "4922a5d4a213cd64"},
		{"sensors", "commands", "8a90bfaa854cea5a"},
		{"events", "influx", "214e717c313b69e5"},
		{"fleet", "commands", "57342fd742e60379"},
		{"fleet", "influx", "20f930e6460d34d7"},
	}
	for _, tt := range tests {
		t.Run(tt.set+" "+tt.format, func(t *testing.T) {
			set := setNamed(t, tt.set)
			set.hosts, set.steps = 12, 500
			hash := sha256.New()
			if _, err := set.write(hash, tt.format); err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprintf("%x", hash.Sum(nil)[:8]); got != tt.sum {
				t.Errorf("the set %s has changed: its sum is %s, was %s; figures measured before and after do not compare", tt.set, got, tt.sum)
			}
		})
	}
}

// The size of the set, and the information in it: 0.846 bytes a sample.
func TestDevopsFloor(t *testing.T) {
	set := setNamed(t, "devops")
	if samples := set.hosts * len(set.waves) * set.steps; samples != 8_640_000 {
		t.Errorf("%d samples", samples)
	}
	information, err := set.write(io.Discard, "none")
	if err != nil {
		t.Fatal(err)
	}
	if floor := information / 8 / 8_640_000; math.Abs(floor-0.846) > 0.01 {
		t.Errorf("%.4f bytes a sample", floor)
	}
}

// What a draw holds is what its distribution says: the mean over many draws comes near the entropy, computed here from the definition.
func TestInformation(t *testing.T) {
	binomial := 0.0
	for k := range 65 {
		p := math.Exp(lgamma(65) - lgamma(float64(k+1)) - lgamma(float64(65-k)) - 64*math.Ln2)
		binomial -= p * math.Log2(p)
	}
	tests := []struct {
		name string
		wave wave
		want float64
	}{
		{"noisy", wave{kind: noisy, limit: 4096}, 12},
		{"bell", wave{kind: bell, limit: 1000, width: 7}, binomial + math.Log2(7)},
		{"counter", wave{kind: counter, limit: 1000, width: 1}, binomial},
		{"gauge", wave{kind: gauge, limit: 1 << 40, width: 3}, binomial + math.Log2(3)}, // no wall in reach
		{"sparse", wave{kind: sparse, limit: 9, rarity: 4}, 0.25*(2+3) - 0.75*math.Log2(0.75)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			const draws = 200_000
			w := walker{dice: 1}
			w.start(tt.wave)
			total := 0.0
			for range draws {
				total += w.step(tt.wave)
			}
			if got := total / draws; math.Abs(got-tt.want) > 0.02 {
				t.Errorf("%.4f bits a draw, want %.4f", got, tt.want)
			}
		})
	}
}

func lgamma(x float64) float64 { v, _ := math.Lgamma(x); return v }

// Gauges stay between their walls, counters never fall, sparse values seldom change, and when they do to another value.
func TestWaves(t *testing.T) {
	for _, set := range benchSets {
		for _, wave := range set.waves {
			w := walker{dice: 7}
			w.start(wave)
			changes := 0
			for range 20_000 {
				before := w.value
				w.step(wave)
				switch {
				case wave.kind == counter && w.value < before:
					t.Fatalf("%s %s falls from %d to %d", set.name, wave.metric, before, w.value)
				case wave.kind != counter && (w.value < 0 || w.value >= wave.limit):
					t.Fatalf("%s %s: %d is outside 0 to %d", set.name, wave.metric, w.value, wave.limit)
				case w.value != before:
					changes++
				}
			}
			if want := 20_000 / int(max(1, wave.rarity)); wave.kind == sparse && (changes < want/2 || changes > 2*want) {
				t.Errorf("%s %s changes %d times, want about %d", set.name, wave.metric, changes, want)
			}
		}
	}
}

func TestScaled(t *testing.T) {
	for _, tt := range []struct {
		v, scale int64
		want     string
	}{{0, 100, "0"}, {5, 100, "0.05"}, {50, 100, "0.5"}, {1200, 100, "12"}, {1234, 100, "12.34"}, {1230, 100, "12.3"}, {1234, 1, "1234"}} {
		if got := string(appendScaled(nil, tt.v, tt.scale)); got != tt.want {
			t.Errorf("%d/%d prints as %s, want %s", tt.v, tt.scale, got, tt.want)
		}
	}
}

// The formats say the same: each field of a line of commands and of line protocol is a row of the table.
func TestFormatsAgree(t *testing.T) {
	set := setNamed(t, "fleet")
	set.hosts, set.steps = 3, 2
	text := map[string][]string{}
	for _, format := range []string{"commands", "influx", "csv"} {
		var b bytes.Buffer
		if _, err := set.write(&b, format); err != nil {
			t.Fatal(err)
		}
		text[format] = strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	}
	if len(text["commands"]) != 6 || len(text["influx"]) != 6 || len(text["csv"]) != 1+60 {
		t.Fatalf("%d, %d and %d lines", len(text["commands"]), len(text["influx"]), len(text["csv"]))
	}
	for i, line := range text["commands"] {
		var fields []string
		at := strconv.FormatInt(benchStart+int64(i/3)*60_000, 10)
		host, rack := fmt.Sprintf("node-%06d", i%3+1), fmt.Sprintf("r%03d", i%3)
		want := "series e:" + host + " ms:" + at + " t:rack=" + rack
		for n, wave := range set.waves {
			row := strings.Split(text["csv"][1+i*10+n], ",")
			if row[0] != wave.metric || row[1] != host || row[2] != at {
				t.Errorf("row %q is not that of %s, %s", row, wave.metric, host)
			}
			want += " m:" + wave.metric + "=" + row[3]
			fields = append(fields, wave.metric+"="+row[3])
		}
		if line != want {
			t.Errorf("command %q, want %q", line, want)
		}
		if want := "fleet,host=" + host + ",rack=" + rack + " " + strings.Join(fields, ",") + " " + at; text["influx"][i] != want {
			t.Errorf("line protocol %q, want %q", text["influx"][i], want)
		}
	}
}

// A gauge at its wall: a step up and its mirror image are one outcome, of twice the probability, whichever was drawn.
func TestInformationAtTheWall(t *testing.T) {
	const draws = 100_000
	s := wave{kind: gauge, limit: 1 << 40, width: 1}
	d := dice(3)
	total := 0.0
	for range draws {
		w := walker{dice: dice(d.roll())}
		total += w.step(s)
		if w.value < 0 {
			t.Fatalf("value %d", w.value)
		}
	}
	// The entropy of the distance from 0 of a binomial of 64: 2p for each distance but 0.
	want := 0.0
	for k := 32; k <= 64; k++ {
		p := math.Exp(lgamma(65) - lgamma(float64(k+1)) - lgamma(float64(65-k)) - 64*math.Ln2)
		if k > 32 {
			p *= 2
		}
		want -= p * math.Log2(p)
	}
	if got := total / draws; math.Abs(got-want) > 0.02 {
		t.Errorf("%.4f bits, want %.4f", got, want)
	}
}
