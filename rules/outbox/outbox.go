// Package outbox delivers webhooks: at least once, with one id over all attempts.
//
// Notifications are documents of kind DocOutbox. Whoever makes one writes it together with what it tells of, in one batch, and hands it to Notify when
// that batch is in the log; Run also reads those that an earlier process left. A delivered notification is deleted, one that failed for good becomes a
// document of kind DocDeadLetter with the reason. Requests follow Standard Webhooks (webhook-id, webhook-timestamp, webhook-signature).
package outbox

import (
	"cmp"
	"container/heap"
	"context"
	"encoding/json"
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
	Results   bool              // store a message of type notification for every attempt
	Service   string            // entity of those messages; "" = tidemark
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
		known      map[string]bool // ids in the queue or in flight
		flying     map[string]int  // requests by host
		total      int
		paused     map[string]core.Time // hosts that asked for a pause
		disabled   map[string]bool      // addresses that answered 410
		counts     counts
	}
}

type counts struct{ delivered, failed, dead uint64 }

// item is a notification that waits for its time.
type item struct {
	n     Notification
	done  bool // delivered, but its document could not be deleted yet
	order uint64
}

// queue is a heap by time, then by arrival.
type queue struct {
	items []*item
	next  uint64
}

func (q *queue) Len() int { return len(q.items) }
func (q *queue) Less(i, j int) bool {
	a, b := q.items[i], q.items[j]
	return cmp.Or(cmp.Compare(a.n.Next, b.n.Next), cmp.Compare(a.order, b.order)) < 0
}
func (q *queue) Swap(i, j int) { q.items[i], q.items[j] = q.items[j], q.items[i] }

// Push and Pop implement heap.Interface.
func (q *queue) Push(x any) { q.items = append(q.items, x.(*item)) }
func (q *queue) Pop() any {
	last := len(q.items) - 1
	it := q.items[last]
	q.items[last] = nil
	q.items = q.items[:last]
	return it
}

// New returns an outbox that Run will serve.
func New(o Options) *Outbox {
	o.defaults()
	b := &Outbox{o: o, wake: make(chan struct{}, 1), plain: o.Transport, loose: o.Transport}
	if o.Transport == nil {
		b.plain, b.loose = newTransport(verified), newTransport(unverified)
	}
	b.mu.known, b.mu.flying, b.mu.paused, b.mu.disabled = map[string]bool{}, map[string]int{}, map[string]core.Time{}, map[string]bool{}
	return b
}

// Notify queues notifications whose documents are in the log. Those that are queued already are ignored.
func (b *Outbox) Notify(list []Notification) {
	b.mu.Lock()
	for _, n := range list {
		if !b.mu.known[n.ID] {
			b.mu.known[n.ID] = true
			b.push(&item{n: n})
		}
	}
	b.mu.Unlock()
	b.nudge()
}

// push is called with mu held.
func (b *Outbox) push(it *item) {
	b.mu.queue.next++
	it.order = b.mu.queue.next
	heap.Push(&b.mu.queue, it)
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
	slices.SortStableFunc(list, func(a, b Notification) int { return cmp.Compare(a.Created, b.Created) })
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
	return nil
}

// take removes the first notification that is due and whose host is free. nil when there is none.
func (b *Outbox) take() *item {
	now := b.o.Clock()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.total >= b.o.AtOnce {
		return nil
	}
	var busy []*item
	defer func() {
		for _, it := range busy {
			heap.Push(&b.mu.queue, it)
		}
	}()
	for b.mu.queue.Len() > 0 && b.mu.queue.items[0].n.Next <= now {
		it := heap.Pop(&b.mu.queue).(*item)
		host := hostOf(it.n.Request.URL)
		if b.mu.flying[host] >= b.o.PerTarget || b.mu.paused[host] > now {
			busy = append(busy, it)
			continue
		}
		b.mu.flying[host]++
		b.mu.total++
		return it
	}
	return nil
}

// untilNext is how long nothing becomes due.
func (b *Outbox) untilNext() time.Duration {
	const idle = time.Hour
	now := b.o.Clock()
	b.mu.Lock()
	defer b.mu.Unlock()
	wait := idle
	for _, it := range b.mu.queue.items {
		due := max(it.n.Next, b.mu.paused[hostOf(it.n.Request.URL)])
		if due > now { // what is due already waits for a place, and finishing requests wake the loop
			wait = min(wait, time.Duration(due-now)*time.Millisecond)
		}
	}
	return wait
}

