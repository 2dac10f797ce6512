package network

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/command"
	"github.com/tidemark-db/tidemark/wasm"
)

// Both sides of the border mean the same.
var (
	_ wasm.Live = (*fileReader)(nil)
	_ wasm.Live = liveReader{}
	_ continuer = (*wasm.Parsers)(nil)
)

// pieces is a parser that gives one message for all that is ready together, with its text.
type pieces struct {
	mu    sync.Mutex // guards below
	heads []string
	fail  []error // of the next calls, before they read
}

func (p *pieces) Parse(ctx context.Context, r core.ParseRequest, body io.Reader) iter.Seq2[core.Parsed, error] {
	return p.Continue(ctx, r, nil, body)
}

func (p *pieces) Continue(_ context.Context, r core.ParseRequest, head []byte, body io.Reader) iter.Seq2[core.Parsed, error] {
	return func(yield func(core.Parsed, error) bool) {
		p.mu.Lock()
		p.heads = append(p.heads, string(head))
		var fault error
		if len(p.fail) > 0 {
			fault, p.fail = p.fail[0], p.fail[1:]
		}
		p.mu.Unlock()
		if fault != nil {
			yield(core.Parsed{}, fault)
			return
		}
		buf := make([]byte, 1<<20)
		have := 0
		for {
			n, err := body.Read(buf[have:])
			have += n
			if live, ok := body.(wasm.Live); ok && err == nil && have < len(buf) && live.Ready() {
				continue
			}
			if have > 0 {
				b := &core.Batch{Messages: []core.Message{{Entity: r.Params["e"], Text: strconv.Quote(string(buf[:have])), Time: 1000, Flags: core.Default, Tags: core.Tags{{Name: "k", Value: "v"}}}}}
				have = 0
				if !yield(core.Parsed{Batch: b}, nil) {
					return
				}
			}
			if err != nil && err != io.EOF {
				yield(core.Parsed{}, err)
			}
			if err != nil {
				return
			}
		}
	}
}

// read returns the heads that the parser was given, one a call.
func (p *pieces) read() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.heads)
}

// text waits until all that was stored is want.
func (w *world) text(want string) {
	w.t.Helper()
	w.until("stored text", func(Stats) bool { return w.sink.text() == want })
}

// text is what the messages said, one after the other.
func (k *sink) text() string {
	lines, _, _ := k.taken()
	var b strings.Builder
	for _, l := range lines {
		var batch core.Batch
		p := command.Parser{Transport: command.Exact}
		if p.Line(&batch, []byte(l)) == nil && len(batch.Messages) == 1 {
			text, err := strconv.Unquote(batch.Messages[0].Text)
			if err != nil {
				panic(err)
			}
			b.WriteString(text)
		}
	}
	return b.String()
}

const stream = "nmon p:default e:h f:h_1.nmon\n"

// The beginning that comes with the command, and every later part, is converted although the connection stays open.
func TestLinesAreConvertedAsTheyCome(t *testing.T) {
	w := start(t, func(o *Options) { o.Parser = &pieces{} })
	c := w.dial("tcp")
	c.send(stream + "AAA,host,h\nZZZZ,T0001,10:00:00,03-MAY-2021\n")
	w.text("AAA,host,h\nZZZZ,T0001,10:00:00,03-MAY-2021\n")
	c.send("MEM,T0001,1\nhalf ")
	w.text("AAA,host,h\nZZZZ,T0001,10:00:00,03-MAY-2021\nMEM,T0001,1\nhalf ")
	c.send("a line")
	c.conn.Close()
	w.text("AAA,host,h\nZZZZ,T0001,10:00:00,03-MAY-2021\nMEM,T0001,1\nhalf a line")
}

