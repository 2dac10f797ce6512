package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tidemark-db/tidemark/core/api"
	"github.com/tidemark-db/tidemark/core/command"
	"github.com/tidemark-db/tidemark/core/line"
	"github.com/tidemark-db/tidemark/core/network"
	"github.com/tidemark-db/tidemark/core/selfmetrics"
)

// NetworkConfig is what can be set of the doors without HTTP, and of the protocols of other products.
type NetworkConfig struct {
	TCP, UDP, Pickle             string // host:port, off or auto
	TCPUser, UDPUser, PickleUser string
	Disconnect                   bool
	Connections, PerAddress      int64
	Idle, Command                time.Duration
	Rate, Memory                 int64
	Frame                        int64
	Datagram, Queue, UDPBuffer   int64
	StreamRest, StreamLatency    time.Duration
	Head, Heads, HeadFiles       int64
	HeadAge                      time.Duration
	InfluxEntity                 string
	IgnoreTags                   string
}

// mappingFile maps Graphite names; it lies in the configuration folder.
const mappingFile = "graphite.map"

// The ports of the contract. A door that is auto takes its own on loopback when HTTP has its own: a server that was moved to another port is the second one on
// its machine, and would only find them taken.
const (
	httpPort = "8088"
	tcpPort  = "8081"
	udpPort  = "8082"
)

// doorAddress resolves a setting; "" is a closed door.
func doorAddress(value, http, port string) string {
	switch value {
	case "off":
		return ""
	case "auto":
		if _, own, err := net.SplitHostPort(http); err != nil || own != httpPort {
			return ""
		}
		return net.JoinHostPort("127.0.0.1", port)
	}
	return value
}

// door is a setting that is an address, off, or auto where that is allowed.
func door(field func(*Config) *string, words ...string) func(*Config, string) error {
	set := address(field)
	return func(c *Config, v string) error {
		for _, word := range words {
			if v == word {
				*field(c) = v
				return nil
			}
		}
		if err := set(c, v); err != nil {
			return fmt.Errorf("%w, or %s", err, strings.Join(words, " or "))
		}
		return nil
	}
}

// count is a whole number, 0 included.
func count(field func(*Config) *int64) func(*Config, string) error {
	set := size(field)
	return func(c *Config, v string) error {
		if v == "0" {
			*field(c) = 0
			return nil
		}
		return set(c, v)
	}
}

// networkDoors are the open doors with what the rest of the server needs of them.
type networkDoors struct {
	*network.Server
	markers *command.Markers
	dir     string
	log     *slog.Logger
}

// openDoors binds the sockets and reads the mapping of Graphite names.
func openDoors(c Config, log *slog.Logger) (*networkDoors, error) {
	n := &c.Network
	d := &networkDoors{markers: new(command.Markers), dir: c.Dir, log: log}
	var err error
	d.Server, err = network.Open(network.Options{
		TCP:    network.Door{Address: doorAddress(n.TCP, c.HTTP, tcpPort), User: n.TCPUser},
		UDP:    network.Door{Address: doorAddress(n.UDP, c.HTTP, udpPort), User: n.UDPUser},
		Pickle: network.Door{Address: doorAddress(n.Pickle, c.HTTP, ""), User: n.PickleUser},
		Limits: network.Limits{Connections: int(n.Connections), PerAddress: int(n.PerAddress), Idle: n.Idle, Command: n.Command, Rate: int(n.Rate), Memory: int(n.Memory),
			Line: int(c.LineBytes), Frame: int(n.Frame), Datagram: int(n.Datagram), Queue: int(n.Queue), ReceiveBuffer: int(n.UDPBuffer),
			StreamRest: n.StreamRest, StreamLatency: n.StreamLatency, Head: int(n.Head), Heads: int(n.Heads), HeadFiles: int(n.HeadFiles), HeadAge: n.HeadAge},
		KeepOnError: !n.Disconnect, Markers: d.markers, Clock: time.Now, Log: log, Version: revision(),
	})
	if err != nil {
		return nil, usageError{err}
	}
	if err := d.readMapping(context.Background()); err != nil {
		return nil, errors.Join(usageError{err}, d.Close())
	}
	for _, name := range []string{"tcp", "udp", "pickle"} {
		if addr := d.Addr(name); addr != "" {
			log.Info("network: " + name + " is open on " + addr)
		}
	}
	return d, nil
}

// readMapping reads the mapping file again. A fault leaves the mapping that was in force.
func (d *networkDoors) readMapping(context.Context) error {
	path := filepath.Join(d.dir, mappingFile)
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("mapping of Graphite names: %w", err)
	}
	m, err := line.ParseMapping(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	d.SetMapping(m)
	return nil
}

// foreign is how the API names data of other products.
func (c Config) foreign() api.Foreign {
	return api.Foreign{EntityTag: strings.ToLower(c.Network.InfluxEntity), IgnoreTags: strings.Fields(c.Network.IgnoreTags)}
}

// values are the self-metrics of the contract.
func (d *networkDoors) values() []selfmetrics.Value {
	s := d.Stats()
	return []selfmetrics.Value{
		{Name: "network_command_malformed_per_second", Kind: selfmetrics.PerSecond, N: float64(s.Malformed())},
		{Name: "network_command_ignored_per_second", Kind: selfmetrics.PerSecond, N: float64(s.Ignored())},
	}
}

// prometheus appends what the doors count to /metrics.
func (d *networkDoors) prometheus(w io.Writer) {
	s := d.Stats()
	fmt.Fprintf(w, "tidemark_network_connections %d\n", s.Connections)
	for _, one := range []struct {
		name string
		n    int64
	}{
		{"connections_total", s.Accepted}, {"commands_total", s.Commands}, {"datagrams_total", s.Datagrams}, {"bytes_total", s.Bytes},
		{`connections_closed_total{cause="limit"}`, s.TurnedAway}, {`connections_closed_total{cause="idle"}`, s.Idle}, {`connections_closed_total{cause="slow"}`, s.Slow},
	} {
		fmt.Fprintf(w, "tidemark_network_%s %d\n", one.name, one.n)
	}
	for _, cause := range network.Causes() {
		fmt.Fprintf(w, "tidemark_network_dropped_total{cause=%q} %d\n", cause, s.Dropped[cause])
	}
}
