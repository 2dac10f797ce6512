package abi

import "encoding/binary"

// Renderings, output of kind alert: one for each event, in the order of the events.
//
//	+--------------+---------+-------+-----------+------------------------------------------------------------+
//	| version 1 u8 | flags 0 | 0 u16 | count u32 | count x { u8 flags, str text, str body, str commands }     |
//	+--------------+---------+-------+-----------+------------------------------------------------------------+
//
// Flag bit 0: the plugin leaves this event to the server's built-in text. body is JSON or empty; commands are derived text
// commands, one a line.
const (
	renderingsVersion = 1
	renderingsHeader  = 8
	renderingLeast    = 4
	flagBuiltIn       = 1 << 0
)

// Rendering is what a plugin makes of one event.
type Rendering struct {
	BuiltIn  bool   // use the server's own text, ignore the rest
	Text     string // of the notification and of the alert history
	Body     string // JSON, empty when the plugin writes none
	Commands string // derived commands, one a line
}

// AppendRenderings appends the binary form to dst.
func AppendRenderings(dst []byte, rs []Rendering) []byte {
	dst = append(dst, renderingsVersion, 0, 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(rs)))
	for _, r := range rs {
		var flags byte
		if r.BuiltIn {
			flags = flagBuiltIn
		}
		dst = append(dst, flags)
		dst = appendText(dst, r.Text)
		dst = appendText(dst, r.Body)
		dst = appendText(dst, r.Commands)
	}
	return dst
}

// DecodeRenderings reads the renderings of n events.
func DecodeRenderings(text string, n int, limits Limits) ([]Rendering, error) {
	limits = limits.orDefault()
	if len(text) < renderingsHeader || text[0] != renderingsVersion || text[1]|text[2]|text[3] != 0 {
		return nil, formatErrorf("renderings: no header of version %d", renderingsVersion)
	}
	if len(text) > limits.Bytes {
		return nil, formatErrorf("renderings of %d bytes, the limit is %d", len(text), limits.Bytes)
	}
	count := word(text, 4)
	if uint64(count) != uint64(n) || uint64(count)*renderingLeast > uint64(len(text)) {
		return nil, formatErrorf("%d renderings in %d bytes for %d events", count, len(text), n)
	}
	r := reader{text: text, pos: renderingsHeader, limits: limits}
	rs := make([]Rendering, n)
	for i := range rs {
		flags := r.byte()
		if flags&^flagBuiltIn != 0 {
			r.fail("unknown flags")
		}
		rs[i] = Rendering{BuiltIn: flags&flagBuiltIn != 0, Text: r.str(), Body: r.str(), Commands: r.str()}
	}
	if r.pos != len(text) {
		r.fail("bytes are left over")
	}
	if r.fault != "" {
		return nil, formatErrorf("renderings, byte %d: %s", r.pos, r.fault)
	}
	return rs, nil
}

// A raw request, input of kind webhook.
//
//	+--------------+---------+-------+------------+----------+-------------+---------------+----------+
//	| version 1 u8 | flags 0 | 0 u16 | str method | str path | pairs query | pairs headers | str body |
//	+--------------+---------+-------+------------+----------+-------------+---------------+----------+
//
// pairs is a uvarint count and that many { str name, str value }; header names are in canonical form. The body is whatever
// was sent and need not be UTF-8.
const requestVersion = 1

// Request is an HTTP request that a webhook plugin decodes.
type Request struct {
	Method, Path   string
	Query, Headers []Pair
	Body           string
}

// AppendRequest appends the binary form to dst.
func AppendRequest(dst []byte, q *Request) []byte {
	dst = append(dst, requestVersion, 0, 0, 0)
	dst = appendText(appendText(dst, q.Method), q.Path)
	for _, pairs := range [][]Pair{q.Query, q.Headers} {
		dst = binary.AppendUvarint(dst, uint64(len(pairs)))
		for _, p := range pairs {
			dst = appendText(appendText(dst, p.Name), p.Value)
		}
	}
	return appendText(dst, q.Body)
}

// DecodeRequest reads a raw request.
func DecodeRequest(text string, limits Limits) (*Request, error) {
	limits = limits.orDefault()
	if len(text) < 4 || text[0] != requestVersion || text[1]|text[2]|text[3] != 0 {
		return nil, formatErrorf("request: no header of version %d", requestVersion)
	}
	r := reader{text: text, pos: 4, limits: limits}
	q := &Request{Method: r.str(), Path: r.str()}
	for _, into := range []*[]Pair{&q.Query, &q.Headers} {
		n := r.uvarint()
		if uint64(n) > uint64(limits.Pairs) {
			r.fail("too many parameters or headers")
		}
		for range n {
			if r.fault != "" {
				break
			}
			*into = append(*into, Pair{Name: r.str(), Value: r.str()})
		}
	}
	q.Body = r.take(int(min(r.uvarint(), uint32(limits.Bytes))))
	if r.pos != len(text) {
		r.fail("bytes are left over")
	}
	if r.fault != "" {
		return nil, formatErrorf("request, byte %d: %s", r.pos, r.fault)
	}
	return q, nil
}
