package outbox

import (
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	requestTimeout = 30 * time.Second
	// maxResponse is how much of an answer is read: enough for a reason, and for the connection to be used again.
	maxResponse = 64 << 10
	// maxWait bounds Retry-After, so that a target cannot park a notification for ever.
	maxWait   = 24 * time.Hour
	redirects = 5
	userAgent = "Tidemark"
)

// answer is what a target said.
type answer struct {
	status     int
	retryAfter time.Duration
	final      bool // trying again cannot help: the request itself is wrong on our side
}

// send makes one attempt. It succeeds with a status of 2xx.
func (b *Outbox) send(ctx context.Context, n *Notification) (answer, error) {
	timeout := n.Request.Timeout
	if timeout <= 0 {
		timeout = requestTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := b.request(ctx, n)
	if err != nil {
		return answer{final: true}, err
	}
	client := http.Client{Transport: b.plain, CheckRedirect: checkRedirect}
	if n.Request.IgnoreTLS {
		client.Transport = b.loose
	}
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, hideURL(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxResponse)) // the status decides; a cut answer is no reason to repeat the request
	if n.Request.LogResponse {
		b.o.Logger.Info("outbox: response", "id", n.ID, "status", resp.StatusCode, "body", string(body))
	}
	a := answer{status: resp.StatusCode, retryAfter: retryAfter(resp, time.UnixMilli(int64(b.o.Clock())))}
	if resp.StatusCode/100 == 2 {
		return a, nil
	}
	return a, fmt.Errorf("%s%s", resp.Status, reason(body))
}

// reason is the start of an error answer, when it is readable.
func reason(body []byte) string {
	const most = 200
	text := strings.Join(strings.Fields(string(body)), " ")
	if text == "" || !utf8.ValidString(text) {
		return ""
	}
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return ": " + text
}

// hideURL drops the URL from an error of the client: it may hold a token.
func hideURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

func (b *Outbox) request(ctx context.Context, n *Notification) (*http.Request, error) {
	r := &n.Request
	var body io.Reader
	if r.Body != "" {
		body = strings.NewReader(r.Body)
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, body)
	if err != nil {
		return nil, fmt.Errorf("bad URL or method: %w", hideURL(err))
	}
	if req.URL.Scheme != "http" && req.URL.Scheme != "https" || req.URL.Host == "" {
		return nil, fmt.Errorf("URL of scheme %q: write http:// or https:// and a host", req.URL.Scheme)
	}
	req.Header.Set("User-Agent", userAgent)
	if r.ContentType != "" && r.Body != "" {
		req.Header.Set("Content-Type", withCharset(r.ContentType))
	}
	for _, h := range r.Headers {
		value, err := resolve(h.Value, b.o.Secrets)
		if err != nil {
			return nil, err
		}
		if strings.EqualFold(h.Name, "Host") {
			req.Host = value
			continue
		}
		req.Header.Set(h.Name, value)
	}
	if err := b.authorise(req, r); err != nil {
		return nil, err
	}
	return req, b.sign(req, n)
}

func withCharset(contentType string) string {
	if strings.Contains(strings.ToLower(contentType), "charset=") {
		return contentType
	}
	return contentType + "; charset=UTF-8"
}

func (b *Outbox) authorise(req *http.Request, r *Request) error {
	if r.Bearer != "" {
		token, err := resolve(r.Bearer, b.o.Secrets)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if r.User == "" {
		return nil
	}
	user, err := resolve(r.User, b.o.Secrets)
	if err != nil {
		return err
	}
	password, err := resolve(r.Password, b.o.Secrets)
	if err != nil {
		return err
	}
	req.SetBasicAuth(user, password)
	return nil
}

// sign adds the headers of Standard Webhooks, https://www.standardwebhooks.com: the signature is `v1,` and the base64 HMAC-SHA256 over
// `id.timestamp.body`. Several secrets, separated by blanks, give several signatures: that is how a secret is replaced.
func (b *Outbox) sign(req *http.Request, n *Notification) error {
	stamp := strconv.FormatInt(int64(b.o.Clock())/1000, 10)
	req.Header.Set("Webhook-Id", n.ID)
	req.Header.Set("Webhook-Timestamp", stamp)
	secret, err := b.signingSecret(&n.Request)
	if err != nil || secret == "" {
		return err
	}
	var signatures []string
	for s := range strings.FieldsSeq(secret) {
		key, err := signingKey(s)
		if err != nil {
			return err
		}
		signatures = append(signatures, "v1,"+signature(key, n.ID+"."+stamp+"."+n.Request.Body))
	}
	req.Header.Set("Webhook-Signature", strings.Join(signatures, " "))
	if n.Request.HexSHA1 {
		text := n.Request.Body
		if n.Request.SignedText != "" {
			text = n.Request.SignedText
		}
		req.Header.Set("X-Axi-Signature", "sha1="+hexSHA1(secret, text))
	}
	return nil
}

func (b *Outbox) signingSecret(r *Request) (string, error) {
	if r.Secret != "" {
		return resolve(r.Secret, b.o.Secrets)
	}
	if b.o.Secrets == nil {
		return "", nil
	}
	secret, _ := b.o.Secrets(b.o.SigningSecret) // without one, requests go unsigned
	return secret, nil
}

// signingKey decodes `whsec_` and base64; anything else is the key itself.
func signingKey(secret string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(secret, "whsec_")
	if !ok {
		return []byte(secret), nil
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, errors.New("signing secret is not base64 after whsec_")
	}
	return key, nil
}

func signature(key []byte, text string) string {
	mac := hmac.New(sha256.New, key)
	_, _ = io.WriteString(mac, text) // a hash takes everything
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func hexSHA1(secret, text string) string {
	mac := hmac.New(sha1.New, []byte(secret))
	_, _ = io.WriteString(mac, text) // a hash takes everything
	return hex.EncodeToString(mac.Sum(nil))
}

// checkRedirect follows GET only: anything else would repeat a body at an address that nobody configured.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if via[0].Method != http.MethodGet {
		return http.ErrUseLastResponse
	}
	if len(via) > redirects {
		return fmt.Errorf("more than %d redirects", redirects)
	}
	return nil
}

// retryAfter reads seconds or a date from the header of a 429, 503 or redirect.
func retryAfter(resp *http.Response, now time.Time) time.Duration {
	text := resp.Header.Get("Retry-After")
	if text == "" || resp.StatusCode/100 == 2 {
		return 0
	}
	var wait time.Duration
	if s, err := strconv.ParseInt(text, 10, 32); err == nil {
		wait = time.Duration(s) * time.Second
	} else if t, err := http.ParseTime(text); err == nil {
		wait = t.Sub(now)
	}
	return min(max(wait, 0), maxWait)
}
