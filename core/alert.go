package core

import "context"

// Status is the state of a rule's window, and the type of a history row.
type Status string

const (
	StatusCancel Status = "CANCEL"
	StatusOpen   Status = "OPEN"
	StatusRepeat Status = "REPEAT"
)

// Alert is an open alert: a window whose condition was true at its last evaluation.
type Alert struct {
	ID           uint64   `json:"id"` // from a counter that is never reset
	Rule         string   `json:"rule"`
	Window       string   `json:"window"` // grouping key of the window, unique within the rule
	Metric       string   `json:"metric"` // "message" and "property" for rules on those
	Entity       string   `json:"entity"`
	Tags         Tags     `json:"tags,omitempty"`
	Severity     Severity `json:"severity"`
	RepeatCount  int      `json:"repeatCount"`
	Value        float64  `json:"-"`
	OpenValue    float64  `json:"-"`
	TextValue    string   `json:"textValue"`
	Message      string   `json:"message,omitempty"`
	OpenTime     Time     `json:"openTime"`
	LastEvent    Time     `json:"lastEvent"`
	Acknowledged bool     `json:"acknowledged,omitempty"`
	State        string   `json:"state,omitempty"` // "nodata" when it opened because data stopped
}

// AlertRow is one row of the alert history: a status change that its rule records.
type AlertRow struct {
	AlertID     uint64
	Time        Time // of the command that caused it
	Received    Time
	OpenTime    Time
	Entity      string
	Metric      string
	Rule        string
	Tags        Tags
	Type        Status
	Value       float64
	Text        string
	Severity    Severity
	Condition   string
	Filter      string
	Window      string // `length(3)` or `time(5 minute)`
	Schedule    string
	RepeatCount int
}

// AlertChangeKind says what happened to an alert.
type AlertChangeKind uint8

const (
	AlertOpened AlertChangeKind = iota
	AlertRepeated
	AlertClosed
	AlertSeverity // severity changed while open
	AlertAcknowledged
	AlertDeleted
)

// AlertChange is one journaled step in the life of an alert. Event identifies it: it is derived from the rule, the window key, the
// position of the batch that caused it and the tick, so that a replay derives the same text, and a change whose Event is already stored is dropped.
type AlertChange struct {
	Event string
	Kind  AlertChangeKind
	Alert Alert     // state after the change
	Row   *AlertRow // the history row, when the rule records this kind of change
}

// AlertFilter selects open alerts. Empty lists select all.
type AlertFilter struct {
	Scope        Scope
	Rules        []string // glob patterns
	Metrics      []string // glob patterns
	Severities   []Severity
	MinSeverity  Severity
	Acknowledged *bool
	Entities     EntityFilter
	Range        Range // of the open time
}

// OpenAlerts is the engine's view of what is open. Changes are journaled, and visible to the next Query when the call returns.
type OpenAlerts interface {
	// Query returns matching alerts ordered by entity, metric and id.
	Query(ctx context.Context, f AlertFilter) ([]Alert, error)
	// Acknowledge sets the flag of the named alerts; unknown ids are ignored.
	Acknowledge(ctx context.Context, o Origin, ids []uint64, flag Acknowledgement) error
	// Delete removes the named alerts without a trigger; unknown ids are ignored.
	Delete(ctx context.Context, o Origin, ids []uint64) error
}

// Acknowledgement is the state that Acknowledge sets.
type Acknowledgement uint8

const (
	Unacknowledge Acknowledgement = iota
	Acknowledge
)

// AlertEvent is what an alert renderer gets: one transition of one window with everything that a text may mention.
type AlertEvent struct {
	ID        string // stable over retries: the notification id
	Rule      string
	Condition string
	Window    string
	Status    Status
	Before    Status
	Alert     Alert
	Type      string // message and property rules
	Source    string
	Tags      Tags // of the last command
	Fields    Tags // rendered variables and parameters
	Time      Time // of the command
	Received  Time
}

// RenderedAlert is what a renderer made of one event. Both parts are used where the action asks for them.
type RenderedAlert struct {
	Text string
	JSON []byte
}

// AlertRenderer turns events into texts and JSON bodies, in order, one result an event.
type AlertRenderer interface {
	Render(ctx context.Context, plugin string, events []AlertEvent) ([]RenderedAlert, error)
}
