package rules

import (
	"encoding/base64"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidemark-db/tidemark/core"
)

const exampleRule = "name: r\ntype: series\nfilter: {metric: temp}\nwindow: {duration: 5m, check_on_exit: true}\ncondition: 'avg() > 60 || last_open().seen'\n" +
	"variables: [{name: seen, expr: 'false'}, {name: odd, expr: '[1, 2.5, \"x\", nil, now, {\"a\": [true]}, tags]'}]\n" +
	"history: {triggers: [open]}\nactions: [{kind: log, open_delay: 1m}]\n"

func exampleState(t testing.TB) (*Engine, []byte) {
	e := openBare(t, exampleRule)
	b := batchOf(100)
	for i := range b.Samples.Times {
		b.Samples.Times[i] = core.Time(1_000_000_000 - i)
		b.Samples.Values[i] = []float64{float64(i), math.NaN(), math.Inf(1), -0.1}[i%4]
	}
	b.Received = 1_000_000_500
	e.entry(core.Entry{Position: 7, Batch: b})
	return e, e.encodeState()
}

func TestCheckpointIsComplete(t *testing.T) {
	e, body := exampleState(t)
	other := openBare(t, exampleRule)
	if err := other.decodeState(body); err != nil {
		t.Fatal(err)
	}
	options := []cmp.Option{cmp.AllowUnexported(window{}, command{}, actionState{}, historyRecord{}, recordedVariable{}), cmpopts.EquateNaNs(), cmpopts.EquateEmpty(),
		cmpopts.IgnoreFields(window{}, "rule", "head", "place", "unconfirmed", "fresh", "dropped", "touched", "shown"),
		cmpopts.IgnoreFields(command{}, "batch", "index", "plan")}
	if diff := cmp.Diff(e.windows["r"], other.windows["r"], options...); diff != "" {
		t.Errorf("windows (-saved +restored):\n%s", diff)
	}
	if len(e.open) == 0 || len(other.open) != len(e.open) || other.due.Len() != e.due.Len() || other.lastID != e.lastID || other.cursor != 7 {
		t.Errorf("open %d and %d, due %d and %d, id %d and %d, cursor %d", len(e.open), len(other.open), e.due.Len(), other.due.Len(), e.lastID, other.lastID,
			other.cursor)
	}
	if string(other.encodeState()) != string(body) {
		t.Error("a second checkpoint of the same state differs")
	}
}

func TestDamagedCheckpointIsReported(t *testing.T) {
	_, body := exampleState(t)
	for _, damage := range []func([]byte) []byte{
		func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		func(b []byte) []byte { return b[:len(b)-1] },
		func([]byte) []byte { return nil },
		func(b []byte) []byte { b[4] = 9; return b },
	} {
		e := openBare(t, exampleRule)
		e.restore(damage(append([]byte(nil), body...)))
		if len(e.Errors()) != 1 || len(e.windows["r"]) != 0 || len(e.open) != 0 {
			t.Errorf("errors %v, %d windows", e.Errors(), len(e.windows["r"]))
		}
	}
}

// FuzzCheckpoint decodes without the checksum in the way: no input may panic or take memory beyond a multiple of its size.
func FuzzCheckpoint(f *testing.F) {
	_, body := exampleState(f)
	f.Add(body[5 : len(body)-4])
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x0f})
	e := openBare(f, exampleRule)
	f.Fuzz(func(_ *testing.T, payload []byte) {
		d := &decoder{b: payload}
		d.window(&window{place: -1})
		e.orphans = nil
		for d = (&decoder{b: payload}); len(d.b) > 0 && !d.broken; {
			e.decodeRule(d)
		}
	})
}

// A checkpoint of version 1 has the history row alone, and of a property record nothing of single updates.
func TestCheckpointOfVersion1(t *testing.T) {
	const body = "VE1SQwEHgKjWuQcBAADor9a5BwEBchg1ZmI3YTNiODU4YWQwNmJlMWQ0OGZjNDEYMDY5YmIxZWFlYjhhODIxMjk4MDIzNDhmAAERbWVzc2FnZS1tZXNzYWdlLWEHbWVzc2FnZQFhAARP" +
		"UEVOAAMBAAAAAOiv1rkH6K/WuQfor9a5BwDor9a5B+iv1rkHAACAqNa5B+iv1rkHAOiv1rkHAWEHbWVzc2FnZQVmaXJzdANhcHADc3JjAACAqNa5B+iv1rkHAAAAAAABAYCo1rkH6K/WuQfo" +
		"r9a5BwFhB21lc3NhZ2UBcgRPUEVOCnRleHQgZmlyc3QEdHJ1ZQAJbGVuZ3RoKDEpAAAAAwAAAYCo1rkHAKisryQ="
	e := openBare(t, "name: r\ntype: message\nfilter: {type: app}\ncondition: 'true'\nhistory: {triggers: [open], message: 'text ${message}'}\n")
	state, err := base64.StdEncoding.DecodeString(body)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.decodeState(state); err != nil {
		t.Fatal(err)
	}
	w := e.windows["r"]["message-message-a"]
	if w == nil || w.status != core.StatusOpen || w.len() != 1 || w.recorded.row.Text != "text first" || w.recorded.message != "first" || w.recorded.source != "src" {
		t.Errorf("windows %+v", e.windows["r"])
	}
}
