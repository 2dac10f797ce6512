package wasm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tetratelabs/wazero/api"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/wasm/abi"
)

// StateLimits bound what one plugin remembers. All of it lies in memory, like every document: with the defaults 4 MiB a plugin.
type StateLimits struct {
	KeyBytes   int // of one key; 0 = 256
	ValueBytes int // of one value; 0 = 16 KiB
	Keys       int // of one plugin; 0 = 256
}

func (l *StateLimits) setDefaults() {
	for _, d := range []struct {
		limit *int
		value int
	}{{&l.KeyBytes, 256}, {&l.ValueBytes, 16 << 10}, {&l.Keys, 256}} {
		if *d.limit == 0 {
			*d.limit = d.value
		}
	}
}

const (
	maxLookupKey = 4 << 10 // bytes of a key of lookup: two names; no capability reads a longer one
	maxTables    = 8       // replacement tables that a stream keeps decoded
)

// capability makes a host function (key, key_len, buf, limit) -> i32 of f, which gets the key and the guest's own buffer. Neither is kept.
func capability(f func(s *session, key string, buf []byte) int32) api.GoModuleFunc {
	return func(ctx context.Context, m api.Module, stack []uint64) {
		key, keyLen, buf, limit := uint32(stack[0]), uint32(stack[1]), uint32(stack[2]), uint32(stack[3])
		s, memory := ctx.Value(callKey{}).(*callContext).session, m.Memory()
		stack[0] = api.EncodeI32(int32(abi.Malformed))
		if memory == nil {
			return
		}
		// One byte more than any key may have tells a long key from an allowed one.
		name, ok := memory.Read(key, min(keyLen, maxLookupKey+1))
		if _, whole := memory.Read(key, keyLen); !ok || !whole {
			return
		}
		if text, ok := memory.Read(buf, limit); ok {
			stack[0] = api.EncodeI32(f(s, string(name), text))
		}
	}
}

// session is what the capabilities of one stream reach, with the rights of its uploader. Like the stream it is used by one goroutine at a
// time. A nil session denies everything.
type session struct {
	plugin   *Plugin
	uploader core.Grants
	granted  []string

	ctx     context.Context // of the call in work: host functions get none of their own
	writing bool            // a job is in work, not the opening
	counted bool            // the stored keys were counted in this call
	refused string          // the limit that the call ran into
	tables  map[string]map[string]string
	writes  []core.DocChange // of the call, one a key
}

// newSession returns nil for a plugin without capabilities, which then shares opened guests between uploads.
func (p *Plugin) newSession(uploader core.Grants) *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.mu.granted) == 0 || p.host.options.Reader == nil || p.host.options.Catalog == nil {
		return nil
	}
	return &session{plugin: p, uploader: uploader, granted: p.mu.granted}
}

// begin forgets what the call before wrote: by now it is stored, or lost with its output.
func (s *session) begin(ctx context.Context) {
	if s != nil {
		s.reset()
		s.ctx, s.counted, s.refused = ctx, false, ""
	}
}

// remember allows writes: a guest is opened once or often, as the pool has it, so that only jobs may write.
func (s *session) remember() {
	if s != nil {
		s.writing = true
	}
}

// reset discards the writes of a call.
func (s *session) reset() {
	if s != nil {
		s.plugin.kept.release(s)
		s.writes, s.writing = nil, false
	}
}

// end lets go of everything: a guest that waits for its next use may still point here.
func (s *session) end() {
	if s != nil {
		s.reset()
		s.ctx, s.tables = nil, nil
	}
}

func (s *session) changes() []core.DocChange {
	if s == nil {
		return nil
	}
	return s.writes
}

// explain adds to an error that the guest itself returned which limit it ran into.
func (s *session) explain(err error) {
	var e *Error
	if s != nil && s.refused != "" && errors.As(err, &e) && e.Fault == FaultData {
		e.Text += " (" + s.refused + ")"
	}
}

