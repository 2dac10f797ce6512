package command

import (
	"bytes"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/tidemark-db/tidemark/core"
)

// Transport decides where lines end and what becomes of line breaks inside quotes.
type Transport uint8

const (
	// Exact keeps quoted text as it is: for derived commands and for what this package printed.
	Exact Transport = iota
	// TCP ends lines at LF. CR directly before LF and empty lines inside quotes vanish; any other CR stays.
	TCP
	// HTTP ends lines at CR, LF or CRLF, trims each line, and drops empty lines inside quotes except the first and last part.
	HTTP
)

// MaxLength is the most characters that a command may have, its line end excluded.
const MaxLength = 128 << 10

// ErrTooLong is the error of a command longer than MaxLength. The splitter has then skipped to the end of its line.
var ErrTooLong = core.Errorf(core.TooLarge, "command is longer than %d characters", MaxLength)

// ErrCrowded is the error of a stream whose Reserve allows no room for a command that has begun.
var ErrCrowded = core.Errorf(core.Unavailable, "too many unfinished commands at once, try again")

const (
	// maxBytes is what MaxLength characters take at most in UTF-8; past it no counting is needed.
	maxBytes = MaxLength * utf8.UTFMax
	// leastRead is how much the buffer of a splitter starts with: thousands of connections that say little cost little.
	leastRead = 4 << 10
	// mostRead is what the buffer grows to under a stream that fills it: a thousand ordinary commands are read, and stored, at once.
	mostRead = 256 << 10
)

// Splitter cuts a stream into commands. It waits for no more bytes than a command needs: a stream may stay open for hours.
type Splitter struct {
	// Reserve is asked before the buffer grows by so many bytes, and told, with a negative number, when it shrinks; optional. A splitter that may not
	// grow does with what it has, or ends with ErrCrowded when a command does not fit.
	Reserve func(bytes int) bool

	r         io.Reader
	transport Transport
	buf       []byte
	start     int // of the command that is being looked for
	scanned   int // end of the complete lines of that command
	searched  int // no line end lies between scanned and here
	feed      int // the first LF at or after searched, len(buf) for none; less than searched when it has to be looked for
	quotes    int // in buf[start:scanned]
	chars     int // in buf[start:scanned], while a quote is open
	lines     int
	discard   bool // the rest of an overlong line is being skipped
	size      int  // that the buffer should have, between leastRead and mostRead
	err       error
}

// NewSplitter returns a splitter that reads from r.
func NewSplitter(r io.Reader, transport Transport) *Splitter {
	return &Splitter{r: r, transport: transport, feed: -1, size: leastRead}
}

// Unfinished reports whether a command has begun that is not read to its end.
func (s *Splitter) Unfinished() bool { return s.discard || s.start < len(s.buf) }

// Rest is everything after the last command that Next returned: what was read already, then what r has, which is the reader of the splitter or stands
// for it. The splitter is of no use then.
func (s *Splitter) Rest(r io.Reader) io.Reader {
	read := bytes.NewReader(s.buf[s.start:])
	if s.err != nil {
		return io.MultiReader(read, failing{s.err})
	}
	return io.MultiReader(read, r)
}

// failing is a reader that has ended.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// Lines returns the number of non-empty lines read so far, the parts of commands over several lines counted one by one.
func (s *Splitter) Lines() int { return s.lines }

// Next returns the next command without its line end; it is valid until the next call. After ErrTooLong, the stream goes on; any
// other error is final: io.EOF, or what the reader returned. The last command needs no line end, unless the reader failed.
func (s *Splitter) Next() ([]byte, error) {
	for {
		if command, found, err := s.scan(); found {
			return command, err
		}
		if s.err != nil {
			return s.rest()
		}
		s.fill()
	}
}

// scan looks for the end of a command in what has been read.
func (s *Splitter) scan() (command []byte, found bool, err error) {
	for {
		end := s.lineEnd()
		if end < 0 {
			if len(s.buf)-s.start > maxBytes+1 && !s.discard {
				s.discard = true
				return nil, true, ErrTooLong
			}
			return nil, false, nil
		}
		line := s.buf[s.scanned:end]
		s.scanned, s.searched = end+1, end+1
		if s.discard {
			s.restart()
			s.discard = false
			continue
		}
		if len(trim(line)) > 0 {
			s.lines++
		}
		s.quotes += bytes.Count(line, quoteMark)
		if s.quotes%2 != 0 {
			// Counted line by line: counting the whole command again at each of its lines would take quadratic time.
			if s.chars += utf8.RuneCount(line) + 1; s.chars > MaxLength+1 {
				s.restart()
				return nil, true, ErrTooLong
			}
			continue
		}
		command = s.buf[s.start:end]
		s.restart()
		command = bytes.TrimRight(command, "\r")
		if tooLong(command) {
			return nil, true, ErrTooLong
		}
		if command = trim(command); len(command) > 0 {
			return command, true, nil
		}
	}
}

