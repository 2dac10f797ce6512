// Package network takes data from sockets: text commands over TCP and UDP, the line protocols of other products on the same ports, files for
// parsers, and the pickle protocol of Graphite.
//
//	accept (tcp.go) -> one session a connection (session.go) -> command.Group -> Ingester
//	                   a csv or nmon command turns the rest of a session into a file (stream.go)
//	                   frames of pickles (pickle.go)
//	datagrams (udp.go) -> a bounded queue -> one worker -> command.Group -> Ingester
//
// Nothing here knows its sender: a door acts as its configured user, whose rights are resolved for each batch (sender.go), and does not open beyond
// loopback without one.
//
// What arrives together becomes one batch, in the order of arrival; while it is stored nothing more is read, so that a sender is slowed down by its own
// connection. When the store cannot take a batch for a while, TCP waits with it, and UDP drops it. Everything dropped is counted by its cause
// (stats.go).
//
// Run owns every goroutine: one a door, one a connection, two for UDP. When it returns none is left.
package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/command"
	"github.com/tidemark-db/tidemark/core/line"
)

// Door is one address to listen on.
type Door struct {
	Address string // host:port; "" = closed
	User    string // that its input acts as; "" = anybody who reaches it may write, which only loopback allows
}

// Limits bound what senders may cost. The zero value of a field means its default. The names in quotes are those of the settings.
type Limits struct {
	Connections   int           // "tcp.connections": open at one time, all TCP doors together. Default 4096.
	PerAddress    int           // "tcp.connections.address": of one client address, an IPv6 address by its /64. Default 2048.
	Idle          time.Duration // "tcp.idle": silence after which a connection is closed. Default 5 minutes, as the contract has it.
	Command       time.Duration // "tcp.command": from the first byte of a command to its last. Default 30 s.
	Memory        int           // "tcp.memory": bytes of all buffers of text commands together. Default 32 MiB.
	Rate          int           // "tcp.rate": commands a second of one connection, which is slowed down, and of UDP, where more is dropped. Default 0: no limit.
	Line          int           // "limits.line": bytes of one command. Default 512 KiB: what 131072 characters need at most.
	Frame         int           // "pickle.frame": bytes of one pickled message. Default 64 KiB.
	Datagram      int           // "udp.datagram": bytes of one datagram. Default 65507, the most that IPv4 carries.
	Queue         int           // "udp.queue": bytes of datagrams that wait for the store, with 128 for each. Default 8 MiB.
	ReceiveBuffer int           // "udp.buffer": bytes that the system keeps for the UDP socket. Default 8 MiB, as the contract has it.
	StreamRest    time.Duration // "stream.rest": silence after which what a csv or nmon stream has sent is converted. Default 100 ms: lines that are written together come within it.
	StreamLatency time.Duration // "stream.latency": how long lines wait to be converted with those after them while a stream is never silent. Default 1 s.
	Head          int           // "nmon.head": bytes that are kept of the headers of one nmon file. Default 256 KiB.
	Heads         int           // "nmon.heads": bytes of all of them. Default 8 MiB.
	HeadFiles     int           // "nmon.heads.files": files of which they are kept. Default 4096.
	HeadAge       time.Duration // "nmon.heads.age": how long after the last connection. Default 48 hours, the retention of the contract.
	Patience      time.Duration // how long a TCP batch waits for a store that is full or unavailable. Default: Idle.
}

func (l *Limits) setDefaults() {
	defaultTo(&l.Connections, 4096)
	defaultTo(&l.PerAddress, 2048)
	defaultTo(&l.Idle, 5*time.Minute)
	defaultTo(&l.Command, 30*time.Second)
	defaultTo(&l.Memory, 32<<20)
	defaultTo(&l.Line, 512<<10)
	defaultTo(&l.Frame, 64<<10)
	defaultTo(&l.Datagram, 65507)
	defaultTo(&l.Queue, 8<<20)
	defaultTo(&l.ReceiveBuffer, 8<<20)
	defaultTo(&l.StreamRest, restTime)
	defaultTo(&l.StreamLatency, latency)
	defaultTo(&l.Head, maxHead)
	defaultTo(&l.Heads, maxHeads)
	defaultTo(&l.HeadFiles, headFiles)
	defaultTo(&l.HeadAge, headAge)
	defaultTo(&l.Patience, l.Idle)
}

