package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/storetest"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// TestPropertyKeyOrder compares the order of keys with that of the records: whatever bytes the texts have.
func TestPropertyKeyOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	text := func() string {
		b := make([]byte, r.IntN(4))
		for i := range b {
			b[i] = byte(r.IntN(4))
			if b[i] == 3 {
				b[i] = byte("a\xff"[r.IntN(2)])
			}
		}
		return string(b)
	}
	record := func() core.PropertyKey {
		k := core.PropertyKey{Entity: text(), Type: text()}
		for range r.IntN(3) {
			k.Key = append(k.Key, core.Tag{Name: text(), Value: text()})
		}
		return k
	}
	value := appendRecord(nil, &core.PropertyRecord{Tags: []core.PropertyTag{{Tag: core.Tag{Name: "n", Value: "v"}, Time: 5}}})
	for range 100_000 {
		a, b := record(), record()
		coded, other := appendPropertyKey(nil, &a), appendPropertyKey(nil, &b)
		if got, want := bytes.Compare(coded, other), a.Compare(b); got != want {
			t.Fatalf("%q and %q: order %d, want %d", a, b, got, want)
		}
		back, err := new(recordReader).read(coded, value)
		if err != nil || back.PropertyKey.Compare(a) != 0 || back.Time != 5 {
			t.Fatalf("%q comes back as %+v, %v", a, back, err)
		}
	}
}

func TestRowKeyOrder(t *testing.T) {
	// Newest first; of equal times what arrived last.
	order := [][]byte{appendRowKey(nil, math.MaxInt64, 1), appendRowKey(nil, 5, 9), appendRowKey(nil, 5, 8), appendRowKey(nil, 0, math.MaxUint64),
		appendRowKey(nil, 0, 0), appendRowKey(nil, -1, 7), appendRowKey(nil, math.MinInt64, 1)}
	if !slices.IsSortedFunc(order, bytes.Compare) {
		t.Errorf("%x", order)
	}
}

func FuzzPropertyRecord(f *testing.F) {
	r := core.PropertyRecord{PropertyKey: core.PropertyKey{Entity: "e", Type: "t", Key: core.Tags{{Name: "k", Value: "v"}}},
		Tags: []core.PropertyTag{{Tag: core.Tag{Name: "a", Value: "1"}, Time: 7}, {Tag: core.Tag{Name: "b", Value: "\x00"}, Time: 5}}}
	f.Add(appendPropertyKey(nil, &r.PropertyKey), appendRecord(nil, &r))
	f.Add([]byte("e\x00\x01\x01\x00"), []byte{0})
	f.Fuzz(func(t *testing.T, key, value []byte) {
		got, err := new(recordReader).read(key, value)
		if err != nil {
			return
		}
		again, err := new(recordReader).read(appendPropertyKey(nil, &got.PropertyKey), appendRecord(nil, got))
		if err != nil || !cmp.Equal(got, again) {
			t.Fatalf("%+v comes back as %+v, %v", got, again, err)
		}
	})
}

func appendTo(t testing.TB, db *DB, b *core.Batch) {
	t.Helper()
	if _, err := db.Append(context.Background(), b); err != nil {
		t.Fatal(err)
	}
}

func put(kind core.DocKind, key, body string) core.DocChange {
	return core.DocChange{Kind: kind, Key: key, Body: []byte(body)}
}

// tabled prints what the tables hold.
func tabled(t *testing.T, db *DB) string {
	t.Helper()
	var text strings.Builder
	note := func(err error, args ...any) {
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&text, args...)
	}
	for _, kind := range []core.DocKind{core.DocMetric, core.DocEntity, core.DocGroup, core.DocTable, core.DocCollection, core.DocPluginState, pastKind + "x"} {
		for d, err := range db.Documents(t.Context(), core.DocumentQuery{Kind: kind}) {
			note(err, d.Kind, fmt.Sprintf("%q", d.Key), string(d.Body))
		}
	}
	for r, err := range db.Properties(t.Context(), core.PropertyQuery{Scope: core.AllEntities, Range: core.AllTime}) {
		note(err, r)
	}
	for r, err := range db.AlertHistory(t.Context(), core.AlertHistoryQuery{Scope: core.AllEntities, Range: core.AllTime}) {
		note(err, r)
	}
	for m, err := range db.Metrics(t.Context(), core.MetaQuery{}) {
		note(err, *m.Metric, m.Last, m.Inserted)
	}
	for e, err := range db.Entities(t.Context(), core.MetaQuery{}) {
		note(err, *e.Entity, e.Last, e.Inserted, db.EntityVersions(e.Name))
	}
	return text.String()
}