// Under a flood a file is not cut into lines: 2 MB are a few batches, at most one each full buffer and second.
func TestFloodIsNotCutIntoLines(t *testing.T) {
	w := start(t, func(o *Options) { o.Parser = &pieces{} })
	c := w.dial("tcp")
	line := "MEM,T0001," + strings.Repeat("1", 53) + "\n"
	began := time.Now()
	c.send(stream + "AAA,host,h\n" + strings.Repeat(line, 2<<20/len(line)))
	c.conn.Close()
	w.until("flood", func(s Stats) bool { return s.Connections == 0 && s.Commands > 0 })
	most := 4 + 2*int(time.Since(began)/latency+1) // a machine that stalls for restTime between two packets makes one more
	if _, _, batches := w.sink.taken(); batches > most+10 {
		t.Errorf("%d batches of %d lines, want some %d", batches, 2<<20/len(line), most)
	}
}

// timedConn gives one byte every interval.
type timedConn struct {
	net.Conn
	next     time.Time
	interval time.Duration
	deadline time.Time
}

func (c *timedConn) SetReadDeadline(t time.Time) error { c.deadline = t; return nil }

func (c *timedConn) Read(p []byte) (int, error) {
	if c.next.After(c.deadline) {
		time.Sleep(time.Until(c.deadline))
		return 0, timeoutError{}
	}
	time.Sleep(time.Until(c.next))
	c.next = c.next.Add(c.interval)
	p[0] = 'x'
	return 1, nil
}

func (timeoutError) Temporary() bool { return true }

// Whatever the rhythm of a sender, a byte waits for at most a second, and one that nothing follows for a tenth.
func TestLatencyIsBounded(t *testing.T) {
	for interval, want := range map[time.Duration]time.Duration{10 * time.Millisecond: latency, 99 * time.Millisecond: latency, 101 * time.Millisecond: restTime,
		time.Hour: restTime} {
		synctest.Test(t, func(t *testing.T) {
			s := headServer(time.Now, io.Discard)
			f := &fileReader{server: s, conn: &timedConn{interval: interval, next: time.Now()}, timeout: 24 * time.Hour}
			buf := make([]byte, 100)
			for range 3 {
				if _, err := f.Read(buf); err != nil {
					t.Fatal(err)
				}
				first := time.Now()
				for f.Ready() {
					if _, err := f.Read(buf); err != nil {
						t.Fatal(err)
					}
				}
				if waited := time.Since(first); waited > want || waited < want-interval {
					t.Errorf("a byte every %v: the first waited for %v, want %v", interval, waited, want)
				}
			}
		})
	}
}

// A store that is full is waited for; what was read is offered again as it was, and nothing is lost or counted as lost.
func TestFilesWaitForTheStore(t *testing.T) {
	for _, fault := range []error{core.Errorf(core.NoSpace, "full"), core.Errorf(core.Unavailable, "away")} {
		w := start(t, func(o *Options) { o.Parser = &pieces{} })
		w.sink.failNext(fault, fault, fault)
		c := w.dial("tcp")
		c.send(stream + "AAA,host,h\n")
		w.text("AAA,host,h\n")
		c.conn.Close()
		w.until("nothing lost", func(s Stats) bool {
			return s.Connections == 0 && s.Ignored() == 0 && s.Malformed() == 0 && s.Commands == 1
		})
	}
	// Patience ends, and then the loss is counted.
	w := start(t, func(o *Options) { o.Parser = &pieces{}; o.Limits.Patience = 20 * time.Millisecond })
	w.sink.failAlways(core.Errorf(core.NoSpace, "full"))
	c := w.dial("tcp")
	c.send(stream + "AAA,host,h\n")
	c.closed()
	w.dropped(Unavailable, 1)
	// What is refused is not offered again.
	w = start(t, func(o *Options) { o.Parser = &pieces{} })
	w.sink.failNext(core.Errorf(core.Invalid, "no"))
	c = w.dial("tcp")
	c.send(stream + "AAA,host,h\n")
	c.closed()
	w.dropped(Refused, 1)
}

