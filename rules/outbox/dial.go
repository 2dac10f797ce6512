package outbox

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"
)

type verification uint8

const (
	verified verification = iota
	unverified
)

const connectTimeout = 10 * time.Second

// newTransport makes connections without a proxy from the environment, and only to addresses that checkAddress allows.
func newTransport(v verification) *http.Transport {
	dialer := &net.Dialer{Timeout: connectTimeout, Control: checkAddress}
	return &http.Transport{DialContext: dialer.DialContext, TLSHandshakeTimeout: connectTimeout, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: v == unverified}, MaxResponseHeaderBytes: maxResponse,
		ForceAttemptHTTP2: true}
}

func closeIdle(list ...http.RoundTripper) {
	for _, t := range list {
		if c, ok := t.(interface{ CloseIdleConnections() }); ok {
			c.CloseIdleConnections()
		}
	}
}

// metadata are the addresses at which clouds hand out credentials, beside the link-local ones.
var metadata = []netip.Addr{netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("192.0.0.192")}

// nat64 is the prefix that carries an IPv4 address in its last four bytes.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// checkAddress refuses an address after names are resolved, so that no name can hide one. Private ranges are allowed: on an edge box the receiver is in
// the local network.
func checkAddress(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return err
	}
	ip = ip.Unmap().WithZone("")
	if nat64.Contains(ip) {
		b := ip.As16()
		ip = netip.AddrFrom4([4]byte(b[12:]))
	}
	refused := ip.IsLinkLocalUnicast() || ip.IsLinkLocalMulticast() || ip.IsInterfaceLocalMulticast() || ip.IsMulticast() || ip.IsUnspecified()
	for _, m := range metadata {
		refused = refused || ip == m
	}
	if refused {
		return fmt.Errorf("address %s is refused: link-local and metadata addresses are never called", ip)
	}
	return nil
}

// hostOf is the target that limits and pauses apply to.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// addressOf is a URL without credentials, query and fragment.
func addressOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host + u.EscapedPath()
}
