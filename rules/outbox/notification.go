package outbox

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

// Notification is one request to be made, at least once. Its JSON form is the body of a DocOutbox document, and of a DocDeadLetter one when it failed for
// good. Secrets are never in it: texts hold marks, see Mark, which delivery replaces.
type Notification struct {
	ID       string    `json:"id"` // webhook-id, the same over all attempts; the key of the document
	Rule     string    `json:"rule"`
	Action   string    `json:"action"`
	Endpoint string    `json:"endpoint,omitempty"`
	Entity   string    `json:"entity,omitempty"`
	Created  core.Time `json:"created"`
	Lane     string    `json:"lane,omitempty"` // notifications of one lane are delivered in their order; "" = in no order
	Order    Order     `json:"order,omitzero"`
	Flag     string    `json:"flag,omitempty"` // what went wrong while it was rendered
	Request  Request   `json:"request"`

	Attempts int       `json:"attempts,omitempty"` // made so far
	Next     core.Time `json:"next,omitempty"`     // not before
	Error    string    `json:"error,omitempty"`    // of the last attempt
}

// Order says when a notification was made: at which place in the log, at which tick, and as which event of that point.
type Order struct {
	Position core.Position `json:"position"`
	Tick     core.Time     `json:"tick"`
	Event    int           `json:"event"`
}

func (o Order) compare(p Order) int {
	return cmp.Or(cmp.Compare(o.Position, p.Position), cmp.Compare(o.Tick, p.Tick), cmp.Compare(o.Event, p.Event))
}

// attributes tell the log which notification is meant.
func (n *Notification) attributes() []any {
	return []any{"id", n.ID, "rule", n.Rule, "action", n.Action, "endpoint", n.Endpoint, "target", hostOf(n.Request.URL)}
}

// Request is what an attempt sends.
type Request struct {
	Method      string        `json:"method"`
	URL         string        `json:"url"`
	Headers     []Header      `json:"headers,omitempty"`
	ContentType string        `json:"contentType,omitempty"`
	Body        string        `json:"body,omitempty"`
	User        string        `json:"user,omitempty"` // basic authentication, with Password
	Password    string        `json:"password,omitempty"`
	Bearer      string        `json:"bearer,omitempty"`
	Secret      string        `json:"secret,omitempty"`  // of the signature; "" = the outbox's default
	HexSHA1     bool          `json:"hexSha1,omitempty"` // add x-axi-signature, which receivers of the fixed payload check
	SignedText  string        `json:"signed,omitempty"`  // what x-axi-signature covers when it is not the body
	Timeout     time.Duration `json:"timeout,omitempty"` // of the whole attempt; 0 = 30 s
	Retries     int           `json:"retries"`           // after the first attempt; -1 = the outbox's schedule
	IgnoreTLS   bool          `json:"ignoreTls,omitempty"`
	LogResponse bool          `json:"logResponse,omitempty"`
}

// Header is one header field.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Document is the change that queues n, or stores its state after a failed attempt.
func (n Notification) Document() core.DocChange { return n.document(core.DocOutbox) }

func (n Notification) document(kind core.DocKind) core.DocChange {
	body, _ := json.Marshal(n) // strings and numbers: cannot fail
	return core.DocChange{Kind: kind, Key: n.ID, Op: core.DocPut, Body: body}
}

// Decode is the inverse of Document.
func Decode(body []byte) (Notification, error) {
	var n Notification
	if err := json.Unmarshal(body, &n); err != nil {
		return n, core.Wrap(core.Internal, err, "outbox document is damaged")
	}
	return n, nil
}

// A mark stands for a secret inside a stored text: U+0001 name U+0001. Rendered values never hold control characters, so that none can pose as a mark.
const markByte = "\x01"

// Mark returns the text that stands for the named secret.
func Mark(name string) string { return markByte + strings.ReplaceAll(name, markByte, "") + markByte }

// resolve replaces the marks of text by their secrets. The error names a secret that is missing, never a value.
func resolve(text string, secrets func(string) (string, bool)) (string, error) {
	if !strings.Contains(text, markByte) {
		return text, nil
	}
	parts := strings.Split(text, markByte)
	for i := 1; i < len(parts); i += 2 {
		value, ok := "", false
		if secrets != nil {
			value, ok = secrets(parts[i])
		}
		if !ok {
			return "", core.Errorf(core.NotFound, "secret %q is not set", parts[i])
		}
		parts[i] = value
	}
	return strings.Join(parts, ""), nil
}