// admit checks what all three have in common.
func (s *session) admit(capability, key string, limit int) abi.Denial {
	switch {
	case s == nil || s.ctx == nil:
		return abi.Unavailable
	case !slices.Contains(s.granted, capability):
		return abi.Denied
	case len(key) > limit && capability == abi.ImportLookup:
		return s.refuse(fmt.Sprintf("lookup: a key has more than %d bytes", limit))
	case len(key) > limit:
		return s.refuse(fmt.Sprintf("%s: a key has more bytes than plugins.state.key allows, %d", capability, limit))
	case key == "" || !utf8.ValidString(key):
		return abi.Malformed
	}
	return 0
}

func (s *session) refuse(text string) abi.Denial {
	s.refused = text
	s.plugin.log.line(s.ctx, abi.LogWarn, []byte(text))
	return abi.OverLimit
}

// answer copies a value that fits, and returns its length in any case.
func answer(value, buf []byte) int32 {
	if len(value) <= len(buf) {
		copy(buf, value)
	}
	return int32(len(value)) // values and tables are far below 2 GiB
}

func (s *session) lookup(key string, buf []byte) int32 {
	if d := s.admit(abi.ImportLookup, key, maxLookupKey); d != 0 {
		return int32(d)
	}
	kind, rest, _ := strings.Cut(key, abi.LookupBreak)
	name, key, ok := strings.Cut(rest, abi.LookupBreak)
	if !ok || name == "" {
		return int32(abi.Malformed)
	}
	value, denial := "", abi.Malformed
	switch kind {
	case abi.LookupTable:
		value, denial = s.tableValue(name, key)
	case abi.LookupEntity:
		value, denial = s.entityTag(name, key)
	}
	if denial != 0 {
		return int32(denial)
	}
	return answer([]byte(value), buf)
}

// tableValue reads a replacement table. A stream sees a table as it was when it first asked for it.
func (s *session) tableValue(name, key string) (string, abi.Denial) {
	if !s.uploader.Roles.Has(core.MetaRead) {
		return "", abi.Denied
	}
	name = core.TableKey(name)
	keys, known := s.tables[name]
	if !known {
		var doc core.Table
		for d, err := range s.plugin.host.options.Reader.Documents(s.ctx, core.DocumentQuery{Kind: core.DocTable, Key: name}) {
			if err == nil {
				err = json.Unmarshal(d.Body, &doc)
			}
			if err != nil {
				s.plugin.host.options.Log.Warn("a replacement table cannot be read", "plugin", s.plugin.name, "table", name, "error", err)
				return "", abi.Unavailable
			}
		}
		if s.tables == nil || len(s.tables) >= maxTables {
			s.tables = make(map[string]map[string]string)
		}
		keys = doc.Keys
		s.tables[name] = keys
	}
	if value, ok := keys[key]; ok {
		return value, 0
	}
	return "", abi.Absent
}

// entityTag reads a tag of an entity. One that the uploader may not read looks like one that does not exist.
func (s *session) entityTag(name, tag string) (string, abi.Denial) {
	if s.uploader.Roles&(core.MetaRead|core.DataRead) == 0 {
		return "", abi.Denied
	}
	catalog := s.plugin.host.options.Catalog
	name = strings.ToLower(name)
	e, ok := catalog.Entity(name)
	if !ok || !s.uploader.ReadAll && !slices.ContainsFunc(s.uploader.ReadGroups, func(group string) bool { return catalog.Member(name, group) }) {
		return "", abi.Absent
	}
	if value, ok := e.Tags[strings.ToLower(tag)]; ok {
		return value, 0
	}
	return "", abi.Absent
}

// stateKey is the key of a document of kind core.DocPluginState.
func (s *session) stateKey(key string) string { return s.plugin.name + "\x00" + key }

// written is the place of a write of this call, -1 when there is none.
func (s *session) written(doc string) int {
	return slices.IndexFunc(s.writes, func(c core.DocChange) bool { return c.Key == doc })
}

func (s *session) get(key string, buf []byte) int32 {
	if d := s.admit(abi.ImportKVGet, key, s.limits().KeyBytes); d != 0 {
		return int32(d)
	}
	doc := s.stateKey(key)
	if i := s.written(doc); i >= 0 {
		if s.writes[i].Op == core.DocDelete {
			return int32(abi.Absent)
		}
		return answer(s.writes[i].Body, buf)
	}
	for d, err := range s.plugin.host.options.Reader.Documents(s.ctx, core.DocumentQuery{Kind: core.DocPluginState, Key: doc}) {
		if err != nil {
			return int32(abi.Unavailable)
		}
		return answer(d.Body, buf)
	}
	return int32(abi.Absent)
}

