package main

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func openSelfSigned(t *testing.T, c Config, now func() time.Time, log *slog.Logger) *certificates {
	t.Helper()
	s := &certificates{certFile: filepath.Join(c.Data, selfSignedCert), keyFile: filepath.Join(c.Data, selfSignedKey), selfSigned: certificateNames(c), now: now, log: log}
	if err := s.read(); err != nil {
		t.Fatal(err)
	}
	return s
}

// A self-signed certificate is made once, for the names of the machine, readable by its owner alone.
func TestSelfSigned(t *testing.T) {
	now := time.Now()
	clock := func() time.Time { return now }
	log := slog.New(slog.DiscardHandler)
	c := Config{Data: t.TempDir(), HTTPS: "192.0.2.7:8443", TLSNames: "db.example, 10.0.0.9"}
	first := openSelfSigned(t, c, clock, log).get()
	if key, ok := first.PrivateKey.(*ecdsa.PrivateKey); !ok || key.Params().BitSize != 256 {
		t.Errorf("key %T", first.PrivateKey)
	}
	for _, name := range []string{"localhost", "127.0.0.1", "::1", "192.0.2.7", "db.example", "10.0.0.9", hostname()} {
		if err := first.Leaf.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
	if first.Leaf.VerifyHostname("other.example") == nil {
		t.Error("the certificate is for any name")
	}
	for _, file := range []string{selfSignedCert, selfSignedKey} {
		if info, err := os.Stat(filepath.Join(c.Data, file)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", file, info.Mode(), err)
		}
	}
	if again := openSelfSigned(t, c, clock, log).get(); !again.Leaf.Equal(first.Leaf) {
		t.Error("the next start makes another certificate")
	}
	more := c
	more.TLSNames += " second.example"
	second := openSelfSigned(t, more, clock, log).get()
	if second.Leaf.Equal(first.Leaf) || second.Leaf.VerifyHostname("second.example") != nil {
		t.Error("a new name is not in the certificate")
	}
	if !second.Leaf.PublicKey.(*ecdsa.PublicKey).Equal(first.Leaf.PublicKey) {
		t.Error("the key changed with the names")
	}
	// A month before it ends, a running server makes the next one.
	s := openSelfSigned(t, c, clock, log)
	now = now.Add(selfSignedFor - renewBefore + time.Minute)
	if renewed := s.get(); !renewed.Leaf.NotAfter.After(now.Add(renewBefore)) {
		t.Errorf("valid until %v at %v", renewed.Leaf.NotAfter, now)
	}
}

// A certificate from files is read again when they change; a faulty one leaves the one before in force.
func TestCertificateReload(t *testing.T) {
	now := time.Now()
	clock := func() time.Time { return now }
	logged := &strings.Builder{}
	log := slog.New(slog.NewTextHandler(logged, nil))
	pair := func(name string) (cert, key []byte) {
		c := Config{Data: t.TempDir(), TLSNames: name}
		openSelfSigned(t, c, clock, log)
		cert, err1 := os.ReadFile(filepath.Join(c.Data, selfSignedCert))
		key, err2 := os.ReadFile(filepath.Join(c.Data, selfSignedKey))
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		return cert, key
	}
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	write := func(cert, key []byte) {
		now = now.Add(lookEvery)
		for path, data := range map[string][]byte{certFile: cert, keyFile: key} {
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(path, now, now); err != nil { // a file system may count whole seconds
				t.Fatal(err)
			}
		}
	}
	write(pair("one.example"))
	s := &certificates{certFile: certFile, keyFile: keyFile, now: clock, log: log}
	if err := s.read(); err != nil {
		t.Fatal(err)
	}
	has := func(name string) bool { return s.get().Leaf.VerifyHostname(name) == nil }
	if !has("one.example") {
		t.Error("the first certificate is not in force")
	}
	write(pair("two.example"))
	if !has("two.example") {
		t.Error("the second certificate is not in force")
	}
	write([]byte("no certificate"), nil)
	for range 3 {
		if !has("two.example") {
			t.Error("a faulty file took the certificate away")
		}
		now = now.Add(lookEvery)
	}
	if n := strings.Count(logged.String(), "with faults"); n != 1 {
		t.Errorf("the fault is told %d times:\n%s", n, logged)
	}
	write(pair("three.example"))
	if !has("three.example") {
		t.Error("the third certificate is not in force")
	}
	if _, err := openCertificates(Config{TLSCert: filepath.Join(dir, "none"), TLSKey: keyFile}, log); err == nil {
		t.Error("a missing file is no fault at the start")
	}
}

// The listener speaks HTTP/2 and HTTP/1.1 with TLS 1.2 or better.
func TestHTTPS(t *testing.T) {
	c := Config{Data: t.TempDir(), HTTP: "127.0.0.1:8088", HTTPS: "127.0.0.1:0"}
	server := &http.Server{Handler: secured(c, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(r.Proto)) }))}
	doors, err := withTLS(c, server, nil, slog.New(slog.DiscardHandler))
	if err != nil || len(doors) != 2 {
		t.Fatal(doors, err)
	}
	listener := doors[1]
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	defer func() {
		server.Close()
		<-ended
	}()
	cert, err := os.ReadFile(filepath.Join(c.Data, selfSignedCert))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(cert)
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	for want, http2 := range map[string]bool{"HTTP/2.0": true, "HTTP/1.1": false} {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: http2}}
		answer, err := client.Get("https://" + listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		client.CloseIdleConnections()
		if answer.Proto != want || answer.Header.Get("Strict-Transport-Security") == "" || answer.Header.Get("Server") != "" {
			t.Errorf("%s %v, want %s", answer.Proto, answer.Header, want)
		}
	}
	old := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MaxVersion: tls.VersionTLS11}}}
	if answer, err := old.Get("https://" + listener.Addr().String()); err == nil {
		answer.Body.Close()
		t.Error("TLS 1.1 is spoken")
	}
}

