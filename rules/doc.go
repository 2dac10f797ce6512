// Package rules evaluates rules over everything that enters the database, and owns the open alerts.
//
// Reading map: rule.go (the document), load.go and yaml.go (files to documents, all faults at once), compile.go, env.go, fence.go and template.go
// (expressions, the names they may use, what they may not do, and the texts around them), window.go and state.go (samples, statuses), action.go and
// effects.go (what a transition writes), schedule.go (ticks), checkpoint.go (restart), engine.go and run.go (one command through all of it; the loop),
// alerts.go and board.go (what clients see), kept.go (rules whose files are broken). Functions of the language: functions.go, statistics.go, text.go,
// number.go, moment.go, collection.go, lookup.go.
//
// The engine reads the log, never a handler: entry by entry, with the receive time of the entry as its clock. Whole seconds between two entries are ticks.
// What a command or tick does depends on the log alone, so that a restart reads the log from the last checkpoint and comes to the same state. The effects
// of one transition (the alert change, queued notifications, derived records) are one batch, marked with the point in the log they belong to; what is
// marked is not done again.
package rules
