package sql_test

import (
	"context"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql"
)

// stuck is a reader whose samples never come.
type stuck struct{ core.Reader }

func (stuck) Series(ctx context.Context, _ core.SeriesQuery) iter.Seq2[core.Block, error] {
	return func(yield func(core.Block, error) bool) {
		<-ctx.Done()
		yield(core.Block{}, ctx.Err())
	}
}

func TestTimeOfAQuery(t *testing.T) {
	w := newWorld(t, openOracle)
	w.setup(t, "testdata/pumps.setup")
	engine := sql.New(sql.Options{Reader: stuck{w.backend}, Catalog: w.backend, Metadata: w.backend, Clock: func() core.Time { return w.now }, Time: 20 * time.Millisecond})
	for _, query := range []string{"SELECT value FROM flow", "SELECT avg(value) FROM flow GROUP BY entity", "SELECT value FROM temp WHERE datetime BETWEEN (SELECT datetime FROM flow)"} {
		err := engine.Run(t.Context(), sql.Request{Text: query, Origin: core.SystemOrigin(0)}, func(a *sql.Answer) error {
			for _, err := range a.Rows {
				return err
			}
			return nil
		})
		if core.CodeOf(err) != core.Invalid || !strings.Contains(err.Error(), "sql.time (20ms)") {
			t.Errorf("%s: got %v, want an error of the statement that names sql.time", query, err)
		}
	}
}

func TestAQueryEndsWithItsCaller(t *testing.T) {
	w := newWorld(t, openOracle)
	w.setup(t, "testdata/pumps.setup")
	engine := sql.New(sql.Options{Reader: stuck{w.backend}, Catalog: w.backend, Metadata: w.backend, Clock: func() core.Time { return w.now }})
	ctx, cancel := context.WithCancel(t.Context())
	begun := make(chan struct{})
	ended := make(chan error)
	go func() {
		ended <- engine.Run(ctx, sql.Request{Text: "SELECT value FROM flow", Origin: core.SystemOrigin(0)}, func(a *sql.Answer) error {
			close(begun)
			for _, err := range a.Rows {
				return err
			}
			return nil
		})
	}()
	<-begun
	cancel()
	if err := <-ended; core.CodeOf(err) != core.Canceled {
		t.Errorf("got %v, want an error of code Canceled", err)
	}
}
