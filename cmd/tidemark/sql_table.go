package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// measured is how many rows decide how wide the columns of a table are. Wider cells of later rows stand out.
const measured = 1000

// widest is how many characters of a cell a table shows.
const widest = 80

// table prints rows as they come.
type table struct {
	out     *bufio.Writer
	labels  []string
	right   []bool // numbers stand at the right side
	rows    [][]string
	widths  []int
	printed int
}

// printTable prints the JSON form of a result and returns the number of its rows.
func printTable(out io.Writer, body io.Reader) (rows int, err error) {
	t := &table{out: bufio.NewWriter(out)}
	d := json.NewDecoder(body)
	d.UseNumber()
	err = t.read(d)
	if fault := t.finish(); err == nil {
		err = fault
	}
	return t.printed, err
}

// read walks the members of the answer.
func (t *table) read(d *json.Decoder) error {
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("the answer is cut: %w", err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		switch name {
		case "metadata":
			err = t.metadata(d)
		case "data":
			err = t.data(d)
		default:
			var rest []struct{ Message string }
			if err = d.Decode(&rest); err == nil && name == "errors" && len(rest) > 0 {
				err = errors.New(rest[0].Message)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *table) metadata(d *json.Decoder) error {
	var m struct {
		TableSchema struct {
			Columns []struct{ Titles, Datatype string }
		}
	}
	if err := d.Decode(&m); err != nil {
		return err
	}
	for _, c := range m.TableSchema.Columns {
		t.labels = append(t.labels, c.Titles)
		switch c.Datatype {
		case "smallint", "integer", "bigint", "float", "double", "decimal":
			t.right = append(t.right, true)
		default:
			t.right = append(t.right, false)
		}
	}
	return nil
}

func (t *table) data(d *json.Decoder) error {
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		var cells []any
		if err := d.Decode(&cells); err != nil {
			return fmt.Errorf("the answer is cut: %w", err)
		}
		row := make([]string, len(cells))
		for i, c := range cells {
			row[i] = shown(c)
		}
		t.printed++
		if t.widths != nil {
			t.line(row)
			continue
		}
		if t.rows = append(t.rows, row); len(t.rows) == measured {
			t.begin()
		}
	}
	_, err := d.Token()
	return err
}

// shown is the text of a cell on one line.
func shown(cell any) string {
	switch c := cell.(type) {
	case nil:
		return "NULL"
	case string:
		c = strings.Map(func(r rune) rune {
			if r < ' ' || r == 0x7f { // a terminal would obey them
				return '·'
			}
			return r
		}, c)
		if utf8.RuneCountInString(c) > widest {
			return string([]rune(c)[:widest-1]) + "…"
		}
		return c
	}
	return fmt.Sprint(cell)
}

// begin fixes the widths and prints what waits.
func (t *table) begin() {
	t.widths = make([]int, len(t.labels))
	for i, label := range t.labels {
		t.widths[i] = utf8.RuneCountInString(label)
	}
	for _, row := range t.rows {
		for i, cell := range row[:min(len(row), len(t.widths))] {
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(cell))
		}
	}
	if len(t.labels) == 0 {
		return
	}
	t.line(t.labels)
	for i, w := range t.widths {
		if i > 0 {
			t.out.WriteString("-+-")
		}
		t.out.WriteString(strings.Repeat("-", w))
	}
	t.out.WriteByte('\n')
	for _, row := range t.rows {
		t.line(row)
	}
	t.rows = nil
}

func (t *table) line(row []string) {
	for i, cell := range row[:min(len(row), len(t.widths))] {
		if i > 0 {
			t.out.WriteString(" | ")
		}
		blanks := strings.Repeat(" ", max(0, t.widths[i]-utf8.RuneCountInString(cell)))
		switch {
		case t.right[i]:
			t.out.WriteString(blanks + cell)
		case i == len(row)-1:
			t.out.WriteString(cell)
		default:
			t.out.WriteString(cell + blanks)
		}
	}
	t.out.WriteByte('\n')
}

func (t *table) finish() error {
	if t.widths == nil {
		t.begin()
	}
	if len(t.labels) > 0 {
		word := "rows"
		if t.printed == 1 {
			word = "row"
		}
		fmt.Fprintf(t.out, "(%d %s)\n", t.printed, word)
	}
	return t.out.Flush()
}
