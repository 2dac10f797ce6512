package query

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/filter"
)

// Messages is one message query as the client wrote it. The zero value of a field means absent.
type Messages struct {
	Entities    EntityFilter
	Dates       DateFilter
	Timezone    string
	Type        string
	Source      string
	Tags        map[string][]string
	Severity    string // name, alias or code
	Severities  []string
	MinSeverity string
	Expression  string
	Limit       *int // nil: 1000; <= 0: all
}

// defaultMessageLimit is the contract's.
const defaultMessageLimit = 1000

// MessagePlan is a validated message query.
type MessagePlan struct {
	query core.MessageQuery // without scope
	none  bool              // the conditions exclude each other
}

// Validate judges the whole request before any name is looked up.
func (m Messages) Validate(moment dates.Moment) (*MessagePlan, error) {
	moment, err := inZone(moment, m.Timezone)
	if err != nil {
		return nil, err
	}
	within, err := m.Dates.Range(moment)
	if err != nil {
		return nil, err
	}
	p := &MessagePlan{query: core.MessageQuery{Range: within.Intersect(core.AllTime), Limit: defaultMessageLimit}}
	q := &p.query
	if q.Entities, err = m.Entities.Resolve(EscapesInPatterns); err != nil {
		return nil, err
	}
	if err = p.severities(m); err != nil {
		return nil, err
	}
	if !blank(m.Expression) {
		q.Expression = m.Expression
		if err = filter.Check(filter.Messages, m.Expression); err != nil {
			return nil, err
		}
	}
	q.Type, q.Source = strings.ToLower(strings.TrimSpace(m.Type)), strings.ToLower(strings.TrimSpace(m.Source))
	q.Tags = tagFilters(m.Tags, EscapesInPatterns)
	if m.Limit != nil {
		q.Limit = max(*m.Limit, 0)
	}
	return p, nil
}

// severities combines the three fields, each of which is a condition of its own.
func (p *MessagePlan) severities(m Messages) error {
	var listed []core.Severity
	for _, text := range m.Severities {
		s, ok, err := readSeverity(text)
		if err != nil {
			return err
		}
		if ok {
			listed = append(listed, s)
		}
	}
	exact, ok, err := readSeverity(m.Severity)
	if err != nil {
		return err
	}
	if ok {
		p.none = len(listed) > 0 && !slices.Contains(listed, exact)
		listed = []core.Severity{exact}
	}
	p.query.Severities = listed
	p.query.MinSeverity, _, err = readSeverity(m.MinSeverity)
	return err
}

// readSeverity takes a name, an alias or a code; ok is false for an absent one.
func readSeverity(text string) (s core.Severity, ok bool, err error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return 0, false, nil
	}
	if s, ok = core.ParseSeverity(text); !ok {
		return 0, false, core.Errorf(core.Invalid, "IllegalArgumentException: Unknown severity: %s", text)
	}
	return s, true, nil
}

// Run reads the messages, newest first.
func (p *MessagePlan) Run(ctx context.Context, src Source) iter.Seq2[core.Message, error] {
	return func(yield func(core.Message, error) bool) {
		if err := src.authorise(p.query.Entities.Names); err != nil {
			yield(core.Message{}, err)
			return
		}
		if p.none || p.query.Range.Empty() {
			return
		}
		q := p.query
		q.Scope = src.Scope
		for m, err := range alive(ctx, src.Reader.Messages(ctx, q)) {
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// AppendMessage appends a message as the query shows it. Absent parts are left out.
func AppendMessage(b []byte, m *core.Message) []byte {
	o := openObject(b)
	o.text("entity", m.Entity)
	o.text("type", m.Type)
	o.text("source", m.Source)
	o.text("severity", m.Severity.String())
	if len(m.Tags) > 0 {
		o.tags("tags", m.Tags)
	}
	o.optional("message", m.Text)
	o.date("date", m.Time)
	return o.close()
}
