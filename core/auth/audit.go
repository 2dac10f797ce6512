package auth

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

// The audit stream: each login, refused or not, and each administrative change is a line of the log, and a message of type `audit` of the entity that
// Options.AuditEntity names. Its source is `login` or `admin`. A change and its message are one batch; a login does not fail because it cannot be told.
//
// Nobody can fill a disk with it. A success is told once a session and address, not once a request; a refusal at once, and then every ten minutes with the
// number of those in between; all of them together at most as often as their allowance says. Nothing is written by itself later: what was not told when
// requests end stays in memory.
//
// The name of an unknown user is never told: people type passwords there.

// AuditType is the type of the messages; the other two are their sources.
const (
	AuditType   = "audit"
	sourceLogin = "login"
	sourceAdmin = "admin"
)

// Actor is who changes something, for the audit stream.
type Actor struct{ User, Address string }

// System is the actor of what the server does by itself.
var System = Actor{User: "system"}

// event is one message of the stream. Empty tags are left out.
type event struct {
	source   string
	severity core.Severity
	text     string
	tags     [8]core.Tag
}

// action is what a change does.
type action string

const (
	created action = "created"
	changed action = "changed"
	deleted action = "deleted"
)

// change is one administrative change.
type change struct {
	by     Actor
	kind   string // of the object
	name   string
	action action
	fields []string // what of it; never values
}

func (c change) event() event {
	text := fmt.Sprintf("%s %s %s by %s", c.kind, c.name, c.action, c.by.User)
	if len(c.fields) > 0 {
		text += ": " + strings.Join(c.fields, ", ")
	}
	return event{source: sourceAdmin, severity: core.Normal, text: text, tags: [8]core.Tag{
		{Name: "user", Value: c.by.User}, {Name: "address", Value: c.by.Address}, {Name: "action", Value: string(c.action)},
		{Name: "object", Value: c.kind}, {Name: "name", Value: c.name},
	}}
}

// changedFields names what differs between two users, or two groups.
func changedFields[T User | Group](before, after T) []string {
	var fields []string
	differ := func(name string, differs bool) {
		if differs {
			fields = append(fields, name)
		}
	}
	switch b := any(before).(type) {
	case User:
		a := any(after).(User)
		differ("enabled", a.Enabled != b.Enabled)
		differ("locked", a.Locked != b.Locked)
		differ("expiration", a.Expires != b.Expires)
		differ("roles", !slices.Equal(a.Roles, b.Roles))
		differ("groups", !slices.Equal(a.Groups, b.Groups))
		differ("address filter", a.Addresses != b.Addresses)
		differ("password", a.Hash != b.Hash)
	case Group:
		a := any(after).(Group)
		differ("all entities", a.ReadAll != b.ReadAll || a.WriteAll != b.WriteAll)
		differ("read", !slices.Equal(a.Read, b.Read))
		differ("write", !slices.Equal(a.Write, b.Write))
	}
	return fields
}

// refusal is a login that failed. Equal ones are told together.
type refusal struct {
	user  string // "" = not known
	from  netip.Addr
	code  string
	means Means
}

func (r refusal) event(count, untold int) event {
	who := r.user
	if who == "" {
		who = "an unknown user"
	}
	text := fmt.Sprintf("login of %s refused: %s", who, r.code)
	if r.means == ByToken {
		text = fmt.Sprintf("token of %s refused: %s", who, r.code)
	}
	if count > 1 {
		text += fmt.Sprintf(" (%d times)", count)
	}
	e := event{source: sourceLogin, severity: core.Warning, text: text, tags: [8]core.Tag{
		{Name: "user", Value: r.user}, {Name: "address", Value: addressText(r.from)}, {Name: "result", Value: "refused"},
		{Name: "code", Value: strings.TrimPrefix(r.code, "code ")}, {Name: "means", Value: r.means.String()}, {Name: "count", Value: strconv.Itoa(count)},
	}}
	if untold > 0 {
		e.tags[6] = core.Tag{Name: "untold", Value: strconv.Itoa(untold)}
	}
	return e
}

// allowance lets a number of events through at once, and then one at a time.
type allowance struct {
	most  float64
	every core.Time
	left  float64
	last  core.Time
}

func (a *allowance) take(now core.Time) bool {
	a.left = min(a.most, a.left+float64(max(0, now-a.last))/float64(a.every))
	a.last = now
	if a.left < 1 {
		return false
	}
	a.left--
	return true
}

const (
	tellAgain   = core.Time(10 * time.Minute / time.Millisecond) // of equal refusals
	maxRefusals = 1000                                           // different ones that are kept apart
)

