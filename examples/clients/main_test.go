package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCount(t *testing.T) {
	out := "ok   a\nnoise\nFAIL b: got 1, want 2\nskip c: not built\nok   d\nokay\n"
	if diff := cmp.Diff(tally{passed: 2, failed: 1, skipped: 1}, count(out, "x"), cmp.AllowUnexported(tally{})); diff != "" {
		t.Error(diff)
	}
}

// The last line is what CI systems read.
func TestTally(t *testing.T) {
	total := tally{passed: 3}
	total.add(tally{passed: 1, failed: 2, skipped: 4})
	if got, want := total.String(), "clients: 4 passed, 2 failed, 4 skipped"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestReason(t *testing.T) {
	tests := []struct{ out, want string }{
		{"some noise\nskip: Java (a JDK) is not installed\n", "Java (a JDK) is not installed"},
		{"\x1b[31mERROR\x1b[0m no such package\n", "its installation failed: exit status 1\n   | ERROR no such package"},
		{"", "its installation failed: exit status 1"},
	}
	for _, tt := range tests {
		if got := reason([]byte(tt.out), errors.New("exit status 1")); got != tt.want {
			t.Errorf("reason(%q) = %q, want %q", tt.out, got, tt.want)
		}
	}
}

func TestChoose(t *testing.T) {
	for only, want := range map[string][]string{"": folders, "node,python": {"python", "node"}, "py": nil} {
		if diff := cmp.Diff(want, choose(only)); diff != "" {
			t.Errorf("choose(%q): %s", only, diff)
		}
	}
}

func TestServerLines(t *testing.T) {
	s := server{doors: make(map[string]string)}
	ready := make(chan struct{})
	s.read(strings.NewReader(`level=INFO msg="network: tcp is open on 127.0.0.1:4"`+"\ntidemark 0.1.0 is ready on http://127.0.0.1:5\n"), ready)
	<-ready
	if s.url != "http://127.0.0.1:5" || s.doors["tcp"] != "127.0.0.1:4" {
		t.Errorf("url %q, doors %v", s.url, s.doors)
	}
}
