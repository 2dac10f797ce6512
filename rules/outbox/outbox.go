// Package outbox delivers webhooks: at least once, with one id over all attempts.
//
// Notifications are documents of kind DocOutbox. Whoever makes one writes it together with what it tells of, in one batch, and hands it to Notify when
// that batch is in the log; Run also reads those that an earlier process left. A delivered notification is deleted, one that failed for good becomes a
// document of kind DocDeadLetter with the reason. Those of one lane go one after the other, in the order in which they were made. Requests follow
// Standard Webhooks (webhook-id, webhook-timestamp, webhook-signature).
package outbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

// Options are the settings of an outbox; zero values are the defaults. Reader, Ingest and Clock are required.
type Options struct {
	Reader  core.Reader
	Ingest  core.Ingester
	Clock   func() core.Time
	Logger  *slog.Logger
	Secrets func(name string) (value string, ok bool)
	// SigningSecret names the secret that signs requests whose endpoint has none; "" = WEBHOOK_SECRET. Without such a secret they go unsigned.
	SigningSecret string
	// Backoff are the waits between attempts; nil = 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h, as Standard Webhooks suggests.
	Backoff   []time.Duration
	PerTarget int               // requests to one host at a time; 0 = 2
	AtOnce    int               // requests at a time; 0 = 16
	Service   string            // entity of the messages that say what became of notifications; "" = tidemark
	Transport http.RoundTripper // for tests; nil = the network, with the checks of dial.go
}

func (o *Options) defaults() {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.SigningSecret = cmp.Or(o.SigningSecret, "WEBHOOK_SECRET")
	o.Service = cmp.Or(o.Service, "tidemark")
	o.PerTarget, o.AtOnce = cmp.Or(o.PerTarget, 2), cmp.Or(o.AtOnce, 16)
	if o.Backoff == nil {
		o.Backoff = []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour,
			20 * time.Hour, 24 * time.Hour}
	}
}

// Outbox is the queue. Its methods may be called from any goroutine.
type Outbox struct {
	o     Options
	plain http.RoundTripper
	loose http.RoundTripper // does not verify certificates
	wake  chan struct{}

	mu struct {
		sync.Mutex // never held across I/O
		queue      queue
		early      []Notification  // those that came before Run knew what an earlier process left, which goes first
		running    bool            // Run knows
		known      map[string]bool // ids that are early, in the queue or in flight
		total      int             // requests in flight
		disabled   map[string]bool // addresses that answered 410
		counts     counts
	}
}

type counts struct{ delivered, failed, dead uint64 }

// New returns an outbox that Run will serve.
func New(o Options) *Outbox {
	o.defaults()
	b := &Outbox{o: o, wake: make(chan struct{}, 1), plain: o.Transport, loose: o.Transport}
	if o.Transport == nil {
		b.plain, b.loose = newTransport(verified), newTransport(unverified)
	}
	b.mu.known, b.mu.disabled = map[string]bool{}, map[string]bool{}
	b.mu.queue = queue{hosts: map[string]*host{}, lanes: map[string]*lane{}, ready: hostHeap{perTarget: o.PerTarget}}
	return b
}

// Notify queues notifications whose documents are in the log. Those that are queued already are ignored.
func (b *Outbox) Notify(list []Notification) {
	b.mu.Lock()
	for _, n := range list {
		switch {
		case b.mu.known[n.ID]:
			continue
		case b.mu.running:
			b.mu.queue.add(&item{n: n})
		default:
			b.mu.early = append(b.mu.early, n)
		}
		b.mu.known[n.ID] = true
	}
	b.mu.Unlock()
	b.nudge()
}

