package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The day all questions are about, and the metrics they name.
const (
	dayStart int64 = 1767225600000 // 2026-01-01T00:00:00Z
	hour     int64 = 3_600_000
	dayEnd         = dayStart + 24*hour

	startDate, endDate = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"

	oneMetric        = "cpu_user" // 100 series
	percentileMetric = "latency"
	threshold        = 99.5 // `value > x`: few samples of the gauges, and all of the counters
)

// metrics of the devops set.
var metrics = []string{"cpu_user", "cpu_system", "net_bytes", "disk_ops", "disk_free", "processes", "fan_speed", "latency", "io_wait", "temperature"}

// digest is an answer in three numbers, equal for answers that say the same in other words: how many values, their sum, and their sum weighted with the
// hour of the day, which tells answers apart whose periods are shifted. Exports leave the weighted sum out.
type digest struct {
	rows     int
	sum      float64
	weighted float64
}

func (d *digest) add(time int64, value float64) {
	d.rows++
	d.sum += value
	d.weighted += value * float64((time-dayStart)/hour)
}

// matches compares with what was computed from the data; sums may differ by what the order of adding makes.
func (d digest) matches(want digest) error {
	if d.rows != want.rows || !near(d.sum, want.sum) || want.weighted != 0 && !near(d.weighted, want.weighted) {
		return fmt.Errorf("wrong answer: %d values, sum %v, by hour %v; the data gives %d, %v, %v", d.rows, d.sum, d.weighted, want.rows, want.sum, want.weighted)
	}
	return nil
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(math.Abs(a), math.Abs(b)) }

// reference is what the data says, computed here from the CSV rendering.
type reference struct {
	averages digest // hourly, of one metric
	maxima   digest // hourly, of all metrics
	export   digest // all values of one metric
	all      digest // all values
	above    int    // values over the threshold
}

// bucket is the hour of a series.
type bucket struct {
	sum, max float64
	count    int
}

// readReference reads the devops set: metric, entity, time, value.
func readReference(name string) (r reference, err error) {
	f, err := os.Open(name)
	if err != nil {
		return r, err
	}
	defer f.Close()
	lines := bufio.NewScanner(bufio.NewReaderSize(f, 1<<20))
	lines.Scan() // the header
	series := map[string]*[24]bucket{}
	for lines.Scan() {
		line := lines.Bytes()
		value := bytes.LastIndexByte(line, ',')
		at := bytes.LastIndexByte(line[:max(value, 0)], ',')
		if at < 0 {
			return r, fmt.Errorf("%s: %q has too few columns", name, line)
		}
		t, err1 := strconv.ParseInt(string(line[at+1:value]), 10, 64)
		v, err2 := strconv.ParseFloat(string(line[value+1:]), 64)
		if err1 != nil || err2 != nil || t < dayStart || t >= dayEnd {
			return r, fmt.Errorf("%s: %q is not a sample of the day", name, line)
		}
		hours := series[string(line[:at])]
		if hours == nil {
			hours = &[24]bucket{}
			series[string(line[:at])] = hours
		}
		b := &hours[(t-dayStart)/hour]
		b.sum, b.max, b.count = b.sum+v, max(b.max, v), b.count+1 // no value is negative
		r.all.rows, r.all.sum = r.all.rows+1, r.all.sum+v
		if v > threshold {
			r.above++
		}
	}
	for key, hours := range series {
		for h, b := range hours {
			if b.count == 0 {
				continue
			}
			at := dayStart + int64(h)*hour
			r.maxima.add(at, b.max)
			if strings.HasPrefix(key, oneMetric+",") {
				r.averages.add(at, b.sum/float64(b.count))
				r.export.rows, r.export.sum = r.export.rows+b.count, r.export.sum+b.sum
			}
		}
	}
	return r, lines.Err()
}

// The parsers below turn answers into digests.

// tidemarkSeries reads an answer of /api/v1/series/query with timeFormat milliseconds.
func tidemarkSeries(body []byte) (d digest, err error) {
	var answer []struct {
		Data []struct {
			T int64
			V float64
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return d, err
	}
	for _, series := range answer {
		for _, sample := range series.Data {
			d.add(sample.T, sample.V)
		}
	}
	return d, nil
}

// matrix reads an answer of query_range whose times are the last milliseconds of hours.
func matrix(body []byte) (d digest, err error) {
	var answer struct {
		Data struct {
			Result []struct{ Values [][2]any }
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return d, err
	}
	for _, series := range answer.Data.Result {
		for _, point := range series.Values {
			seconds, _ := point[0].(float64)
			text, _ := point[1].(string)
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return d, err
			}
			d.add(int64(math.Round(seconds*1000))+1-hour, v)
		}
	}
	return d, nil
}

// influxSeries reads an answer of InfluxDB with epoch=ms: the first column is the time.
func influxSeries(body []byte) (d digest, err error) {
	var answer struct {
		Results []struct {
			Error  string
			Series []struct{ Values [][]float64 }
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return d, err
	}
	for _, result := range answer.Results {
		if result.Error != "" {
			return d, errors.New(result.Error)
		}
		for _, series := range result.Series {
			for _, row := range series.Values {
				for _, v := range row[1:] {
					d.add(int64(row[0]), v)
				}
			}
		}
	}
	return d, nil
}

// csvColumn reads a table with a header: the values of one column.
func csvColumn(column string) func([]byte) (digest, error) {
	return func(body []byte) (d digest, err error) {
		rows := csv.NewReader(bytes.NewReader(body))
		rows.ReuseRecord = true
		header, err := rows.Read()
		if err != nil {
			return d, err
		}
		at := slices.Index(header, column)
		if at < 0 {
			return d, fmt.Errorf("no column %s in %q", column, header)
		}
		for {
			row, err := rows.Read()
			if err == io.EOF {
				return d, nil
			}
			if err != nil {
				return d, err
			}
			v, err := strconv.ParseFloat(row[at], 64)
			if err != nil {
				return d, err
			}
			d.rows, d.sum = d.rows+1, d.sum+v
		}
	}
}

// csvTable reads a table whose last column is the value. It may have no header, one, or one before each series.
func csvTable(body []byte) (d digest, err error) {
	for line := range bytes.Lines(body) {
		line = bytes.TrimSpace(line)
		last := string(line[bytes.LastIndexByte(line, ',')+1:])
		if last == "" || last == oneMetric || last == "__value__" {
			continue
		}
		v, err := strconv.ParseFloat(last, 64)
		if err != nil {
			return d, err
		}
		d.rows, d.sum = d.rows+1, d.sum+v
	}
	return d, nil
}

// hourlyCSV reads a table with a header whose columns include datetime and, last, the value.
func hourlyCSV(body []byte) (d digest, err error) {
	rows, err := csv.NewReader(bytes.NewReader(body)).ReadAll()
	if err != nil {
		return d, err
	}
	if len(rows) == 0 {
		return d, errors.New("an empty answer")
	}
	at := slices.Index(rows[0], "datetime")
	if at < 0 {
		return d, fmt.Errorf("no column datetime in %q", rows[0])
	}
	for _, row := range rows[1:] {
		t, err := time.Parse(time.RFC3339, row[at])
		if err != nil {
			return d, err
		}
		v, err := strconv.ParseFloat(row[len(row)-1], 64)
		if err != nil {
			return d, err
		}
		d.add(t.UnixMilli(), v)
	}
	return d, nil
}
