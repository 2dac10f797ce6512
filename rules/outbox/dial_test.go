package outbox

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestCheckAddress(t *testing.T) {
	for address, ok := range map[string]bool{
		"169.254.169.254:80": false, "[::ffff:169.254.169.254]:80": false, "[64:ff9b::a9fe:a9fe]:80": false, "[fe80::1%eth0]:80": false,
		"[fd00:ec2::254]:80": false, "100.100.100.200:80": false, "0.0.0.0:80": false, "224.0.0.1:80": false, "[ff02::1]:80": false,
		"10.0.0.1:80": true, "192.168.1.1:443": true, "127.0.0.1:80": true, "[::1]:80": true, "93.184.216.34:443": true, "[fd12::1]:80": true,
	} {
		if err := checkAddress("tcp", address, nil); (err == nil) != ok {
			t.Errorf("%s: %v, allowed should be %v", address, err, ok)
		}
	}
}

func TestDialRefusesMetadata(t *testing.T) {
	client := http.Client{Transport: newTransport(verified)}
	req, _ := http.NewRequestWithContext(context.Background(), "GET", "http://169.254.169.254/latest/meta-data/", nil)
	if _, err := client.Do(req); err == nil || !strings.Contains(err.Error(), "refused: link-local") {
		t.Errorf("got %v", err)
	}
}

// The two examples are those of section 4.2 of the rule contract.
func TestHexSHA1(t *testing.T) {
	for text, want := range map[string]string{
		`{"rule":"disk","status":"OPEN"}`: "80b73d23446695bc2b81193bee12fe1da0f84ff8",
		"entity=web-1&status=OPEN":        "b2b945c6e66a3c85e00dc0b64e3b7c080e72a219",
	} {
		if got := hexSHA1("k3y", text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestRedirectsOfGet(t *testing.T) {
	hops := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hops++; hops <= redirects {
			http.Redirect(w, r, "/next", http.StatusFound)
		}
	}))
	defer server.Close()
	client := http.Client{Transport: newTransport(verified), CheckRedirect: checkRedirect}
	defer client.CloseIdleConnections()
	resp, err := client.Get(server.URL)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("five redirects: %v", err)
	}
	resp.Body.Close()
	hops = -1
	if _, err := client.Get(server.URL); err == nil {
		t.Error("six redirects were followed")
	}
}

func TestCertificatesAreVerified(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = nil
	defer server.Close()
	for v, ok := range map[verification]bool{verified: false, unverified: true} {
		client := http.Client{Transport: newTransport(v)}
		resp, err := client.Get(server.URL)
		if (err == nil) != ok {
			t.Errorf("verification %d: %v", v, err)
		}
		if err == nil {
			resp.Body.Close()
		}
		client.CloseIdleConnections()
	}
}
