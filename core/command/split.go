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

const (
	// maxBytes is what MaxLength characters take at most in UTF-8; past it no counting is needed.
	maxBytes = MaxLength * utf8.UTFMax
	// readSize is how much the buffer of a splitter starts with: some hundred ordinary commands.
	readSize = 64 << 10
)

// Splitter cuts a stream into commands. It waits for no more bytes than a command needs: a stream may stay open for hours.
type Splitter struct {
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
	err       error
}

// NewSplitter returns a splitter that reads from r.
func NewSplitter(r io.Reader, transport Transport) *Splitter {
	return &Splitter{r: r, transport: transport, feed: -1}
}

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
	if len(s.buf) == cap(s.buf) {
		grown := make([]byte, len(s.buf), max(readSize, 2*cap(s.buf)))
		copy(grown, s.buf)
		s.buf = grown
	}
	for range 100 { // a reader may return nothing without an error, but not for ever
		n, err := s.r.Read(s.buf[len(s.buf):cap(s.buf)])
		s.buf = s.buf[:len(s.buf)+n]
		s.err = err
		if n > 0 || err != nil {
			return
		}
	}
	s.err = io.ErrNoProgress
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
