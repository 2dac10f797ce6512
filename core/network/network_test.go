package network

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/command"
	"github.com/tidemark-db/tidemark/core/ingest"
	"github.com/tidemark-db/tidemark/core/line"
	"github.com/tidemark-db/tidemark/core/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sink is a pipeline that remembers what it took, as text commands.
type sink struct {
	mu      sync.Mutex // guards below
	changed chan struct{}
	lines   []string
	origins []core.Origin
	batches int
	fail    []error // of the next calls
	always  error
	next    core.Ingester // optional
}

func newSink() *sink { return &sink{changed: make(chan struct{})} }

func (k *sink) Ingest(ctx context.Context, b *core.Batch) (core.Receipt, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer func() { close(k.changed); k.changed = make(chan struct{}) }()
	if k.always != nil {
		return core.Receipt{}, k.always
	}
	if len(k.fail) > 0 {
		err := k.fail[0]
		k.fail = k.fail[1:]
		if err != nil {
			return core.Receipt{}, err
		}
	}
	text, err := command.AppendBatch(nil, b)
	if err != nil {
		return core.Receipt{}, err
	}
	origin := b.Origin
	if k.next != nil {
		if receipt, err := k.next.Ingest(ctx, b); err != nil {
			return receipt, err
		}
	}
	lines := command.NewSplitter(strings.NewReader(string(text)), command.Exact)
	for {
		one, err := lines.Next()
		if err != nil {
			break
		}
		k.lines = append(k.lines, string(one))
	}
	k.origins = append(k.origins, origin)
	k.batches++
	return core.Receipt{Durability: core.Synced}, nil
}

// failNext sets the results of the next calls; nil is a success.
func (k *sink) failNext(errs ...error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fail = errs
}

func (k *sink) failAlways(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.always = err
}

// taken returns what the sink has taken.
func (k *sink) taken() (lines []string, origins []core.Origin, batches int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.lines), slices.Clone(k.origins), k.batches
}

// origin is that of the first batch.
func (k *sink) origin() core.Origin {
	_, origins, _ := k.taken()
	return origins[0]
}

// world is a server with its doors on free ports of loopback, and what it stores.
type world struct {
	t      testing.TB
	server *Server
	sink   *sink
	stop   func() error
}

// patience is how long a test waits for what must happen soon.
const patience = 20 * time.Second

var fixedNow = time.UnixMilli(1620036000123)

