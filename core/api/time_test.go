package api

import (
	"context"
	"iter"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

// stuck is a reader whose messages never come, and an ingester that is slow but sure.
type stuck struct{ core.Reader }

func (stuck) Messages(ctx context.Context, _ core.MessageQuery) iter.Seq2[core.Message, error] {
	return func(yield func(core.Message, error) bool) {
		<-ctx.Done()
		yield(core.Message{}, ctx.Err())
	}
}

func (stuck) Ingest(ctx context.Context, _ *core.Batch) (core.Receipt, error) {
	select {
	case <-ctx.Done():
		return core.Receipt{}, ctx.Err()
	case <-time.After(time.Hour):
		return core.Receipt{Durability: core.Synced}, nil
	}
}

// TestTimeLimit runs in a bubble of synctest, whose clock jumps to the next timer: no test waits for it.
func TestTimeLimit(t *testing.T) {
	for _, test := range []struct {
		name   string
		limits Limits
		text   string
		after  time.Duration
	}{
		{"default", Limits{}, "limits.time (30s)", 30 * time.Second},
		{"chosen", Limits{Time: 5 * time.Minute}, "limits.time (5m0s)", 5 * time.Minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, test.limits)
				w.server.Reader, w.server.Ingest = stuck{w.store}, stuck{}
				begin := time.Now()
				query := `{"entity":"*","startDate":"1970-01-01T00:00:00Z","endDate":"now"}`
				rec := w.do("admin", "POST", "/api/v1/messages/query", query)
				if rec.Code != http.StatusServiceUnavailable || !strings.Contains(rec.Body.String(), test.text) || time.Since(begin) != test.after {
					t.Errorf("after %s: %d %s", time.Since(begin), rec.Code, rec.Body)
				}
				// A write is not cut, however long it takes.
				insert := `[{"entity":"e","metric":"m","data":[{"t":1,"v":1}]}]`
				if rec := w.do("admin", "POST", "/api/v1/series/insert", insert); rec.Code != http.StatusOK {
					t.Errorf("insert: %d %s", rec.Code, rec.Body)
				}
			})
		})
	}
}

// TestCanceledRequest has a client that went away, which is told apart from the limit.
func TestCanceledRequest(t *testing.T) {
	w := newWorld(t, Limits{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := &call{server: w.server, r: (&http.Request{}).WithContext(ctx)}
	<-c.reading().Done()
	c.stop()
	if c.outOfTime() {
		t.Error("a client that went away counts as a request out of time")
	}
}