// limits are zero without a session, which admit refuses before it looks at them.
func (s *session) limits() StateLimits {
	if s == nil {
		return StateLimits{}
	}
	return s.plugin.host.options.State
}

// put buffers a value; one of no bytes removes the key.
func (s *session) put(key string, value []byte) int32 {
	limits := s.limits()
	if d := s.admit(abi.ImportKVPut, key, limits.KeyBytes); d != 0 {
		return int32(d)
	}
	if !s.writing {
		return int32(abi.Unavailable)
	}
	if len(value) > limits.ValueBytes {
		return int32(s.refuse(fmt.Sprintf("kv_put: a value has %d bytes, plugins.state.value allows %d", len(value), limits.ValueBytes)))
	}
	change := core.DocChange{Kind: core.DocPluginState, Key: s.stateKey(key), Op: core.DocDelete}
	if len(value) > 0 {
		if d := s.plugin.kept.reserve(s, change.Key); d != 0 {
			return int32(d)
		}
		change.Op, change.Body = core.DocPut, slices.Clone(value)
	}
	if i := s.written(change.Key); i >= 0 {
		s.writes[i] = change
	} else if len(s.writes) >= limits.Keys { // removals of keys that do not exist, which need no place
		return int32(s.refuse(fmt.Sprintf("kv_put: one call names more than %d keys, the limit plugins.state.keys", limits.Keys)))
	} else {
		s.writes = append(s.writes, change)
	}
	return int32(len(value))
}

// kept knows which keys a plugin has, so that their number is bounded without reading them all for each write.
type kept struct {
	mu       sync.Mutex                   // innermost but for that of the log; held while keys are counted, which reads documents in memory
	stored   map[string]bool              // as last counted; nil before
	reserved map[*session]map[string]bool // by calls whose output is not known to be stored
}

// reserve takes a place for a key.
func (k *kept) reserve(s *session, doc string) abi.Denial {
	k.mu.Lock()
	defer k.mu.Unlock()
	limit := s.limits().Keys
	if k.stored == nil {
		if !k.count(s) {
			return abi.Unavailable
		}
	}
	if k.stored[doc] || k.reserved[s][doc] {
		return k.take(s, doc)
	}
	if k.places() >= limit && !s.counted { // keys may have been removed, or never been stored
		s.counted = true
		if !k.count(s) {
			return abi.Unavailable
		}
	}
	if k.places() >= limit {
		return s.refuse(fmt.Sprintf("kv_put: the plugin has %d keys, the limit plugins.state.keys", limit))
	}
	return k.take(s, doc)
}

func (k *kept) take(s *session, doc string) abi.Denial {
	if k.reserved == nil {
		k.reserved = make(map[*session]map[string]bool)
	}
	if k.reserved[s] == nil {
		k.reserved[s] = make(map[string]bool)
	}
	k.reserved[s][doc] = true
	return 0
}

// places is the number of keys that are stored or may be soon.
func (k *kept) places() int {
	n := len(k.stored)
	seen := make(map[string]bool)
	for _, docs := range k.reserved {
		for doc := range docs {
			if !k.stored[doc] && !seen[doc] {
				seen[doc] = true
				n++
			}
		}
	}
	return n
}

// count reads the names of all keys of the plugin.
func (k *kept) count(s *session) bool {
	stored := make(map[string]bool)
	for d, err := range s.plugin.host.options.Reader.Documents(s.ctx, core.DocumentQuery{Kind: core.DocPluginState}) {
		if err != nil {
			return false
		}
		if strings.HasPrefix(d.Key, s.stateKey("")) {
			stored[strings.Clone(d.Key)] = true
		}
	}
	k.stored = stored
	return true
}

// release turns the places of a call into keys that are taken for stored until they are counted again.
func (k *kept) release(s *session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stored != nil {
		for doc := range k.reserved[s] {
			k.stored[doc] = true
		}
	}
	delete(k.reserved, s)
}
