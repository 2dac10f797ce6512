package rules

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/glob"
	"github.com/tidemark-db/tidemark/rules/outbox"
)

// Config is what an engine works with. Log, Ingest, Reader, Catalog and Clock are required.
type Config struct {
	Log      core.Log
	Ingest   core.Ingester
	Reader   core.Reader
	Catalog  core.Catalog
	Metadata Metadata           // nil = no entity is found by its label, and last inserts are unknown
	Renderer core.AlertRenderer // nil = actions with `render` send the built-in text
	Dir      string             // rules directory; it may be missing
	Files    fs.FS              // in place of Dir
	Clock    func() core.Time
	Zone     *time.Location // of `now` and of days; nil = UTC
	Server   string         // base URL, for links
	Service  string         // entity of rule errors, results of webhooks and timer samples; "" = tidemark
	Logger   *slog.Logger   // nil = discard
	Wait     time.Duration  // how long Passed waits at most; 0 = 250 ms
	MaxLag   time.Duration  // records older than this are skipped when the engine cannot keep up; 0 = one hour
	// CheckpointEvery is how many bytes of records, roughly, are read between checkpoints; 0 = 64 MiB.
	CheckpointEvery int64
	Outbox          outbox.Options // Reader, Ingest, Clock and Service are filled in
	Trace           func(Trace)    // called after every evaluation, on the engine's goroutine; nil = off
	NoDelivery      bool           // queue notifications, never send them: for tests and replays of history
	MaxWindows      int            // of all rules together; 0 = 100,000
	MaxSamples      int            // in all windows together; 0 = 5,000,000
}

// Metadata lists entities and metrics with what is known of their data; see core.Metadata.
type Metadata interface {
	Metrics(ctx context.Context, q core.MetaQuery) iter.Seq2[core.MetricInfo, error]
	Entities(ctx context.Context, q core.MetaQuery) iter.Seq2[core.EntityInfo, error]
}

// Engine evaluates rules. One goroutine, Run's, does everything; the methods of OpenAlerts and Passer may be called from any.
type Engine struct {
	ctx       context.Context // of the current step; nil between steps
	tail      core.Log
	ingest    core.Ingester
	reader    core.Reader
	catalog   core.Catalog
	metadata  Metadata
	renderer  core.AlertRenderer
	files     fs.FS
	now       func() core.Time
	zone      *time.Location
	serverURL string
	service   string
	log       *slog.Logger
	wait      time.Duration
	maxLag    core.Time
	every     int64
	outbox    *outbox.Outbox
	deliver   bool
	trace     func(Trace)
	limits    struct{ windows, samples int }

	interest atomic.Pointer[interest]
	passed   passed
	faults   faultLog
	notes    notes
	reloads  chan reloadRequest
	board    board

	engineState
}

// engineState belongs to the goroutine that calls Open, Run or Advance; others see what publish puts on the board.
type engineState struct {
	cursor   core.Position // last entry processed
	tick     core.Time     // last whole second whose work is done
	lastID   uint64        // alert id counter
	rules    map[string]*live
	windows  map[string]map[string]*window // by rule name and key
	open     map[uint64]*window
	due      schedule
	bySeries map[string][]*live // by metric
	messages []*live
	props    []*live
	timers   []*live
	plans    map[string]*plan
	byRef    []*plan
	keyBuf   []byte
	swept    core.Time
	read     int64 // bytes since the last checkpoint

	queue   []*outgoing
	written point    // effects up to here are in the log
	events  struct { // made at one point, so that they keep their order
		point point
		count int
	}
	replaying bool              // what is processed has been processed before
	known     map[string]uint64 // replay: event -> alert id
	orphans   []orphan
	needs     atomic.Uint64    // see Needs
	saved     core.Position    // cursor of the last checkpoint
	ownEntry  core.Position    // entry that holds it
	restart   []core.DocChange // what the first step writes
	started   bool
	unread    int // failures in a row to read the log
	stats     struct{ evaluations, skipped, expired, forward, actions uint64 }
	disabled  int       // rules
	kept      int       // rules in service that the files do not give at present
	touched   []*window // whose alert on the board is out of date
	total     struct{ windows, samples int }
	capped    struct{ windows, samples core.Time } // when the cap was last reported
}

// live is a rule in service.
type live struct {
	*Rule
	start    core.Position // the rule sees entries after this one
	state    ruleState
	entities []*glob.Pattern
	lastSent []core.Time // by action
	refused  core.Time   // when the cap on windows was last reported
}

