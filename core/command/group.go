package command

import (
	"context"

	"github.com/tidemark-db/tidemark/core"
)

// The bounds of a group that nobody flushes before. Half a megabyte makes a batch of some ten thousand samples, whose fixed cost does not show any more, and
// whose tables still fit into the cache of a processor; the bytes also bound what one connection holds.
const (
	groupCommands = 10_000
	groupBytes    = 512 << 10
)

// Group collects commands that become one batch. Their text is kept because a batch belongs to the pipeline once it was offered: a refused group is parsed
// again. A Group belongs to one connection.
type Group struct {
	// New returns an empty batch with the origin of the sender as it is at this moment.
	New func(ctx context.Context) (*core.Batch, error)
	// Parse appends the records of a command to a batch, or leaves it as it was.
	Parse func(b *core.Batch, line []byte) error
	// Store offers a batch with records to the pipeline.
	Store func(ctx context.Context, b *core.Batch) (core.Receipt, error)
	// Failed is told of every command that was not stored and why; optional. line is valid during the call only.
	Failed func(line []byte, err error)
	// Again waits after a fault of the server and says whether to offer the batch once more; optional: without it the fault ends the flush.
	Again func(ctx context.Context, err error) bool

	Stored, Refused int             // commands, since the beginning
	Durability      core.Durability // of what was stored: the least

	text   []byte
	spans  []span
	parsed []span // memory for store, which is reused
	any    bool

	before size // the next batch is likely to be alike
}

// size is that of a batch.
type size struct{ commands, keys, samples int }

// of returns how many of n records there are likely to be in so many commands.
func (s size) of(n, commands int) int { return n * commands / max(s.commands, 1) }

// span is where one command stands in the text of the group.
type span struct{ start, end int }

// Add puts a command into the group. full tells that the group should be flushed.
func (g *Group) Add(line []byte) (full bool) {
	start := len(g.text)
	g.text = append(g.text, line...)
	g.spans = append(g.spans, span{start, len(g.text)})
	return g.full()
}

func (g *Group) full() bool { return len(g.spans) >= groupCommands || len(g.text) >= groupBytes }

// Len is the number of commands that wait.
func (g *Group) Len() int { return len(g.spans) }

// Refuse counts a command that never got into the group.
func (g *Group) Refuse(line []byte, err error) {
	g.Refused++
	if g.Failed != nil {
		g.Failed(line, err)
	}
}

// Flush stores what waits. A refused command is counted and told to Failed; an error is of the server, and then an unknown part is stored.
func (g *Group) Flush(ctx context.Context) error {
	if len(g.spans) == 0 {
		return nil
	}
	more := g.full()
	var err error
	for rest := g.spans; len(rest) > 0 && err == nil; {
		rest, err = g.parse(ctx, rest)
	}
	g.text, g.spans = g.text[:0], g.spans[:0]
	if !more && cap(g.text) > groupBytes/4 { // a burst is over: its memory is not kept for a connection that may say nothing for hours
		g.text, g.spans, g.parsed = nil, nil, nil
	}
	return err
}

// parse makes a batch of commands and offers it. Those that do not parse are left out. It returns the commands that need a batch of their own: within one, settings
// take effect before all data, so that a change of settings behind data that it would apply to begins the next.
func (g *Group) parse(ctx context.Context, spans []span) (rest []span, err error) {
	b, err := g.New(ctx)
	if err != nil {
		return nil, err
	}
	b.Grow(g.before.of(g.before.keys, len(spans)), g.before.of(g.before.samples, len(spans)))
	g.parsed = g.parsed[:0]
	var order order
	for i, one := range spans {
		line := g.text[one.start:one.end]
		documents := len(b.Documents)
		if err := g.Parse(b, line); err != nil {
			g.Refuse(line, err)
			continue
		}
		if len(b.Documents) > documents && !order.keeps(b, documents) {
			b.Documents = b.Documents[:documents]
			rest = spans[i:]
			break
		}
		g.parsed = append(g.parsed, one)
	}
	g.before = size{len(spans) - len(rest), len(b.Keys), b.Samples.Len()}
	return rest, g.offer(ctx, b, g.parsed)
}

// offer stores a batch. When the pipeline refuses it, each half of its commands is offered by itself, down to the command that is at fault: that costs log2
// of the group for a bad command, and good groups cost nothing.
func (g *Group) offer(ctx context.Context, b *core.Batch, spans []span) error {
	if len(spans) == 0 {
		return nil
	}
	durability := core.Volatile
	if b.Len() > 0 {
		receipt, err := g.Store(ctx, b)
		switch {
		case err == nil:
			durability = receipt.Durability
		case !Refusal(err) && g.Again != nil && g.Again(ctx, err):
			return g.again(ctx, spans)
		case !Refusal(err):
			return err
		case len(spans) == 1:
			g.Refuse(g.text[spans[0].start:spans[0].end], err)
			return nil
		default:
			middle := len(spans) / 2
			if err := g.again(ctx, spans[:middle]); err != nil {
				return err
			}
			return g.again(ctx, spans[middle:])
		}
	}
	if !g.any || durability < g.Durability {
		g.Durability = durability
	}
	g.any = true
	g.Stored += len(spans)
	return nil
}

// again parses commands that parsed before.
func (g *Group) again(ctx context.Context, spans []span) error {
	b, err := g.New(ctx)
	if err != nil {
		return err
	}
	for _, one := range spans {
		if err := g.Parse(b, g.text[one.start:one.end]); err != nil {
			return core.Wrap(core.Internal, err, "a command parsed once and not again")
		}
	}
	return g.offer(ctx, b, spans)
}

// Refusal reports whether an error is the fault of a record in the batch, so that the others can still be stored.
func Refusal(err error) bool {
	switch core.CodeOf(err) {
	case core.Invalid, core.Forbidden, core.TooLarge, core.NotFound:
		return true
	}
	return false
}