func TestSecurityHeaders(t *testing.T) {
	for _, tt := range []struct {
		http   string
		secure bool
		want   string
	}{{"127.0.0.1:8088", true, strictTransport}, {"[::1]:8088", true, strictTransport}, {"127.0.0.1:8088", false, ""}, {"0.0.0.0:8088", true, ""}, {":8088", true, ""}, {"10.0.0.1:80", true, ""}} {
		r := httptest.NewRequest("GET", "/", nil)
		if tt.secure {
			r.TLS = &tls.ConnectionState{}
		}
		rec := httptest.NewRecorder()
		secured(Config{HTTP: tt.http}, http.NotFoundHandler()).ServeHTTP(rec, r)
		if got := rec.Header().Get("Strict-Transport-Security"); got != tt.want {
			t.Errorf("http on %s, TLS %v: %q, want %q", tt.http, tt.secure, got, tt.want)
		}
		if rec.Header().Get("X-Content-Type-Options") != "nosniff" || rec.Header().Get("X-Frame-Options") != "SAMEORIGIN" {
			t.Errorf("%v", rec.Header())
		}
	}
}

func TestPlainPasswordsAreWarnedOf(t *testing.T) {
	for address, want := range map[string]bool{"127.0.0.1:1": false, "localhost:1": false, "[::1]:1": false, "0.0.0.0:1": true, ":1": true, "192.0.2.1:1": true, "[::]:1": true} {
		logged := &strings.Builder{}
		warnPlain(Config{HTTP: address}, slog.New(slog.NewTextHandler(logged, nil)))
		if got := strings.Contains(logged.String(), "in clear"); got != want {
			t.Errorf("%s: warned %v, want %v", address, got, want)
		}
	}
}

func TestTLSSettings(t *testing.T) {
	for _, tt := range []struct{ flags, want string }{
		{"https=127.0.0.1:0", ""}, {"https=", ""}, {"https=nonsense", "is not an address"}, {"tls.cert=a", "set both"}, {"tls.key=a https=:1", "set both"},
		{"tls.cert=a tls.key=b", "https is not"}, {"tls.cert=a tls.key=b https=:1", ""}, {"login.attempts=0", "login.attempts"}, {"user.password.min.length=x", "min.length"},
		{"api.guest.access.enabled=maybe", "neither true nor false"},
	} {
		flags := map[string]string{}
		for pair := range strings.FieldsSeq(tt.flags) {
			name, value, _ := strings.Cut(pair, "=")
			flags[name] = value
		}
		_, err := loadConfig(t.TempDir(), flags, nil)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.flags, err, tt.want)
		}
	}
}