// plan is what the engine knows about one series: which rules want it, and their windows.
type plan struct {
	key     core.SeriesKey
	entries []planEntry
	tags    map[string]string // of the key, made when an expression asks for it, never changed
}

type planEntry struct {
	rule *live
	win  *window
}

// interest is what Passed asks about a batch, without a lock.
type interest struct {
	metrics    map[string]bool
	messages   bool
	properties bool
}

// Defaults of Config.
const (
	defaultWait       = 250 * time.Millisecond
	defaultMaxLag     = time.Hour
	defaultCheckpoint = 64 << 20
	// restartGap is the longest stop that counts as a restart; after a longer one silence is not the sender's fault, and its timers start over.
	restartGap core.Time = 10_000
	// sweepEvery bounds how long samples and windows that nobody looks at stay in memory.
	sweepEvery core.Time = 60_000
	// idleWindow is how long an empty window in status CANCEL is kept.
	idleWindow core.Time = 7 * 24 * 3600 * 1000
	// maxPlans bounds the cache of series; a full one is dropped, and rebuilt from what is still sent.
	maxPlans = 200_000
	// A window takes about one kilobyte without its samples, and a sample 16 bytes: together the caps allow some 200 MB.
	defaultWindows = 100_000
	defaultSamples = 5_000_000
)

