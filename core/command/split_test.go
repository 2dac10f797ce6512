package command

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// split returns all commands of a text, with "!" for one that was too long.
func split(t testing.TB, r io.Reader, transport Transport) ([]string, *Splitter) {
	t.Helper()
	s := NewSplitter(r, transport)
	var got []string
	for {
		command, err := s.Next()
		switch {
		case err == nil:
			got = append(got, string(command))
		case errors.Is(err, ErrTooLong):
			got = append(got, "!")
		case errors.Is(err, io.EOF):
			return got, s
		default:
			t.Fatal(err)
		}
	}
}

func TestSplitter(t *testing.T) {
	long := strings.Repeat("x", MaxLength)
	wide := strings.Repeat("я", MaxLength)
	for _, test := range []struct {
		name, text string
		transport  Transport
		want       []string
		lines      int
	}{
		{"lines", "a\nb\r\n\n \r\nc", TCP, []string{"a", "b", "c"}, 3},
		{"a lone CR ends a line over HTTP", "a\rb\r\rc\r", HTTP, []string{"a", "b", "c"}, 3},
		{"a lone CR is kept over TCP", "a\rb\n", TCP, []string{"a\rb"}, 1},
		{"quotes", "a \"1\n2\"\nb \"\"\"\n\"\n", TCP, []string{"a \"1\n2\"", "b \"\"\"\n\""}, 4},
		{"quote left open", "a \"1\nb\n", TCP, []string{"a \"1\nb"}, 2},
		{"blanks", "  a b \t\n", TCP, []string{"a b"}, 1},
		{"nothing", "\n\r\n  ", HTTP, nil, 0},
		{"longest", long + "\r\na", TCP, []string{long, "a"}, 2},
		{"longest in characters", wide + "\na", TCP, []string{wide, "a"}, 2},
		{"too long", long + "y\na\n", TCP, []string{"!", "a"}, 2},
		{"too long at the end", "a\n" + long + "y", TCP, []string{"a", "!"}, 2},
		{"much too long", strings.Repeat(long, 9) + "\na\n", TCP, []string{"!", "a"}, 1},
		{"much too long to the end", "a\n" + strings.Repeat(long, 9), TCP, []string{"a", "!"}, 1},
		{"too long over many lines", "\"" + strings.Repeat("xyz\n", MaxLength/4+1) + "a\n", TCP, []string{"!", "a"}, MaxLength/4 + 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(test.text), iotest.DataErrReader(iotest.HalfReader(strings.NewReader(test.text)))} {
				got, s := split(t, r, test.transport)
				if !slices.Equal(got, test.want) {
					t.Errorf("got %d commands %.200q, want %d", len(got), got, len(test.want))
				}
				if s.Lines() != test.lines {
					t.Errorf("got %d lines, want %d", s.Lines(), test.lines)
				}
			}
		})
	}
}

// TestSplitterCarriageReturns: a large text whose only line ends are CR takes no longer than one with LF; looking for the LF that never comes at
// each line would take seconds.
func TestSplitterCarriageReturns(t *testing.T) {
	const n = 4 << 20
	got, s := split(t, strings.NewReader(strings.Repeat("\r", n)+strings.Repeat("ping\r", 1000)+"ping"), HTTP)
	if len(got) != 1001 || s.Lines() != 1001 {
		t.Errorf("got %d commands and %d lines, want 1001", len(got), s.Lines())
	}
}

// TestSplitterDoesNotWait checks that a command comes out as soon as its line end is there, while the stream stays open.
func TestSplitterDoesNotWait(t *testing.T) {
	r, w := io.Pipe()
	defer r.Close()
	s := NewSplitter(r, HTTP)
	for _, command := range []string{"ping", "series e:a x:v=\"1\n2\""} {
		written := make(chan error, 1)
		go func() {
			_, err := io.WriteString(w, command+"\n")
			written <- err
		}()
		got, err := s.Next()
		if err != nil || string(got) != command {
			t.Fatalf("got %q, %v, want %q", got, err, command)
		}
		if err := <-written; err != nil {
			t.Fatal(err)
		}
	}
}

func TestSplitterReportsReadErrors(t *testing.T) {
	broken := errors.New("broken")
	s := NewSplitter(io.MultiReader(strings.NewReader("a\nhalf a command"), iotest.ErrReader(broken)), TCP)
	if got, err := s.Next(); err != nil || string(got) != "a" {
		t.Fatalf("got %q, %v", got, err)
	}
	if got, err := s.Next(); !errors.Is(err, broken) {
		t.Fatalf("got %q, %v, want the error of the reader", got, err)
	}
}

// FuzzSplitter checks that the commands do not depend on how the bytes arrive.
func FuzzSplitter(f *testing.F) {
	for _, seed := range []string{"a\nb", "a \"1\n\n2\" \r\n b", "\"\"\"\n\r\r\n", "\r\r\n\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, transport := range []Transport{Exact, TCP, HTTP} {
			whole, _ := split(t, strings.NewReader(text), transport)
			bytewise, _ := split(t, iotest.OneByteReader(strings.NewReader(text)), transport)
			if !slices.Equal(whole, bytewise) {
				t.Fatalf("at once %q, byte by byte %q", whole, bytewise)
			}
			for _, command := range whole {
				again, _ := split(t, strings.NewReader(command), transport)
				if len(again) != 1 || again[0] != command {
					t.Fatalf("command %q splits again into %q", command, again)
				}
			}
		}
	})
}