// A copy that is offered shares nothing that the pipeline changes.
func TestCopiesAreWhole(t *testing.T) {
	b := &core.Batch{Messages: []core.Message{{Entity: "e", Text: "t", Tags: core.Tags{{Name: "a", Value: "1"}}}},
		Properties: []core.Property{{PropertyKey: core.PropertyKey{Entity: "e", Type: "p", Key: core.Tags{{Name: "k", Value: "1"}}}, Tags: core.Tags{{Name: "v", Value: "1"}}}},
		Documents:  []core.DocChange{{Kind: core.DocEntity, Key: "e", Op: core.DocPatch, Body: []byte("{}")}}}
	i := b.Add(b.Ref(core.SeriesKey{Entity: "e", Metric: "m", Tags: core.Tags{{Name: "x", Value: "1"}}}), 1, 2)
	b.Samples.Texts = []core.TextAt{{Index: uint32(i), Text: "s"}}
	b.Samples.Decimals = []core.DecimalAt{{Index: uint32(i), Decimal: core.Decimal{Significand: 1}}}
	b.Samples.Versions = []core.VersionAt{{Index: uint32(i)}}
	before, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	c := copyOf(b)
	if copied, err := json.Marshal(c); err != nil || string(copied) != string(before) {
		t.Errorf("the copy is %s, want %s", copied, before)
	}
	c.Keys[0].Tags[0].Value, c.Messages[0].Tags[0].Value, c.Properties[0].Key[0].Value, c.Properties[0].Tags[0].Value = "2", "2", "2", "2"
	c.Samples.Times[0], c.Samples.Values[0], c.Samples.Flags[0], c.Samples.Series[0], c.Samples.Texts[0].Text = 9, 9, 0, 9, "9"
	c.Samples.Decimals[0].Index, c.Samples.Versions[0].Index, c.Documents[0].Key, c.Messages[0].Entity = 9, 9, "z", "z"
	if after, _ := json.Marshal(b); string(after) != string(before) {
		t.Errorf("a change of the copy makes %s of %s", after, before)
	}
}

// A parser whose instances are all taken is asked again; nothing was read by then.
func TestFilesWaitForTheirParser(t *testing.T) {
	p := &pieces{fail: []error{core.Errorf(core.Unavailable, "16 streams are open"), core.Errorf(core.Unavailable, "16 streams are open")}}
	w := start(t, func(o *Options) { o.Parser = p })
	c := w.dial("tcp")
	c.send(stream + "AAA,host,h\n")
	w.text("AAA,host,h\n")
	if got := w.server.Stats(); got.Malformed() != 0 || got.Ignored() != 0 {
		t.Errorf("%+v", got)
	}
}

// A connection that breaks is no malformed command, and what it brought is stored.
func TestBrokenConnection(t *testing.T) {
	w := start(t, func(o *Options) { o.Parser = &pieces{} })
	c := w.dial("tcp")
	c.send(stream + "AAA,host,h\n")
	w.text("AAA,host,h\n")
	if err := c.conn.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	c.conn.Close() // sends a reset
	w.until("closed", func(s Stats) bool { return s.Connections == 0 && s.Malformed() == 0 && s.Ignored() == 0 })
}

// Silence beyond o: ends the stream, although the idle time of commands is longer.
func TestStalledFile(t *testing.T) {
	w := start(t, func(o *Options) { o.Parser = &pieces{} })
	c := w.dial("tcp")
	c.send("nmon p:default e:h f:h_1.nmon o:1\nAAA,host,h\n")
	w.text("AAA,host,h\n")
	c.closed()
	w.until("idle", func(s Stats) bool { return s.Idle == 1 && s.Malformed() == 0 })
}

// documents is a pipeline that keeps documents and gives everything else to another one, and their reader.
type documents struct {
	core.Reader
	others core.Ingester
	mu     sync.Mutex // guards docs
	docs   map[string][]byte
}

func (d *documents) Documents(_ context.Context, q core.DocumentQuery) iter.Seq2[core.Document, error] {
	return func(yield func(core.Document, error) bool) {
		d.mu.Lock()
		defer d.mu.Unlock()
		for key, body := range d.docs {
			if !yield(core.Document{Kind: q.Kind, Key: key, Body: body}, nil) {
				return
			}
		}
	}
}

