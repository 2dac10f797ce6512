package sql_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql"
)

// failing lets some batches through.
type failing struct {
	core.Ingester
	batches int
	err     error
}

func (f *failing) Ingest(ctx context.Context, b *core.Batch) (core.Receipt, error) {
	if f.batches--; f.batches < 0 {
		return core.Receipt{}, f.err
	}
	return f.Ingester.Ingest(ctx, b)
}

// first is the first row of a query, its cells joined.
func (w *world) first(t *testing.T, text string) string {
	t.Helper()
	var cells []string
	err := w.engine.Run(t.Context(), sql.Request{Text: text, Origin: core.SystemOrigin(0)}, func(a *sql.Answer) error {
		for b, err := range a.Rows {
			if err != nil {
				return err
			}
			for _, v := range b.Columns[:len(a.Columns)] {
				cells = append(cells, v.Value(0).Format())
			}
			break
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(cells, " ")
}

func TestStore(t *testing.T) {
	for name, open := range map[string]func(testing.TB, func() core.Time) backend{"oracle": openOracle, "storage": openStorage} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, open)
			b := &core.Batch{Origin: core.SystemOrigin(0)}
			for e := range 5 { // 25,000 samples, 0 to 4,999 in each of five series: their sum is 5 * 4,999 * 5,000 / 2
				s := b.Ref(core.SeriesKey{Metric: "m", Entity: fmt.Sprintf("e%d", e)})
				for i := range 5000 {
					b.Add(s, origin+core.Time(i)*1000, float64(i))
				}
			}
			if _, err := w.pipe.Ingest(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			ask := func(text string, o sql.StoreOptions) (sql.Stored, error) {
				return w.engine.Store(t.Context(), sql.Request{Text: text, ID: "q", Origin: core.SystemOrigin(0)}, o)
			}

			// Many batches; with the newest first none of them keeps those behind it from being newer than what was there.
			done, err := ask("SELECT time, entity, value AS copy FROM m ORDER BY time DESC", sql.StoreOptions{Newer: true})
			if err != nil || done.Rows != 25_000 || done.Samples != 25_000 || done.Skipped != 0 {
				t.Errorf("%+v, %v", done, err)
			}
			if got := w.first(t, "SELECT count(*), sum(value) FROM copy"); got != "25000 62487500" {
				t.Errorf("count and sum are %s", got)
			}
			if done, err = ask("SELECT time + 1000 AS time, entity, value AS copy FROM m", sql.StoreOptions{Newer: true}); err != nil || done.Samples != 5 || done.Skipped != 24_995 {
				t.Errorf("one more sample of each: %+v, %v", done, err)
			}

			// What was stored before an error is counted.
			whole := w.engine.Ingest
			w.engine.Ingest = &failing{whole, 2, core.Errorf(core.NoSpace, "the disk is full")}
			done, err = ask("SELECT time, entity, value AS part FROM m", sql.StoreOptions{})
			if core.CodeOf(err) != core.NoSpace || done.Samples != 20_000 || done.Receipt == nil {
				t.Errorf("with a full disk: %+v, %v", done, err)
			}
			w.engine.Ingest = whole
			if got := w.first(t, "SELECT count(*) FROM part"); got != "20000" {
				t.Errorf("%s rows were stored before the disk was full", got)
			}

			// Another query may stop it.
			w.engine.Ingest = &stopping{Ingester: whole, stop: func() { w.engine.Cancel("q", core.SystemOrigin(0)) }}
			if done, err = ask("SELECT time, entity, value AS stopped FROM m", sql.StoreOptions{}); err == nil || err.Error() != "Query cancelled" || done.Samples != 10_000 {
				t.Errorf("cancelled: %+v, %v", done, err)
			}
			w.engine.Ingest = whole

			// Digits that a double has not.
			if _, err := w.rows(t.Context(), "INSERT INTO dec (entity, datetime, value, metric.dataType) VALUES ('e', '2024-03-04T00:00:00Z', 1, 'DECIMAL')"); err != nil {
				t.Fatal(err)
			}
			for _, query := range []string{"INSERT INTO dec (entity, datetime, value) VALUES ('e', '2024-03-04T00:00:01Z', 0.1234567890123456789)",
				"INSERT INTO other (entity, datetime, value, metric.dataType) VALUES ('e', '2024-03-04T00:00:00Z', 1, 'DECIMAL')"} {
				if _, err := w.rows(t.Context(), query); err != nil {
					t.Fatal(err)
				}
			}
			if done, err := ask("SELECT time, entity, value AS other FROM dec", sql.StoreOptions{}); err != nil || done.Samples != 2 {
				t.Errorf("%+v, %v", done, err)
			}
			if got := w.first(t, "SELECT value FROM other ORDER BY time DESC"); got != "0.1234567890123456789" {
				t.Errorf("the decimal is %s", got)
			}

			// Who may not write, and whose group is another.
			reader := core.Origin{User: "reader", Grants: core.Grants{Roles: core.DataRead, ReadAll: true}}
			if _, err := w.engine.Store(t.Context(), sql.Request{Text: "SELECT time, entity, value FROM m", Origin: reader}, sql.StoreOptions{}); core.CodeOf(err) != core.Forbidden {
				t.Errorf("without the role: %v", err)
			}
			reader.Grants.Roles |= core.DataWrite
			if _, err := w.engine.Store(t.Context(), sql.Request{Text: "SELECT time, entity, value FROM m", Origin: reader}, sql.StoreOptions{}); core.CodeOf(err) != core.Forbidden {
				t.Errorf("without permission on the entity: %v", err)
			}
		})
	}
}

// stopping calls stop after its first batch.
type stopping struct {
	core.Ingester
	stop func()
}

func (s *stopping) Ingest(ctx context.Context, b *core.Batch) (core.Receipt, error) {
	r, err := s.Ingester.Ingest(ctx, b)
	s.stop()
	return r, err
}