// TestTablesComeBack fills every table, in several flushes, and opens the database again: all of it is there, and counters go on.
func TestTablesComeBack(t *testing.T) {
	opts := small()
	opts.Versions = 4
	m := openMoving(t, func(m *moving) {})
	m.reopenWith(opts)
	row := func(at core.Time, event string) core.AlertChange {
		return core.AlertChange{Event: event, Row: &core.AlertRow{AlertID: 1, Time: at, Entity: "e", Rule: event, Type: core.StatusOpen, Value: math.Pi}}
	}
	for i := range 9 {
		appendTo(t, m.DB, &core.Batch{Documents: []core.DocChange{
			put(core.DocEntity, "e", fmt.Sprintf(`{"label":"label %d"}`, i)),
			put(core.DocEntity, fmt.Sprintf("e%d", i), `{}`),
			put(core.DocGroup, "g", fmt.Sprintf(`{"enabled":true,"members":["e%d"]}`, i)),
			put(core.DocCollection, "c", fmt.Sprintf(`{"values":["%d"]}`, i)),
			put(core.DocPluginState, "p\x00k", strings.Repeat("\x00state\xff", 1+i*1000)),
		}, Properties: []core.Property{{PropertyKey: core.PropertyKey{Entity: "e", Type: "t", Key: core.Tags{{Name: "k", Value: fmt.Sprint(i % 3)}}},
			Time: core.Time(i), Tags: core.Tags{{Name: "n", Value: fmt.Sprint(i)}, {Name: fmt.Sprint("only", i), Value: "x"}}, Flags: core.Default}},
			Alerts: []core.AlertChange{row(5, fmt.Sprint("event ", i)), row(core.Time(i), fmt.Sprint("other ", i))}})
		appendTo(t, m.DB, sample(i, core.Default|core.HasValue))
		if i%2 == 1 {
			m.flush()
		}
	}
	if got := len(m.EntityVersions("e")); got != 4 { // the creation, the latest two before, and the current one
		t.Fatalf("%d versions", got)
	}
	appendTo(t, m.DB, &core.Batch{Documents: []core.DocChange{{Kind: core.DocEntity, Key: "e3", Op: core.DocDelete}, {Kind: core.DocGroup, Key: "g", Op: core.DocDelete}}})
	want := tabled(t, m.DB)
	for _, step := range []func(){func() {}, m.flush, m.compact} {
		step()
		m.reopenWith(opts)
		if diff := cmp.Diff(want, tabled(t, m.DB)); diff != "" {
			t.Fatal(diff)
		}
	}
	if m.Member("e8", "g") || !slices.Equal(m.catalog.collection("c"), []string{"8"}) {
		t.Error("groups or collections are not what they were")
	}
	before := m.End()
	appendTo(t, m.DB, &core.Batch{Alerts: []core.AlertChange{row(99, "event 3"), row(99, "other 0")}})
	if m.End() != before {
		t.Error("changes that are stored were stored again")
	}
	appendTo(t, m.DB, &core.Batch{Alerts: []core.AlertChange{row(5, "the last")}})
	for r, err := range m.AlertHistory(t.Context(), core.AlertHistoryQuery{Scope: core.AllEntities, Range: core.Range{Start: 5, End: 6}, Limit: 1}) {
		if err != nil || r.Rule != "the last" {
			t.Errorf("of equal times the row of %q comes first, %v", r.Rule, err)
		}
	}
}

func (m *moving) reopenWith(opts Options) {
	m.opts = opts
	m.reopen()
}

// TestVersionsFollowTheName renames an entity whose versions are in files, and deletes it.
func TestVersionsFollowTheName(t *testing.T) {
	m := openMoving(t, func(m *moving) {})
	for i := range 5 {
		appendTo(t, m.DB, &core.Batch{Documents: []core.DocChange{put(core.DocEntity, "a", fmt.Sprintf(`{"label":"%d"}`, i))}})
	}
	m.flush()
	appendTo(t, m.DB, &core.Batch{Documents: []core.DocChange{{Kind: core.DocEntity, Key: "a", Op: core.DocRename, Body: []byte(`{"name":"b"}`)}}})
	labels := func(name string) (all []string) {
		for _, v := range m.EntityVersions(name) {
			all = append(all, v.Name+v.Label)
		}
		return all
	}
	m.flush()
	m.reopen()
	if got := labels("b"); !slices.Equal(got, []string{"b0", "b1", "b2", "b3", "b4"}) {
		t.Errorf("versions %q", got)
	}
	appendTo(t, m.DB, &core.Batch{Documents: []core.DocChange{{Kind: core.DocEntity, Key: "b", Op: core.DocDelete}}})
	appendTo(t, m.DB, &core.Batch{Documents: []core.DocChange{put(core.DocEntity, "b", `{"label":"again"}`), put(core.DocEntity, "a", `{}`)}})
	m.flush()
	m.reopen()
	if got := append(labels("b"), labels("a")...); !slices.Equal(got, []string{"bagain", "a"}) {
		t.Errorf("versions %q", got)
	}
}

