package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/goccy/go-yaml"

	"github.com/tidemark-db/tidemark/core/dates"
)

// calendars are the built-in workday calendars and those of the configuration folder.
type calendars struct {
	dir      string
	standard string // key of the default one; "" = Monday to Friday
	current  atomic.Pointer[dates.Calendars]
}

// openCalendars reads the folder for the first time. Faults of files are told, and the others work; a default that is not there is an error.
func openCalendars(c Config, log *slog.Logger) (*calendars, error) {
	s := &calendars{dir: c.Dir, standard: c.Calendar}
	faults := s.read()
	if s.list() == nil {
		return nil, usageError{faults}
	}
	if faults != nil {
		log.Error("calendars: " + faults.Error())
	}
	return s, nil
}

// list returns the calendars as they are now.
func (s *calendars) list() *dates.Calendars { return s.current.Load() }

// folder is what is read again when it changes.
func (s *calendars) folder() *folder {
	return &folder{name: "calendars", reload: func(context.Context) error { return s.read() }}
}

// read reads every file of calendars/ again: KEY.yaml, or KEY.json as the contract has it. All faults are listed; the other files are in force, unless
// the default calendar is missing: then all stays as it was.
func (s *calendars) read() error {
	paths, err := filepath.Glob(filepath.Join(s.dir, "calendars", "*.*"))
	if err != nil {
		return err
	}
	slices.Sort(paths)
	var list []*dates.Calendar
	var faults []error
	for _, path := range paths {
		if ext := filepath.Ext(path); ext != ".yaml" && ext != ".yml" && ext != ".json" {
			continue
		}
		c, err := readCalendar(path)
		if err == nil && slices.ContainsFunc(list, func(o *dates.Calendar) bool { return o.Name() == c.Name() }) {
			err = fmt.Errorf("%s: there is another file of calendar %q", path, c.Name())
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		list = append(list, c)
	}
	set, err := dates.NewCalendars(list...).WithDefault(s.standard)
	if err != nil {
		return errors.Join(append(faults, fmt.Errorf("default.holiday.calendar: %w", err))...)
	}
	s.current.Store(set)
	return errors.Join(faults...)
}

// readCalendar reads one file; JSON is YAML too.
func readCalendar(path string) (*dates.Calendar, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("calendar: %w", err)
	}
	var f dates.CalendarFile
	if err := yaml.UnmarshalWithOptions(data, &f, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("%s: %s", path, yaml.FormatError(err, false, true))
	}
	c, err := f.Calendar(strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}
