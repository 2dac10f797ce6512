package dates

import (
	_ "embed"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

//go:embed holidays.txt
var holidays string

// Calendars is a set of workday calendars by key. A nil set has those that are built in, and no default. A set is immutable.
type Calendars struct {
	byName   map[string]*Calendar
	standard *Calendar
}

// builtIn are the calendars that every server has, made when one is first asked for.
var builtIn = sync.OnceValue(func() *Calendars {
	s := &Calendars{byName: map[string]*Calendar{}}
	for line := range strings.Lines(holidays) {
		if !strings.HasPrefix(line, "#") {
			s.take(strings.Fields(line))
		}
	}
	return s
})

// take adds a line of holidays.txt: KEY YEAR on|off MM-DD ...
func (s *Calendars) take(words []string) {
	name, worked := words[0], words[2] == "on"
	if s.byName[name] == nil {
		s.byName[name] = newCalendar(name, name)
	}
	year, _ := strconv.Atoi(words[1])
	for _, day := range words[3:] {
		month, _ := strconv.Atoi(day[:2])
		number, _ := strconv.Atoi(day[3:])
		s.byName[name].set(DateAt(year, time.Month(month), number), worked)
	}
}

// NewCalendars returns a set of the built-in calendars and of others, which take the place of a built-in one of the same key.
func NewCalendars(others ...*Calendar) *Calendars {
	s := &Calendars{byName: maps.Clone(builtIn().byName)}
	for _, c := range others {
		s.byName[c.name] = c
	}
	return s
}

// WithDefault returns the set with a default calendar. The empty key is none: the week from Monday to Friday.
func (s *Calendars) WithDefault(name string) (*Calendars, error) {
	if name == "" {
		return &Calendars{byName: s.all()}, nil
	}
	c, err := s.Find(name)
	return &Calendars{byName: s.all(), standard: c}, err
}

func (s *Calendars) all() map[string]*Calendar {
	if s == nil {
		return builtIn().byName
	}
	return s.byName
}

// Default returns the calendar that counts where none is named; nil is the week from Monday to Friday.
func (s *Calendars) Default() *Calendar {
	if s == nil {
		return nil
	}
	return s.standard
}

// Names lists the keys in order.
func (s *Calendars) Names() []string { return slices.Sorted(maps.Keys(s.all())) }

// Find returns the calendar of a key, which ignores case. The error of an unknown one says which there are, and how to add one.
func (s *Calendars) Find(name string) (*Calendar, error) {
	if c := s.all()[strings.ToLower(strings.TrimSpace(name))]; c != nil {
		return c, nil
	}
	const most = 64 // bytes of a name that an error repeats
	if len(name) > most {
		name = strings.ToValidUTF8(name[:most], "") + "..."
	}
	return nil, core.Errorf(core.Invalid, "workday calendar '%s' not found: there are %s; to add one, put it as calendars/KEY.yaml into the configuration folder",
		name, strings.Join(s.Names(), ", "))
}
