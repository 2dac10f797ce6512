package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// The files of the certificate that the server makes for itself, in the data directory.
const (
	selfSignedCert = "tls-certificate.pem"
	selfSignedKey  = "tls-key.pem"
)

const (
	// selfSignedFor is how long a self-signed certificate is valid, renewBefore when it is made again. Browsers refuse certificates of over 398 days.
	selfSignedFor = 397 * 24 * time.Hour
	renewBefore   = 30 * 24 * time.Hour
	// lookEvery is how often a handshake looks whether the files have changed.
	lookEvery = 2 * time.Second
)

// certificates hands out the certificate of the HTTPS listener, and reads it again when its files change. A fault leaves the one before in force.
type certificates struct {
	certFile, keyFile string
	selfSigned        []string // names and addresses of a certificate of our own; nil = the files are somebody else's
	log               *slog.Logger
	now               func() time.Time

	mu struct {
		sync.Mutex
		current *tls.Certificate
		state   string    // names, sizes and times of the files when they were last read
		looked  time.Time // when they were last looked at
	}
}

// openCertificates reads the configured certificate, or makes one for the names of this machine.
func openCertificates(c Config, log *slog.Logger) (*certificates, error) {
	s := &certificates{certFile: c.TLSCert, keyFile: c.TLSKey, log: log, now: time.Now}
	if c.TLSCert == "" {
		s.certFile, s.keyFile = filepath.Join(c.Data, selfSignedCert), filepath.Join(c.Data, selfSignedKey)
		s.selfSigned = certificateNames(c)
	}
	if err := s.read(); err != nil {
		return nil, fmt.Errorf("https: %w", err)
	}
	return s, nil
}

// certificateNames are what clients may call this machine: its name, the loopback, the listen address, and the setting tls.names.
func certificateNames(c Config) []string {
	names := []string{"localhost", "127.0.0.1", "::1", hostname()}
	if host, _, err := net.SplitHostPort(c.HTTPS); err == nil && host != "" {
		names = append(names, host)
	}
	for name := range strings.FieldsFuncSeq(c.TLSNames, func(r rune) bool { return r == ',' || r == ' ' }) {
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// config is that of a listener. TLS 1.2 and better, HTTP/2 and 1.1.
func (s *certificates) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.get(), nil }}
}

// get returns the certificate in force. At most every two seconds a handshake looks at the files first.
func (s *certificates) get() *tls.Certificate {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if now.Sub(s.mu.looked) < lookEvery {
		return s.mu.current
	}
	s.mu.looked = now
	state := s.fingerprint()
	if state == s.mu.state && !s.ends(s.mu.current) {
		return s.mu.current
	}
	s.mu.state = state // a faulty file is told once
	if err := s.load(); err != nil {
		s.log.Error("the certificate was read again, with faults: the one before stays", "err", err)
	} else {
		s.log.Info("the certificate was read again", "until", s.mu.current.Leaf.NotAfter)
	}
	return s.mu.current
}

func (s *certificates) read() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.looked = s.now()
	err := s.load()
	return err
}

// fingerprint is a text that changes with the files.
func (s *certificates) fingerprint() string {
	var b strings.Builder
	for _, path := range []string{s.certFile, s.keyFile} {
		if info, err := os.Stat(path); err == nil {
			fmt.Fprintln(&b, path, info.Size(), info.ModTime().UnixNano())
		}
	}
	return b.String()
}

// ends reports whether a certificate of our own has to be made again.
func (s *certificates) ends(c *tls.Certificate) bool {
	return s.selfSigned != nil && s.now().After(c.Leaf.NotAfter.Add(-renewBefore))
}

// load reads the files, and makes those of our own when they are missing, about to end, or for other names. The caller holds the lock.
func (s *certificates) load() error {
	pair, err := tls.LoadX509KeyPair(s.certFile, s.keyFile)
	if s.selfSigned != nil {
		fits := err == nil && !s.ends(&pair) && s.covers(pair.Leaf)
		if !fits {
			if err := s.make(pair.PrivateKey); err != nil {
				return err
			}
			pair, err = tls.LoadX509KeyPair(s.certFile, s.keyFile)
		}
	}
	if err != nil {
		return err
	}
	s.mu.current, s.mu.state = &pair, s.fingerprint()
	return nil
}

