package sql_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql"
)

// short checks that a statement is answered with much memory, and refused with little.
func short(t *testing.T, w *world, text string, little int64) {
	t.Helper()
	for _, memory := range []int64{256 << 20, little} {
		w.engine.Memory = memory
		_, err := w.rows(t.Context(), text)
		switch refused := err != nil && strings.Contains(err.Error(), "sql.memory"); {
		case memory == little && !refused:
			t.Errorf("with %d bytes: error %v, want one with sql.memory", memory, err)
		case memory != little && err != nil:
			t.Errorf("with %d bytes: %v", memory, err)
		}
	}
}

// The tree and the plan of a statement count as memory, before they are made.
func TestStatementsAreCharged(t *testing.T) {
	w := hostileWorld(t)
	for name, test := range map[string]struct {
		text string
		most int64 // bytes that are too few for the tree and the plan, by a measurement of the heap
	}{
		"terms":   {"SELECT count(*) FROM m WHERE " + list(5000, " OR ", "value=#"), 12 << 20},
		"list":    {"SELECT count(*) FROM m WHERE value IN (" + list(50_000, ",", "#") + ")", 5 << 20},
		"columns": {"SELECT " + list(2000, ",", "value+#") + " FROM m LIMIT 1", 2 << 20},
		"case":    {"SELECT CASE" + list(4000, "", " WHEN value=# THEN 1") + " END FROM m LIMIT 1", 8 << 20},
		"sum":     {"SELECT " + nested(4, "(", "value"+strings.Repeat("+1", 1500), ")") + "," + list(20, ",", "value"+strings.Repeat("+1", 500)+"+#") + " FROM m LIMIT 1", 10 << 20},
	} {
		t.Run(name, func(t *testing.T) { short(t, w, test.text, test.most) })
	}
}

// A statement of a megabyte is refused before its plan is made, also when only its columns are asked for.
func TestColumnsAreCharged(t *testing.T) {
	w := hostileWorld(t)
	text := "SELECT value" + strings.Repeat("+1", 1000) + list(400, "", ", value"+strings.Repeat("+1", 500)+"+#") + " FROM m"
	_, err := w.engine.Columns(t.Context(), sql.Request{Text: text, Origin: core.SystemOrigin(0)})
	if err == nil || !strings.Contains(err.Error(), "sql.memory") {
		t.Errorf("error %v, want one with sql.memory", err)
	}
}

// What functions ask of the database is kept until the statement ends, and counts.
func TestAnswersAreCharged(t *testing.T) {
	w := newWorld(t, openStorage)
	table := core.Table{Name: "codes", Keys: map[string]string{}}
	for i := range 20_000 {
		table.Keys[fmt.Sprint(i)] = strings.Repeat("x", 40)
	}
	body, err := json.Marshal(table)
	if err != nil {
		t.Fatal(err)
	}
	b := &core.Batch{Origin: core.SystemOrigin(0), Documents: []core.DocChange{{Kind: core.DocTable, Key: core.TableKey("codes"), Op: core.DocPut, Body: body}}}
	for i := range 4000 {
		b.Add(b.Ref(core.SeriesKey{Metric: "m", Entity: fmt.Sprintf("entity-%04d", i)}), origin, 1)
	}
	if _, err := w.pipe.Ingest(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		text   string
		little int64
	}{
		"replacement table": {"SELECT count(lookup('codes', value)) FROM m", 800_000},
		"groups":            {"SELECT count(entity.groups) FROM m", 300_000},
		"metrics":           {"SELECT count(*) FROM m WHERE 'm' IN metrics(entity)", 400_000},
		"properties":        {"SELECT count(property(entity, 'disk::size')) FROM m", 400_000},
	} {
		t.Run(name, func(t *testing.T) { short(t, w, test.text, test.little) })
	}
}

// The series that a DELETE has met are kept, and count.
func TestDeleteIsCharged(t *testing.T) {
	w := newWorld(t, openStorage)
	b := &core.Batch{Origin: core.SystemOrigin(0)}
	for i := range 4000 {
		b.Add(b.Ref(core.SeriesKey{Metric: "m", Entity: fmt.Sprintf("entity-%04d", i)}), origin, 1)
	}
	if _, err := w.pipe.Ingest(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	w.engine.Memory = 200_000
	const statement = "DELETE FROM m WHERE time >= '2020-01-01T00:00:00Z'"
	if _, err := w.rows(t.Context(), statement); err == nil || !strings.Contains(err.Error(), "sql.memory") {
		t.Errorf("error %v, want one with sql.memory", err)
	}
	w.engine.Memory = 64 << 20
	if _, err := w.rows(t.Context(), statement); err != nil {
		t.Error(err)
	}
	if n, err := w.rows(t.Context(), "SELECT value FROM m"); n != 0 || err != nil {
		t.Errorf("%d rows are left, %v", n, err)
	}
}

// INTERPOLATE(DETAIL) holds the rows of one entity, those that it makes included.
func TestDetailIsCharged(t *testing.T) {
	w := newWorld(t, openStorage)
	b := &core.Batch{Origin: core.SystemOrigin(0)}
	for n, metric := range []string{"m", "n"} {
		s := b.Ref(core.SeriesKey{Metric: metric, Entity: "e"})
		for i := range 20_000 {
			b.Add(s, origin+core.Time(2000*i+1000*n), float64(i))
		}
	}
	if _, err := w.pipe.Ingest(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	text := "SELECT m.value, n.value FROM m JOIN n WITH INTERPOLATE(DETAIL, LINEAR)"
	if n, err := w.rows(t.Context(), text); err != nil || n < 39_990 {
		t.Fatalf("%d rows, %v; want about 40,000", n, err)
	}
	short(t, w, text, 8<<20) // enough for what joins and sorts, and not for 40,000 rows of either side beside it
}

// slowCatalog lets a plan wait.
type slowCatalog struct {
	core.Catalog
	asked chan<- struct{}
	leave <-chan struct{}
}

func (c slowCatalog) Metric(name string) (core.Metric, bool) {
	c.asked <- struct{}{}
	<-c.leave
	return c.Catalog.Metric(name)
}

// Statements of which only the columns are asked for wait for each other as queries do: each may take sql.memory.
func TestColumnsWaitForEachOther(t *testing.T) {
	w := newWorld(t, openStorage)
	asked, leave := make(chan struct{}, 2), make(chan struct{})
	o := w.engine.Options
	o.Queries, o.Catalog = 1, slowCatalog{w.backend, asked, leave}
	engine := sql.New(o)
	r := sql.Request{Text: "SELECT value FROM m", Origin: core.SystemOrigin(0)}
	var first sync.WaitGroup
	first.Go(func() {
		if _, err := engine.Columns(t.Context(), r); err != nil {
			t.Errorf("the first: %v", err)
		}
	})
	<-asked
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := engine.Columns(ctx, r); core.CodeOf(err) != core.Canceled || len(asked) > 0 {
		t.Errorf("the second: %v, and %d questions to the catalog; want it to wait until its caller leaves", err, len(asked))
	}
	close(leave)
	first.Wait()
}