var quoteMark = []byte{'"'}

// lineEnd returns the index of the next line end at or after scanned, -1 when there is none yet. Where the next LF is found is kept: looking through
// the whole buffer at each of many CR would take quadratic time.
func (s *Splitter) lineEnd() int {
	if s.feed < s.searched {
		s.feed = len(s.buf)
		if i := bytes.IndexByte(s.buf[s.searched:], '\n'); i >= 0 {
			s.feed = s.searched + i
		}
	}
	end := s.feed
	if s.transport == HTTP {
		if i := bytes.IndexByte(s.buf[s.searched:end], '\r'); i >= 0 {
			return s.searched + i
		}
	}
	if end == len(s.buf) {
		s.searched = end
		return -1
	}
	return end
}

// restart begins a new command after the last complete line.
func (s *Splitter) restart() {
	s.start, s.quotes, s.chars = s.scanned, 0, 0
}

// fill reads once, after moving the unfinished command to the front of the buffer. While an overlong line is skipped nothing of it is kept.
func (s *Splitter) fill() {
	s.feed = -1
	if s.discard {
		s.start, s.scanned, s.searched = len(s.buf), len(s.buf), len(s.buf)
	}
	if s.start > 0 {
		n := copy(s.buf, s.buf[s.start:])
		s.buf = s.buf[:n]
		s.scanned -= s.start
		s.searched -= s.start
		s.start = 0
	}
	if s.err = s.resize(); s.err != nil {
		return
	}
	for range 100 { // a reader may return nothing without an error, but not for ever
		room := cap(s.buf) - len(s.buf)
		n, err := s.r.Read(s.buf[len(s.buf):cap(s.buf)])
		s.buf = s.buf[:len(s.buf)+n]
		s.err = err
		if n == room {
			s.size = min(mostRead, 2*s.size)
		} else if n < cap(s.buf)/8 {
			s.size = max(leastRead, s.size/2)
		}
		if n > 0 || err != nil {
			return
		}
	}
	s.err = io.ErrNoProgress
}

// resize follows the stream: a buffer that is filled grows, one of which little is used shrinks, and one that a command does not fit into doubles.
func (s *Splitter) resize() error {
	want := s.size
	if len(s.buf) > want/2 {
		want = max(want, 2*len(s.buf)) // a long command is on its way
	}
	if cap(s.buf) >= want && cap(s.buf) < 4*want {
		return nil
	}
	if s.Reserve != nil && !s.Reserve(want-cap(s.buf)) {
		s.size = max(leastRead, cap(s.buf))
		if len(s.buf) == cap(s.buf) {
			return ErrCrowded
		}
		return nil
	}
	moved := make([]byte, len(s.buf), want)
	copy(moved, s.buf)
	s.buf = moved
	return nil
}

// rest returns what stands after the last line end of a stream that ended.
func (s *Splitter) rest() ([]byte, error) {
	command := s.buf[s.start:]
	last := s.buf[s.scanned:]
	s.start, s.scanned, s.searched = len(s.buf), len(s.buf), len(s.buf)
	if s.discard || !errors.Is(s.err, io.EOF) {
		return nil, s.err
	}
	if len(trim(last)) > 0 {
		s.lines++
	}
	command = bytes.TrimRight(command, "\r")
	if tooLong(command) {
		return nil, ErrTooLong
	}
	if command = trim(command); len(command) > 0 {
		return command, nil
	}
	return nil, s.err
}

func tooLong(command []byte) bool {
	return len(command) > MaxLength && utf8.RuneCount(command) > MaxLength
}

// trim cuts blanks and control characters at both ends.
func trim(b []byte) []byte {
	for len(b) > 0 && b[0] <= ' ' {
		b = b[1:]
	}
	for len(b) > 0 && b[len(b)-1] <= ' ' {
		b = b[:len(b)-1]
	}
	return b
}
