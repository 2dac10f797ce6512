package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
)

// losingParser is lineParser with a fault: until 2031 it loses a line with BOOM, and
//
//	skips      goes on after the line, as a stateless plugin does
//	breaks     loses everything from the line on, and keeps what comes before it
//	headless   the same, without keeping it
//	cut        the same as breaks, but keeps only 4 bytes of the lost line
//	busy       loses the line and then cannot go on
type losingParser struct{ clock func() core.Time }

// fake implements lostInput.
type fakeLoss struct {
	offset, skip        int64
	kept                string
	headless, truncated bool
}

func (f fakeLoss) Error() string                { return "plugin fake: trap: boom" }
func (f fakeLoss) Unwrap() error                { return core.Errorf(core.Internal, "plugin fake: trap: boom") }
func (f fakeLoss) LostAt() (string, int64)      { return "fake", f.offset }
func (f fakeLoss) LostInput() ([]byte, int64)   { return []byte(f.kept), f.skip }
func (f fakeLoss) LostParts() (head, tail bool) { return f.headless, f.truncated }

func (p losingParser) Parse(ctx context.Context, r core.ParseRequest, body io.Reader) iter.Seq2[core.Parsed, error] {
	return p.Resume(ctx, r, body, 0)
}

func (p losingParser) Resume(ctx context.Context, r core.ParseRequest, body io.Reader, from int64) iter.Seq2[core.Parsed, error] {
	if !slices.Contains([]string{"skips", "breaks", "headless", "cut", "busy"}, r.Parser) {
		return lineParser{}.Parse(ctx, r, body)
	}
	return func(yield func(core.Parsed, error) bool) {
		text, err := io.ReadAll(body)
		if err != nil {
			yield(core.Parsed{}, err)
			return
		}
		broken := p.clock() < 1924992000000 // 2031-01-01
		at := int64(0)
		for line := range strings.Lines(string(text)) {
			begin := at
			at += int64(len(line))
			if broken && strings.Contains(line, "BOOM") {
				loss := fakeLoss{offset: begin, skip: begin, kept: string(text)}
				switch r.Parser {
				case "skips", "busy":
					loss.skip, loss.kept = 0, line
				case "headless":
					loss.skip, loss.kept, loss.headless = 0, string(text[begin:]), true
				case "cut":
					loss.kept, loss.truncated = string(text[:begin+4]), true
				}
				if !yield(core.Parsed{}, loss) || r.Parser == "breaks" || r.Parser == "headless" || r.Parser == "cut" {
					return
				}
				if r.Parser == "busy" {
					yield(core.Parsed{}, core.Errorf(core.Unavailable, "plugin fake: busy: it is paused"))
					return
				}
				continue
			}
			if begin < from {
				continue
			}
			cells := strings.Split(strings.TrimSpace(line), ",")
			chunk := core.Parsed{Lines: 1, Batch: &core.Batch{Messages: []core.Message{{Time: r.Received, Entity: cells[0], Type: "line", Text: line, Tags: r.Tags, Flags: core.Default}}}}
			if !yield(chunk, nil) {
				return
			}
		}
	}
}

// Letters are bounded together: the oldest go first, those of notifications do not count and stay.
func TestDeadLettersAreBounded(t *testing.T) {
	w := newWorld(t, Limits{})
	foreign := core.DocChange{Kind: core.DocDeadLetter, Key: "msg-1", Body: []byte(`{"body":"` + strings.Repeat("x", 5000) + `"}`)}
	if _, err := w.log.Append(t.Context(), &core.Batch{Origin: core.SystemOrigin(0), Documents: []core.DocChange{foreign}}); err != nil {
		t.Fatal(err)
	}
	upload := func() string { return w.do("eva", "POST", "/api/v1/csv?config=skips&t:site=n", "BOOM\n").Body.String() }
	first := upload()
	if !strings.Contains(first, `"deadLetters":[{"id":"1903910400000-0001","fileName":"","offset":0,"size":5,"truncated":false}]`) {
		t.Fatalf("answer %s", first)
	}
	size := int64(0)
	for d, err := range w.store.Documents(t.Context(), core.DocumentQuery{Kind: core.DocDeadLetter, Key: "plugin 1903910400000-0001"}) {
		if err != nil {
			t.Fatal(err)
		}
		size = int64(len(d.Body))
		for _, secret := range []string{password, passwordHash, "API_", "groups", "Authorization"} {
			if strings.Contains(strings.ToLower(string(d.Body)), strings.ToLower(secret)) {
				t.Errorf("the letter holds %q: %s", secret, d.Body)
			}
		}
	}
	if size == 0 {
		t.Fatal("no letter")
	}
	w.server.DeadLetterBytes = 3*size + size/2
	w.server.letters = letterBox{} // as after a restart
	for range 4 {
		upload()
	}
	var keys []string
	for d, err := range w.store.Documents(t.Context(), core.DocumentQuery{Kind: core.DocDeadLetter}) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, d.Key)
	}
	if want := []string{"msg-1", "plugin 1903910400000-0003", "plugin 1903910400000-0004", "plugin 1903910400000-0005"}; !slices.Equal(keys, want) {
		t.Errorf("letters %v, want %v", keys, want)
	}
	if !strings.Contains(w.logged.String(), "limits.dead_letters is used up") {
		t.Error("the log does not name the limit")
	}
	w.server.DeadLetterBytes = size / 2
	if got := upload(); !strings.Contains(got, "could not be kept as a dead letter: the dead letter has") || !strings.Contains(got, "limits.dead_letters allows") {
		t.Errorf("answer %s", got)
	}
}

// A letter that the log does not take is told, and an input that is no text comes as base64.
func TestDeadLetterOfBytes(t *testing.T) {
	w := newWorld(t, Limits{})
	r := httptest.NewRequest("POST", "/api/v1/csv?config=skips", bytes.NewReader([]byte("BOOM\xff\x00<&>\n")))
	r.SetBasicAuth("admin", password)
	w.server.ServeHTTP(httptest.NewRecorder(), r)
	rec := w.do("admin", "GET", "/api/v1/admin/dead-letters/1903910400000-0001", "")
	var letter struct {
		Input  *string `json:"input"`
		Binary []byte  `json:"inputBase64"`
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &letter); err != nil || letter.Input != nil || string(letter.Binary) != "BOOM\xff\x00<&>\n" {
		t.Errorf("%s, error %v", rec.Body, err)
	}
	w.log.fail = core.Errorf(core.NoSpace, "the disk is full")
	if got := w.do("admin", "POST", "/api/v1/csv?config=skips", "BOOM\n"); got.Code != 400 || !strings.Contains(got.Body.String(), "could not be kept as a dead letter: the disk is full") {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}
