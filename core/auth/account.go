package auth

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tidemark-db/tidemark/core"
)

// decoded keeps documents of one kind decoded for as long as their bytes are the same. A document is read again on each request, so that a change made
// anywhere counts at once, unless it is known that nothing was written since; decoding it each time would take some 25 microseconds.
type decoded[T any] struct {
	kind    core.DocKind
	decode  func(body []byte) (*T, error)
	changes *Watch // nil = read each time

	mu    sync.RWMutex // guards below
	known map[string]*known[T]
}

type known[T any] struct {
	body    []byte
	value   *T
	checked atomic.Uint64 // the count of changes before it was last read
}

// maxDecoded bounds each cache: 10,000 users are some 5 MB.
const maxDecoded = 10_000

func newDecoded[T any](kind core.DocKind, changes *Watch, decode func([]byte) (*T, error)) *decoded[T] {
	return &decoded[T]{kind: kind, decode: decode, changes: changes, known: map[string]*known[T]{}}
}

// Watch is a log that counts the changes of users, groups and tokens, so that they need not be read again while there are none. Whoever writes, writes
// through it. It relies on what core.Log promises: what was appended is visible when Append returns.
type Watch struct {
	core.Log
	count atomic.Uint64
}

// NewWatch returns a log that writes to l.
func NewWatch(l core.Log) *Watch { return &Watch{Log: l} }

// Append counts after the batch is visible: whoever reads the documents before has the count of before, and reads them again.
func (w *Watch) Append(ctx context.Context, b *core.Batch) (core.Receipt, error) {
	relevant := slices.ContainsFunc(b.Documents, func(d core.DocChange) bool {
		return d.Kind == core.DocUser || d.Kind == core.DocUserGroup || d.Kind == core.DocToken
	})
	receipt, err := w.Log.Append(ctx, b)
	if relevant { // also after an error, which may come after the batch was applied
		w.count.Add(1)
	}
	return receipt, err
}

// get returns a document by its key, nil when there is none. The same pointer means the same bytes. Nobody may change what it points to.
func (d *decoded[T]) get(ctx context.Context, r core.Reader, key string) (*T, error) {
	if key == "" {
		return nil, nil // an empty key would select every document
	}
	var count uint64
	if d.changes != nil {
		count = d.changes.count.Load()
		d.mu.RLock()
		k := d.known[key]
		d.mu.RUnlock()
		if k != nil && k.checked.Load() == count {
			return k.value, nil
		}
	}
	for doc, err := range r.Documents(ctx, core.DocumentQuery{Kind: d.kind, Key: key}) {
		if err != nil {
			return nil, fmt.Errorf("read %s %q: %w", d.kind, key, err)
		}
		if doc.Key == key {
			return d.of(doc, count)
		}
	}
	return nil, nil
}

// of returns the decoded form of a document. count is that of the changes before it was read.
func (d *decoded[T]) of(doc core.Document, count uint64) (*T, error) {
	d.mu.RLock()
	k := d.known[doc.Key]
	d.mu.RUnlock()
	if k != nil && bytes.Equal(k.body, doc.Body) {
		k.checked.Store(count)
		return k.value, nil
	}
	value, err := d.decode(doc.Body)
	if err != nil {
		return nil, fmt.Errorf("read %s %q: %w", d.kind, doc.Key, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.known) >= maxDecoded {
		clear(d.known) // what is in use comes back with the next request
	}
	k = &known[T]{body: slices.Clone(doc.Body), value: value}
	k.checked.Store(count)
	d.known[doc.Key] = k
	return value, nil
}

// all yields every document of the kind, by key.
func (d *decoded[T]) all(ctx context.Context, r core.Reader, f func(*T)) error {
	var count uint64
	if d.changes != nil {
		count = d.changes.count.Load()
	}
	for doc, err := range r.Documents(ctx, core.DocumentQuery{Kind: d.kind}) {
		if err != nil {
			return fmt.Errorf("list %s documents: %w", d.kind, err)
		}
		value, err := d.of(doc, count)
		if err != nil {
			return err
		}
		f(value)
	}
	return nil
}

// account is a user ready for a request: roles expanded, addresses parsed, rights resolved.
type account struct {
	User
	roles  core.Roles
	from   addresses
	rights atomic.Pointer[rights]
}

// rights are what the groups gave when they were last looked at.
type rights struct {
	groups []*Group // as they were; nil for one that did not exist
	grants core.Grants
}

func decodeAccount(body []byte) (*account, error) {
	var u User
	if err := json.Unmarshal(body, &u); err != nil {
		return nil, err
	}
	return newAccount(u), nil
}

func newAccount(u User) *account {
	return &account{User: u, roles: u.roleSet().Expand(), from: readAddresses(u.Addresses)}
}

// Resolve returns the rights of a user as they are now: the roles with what they include, and the union over the user's groups.
func (s *Service) Resolve(ctx context.Context, u User) (core.Grants, error) {
	return s.resolve(ctx, newAccount(u))
}

func (s *Service) resolve(ctx context.Context, a *account) (core.Grants, error) {
	if a.roles.Has(core.Admin) {
		return core.Grants{Roles: a.roles, ReadAll: true, WriteAll: true}, nil
	}
	if len(a.Groups) == 0 {
		return core.Grants{Roles: a.roles}, nil
	}
	var few [4]*Group // so that the usual case allocates nothing
	groups := few[:0]
	for _, name := range a.Groups {
		g, err := s.groups.get(ctx, s.reader, name)
		if err != nil {
			return core.Grants{}, err
		}
		groups = append(groups, g)
	}
	if r := a.rights.Load(); r != nil && slices.Equal(r.groups, groups) {
		return r.grants, nil
	}
	r := &rights{groups: slices.Clone(groups), grants: union(a.roles, groups)}
	a.rights.Store(r)
	return r.grants, nil
}

// union adds up what groups grant; a deleted group grants nothing.
func union(roles core.Roles, groups []*Group) core.Grants {
	g := core.Grants{Roles: roles}
	for _, group := range groups {
		if group == nil {
			continue
		}
		g.ReadAll = g.ReadAll || group.ReadAll
		g.WriteAll = g.WriteAll || group.WriteAll
		g.ReadGroups = append(g.ReadGroups, group.Read...)
		g.WriteGroups = append(g.WriteGroups, group.Write...)
	}
	g.ReadGroups, g.WriteGroups = distinct(g.ReadGroups), distinct(g.WriteGroups)
	return g
}

// addresses is an address filter that was read. The zero value admits everybody.
type addresses struct {
	restricted bool
	ranges     []netip.Prefix
}

// readAddresses reads a stored filter. One that cannot be read admits nobody.
func readAddresses(text string) addresses {
	ranges, err := parseAddresses(text)
	if err != nil {
		return addresses{restricted: true}
	}
	return addresses{restricted: len(ranges) > 0, ranges: ranges}
}

// admit reports whether a client may come from addr.
func (a addresses) admit(addr netip.Addr) bool {
	return !a.restricted || slices.ContainsFunc(a.ranges, func(p netip.Prefix) bool { return p.Contains(addr) })
}
