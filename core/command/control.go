package command

import "strings"

// Control is a command that is not a record: it talks to the connection.
type Control uint8

const (
	NoControl Control = iota
	Ping
	Time
	Version
	Exit
	Debug  // the rest of the line is a command whose result is reported
	Marker // the rest of the line is the id of the marker
)

// Classify recognises control words, ignoring case, and returns what follows them without blanks at its ends. Ping, time, version and exit stand alone,
// marker takes exactly one word.
func Classify(line []byte) (kind Control, rest []byte) {
	line = trim(line)
	end := 0
	for end < len(line) && line[end] > ' ' {
		end++
	}
	if end > len("version") {
		return NoControl, nil
	}
	rest = trim(line[end:])
	alone := NoControl
	switch strings.ToLower(string(line[:end])) {
	case "ping":
		alone = Ping
	case "time":
		alone = Time
	case "version":
		alone = Version
	case "exit":
		alone = Exit
	case "debug":
		return Debug, rest
	case "marker":
		if len(rest) == 0 || strings.ContainsAny(string(rest), " \t\r\n") {
			return NoControl, nil
		}
		return Marker, rest
	}
	if len(rest) > 0 {
		return NoControl, nil
	}
	return alone, nil
}
