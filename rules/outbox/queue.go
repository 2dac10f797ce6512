package outbox

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/tidemark-db/tidemark/core"
)

// item is a notification in the queue or in flight.
type item struct {
	n       Notification
	settled []core.DocChange // what its end writes, while the log has not taken that
	result  core.Message     // likewise
	order   uint64           // of arrival
}

// queue holds the notifications that are not in flight. The first of each lane waits at its host; those behind it wait in the lane, which costs nothing
// until their turn comes. All operations take logarithmic time, however many lanes and notifications there are.
type queue struct {
	hosts map[string]*host
	ready hostHeap         // hosts with something to send and a free place
	lanes map[string]*lane // those with a notification in the queue or in flight
	next  uint64
}

// lane is the notifications of one action about one window, in the order in which they were made.
type lane struct{ waiting []*item } // behind the first

// host is a target, with the requests that wait for it.
type host struct {
	name   string
	items  itemHeap
	flying int
	paused core.Time // it asked for a pause until then
	index  int       // in the heap of hosts; -1 = not there
}

// due is when the first request to h may go.
func (h *host) due() core.Time { return max(h.items[0].n.Next, h.paused) }

// add queues it, behind the others of its lane.
func (q *queue) add(it *item) {
	q.next++
	it.order = q.next
	if name := it.n.Lane; name != "" {
		if l := q.lanes[name]; l != nil {
			at, _ := slices.BinarySearchFunc(l.waiting, it, func(a, b *item) int {
				return cmp.Or(a.n.Order.compare(b.n.Order), cmp.Compare(a.order, b.order))
			})
			l.waiting = slices.Insert(l.waiting, at, it)
			return
		}
		q.lanes[name] = &lane{}
	}
	q.wait(it)
}

// release lets the next of a lane go, when the one before it has come to its end.
func (q *queue) release(name string) {
	l := q.lanes[name]
	switch {
	case l == nil:
	case len(l.waiting) == 0:
		delete(q.lanes, name)
	default:
		it := l.waiting[0]
		l.waiting[0] = nil
		l.waiting = l.waiting[1:]
		q.wait(it)
	}
}

// wait puts the first of a lane where it waits for its time and a free place.
func (q *queue) wait(it *item) {
	h := q.host(hostOf(it.n.Request.URL))
	heap.Push(&h.items, it)
	q.place(h)
}

func (q *queue) host(name string) *host {
	h := q.hosts[name]
	if h == nil {
		h = &host{name: name, index: -1}
		q.hosts[name] = h
	}
	return h
}

// place puts h where it belongs after a change. A host of which nothing is left to know is forgotten.
func (q *queue) place(h *host) {
	wanted := len(h.items) > 0 && h.flying < q.ready.perTarget
	switch {
	case wanted && h.index < 0:
		heap.Push(&q.ready, h)
	case wanted:
		heap.Fix(&q.ready, h.index)
	case h.index >= 0:
		heap.Remove(&q.ready, h.index)
	}
	if len(h.items) == 0 && h.flying == 0 && h.paused == 0 {
		delete(q.hosts, h.name)
	}
}

// take removes the first notification that is due at a host with a free place. nil when there is none.
func (q *queue) take(now core.Time) *item {
	if q.ready.Len() == 0 || q.ready.hosts[0].due() > now {
		return nil
	}
	h := q.ready.hosts[0]
	it := heap.Pop(&h.items).(*item)
	h.paused = 0 // it is over
	h.flying++
	q.place(h)
	return it
}

// landed frees the place of a request.
func (q *queue) landed(name string) {
	h := q.host(name)
	h.flying--
	q.place(h)
}

// pause holds back all requests to a host.
func (q *queue) pause(name string, until core.Time) {
	h := q.host(name)
	h.paused = until
	q.place(h)
}

// itemHeap is ordered by time, then by arrival.
type itemHeap []*item

// itemHeap implements heap.Interface.
func (q itemHeap) Len() int           { return len(q) }
func (q itemHeap) Less(i, j int) bool { return q[i].compare(q[j]) < 0 }
func (q itemHeap) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *itemHeap) Push(x any)        { *q = append(*q, x.(*item)) }
func (q *itemHeap) Pop() any          { return pop((*[]*item)(q)) }

func (it *item) compare(o *item) int {
	return cmp.Or(cmp.Compare(it.n.Next, o.n.Next), cmp.Compare(it.order, o.order))
}

// hostHeap is ordered by when the first request of a host may go.
type hostHeap struct {
	hosts     []*host
	perTarget int // requests at a time
}

// hostHeap implements heap.Interface.
func (q *hostHeap) Len() int { return len(q.hosts) }
func (q *hostHeap) Less(i, j int) bool {
	a, b := q.hosts[i], q.hosts[j]
	return cmp.Or(cmp.Compare(a.due(), b.due()), a.items[0].compare(b.items[0])) < 0
}
func (q *hostHeap) Swap(i, j int) {
	q.hosts[i], q.hosts[j] = q.hosts[j], q.hosts[i]
	q.hosts[i].index, q.hosts[j].index = i, j
}
func (q *hostHeap) Push(x any) {
	h := x.(*host)
	h.index = len(q.hosts)
	q.hosts = append(q.hosts, h)
}
func (q *hostHeap) Pop() any {
	h := pop(&q.hosts)
	h.index = -1
	return h
}

func pop[T any](list *[]*T) *T {
	last := len(*list) - 1
	v := (*list)[last]
	(*list)[last] = nil
	*list = (*list)[:last]
	return v
}
