package api

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
)

// form sends a multipart body whose boundary is xx.
func (w *world) form(r *http.Request, body string) *httptest.ResponseRecorder {
	sent := httptest.NewRequest(r.Method, r.URL.String(), strings.NewReader(body))
	sent.Header = r.Header.Clone()
	sent.Header.Set("Content-Type", "multipart/form-data; boundary=xx")
	rec := httptest.NewRecorder()
	w.server.ServeHTTP(rec, sent)
	return rec
}

func (w *world) export(settings string) *httptest.ResponseRecorder {
	return w.do("admin", http.MethodGet, "/export?settings="+url.QueryEscape(settings), "")
}

// Dates, local dates of the settings and the beginnings of periods are in the zone that tz names: 2021-05-03T22:30Z is the next day in Berlin.
func TestExportInTheZoneOfTheServer(t *testing.T) {
	w := newWorld(t, Limits{})
	berlin, err := dates.LoadZone("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	w.server.Zone = berlin
	b := &core.Batch{Origin: core.SystemOrigin(0)}
	ref := b.Ref(core.SeriesKey{Metric: "m", Entity: "e"})
	b.Add(ref, at(t, "2021-05-03T21:30:00Z"), 1)
	b.Add(ref, at(t, "2021-05-03T22:30:00Z"), 2)
	if _, err := w.server.Ingest.Ingest(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	for settings, want := range map[string]string{
		`"tz":"LOCAL"`: "2021-05-03T23:30:00.000+02:00,1|2021-05-04T00:30:00.000+02:00,2",
		`"tz":"UTC"`:   "2021-05-03T21:30:00.000Z,1|2021-05-03T22:30:00.000Z,2",
		`"tz":"LOCAL","st":"2021-05-04 00:00:00","df":"LOCALTIME_SECONDS"`:        "2021-05-04 00:30:00,2",
		`"st":"2021-05-03 22:00:00","df":"LOCALTIME_SECONDS"`:                     "2021-05-03 22:30:00,2",
		`"tz":"LOCAL","a":["SUM"],"ai":"1-DAY","df":"DATE_YMD"`:                   "2021-05-03,1|2021-05-04,2",
		`"tz":"UTC","a":["SUM"],"ai":"1-DAY","df":"DATE_YMD"`:                     "2021-05-03,3",
		`"tz":"LOCAL","st":"2021-05-04 00:00:00","df":"MD_DOW","et":"2021-05-05"`: "05-04 Tue,2",
	} {
		rec := w.export(`{"m":"m","e":"e",` + settings + `}`)
		rows, err := csv.NewReader(rec.Body).ReadAll()
		if err != nil || rec.Code != http.StatusOK {
			t.Fatal(settings, rec.Code, err)
		}
		var got []string
		for _, row := range rows[1:] {
			got = append(got, strings.Join(row[:2], ","))
		}
		if text := strings.Join(got, "|"); text != want {
			t.Errorf("%s: %s, want %s", settings, text, want)
		}
	}
}

// An export holds no more samples than limits.samples, and answers with no more bytes than limits.response.
func TestExportBounds(t *testing.T) {
	for want, limits := range map[string]Limits{"limits.samples (100)": {Samples: 100}, "limits.response (1000 bytes)": {Response: 1000}} {
		w := newWorld(t, limits)
		w.seedPumps(t) // 4 series of 60 samples
		if rec := w.export(`{"m":"temp","e":"*"}`); rec.Code != http.StatusRequestEntityTooLarge || !strings.Contains(rec.Body.String(), want) {
			t.Errorf("%s: %d %s", want, rec.Code, rec.Body)
		}
		if rec := w.export(`{"m":"temp","e":"pump-1","l":3}`); rec.Code != http.StatusOK {
			t.Errorf("%s with a limit: %d %s", want, rec.Code, rec.Body)
		}
	}
}

func TestExportNumbers(t *testing.T) {
	for _, c := range []struct {
		digits int64
		value  float64
		exact  *core.Decimal
		want   string
	}{
		{-1, 3, nil, "3"}, {-1, 0.1, nil, "0.1"}, {-1, 1e21, nil, "1000000000000000000000"}, {-1, -2.50, nil, "-2.5"},
		{0, 0.5, nil, "1"}, {0, 2.5, nil, "3"}, {2, 1e-9, nil, "0.00"}, {3, -1.0005, nil, "-1.000"}, // the double next to -1.0005 is nearer to zero
		{-1, 0, &core.Decimal{Significand: 1250, Exponent: -3}, "1.250"}, {2, 0, &core.Decimal{Significand: 1255, Exponent: -3}, "1.26"},
		{1, 0, &core.Decimal{Significand: -7, Exponent: 2}, "-700.0"}, {-1, 0, &core.Decimal{Significand: 7, Exponent: 2}, "700"},
	} {
		s := exportSettings{precision: c.digits}
		if got := s.number(c.value, c.exact); got != c.want {
			t.Errorf("%v %v with %d digits: %s, want %s", c.value, c.exact, c.digits, got, c.want)
		}
	}
}

// Whatever the settings are, the answer is no fault of the server, and a table has as many cells in each row as in its header.
func FuzzExport(f *testing.F) {
	for _, seed := range []string{`{"m":"temp","e":"*"}`, `{"m":"temp","e":"*","v":true,"ro":true,"rf":"value=1","tc":true,"np":3,"df":"MD_DOW"}`,
		`{"m":"temp","g":"x","ex":"name+LIKE+'*'","eft":"ALL","tags":[{"k":"loc","v":"e+*"}],"st":"now+-+1+*+day","a":["P_99","COUNT"],"ai":"1-HOUR","i":"STEP"}`,
		`{"m":"temp","e":"pump-1","f":"HTML","te":["a,b"],"am":true,"ost":["x\n"],"l":1,"si":"3-YEAR","tz":"LOCAL","t":"FORECAST","fn":"f"}`, `{"m":1,"l":"9e99"}`, "{"} {
		f.Add(seed)
	}
	w := newWorld(f, Limits{Time: 5 * time.Second})
	w.seedPumps(f)
	f.Fuzz(func(t *testing.T, settings string) {
		rec := w.export(settings)
		kind := rec.Header().Get("Content-Type")
		switch {
		case rec.Code >= 500 && rec.Code != http.StatusNotImplemented:
			t.Fatalf("%q: %d %s", settings, rec.Code, rec.Body)
		case rec.Code != http.StatusOK:
			if !json.Valid(rec.Body.Bytes()) {
				t.Fatalf("%q: %s", settings, rec.Body)
			}
		case strings.HasPrefix(kind, "text/csv"):
			if _, err := csv.NewReader(rec.Body).ReadAll(); err != nil {
				t.Fatalf("%q: %v", settings, err)
			}
		case !strings.HasPrefix(kind, "text/html"):
			t.Fatalf("%q: %s", settings, kind)
		}
		if strings.ContainsAny(fmt.Sprint(rec.Header()["Content-Disposition"]), "\r\n") {
			t.Fatalf("%q: %v", settings, rec.Header())
		}
	})
}