func newEngine(c Config) *Engine {
	e := &Engine{tail: c.Log, ingest: c.Ingest, reader: c.Reader, catalog: c.Catalog, metadata: c.Metadata, renderer: c.Renderer, files: c.Files, now: c.Clock, zone: c.Zone,
		serverURL: c.Server, service: c.Service, log: c.Logger, wait: c.Wait, maxLag: core.Time(c.MaxLag.Milliseconds()), every: c.CheckpointEvery,
		deliver: !c.NoDelivery, trace: c.Trace, reloads: make(chan reloadRequest)}
	if e.files == nil && c.Dir != "" {
		e.files = os.DirFS(c.Dir)
	}
	if e.zone == nil {
		e.zone = time.UTC
	}
	if e.service == "" {
		e.service = "tidemark"
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	if e.wait == 0 {
		e.wait = defaultWait
	}
	if e.maxLag == 0 {
		e.maxLag = core.Time(defaultMaxLag.Milliseconds())
	}
	if e.every == 0 {
		e.every = defaultCheckpoint
	}
	e.limits.windows, e.limits.samples = cmp.Or(c.MaxWindows, defaultWindows), cmp.Or(c.MaxSamples, defaultSamples)
	e.board.alerts = map[uint64]*core.Alert{}
	e.rules, e.windows, e.open, e.plans = map[string]*live{}, map[string]map[string]*window{}, map[uint64]*window{}, map[string]*plan{}
	e.known = map[string]uint64{}
	e.passed.changed = make(chan struct{})
	if e.deliver {
		o := c.Outbox
		o.Reader, o.Ingest, o.Clock = c.Reader, c.Ingest, c.Clock
		o.Service = e.service
		if o.Logger == nil {
			o.Logger = e.log
		}
		e.outbox = outbox.New(o)
	}
	return e
}

// adopt puts a rule into service.
func (e *Engine) adopt(r *Rule, start core.Position) {
	l := &live{Rule: r, start: start, lastSent: make([]core.Time, len(r.Actions))}
	for _, p := range r.Filter.Entities {
		l.entities = append(l.entities, glob.Compile(p))
	}
	r.compiled.ev.host = e
	var whole bool
	if l.state, whole = stateOf(r, start); !whole {
		e.reportText(r.Name, fmt.Sprintf("rule takes more than %d bytes with its endpoints and collections, too much to be kept in the database: "+
			"windows and open alerts would not survive a start with broken files; use smaller collections", maxState))
	}
	e.rules[r.Name] = l
	if e.windows[r.Name] == nil {
		e.windows[r.Name] = map[string]*window{}
	}
}

// index rebuilds what finds rules by what they watch.
func (e *Engine) index() {
	e.bySeries, e.messages, e.props, e.timers = map[string][]*live{}, nil, nil, nil
	in := &interest{metrics: map[string]bool{}}
	e.disabled = 0
	for _, name := range slices.Sorted(maps.Keys(e.rules)) {
		l := e.rules[name]
		if !l.Enabled {
			e.disabled++
			continue
		}
		switch l.Kind {
		case KindSeries:
			e.bySeries[l.Filter.Metric] = append(e.bySeries[l.Filter.Metric], l)
			in.metrics[l.Filter.Metric] = true
			if _, ok := timerPeriods[l.Filter.Metric]; ok {
				e.timers = append(e.timers, l)
			}
		case KindMessage:
			e.messages = append(e.messages, l)
			in.messages = true
		case KindProperty:
			e.props = append(e.props, l)
			in.properties = true
		}
	}
	e.interest.Store(in)
	clear(e.plans)
}

// entry processes one entry of the log: first the ticks up to its receive time, then its records in order.
func (e *Engine) entry(en core.Entry) {
	b := en.Batch
	e.ticks(b.Received)
	if en.Position == e.ownEntry && e.saved == e.cursor {
		e.saved = en.Position
	}
	e.cursor = en.Position
	now := max(b.Received, e.tick)
	for i := range b.Alerts {
		e.alertChange(&b.Alerts[i])
	}
	for i := range b.Documents {
		switch b.Documents[i].Kind {
		case core.DocEntity, core.DocMetric, core.DocGroup:
			clear(e.plans)
		}
	}
	c := cause{position: en.Position, depth: b.Origin.Depth}
	e.offerSamples(b, c, now)
	for i := range b.Messages {
		if m := &b.Messages[i]; m.Flags&core.ForRules != 0 && len(e.messages) > 0 {
			c.index++
			e.offerMessage(m, c, now)
		}
	}
	for i := range b.Properties {
		p := &b.Properties[i]
		if p.Type == core.EntityTagsType {
			clear(e.plans)
		}
		if p.Flags&core.ForRules != 0 && len(e.props) > 0 {
			c.index++
			e.offerProperty(p, c, now)
		}
	}
	e.read += size(b)
	e.sweep(now)
	e.publish()
}

// size is roughly what a batch takes in the journal.
func size(b *core.Batch) int64 {
	n := int64(16*b.Samples.Len() + 64*len(b.Keys) + 256*(len(b.Alerts)+len(b.Properties)))
	for i := range b.Messages {
		n += int64(64 + len(b.Messages[i].Text) + 32*len(b.Messages[i].Tags))
	}
	return n
}

func (e *Engine) alertChange(c *core.AlertChange) {
	w := e.open[c.Alert.ID]
	if w == nil {
		return
	}
	switch c.Kind {
	case core.AlertAcknowledged:
		w.acked = c.Alert.Acknowledged
		e.touch(w)
	case core.AlertDeleted:
		e.shut(w)
		e.schedule(w)
	}
}

func (e *Engine) offerSamples(b *core.Batch, c cause, now core.Time) {
	if len(e.bySeries) == 0 || b.Samples.Len() == 0 {
		return
	}
	e.byRef = append(e.byRef[:0], make([]*plan, len(b.Keys))...)
	wanted := false
	for i := range b.Keys {
		if rules := e.bySeries[b.Keys[i].Metric]; rules != nil {
			e.byRef[i] = e.plan(&b.Keys[i], rules)
			wanted = wanted || len(e.byRef[i].entries) > 0
		}
	}
	if !wanted {
		return
	}
	s := &b.Samples
	text := 0
	cmd := command{received: now, batch: b}
	for i, ref := range s.Series {
		p := e.byRef[ref]
		if p == nil || s.Flags[i]&core.ForRules == 0 {
			continue
		}
		cmd.entity, cmd.metric, cmd.tags, cmd.plan = p.key.Entity, p.key.Metric, p.key.Tags, p
		cmd.value, cmd.time, cmd.index = s.Values[i], s.Times[i], i
		cmd.text = ""
		for text < len(s.Texts) && s.Texts[text].Index < uint32(i) {
			text++
		}
		if text < len(s.Texts) && s.Texts[text].Index == uint32(i) {
			cmd.text = strings.Clone(s.Texts[text].Text)
		}
		c.index = i
		for j := range p.entries {
			e.offer(&p.entries[j], &cmd, c)
		}
	}
}

// plan finds or makes the plan of a series. Filters that depend on the series alone are decided here, once.
func (e *Engine) plan(k *core.SeriesKey, rules []*live) *plan {
	e.keyBuf = k.Append(e.keyBuf[:0])
	if p, ok := e.plans[string(e.keyBuf)]; ok {
		return p
	}
	if len(e.plans) >= maxPlans {
		clear(e.plans)
	}
	p := &plan{key: k.Clone()}
	e.plans[string(e.keyBuf)] = p
	if m, ok := e.catalog.Metric(p.key.Metric); ok && !m.Enabled {
		return p
	}
	for _, l := range rules {
		if e.entityPasses(l, p.key.Entity) {
			p.entries = append(p.entries, planEntry{rule: l})
		}
	}
	return p
}

// entityPasses is filters 2, 5 and 6 of the contract: status, names, groups.
func (e *Engine) entityPasses(l *live, entity string) bool {
	if ent, ok := e.catalog.Entity(entity); ok && !ent.Enabled {
		return false
	}
	if len(l.entities) > 0 && !slices.ContainsFunc(l.entities, func(p *glob.Pattern) bool { return p.Match(entity) }) {
		return false
	}
	return len(l.Filter.Groups) == 0 || slices.ContainsFunc(l.Filter.Groups, func(g string) bool { return e.catalog.Member(entity, g) })
}

func (e *Engine) offerMessage(m *core.Message, c cause, now core.Time) {
	cmd := command{entity: m.Entity, metric: "message", tags: m.Tags, text: m.Text, time: m.Time, received: now, typ: m.Type, source: m.Source,
		severity: m.Severity}
	for _, l := range e.messages {
		if (l.Filter.Type == "" || l.Filter.Type == strings.ToLower(m.Type)) && (l.Filter.Source == "" || l.Filter.Source == strings.ToLower(m.Source)) &&
			e.entityPasses(l, m.Entity) {
			e.offer(&planEntry{rule: l}, &cmd, c)
		}
	}
}

func (e *Engine) offerProperty(p *core.Property, c cause, now core.Time) {
	cmd := command{entity: p.Entity, metric: "property", tags: p.Key, time: p.Time, received: now, typ: p.Type, keys: p.Key, props: p.Tags}
	for _, l := range e.props {
		if (l.Filter.Type == "" || l.Filter.Type == p.Type) && e.entityPasses(l, p.Entity) {
			e.offer(&planEntry{rule: l}, &cmd, c)
		}
	}
}

// offer takes one command through the remaining filters, into its window, and evaluates.
func (e *Engine) offer(pe *planEntry, cmd *command, c cause) {
	l := pe.rule
	if e.cursor <= l.start && c.position != 0 {
		return
	}
	now := cmd.received
	switch m := core.Time(l.Filter.MaxOffset.Milliseconds()); {
	case m <= 0:
	case now-cmd.time > m:
		e.stats.expired++
		return
	case cmd.time-now > m:
		e.stats.forward++
		return
	}
	ev := l.compiled.ev
	if f := l.compiled.filter; f != nil {
		ev.begin(nil, cmd, now)
		ev.phase = inFilter
		ok, err := ev.truth(f)
		if err != nil {
			ev.report(fmt.Errorf("filter: %w", firstLine(err)))
		}
		if err != nil || !ok {
			return
		}
	}
	w := pe.win
	if w == nil || w.dropped {
		if w = e.windowOf(l, cmd); w == nil {
			return
		}
		pe.win = w
	}
	if l.Filter.InOrderOnly && w.len() > 0 && cmd.time < w.lastTime() {
		return
	}
	if l.Window.Timed() {
		start := now - l.Window.Span()
		e.expire(w, now, c)
		if cmd.time < start {
			return
		}
	}
	e.addCommand(w, cmd, now)
	ev.begin(w, &w.last, now)
	w.last.batch, w.last.index = cmd.batch, cmd.index
	e.evaluate(w, c)
	w.last.batch = nil
	if l.Window.CheckOnExit {
		e.schedule(w)
	}
}

func (e *Engine) addCommand(w *window, cmd *command, now core.Time) {
	most := w.rule.Window.Count
	if most == 0 {
		most = w.rule.Window.MaxSamples
	}
	if e.total.samples >= e.limits.samples && w.len() > 0 && w.len() < most {
		// A window that stops growing still evaluates; one that took no more samples would fall silent.
		most = w.len()
		if capDue(&e.capped.samples, now) {
			reportCap(w.rule, cmd, "windows of all rules hold %d samples: the oldest of %s give way to new ones; shorten the windows of rules or raise rules.samples",
				e.limits.samples, w.key)
		}
	}
	w.add(cmd.time, cmd.value, most)
	e.count(w)
	if w.open() {
		e.touch(w)
	}
	w.previousAdd, w.addTime, w.commandTime, w.lastEvent = w.addTime, now, cmd.time, now
	if w.received == 0 {
		w.received = now
	}
	w.hold = 0
	if w.rule.Kind == KindSeries {
		w.last = *cmd
		return
	}
	before := w.last.props
	w.last = cmd.clone()
	if w.rule.Kind == KindProperty {
		w.previous, w.before = w.current, before
		w.current = applyProperty(w.current, w.last.props)
	}
}

// applyProperty returns the record after an update: named tags are written, those with an empty value removed, others stay.
func applyProperty(record, update core.Tags) core.Tags {
	out := slices.Clone(record)
	for _, t := range update {
		i := slices.IndexFunc(out, func(o core.Tag) bool { return o.Name == t.Name })
		switch {
		case t.Value == "" && i >= 0:
			out = slices.Delete(out, i, i+1)
		case t.Value == "":
		case i >= 0:
			out[i].Value = t.Value
		default:
			out = append(out, t)
		}
	}
	return out.Normal()
}

// windowOf finds or creates the window of a command; nil when the rule has too many.
func (e *Engine) windowOf(l *live, cmd *command) *window {
	tags := l.groupTags(cmd)
	key := l.windowKey(cmd.metric, cmd.entity, tags)
	windows := e.windows[l.Name]
	if w := windows[key]; w != nil {
		return w
	}
	if len(windows) >= l.Window.MaxWindows {
		if capDue(&l.refused, cmd.received) {
			reportCap(l.Rule, cmd, "more than %d windows: %s is refused; group by fewer tags or raise window.max_windows", l.Window.MaxWindows, key)
		}
		return nil
	}
	if e.total.windows >= e.limits.windows {
		if capDue(&e.capped.windows, cmd.received) {
			reportCap(l.Rule, cmd, "rules have %d windows altogether: %s is refused; group by fewer tags or raise rules.windows", e.limits.windows, key)
		}
		return nil
	}
	w := newWindow(l.Rule, key)
	w.metric, w.tags = strings.Clone(cmd.metric), tags.Clone()
	if l.Group.Entity {
		w.entity = strings.Clone(cmd.entity)
	}
	e.addWindow(w)
	if l.Window.LoadHistory {
		e.loadHistory(w, cmd)
		e.count(w)
	}
	if l.Kind == KindProperty {
		e.loadProperty(w, cmd)
	}
	return w
}

// capDue reports whether a cap that is met is to be reported at now; last is when it was reported before.
func capDue(last *core.Time, now core.Time) bool {
	if *last != 0 && now-*last < capReports {
		return false
	}
	*last = now
	return true
}

func reportCap(r *Rule, cmd *command, format string, args ...any) {
	r.compiled.ev.begin(nil, cmd, cmd.received)
	r.compiled.ev.report(fmt.Errorf(format, args...))
}

// capReports is the pause between reports of a cap.
const capReports core.Time = 60_000

func (e *Engine) addWindow(w *window) {
	e.windows[w.rule.Name][w.key] = w
	e.total.windows++
	e.count(w)
}

// forget takes a window that leaves the engine out of the totals.
func (e *Engine) forget(w *window) {
	e.total.windows--
	e.total.samples -= w.counted
	w.counted, w.dropped = 0, true
}

// count brings the total of samples up to date with w.
func (e *Engine) count(w *window) {
	e.total.samples += w.len() - w.counted
	w.counted = w.len()
}

// schedule puts w at its next tick: a delayed action or the exit of its oldest sample.
func (e *Engine) schedule(w *window) {
	var due core.Time
	for i := range w.actions {
		if p := w.actions[i].pending; p != 0 && (due == 0 || p < due) {
			due = p
		}
	}
	due = wholeSecond(due)
	if w.rule.Window.CheckOnExit && w.len() > 0 {
		exit := max((w.firstTime()+w.rule.Window.Span())/1000*1000+1000, wholeSecond(w.hold))
		if due == 0 || exit < due {
			due = exit
		}
	}
	switch {
	case due == w.due && w.place >= 0:
	case due == 0 && w.place >= 0:
		heap.Remove(&e.due, w.place)
	case due == 0:
	case w.place >= 0:
		w.due = due
		heap.Fix(&e.due, w.place)
	default:
		w.due = due
		heap.Push(&e.due, w)
	}
	w.due = due
}

// wholeSecond rounds up.
func wholeSecond(t core.Time) core.Time { return (t + 999) / 1000 * 1000 }

// unschedule takes w out of the schedule.
func (e *Engine) unschedule(w *window) {
	if w.place >= 0 {
		heap.Remove(&e.due, w.place)
	}
	w.due = 0
}