// Ingest keeps documents.
func (d *documents) Ingest(ctx context.Context, b *core.Batch) (core.Receipt, error) {
	if len(b.Documents) == 0 {
		return d.others.Ingest(ctx, b)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range b.Documents {
		if b.Origin.Door != core.DoorSystem {
			return core.Receipt{}, core.Errorf(core.Forbidden, "documents are the server's")
		}
		if c.Op == core.DocDelete {
			delete(d.docs, c.Key)
		} else {
			d.docs[c.Key] = slices.Clone(c.Body)
		}
	}
	return core.Receipt{}, nil
}

// A connection that sends only rows goes on with the file that an earlier one began: of the same entity and name, also after a restart.
func TestRowsGoOnWithTheKeptHeader(t *testing.T) {
	const header = "AAA,progname,nmon\r\nAAA,host,h\nAAA,note0,text\nMEM,Memory h,a,b\nBBBP,000,text\nTOP,%CPU Utilisation\nTOP,+PID,Time,%CPU,Command\n"
	const first = "ZZZZ,T0001,10:00:00,03-MAY-2021\nMEM,T0001,1,2\nTOP,12,T0001,5,x\nVM,Paging h,x\nVM,T0001,1\nMEM,Memory h,a,b,c\n"
	const want = "AAA,progname,nmon\nAAA,host,h\nTOP,%CPU Utilisation\nTOP,+PID,Time,%CPU,Command\nVM,Paging h,x\nMEM,Memory h,a,b,c\nZZZZ,T0002,10:01:00,03-MAY-2021\n"
	docs := &documents{docs: map[string][]byte{}}
	parser := &pieces{}
	run := func(text string, sent ...string) *world {
		w := start(t, func(o *Options) { docs.others, o.Parser, o.Reader, o.Ingest = o.Ingest, parser, docs, docs })
		c := w.dial("tcp")
		for i, part := range sent {
			c.send(part)
			w.text(text[:len(text)-len(strings.Join(sent[i+1:], ""))])
		}
		c.conn.Close()
		w.until("closed", func(s Stats) bool { return s.Accepted == 1 && s.Connections == 0 })
		if err := w.stop(); err != nil {
			t.Fatal(err)
		}
		return w
	}
	body := header + first + "ZZZZ,T0002,10:01:00,03-MAY-2021\n"
	run(body, stream+body)
	for _, c := range []struct{ name, command, rows, head string }{
		{"rows of the last snapshot", stream, "MEM,T0002,1,2,3\n", want},
		{"a snapshot", "nmon p:default e:H f:h_1.nmon\n", "ZZZZ,T0002,10:01:00,03-MAY-2021\n", want},
		{"a process", stream, "TOP,12,T0002,5,x\n", want},
		{"another file", "nmon p:default e:h f:h_2.nmon\n", "MEM,T0002,1,2,3\n", ""},
		{"another entity", "nmon p:default e:h2 f:h_1.nmon\n", "MEM,T0002,1,2,3\n", ""},
		{"a header", stream, "AAA,host,h\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			run(c.rows, c.command+c.rows)
			heads := parser.read()
			if got := heads[len(heads)-1]; got != c.head {
				t.Errorf("head %q, want %q", got, c.head)
			}
		})
	}
}

