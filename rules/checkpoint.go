package rules

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/tidemark-db/tidemark/core"
)

// The checkpoint is one document of kind DocCheckpoint. Its body:
//
//	+------------+------------+---------------------------------------------------+------------+
//	| magic TMRC | version u8 | payload                                           | crc32c u32 |   crc covers all before it
//	+------------+------------+---------------------------------------------------+------------+
//	payload = cursor tick lastID written.position written.tick swept rules*
//	rule    = name fingerprint full sent* windows*
//	window  = key metric entity tags status repeat severity alert flags openValue text times last current previous before record? actions* samples
//	record  = row type source message keys openValue times variables*
//
// Integers are varints, texts and lists carry their length before them. Sample times are differences; values are the bytes of
// value XOR the value before, reversed, so that round and repeated numbers take one to three bytes.
const (
	checkpointKey     = "rules/checkpoint"
	checkpointMagic   = "TMRC"
	checkpointVersion = 2 // 1 is read as well: it has no before, and its records are the row alone
	// maxCheckpoint keeps the document inside one ordinary batch. Windows that do not fit keep the older checkpoint in force, and replays grow longer.
	maxCheckpoint = 48 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type encoder struct{ b []byte }

func (e *encoder) uint(v uint64)    { e.b = binary.AppendUvarint(e.b, v) }
func (e *encoder) int(v int64)      { e.b = binary.AppendVarint(e.b, v) }
func (e *encoder) time(v core.Time) { e.int(int64(v)) }
func (e *encoder) text(s string)    { e.uint(uint64(len(s))); e.b = append(e.b, s...) }
func (e *encoder) float(v float64)  { e.uint(bits.ReverseBytes64(math.Float64bits(v))) }
func (e *encoder) bool(v bool) {
	if v {
		e.uint(1)
		return
	}
	e.uint(0)
}

func (e *encoder) tags(t core.Tags) {
	e.uint(uint64(len(t)))
	for _, tag := range t {
		e.text(tag.Name)
		e.text(tag.Value)
	}
}

func (e *encoder) times(list ...core.Time) {
	for _, t := range list {
		e.time(t)
	}
}

// decoder reads what encoder wrote; after a fault every read gives zero.
type decoder struct {
	b       []byte
	version byte
	broken  bool
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.broken, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.broken, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) time() core.Time { return core.Time(d.int()) }
func (d *decoder) bool() bool      { return d.uint() == 1 }
func (d *decoder) float() float64  { return math.Float64frombits(bits.ReverseBytes64(d.uint())) }

// count reads the length of a list, which cannot have more elements than bytes are left.
func (d *decoder) count() int {
	n := d.uint()
	if n > uint64(len(d.b)) {
		d.broken, d.b = true, nil
		return 0
	}
	return int(n)
}

func (d *decoder) text() string {
	n := d.count()
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

func (d *decoder) tags() core.Tags {
	n := d.count()
	var t core.Tags
	for range n {
		t = append(t, core.Tag{Name: d.text(), Value: d.text()})
	}
	return t
}

func (d *decoder) times(list ...*core.Time) {
	for _, t := range list {
		*t = d.time()
	}
}

// encodeState returns the checkpoint of everything the engine knows.
func (e *Engine) encodeState() []byte {
	enc := &encoder{b: append([]byte(checkpointMagic), checkpointVersion)}
	enc.uint(uint64(e.cursor))
	enc.time(e.tick)
	enc.uint(e.lastID)
	enc.uint(uint64(e.written.Position))
	enc.times(e.written.Tick, e.swept)
	enc.uint(uint64(len(e.rules)))
	for _, name := range slices.Sorted(maps.Keys(e.rules)) {
		l := e.rules[name]
		enc.text(name)
		enc.text(l.windows)
		enc.text(l.full)
		enc.uint(uint64(len(l.lastSent)))
		enc.times(l.lastSent...)
		enc.uint(uint64(len(e.windows[name])))
		for _, key := range slices.Sorted(maps.Keys(e.windows[name])) {
			enc.window(e.windows[name][key])
		}
	}
	return binary.LittleEndian.AppendUint32(enc.b, crc32.Checksum(enc.b, castagnoli))
}

func (e *encoder) window(w *window) {
	e.text(w.key)
	e.text(w.metric)
	e.text(w.entity)
	e.tags(w.tags)
	e.text(string(w.status))
	e.uint(uint64(w.repeat))
	e.uint(uint64(w.severity))
	e.uint(w.alert)
	e.bool(w.acked)
	e.bool(w.nodata)
	e.float(w.openValue)
	e.text(w.openText)
	e.times(w.lastEvent, w.openTime, w.repeatTime, w.cancelTime, w.changeTime, w.addTime, w.previousAdd, w.removeTime, w.commandTime, w.received, w.hold,
		w.recordedAt)
	c := &w.last
	for _, s := range []string{c.entity, c.metric, c.text, c.typ, c.source} {
		e.text(s)
	}
	e.float(c.value)
	e.uint(uint64(c.severity))
	e.times(c.time, c.received)
	for _, t := range []core.Tags{c.tags, c.keys, c.props, w.current, w.previous} {
		e.tags(t)
	}
	e.tags(w.before)
	e.bool(w.recorded != nil)
	if w.recorded != nil {
		e.record(w.recorded)
	}
	e.uint(uint64(len(w.actions)))
	for _, a := range w.actions {
		e.times(a.lastFired, a.pending)
		e.bool(a.opened)
	}
	e.samples(w.sampleTimes(), w.samples())
}

func (e *encoder) row(r *core.AlertRow) {
	e.uint(r.AlertID)
	e.times(r.Time, r.Received, r.OpenTime)
	for _, s := range []string{r.Entity, r.Metric, r.Rule, string(r.Type), r.Text, r.Condition, r.Filter, r.Window, r.Schedule} {
		e.text(s)
	}
	e.tags(r.Tags)
	e.float(r.Value)
	e.uint(uint64(r.Severity))
	e.uint(uint64(r.RepeatCount))
}

func (d *decoder) row() *core.AlertRow {
	r := &core.AlertRow{AlertID: d.uint()}
	d.times(&r.Time, &r.Received, &r.OpenTime)
	for _, s := range []*string{&r.Entity, &r.Metric, &r.Rule, (*string)(&r.Type), &r.Text, &r.Condition, &r.Filter, &r.Window, &r.Schedule} {
		*s = d.text()
	}
	r.Tags = d.tags()
	r.Value, r.Severity, r.RepeatCount = d.float(), core.Severity(d.uint()), int(d.uint())
	return r
}

func (e *encoder) samples(times []core.Time, values []float64) {
	e.uint(uint64(len(times)))
	before := core.Time(0)
	for _, t := range times {
		e.time(t - before)
		before = t
	}
	last := uint64(0)
	for _, v := range values {
		b := math.Float64bits(v)
		e.uint(bits.ReverseBytes64(b ^ last))
		last = b
	}
}

func (d *decoder) window(w *window) {
	w.metric, w.entity, w.tags = d.text(), d.text(), d.tags()
	w.status = core.Status(d.text())
	w.repeat, w.severity, w.alert = int(d.uint()), core.Severity(d.uint()), d.uint()
	w.acked, w.nodata = d.bool(), d.bool()
	w.openValue, w.openText = d.float(), d.text()
	d.times(&w.lastEvent, &w.openTime, &w.repeatTime, &w.cancelTime, &w.changeTime, &w.addTime, &w.previousAdd, &w.removeTime, &w.commandTime, &w.received,
		&w.hold, &w.recordedAt)
	c := &w.last
	for _, s := range []*string{&c.entity, &c.metric, &c.text, &c.typ, &c.source} {
		*s = d.text()
	}
	c.value, c.severity = d.float(), core.Severity(d.uint())
	d.times(&c.time, &c.received)
	for _, t := range []*core.Tags{&c.tags, &c.keys, &c.props, &w.current, &w.previous} {
		*t = d.tags()
	}
	if d.version != 1 {
		w.before = d.tags()
	}
	if d.bool() {
		w.recorded = d.record(w)
	}
	w.actions = make([]actionState, d.count())
	for i := range w.actions {
		d.times(&w.actions[i].lastFired, &w.actions[i].pending)
		w.actions[i].opened = d.bool()
	}
	d.samples(w)
}

func (d *decoder) samples(w *window) {
	n := d.count()
	w.times, w.values, w.head = make([]core.Time, n), make([]float64, n), 0
	before := core.Time(0)
	for i := range w.times {
		before += d.time()
		w.times[i] = before
	}
	last := uint64(0)
	for i := range w.values {
		last ^= bits.ReverseBytes64(d.uint())
		w.values[i] = math.Float64frombits(last)
	}
}

// savedState is what the documents hold when an engine starts.
type savedState struct {
	checkpoint []byte
	rules      map[string]ruleState
}

func (e *Engine) readState(ctx context.Context) (savedState, error) {
	s := savedState{rules: map[string]ruleState{}}
	for d, err := range e.reader.Documents(ctx, core.DocumentQuery{Kind: core.DocRule}) {
		if err != nil {
			return s, err
		}
		var r ruleState
		if json.Unmarshal(d.Body, &r) == nil {
			s.rules[string([]byte(d.Key))] = r
		}
	}
	for d, err := range e.reader.Documents(ctx, core.DocumentQuery{Kind: core.DocCheckpoint}) {
		if err != nil {
			return s, err
		}
		switch d.Key {
		case checkpointKey:
			s.checkpoint = slices.Clone(d.Body)
		case writtenKey:
			_ = json.Unmarshal(d.Body, &e.written) // a damaged mark is the zero mark: events still tell what was written
		}
	}
	return s, nil
}

// restore takes the engine back to a checkpoint. A damaged one is reported, and the engine starts at the end of the log.
func (e *Engine) restore(body []byte) {
	if err := e.decodeState(body); err != nil {
		e.reportText("", fmt.Sprintf("checkpoint is not usable, windows start empty: %v", err))
		e.cursor, e.tick = e.tail.End(), 0
		for name := range e.windows {
			e.windows[name] = map[string]*window{}
		}
		clear(e.open)
		e.due, e.touched = nil, nil
		e.total.windows, e.total.samples = 0, 0
	}
}

// Needs is the position from which on the engine would read the log again after a restart: that of the last checkpoint, or the highest there is while
// there is none. It may be called at any time.
func (e *Engine) Needs() core.Position { return core.Position(e.needs.Load()) }

func (e *Engine) decodeState(body []byte) error {
	head := len(checkpointMagic) + 1
	if len(body) < head+4 || string(body[:head-1]) != checkpointMagic {
		return core.Errorf(core.Internal, "not a checkpoint")
	}
	version := body[head-1]
	if version < 1 || version > checkpointVersion {
		return core.Errorf(core.Internal, "version %d, this program reads 1 to %d", version, checkpointVersion)
	}
	payload, sum := body[:len(body)-4], binary.LittleEndian.Uint32(body[len(body)-4:])
	if crc32.Checksum(payload, castagnoli) != sum {
		return core.Errorf(core.Internal, "checksum does not match")
	}
	d := &decoder{b: payload[head:], version: version}
	e.cursor, e.tick, e.lastID = core.Position(d.uint()), d.time(), max(e.lastID, d.uint())
	saved := point{Position: core.Position(d.uint()), Tick: d.time()}
	if saved.after(e.written) {
		e.written = saved
	}
	e.swept = d.time()
	for range d.count() {
		e.decodeRule(d)
	}
	if d.broken || len(d.b) > 0 {
		return core.Errorf(core.Internal, "damaged inside")
	}
	return nil
}

// decodeRule restores the windows of one rule. Those of a rule that has changed or gone are dropped; its open alerts are deleted.
func (e *Engine) decodeRule(d *decoder) {
	name, windows, full := d.text(), d.text(), d.text()
	sent := make([]core.Time, d.count())
	for i := range sent {
		sent[i] = d.time()
	}
	l := e.rules[name]
	same := l != nil && l.windows == windows && l.Enabled
	if same && l.full == full && len(sent) == len(l.lastSent) {
		copy(l.lastSent, sent)
	}
	for range d.count() {
		w := &window{key: d.text(), place: -1}
		d.window(w)
		if d.broken {
			return
		}
		if !same {
			if w.status == core.StatusOpen || w.status == core.StatusRepeat {
				e.orphans = append(e.orphans, orphan{name, w})
			}
			continue
		}
		w.rule = l.Rule
		if l.full != full || len(w.actions) != len(l.Actions) {
			w.actions = make([]actionState, len(l.Actions))
			for i, a := range l.compiled.actions {
				w.actions[i].opened = w.open() && a.allowed(nil)
			}
		}
		e.addWindow(w)
		if w.open() {
			e.open[w.alert] = w
			e.touch(w)
		}
		e.schedule(w)
	}
}

// orphan is an open alert whose rule changed or went away while the server was down.
type orphan struct {
	rule string
	w    *window
}

// deleteOrphans journals the end of alerts that no rule stands for any more.
func (e *Engine) deleteOrphans() {
	for _, o := range e.orphans {
		o.w.rule = &Rule{Name: o.rule, Kind: kindOfKey(o.w.metric)}
		fx := &effects{event: e.eventID(o.w, cause{position: e.cursor, index: noRecord, tick: e.tick}), point: point{e.cursor, e.tick}}
		fx.change(core.AlertDeleted, o.w, nil)
		e.emit(fx)
	}
	e.orphans = nil
}

func kindOfKey(metric string) Kind {
	switch metric {
	case "message":
		return KindMessage
	case "property":
		return KindProperty
	}
	return KindSeries
}

// checkpoint writes the state of the engine, together with changes of rules. It is only called when nothing waits to be written, so that the state and the
// log agree.
func (e *Engine) checkpoint(ctx context.Context, changes []core.DocChange) error {
	waiting := len(e.queue) > 0
	idle := len(changes) == 0 && (len(e.rules) == 0 || e.cursor == e.saved)
	var body []byte
	if !waiting && !idle {
		body = e.encodeState()
	}
	cursor := e.cursor
	switch {
	case idle:
		if len(e.rules) == 0 {
			e.needs.Store(math.MaxUint64)
		}
		return nil
	case waiting:
		return core.Errorf(core.Unavailable, "effects wait for the log")
	case len(body) > maxCheckpoint:
		return core.Errorf(core.TooLarge, "windows take %d bytes, more than %d: lower window.max_samples or window.max_windows", len(body), maxCheckpoint)
	}
	b := &core.Batch{Origin: core.SystemOrigin(0), Documents: slices.Clone(changes)}
	b.Documents = append(b.Documents, core.DocChange{Kind: core.DocCheckpoint, Key: checkpointKey, Op: core.DocPut, Body: body})
	receipt, err := e.ingest.Ingest(ctx, b)
	if err != nil {
		return err
	}
	e.read = 0
	// The checkpoint itself is the only entry since: it is not a reason for another one.
	e.saved = cursor
	e.needs.Store(uint64(cursor))
	if receipt.Position > cursor {
		e.ownEntry = receipt.Position
	}
	return nil
}

// writeState flushes, then writes a checkpoint.
func (e *Engine) writeState(ctx context.Context, changes []core.DocChange) error {
	if err := e.flush(ctx); err != nil {
		return err
	}
	return e.checkpoint(ctx, changes)
}
