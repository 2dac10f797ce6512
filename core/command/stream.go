package command

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-db/tidemark/core"
)

// Stream is a csv or nmon command: what follows it on the connection is a file for a parser.
type Stream struct {
	Format  string // csv or nmon
	Parser  string
	Params  map[string]string // as the upload of the format names them
	Tags    core.Tags
	Zone    string
	File    string
	Timeout time.Duration // between two reads; 0 = the server's
}

// streamFields are the fields of the two commands, with the name of the upload parameter that they stand for.
var streamFields = map[string]map[string]string{
	"csv": {"p": "", "z": "", "o": "", "e": "default-entity", "ep": "entity-prefix", "et": "entity-tags", "m": "default-metric", "mp": "metric-prefix",
		"mt": "metric-tags"},
	"nmon": {"p": "", "z": "", "o": "", "v": "", "e": "e", "f": "f"},
}

// maxTimeout is the longest silence that a stream may ask for: a day.
const maxTimeout = 86_400

// word returns the first word of a line in lower case, "" when it is longer than any command.
func word(line []byte) string {
	line = trim(line)
	end := 0
	for end < len(line) && line[end] > ' ' {
		if end++; end > len("property") {
			return ""
		}
	}
	return strings.ToLower(string(line[:end]))
}

// Native reports whether a line begins with a word that Parser.Line knows.
func Native(line []byte) bool {
	switch word(line) {
	case "series", "property", "message", "metric", "entity":
		return true
	}
	return false
}

// ParseStream reads a csv or nmon command. ok is false for a line that is neither; the error of a faulty one is that of Parser.Line.
func ParseStream(line []byte) (s Stream, ok bool, err error) {
	fields, ok := streamFields[word(line)]
	if !ok {
		return Stream{}, false, nil
	}
	c := cursor{text: string(trim(line)), transport: TCP}
	s = Stream{Format: c.word(), Params: map[string]string{}}
	if err := s.read(&c, fields); err != nil {
		return Stream{}, true, malformed(c.text, err)
	}
	return s, true, nil
}

func (s *Stream) read(c *cursor, fields map[string]string) error {
	shapes := func(prefix string) shape {
		if _, known := fields[prefix]; known {
			return plain
		}
		if prefix == "t" && s.Format == "csv" {
			return named
		}
		return unknown
	}
	var f field
	for {
		more, err := c.field(&f, shapes)
		if err != nil {
			return err
		}
		if !more {
			break
		}
		if err := s.set(c, &f, fields[f.prefix]); err != nil {
			return err
		}
	}
	s.Tags = s.Tags.Normal()
	switch {
	case s.Parser == "":
		return errors.New("no parser: set p:")
	case s.Format == "nmon" && s.Params["e"] == "":
		return errNoEntity
	case s.Format == "nmon" && s.File == "":
		return errors.New("no file: set f:")
	}
	return nil
}

// set takes one field.
func (s *Stream) set(c *cursor, f *field, parameter string) error {
	switch f.prefix {
	case "p":
		s.Parser = f.value
	case "z":
		s.Zone = f.value
	case "o":
		seconds, err := strconv.ParseInt(f.value, 10, 32)
		if err != nil || seconds <= 0 || seconds > maxTimeout {
			return c.fault(f.at, "o: takes 1 to %d seconds, not %q", maxTimeout, f.value)
		}
		s.Timeout = time.Duration(seconds) * time.Second
	case "t":
		value := strings.TrimSpace(f.value)
		if value == "" {
			return c.fault(f.at, "tag %q has an empty value", f.name)
		}
		s.Tags = append(s.Tags, core.Tag{Name: f.name, Value: value})
		s.Params["t:"+f.name] = value // as uploads have it; plugins read either
	case "f":
		s.File = f.value
		s.Params[parameter] = f.value
	case "v": // version of the sending script, of no use here
	default:
		s.Params[parameter] = f.value
	}
	return nil
}
