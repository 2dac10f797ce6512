package expr_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core/sql/column"
)

// generator writes random expressions over the columns of table.
type generator struct{ *rand.Rand }

func (g generator) pick(list ...string) string { return list[g.IntN(len(list))] }

func (g generator) condition(depth int) string {
	if depth == 0 {
		return g.pick("f > 5", "g IS NULL", "s = '10'", "i IN (10, 20)", "n = 1", "s LIKE '%1%'", "1 = 1", "NULL = 1", "f BETWEEN 0 AND g", "o = 14", "LOOKUP('codes', i) IS NULL", "b", "'north' IN groups")
	}
	a, b := g.condition(depth-1), g.condition(depth-1)
	switch g.IntN(6) {
	case 0:
		return "NOT (" + a + ")"
	case 1:
		return fmt.Sprintf("%s %s %s", g.number(depth-1), g.pick("=", "<>", "<", "<=", ">", ">="), g.number(depth-1))
	case 2:
		return fmt.Sprintf("%s %s %s", g.text(depth-1), g.pick("=", "<>", "<", ">="), g.text(depth-1))
	}
	return fmt.Sprintf("(%s) %s (%s)", a, g.pick("AND", "OR"), b)
}

func (g generator) number(depth int) string {
	if depth == 0 {
		return g.pick("f", "g", "i", "1.5", "3", "NULL", "NaN", "n", "LENGTH(s)", "d")
	}
	a, b := g.number(depth-1), g.number(depth-1)
	switch g.IntN(7) {
	case 0:
		return fmt.Sprintf("CASE WHEN %s THEN %s WHEN %s THEN %s ELSE %s END", g.condition(depth-1), a, g.condition(depth-1), b, g.number(0))
	case 1:
		return fmt.Sprintf("COALESCE(%s, %s, %s)", a, b, g.number(0))
	case 2:
		return fmt.Sprintf("ISNULL(%s, %s)", a, b)
	case 3:
		return fmt.Sprintf("CASE %s WHEN %s OR 10 THEN %s END", a, b, g.number(0))
	case 4:
		return fmt.Sprintf("ROUND(%s, 1)", a)
	}
	return fmt.Sprintf("(%s %s %s)", a, g.pick("+", "-", "*", "/", "%"), b)
}

func (g generator) text(depth int) string {
	if depth == 0 {
		return g.pick("s", "c", "z", "'10'", "NULL", "groups", "UPPER(s)")
	}
	return g.pick(
		fmt.Sprintf("CONCAT(%s, %s)", g.text(depth-1), g.number(depth-1)), fmt.Sprintf("CASE WHEN %s THEN %s ELSE %s END", g.condition(depth-1), g.text(depth-1), g.text(0)),
		fmt.Sprintf("COALESCE(%s, %s)", g.text(depth-1), g.text(0)), fmt.Sprintf("CAST(%s AS STRING)", g.number(depth-1)), fmt.Sprintf("REPLACE(%s, '1', %s)", g.text(depth-1), g.text(0)))
}

// plain is a value and its type. Whole numbers of more than 53 bits may be rounded where other rows of the batch do not fit 64 bits.
func plain(v column.Value) string {
	if v.Type.Numeric() {
		v = column.FloatValue(v.Type, v.Number())
	}
	return v.Format() + v.Type.String()
}

// Over many rows an expression says of each row what it says of that row alone.
func TestRowsAreIndependent(t *testing.T) {
	env := environment(t)
	g := generator{rand.New(rand.NewPCG(7, 8))}
	for range 1500 {
		text := g.pick(g.condition(1+g.IntN(3)), g.number(1+g.IntN(2)), g.text(1+g.IntN(2)))
		b := table()
		b.columns["b"] = len(b.types)
		b.types = append(b.types, column.Boolean)
		b.batch.Columns = append(b.batch.Columns, &column.Vector{Type: column.Boolean, Len: 6, Ints: []int64{0, 1, 0, 1, 0, 1}, Nulls: []bool{false, false, true, true, false, false}})
		n, err := b.node(expression(t, text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		all, err := n.Eval(env, &b.batch)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		got := make([]string, b.batch.Len)
		for i := range got {
			got[i] = plain(all.Value(i))
		}
		single := n.Clone()
		order := g.Perm(b.batch.Len)
		for _, i := range order {
			v, err := single.Eval(env, b.batch.Slice(i, i+1))
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if alone := plain(v.Value(0)); alone != got[i] {
				t.Fatalf("%s: row %d is %s among others, %s alone", text, i, got[i], alone)
			}
		}
	}
}

// Three-valued logic as the contract has it, for both operators and all pairs.
func TestTruthTables(t *testing.T) {
	words := []string{"true", "false", "NULL"}
	var left, right []string
	for _, a := range words {
		for _, b := range words {
			left, right = append(left, a), append(right, b)
		}
	}
	make9 := func(list []string) *column.Vector {
		b := column.NewBuilder(column.Boolean)
		for _, w := range list {
			if w == "NULL" {
				b.AppendNull()
				continue
			}
			b.Append(column.BoolValue(w == "true"))
		}
		return b.Vector()
	}
	b := &binder{columns: map[string]int{"p": 0, "q": 1}, types: []column.Type{column.Boolean, column.Boolean}}
	b.batch = column.Batch{Len: 9, Columns: []*column.Vector{make9(left), make9(right)}}
	env := environment(t)
	for text, want := range map[string]string{
		"p AND q": "true false NULL false false false NULL false NULL",
		"p OR q":  "true true true true false NULL true NULL NULL",
		"NOT p":   "false false false true true true NULL NULL NULL",
		// The same where the right side must not be evaluated on rows that do not need it.
		"p AND ISNULL(LOOKUP('codes', 1), 'x') = 'x' AND q": "true false NULL false false false NULL false NULL",
		"p OR (LOOKUP('codes', 3) = 'low' AND q)":           "true true true true false NULL true NULL NULL",
	} {
		if got, _, err := b.evaluate(t, env, text); got != want || err != nil {
			t.Errorf("%s is %s, %v, want %s", text, got, err, want)
		}
	}
	for i := range 9 { // with constants on either side
		for text, op := range map[string]string{"and": "p AND q", "or": "p OR q"} {
			want, _, _ := b.evaluate(t, env, op)
			for _, sides := range []string{left[i] + " " + text + " q", "p " + text + " " + right[i]} {
				got, _, err := b.evaluate(t, env, strings.ReplaceAll(strings.ReplaceAll(sides, "NULL", "(NULL = 1)"), "true", "(1 = 1)"))
				if g := strings.Fields(got); err != nil || g[i] != strings.Fields(want)[i] {
					t.Errorf("%s, row %d, is %s, %v, want %s", sides, i, got, err, want)
				}
			}
		}
	}
}