// TestNewestTimesAreSaved opens a database again: a list looks at no series, except for what was in doubt.
func TestNewestTimesAreSaved(t *testing.T) {
	m := openMoving(t, func(m *moving) {})
	write := func(metric string, at core.Time) {
		b := &core.Batch{}
		b.Add(b.Ref(core.SeriesKey{Metric: metric, Entity: "of " + metric}), at, 1)
		appendTo(t, m.DB, b)
	}
	write("a", 10)
	write("b", 10)
	write("c", 10)
	m.flush()
	write("a", 20) // before the flush, so saved
	appendTo(t, m.DB, &core.Batch{Documents: []core.DocChange{{Kind: core.DocMetric, Key: "b", Op: core.DocRename, Body: []byte(`{"name":"d"}`)}}})
	appendTo(t, m.DB, &core.Batch{Series: []core.SeriesDelete{{Key: core.SeriesKey{Metric: "c", Entity: "of c"}, Range: core.Range{Start: 10, End: 11}}}})
	m.flush()
	write("a", 30) // in the journal alone
	m.reopen()
	for name, want := range map[string]core.Time{"a": 30, "d": 10} {
		wantTime(t, &m.catalog.lookupMetric(name).newest, unasked(t), want, true)
	}
	wantTime(t, &m.catalog.lookupEntity("of b").newest, unasked(t), 10, true)
	asked := false
	m.catalog.lookupMetric("c").newest.get(func() (core.Time, bool) { asked = true; return 0, false })
	if !asked {
		t.Error("what was in doubt before the start is certain after it")
	}
}

