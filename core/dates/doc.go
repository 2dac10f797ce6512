// Package dates reads and prints every form of time the contract knows: ISO dates (iso.go), intervals and calendar arithmetic (unit.go, interval.go),
// calendar expressions such as `current_day - 1 * week` (expression.go), workday calendars (calendar.go), time zones (zone.go) and letter patterns
// (pattern*.go).
//
// A time zone is always passed in, never taken from the process: there is no default zone here, and nil means UTC. Nothing reads the clock either; what
// is relative to now takes a Moment.
package dates
