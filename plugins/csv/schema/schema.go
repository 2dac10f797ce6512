// Package schema reads and runs the programs that pick cells of a file by their position: chains of functions that begin with select, in a small
// part of JavaScript. A program is compiled once; a Run of it takes one file row by row and keeps of earlier rows what the program can ask for.
package schema

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds of programs and of what they do. A program is a few lines in practice; the bounds keep any text from using up an instance.
const (
	maxProgram = 64 << 10 // bytes of program text
	maxDepth   = 200      // of nested expressions and statements, and of operators that follow each other
	maxCalls   = 64       // of functions that call each other: with maxDepth some 10 MiB of stack at worst
	maxSteps   = 500_000  // expressions evaluated for one visited cell: up to 0.6 s in a guest, which has 2 s for a chunk
	maxText    = 1 << 20  // bytes of a text; a line has no more
	maxItems   = 1 << 16  // elements of an array, members of an object
	maxMade    = 8 << 20  // bytes of texts, arrays and objects made for one visited cell
	maxHeld    = 4 << 20  // bytes that variables hold from row to row
	maxKept    = 4 << 20  // bytes of earlier rows, see history
	maxColumns = 1 << 14  // columns that notEmptyUp looks at
	maxPairs   = 1000     // tags or keys of a command
)

// Error is a fault of a program, found when it was compiled.
type Error struct {
	Line, Column int // in the program, from 1
	Reason       string
}

func (e *Error) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Reason)
}

// Program is a compiled program. It does not change: runs may share it.
type Program struct {
	source     string
	statements []statement // outside chains, in order
	chains     []*chain
	globals    int
	functions  []hoisted // declared outside of any other
	needs      needs
}

// Kind is what a command is.
type Kind uint8

// The commands of the functions addSeries, addProperty and addMessage.
const (
	Series Kind = iota
	Property
	Message
)

// Adds reports whether the program makes commands of a kind.
func (p *Program) Adds(k Kind) bool {
	for _, c := range p.chains {
		for _, o := range c.ops {
			if o.do == opAdd && o.kind == k {
				return true
			}
		}
	}
	return false
}

// Scalar is a time or a value: a text of the file, or a number that the program computed. The zero Scalar is none.
type Scalar struct {
	Text     string
	Number   float64
	IsNumber bool
}

// Empty reports whether there is nothing.
func (s Scalar) Empty() bool { return !s.IsNumber && s.Text == "" }

// Pair is a tag or a key.
type Pair struct{ Name, Value string }

// Command is what a chain makes of one visited cell. Texts are as the program gave them; what it did not give is empty.
type Command struct {
	Kind       Kind
	Column     int // of the visited cell, from 1
	Entity     string
	Time       Scalar // a number is Unix ms
	Metric     string
	Value      Scalar // of a series never empty
	Type, Text string
	Keys, Tags []Pair
}

// Fault is why a row could not be converted.
type Fault struct {
	Column int // of the visited cell, from 1; 0 = the row
	Reason string
	Final  bool // every other row would fail likewise
}

// Row is the current row of a file.
type Row interface {
	Size() int              // cells
	Cell(column int) string // trimmed, column from 1 up to Size
	Text() string           // the whole line
}

// position turns an offset in the program into line and column.
func position(source string, at int) (line, column int) {
	before := source[:min(at, len(source))]
	start := strings.LastIndexByte(before, '\n') + 1
	return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[start:]) + 1
}