// TestDamagedDocuments loses a block of documents: the server starts, says so, and has the others.
func TestDamagedDocuments(t *testing.T) {
	m := openMoving(t, func(m *moving) {})
	var changes []core.DocChange
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 500 {
		changes = append(changes, put(core.DocEntity, fmt.Sprintf("e%03d", i), fmt.Sprintf(`{"label":"%016x%016x"}`, r.Uint64(), r.Uint64())))
	}
	appendTo(t, m.DB, &core.Batch{Documents: changes})
	m.flush()
	if err := m.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	flipIn(t, m.fs, ".documents.table", 10_000)
	db, report, err := Open(m.fs, "/data", m.opts)
	if err != nil {
		t.Fatal(err)
	}
	m.DB = db
	if !report.Damaged() || !strings.Contains(strings.Join(report.Damage, "\n"), "documents.table: damaged at byte") {
		t.Errorf("report %v", report)
	}
	n := 0
	for _, err := range db.Entities(t.Context(), core.MetaQuery{}) {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	if n < 400 || n == 500 {
		t.Errorf("%d entities of 500", n)
	}
	var last error
	for _, err := range db.Documents(t.Context(), core.DocumentQuery{Kind: core.DocEntity}) {
		last = errors.Join(last, err)
	}
	if core.CodeOf(last) != core.Unavailable {
		t.Errorf("a list that cannot be whole ends with %v", last)
	}
}

// flipIn changes a byte of the one file whose name ends so.
func flipIn(t *testing.T, fs vfs.FS, suffix string, at int64) {
	t.Helper()
	list, err := fs.List("/data/data")
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range list {
		if strings.HasSuffix(info.Name, suffix) {
			f, err := fs.Open("/data/data/"+info.Name, vfs.ReadWrite)
			if err != nil {
				t.Fatal(err)
			}
			var b [1]byte
			_, err = f.ReadAt(b[:], at)
			b[0] ^= 1
			if _, werr := f.WriteAt(b[:], at); err != nil || werr != nil {
				t.Fatal(err, werr)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("no file *%s", suffix)
}

// TestDescribeEntry reads entries of every table as text. What must not be seen over a shoulder is not in it.
func TestDescribeEntry(t *testing.T) {
	key := core.PropertyKey{Entity: "e", Type: "t", Key: core.Tags{{Name: "k", Value: "v"}}}
	record := core.PropertyRecord{Tags: []core.PropertyTag{{Tag: core.Tag{Name: "n", Value: "x"}, Time: 7}}}
	var e encoder
	e.row(&core.AlertRow{Time: 5, Entity: "e", Rule: "r", Type: core.StatusOpen, Value: 2})
	for _, c := range []struct {
		table      string
		key, value []byte
		want       string
	}{
		{"documents", documentKey(core.DocEntity, "a"), []byte(`{"label":"l"}`), `entity "a" {"label":"l"}`},
		{"documents", documentKey(core.DocUser, "a"), []byte(`{"password":"secret"}`), `user "a" (21 bytes)`},
		{"documents", documentKey(core.DocUser, "a"), nil, `"user\x00a" is gone`},
		{"properties", appendPropertyKey(nil, &key), appendRecord(nil, &record), `"e" type "t" key ` + tagText(key.Key) + ` n="x" at 7`},
		{"history", appendRowKey(nil, 5, 1), e.body, `5 "OPEN" rule "r" entity "e" value 2`},
		{"events", []byte("event"), []byte{}, `"event" ""`},
		{"newest", []byte("mcpu"), []byte{8}, `m "cpu" 7`},
	} {
		if got, err := describeEntry(c.table, c.key, c.value); got != c.want || err != nil {
			t.Errorf("%s: %s, %v, want %s", c.table, got, err, c.want)
		}
	}
	for table, value := range map[string][]byte{"documents": nil, "properties": {9}, "history": {1}, "newest": {0x80}} {
		if value == nil {
			value = []byte("{")
		}
		if text, err := describeEntry(table, documentKey(core.DocEntity, "a"), value); err == nil {
			t.Errorf("%s: a broken entry is %q", table, text)
		}
	}
}

// TestTableReadersBesideFlushes reads all tables while they are written, flushed and merged: a record that is there throughout is in every answer.
func TestTableReadersBesideFlushes(t *testing.T) {
	m := openMoving(t, func(m *moving) {})
	const entities = 200
	update := func(round int) {
		b := &core.Batch{}
		for i := range entities {
			if (i+round)%3 > 0 && round > 0 {
				continue
			}
			name := fmt.Sprintf("e%03d", i)
			b.Documents = append(b.Documents, put(core.DocEntity, name, fmt.Sprintf(`{"label":"%d"}`, round)))
			b.Properties = append(b.Properties, core.Property{PropertyKey: core.PropertyKey{Entity: name, Type: "t"}, Time: core.Time(round),
				Tags: core.Tags{{Name: "n", Value: fmt.Sprint(round)}}, Flags: core.Default})
		}
		b.Alerts = []core.AlertChange{{Event: fmt.Sprint("event ", round), Row: &core.AlertRow{Time: core.Time(round)}}}
		appendTo(t, m.DB, b)
	}
	update(0)
	ctx, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for _, count := range []func() (int, int, error){
		func() (n, want int, err error) {
			for _, e := range m.Properties(t.Context(), core.PropertyQuery{Scope: core.AllEntities, Range: core.AllTime}) {
				n, err = n+1, errors.Join(err, e)
			}
			return n, entities, err
		},
		func() (n, want int, err error) {
			for _, e := range m.Documents(t.Context(), core.DocumentQuery{Kind: core.DocEntity}) {
				n, err = n+1, errors.Join(err, e)
			}
			return n, entities, err
		},
		func() (n, want int, err error) {
			last := core.Time(-1)
			for r, e := range m.AlertHistory(t.Context(), core.AlertHistoryQuery{Scope: core.AllEntities, Range: core.AllTime}) {
				if n, err = n+1, errors.Join(err, e); last < 0 {
					last = r.Time
				}
			}
			return n, int(last) + 1, err
		},
		func() (n, want int, err error) {
			versions := m.EntityVersions("e000")
			return len(slices.CompactFunc(versions, func(a, b core.Entity) bool { return a.VersionDate() == b.VersionDate() })), len(versions), nil
		},
	} {
		readers.Go(func() {
			for ctx.Err() == nil {
				if n, want, err := count(); n != want || err != nil {
					t.Errorf("%d records of %d, %v", n, want, err)
					return
				}
			}
		})
	}
	for round := range 12 {
		update(round + 1)
		if m.flush(); round%4 == 3 {
			m.compact()
		}
	}
	stop()
	readers.Wait()
}

// TestRestartedHistories compares random histories with the oracle while the database is flushed, merged and opened again at random.
func TestRestartedHistories(t *testing.T) {
	for seed := range uint64(4) {
		storetest.Histories(t, seed, 100, func() storetest.Backend {
			r := rand.New(rand.NewPCG(seed, 7))
			return openMoving(t, func(m *moving) {
				switch r.IntN(12) {
				case 0, 1:
					m.flush()
				case 2:
					m.compact()
				case 3:
					m.reopen()
				}
			})
		})
	}
}