func defaultTo[T int | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// Deps is what stands behind the doors. It may be connected after they were opened.
type Deps struct {
	Ingest  core.Ingester
	Catalog core.Catalog // tells what settings will drop; nil = not counted
	Grants  func(ctx context.Context, user string) (core.Grants, error)
	Parser  core.Parser // for csv and nmon; nil refuses them
	Reader  core.Reader // finds what was kept of nmon files before a restart; nil = nothing is kept longer than the server runs
}

// Options of a Server.
type Options struct {
	TCP, UDP, Pickle Door

	Deps
	Markers *command.Markers // shared with HTTP, where they are asked for; nil = of this server alone
	Clock   func() time.Time
	Log     *slog.Logger // nil = discard
	Version string       // digits: the reply to version
	Limits  Limits

	// KeepOnError keeps a connection open after a malformed command, which by default closes it: the setting "tcp.disconnect".
	KeepOnError bool
}

// Server is the open doors.
type Server struct {
	opts    Options
	stats   counters
	mapping atomic.Pointer[line.Mapping]
	heads   heads
	held    atomic.Int64  // bytes of buffers, of Limits.Memory
	backoff time.Duration // first wait for a store that is not available

	tcp, pickle net.Listener
	udp         *net.UDPConn

	conns struct {
		sync.Mutex
		open     map[net.Conn]string // client
		byClient map[string]int
		until    time.Time // when stopping: the time up to which what was sent is read
	}
	complaints complaints
}

// Connect sets what stands behind the doors. It must be called before Run.
func (s *Server) Connect(d Deps) { s.opts.Deps = d }

// Open binds the sockets: before anything else is opened, so that a port in use is said before anything is written. Until Run the system keeps what
// arrives. An error names the setting that can be changed. A Server that is not run must be closed.
func Open(o Options) (*Server, error) {
	o.Limits.setDefaults()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Markers == nil {
		o.Markers = new(command.Markers)
	}
	s := &Server{opts: o, backoff: 100 * time.Millisecond}
	s.conns.open, s.conns.byClient = map[net.Conn]string{}, map[string]int{}
	s.complaints.clock, s.complaints.log = o.Clock, o.Log
	if err := errors.Join(s.bindTCP("tcp", o.TCP, &s.tcp), s.bindUDP(o.UDP), s.bindTCP("pickle", o.Pickle, &s.pickle)); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Server) bindTCP(setting string, d Door, into *net.Listener) error {
	if d.Address == "" {
		return nil
	}
	addr, err := net.ResolveTCPAddr("tcp", d.Address)
	if err != nil {
		return bindError(setting, d, err)
	}
	if err := guarded(setting, d, addr.IP); err != nil {
		return err
	}
	l, err := net.ListenTCP("tcp", addr)
	if err != nil {
		return bindError(setting, d, err)
	}
	*into = l
	return nil
}

func (s *Server) bindUDP(d Door) error {
	if d.Address == "" {
		return nil
	}
	addr, err := net.ResolveUDPAddr("udp", d.Address)
	if err != nil {
		return bindError("udp", d, err)
	}
	if err := guarded("udp", d, addr.IP); err != nil {
		return err
	}
	conn, err := net.ListenUDP("udp", addr)
	if err != nil {
		return bindError("udp", d, err)
	}
	s.udp = conn
	if err := conn.SetReadBuffer(s.opts.Limits.ReceiveBuffer); err != nil {
		s.opts.Log.Warn("the receive buffer of UDP stays as it is", "setting", "udp.buffer", "error", err)
	}
	return nil
}

// guarded refuses to let everybody in the network write as anybody.
func guarded(setting string, d Door, ip net.IP) error {
	if d.User == "" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%[1]s: %[2]s can be reached from other machines, and its senders are not asked who they are: set %[1]s.user to the user that they act as, or listen on 127.0.0.1",
			setting, d.Address)
	}
	return nil
}

func bindError(setting string, d Door, err error) error {
	return fmt.Errorf("%[1]s: cannot listen on %[2]s: %[3]w: choose another address with --set %[1]s=HOST:PORT, or close this door with --set %[1]s=off",
		setting, d.Address, err)
}

// Close closes the sockets of a server that does not run.
func (s *Server) Close() error {
	var errs []error
	for _, l := range []net.Listener{s.tcp, s.pickle} {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	if s.udp != nil {
		errs = append(errs, s.udp.Close())
	}
	return errors.Join(errs...)
}

// Addr returns the address that the door "tcp", "udp" or "pickle" listens on, "" for a closed one.
func (s *Server) Addr(door string) string {
	switch {
	case door == "tcp" && s.tcp != nil:
		return s.tcp.Addr().String()
	case door == "pickle" && s.pickle != nil:
		return s.pickle.Addr().String()
	case door == "udp" && s.udp != nil:
		return s.udp.LocalAddr().String()
	}
	return ""
}

// SetMapping replaces the mapping of Graphite names, for what is read from now on; nil = none.
func (s *Server) SetMapping(m *line.Mapping) { s.mapping.Store(m) }

const (
	// drainTime is how long a stopping server still reads what senders had sent before.
	drainTime = 200 * time.Millisecond
	// stopTime is how long it then may take to store that.
	stopTime = 4 * time.Second
)

// Run serves until ctx ends; it then reads what was sent before, stores it, and returns within five seconds.
func (s *Server) Run(ctx context.Context) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var doors sync.WaitGroup
	failed := make(chan error, 3) // one of each door
	run := func(name string, serve func() error) {
		doors.Go(func() {
			if err := serve(); err != nil && !errors.Is(err, net.ErrClosed) {
				failed <- fmt.Errorf("%s: %w", name, err)
			}
		})
	}
	if s.tcp != nil {
		run("tcp", func() error { return s.accept(work, s.tcp, s.commands) })
	}
	if s.pickle != nil {
		run("pickle", func() error { return s.accept(work, s.pickle, s.pickles) })
	}
	if s.udp != nil {
		run("udp", func() error { return s.serveUDP(work) })
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	late := time.AfterFunc(stopTime, cancel)
	defer late.Stop()
	s.Close()
	s.drain()
	doors.Wait()
	return err
}

// drain makes every connection read what is there and end.
func (s *Server) drain() {
	s.conns.Lock()
	defer s.conns.Unlock()
	s.conns.until = s.opts.Clock().Add(drainTime)
	for conn := range s.conns.open {
		conn.SetReadDeadline(s.conns.until) // fails only when the connection is closed
	}
}

// await sets the time until which a connection waits for its sender; a stopping server has less of it.
func (s *Server) await(conn net.Conn, until time.Time) error {
	s.conns.Lock()
	defer s.conns.Unlock()
	if !s.conns.until.IsZero() && until.After(s.conns.until) {
		until = s.conns.until
	}
	return conn.SetReadDeadline(until)
}

func (s *Server) stopping() bool {
	s.conns.Lock()
	defer s.conns.Unlock()
	return !s.conns.until.IsZero()
}