// attempt sends one notification and settles what becomes of it.
func (b *Outbox) attempt(ctx context.Context, it *item) {
	host := hostOf(it.n.Request.URL)
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.mu.total--
		if b.mu.flying[host]--; b.mu.flying[host] == 0 {
			delete(b.mu.flying, host)
		}
	}()
	if it.done {
		b.settle(ctx, it, nil)
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
	b.report(ctx, it.n, answer, err)
	switch {
	case err == nil:
		it.done = true
		b.count(func(c *counts) { c.delivered++ })
		b.settle(ctx, it, nil)
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

// settle deletes the document of a delivered notification, together with extra changes. While the log refuses, it is tried again every minute.
func (b *Outbox) settle(ctx context.Context, it *item, extra []core.DocChange) {
	changes := append(extra, core.DocChange{Kind: core.DocOutbox, Key: it.n.ID, Op: core.DocDelete})
	if err := b.write(ctx, changes); err != nil {
		b.o.Logger.Warn("outbox: notification is settled, but not deleted", "id", it.n.ID, "error", err)
		it.done = true
		b.requeue(it, b.o.Clock()+core.Time(time.Minute.Milliseconds()))
		return
	}
	b.mu.Lock()
	delete(b.mu.known, it.n.ID)
	b.mu.Unlock()
}

func (b *Outbox) requeue(it *item, next core.Time) {
	it.n.Next = next
	b.mu.Lock()
	b.push(it)
	b.mu.Unlock()
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
	wait := b.o.Backoff[min(it.n.Attempts, len(b.o.Backoff))-1]
	wait = time.Duration(float64(wait) * (0.8 + 0.4*rand.Float64())) // spread, so that a target that comes back is not hit at once
	now := b.o.Clock()
	if a.retryAfter > 0 {
		wait = max(wait, a.retryAfter)
		b.mu.Lock()
		b.mu.paused[hostOf(it.n.Request.URL)] = now + core.Time(a.retryAfter.Milliseconds())
		b.mu.Unlock()
	}
	it.n.Error = err.Error()
	it.n.Next = now + core.Time(wait.Milliseconds())
	if err := b.write(ctx, []core.DocChange{it.n.Document()}); err != nil {
		b.o.Logger.Warn("outbox: failed attempt could not be recorded", "id", it.n.ID, "error", err)
	}
	b.requeue(it, it.n.Next)
}

// bury turns a notification into a dead letter.
func (b *Outbox) bury(ctx context.Context, it *item, reason string) {
	it.n.Error = reason
	b.count(func(c *counts) { c.dead++ })
	b.o.Logger.Error("outbox: notification given up", "id", it.n.ID, "rule", it.n.Rule, "action", it.n.Action, "endpoint", it.n.Endpoint, "reason", reason)
	b.settle(ctx, it, []core.DocChange{it.n.document(core.DocDeadLetter)})
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

func (b *Outbox) write(ctx context.Context, changes []core.DocChange) error {
	_, err := b.o.Ingest.Ingest(ctx, &core.Batch{Origin: core.SystemOrigin(0), Documents: changes})
	return err
}

// report stores the result of an attempt as a message, where that is wanted. Rules do not see it, or a rule on messages could notify for ever.
func (b *Outbox) report(ctx context.Context, n Notification, a answer, err error) {
	if !b.o.Results {
		return
	}
	m := core.Message{Time: b.o.Clock(), Entity: b.o.Service, Type: "notification", Source: "webhook", Severity: core.Normal, Flags: core.Stored,
		Text: fmt.Sprintf("%s %s: %d", n.Request.Method, addressOf(n.Request.URL), a.status),
		Tags: core.Tags{{Name: "action", Value: n.Action}, {Name: "id", Value: n.ID}, {Name: "rule", Value: n.Rule}}}
	if err != nil {
		m.Severity = core.Critical
		m.Text = fmt.Sprintf("%s %s: %v", n.Request.Method, addressOf(n.Request.URL), err)
	}
	if _, err := b.o.Ingest.Ingest(ctx, &core.Batch{Origin: core.SystemOrigin(0), Messages: []core.Message{m}}); err != nil {
		b.o.Logger.Warn("outbox: result could not be stored", "id", n.ID, "error", err)
	}
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
	return Status{Pending: b.mu.queue.Len(), InFlight: b.mu.total, Delivered: b.mu.counts.delivered, Failed: b.mu.counts.failed, Dead: b.mu.counts.dead,
		Disabled: slices.Sorted(maps.Keys(b.mu.disabled))}
}
