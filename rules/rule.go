package rules

import (
	"slices"
	"strconv"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
)

// Kind is the data type a rule watches.
type Kind string

const (
	KindSeries   Kind = "series"
	KindMessage  Kind = "message"
	KindProperty Kind = "property"
)

// Text is an expression or template with the place it was written at, so that a fault inside it can be pointed at.
type Text struct {
	Value string
	at    place
}

// Rule is a rule document as written, with defaults filled in.
type Rule struct {
	Name        string
	Enabled     bool
	Description string
	Kind        Kind
	Filter      Filter
	Group       Group
	Window      Window
	Variables   []Variable
	Condition   Text
	DependsOn   Text
	Severity    core.Severity
	Overrides   []Override
	History     History
	Actions     []Action
	Tests       []Test

	at       place
	windows  string    // fingerprint of what decides the life of windows: filter, grouping, window, condition
	full     string    // fingerprint of the whole document
	compiled *compiled // set by a load without faults
}

// Filter decides which commands reach a rule.
type Filter struct {
	Metric      string // series: exact, lower case
	Type        string // message and property type, "" = any
	Source      string // message source, "" = any
	Entities    []string
	Groups      []string
	Expression  Text
	MaxOffset   time.Duration // 0 = off
	InOrderOnly bool
}

// Group is how commands are spread over windows.
type Group struct {
	Entity  bool
	AllTags bool
	Tags    []string // sorted; used when AllTags is false
}

// Window bounds what a window holds: the latest Count samples, or those of the last Duration.
type Window struct {
	Count       int
	Duration    dates.Interval
	CheckOnExit bool
	LoadHistory bool
	MaxSamples  int
	MaxWindows  int
}

// Timed reports whether the window is bounded by time.
func (w Window) Timed() bool { return w.Count == 0 }

// Span is the duration in milliseconds, 0 for a count window.
func (w Window) Span() core.Time {
	if !w.Timed() {
		return 0
	}
	return core.Time(w.Duration.NominalMillis())
}

// String is the form that history rows carry: `length(3)` or `time(5 minute)`.
func (w Window) String() string {
	if !w.Timed() {
		return "length(" + strconv.Itoa(w.Count) + ")"
	}
	return "time(" + intervalText(w.Duration) + ")"
}

// Variable is a named expression, computed at most once an evaluation.
type Variable struct {
	Name string
	Expr Text
}

// Override is a threshold table.
type Override struct {
	Name    string
	Actions []string
	Rows    []OverrideRow
}

// OverrideRow replaces the condition for the windows it matches. Patterns use the wildcards * and ?.
type OverrideRow struct {
	Group      string
	Entity     string
	Tags       core.Tags
	EntityTags core.Tags
	Error      Text
	Warning    Text
}

// Triggers is a set of status changes.
type Triggers uint8

const (
	OnOpen Triggers = 1 << iota
	OnRepeat
	OnCancel
)

// Repeat limits how often an action fires on REPEAT evaluations.
type Repeat struct {
	Never    bool
	Count    int
	Interval dates.Interval
}

// History selects the status changes that are stored as history rows.
type History struct {
	Triggers Triggers
	Repeat   Repeat
	Open     Text
	Again    Text
	Cancel   Text
}

// Action is something to do at a status change.
type Action struct {
	Kind          string // webhook, command or log
	Name          string
	Enabled       bool
	Triggers      Triggers
	OpenDelay     time.Duration
	Repeat        Repeat
	MinInterval   time.Duration
	OverridesOnly bool
	When          Text
	Endpoint      string    // by name
	Inline        *Endpoint // or written in place
	Params        []Param
	ParamsRepeat  []Param // nil = Params
	ParamsCancel  []Param
	Commands      Text
	Message       Text // kind log
	RenderPlugin  string
	RenderFormat  string // text or json

	at place
}

// Param is a named template.
type Param struct {
	Name  string
	Value Text
}

// Endpoint is where a webhook goes.
type Endpoint struct {
	Name        string
	Enabled     bool
	Preset      string
	Method      string
	URL         Text
	Headers     []Param
	ContentType string
	JSON        any      // tree of map[string]any, []any, Text leaves and plain scalars
	Optional    []string // keys of JSON that are left out while they are empty
	Form        []Param
	Body        Text
	ForEach     string
	Params      []EndpointParam
	User        Text
	Password    Text
	Bearer      Text
	SignSecret  Text
	Timeout     time.Duration
	Retries     int // -1 = the outbox decides
	IgnoreTLS   bool
	LogResponse bool

	at place
}

// EndpointParam is a setting of an endpoint that rules may fill.
type EndpointParam struct {
	Name    string
	Default Text
	Fixed   bool
}

// Collection is a named list of texts.
type Collection struct {
	Name  string
	Items []string
	at    place
}

// Set is everything the rules directory holds.
type Set struct {
	Rules       []*Rule
	Endpoints   []*Endpoint
	Collections []*Collection
}

func (s *Set) endpoint(name string) *Endpoint {
	i := slices.IndexFunc(s.Endpoints, func(e *Endpoint) bool { return e.Name == name })
	if i < 0 {
		return nil
	}
	return s.Endpoints[i]
}

func (s *Set) collection(name string) []string {
	for _, c := range s.Collections {
		if c.Name == name {
			return c.Items
		}
	}
	return nil
}

// Test is one block of a rule's `tests`.
type Test struct {
	Name     string
	Date     string // yyyy-MM-dd
	Zone     string
	Entities []TestEntity
	Stored   []string
	Steps    []TestStep
	Line     int
}

// TestEntity is an entity that a test starts with.
type TestEntity struct {
	Name, Label string
	Tags        core.Tags
	Groups      []string
}

// TestStep moves the clock, inserts and compares.
type TestStep struct {
	At     string // HH:mm:ss[.SSS]
	Insert string // text commands, one a line
	Expect any    // decoded YAML: nil when absent
	Line   int
}

// File is the rule file, relative to the rules directory.
func (r *Rule) File() string {
	if r.at.src == nil {
		return ""
	}
	return r.at.src.name
}
