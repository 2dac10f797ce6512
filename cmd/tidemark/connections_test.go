package main

import (
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"
)

// TestConnectionsAreBounded: a stranger who opens connections gets only so many, and places come back.
func TestConnectionsAreBounded(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	var logged strings.Builder
	bound := newConnections(Config{HTTPConnections: 3, HTTPPerAddress: 2}, slog.New(slog.NewTextHandler(&logged, nil)))
	accepted := make(chan net.Conn, 8)
	go func() {
		defer close(accepted)
		for l := bound.of(inner); ; {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	dial()
	dial()
	first, second := <-accepted, <-accepted
	third := dial()
	third.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := third.Read(make([]byte, 1)); err == nil || strings.Contains(err.Error(), "timeout") {
		t.Errorf("the third connection of an address: %v, want it closed", err)
	}
	for range 2 { // a second Close gives no second place
		first.Close()
	}
	dial()
	again := <-accepted
	if bound.open != 2 {
		t.Errorf("%d connections are counted, want 2", bound.open)
	}
	again.Close()
	second.Close()
	if bound.open != 0 || len(bound.byClient) != 0 {
		t.Errorf("after all were closed: %d, %v", bound.open, bound.byClient)
	}
	inner.Close()
	for range accepted {
	}
	if !strings.Contains(logged.String(), "http.connections.address") {
		t.Errorf("the log does not name the setting: %s", logged.String())
	}
}

// TestPlacesOfAll: other addresses find no place either when all are taken.
func TestPlacesOfAll(t *testing.T) {
	bound := newConnections(Config{HTTPConnections: 2, HTTPPerAddress: 2}, slog.New(slog.NewTextHandler(io.Discard, nil)))
	for _, c := range []struct {
		address string
		want    bool
	}{{"192.0.2.1", true}, {"192.0.2.2", true}, {"192.0.2.3", false}} {
		if got := bound.admit(c.address); got != c.want {
			t.Errorf("%s: %v", c.address, got)
		}
	}
	bound.release("192.0.2.1")
	if !bound.admit("192.0.2.3") {
		t.Error("a place that was given back is not free")
	}
}