func (b *Outbox) nudge() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Run delivers until ctx ends; what is then in flight is cut off and stays queued. When it returns, no goroutine of this package is left.
func (b *Outbox) Run(ctx context.Context) error {
	defer closeIdle(b.plain, b.loose)
	if err := b.readPending(ctx); err != nil {
		return fmt.Errorf("outbox: cannot read what is pending: %w", err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		for it := b.take(); it != nil; it = b.take() {
			wg.Go(func() {
				b.attempt(ctx, it)
				b.nudge()
			})
		}
		timer := time.NewTimer(b.untilNext())
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-b.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// disabledPrefix marks dead letters that are not notifications: an address that answered 410 Gone.
const disabledPrefix = "disabled "

func (b *Outbox) readPending(ctx context.Context) error {
	var list []Notification
	for d, err := range b.o.Reader.Documents(ctx, core.DocumentQuery{Kind: core.DocOutbox}) {
		if err != nil {
			return err
		}
		n, err := Decode(d.Body)
		if err != nil {
			b.o.Logger.Error("outbox: skipping a notification", "id", d.Key, "error", err)
			continue
		}
		list = append(list, n)
	}
	for d, err := range b.o.Reader.Documents(ctx, core.DocumentQuery{Kind: core.DocDeadLetter}) {
		if err != nil {
			return err
		}
		if address, ok := strings.CutPrefix(d.Key, disabledPrefix); ok {
			b.mu.Lock()
			b.mu.disabled[strings.Clone(address)] = true
			b.mu.Unlock()
		}
	}
	b.Notify(list)
	b.begin()
	return nil
}

// begin queues what there is in the order in which it was made.
func (b *Outbox) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	slices.SortStableFunc(b.mu.early, func(a, b Notification) int {
		return cmp.Or(a.Order.compare(b.Order), cmp.Compare(a.Created, b.Created))
	})
	for _, n := range b.mu.early {
		b.mu.queue.add(&item{n: n})
	}
	b.mu.early, b.mu.running = nil, true
}

// take removes the first notification that is due, whose host is free and whose predecessors have come to their end. nil when there is none.
func (b *Outbox) take() *item {
	now := b.o.Clock()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.total >= b.o.AtOnce {
		return nil
	}
	it := b.mu.queue.take(now)
	if it != nil {
		b.mu.total++
	}
	return it
}

// untilNext is how long nothing becomes due.
func (b *Outbox) untilNext() time.Duration {
	const idle = time.Hour
	now := b.o.Clock()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.queue.ready.Len() == 0 || b.mu.total >= b.o.AtOnce { // finishing requests wake the loop
		return idle
	}
	due := b.mu.queue.ready.hosts[0].due()
	return min(idle, time.Duration(max(due-now, 0))*time.Millisecond)
}

// attempt sends one notification and settles what becomes of it.
func (b *Outbox) attempt(ctx context.Context, it *item) {
	host := hostOf(it.n.Request.URL)
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.mu.total--
		b.mu.queue.landed(host)
	}()
	if it.settled != nil {
		b.settle(ctx, it)
		return
	}
	b.mu.Lock()
	gone := b.mu.disabled[addressOf(it.n.Request.URL)]
	b.mu.Unlock()
	if gone {
		b.bury(ctx, it, "the address answered 410 Gone before; it is disabled until it is enabled or changed")
		return
	}
	answer, err := b.send(ctx, &it.n)
	if ctx.Err() != nil {
		b.requeue(it, it.n.Next) // shutting down: the attempt does not count
		return
	}
	it.n.Attempts++
	switch {
	case err == nil:
		b.count(func(c *counts) { c.delivered++ })
		b.end(ctx, it, b.result(it.n, answer.status, nil))
	case answer.status == http.StatusGone:
		b.disable(ctx, it)
	default:
		b.count(func(c *counts) { c.failed++ })
		b.retry(ctx, it, answer, err)
	}
}

func (b *Outbox) count(f func(*counts)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(&b.mu.counts)
}

// end deletes the document of a notification, together with extra changes, and stores the result.
func (b *Outbox) end(ctx context.Context, it *item, result core.Message, extra ...core.DocChange) {
	it.result = result
	it.settled = append(extra, core.DocChange{Kind: core.DocOutbox, Key: it.n.ID, Op: core.DocDelete})
	b.settle(ctx, it)
}

// settle writes the end of a notification and lets the next of its lane go. While the log refuses, it is tried again every minute: the next must not go
// before, or after a restart it would be overtaken.
func (b *Outbox) settle(ctx context.Context, it *item) {
	if err := b.write(ctx, it.settled, it.result); err != nil {
		b.o.Logger.Warn("outbox: notification is settled, but not deleted", "id", it.n.ID, "error", err)
		b.requeue(it, b.o.Clock()+core.Time(time.Minute.Milliseconds()))
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.mu.known, it.n.ID)
	b.mu.queue.release(it.n.Lane)
}

func (b *Outbox) requeue(it *item, next core.Time) {
	it.n.Next = next
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.queue.wait(it)
}

// retry schedules the next attempt, or gives up.
func (b *Outbox) retry(ctx context.Context, it *item, a answer, err error) {
	retries := len(b.o.Backoff)
	if it.n.Request.Retries >= 0 {
		retries = it.n.Request.Retries
	}
	if it.n.Attempts > retries || a.final {
		b.bury(ctx, it, fmt.Sprintf("attempt %d: %v", it.n.Attempts, err))
		return
	}
	var told []core.Message
	if it.n.Attempts == 1 { // the others would tell the same again: the end of it is told by bury or by a delivery
		b.o.Logger.Error("outbox: attempt failed, it will be repeated", append(it.n.attributes(), "reason", err)...)
		told = append(told, b.result(it.n, a.status, err))
	}
	wait := b.o.Backoff[min(it.n.Attempts, len(b.o.Backoff))-1]
	wait = time.Duration(float64(wait) * (0.8 + 0.4*rand.Float64())) // spread, so that a target that comes back is not hit at once
	now := b.o.Clock()
	if a.retryAfter > 0 {
		wait = max(wait, a.retryAfter)
		b.mu.Lock()
		b.mu.queue.pause(hostOf(it.n.Request.URL), now+core.Time(a.retryAfter.Milliseconds()))
		b.mu.Unlock()
	}
	it.n.Error = err.Error()
	it.n.Next = now + core.Time(wait.Milliseconds())
	if err := b.write(ctx, []core.DocChange{it.n.Document()}, told...); err != nil {
		b.o.Logger.Warn("outbox: failed attempt could not be recorded", "id", it.n.ID, "error", err)
	}
	b.requeue(it, it.n.Next)
}

// bury turns a notification into a dead letter.
func (b *Outbox) bury(ctx context.Context, it *item, reason string) {
	it.n.Error = reason
	b.count(func(c *counts) { c.dead++ })
	b.o.Logger.Error("outbox: notification given up", append(it.n.attributes(), "reason", reason)...)
	b.end(ctx, it, b.result(it.n, 0, errors.New(reason)), it.n.document(core.DocDeadLetter))
}

// disable stops all requests to an address that is gone, for good.
func (b *Outbox) disable(ctx context.Context, it *item) {
	address := addressOf(it.n.Request.URL)
	b.mu.Lock()
	b.mu.disabled[address] = true
	b.mu.Unlock()
	body, _ := json.Marshal(map[string]any{"address": address, "endpoint": it.n.Endpoint, "time": b.o.Clock()}) // plain values
	if err := b.write(ctx, []core.DocChange{{Kind: core.DocDeadLetter, Key: disabledPrefix + address, Op: core.DocPut, Body: body}}); err != nil {
		b.o.Logger.Warn("outbox: 410 could not be recorded", "address", address, "error", err)
	}
	b.bury(ctx, it, "410 Gone: the endpoint is disabled")
}

// Enable lifts what a 410 did to an address, which is a URL without its query.
func (b *Outbox) Enable(ctx context.Context, address string) error {
	address = addressOf(address)
	if err := b.write(ctx, []core.DocChange{{Kind: core.DocDeadLetter, Key: disabledPrefix + address, Op: core.DocDelete}}); err != nil {
		return fmt.Errorf("outbox: cannot enable %s: %w", address, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.mu.disabled, address)
	return nil
}

func (b *Outbox) write(ctx context.Context, changes []core.DocChange, messages ...core.Message) error {
	_, err := b.o.Ingest.Ingest(ctx, &core.Batch{Origin: core.SystemOrigin(0), Documents: slices.Clone(changes), Messages: messages})
	return err
}

// result is the message of what became of a notification: that it was delivered, that its first attempt failed, or that it was given up. Rules do not
// see it, or a rule on messages could notify for ever. Of the URL it names the host alone, as paths hold tokens of some services.
func (b *Outbox) result(n Notification, status int, err error) core.Message {
	m := core.Message{Time: b.o.Clock(), Entity: b.o.Service, Type: "notification", Source: "webhook", Severity: core.Normal, Flags: core.Stored,
		Text: fmt.Sprintf("%s %s: %d", n.Request.Method, hostOf(n.Request.URL), status),
		Tags: core.Tags{{Name: "action", Value: n.Action}, {Name: "id", Value: n.ID}, {Name: "rule", Value: n.Rule}}}
	if err != nil {
		m.Severity = core.Critical
		m.Text = fmt.Sprintf("%s %s: %v", n.Request.Method, hostOf(n.Request.URL), err)
	}
	return m
}

// Status is the state of the queue for /health.
type Status struct {
	Pending   int      `json:"pending"`
	InFlight  int      `json:"inFlight"`
	Delivered uint64   `json:"delivered"`
	Failed    uint64   `json:"failed"` // attempts that will be repeated, or were
	Dead      uint64   `json:"dead"`   // given up
	Disabled  []string `json:"disabled,omitempty"`
}

// Status returns counts as of now.
func (b *Outbox) Status() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Status{Pending: len(b.mu.known) - b.mu.total, InFlight: b.mu.total, Delivered: b.mu.counts.delivered, Failed: b.mu.counts.failed, Dead: b.mu.counts.dead,
		Disabled: slices.Sorted(maps.Keys(b.mu.disabled))}
}