func start(t testing.TB, change func(*Options)) *world {
	t.Helper()
	w := &world{t: t, sink: newSink()}
	o := Options{TCP: Door{Address: "127.0.0.1:0"}, UDP: Door{Address: "127.0.0.1:0"}, Pickle: Door{Address: "127.0.0.1:0"}, Deps: Deps{Ingest: w.sink},
		Clock: time.Now, Version: "25321"}
	if change != nil {
		change(&o)
	}
	var err error
	if w.server, err = Open(o); err != nil {
		t.Fatal(err)
	}
	w.server.backoff = time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.server.Run(ctx) }()
	var once sync.Once
	w.stop = func() (err error) {
		once.Do(func() {
			cancel()
			select {
			case err = <-ended:
			case <-time.After(5 * time.Second):
				t.Error("the server does not stop within 5 s")
			}
		})
		return err
	}
	t.Cleanup(func() {
		if err := w.stop(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// client is one connection to a door.
type client struct {
	t    testing.TB
	conn net.Conn
	in   *bufio.Reader
}

func (w *world) dial(door string) *client {
	w.t.Helper()
	network := "tcp"
	if door == "udp" {
		network = "udp"
	}
	conn, err := net.Dial(network, w.server.Addr(door))
	if err != nil {
		w.t.Fatal(err)
	}
	conn.SetDeadline(time.Now().Add(patience))
	w.t.Cleanup(func() { conn.Close() })
	return &client{w.t, conn, bufio.NewReader(conn)}
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.conn, text); err != nil {
		c.t.Fatal(err)
	}
}

// reply reads one line.
func (c *client) reply() string {
	c.t.Helper()
	text, err := c.in.ReadString('\n')
	if err != nil {
		c.t.Fatalf("%q, %v", text, err)
	}
	return strings.TrimSuffix(text, "\n")
}

// closed asserts that the server ends the connection.
func (c *client) closed() {
	c.t.Helper()
	if rest, err := io.ReadAll(c.in); err != nil || len(rest) > 0 {
		c.t.Errorf("the connection is not closed in an orderly way: %q, %v", rest, err)
	}
}

// commands makes the lines that the sink shows of some commands.
func commands(t testing.TB, text string) []string {
	t.Helper()
	b := &core.Batch{}
	p := command.Parser{Received: core.TimeOf(fixedNow)}
	lines := command.NewSplitter(strings.NewReader(text), command.Exact)
	for {
		one, err := lines.Next()
		if err != nil {
			break
		}
		if err := p.Line(b, one); err != nil {
			t.Fatalf("%s: %v", one, err)
		}
	}
	k := newSink()
	if _, err := k.Ingest(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	slices.Sort(k.lines)
	return k.lines
}

// stored waits until exactly these commands are stored, in any order: a batch does not keep that of records of different kinds.
func (w *world) stored(want string) {
	w.t.Helper()
	lines := commands(w.t, want)
	late := time.After(patience)
	for {
		w.sink.mu.Lock()
		got, changed := slices.Clone(w.sink.lines), w.sink.changed
		w.sink.mu.Unlock()
		slices.Sort(got)
		if slices.Equal(got, lines) {
			return
		}
		select {
		case <-changed:
		case <-late:
			w.t.Fatalf("stored\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(lines, "\n"))
		}
	}
}

// until waits for a count.
func (w *world) until(what string, holds func(Stats) bool) {
	w.t.Helper()
	late := time.After(patience)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds(w.server.Stats()) {
		select {
		case <-tick.C:
		case <-late:
			w.t.Fatalf("%s: %+v", what, w.server.Stats())
		}
	}
}

func (w *world) dropped(cause Cause, n int64) {
	w.t.Helper()
	w.until(cause.String(), func(s Stats) bool { return s.Dropped[cause] == n })
}

func fixed(o *Options) { o.Clock = func() time.Time { return fixedNow } }

// Example 2 of the contract, with both values of tcp.disconnect.
func TestSession(t *testing.T) {
	for _, keep := range []bool{true, false} {
		w := start(t, func(o *Options) { o.KeepOnError = keep })
		c := w.dial("tcp")
		for _, step := range [][2]string{{"ping", "ok"}, {"debug series e:pump-a m:flow=1 s:1", "ok"}, {"debug drop e:pump-a", "Invalid command: drop e:pump-a"}} {
			c.send(step[0] + "\n")
			if got := c.reply(); got != step[1] {
				t.Errorf("%s: %q, want %q", step[0], got, step[1])
			}
		}
		if keep {
			c.send("exit\n")
			if got := c.reply(); got != "Goodbye" {
				t.Errorf("exit: %q", got)
			}
		}
		c.closed()
		w.stored("series e:pump-a m:flow=1 s:1")
	}
}

func TestControlWords(t *testing.T) {
	before := time.Now().UnixMilli()
	w := start(t, func(o *Options) { o.KeepOnError = true })
	c := w.dial("tcp")
	for _, step := range [][2]string{{"PING", "ok"}, {"version", "25321"}, {"debug ping", "ok"}, {"debug version", "25321"}, {"debug marker m1", "ok"},
		{"debug", "Invalid command: "}, {"debug debug ping", "Invalid command: debug ping"}, {"debug csv p:x", "Invalid command: csv p:x"},
		{`debug message e:a m:"two` + "\n\n" + `lines" s:1`, "ok"}, {"debug property e:a t:b v:c=\"\"", `Empty tag values in command: property e:a t:b v:c=""`},
		{"debug series e:a m:b=x", "Malformed command: series e:a m:b=x"}, {"debug a.b 1 1620036000", "ok"},
		{"debug exit now", "Invalid command: exit now"}, {"ping\r", "ok"}, {" ping ", "ok"}} {
		c.send(step[0] + "\n")
		if got := c.reply(); got != step[1] {
			t.Errorf("%q: %q, want %q", step[0], got, step[1])
		}
	}
	c.send("time\n")
	if ms, err := strconv.ParseInt(c.reply(), 10, 64); err != nil || ms < before || ms > time.Now().UnixMilli() {
		t.Errorf("time: %d %v", ms, err)
	}
	c.send("debug exit\n")
	if got := c.reply(); got != "Goodbye" {
		t.Errorf("debug exit: %q", got)
	}
	c.closed()
	w.stored("message e:a m:\"two\nlines\" s:1\nseries e:a m:b=1 s:1620036000")
}

// A reply is that of its own command, whatever arrived together with it.
func TestRepliesAreTheirOwn(t *testing.T) {
	w := start(t, func(o *Options) { o.KeepOnError = true })
	c := w.dial("tcp")
	c.send("drop\ndebug series e:a m:b=1 s:1\ndrop\ndebug drop again\nseries e:a m:b=2 s:2\nping\n")
	for _, want := range []string{"ok", "Invalid command: drop again", "ok"} {
		if got := c.reply(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	w.stored("series e:a m:b=1 s:1\nseries e:a m:b=2 s:2")
	w.dropped(Unknown, 3)

	w = start(t, nil)
	c = w.dial("tcp")
	c.send("series e:a m:b=1 s:1\ndrop\nping\n")
	c.closed()
	w.stored("series e:a m:b=1 s:1")
}

// Section 3.2: what becomes of line breaks inside quotes on TCP.
func TestLineBreaks(t *testing.T) {
	w := start(t, nil)
	c := w.dial("tcp")
	want := ""
	for i, test := range [][2]string{{"a\nb", "a\nb"}, {"a\rb", "a\rb"}, {"a\r\nb\n\rc", "a\nb\n\rc"}, {"a\n\nb", "a\nb"}, {"a\n\r", "a\n\r"},
		{"  \r\r\n\ra\n\rb  \n\r ", "  \n\ra\n\rb  \n\r "}} {
		c.send(fmt.Sprintf("series e:a x:b=\"%s\" s:%d\r\n", test[0], i))
		want += fmt.Sprintf("series e:a x:b=\"%s\" s:%d\n", test[1], i)
	}
	w.stored(want)
}

func TestWhatIsSentBeforeTheCloseIsStored(t *testing.T) {
	w := start(t, nil)
	c := w.dial("tcp")
	c.send("debug series e:a m:b=1 s:1\nseries e:a m:b=2 s:2\n\n")
	if c.reply() != "ok" {
		t.Error("no ok")
	}
	c.send("message e:a m:\"x\n")
	c.send("y\" s:3\nmetric m:b u:kg\nseries e:a m:b=4 s:4")
	c.conn.Close()
	w.stored("series e:a m:b=1 s:1\nseries e:a m:b=2 s:2\nmessage e:a m:\"x\ny\" s:3\nmetric m:b u:kg\nseries e:a m:b=4 s:4")
}

func TestMalformed(t *testing.T) {
	for line, cause := range map[string]Cause{
		"drop e:a": Unknown, "series e:a": Syntax, `series e:"a b" m:c=1`: Name, "series e:a m:b=1 ms:-1": Time, "series e:a m:b=x": Value,
		"a.b x y": Unknown, "put a x 1": Time, "csv e:a": Syntax, strings.Repeat("x", command.MaxLength+1): Length, "series e:a m:b=1 q:1": Syntax,
	} {
		w := start(t, nil)
		c := w.dial("tcp")
		c.send("series e:a m:b=1 s:1\n" + line + "\n")
		c.closed()
		w.stored("series e:a m:b=1 s:1")
		w.dropped(cause, 1)
		if s := w.server.Stats(); s.Malformed() != 1 || s.Ignored() != 0 || s.Commands != 1 {
			t.Errorf("%.40s: %+v", line, s)
		}

		w = start(t, func(o *Options) { o.KeepOnError = true })
		c = w.dial("tcp")
		c.send("series e:a m:b=1 s:1\n" + line + "\nseries e:a m:b=2 s:2\nping\n")
		if c.reply() != "ok" {
			t.Error("the connection is not kept")
		}
		w.stored("series e:a m:b=1 s:1\nseries e:a m:b=2 s:2")
		w.dropped(cause, 1)
	}
}

func TestForeignProtocols(t *testing.T) {
	for _, door := range []string{"tcp", "udp"} {
		w := start(t, nil)
		m, err := line.ParseMapping("^drop\\.\n^servers\\. <tag:type>.<entity>.<metrics>\n")
		if err != nil {
			t.Fatal(err)
		}
		w.server.SetMapping(m)
		c := &client{t: t}
		conn, err := net.Dial(door, w.server.Addr(door))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		c.conn = conn
		c.send("put sys.load 1620036000 1.5 host=web-9 cpu=0\nservers.web-9.workers.busy 7 1620036000\ndrop.me 1 1\n" +
			"series e:host ms:1 m:cpu.idle=3 t:instance=0\n")
		w.stored("series e:web-9 s:1620036000 m:sys.load=1.5 t:cpu=0\nseries e:web-9 s:1620036000 m:workers.busy=7 t:type=servers\n" +
			"series e:host ms:1 m:cpu.idle=3 t:instance=0")
		w.dropped(Mapped, 1)
		c.send("web-9/hits:20.5|c\n")
		w.until("statsd", func(s Stats) bool { return s.Commands == 5 && s.Malformed() == 0 })
	}
}

// Section 13.5.
func TestDatagrams(t *testing.T) {
	for _, test := range []struct {
		sent, want string
		cause      Cause
		n          int64
	}{
		{"series e:a m:b=1 s:1", "series e:a m:b=1 s:1", Truncated, 0},
		{"series e:a m:b=1 s:1\n", "series e:a m:b=1 s:1", Truncated, 0},
		{"series e:a m:b=1 s:1\nseries e:a m:b=2 s:2\n", "series e:a m:b=1 s:1\nseries e:a m:b=2 s:2", Truncated, 0},
		{"series e:a m:b=1 s:1\nseries e:a m:b=2 s:2", "series e:a m:b=1 s:1", Truncated, 1},
		{"message e:a m:\"x\ny\" s:1", "message e:a m:\"x\ny\" s:1", Truncated, 0},
		{"ping\nseries e:a m:b=1 s:1\nexit\n", "series e:a m:b=1 s:1", Control, 2},
		{"debug series e:a m:b=1 s:1\n", "series e:a m:b=1 s:1", Control, 0},
		{"series e:a m:b=1 s:1\ndrop\nseries e:a m:b=2 s:2\n", "series e:a m:b=1 s:1\nseries e:a m:b=2 s:2", Unknown, 1},
		{"\n\n", "", Syntax, 0},
	} {
		w := start(t, nil)
		c := w.dial("udp")
		c.send(test.sent)
		w.until("datagram", func(s Stats) bool { return s.Datagrams == 1 })
		w.stored(test.want)
		w.dropped(test.cause, test.n)
	}
}

// The clients of StatsD do not end the last line of a datagram.
func TestStatsDDatagramNeedsNoEnd(t *testing.T) {
	w := start(t, nil)
	c := w.dial("udp")
	c.send("lib/a:1|g\nlib/b:2|g")
	w.until("datagram", func(s Stats) bool { return s.Commands == 2 && s.Malformed() == 0 })
	w.dropped(Truncated, 0)
}

func TestDatagramLimits(t *testing.T) {
	w := start(t, func(o *Options) { o.Limits = Limits{Datagram: 100} })
	c := w.dial("udp")
	c.send("series e:a m:b=1 s:1 t:long=" + strings.Repeat("x", 100))
	w.dropped(Length, 1)

	// While the store takes its time the queue fills, and more is dropped.
	hold := make(chan struct{})
	slow := &blocking{began: make(chan struct{}, 1), release: hold}
	w = start(t, func(o *Options) { o.Limits = Limits{Queue: 300}; o.Ingest = slow })
	c = w.dial("udp")
	c.send("series e:a m:b=1 s:1")
	<-slow.began
	c.send("series e:a m:b=2 s:2") // 20 bytes each, and 128 beside them: two fit
	c.send("series e:a m:b=3 s:3")
	c.send("series e:a m:b=4 s:4")
	w.dropped(Overload, 1)
	close(hold)
	w.until("stored", func(s Stats) bool { return s.Commands == 3 })
}

// blocking holds every batch until it is released.
type blocking struct{ began, release chan struct{} }

func (k *blocking) Ingest(ctx context.Context, _ *core.Batch) (core.Receipt, error) {
	select {
	case k.began <- struct{}{}:
	default:
	}
	select {
	case <-k.release:
		return core.Receipt{}, nil
	case <-ctx.Done():
		return core.Receipt{}, ctx.Err()
	}
}

func TestTooMuchIsDroppedByRate(t *testing.T) {
	w := start(t, func(o *Options) { fixed(o); o.Limits = Limits{Rate: 2} })
	c := w.dial("udp")
	c.send("series e:a m:b=1 s:1\nseries e:a m:b=2 s:2\nseries e:a m:b=3 s:3\n")
	w.stored("series e:a m:b=1 s:1\nseries e:a m:b=2 s:2")
	w.dropped(Overload, 1)
}

func TestTCPIsSlowedDownToItsRate(t *testing.T) {
	w := start(t, func(o *Options) { o.Limits = Limits{Rate: 20} })
	c := w.dial("tcp")
	begin := time.Now()
	c.send("debug series e:a m:b=1 s:1\ndebug series e:a m:b=2 s:2\ndebug series e:a m:b=3 s:3\n")
	for range 3 {
		c.reply()
	}
	if took := time.Since(begin); took < 140*time.Millisecond {
		t.Errorf("three commands at 20 a second took %s", took)
	}
}

func TestMarkers(t *testing.T) {
	markers := new(command.Markers)
	w := start(t, func(o *Options) { o.Markers = markers })
	c := w.dial("tcp")
	c.send("series e:a m:b=1 s:1\nmarker one\nseries e:a m:b=2 s:2\nping\nmessage e:a m:\"x\ny\" s:3\nping\n")
	c.reply()
	c.reply()
	if n, ok := markers.Get("", "one"); !ok || n != 5 { // the lines of the message count one by one
		t.Errorf("marker one: %d %v", n, ok)
	}
	c.send("marker two\nping\n")
	c.reply()
	if n, ok := markers.Get("", "two"); !ok || n != 1 {
		t.Errorf("marker two: %d %v", n, ok)
	}
	if n, _ := markers.Get("", "one"); n != 5 {
		t.Errorf("marker one goes on: %d", n)
	}
}

// What arrives together is one batch.
func TestBatching(t *testing.T) {
	w := start(t, nil)
	c := w.dial("tcp")
	var sent, first strings.Builder
	fmt.Fprintln(&first, "debug series e:a m:b=0 s:0")
	for i := range 1000 {
		fmt.Fprintf(&sent, "series e:a m:b=%d s:%d\n", i, i+1)
	}
	c.send(first.String())
	c.reply()
	c.send(sent.String())
	w.stored("series e:a m:b=0 s:0\n" + sent.String())
	stored, _, batches := w.sink.taken()
	for i, line := range stored {
		if want := fmt.Sprintf("m:b=%d ", max(0, i-1)); !strings.Contains(line, want) {
			t.Fatalf("line %d is %s: the order is lost", i, line)
		}
	}
	if batches > 30 {
		t.Errorf("%d batches for 1,001 commands", batches)
	}
}

// TCP waits for a store that is full or unavailable; a command refused in between drops only itself.
func TestStoreIsFullForAWhile(t *testing.T) {
	full := core.Errorf(core.NoSpace, "the disk is full")
	w := start(t, nil)
	w.sink.failNext(full, core.Errorf(core.Unavailable, "starting"), full, nil)
	c := w.dial("tcp")
	c.send("series e:a m:b=1 s:1\nseries e:a m:b=2 s:2\n")
	c.conn.Close() // what was sent before the close is not lost all the same
	w.stored("series e:a m:b=1 s:1\nseries e:a m:b=2 s:2")

	w = start(t, nil)
	w.sink.failNext(full)
	u := w.dial("udp")
	u.send("series e:a m:b=1 s:1\nseries e:a m:b=2 s:2\n")
	w.dropped(Unavailable, 2)
	u.send("series e:a m:b=3 s:3\n")
	w.stored("series e:a m:b=3 s:3")
	if n := w.server.Stats().Ignored(); n != 2 {
		t.Errorf("%d ignored", n)
	}
}

func TestPatienceEnds(t *testing.T) {
	w := start(t, func(o *Options) { o.Limits = Limits{Patience: 20 * time.Millisecond} })
	w.sink.failAlways(core.Errorf(core.NoSpace, "the disk is full"))
	c := w.dial("tcp")
	c.send("series e:a m:b=1 s:1\n")
	c.closed()
	w.dropped(Unavailable, 1)
}

// A stop while the store is full does not wait for it.
func TestStopWhileTheStoreIsFull(t *testing.T) {
	w := start(t, nil)
	w.sink.failAlways(core.Errorf(core.Unavailable, "no"))
	c := w.dial("tcp")
	c.send("series e:a m:b=1 s:1\n")
	c.send("series e:a m:b=1 s:1\n")
	if err := w.stop(); err != nil {
		t.Error(err)
	}
}

// What was sent before the stop is stored; the server then ends at once, however many connections are open.
func TestStop(t *testing.T) {
	w := start(t, nil)
	idle := w.dial("tcp")
	idle.send("ping\n")
	idle.reply()
	c := w.dial("tcp")
	c.send("ping\n")
	c.reply()
	c.send("series e:a m:b=1 s:1\nseries e:a m:b=2 s:2\nseries e:a m:b=")
	if err := w.stop(); err != nil {
		t.Error(err)
	}
	w.stored("series e:a m:b=1 s:1\nseries e:a m:b=2 s:2")
	idle.closed()
	if s := w.server.Stats(); s.Connections != 0 || s.Idle+s.Slow != 0 {
		t.Errorf("%+v", s)
	}
}

func TestTimeouts(t *testing.T) {
	w := start(t, func(o *Options) { o.Limits = Limits{Idle: 50 * time.Millisecond, Command: time.Minute} })
	w.dial("tcp").closed()
	w.until("idle", func(s Stats) bool { return s.Idle == 1 && s.Slow == 0 })

	w = start(t, func(o *Options) { o.Limits = Limits{Idle: time.Minute, Command: 50 * time.Millisecond} })
	c := w.dial("tcp")
	c.send("series e:a m:b=1 s:1\nseries e:a ")
	c.closed()
	w.until("slow", func(s Stats) bool { return s.Idle == 0 && s.Slow == 1 })
	w.stored("series e:a m:b=1 s:1")
}

func TestConnectionLimits(t *testing.T) {
	for _, limits := range []Limits{{Connections: 2}, {PerAddress: 2}} {
		w := start(t, func(o *Options) { o.Limits = limits })
		first := w.dial("tcp")
		for _, c := range []*client{first, w.dial("tcp")} {
			c.send("ping\n")
			c.reply()
		}
		third := w.dial("tcp")
		if _, err := third.in.ReadByte(); err == nil {
			t.Error("the third connection is served")
		}
		w.until("turned away", func(s Stats) bool { return s.TurnedAway == 1 && s.Connections == 2 })
		first.conn.Close()
		w.until("closed", func(s Stats) bool { return s.Connections == 1 })
		again := w.dial("tcp")
		again.send("ping\n")
		again.reply()
	}
}

// The buffers of all connections share tcp.memory: who needs more than is left is sent away, the others go on.
func TestMemoryIsShared(t *testing.T) {
	w := start(t, func(o *Options) { o.Limits = Limits{Memory: 160 << 10} })
	long := "message e:a m:" + strings.Repeat("x", 40_000)
	first := w.dial("tcp")
	first.send(long)
	w.until("read", func(s Stats) bool { return s.Bytes == int64(len(long)) })
	second := w.dial("tcp")
	second.send(strings.Repeat("y", 100_000))
	w.dropped(Overload, 1)
	first.send(" s:1\nping\n")
	if first.reply() != "ok" {
		t.Error("the first connection is not served any more")
	}
	w.stored(long + " s:1")
	first.conn.Close()
	second.conn.Close()
	w.until("closed", func(s Stats) bool { return s.Connections == 0 })
	if n := w.server.held.Load(); n != 0 {
		t.Errorf("%d bytes are held by no connection", n)
	}
}

// Idle and slow connections must not disturb the others. TIDEMARK_MANY=1 tries 2,000 and 200 of them.
func TestManyConnections(t *testing.T) {
	idle, slow := 300, 50
	if os.Getenv("TIDEMARK_MANY") != "" {
		idle, slow = 2000, 200
	}
	w := start(t, func(o *Options) { o.Limits = Limits{PerAddress: 4096} })
	for range idle {
		w.dial("tcp")
	}
	for range slow {
		w.dial("tcp").send("series e:slow m:a=1 t:b=")
	}
	w.until("open", func(s Stats) bool { return s.Connections == int64(idle+slow) })
	begin := time.Now()
	c := w.dial("tcp")
	for range 100 {
		c.send("debug series e:a m:b=1 s:1\n")
		c.reply()
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("100 commands took %s beside %d idle and %d slow connections", took, idle, slow)
	}
	if n := w.server.Stats().Commands; n != 100 {
		t.Errorf("%d commands are stored", n)
	}
}

func TestRights(t *testing.T) {
	rights := map[string]core.Grants{"writer": {Roles: core.DataWrite.Expand(), WriteAll: true}}
	var mu sync.Mutex
	w := start(t, func(o *Options) {
		o.TCP.User, o.KeepOnError = "writer", true
		o.Grants = func(_ context.Context, user string) (core.Grants, error) {
			mu.Lock()
			defer mu.Unlock()
			g, ok := rights[user]
			if !ok {
				return g, core.Errorf(core.Unauthenticated, "code 02")
			}
			return g, nil
		}
	})
	c := w.dial("tcp")
	c.send("debug series e:a m:b=1 s:1\n")
	c.reply()
	if o := w.sink.origin(); o.User != "writer" || o.Door != core.DoorTCP || o.Address != "127.0.0.1" || !o.Grants.WriteAll || o.Grants.Roles != core.DataWrite.Expand() {
		t.Errorf("%+v", o)
	}
	// Refusals of the pipeline are answered with its text, and counted.
	w.sink.failNext(core.Errorf(core.Forbidden, "code 15"), core.Errorf(core.Invalid, "IllegalArgumentException: BigDecimal significand overflows the long type"))
	for _, want := range []string{"code 15", "IllegalArgumentException: BigDecimal significand overflows the long type", "ok"} {
		c.send("debug series e:a m:b=1 s:1\n")
		if got := c.reply(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	w.dropped(Forbidden, 1)
	w.dropped(Refused, 1)
	// Rights are those of the moment: without the user nothing is taken any more.
	mu.Lock()
	delete(rights, "writer")
	mu.Unlock()
	c.send("series e:a m:b=1 s:1\nseries e:a m:b=1 s:1\n")
	c.closed()
	w.until("forbidden", func(s Stats) bool { return s.Dropped[Forbidden] >= 2 })

	// Without a user, loopback writes data and settings.
	w = start(t, nil)
	u := w.dial("udp")
	u.send("series e:a m:b=1 s:1\nmetric m:b u:kg\n")
	w.stored("series e:a m:b=1 s:1\nmetric m:b u:kg")
	if o := w.sink.origin(); o.User != "" || o.Door != core.DoorUDP || o.Address != "127.0.0.1" || !o.Grants.WriteAll || o.Grants.ReadAll ||
		!o.Grants.Roles.Has(core.DataWrite|core.MetaWrite) || o.Grants.Roles.Has(core.DataRead) || o.Grants.Roles.Has(core.Admin) {
		t.Errorf("%+v", o)
	}
}

func TestOpenRefuses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, test := range []struct {
		o    Options
		want string
	}{
		{Options{TCP: Door{Address: "0.0.0.0:0"}}, "tcp: 0.0.0.0:0 can be reached from other machines"},
		{Options{UDP: Door{Address: ":0"}}, "set udp.user to the user"},
		{Options{Pickle: Door{Address: "[::]:0"}}, "set pickle.user"},
		{Options{TCP: Door{Address: taken.Addr().String()}}, "choose another address with --set tcp=HOST:PORT, or close this door with --set tcp=off"},
		{Options{UDP: Door{Address: "nowhere"}}, "udp: cannot listen on nowhere"},
	} {
		test.o.Clock = time.Now
		s, err := Open(test.o)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %q", err, test.want)
		}
		if s != nil {
			s.Close()
		}
	}
	s, err := Open(Options{TCP: Door{"0.0.0.0:0", "writer"}, Clock: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if s.Addr("tcp") == "" || s.Addr("udp")+s.Addr("pickle") != "" {
		t.Error("the doors are not those that were asked for")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Section 13, reasons to drop: disabled entity or metric, value outside the limits with action DISCARD.
func TestWhatSettingsDropIsCounted(t *testing.T) {
	store := memstore.New()
	pipe := ingest.New(&memoryLog{store: store}, store, ingest.Options{})
	b := &core.Batch{Origin: core.SystemOrigin(0), Documents: []core.DocChange{
		{Kind: core.DocMetric, Key: "off", Op: core.DocPatch, Body: []byte(`{"enabled":false}`)},
		{Kind: core.DocEntity, Key: "gone", Op: core.DocPatch, Body: []byte(`{"enabled":false}`)},
		{Kind: core.DocMetric, Key: "small", Op: core.DocPatch, Body: []byte(`{"invalidAction":"DISCARD","maxValue":10}`)},
	}}
	if _, err := pipe.Ingest(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	w := start(t, func(o *Options) { o.Ingest, o.Catalog = pipe, store })
	c := w.dial("tcp")
	c.send("series e:a m:off=1 m:on=1 s:1\nseries e:gone m:on=1 s:1\nseries e:a m:small=11 s:1\nseries e:a m:small=9 s:2\n")
	w.dropped(Disabled, 2)
	w.dropped(Range, 1)
	w.until("commands", func(s Stats) bool { return s.Commands == 4 && s.Malformed() == 0 && s.Ignored() == 3 })
}

// memoryLog is a journal without a disk.
type memoryLog struct {
	store *memstore.Store
	end   core.Position
}

func (l *memoryLog) Append(ctx context.Context, b *core.Batch) (core.Receipt, error) {
	l.end++
	return core.Receipt{Position: l.end}, l.store.Apply(ctx, core.Entry{Position: l.end, Batch: b})
}

func (l *memoryLog) Tail(context.Context, core.Position) iter.Seq2[core.Entry, error] {
	return func(func(core.Entry, error) bool) {}
}

func (l *memoryLog) Wait(ctx context.Context, _ core.Position) error { <-ctx.Done(); return ctx.Err() }

func (l *memoryLog) End() core.Position { return l.end }

// cells is a parser: each line after the header is `seconds,value`; `!` ends the file.
type cells struct{ requests chan core.ParseRequest }

func (p cells) Parse(_ context.Context, r core.ParseRequest, body io.Reader) iter.Seq2[core.Parsed, error] {
	return func(yield func(core.Parsed, error) bool) {
		p.requests <- r
		lines := bufio.NewScanner(body)
		for n := 0; lines.Scan(); n++ {
			if n == 0 {
				continue
			}
			at, v, _ := strings.Cut(lines.Text(), ",")
			seconds, err := strconv.Atoi(at)
			if err != nil {
				yield(core.Parsed{}, core.Errorf(core.Invalid, "Line %d: bad time", n+1))
				return
			}
			value, _ := strconv.ParseFloat(v, 64)
			b := &core.Batch{}
			b.Add(b.Ref(core.SeriesKey{Entity: r.Params["default-entity"], Metric: "m", Tags: r.Tags}), core.Time(seconds)*1000, value)
			if !yield(core.Parsed{Batch: b, Lines: 1}, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(core.Parsed{}, err)
		}
	}
}

func TestFiles(t *testing.T) {
	parser := cells{make(chan core.ParseRequest, 1)}
	for _, door := range []string{"tcp", "udp"} {
		w := start(t, func(o *Options) { o.Parser = parser })
		c := w.dial(door)
		if door == "tcp" {
			c.send("series e:z m:z=0 s:0\ncsv p:meters e:a t:dc=eu z:UTC o:60\ntime,value\n1,1")
			r := <-parser.requests
			if r.Parser != "meters" || r.Format != "csv" || r.Zone != "UTC" || r.Source != "127.0.0.1" || r.Origin.Door != core.DoorTCP || r.Params["t:dc"] != "eu" {
				t.Errorf("%+v", r)
			}
			c.send("0\n2,20\n") // a number in two parts
			w.stored("series e:z m:z=0 s:0\nseries e:a t:dc=eu m:m=10 s:1\nseries e:a t:dc=eu m:m=20 s:2")
			c.send("3,30")
			c.conn.Close()
			w.stored("series e:z m:z=0 s:0\nseries e:a t:dc=eu m:m=10 s:1\nseries e:a t:dc=eu m:m=20 s:2\nseries e:a t:dc=eu m:m=30 s:3")
			continue
		}
		c.send("csv p:meters e:a\ntime,value\n1,10\n2,20")
		<-parser.requests
		w.stored("series e:a m:m=10 s:1\nseries e:a m:m=20 s:2")
	}

	// A line error ends the connection; what came before stays.
	w := start(t, func(o *Options) { o.Parser = parser })
	c := w.dial("tcp")
	c.send("csv p:meters e:a\ntime,value\n1,10\n!\n2,20\n")
	<-parser.requests
	c.closed()
	w.stored("series e:a m:m=10 s:1")
	w.until("malformed", func(s Stats) bool { return s.Malformed() == 1 })

	// Silence ends a file as its timeout says, and its last line counts.
	w = start(t, func(o *Options) { o.Parser = parser; o.Limits.Idle = 50 * time.Millisecond })
	c = w.dial("tcp")
	c.send("csv p:meters e:a\ntime,value\n1,10")
	<-parser.requests
	w.stored("series e:a m:m=10 s:1")
	c.closed()

	// Without parsers it is refused.
	w = start(t, nil)
	c = w.dial("tcp")
	c.send("nmon p:default e:a f:a.nmon\n")
	c.closed()
	w.until("malformed", func(s Stats) bool { return s.Malformed() == 1 })
}

func frame(message string) string {
	return string([]byte{byte(len(message) >> 24), byte(len(message) >> 16), byte(len(message) >> 8), byte(len(message))}) + message
}

func TestPickles(t *testing.T) {
	const one, two = "(l(S'web-9.load'\n(I1620036000\nF1.5\ntta.", "(l(S'a.b'\n(I1\nI7\ntta(S'a.c'\n(I2\nI8\ntta(S'a.bad'\n(I-5\nI8\ntta."
	w := start(t, func(o *Options) { o.KeepOnError = true; o.Limits.Frame = 200 })
	c := w.dial("pickle")
	text := frame(one) + frame(two)
	c.send(text[:10])
	c.send(text[10:])
	w.stored("series e:web-9 m:load=1.5 s:1620036000\nseries e:a m:b=7 s:1\nseries e:a m:c=8 s:2")
	w.dropped(Time, 1)
	// A message that calls something is dropped.
	c.send(frame("cos\nsystem\n(S'id'\ntR.") + frame("(l(S'a.b'\n(I3\nI9\ntta."))
	w.stored("series e:web-9 m:load=1.5 s:1620036000\nseries e:a m:b=7 s:1\nseries e:a m:c=8 s:2\nseries e:a m:b=9 s:3")
	w.dropped(Syntax, 1)
	// One that is too long ends the connection: nothing tells where the next begins.
	c.send(frame(strings.Repeat("x", 201))[:4])
	c.closed()
	w.dropped(Length, 1)

	// What the pipeline refuses is found sample by sample; a store that is full is waited for.
	w = start(t, func(o *Options) { o.KeepOnError = true })
	bad := core.Errorf(core.Invalid, "no")
	w.sink.failNext(core.Errorf(core.NoSpace, "full"), bad, bad, bad)
	c = w.dial("pickle")
	c.send(frame("(l(S'a.b'\n(I1\nI7\ntta(S'a.c'\n(I2\nI8\ntta."))
	w.stored("series e:a m:c=8 s:2")
	w.dropped(Refused, 1)

	// By default a bad message ends the connection; a promise of bytes that do not come is slow.
	w = start(t, func(o *Options) { o.Limits.Command = 50 * time.Millisecond })
	c = w.dial("pickle")
	c.send(frame("I1\n."))
	c.closed()
	c = w.dial("pickle")
	c.send("\x00\x00\x10\x00abc")
	c.closed()
	w.until("slow", func(s Stats) bool { return s.Slow == 1 })
}

func TestCausesHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Causes() {
		if c.String() == "" || seen[c.String()] {
			t.Errorf("cause %d is called %q", c, c)
		}
		seen[c.String()] = true
	}
	for r := range command.Reasons {
		if got := Cause(r).String(); got != r.String() {
			t.Errorf("reason %s is cause %s", r, got)
		}
	}
}

func slogTo(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// What one sender does wrong a thousand times is one line of the log.
func TestComplaintsAreRare(t *testing.T) {
	now := fixedNow
	var logged strings.Builder
	c := complaints{clock: func() time.Time { return now }, log: slogTo(&logged)}
	for range 1000 {
		c.warn("a")
	}
	now = now.Add(time.Minute)
	c.warn("a")
	c.warn("b")
	if n := strings.Count(logged.String(), "\n"); n != 3 {
		t.Errorf("%d lines: %s", n, logged.String())
	}
}

// FuzzSession sends anything; the connection must end, and what is stored must be readable.
func FuzzSession(f *testing.F) {
	f.Add([]byte("series e:a m:b=1\nping\nexit\n"), true)
	f.Add([]byte("debug drop\nmarker a\nput a 1 1\ncsv p:x\n1"), false)
	f.Fuzz(func(t *testing.T, data []byte, keep bool) {
		s := &Server{opts: Options{Deps: Deps{Ingest: newSink()}, Clock: time.Now, Markers: new(command.Markers), KeepOnError: keep, Log: slogTo(io.Discard)}}
		s.opts.Limits.setDefaults()
		s.complaints.clock, s.complaints.log = time.Now, s.opts.Log
		here, there := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer here.Close()
			s.commands(context.Background(), here)
		}()
		go io.Copy(io.Discard, there)
		there.Write(data)
		there.Close()
		<-done
	})
}

func FuzzDatagram(f *testing.F) {
	f.Add([]byte("series e:a m:b=1\nping\nexit"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &Server{opts: Options{Deps: Deps{Ingest: newSink()}, Clock: time.Now, Log: slogTo(io.Discard)}}
		s.opts.Limits.setDefaults()
		s.complaints.clock, s.complaints.log = time.Now, s.opts.Log
		r := &receiver{sender: s.newSender(core.DoorUDP, "", "")}
		r.all(t.Context(), []datagram{{data: data}})
		if r.group.Len() > 0 {
			t.Error("something waits")
		}
	})
}

// BenchmarkCommands sends commands with ten numbers over one connection to a pipeline that stores nothing.
func BenchmarkCommands(b *testing.B) {
	w := start(b, func(o *Options) { o.Ingest = nowhere{} })
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, "series e:host-%d ms:%d", i%100, 1620036000000+int64(i))
		for m := range 10 {
			fmt.Fprintf(&text, " m:cpu.metric_%d=%d.25", m, m+i)
		}
		text.WriteByte('\n')
	}
	c := w.dial("tcp")
	c.conn.SetDeadline(time.Time{})
	b.SetBytes(int64(text.Len() / 1000))
	b.ReportAllocs()
	b.ResetTimer()
	n := int64(0)
	for n < int64(b.N) {
		c.send(text.String())
		n += 1000
	}
	w.until("stored", func(s Stats) bool { return s.Commands >= n })
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "commands/s")
}

// nowhere takes everything.
type nowhere struct{}

func (nowhere) Ingest(context.Context, *core.Batch) (core.Receipt, error) { return core.Receipt{}, nil }
