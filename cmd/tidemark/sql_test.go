package main

import (
	"slices"
	"strings"
	"testing"
)

func TestStatementsAreCutAtSemicolons(t *testing.T) {
	for _, tt := range []struct {
		lines []string
		want  []string
		rest  string
	}{
		{[]string{"SELECT 1;"}, []string{"SELECT 1"}, ""},
		{[]string{"SELECT 1; SELECT 2;\n", " ;;SELECT 3"}, []string{"SELECT 1", "SELECT 2"}, "SELECT 3"},
		{[]string{"SELECT 'a;b', \"c;d\";"}, []string{"SELECT 'a;b', \"c;d\""}, ""},
		{[]string{"SELECT 'it''s;';"}, []string{"SELECT 'it''s;'"}, ""},
		{[]string{"SELECT 1 -- one;\n", ", 2;"}, []string{"SELECT 1 -- one;\n, 2"}, ""},
		{[]string{"SELECT /* a; /* b; */ c; */ 1;"}, []string{"SELECT /* a; /* b; */ c; */ 1"}, ""},
		{[]string{"SELECT '/*'; SELECT '--';"}, []string{"SELECT '/*'", "SELECT '--'"}, ""},
		{[]string{"SELECT 4 /", "* 2;"}, nil, "SELECT 4 /* 2;"},
	} {
		var s statements
		var got []string
		for _, line := range tt.lines {
			got = append(got, s.add(line)...)
		}
		if !slices.Equal(got, tt.want) || strings.TrimSpace(s.pending.String()) != tt.rest {
			t.Errorf("%q: got %q and %q, want %q and %q", tt.lines, got, s.pending.String(), tt.want, tt.rest)
		}
	}
}

func TestCompletion(t *testing.T) {
	c := &completer{words: []string{"SELECT", "SET", "sum(", `"cpu.busy%"`, `"cpu.idle%"`, "flow"}}
	for _, tt := range []struct{ line, want string }{
		{"sel", "SELECT "},
		{"SELECT su", "SELECT sum("},
		{"SELECT value FROM fl", "SELECT value FROM flow "},
		{`FROM "cp`, `FROM "cpu.`},
		{`FROM "fl`, `FROM "flow" `},
		{`FROM cpu.b`, `FROM "cpu.busy%" `},
		{"nothing", "nothing"},
		{"", ""},
	} {
		got, pos, ok := c.key(tt.line, len(tt.line), '\t')
		if got != tt.want || pos != len(tt.want) || !ok {
			t.Errorf("%q: got %q at %d, want %q", tt.line, got, pos, tt.want)
		}
	}
	line, pos, _ := c.key("FROM cpu.", 9, '\t')
	if line != `FROM "cpu.` {
		t.Fatalf("got %q", line)
	}
	for _, want := range []string{`FROM "cpu.busy%"`, `FROM "cpu.idle%"`, `FROM "cpu.busy%"`} { // each press shows the next
		if line, pos, _ = c.key(line, pos, '\t'); line != want {
			t.Errorf("got %q, want %q", line, want)
		}
	}
	if _, _, ok := c.key("x", 1, 'y'); ok {
		t.Error("an ordinary key was taken")
	}
}
