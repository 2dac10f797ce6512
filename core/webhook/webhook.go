package webhook

import (
	"mime"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"github.com/tidemark-db/tidemark/core"
)

// Door is the door of batches that hold webhook messages. Tags named type, source and severity stay tags behind it, where other inserts drop them.
const Door core.Door = "webhook"

// Request is what Map looks at.
type Request struct {
	Method      string
	RawQuery    string              // still encoded
	Rest        string              // path after /messages/webhook/, decoded
	Header      map[string][]string // net/http's Header: canonical names
	Host        string              // the header that net/http keeps beside the others
	Body        string              // decompressed; the message may point into it
	ContentType string
	RemoteIP    string // of the socket peer, without port
	Now         core.Time
	Zone        *time.Location // of dates whose pattern has no zone; nil = UTC
	MaxDepth    int            // of nested JSON; 0 = 64
	MaxTags     int            // 0 = 1024
}

// Result is the message of a request.
type Result struct {
	Message     core.Message
	HasSeverity bool   // false: the severity is undefined because nothing set it
	Debug       bool   // the caller wants to see the message
	Challenge   string // not empty: answer with this text and store nothing
}

const (
	defaultMaxDepth = 64
	defaultMaxTags  = 1024

	// maxParses and maxPatterns bound the work that a short query string can cause on a large body.
	maxParses   = 64
	maxPatterns = 256
)

// Map makes the message. Errors are of code Invalid, TooLarge or Unsupported, and have the text of the answer.
func Map(r Request) (Result, error) {
	if r.MaxDepth == 0 {
		r.MaxDepth = defaultMaxDepth
	}
	if r.MaxTags == 0 {
		r.MaxTags = defaultMaxTags
	}
	m := mappers.Get().(*mapper)
	defer m.release()
	return m.message(r)
}

// message takes a request whose limits are set.
func (m *mapper) message(r Request) (Result, error) {
	m.Request = r
	if err := m.read(); err != nil {
		return Result{}, err
	}
	if m.challenge != "" {
		return Result{Challenge: m.challenge}, nil
	}
	result := Result{Debug: strings.EqualFold(m.params.reserved("debug"), "true")}
	if err := m.fields(&result); err != nil {
		return Result{}, err
	}
	var err error
	result.Message.Tags, err = m.tags()
	result.Message.Flags = core.Default
	return result, err
}

// mappers keep their memory from request to request.
var mappers = sync.Pool{New: func() any { return new(mapper) }}

// mapper holds one request taken apart.
type mapper struct {
	Request
	query     query // of this request, and with luck of the one before
	params    parameters
	plain     flat      // non-reserved parameters of the query string and the form
	payload   flat      // of the JSON body
	kept      []int32   // of the leaves that become tags, by name
	fixed     core.Tags // that no filter takes out
	challenge string
}

// maxMapper is what a mapper may hold on to between requests: enough for bodies of some 100 KB. Larger ones are rare and pay for themselves.
const maxMapper = 256 << 10

// release gives m back, without what it holds of the request.
func (m *mapper) release() {
	m.plain.reset(0)
	m.payload.reset(0)
	if m.plain.size()+m.payload.size()+4*cap(m.kept)+m.query.size() > maxMapper {
		return
	}
	clear(m.fixed)
	m.Request, m.params, m.challenge, m.fixed = Request{}, nil, "", m.fixed[:0]
	mappers.Put(m)
}

// read takes the request apart.
func (m *mapper) read() error {
	params, err := m.query.parse(m.RawQuery)
	if err != nil {
		return err
	}
	m.params = params
	m.plain.reset(m.MaxDepth)
	m.payload.reset(m.MaxDepth)
	if m.Method != "GET" { // the contract knows no body of a GET
		if err := m.readBody(); err != nil {
			return err
		}
	}
	if err := m.plain.addParameters(m.params); err != nil {
		return err
	}
	return m.parseEmbedded()
}

// readBody decides by content type how to read the body; a body that looks like JSON is read as that whatever its sender calls it.
func (m *mapper) readBody() error {
	media := mediaType(m.ContentType)
	first := firstByte(m.Body)
	switch {
	case first == 0:
		return nil
	case media == "application/x-www-form-urlencoded":
		return m.params.addForm(m.Body)
	case media == "application/json", strings.HasSuffix(media, "+json"), first == '{', first == '[':
		if err := checkJSON(m.Body, m.MaxDepth); err != nil {
			return err
		}
		if err := m.payload.flatten(m.Body, "", ""); err != nil {
			return err
		}
		// Chat services send this before anything else and want the text back; it is no event.
		if m.payload.holds(verification) && gjson.Get(m.Body, "type").Str == verification {
			m.challenge = gjson.Get(m.Body, "challenge").Str
		}
		return nil
	}
	return core.Errorf(core.Unsupported, "webhook body of type %q is not supported: send application/json or application/x-www-form-urlencoded", m.ContentType)
}

// verification is the type of a request whose answer is the text in challenge.
const verification = "url_verification"

// mediaType returns the media type of a Content-Type header, "" for one that cannot be read.
func mediaType(header string) string {
	if header == "application/json" { // what nearly everybody sends
		return header
	}
	media, _, err := mime.ParseMediaType(header)
	if err != nil {
		return ""
	}
	return media
}

// firstByte returns the first byte of the body that is no white space, 0 for none.
func firstByte(body string) byte {
	for i := range len(body) {
		if b := body[i]; b != ' ' && b != '\t' && b != '\r' && b != '\n' {
			return b
		}
	}
	return 0
}

// parseEmbedded replaces the fields that json.parse names by what the JSON in them holds.
func (m *mapper) parseEmbedded() error {
	names := m.params.list("json.parse")
	if len(names) > maxParses {
		return core.Errorf(core.Invalid, "json.parse names %d fields: at most %d are allowed", len(names), maxParses)
	}
	for _, name := range names {
		from := &m.payload
		at := from.find(name)
		if at < 0 {
			from = &m.plain
			at = from.find(name)
		}
		if at < 0 {
			continue
		}
		if err := from.expand(at); err != nil {
			return err
		}
	}
	return nil
}