// What is kept is bounded: by age, by bytes, and by the size of one head, beyond which the rows have none rather than a wrong one.
func TestKeptHeadersAreBounded(t *testing.T) {
	now := fixedNow
	var logged strings.Builder
	s := headServer(func() time.Time { return now }, &logged)
	ctx := t.Context()
	one := func(n int) *head {
		return &head{Lines: []headLine{{"MEM,Memory", strings.Repeat("x", n)}}, Snapshot: "Z"}
	}
	s.heads.keep(ctx, s, "old", one(10))
	now = now.Add(headAge + time.Millisecond)
	if s.heads.find(ctx, s, "old") != nil {
		t.Error("a head of more than two days is used")
	}
	for i := range 40 { // 40 times 250 KB are more than 8 MiB, 33 of them are not
		now = now.Add(time.Millisecond)
		s.heads.keep(ctx, s, strconv.Itoa(i), one(250_000))
	}
	if _, kept := s.heads.kept["old"]; kept || len(s.heads.kept) != 33 || s.heads.find(ctx, s, "6") != nil || s.heads.find(ctx, s, "7") == nil {
		t.Errorf("%d heads are kept, want the last 33", len(s.heads.kept))
	}
	var saved *head
	for name, text := range map[string]string{
		"sections":  strings.Repeat("x", 3) + ",A b," + strings.Repeat("c,", maxHead/2) + "\n",
		"long line": "DISKBUSY,Disk %Busy h," + strings.Repeat("hdisk1,", maxHeadLine/7) + "\n",
	} {
		r := &headReader{fileReader: &fileReader{server: s}, saved: func(h *head) { saved = h }}
		saved = nil
		r.collect([]byte("MEM,Memory h,a\nZZZZ,T0001,10:00:00,03-MAY-2021\n"))
		r.save()
		if saved.empty() {
			t.Errorf("%s: nothing is kept of a short head", name)
		}
		for range 5 {
			r.collect([]byte(text))
		}
		r.save()
		if !saved.empty() {
			t.Errorf("%s: a head of %d bytes is kept", name, saved.size())
		}
	}
	r := &headReader{fileReader: &fileReader{server: s}}
	for i := range 9 { // 270 KB
		r.collect([]byte("DISK" + strconv.Itoa(i) + ",Disk h," + strings.Repeat("d,", 15_000) + "\n"))
	}
	if !r.head.empty() || !r.lost {
		t.Errorf("a head of %d bytes is kept", r.head.size())
	}
	s.opts.Limits.HeadFiles, s.opts.Limits.HeadAge = 2, time.Hour
	s.heads.keep(ctx, s, "host\x00file", one(10))
	s.heads.keep(ctx, s, "last", one(10))
	now = now.Add(time.Hour)
	if len(s.heads.kept) != 2 || s.heads.find(ctx, s, "last") == nil {
		t.Errorf("%d heads are kept, want the last 2", len(s.heads.kept))
	}
	now = now.Add(time.Millisecond)
	if s.heads.find(ctx, s, "last") != nil {
		t.Error("a head older than nmon.heads.age is used")
	}
	for _, setting := range []string{"header (nmon.head) of an nmon file", "limit=262144", "nmon.heads=8388608", "nmon.heads.files=4096"} {
		if !strings.Contains(logged.String(), setting) {
			t.Errorf("the log does not name %s: %s", setting, &logged)
		}
	}
}

// headServer is as much of a server as the heads of files need.
func headServer(clock func() time.Time, logged io.Writer) *Server {
	s := &Server{opts: Options{Clock: clock, Log: slog.New(slog.NewTextHandler(logged, nil))}}
	s.opts.Limits.setDefaults()
	s.complaints.clock, s.complaints.log = clock, s.opts.Log
	return s
}

func FuzzHead(f *testing.F) {
	f.Add([]byte("AAA,host,h\nMEM,Memory h,a\r\nZZZZ,T0001,10:00:00\nMEM,T0001,1\nTOP,1,T0001,2\n"), 7)
	s := headServer(time.Now, io.Discard)
	f.Fuzz(func(t *testing.T, text []byte, cut int) {
		collect := func(parts ...[]byte) string {
			r := &headReader{fileReader: &fileReader{server: s}}
			for _, p := range parts {
				r.collect(p)
			}
			if r.head == nil {
				return ""
			}
			return string(r.head.lines())
		}
		cut = max(0, min(cut, len(text)))
		whole := collect(text)
		if parts := collect(text[:cut], text[cut:]); parts != whole {
			t.Fatalf("in two parts %q, in one %q", parts, whole)
		}
		if again := collect([]byte(whole)); !strings.HasPrefix(again, "AAA,progname") && again != whole {
			t.Fatalf("the head of %q is %q", whole, again)
		}
	})
}
