package api

import (
	"io"
	"maps"
	"math"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"

	"github.com/tidemark-db/tidemark/core"
)

// send prints the table.
func (t *exportTable) send(contentType string) error {
	if len(t.seriesTags) == 0 {
		names := map[string]bool{}
		for _, s := range t.series {
			for _, tag := range s.results[0].Tags {
				names[tag.Name] = true
			}
		}
		t.seriesTags = slices.Sorted(maps.Keys(names))
	}
	if pages, ok := t.pages(); ok {
		return t.stream(contentType, pages)
	}
	body := t.rows.open(nil, t.columns())
	left := t.limit
	for i := range t.series {
		var err error
		if body, err = t.printSeries(body, &t.series[i], &left); err != nil {
			return err
		}
		if t.limit > 0 && left == 0 {
			break
		}
	}
	return t.call.send(contentType, t.rows.close(body))
}

// printSeries appends the rows of a series, no more than are left of the limit.
func (t *exportTable) printSeries(body []byte, s *exportSeries, left *int) ([]byte, error) {
	if t.numbersAlone(s) {
		for _, p := range t.cut(s, left) {
			body = t.printPage(body, p)
			if err := t.call.fits(body); err != nil {
				return body, err
			}
		}
		return body, nil
	}
	var rows []exportRow
	var err error
	if len(t.functions) > 0 {
		rows = t.periods(s)
	} else if rows, err = t.samples(s.results[0]); err != nil {
		return body, err
	}
	shared := t.shared(s.results[0])
	var cells []string
	for _, row := range rows {
		if t.limit > 0 && *left == 0 {
			return body, nil
		}
		*left--
		cells = append(cells[:0], t.format.text(row.time))
		cells = append(cells, row.values...)
		if t.text {
			cells = append(cells, row.text)
		}
		cells = append(cells, shared...)
		if t.versions {
			written := ""
			if row.version.Written != 0 {
				written = t.format.text(row.version.Written)
			}
			cells = append(cells, row.version.Source, row.version.Status, written)
		}
		body = t.rows.row(body, cells)
		if err := t.call.fits(body); err != nil {
			return body, err
		}
	}
	return body, nil
}

// exportPage is rows of a series that are a time and a number, and what stands behind each: printed once, and copied.
type exportPage struct {
	times  []core.Time
	values []float64
	shared []byte // from the comma behind the number to the end of the line
}

// pageBytes is how long pages become: they stay in the second-level cache from printing to sending.
const pageBytes = 256 << 10

// numbersAlone reports whether the rows of a series are the usual ones, a time and a number in CSV.
func (t *exportTable) numbersAlone(s *exportSeries) bool {
	_, csv := t.rows.(csvTable)
	return csv && len(t.functions) == 0 && !t.text && !t.versions && len(s.results[0].Samples.Decimals) == 0
}

// cut makes pages of a series, of no more rows than are left of the limit.
func (t *exportTable) cut(s *exportSeries, left *int) (pages []exportPage) {
	r := s.results[0]
	n := r.Samples.Len()
	if t.limit > 0 {
		n = min(n, *left)
		*left -= n
	}
	shared := csvTable{}.row([]byte{','}, t.shared(r))
	size := max(1, pageBytes/(usualRow+len(shared)))
	times, values := r.Samples.Times[:n], r.Samples.Values[:n]
	for rows := range slices.Chunk(times, size) {
		pages = append(pages, exportPage{times: rows, values: values[:len(rows)], shared: shared})
		values = values[len(rows):]
	}
	return pages
}

// printPage appends a page.
func (t *exportTable) printPage(b []byte, p exportPage) []byte {
	format := t.format.again()
	b = slices.Grow(b, len(p.times)*(usualRow+len(p.shared)))
	for i, at := range p.times {
		b = append(format.append(b, at), ',')
		b = append(t.appendNumber(b, p.values[i]), p.shared...)
	}
	return b
}

// Lengths in bytes of a time and a number with a comma between: of usual ones; and the most they take when the number is 0 or its exponent usual, and
// otherwise, when there may be 309 digits before the point and maxPrecision behind it, or 324 zeros and 17 digits.
const (
	usualRow    = len("2021-05-03T10:00:00.000Z,1234.56")
	longRow     = len("2021-05-03T10:00:00.000+02:00,-1000000000000000.") + maxPrecision
	longestRow  = longRow + 340
	usualHigh   = 1e15
	usualLow    = 1e-6
	streamBytes = 1 << 20 // smaller tables are sent as a whole, with their length
)

