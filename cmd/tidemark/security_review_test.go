package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/memstore"
)

// taken is an ingester that remembers the documents of its last batch.
type taken struct{ documents []core.DocChange }

func (k *taken) Ingest(_ context.Context, b *core.Batch) (core.Receipt, error) {
	k.documents = b.Documents
	return core.Receipt{}, nil
}

// TestPluginsOnlyDescribe: the server writes what a plugin says of metrics with its own rights, so that it must not be settings of which data depends.
func TestPluginsOnlyDescribe(t *testing.T) {
	for _, c := range []struct{ sent, want string }{
		{`{"tags":{"table":"CPU"}}`, `{"tags":{"table":"CPU"}}`},
		{`{"enabled":false,"retentionDays":1,"units":"%","persistent":false}`, `{"units":"%"}`},
		{`{"enabled":false}`, ""},
	} {
		var log taken
		configs := parserConfigs{catalog: memstore.New(), ingest: &log}
		err := configs.describe(t.Context(), []core.DocChange{{Kind: core.DocMetric, Key: "cpu", Op: core.DocPatch, Body: []byte(c.sent)}})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if len(log.documents) > 0 {
			got = string(log.documents[0].Body)
		}
		if got != c.want {
			t.Errorf("%s: the server writes %s, want %s", c.sent, got, c.want)
		}
	}
}

// TestCredentialsAreForTheOwnerAlone: a file that others can read must not become the one with the password.
func TestCredentialsAreForTheOwnerAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), credentialsFile)
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := replaceFile(path, []byte("admin:secret\n")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("mode %o", mode)
	}
}

// manyAddresses is a listener whose connections come from the given addresses.
type manyAddresses struct {
	net.Listener
	from []string
}

type addressed struct {
	net.Conn
	address string
	closed  bool
}

func (a *addressed) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(a.address), 4711))
}

func (a *addressed) Close() error {
	a.closed = true
	return nil
}

func (l *manyAddresses) Accept() (net.Conn, error) {
	if len(l.from) == 0 {
		return nil, net.ErrClosed
	}
	conn := &addressed{address: l.from[0]}
	l.from = l.from[1:]
	return conn, nil
}

// TestConnectionsOfANetwork: who has one IPv6 address has 2^64 of them, and must not be counted as so many clients.
func TestConnectionsOfANetwork(t *testing.T) {
	bound := newConnections(Config{HTTPConnections: 10, HTTPPerAddress: 1}, slog.New(slog.DiscardHandler))
	l := bound.of(&manyAddresses{from: []string{"2001:db8:1:2::1", "2001:db8:1:2:9::2", "2001:db8:1:3::1", "192.0.2.1", "192.0.2.2"}})
	var got []string
	for {
		conn, err := l.Accept()
		if err != nil {
			break
		}
		host, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
		got = append(got, host)
	}
	if want := []string{"2001:db8:1:2::1", "2001:db8:1:3::1", "192.0.2.1", "192.0.2.2"}; !slices.Equal(got, want) {
		t.Errorf("accepted %q, want %q", got, want)
	}
}

// TestHeadsAreBounded: the head of a request is kept before anybody has said who they are.
func TestHeadsAreBounded(t *testing.T) {
	c, err := loadConfig(t.TempDir(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	hurried(server, c)
	served := make(chan struct{})
	go func() {
		defer close(served)
		server.Serve(l)
	}()
	for length, want := range map[int]int{60_000: 200, 80_000: 431} { // net/http gives 4 KiB more than it is told
		answer, err := http.Get("http://" + l.Addr().String() + "/?" + strings.Repeat("x", length))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("a head of %d bytes: %d, want %d", length, answer.StatusCode, want)
		}
	}
	server.Close()
	<-served
}