// covers reports whether a certificate is for all of our names.
func (s *certificates) covers(leaf *x509.Certificate) bool {
	return !slices.ContainsFunc(s.selfSigned, func(name string) bool { return leaf.VerifyHostname(name) != nil })
}

// make writes a self-signed certificate. A key that is there already stays: clients may have pinned it.
func (s *certificates) make(before any) error {
	key, ok := before.(*ecdsa.PrivateKey)
	if !ok {
		var err error
		if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return err
		}
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: hostname(), Organization: []string{"Tidemark, self-signed"}},
		NotBefore: s.now().Add(-time.Hour), NotAfter: s.now().Add(selfSignedFor), // the clock of a client may be behind
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true, // so that a client can trust it as it stands
	}
	for _, name := range s.selfSigned {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := replaceFile(s.keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})); err != nil {
		return err
	}
	return replaceFile(s.certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}))
}

// replaceFile writes a file that its owner alone can read, whole or not at all.
func replaceFile(path string, data []byte) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return nil
	}
	temporary := path + ".tmp"
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.WriteFile(temporary, data, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

// withTLS returns the listeners of the server: the plain one, and that of HTTPS when it is configured. server gets the settings that HTTP/2 needs.
func withTLS(c Config, server *http.Server, plain net.Listener, log *slog.Logger) ([]net.Listener, error) {
	warnPlain(c, log)
	bound := newConnections(c, log)
	plain = bound.of(plain)
	if c.HTTPS == "" {
		return []net.Listener{plain}, nil
	}
	certs, err := openCertificates(c, log)
	if err != nil {
		return nil, usageError{err}
	}
	listener, err := net.Listen("tcp", c.HTTPS)
	if err != nil {
		return nil, usageError{fmt.Errorf("cannot listen on %s: %w: choose another address with the setting https", c.HTTPS, err)}
	}
	log.Info("https: listening on " + listener.Addr().String())
	server.TLSConfig = certs.config()
	return []net.Listener{plain, tls.NewListener(bound.of(listener), server.TLSConfig)}, nil
}

// checkTLS finds faults between the settings of TLS.
func checkTLS(c Config) error {
	switch {
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return errors.New("tls.cert and tls.key: set both, or none for a self-signed certificate")
	case c.TLSCert != "" && c.HTTPS == "":
		return errors.New("tls.cert is set, but https is not: set the address to listen on, for example https: 0.0.0.0:8443")
	}
	return nil
}

// warnPlain tells when passwords can be read on the network.
func warnPlain(c Config, log *slog.Logger) {
	if !loopback(c.HTTP) {
		log.Warn("passwords and tokens cross the network in clear on "+c.HTTP+": keep http on the loopback, and set https for other machines", "http", c.HTTP)
	}
}

// loopback reports whether only this machine can reach a listen address.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// strictTransport is a year. It is only sent when plain HTTP is for this machine alone: browsers apply it to every port of a host name.
const strictTransport = "max-age=31536000"

// secured adds the headers that keep a browser from guessing content types, showing answers in frames of others, and going back to plain HTTP.
func secured(c Config, next http.Handler) http.Handler {
	strict := loopback(c.HTTP)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// One array for all values; each slice is full, so that adding to one does not touch its neighbour.
		v := [...]string{"nosniff", "SAMEORIGIN", "same-origin", strictTransport}
		h := w.Header()
		h["X-Content-Type-Options"], h["X-Frame-Options"], h["Referrer-Policy"] = v[0:1:1], v[1:2:2], v[2:3:3]
		if strict && r.TLS != nil {
			h["Strict-Transport-Security"] = v[3:4:4]
		}
		next.ServeHTTP(w, r)
	})
}