// audit writes the stream.
type audit struct {
	service *Service

	mu        sync.Mutex // guards below; never held while writing
	successes allowance
	refusals  allowance
	pending   map[refusal]*pendingRefusal
	untold    int // refusals that were never told
}

type pendingRefusal struct {
	count int       // not told yet
	told  core.Time // last
}

func newAudit(s *Service) *audit {
	now := s.opts.Clock()
	return &audit{
		service:   s,
		successes: allowance{most: 1000, left: 1000, every: 1_000, last: now},
		refusals:  allowance{most: 60, left: 60, every: 10_000, last: now}, // 8,640 a day at most
		pending:   map[refusal]*pendingRefusal{},
	}
}

// succeeded tells of a login.
func (a *audit) succeeded(ctx context.Context, user string, from netip.Addr) {
	a.mu.Lock()
	tell := a.successes.take(a.service.opts.Clock())
	a.mu.Unlock()
	if !tell {
		return
	}
	a.write(ctx, event{source: sourceLogin, severity: core.Normal, text: "login of " + user, tags: [8]core.Tag{
		{Name: "user", Value: user}, {Name: "address", Value: addressText(from)}, {Name: "result", Value: "accepted"}, {Name: "means", Value: ByPassword.String()},
	}})
}

// refused counts a refusal, and tells of it when it is time.
func (a *audit) refused(ctx context.Context, r refusal) {
	if count, untold := a.due(r); count > 0 {
		a.write(ctx, r.event(count, untold))
	}
}

// due counts a refusal and returns how many equal ones are to be told, 0 for not now.
func (a *audit) due(r refusal) (count, untold int) {
	now := a.service.opts.Clock()
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.pending[r]
	if p == nil {
		if len(a.pending) >= maxRefusals {
			a.makeRoom(now)
		}
		p = &pendingRefusal{told: now - tellAgain}
		a.pending[r] = p
	}
	p.count++
	if now < p.told+tellAgain || !a.refusals.take(now) {
		return 0, 0
	}
	count, untold = p.count, a.untold
	p.count, p.told, a.untold = 0, now, 0
	return count, untold
}

// makeRoom drops refusals that are old, else all. The caller holds the lock.
func (a *audit) makeRoom(now core.Time) {
	for _, old := range [...]bool{true, false} {
		for r, p := range a.pending {
			if !old || now >= p.told+tellAgain {
				a.untold += p.count
				delete(a.pending, r)
			}
		}
		if len(a.pending) < maxRefusals {
			return
		}
	}
}

// write tells an event that is not part of a batch of its own. It waits for the disk, but not forever, and nobody fails when it does not work.
func (a *audit) write(ctx context.Context, e event) {
	a.log(ctx, e)
	m, ok := a.message(e)
	if !ok {
		return
	}
	ctx, cancel := patient(ctx)
	defer cancel()
	if _, err := a.service.ingester.Ingest(ctx, &core.Batch{Origin: core.SystemOrigin(0), Messages: []core.Message{m}}); err != nil {
		a.service.opts.Log.Warn("an audit message is not stored", "text", e.text, "err", err)
	}
}

// patient is a context for what must not end with the request, nor wait for a dead disk.
func patient(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
}

// message returns the message of an event, false when there is no entity to hold it.
func (a *audit) message(e event) (core.Message, bool) {
	entity := a.service.opts.AuditEntity
	if entity == "" {
		return core.Message{}, false
	}
	m := core.Message{Time: a.service.opts.Clock(), Entity: strings.ToLower(entity), Type: AuditType, Source: e.source, Severity: e.severity, Text: e.text,
		Flags: core.Default}
	for _, t := range e.tags {
		if t.Value != "" {
			m.Tags = append(m.Tags, t)
		}
	}
	m.Tags = m.Tags.Normal()
	return m, true
}

func (a *audit) log(ctx context.Context, e event) {
	level := slog.LevelInfo
	if e.severity > core.Normal {
		level = slog.LevelWarn
	}
	attrs := make([]slog.Attr, 0, len(e.tags))
	for _, t := range e.tags {
		if t.Value != "" {
			attrs = append(attrs, slog.String(t.Name, t.Value))
		}
	}
	a.service.opts.Log.LogAttrs(ctx, level, AuditType+": "+e.text, attrs...)
}

// addressText is an address as messages show it, "" for none.
func addressText(addr netip.Addr) string {
	if !addr.IsValid() {
		return ""
	}
	return addr.String()
}
