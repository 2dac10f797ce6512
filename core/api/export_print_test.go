package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/klauspost/compress/gzip"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
)

// seedWide stores three series of 30,000 samples, a second apart, and returns the table that an export of them is.
func (w *world) seedWide(t *testing.T) string {
	t.Helper()
	var want strings.Builder
	want.WriteString("Timestamp,Value,Metric,Entity,loc\n")
	start := at(t, "2021-05-03T22:00:00Z")
	values := []func(i int) (float64, string){
		func(i int) (float64, string) {
			return float64(i) / 100, strconv.FormatFloat(float64(i)/100, 'f', -1, 64)
		},
		func(i int) (float64, string) { return math.NaN(), "NaN" },
		func(i int) (float64, string) { return 1e300, "1" + strings.Repeat("0", 300) },
	}
	for s, value := range values {
		entity, tag := fmt.Sprintf("e%d", s), ""
		key := core.SeriesKey{Metric: "m", Entity: entity}
		if s == 1 {
			tag = `"a,b"`
			key.Tags = core.Tags{{Name: "loc", Value: "a,b"}}
		}
		n := 30_000
		if s == 2 {
			n = 10
		}
		b := &core.Batch{Origin: core.SystemOrigin(0)}
		ref := b.Ref(key)
		for i := range n {
			when := start + core.Time(i)*1000
			v, text := value(i)
			b.Add(ref, when, v)
			fmt.Fprintf(&want, "%s,%s,m,%s,%s\n", dates.FormatISO(when), text, entity, tag)
		}
		if _, err := w.server.Ingest.Ingest(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	return want.String()
}

// A large table is sent while it is printed, one that might exceed limits.response after it was printed: both are the same, with and without compression.
func TestExportOfManyPages(t *testing.T) {
	w := newWorld(t, Limits{})
	want := w.seedWide(t)
	for _, response := range []int{256 << 20, len(want)} {
		w.server.Limits.Response = response
		rec := w.export(`{"m":"m","e":"*"}`)
		if rec.Code != http.StatusOK || rec.Body.String() != want {
			t.Fatalf("limits.response %d: %d, %d bytes, want %d", response, rec.Code, rec.Body.Len(), len(want))
		}
		if streamed := rec.Header().Get("Content-Length") == ""; streamed != (response > len(want)) {
			t.Errorf("limits.response %d: streamed is %v", response, streamed)
		}
		r := httptest.NewRequest(http.MethodGet, "/export?settings="+url.QueryEscape(`{"m":"m","e":"*"}`), nil)
		r.SetBasicAuth("admin", password)
		r.Header.Set("Accept-Encoding", "gzip")
		packed := httptest.NewRecorder()
		w.server.ServeHTTP(packed, r)
		zr, err := gzip.NewReader(packed.Body)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(zr); err != nil || string(text) != want {
			t.Errorf("limits.response %d: compressed %d bytes, want %d, %v", response, len(text), len(want), err)
		}
		if held := w.server.held.Load(); held != 0 {
			t.Errorf("limits.response %d: %d bytes are held after the answer", response, held)
		}
	}
	w.server.Limits.Response = len(want) - 1
	if rec := w.export(`{"m":"m","e":"*"}`); rec.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("an answer one byte too large: %d", rec.Code)
	}
	w.server.Limits.Response = 256 << 20
	lines := strings.SplitAfter(want, "\n")
	for _, limit := range []int{29_999, 30_001, 50_000} {
		rec := w.export(fmt.Sprintf(`{"m":"m","e":"*","ost":["loc"],"l":%d}`, limit))
		if got := rec.Body.String(); got != strings.Join(lines[:limit+1], "") {
			t.Errorf("%d rows: %d bytes, %d lines", limit, len(got), strings.Count(got, "\n"))
		}
	}
}

// brokenWriter is a client that goes away after some bytes.
type brokenWriter struct {
	http.ResponseWriter
	left int
}

func (b *brokenWriter) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errors.New("gone")
	}
	return len(p), nil
}

func TestExportToClientThatGoesAway(t *testing.T) {
	w := newWorld(t, Limits{})
	w.seedWide(t)
	for _, left := range []int{0, 100, 300_000, 2_000_000} {
		r := httptest.NewRequest(http.MethodGet, "/export?settings="+url.QueryEscape(`{"m":"m","e":"*"}`), nil)
		r.SetBasicAuth("admin", password)
		w.server.ServeHTTP(&brokenWriter{httptest.NewRecorder(), left}, r)
		if held := w.server.held.Load(); held != 0 {
			t.Errorf("%d bytes are held after the answer", held)
		}
	}
}

// Pages come in order, each once, and a taker that has enough leaves no printer behind: synctest fails otherwise.
func TestInOrder(t *testing.T) {
	for _, n := range []int{0, 1, 2, 7, 100} {
		for _, most := range []int{0, 1, 3, 1000} {
			synctest.Test(t, func(t *testing.T) {
				var got []byte
				taken := 0
				inOrder(n, func(b []byte, i int) []byte { return append(b, byte(i)) }, func(b []byte) bool {
					got = append(got, b...)
					taken++
					return taken < most
				})
				var want []byte
				for i := range min(n, max(1, most)) {
					want = append(want, byte(i))
				}
				if !bytes.Equal(got, want) {
					t.Errorf("%d pages, %d to take: %v, want %v", n, most, got, want)
				}
			})
		}
	}
}

// What most says is never less than what a page becomes.
func TestPagesAreNoLongerThanAnnounced(t *testing.T) {
	for _, v := range []float64{0, -1e15, 1e15 - 1, -0.1 / 3, 1e-6 / 3, -1e-6 - 1e-22, math.MaxFloat64, -math.SmallestNonzeroFloat64, -math.MaxFloat64 / 3, math.NaN(), math.Inf(-1), 1.0 / 3, -2e5 / 3} {
		for precision := int64(-1); precision <= maxPrecision; precision++ {
			kolkata, err := dates.LoadZone("Asia/Kolkata")
			if err != nil {
				t.Fatal(err)
			}
			for name := range exportFormats {
				table := exportTable{exportSettings: exportSettings{precision: precision}}
				if table.format, err = newExportDates(name, dates.Moment{Zone: kolkata}); err != nil {
					t.Fatal(err)
				}
				p := exportPage{times: []core.Time{core.MaxTime}, values: []float64{v}, shared: []byte(",m,e\n")}
				if text := table.printPage(nil, p); int64(len(text)) > p.most() {
					t.Errorf("%q has %d bytes, %d were announced", text, len(text), p.most())
				}
			}
		}
	}
}
