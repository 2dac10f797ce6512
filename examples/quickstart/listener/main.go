// The listener receives signed notifications and prints them. It checks the signature as Standard Webhooks describes it: HMAC-SHA256 over
// id.timestamp.body with the secret after whsec_, in base64. With --fail N it answers the first N requests with 503, to show that a
// notification comes again under the same id.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

func main() {
	addr := flag.String("http", "127.0.0.1:8099", "address to listen on")
	secretFile := flag.String("secret", "examples/quickstart/config/secrets/LISTENER", "file with the secret")
	fail := flag.Int64("fail", 0, "answer this many requests with 503 first")
	flag.Parse()
	text, err := os.ReadFile(*secretFile)
	if err != nil {
		log.Fatal(err)
	}
	secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(strings.TrimSpace(string(text)), "whsec_"))
	if err != nil {
		log.Fatalf("%s: %v", *secretFile, err)
	}
	ln, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("listening on", ln.Addr())
	log.Fatal(http.Serve(ln, &listener{secret: secret, failures: *fail}))
}

type listener struct {
	secret   []byte
	failures int64
	requests atomic.Int64
}

func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		return
	}
	id := r.Header.Get("webhook-id")
	if err := l.verify(r.Header, body, time.Now()); err != nil {
		fmt.Printf("refused %s: %v\n", id, err)
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	if l.requests.Add(1) <= l.failures {
		fmt.Printf("busy %s\n", id)
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	fmt.Printf("received %s %s\n", id, body)
}

// verify checks age and signature. Several signatures may be sent while a secret is being changed.
func (l *listener) verify(h http.Header, body []byte, now time.Time) error {
	sent, err := strconv.ParseInt(h.Get("webhook-timestamp"), 10, 64)
	if err != nil || now.Sub(time.Unix(sent, 0)).Abs() > 5*time.Minute {
		return errors.New("timestamp missing or more than five minutes away")
	}
	mac := hmac.New(sha256.New, l.secret)
	fmt.Fprintf(mac, "%s.%d.%s", h.Get("webhook-id"), sent, body)
	want := mac.Sum(nil)
	for _, signature := range strings.Fields(h.Get("webhook-signature")) {
		got, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(signature, "v1,"))
		if err == nil && hmac.Equal(got, want) {
			return nil
		}
	}
	return errors.New("wrong signature")
}
