package rules_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/rules"
	"github.com/tidemark-db/tidemark/rules/rulestest"
)

// flaky is a receiver that is out of order for its first requests.
type flaky struct {
	mu    sync.Mutex
	fail  int
	got   []string // bodies that it took
	tries int
}

func (f *flaky) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	status := http.StatusOK
	if f.tries++; f.tries <= f.fail {
		status = http.StatusServiceUnavailable
	} else {
		f.got = append(f.got, string(body))
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// A receiver that fails at first ends in the state of the alerts: notifications of a window come in their order, over a restart too, and those of another
// window do not wait for them.
func TestNotificationsOfAWindowKeepTheirOrder(t *testing.T) {
	for _, restart := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			box := rulestest.NewSandbox(core.TimeOf(time.Now()))
			clock := func() core.Time {
				box.SetClock(core.TimeOf(time.Now()))
				return box.Now()
			}
			sink := &flaky{fail: 1}
			run := func() (stop func()) {
				c := rules.Config{Log: box, Ingest: box, Reader: box, Catalog: box, Clock: clock, Files: fstest.MapFS{"r.yaml": &fstest.MapFile{Data: []byte(`
name: hot
type: series
filter: {metric: temp}
condition: 'value > 80'
actions: [{kind: webhook, url: 'https://h.example/', triggers: [open, cancel], json: {s: '${entity} ${status} ${value}'}}]
`)}}}
				c.Outbox.Transport = sink
				e, err := rules.Open(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- e.Run(ctx) }()
				return func() {
					synctest.Wait()
					cancel()
					if err := <-done; err != nil {
						t.Error(err)
					}
				}
			}
			stop := run()
			insert := func(entity string, value float64) {
				b := &core.Batch{}
				b.Add(b.Ref(core.SeriesKey{Metric: "temp", Entity: entity}), clock(), value)
				if _, err := box.Append(t.Context(), b); err != nil {
					t.Fatal(err)
				}
				time.Sleep(100 * time.Millisecond)
			}
			insert("a", 90)
			insert("a", 10)
			insert("a", 91)
			if restart {
				stop()
				stop = run()
			}
			insert("b", 92)
			insert("a", 11)
			time.Sleep(time.Minute)
			stop()
			want := []string{`{"s":"b OPEN 92"}`, `{"s":"a OPEN 90"}`, `{"s":"a CANCEL 10"}`, `{"s":"a OPEN 91"}`, `{"s":"a CANCEL 11"}`}
			if !slices.Equal(sink.got, want) {
				t.Errorf("restart %v: the receiver got %q, want %q", restart, sink.got, want)
			}
		})
	}
}

func TestEventPayload(t *testing.T) {
	w := newWorld(t, rulestest.NewSandbox(start), `
name: r
type: series
filter: {metric: x}
condition: 'value > 1'
actions:
  - {kind: webhook, name: json, preset: event, url: 'https://h.example/', triggers: [open, cancel]}
  - {kind: webhook, name: form, preset: event, url: 'https://h.example/', content_type: application/x-www-form-urlencoded}
`)
	w.insert("series e:web-1 m:x=2.5 t:p=a")
	w.box.SetClock(start + 61_000)
	w.insert("series e:web-1 m:x=1 t:p=a ms:1715673661000")
	w.advance()
	texts := map[string]string{}
	for _, n := range w.notifications() {
		if n.Action == "form" {
			var names []string
			for field := range strings.SplitSeq(n.Request.Body, "&") {
				name, value, _ := strings.Cut(field, "=")
				texts[name], names = value, append(names, name)
			}
			if !slices.IsSorted(names) || n.Request.SignedText != n.Request.Body || n.Request.ContentType != "application/x-www-form-urlencoded" {
				t.Errorf("form %+v", n.Request)
			}
			continue
		}
		var got map[string]any
		if err := json.Unmarshal([]byte(n.Request.Body), &got); err != nil {
			t.Fatal(err)
		}
		interval, duration := "", "00:00:00:00"
		if got["status"] == "CANCEL" {
			interval, duration = "1m:1s", "00:00:01:01"
		}
		if got["entity.id"] != "web-1" || got["metric.id"] != "x" || got["properties"] != "" || got["alert_duration_interval"] != interval || got["alert_duration"] != duration {
			t.Errorf("payload %s", n.Request.Body)
		}
	}
	for name, want := range map[string]string{"status": "OPEN", "entity": "web-1", "value": "2.5", "tags": "%7Bp%3Da%7D", "properties": "", "repeat_count": "0",
		"entity.enabled": "true", "command_time": "2024-05-14T08%3A00%3A00Z%5BEtc%2FUTC%5D"} {
		if got, ok := texts[name]; !ok || got != want {
			t.Errorf("form field %s is %q, want %q", name, got, want)
		}
	}
}

func TestTelegram(t *testing.T) {
	w := newWorld(t, rulestest.NewSandbox(start), `
name: r
type: series
filter: {metric: x}
condition: 'value > 1'
actions:
  - {kind: webhook, name: bare, preset: telegram, params: {token: '12:ab', chat_id: '-7', text: hi}}
  - {kind: webhook, name: full, preset: telegram, params: {token: '12:ab', chat_id: '-7', text: hi, disable_notification: 'true', parse_mode: Markdown}}
`)
	w.insert("series e:a m:x=2")
	w.advance()
	want := map[string]string{"bare": `{"chat_id":"-7","text":"hi"}`, "full": `{"chat_id":"-7","disable_notification":"true","parse_mode":"Markdown","text":"hi"}`}
	for _, n := range w.notifications() {
		if n.Request.Body != want[n.Action] || n.Request.URL != "https://api.telegram.org/bot12%3Aab/sendMessage" || n.Request.Method != "POST" {
			t.Errorf("%s: %+v", n.Action, n.Request)
		}
	}
}