// most is how many bytes a page takes at most.
func (p *exportPage) most() int64 {
	row := longRow
	for _, v := range p.values {
		if v = math.Abs(v); v > usualHigh || v < usualLow && v != 0 {
			row = longestRow
			break
		}
	}
	return int64(len(p.times)) * int64(row+len(p.shared))
}

// pages cuts the whole table. ok is false for a table that is to be printed before it is sent: because it is small, because it has other cells, or because it may
// turn out longer than an answer may be.
func (t *exportTable) pages() (pages []exportPage, ok bool) {
	left, most, rows := t.limit, int64(0), 0
	for i := range t.series {
		s := &t.series[i]
		if !t.numbersAlone(s) {
			return nil, false
		}
		if t.limit > 0 && left == 0 {
			break
		}
		some := t.cut(s, &left)
		for j := range some {
			most += some[j].most()
			rows += len(some[j].times)
		}
		pages = append(pages, some...)
	}
	return pages, most <= int64(t.call.server.Limits.Response) && rows*usualRow > streamBytes
}

// stream sends pages while the next ones are printed. Nothing can go wrong any more but that the client goes away.
func (t *exportTable) stream(contentType string, pages []exportPage) error {
	c := t.call
	samples := 0
	for _, p := range pages {
		samples += len(p.times)
	}
	// The samples stay in memory until the client has taken the answer.
	if err := c.hold(c.held + int64(samples)*sampleBytes + int64(2*printers())*pageBytes); err != nil {
		return err
	}
	out := c.begin(contentType)
	defer out.Close() // fails only when the client is gone
	if _, err := out.Write(t.rows.open(nil, t.columns())); err != nil {
		return nil
	}
	inOrder(len(pages), func(b []byte, i int) []byte { return t.printPage(b, pages[i]) }, func(b []byte) bool {
		_, err := out.Write(b)
		return err == nil
	})
	return nil
}

// sampleBytes is what a sample takes in memory.
const sampleBytes = 16

// printers is how many pages are printed at a time.
func printers() int { return runtime.GOMAXPROCS(0) }

// inOrder calls print for each page below n, several at a time, and take with what they printed, in order and one at a time, until it returns false. A buffer is
// used again when it was taken, and there are two for each printer.
func inOrder(n int, print func(b []byte, i int) []byte, take func([]byte) bool) {
	buffers := 2 * printers()
	free, stop := make(chan []byte, buffers), make(chan struct{})
	done := make([]chan []byte, buffers) // page i goes through i % buffers: while it is on its way it has one of the buffers
	for i := range done {
		done[i] = make(chan []byte, 1)
		free <- nil
	}
	var next atomic.Int64
	var printing sync.WaitGroup
	for range min(printers(), n) {
		printing.Go(func() {
			for {
				select {
				case b := <-free:
					i := int(next.Add(1)) - 1
					if i >= n {
						free <- b
						return
					}
					done[i%buffers] <- print(b[:0], i)
				case <-stop:
					return
				}
			}
		})
	}
	for i := range n {
		b := <-done[i%buffers]
		if !take(b) {
			break
		}
		free <- b
	}
	close(stop)
	printing.Wait()
}

// begin answers 200 and returns what takes a body of which the length is not known. Its Close ends the body.
func (c *call) begin(contentType string) io.WriteCloser {
	h := c.Header()
	h.Set("Content-Type", contentType)
	h.Add("Vary", "Accept-Encoding")
	if !acceptsGzip(c.r.Header) {
		c.WriteHeader(http.StatusOK)
		return plainBody{c}
	}
	h.Set("Content-Encoding", "gzip")
	c.WriteHeader(http.StatusOK)
	zw := gzipWriters.Get().(*gzip.Writer)
	zw.Reset(c)
	return packedBody{zw}
}

type plainBody struct{ io.Writer }

func (plainBody) Close() error { return nil }

// packedBody gives its writer back when it is closed.
type packedBody struct{ *gzip.Writer }

func (p packedBody) Close() error {
	defer gzipWriters.Put(p.Writer)
	return p.Writer.Close()
}
