package alert

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidemark-db/tidemark/wasm/abi"
	"github.com/tidemark-db/tidemark/wasm/guest"
)

func render(t testing.TB, config string, events ...abi.Event) []abi.Rendering {
	t.Helper()
	in := guest.New(Plugin(), abi.Options{})
	request, _ := json.Marshal(abi.OpenRequest{Kind: abi.KindAlert, Config: json.RawMessage(config)})
	if code := in.Open(request); code != abi.OK {
		t.Fatal(in.LastError())
	}
	out, code := in.Call(abi.KindAlert, abi.AppendEvents(nil, events), 0)
	if code != abi.OK {
		t.Fatal(in.LastError())
	}
	rs, err := abi.DecodeRenderings(string(out), len(events), abi.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return rs
}

func event(status abi.Status) abi.Event {
	e := abi.Event{Time: 1715673600000, Received: 1715673600120, Opened: 1715673600000, Value: 91.23649, OpenValue: 90, Severity: 6, Status: status,
		Tags: []abi.Pair{{Name: "mp", Value: "/da\"ta"}}, Variables: []abi.Pair{{Name: "limit", Value: "80"}}}
	e.Texts[abi.EventRule], e.Texts[abi.EventEntity], e.Texts[abi.EventMetric] = "disk-full", "db-1", "disk_used"
	e.Texts[abi.EventWindow], e.Texts[abi.EventCondition] = "length(1)", "value > 90"
	return e
}

func TestRender(t *testing.T) {
	closed := event(abi.StatusCancel)
	closed.Time, closed.Received, closed.Value, closed.Repeat = 1715673720000, 1715673720100, math.NaN(), 2
	message := event(abi.StatusOpen)
	message.Severity, message.Tags, message.Variables = 0, nil, nil
	message.Texts[abi.EventMetric], message.Texts[abi.EventMessage], message.Texts[abi.EventType] = "message", "2 tests\nfailed", "webhook"
	rs := render(t, "", event(abi.StatusOpen), closed, message)
	for i, want := range []struct{ text, body string }{
		{
			`[OPEN] CRITICAL disk-full: db-1 disk_used {mp=/da"ta} is 91.236`,
			`{"status":"OPEN","rule":"disk-full","condition":"value \u003e 90","window":"length(1)","severity":"CRITICAL","entity":"db-1","metric":"disk_used",` +
				`"tags":{"mp":"/da\"ta"},"variables":{"limit":"80"},"value":91.23649,"openValue":90,"repeatCount":0,` +
				`"time":"2024-05-14T08:00:00.000Z","received":"2024-05-14T08:00:00.120Z","opened":"2024-05-14T08:00:00.000Z",` +
				`"text":"[OPEN] CRITICAL disk-full: db-1 disk_used {mp=/da\"ta} is 91.236"}`,
		},
		{
			`[CANCEL] disk-full: db-1 disk_used {mp=/da"ta} after 2m 0s`,
			`{"status":"CANCEL","rule":"disk-full","condition":"value \u003e 90","window":"length(1)","severity":"CRITICAL","entity":"db-1","metric":"disk_used",` +
				`"tags":{"mp":"/da\"ta"},"variables":{"limit":"80"},"value":null,"openValue":90,"repeatCount":2,` +
				`"time":"2024-05-14T08:02:00.000Z","received":"2024-05-14T08:02:00.100Z","opened":"2024-05-14T08:00:00.000Z","duration":120100,` +
				`"text":"[CANCEL] disk-full: db-1 disk_used {mp=/da\"ta} after 2m 0s"}`,
		},
		{
			"[OPEN] disk-full: db-1: 2 tests\nfailed",
			`{"status":"OPEN","rule":"disk-full","condition":"value \u003e 90","window":"length(1)","severity":"UNDEFINED","entity":"db-1","metric":"message",` +
				`"type":"webhook","message":"2 tests\nfailed","value":91.23649,"openValue":90,"repeatCount":0,` +
				`"time":"2024-05-14T08:00:00.000Z","received":"2024-05-14T08:00:00.120Z","opened":"2024-05-14T08:00:00.000Z",` +
				`"text":"[OPEN] disk-full: db-1: 2 tests\nfailed"}`,
		},
	} {
		if rs[i].Text != want.text {
			t.Errorf("text %d:\n%s\nwant\n%s", i, rs[i].Text, want.text)
		}
		if rs[i].Body != want.body {
			t.Errorf("body %d:\n%s\nwant\n%s", i, rs[i].Body, want.body)
		}
	}
}

func TestLongTextsAreCutBetweenCharacters(t *testing.T) {
	e := event(abi.StatusOpen)
	e.Texts[abi.EventEntity] = strings.Repeat("ü", 100)
	for limit := 10; limit < 60; limit++ {
		text := render(t, fmt.Sprintf(`{"maxText":%d}`, limit), e)[0].Text
		if len(text) > limit || !utf8.ValidString(text) {
			t.Errorf("limit %d: %q", limit, text)
		}
	}
}

func FuzzRender(f *testing.F) {
	f.Add("rule", "e", "message", "text", 1.5, byte(1))
	f.Fuzz(func(t *testing.T, rule, entity, metric, message string, value float64, status byte) {
		e := abi.Event{Value: value, Status: abi.Status(status % 3), Tags: []abi.Pair{{Name: rule, Value: message}}}
		e.Texts[abi.EventRule], e.Texts[abi.EventEntity], e.Texts[abi.EventMetric], e.Texts[abi.EventMessage] = rule, entity, metric, message
		if r := render(t, "", e)[0]; !json.Valid([]byte(r.Body)) {
			t.Errorf("%s", r.Body)
		}
	})
}
