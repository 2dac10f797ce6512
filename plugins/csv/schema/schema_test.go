package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// cells is a row of a test.
type cells []string

func (c cells) Size() int              { return len(c) }
func (c cells) Cell(column int) string { return c[column-1] }
func (c cells) Text() string           { return strings.Join(c, ",") }

func rows(file string) (all []cells) {
	for _, line := range strings.Split(strings.Trim(file, "\n"), "\n") {
		row := strings.Split(line, ",")
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		all = append(all, row)
	}
	return all
}

func compile(t testing.TB, program string) *Program {
	t.Helper()
	p, err := Compile(program)
	if err != nil {
		t.Fatalf("%s: %v", program, err)
	}
	return p
}

// commands runs a file through a program and prints what it makes; a fault is printed in its place.
func commands(p *Program, file []cells) (out []string) {
	r := p.Start("a.csv")
	for i, row := range file {
		_, f := r.Row(row, func(c *Command) bool {
			out = append(out, print(c))
			return true
		})
		if f != nil {
			out = append(out, fmt.Sprintf("fault %d,%d: %s", i+1, f.Column, f.Reason))
			if f.Final {
				break
			}
		}
	}
	return out
}

func print(c *Command) string {
	s := func(v Scalar) string {
		if v.IsNumber {
			return strconv.FormatFloat(v.Number, 'g', -1, 64)
		}
		return strconv.Quote(v.Text)
	}
	out := fmt.Sprintf("%s@%d", [...]string{"series", "property", "message"}[c.Kind], c.Column)
	if c.Entity != "" {
		out += " e:" + c.Entity
	}
	if !c.Time.Empty() {
		out += " d:" + s(c.Time)
	}
	if c.Metric != "" {
		out += " m:" + c.Metric
	}
	if !c.Value.Empty() {
		out += " v:" + s(c.Value)
	}
	if c.Type != "" {
		out += " type:" + c.Type
	}
	if c.Text != "" {
		out += " text:" + c.Text
	}
	for _, k := range c.Keys {
		out += " k:" + k.Name + "=" + k.Value
	}
	for _, t := range c.Tags {
		out += " t:" + t.Name + "=" + t.Value
	}
	return out
}

// visited lists the cells that a chain of selections visits in a file of 4 rows with 12, 5, 0 (empty cells only) and 3 cells.
func visited(t *testing.T, selects string) string {
	p := compile(t, selects+".addMessage().messageText(row + ':' + col)")
	file := []cells{strings.Split(strings.Repeat("x,", 11)+"x", ","), strings.Split("x,x,x,x,", ","), {"", ""}, {"x", "x", "x"}}
	var all []string
	for _, c := range commands(p, file) {
		_, at, _ := strings.Cut(c, "text:")
		all = append(all, at)
	}
	return strings.Join(all, " ")
}

// The contract, section 8.1.
func TestSelections(t *testing.T) {
	for _, c := range []struct{ selects, want string }{
		{"select('#row=4')", "4:1 4:2 4:3"},
		{"select(\"#row=4\")", "4:1 4:2 4:3"},
		{"select('#row=2-4')", "2:1 2:2 2:3 2:4 2:5 4:1 4:2 4:3"},
		{"select('#row=2-*!2')", "2:1 2:2 2:3 2:4 2:5 4:1 4:2 4:3"},
		{"select('#row=1-*!3').select('#col=1')", "1:1 4:1"},
		{"select('#row=1').select('#col=10-*!3')", "1:10"},
		{"select('#row=1').select('#col=3-*!3')", "1:3 1:6 1:9 1:12"},
		{"select('#col=3-*!3').select('#row=2')", "2:3"},
		{"select('#row=9')", ""},
		{"select('#row=*')", ""},
		{"select('#row=4').select('#col=9')", ""},
		{"select('#row=4').select('#col=*')", "4:3"},
		{"select('#row=1').select('#col=*')", "1:12"},
		{"select('#row=4').select('#col=3-2')", ""},
		{"select('#row=4-2')", ""},
		{"select('#row=1-2').select('#col=2-4').select('#col=3-6')", "1:3 1:4 2:3 2:4"},
		{"select('#cell=2,3')", "2:3"},
		{"select('#cell=2,3-4,4')", "2:3 2:4 4:3"},
		{"select('#cell=1,2-5,*!1,2')", "1:2 1:4 1:6 1:8 1:10 1:12 2:2 2:4 4:2"},
		{"select('#cell=1,11-*,*')", "1:11 1:12"},
		{"var n = 2; select('#row=' + n + '-*').select('#col=' + (n + 1))", "2:3 4:3"},
	} {
		if got := visited(t, c.selects); got != c.want {
			t.Errorf("%s visits %q, want %q", c.selects, got, c.want)
		}
	}
}

func TestSelectionsThatAreNone(t *testing.T) {
	for selection, want := range map[string]string{
		"":                "#row=, #col= or #cell= is expected",
		"row=1":           "#row=, #col= or #cell= is expected",
		"#row=":           `"" is not a number from 1`,
		"#row=0":          `"0" is not a number from 1`,
		"#row=-1":         `"" is not a number from 1`,
		"#row=+1":         `"+1" is not a number from 1`,
		"#row=1-":         `"" is not a number from 1`,
		"#row=1-2!0":      `"0" is not a number from 1`,
		"#row=1-2!*":      `"*" is not a number from 1`,
		"#row=1!2":        "a step needs a range: 1-*!2",
		"#row=1,2":        `"1,2" is not a number from 1`,
		"#row=1-2-3":      `"2-3" is not a number from 1`,
		"#col=1000000000": `"1000000000" is not a number from 1`,
		"#cell=1":         "row,column is expected",
		"#cell=1,2-3":     "row,column is expected",
		"#cell=1,2!1,1":   "a step needs a range",
		"#cell=1,1-2,2!1": "a step for rows and one for columns",
		"#cell=a,1":       `"a" is not a number from 1`,
	} {
		_, err := Compile("\nselect('" + selection + "').addSeries()")
		if err == nil || !strings.HasPrefix(err.Error(), "line 2, column 8: selection ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", selection, err, want)
		}
	}
	// One that is computed is refused when it is used, and the file ends.
	got := commands(compile(t, "select('#row=' + 0).addSeries().metric('m')"), rows("1\n2"))
	if want := []string{`fault 1,1: schema line 1, column 8: selection "#row=0": "0" is not a number from 1 and not *`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The contract, section 9.
func TestFunctions(t *testing.T) {
	const file = `
time,pump,flow,,power
10:00,a,5,,7
     ,b, ,x,9
11:00,,6`
	for _, c := range []struct{ name, program, want string }{
		{"series of the active cell", "select('#cell=2,3-*,*').addSeries().entity(cell(row, 2)).timestamp(cell(row, 1)).metric(cell(1, col))", `
series@3 e:a d:"10:00" m:flow v:"5"
series@5 e:a d:"10:00" m:power v:"7"
series@4 e:b v:"x"
series@5 e:b m:power v:"9"
series@3 d:"11:00" m:flow v:"6"`},
		{"value() is over the active cell, nothing is no sample", `select('#row=2-*').select('#col=3').addSeries().metric('m').value(col + row)
			select('#row=2-*').select('#col=3').addSeries().metric('n').value(null)
			select('#row=2-*').select('#col=3').addSeries().metric('o').value(undefined)
			select('#row=2-*').select('#col=3').addSeries().metric('p').value('')`, "series@3 m:m v:5\nseries@3 m:m v:6\nseries@3 m:m v:7"},
		{"the time as a number", "select('#cell=2,3').addSeries().metric('m').timestamp(1620036000 * 1000)", `series@3 d:1.620036e+12 m:m v:"5"`},
		{"filters", "select('#row=2-*').select('#col=1-3').filter(col == 3).filter(cellText > 5).addSeries().metric('m')", `series@3 m:m v:"6"`},
		{"variables", "select('#cell=2,3').addMessage().messageText([row, col, value, cellText, columnCount, fileName].join('|') + '|' + rowText)",
			"message@3 text:2|3|5|5|5|a.csv|10:00,a,5,,7"},
		{"statements run row by row in their order", `select('#row=2-3').select('#col=5').addSeries().metric('m'); select('#row=2-3').select('#col=5').addSeries().metric('n')`,
			"series@5 m:m v:\"7\"\nseries@5 m:n v:\"7\"\nseries@5 m:m v:\"9\"\nseries@5 m:n v:\"9\""},
		{"two commands of a cell", `select('#cell=2,3').addSeries().entity('a').metric('m').addMessage().entity('b').messageText(value).tag('k', 1)`,
			"series@3 e:a m:m v:\"5\"\nmessage@3 e:b text:5 t:k=1"},
		{"the second command of an empty cell", `select('#cell=3,3').addSeries().metric('m').addMessage().messageText('empty')`, "message@3 text:empty"},
		{"property", `select('#cell=2,1').addProperty().type('t').entity('e').key('slot', 1).key('none', '').tag('a', null).tag('Flow', cell(row, 3))`,
			"property@1 e:e type:t k:slot=1 t:Flow=5"},
		{"text of several parts", `select('#row=2-*').select('#col=1').addMessage().appendText(cell(row, 1), ' ').appendText(cell(row, 2), ' ').forEach('#col=3-*').appendText(value, ', ')`, `
message@1 text:10:00 a, 5, 7
message@1 text:b, x, 9
message@1 text:11:00, 6`},
		{"forEach sees its cell, what stands before it the outer one", `select('#cell=2,1').addMessage().messageText(col + value).forEach('#col=2-3').tag(col + cell(1, col), value + cellText)`,
			"message@1 text:110:00 t:2pump=aa t:3flow=55"},
		{"forEach in forEach", `select('#cell=2,1').addMessage().messageText('').forEach('#col=2-3').forEach('#col=5').appendText(value, '+')`, "message@1 text:7+7"},
		{"forEach of nothing", `select('#cell=2,1').addMessage().messageText('x').forEach('#col=9-*').tag('a', 'b')`, "message@1 text:x"},
		{"commands in forEach", `select('#cell=2,1').addMessage().messageText('m').forEach('#col=3-5').addSeries().metric(cell(1, col))`,
			"message@1 text:m\nseries@3 m:flow v:\"5\"\nseries@5 m:power v:\"7\""},
		{"cells that are not there", `select('#cell=2,1').addMessage().messageText('[' + cell(3, 1) + cell(9, 9) + cell(0, 1) + cell(row, 99) + cell(row, 0) + cell(row - 5, 1) + ']')`,
			"message@1 text:[]"},
		{"notEmptyLeft", `select('#row=1-*').select('#col=1').addMessage().messageText(notEmptyLeft(row, 4) + '/' + notEmptyLeft(1, 99) + '/' + notEmptyLeft(row, 0))`, `
message@1 text:flow/power/
message@1 text:5/power/
message@1 text:x/power/
message@1 text:6/power/`},
		{"notEmptyUp", `select('#row=1-*').select('#col=1').addMessage().messageText(notEmptyUp(row, 1) + '/' + notEmptyUp(row, 4) + '/' + notEmptyUp(row - 1, 3) + '/' + notEmptyUp(1, 2))`, `
message@1 text:time///pump
message@1 text:10:00//flow/pump
message@1 text:10:00/x/5/pump
message@1 text:11:00/x/5/pump`},
		{"the row before", `select('#row=2-*').select('#col=1').addMessage().messageText(cell(row - 1, 2) + '>' + cell(row, 2))`, `
message@1 text:pump>a
message@1 text:a>b
message@1 text:b>`},
		{"variables of the program are set when they are used, once", `var n = cell(3, 2); var calls = 0
			function count() { calls++; return n + calls }
			select('#row=3-*').select('#col=1').addMessage().messageText(count())`, "message@1 text:b1\nmessage@1 text:b2"},
		{"a chain that first passes over rows without asking for a variable", `var head = cell(2, 2); select('#row=1-*').select('#col=1').filter(row > 3).addMessage().messageText(head)`, "message@1 text:a"},
		{"statements between chains", `var a = 1; select('#cell=2,1').addMessage().messageText(a); a = 5; select('#cell=2,1').addMessage().messageText(a)`,
			"message@1 text:1\nmessage@1 text:5"},
		{"chains broken at dots, comments", "# a comment\nselect('#cell=2,1') // one\n  .addMessage(). /* two\n */ messageText('x')\n# end\nselect('#cell=2,1').\naddMessage()\n.messageText('y')",
			"message@1 text:x\nmessage@1 text:y"},
		{"a fault ends its row only", `select('#row=2-*').select('#col=1').addMessage().messageText(cell(row, 2).split('').pop().length)`, `
message@1 text:1
message@1 text:1
fault 4,1: schema line 1, column 91: undefined has no member length`},
		{"a tag without a name", `select('#cell=2,1').addMessage().tag('', 'x')`, `fault 2,1: schema line 1, column 34: "x" has no name`},
		{"rows that are none", `select('#cell=2,1').addMessage().messageText(cell('x', 1))`, `fault 2,1: schema line 1, column 50: row "x" is not a whole number`},
		{"a fault of the statements before select ends the file", `var a = null.x; select('#row=2-*').addMessage().messageText(a)`, "fault 2,1: schema line 1, column 14: null has no member x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := commands(compile(t, c.program), rows(file))
			if got == nil {
				got = []string{""}
			}
			if diff := cmp.Diff(strings.Split(strings.Trim(c.want, "\n"), "\n"), got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", c.program, diff)
			}
		})
	}
}

// The contract, section 10. Expected values are those of ECMA-262.
func TestScriptLanguage(t *testing.T) {
	for _, c := range []struct{ expression, want string }{
		{`1 + 2 * 3 - 4 / 2`, "5"}, {`(1 + 2) * 3 % 4`, "1"}, {`7 % -3`, "1"}, {`-7 % 3`, "-1"}, {`1 / 0`, "Infinity"}, {`0 / 0`, "NaN"}, {`0.1 + 0.2`, "0.30000000000000004"},
		{`1e21`, "1e+21"}, {`1.5e-7`, "1.5e-7"}, {`0x1F`, "31"}, {`.5`, "0.5"}, {`5.`, "5"}, {`123456789012345680000`, "123456789012345680000"}, {`-0`, "0"},
		{`'a' + 1 + 2`, "a12"}, {`1 + 2 + 'a'`, "3a"}, {`'5' * '2'`, "10"}, {`'5' - 2`, "3"}, {`+'4' + 1`, "5"}, {`'a' * 1`, "NaN"}, {`true + 1`, "2"}, {`null + 1`, "1"}, {`undefined + 1`, "NaN"},
		{`'' + null + undefined + true`, "nullundefinedtrue"}, {`[1, [2, 3], null] + ''`, "1,2,3,"}, {`({}) + ''`, "[object Object]"},
		{`'10' > 9`, "true"}, {`'10' > '9'`, "false"}, {`'' >= 0`, "true"}, {`'x' > 0`, "false"}, {`'x' < 0`, "false"}, {`'b' > 'a'`, "true"}, {`2 >= 2 && 2 <= 2`, "true"},
		{`'2016' == 2016`, "true"}, {`'2016' != 2016`, "false"}, {`'2016' === 2016`, "false"}, {`'2016' !== 2016`, "true"}, {`null == undefined`, "true"}, {`null === undefined`, "false"},
		{`null == 0`, "false"}, {`'' == 0`, "true"}, {`'' == null`, "false"}, {`NaN == NaN`, "false"}, {`[1] == 1`, "true"}, {`true == '1'`, "true"}, {`[] == []`, "false"},
		{`1 && 0 || 'x'`, "x"}, {`'' || 'y'`, "y"}, {`0 && missing.x`, "0"}, {`!'' && !0 && !null && !NaN && !undefined`, "true"}, {`!!'0' && !![]`, "true"},
		{`1 ? 'a' : 'b'`, "a"}, {`0 ? 'a' : 0 ? 'b' : 'c'`, "c"}, {`5 & 3 | 8 ^ 1`, "9"}, {`1 << 33`, "2"}, {`-1 >>> 28`, "15"}, {`-9 >> 1`, "-5"}, {`~~'7.9'`, "7"}, {`2147483648 | 0`, "-2147483648"},
		{`typeof 1 + typeof '' + typeof null + typeof undefined + typeof {} + typeof isNaN`, "numberstringobjectundefinedobjectfunction"},
		{`'aBc'.toLowerCase() + 'aBc'.toUpperCase()`, "abcABC"}, {`'[' + '  a b\t'.trim() + ']'`, "[a b]"}, {`'abc'.length`, "3"}, {`'äöü€'.length`, "4"},
		{`'abcdef'.substring(2, 4)`, "cd"}, {`'abcdef'.substring(4, 2)`, "cd"}, {`'abcdef'.substring(2)`, "cdef"}, {`'abcdef'.substring(-3, 2)`, "ab"}, {`'äöü'.substring(1, 2)`, "ö"},
		{`'abcdef'.substr(1, 2)`, "bc"}, {`'abcdef'.substr(-2)`, "ef"}, {`'abcdef'.substr(-3, 2)`, "de"}, {`'abcdef'.substr(9)`, ""}, {`'abcdef'.slice(1, -1)`, "bcde"}, {`'abcdef'.slice(-2)`, "ef"}, {`'abc'.slice(2, 1)`, ""},
		{`'abcabc'.indexOf('c')`, "2"}, {`'abcabc'.indexOf('c', 3)`, "5"}, {`'abc'.indexOf('x')`, "-1"}, {`'äbc'.indexOf('c')`, "2"}, {`'abcabc'.lastIndexOf('b')`, "4"},
		{`'abc'.startsWith('ab') && 'abc'.endsWith('bc') && !'abc'.startsWith('b')`, "true"}, {`'abc'.charAt(1) + 'abc'[2] + 'abc'.charAt(9)`, "bc"}, {`'a'.concat('b', 3)`, "ab3"},
		{`'a-b-c'.replace('-', '+')`, "a+b-c"}, {`'a-b-c'.replace(/-/g, '+')`, "a+b+c"}, {`'a-b'.replace(/(\w)-(\w)/, '$2-$1$$')`, "b-a$"}, {`'abc'.replace(/B/i, '[$&]')`, "a[b]c"},
		{`'a1b2'.replace(/\d/g, function (d) { return d * 2; })`, "a2b4"}, {`'a.b'.split('.').length`, "2"}, {`'a1b22c'.split(/\d+/).join()`, "a,b,c"}, {`'abc'.split('').join('-')`, "a-b-c"},
		{`'a b c'.split(' ', 2)`, "a,b"}, {`'x=12;y=3'.match(/(\w)=(\d+)/)[2]`, "12"}, {`'x1y2'.match(/\d/g).join('+')`, "1+2"}, {`'x'.match(/\d/) === null`, "true"}, {`/^\d{2}:/.test('10:30')`, "true"},
		{`/[/\]]/.test('a]')`, "true"}, {`/\u00e9/.test('café')`, "true"}, {`8 / 2 / 2`, "2"}, {`'ab'.search(/b/)`, "1"},
		{`[1, 2, 3].length`, "3"}, {`[1, 2, 3].pop()`, "3"}, {`[3, 1].join('|')`, "3|1"}, {`['a', 'b'].indexOf('b')`, "1"}, {`[1].indexOf('1')`, "-1"}, {`['a', 'b'][1]`, "b"}, {`['a'][5]`, "undefined"},
		{`({a: 1, 'b c': {d: 2}})['b c'].d`, "2"}, {`({a: 1}).b`, "undefined"}, {`{ a: [1, 2] }.a[1]`, "2"},
		{`parseInt('12px')`, "12"}, {`parseInt('-7.9')`, "-7"}, {`parseInt('x')`, "NaN"}, {`parseInt('ff', 16) + parseInt('0x10')`, "271"}, {`parseFloat('3.5e2kg')`, "350"}, {`parseFloat('.5.')`, "0.5"}, {`parseFloat('')`, "NaN"},
		{`Number('')`, "0"}, {`Number(' 12 ')`, "12"}, {`Number('12px')`, "NaN"}, {`Number('1_0')`, "NaN"}, {`Number(true)`, "1"}, {`String(12) + 1`, "121"}, {`isNaN('x') && !isNaN('') && !isNaN('7')`, "true"},
		{`Math.round(2.5) + Math.floor(-1.5) + Math.ceil(1.2) + Math.abs(-3)`, "6"}, {`Math.max(1, '5', 3) - Math.min(2, 8)`, "3"}, {`Math.pow(2, 10)`, "1024"}, {`Math.sqrt(16)`, "4"}, {`Math.PI > 3.14`, "true"},
		{`(12.345).toFixed(1)`, "12.3"}, {`(255).toString(16)`, "ff"}, {`'\x41\u0042\n'.length`, "3"}, {`"it's" + '\'"'`, `it's'"`},
		{`twice(4)`, "8"}, {`fib(10)`, "55"}, {`sum(1, 2)`, "NaN"}, {`sum(1, 2, 3, 4)`, "6"}, {`early(-1) + early(1)`, "negativepositive"}, {`loops()`, "0,1,2|10|5|3"}, {`names({x: 1, y: 2})`, "xy"},
		{`counter() + counter()`, "3"}, {`hoisted()`, "inner undefined"}, {`adder(2)(3)`, "5"}, {`late`, "late"}, {`list[1] + object.key.toUpperCase()`, "twoVALUE"}, {`shadow(7)`, "7"}, {`grow()`, "a,,c"},
		{`(implied = 3, implied + 1)`, "4"}, {`step()`, "1 3 3 2"}, {`compound()`, "x12"}, {`scope()`, "3"},
	} {
		p := compile(t, `
			function twice(n) { return n * 2 }
			function fib(n) { if (n < 2) { return n; } else return fib(n - 1) + fib(n - 2); }
			var sum = function (a, b, c) { return a + b + c; };
			function early(n) { if (n < 0) return 'negative'; return 'positive' }
			function loops() {
				var out = [], total = 0, w = 0, d = 0;
				for (var i = 0; i < 9; i++) { if (i == 3) break; out.push(i); }
				for (var j = 0; j < 5; ++j) total += j
				while (true) { w++; if (w < 5) continue; break; }
				do { d++ } while (d < 3);
				return out + '|' + total + '|' + w + '|' + d;
			}
			function names(o) { var s = ''; for (var name in o) s += name; return s }
			var n = 0; function counter() { n += 1; return n }
			function hoisted() { var text = inner(); return text; function inner() { return 'inner ' + later; } var later = 1; }
			function adder(a) { return function (b) { return a + b; }; }
			var list = ['one', 'two',], object = {key: 'value', 'n': 1,};
			function shadow(row) { var value = row; return value; }
			function grow() { var a = []; a[0] = 'a'; a[2] = 'c'; return a }
			function step() { var i = 1; return i++ + ' ' + ++i + ' ' + i-- + ' ' + i; }
			function compound() { var s = 'x', n = 4; n -= 1; n *= 8; n /= 2; return s += n }
			function scope() { var f = []; for (var i = 0; i < 3; i++) f.push(function () { return i; }); return f[0]() }
			var missing, late = 'late', implied;
			select('#row=1').addMessage().messageText(`+c.expression+`)`)
		var got string
		_, f := p.Start("").Row(cells{"x"}, func(c *Command) bool { got = c.Text; return true })
		if f != nil {
			got = f.Reason
		}
		if c.want == "undefined" {
			c.want = "" // for functions of chains it is nothing
		}
		if got != c.want {
			t.Errorf("%s = %q, want %q", c.expression, got, c.want)
		}
	}
}

func TestProgramsThatAreNone(t *testing.T) {
	for _, c := range []struct{ program, want string }{
		{``, `line 1, column 1: the program selects no cells: select('#row=2-*') is expected`},
		{`var a = 1`, `line 1, column 10: the program selects no cells: select('#row=2-*') is expected`},
		{`selct('#row=1').addSeries()`, `line 1, column 1: unknown name selct, did you mean "select"?`},
		{"select('#row=1')\n .addSerie()", `line 2, column 3: unknown function addSerie, did you mean "addSeries"?`},
		{`select('#row=1').addSeries().metrik('m')`, `line 1, column 30: unknown function metrik, did you mean "metric"?`},
		{`select('#row=1').addSeries().metric(cel(1, col))`, `line 1, column 37: unknown name cel, did you mean "cell"?`},
		{`select('#row=1').addSeries().metric(cell(1, rowtext))`, `line 1, column 45: unknown name rowtext, did you mean "rowText"?`},
		{`select('#row=1').addSeries().metric(value.toLowercase())`, `line 1, column 43: unknown function toLowercase, did you mean "toLowerCase"?`},
		{`select('#row=1').addSeries().metric(value.toLower())`, `line 1, column 43: unknown function toLower`},
		{`select('#row=1').addSeries().metric(value.indexof('x'))`, `line 1, column 43: unknown function indexof, did you mean "indexOf"?`},
		{`select('#row=1').addSeries().metric(cell(1))`, `line 1, column 41: cell takes 2 arguments, not 1`},
		{`select('#row=1').addSeries().tag('a')`, `line 1, column 30: tag takes 2 arguments, not 1`},
		{`select('#row=1')`, `line 1, column 1: the chain makes no command: addSeries, addProperty or addMessage is expected behind select`},
		{`select('#row=1').metric('m').addSeries()`, `line 1, column 18: metric stands behind addSeries, addProperty or addMessage`},
		{`select('#row=1').addSeries().filter(true)`, `line 1, column 30: filter stands before addSeries`},
		{`select('#row=1').addSeries().select('#col=1')`, `line 1, column 30: select stands before addSeries`},
		{`select('#row=1').addSeries().messageText('x')`, `line 1, column 30: messageText belongs to addMessage, not to addSeries`},
		{`select('#row=1').addProperty().tag('a', 'b')`, `line 1, column 18: addProperty needs type()`},
		{`select('#row=1').addSeries().forEach('#row=1').tag('a', 'b')`, `line 1, column 38: forEach takes columns of the row: '#col=2-*'`},
		{`select(1).addSeries()`, `line 1, column 8: a selection such as '#row=2-*' is expected`},
		{`if (true) select('#row=1').addSeries()`, `line 1, column 11: select begins a statement of the program; it cannot stand inside of another one`},
		{`var a = select('#row=1')`, `line 1, column 9: select begins a statement of the program; it cannot stand inside of another one`},
		{`select('#row=1').addSeries().`, `line 1, column 30: the name of a function is expected behind the dot, found the end of the program`},
		{`select('#row=1'.addSeries()`, `line 1, column 28: , or ) is expected, found the end of the program`},
		{`select('#row=1).addSeries()`, `line 1, column 8: the text has no end: ' is expected`},
		{"select('#row=1').addSeries() /* x", `line 1, column 30: the comment has no end: */ is expected`},
		{`var a = /x`, `line 1, column 9: the regular expression has no end: / is expected in its line`},
		{`var a = /(?=x)/`, "line 1, column 9: regular expression /(?=x)/: invalid or unsupported Perl syntax: `(?=`"},
		{`var a = /x/y`, `line 1, column 9: regular expression /x/y: flag 'y' is none of g, i, m, s`},
		{`var a = /(x{100}y{100}){9}/`, `line 1, column 9: regular expression /(x{100}y{100}){9}/: it compiles to more than 1000 steps`},
		{`let a = 1`, `line 1, column 1: "let" is not a part of the script language: use var`},
		{`var a = new Date()`, `line 1, column 9: "new" is not a part of the script language`},
		{`var f = x => x`, `line 1, column 11: "=>" is not a part of the script language: use function`},
		{"var a = `x`", "line 1, column 9: texts stand in ' or \", not in `"},
		{`var row = 1`, `line 1, column 5: row has a meaning in programs: choose another name`},
		{`function cell() {}`, `line 1, column 10: cell has a meaning in programs: choose another name`},
		{`value = 1`, `line 1, column 1: value cannot be set: it has a meaning in programs`},
		{`var a = 1 2`, `line 1, column 11: ; or an operator is expected, found the number 2`},
		{`var a = (1`, `line 1, column 11: ) is expected behind an expression, found the end of the program`},
		{`var a = [1 2]`, `line 1, column 12: , or ] is expected, found the number 2`},
		{`var a = {1`, `line 1, column 11: : is expected behind the name of a member, found the end of the program`},
		{`var a = 12x`, `line 1, column 9: 12x is not a number`},
		{`var = 1`, `line 1, column 5: the name of a variable is expected, found "="`},
		{`1 = 2`, `line 1, column 3: a variable, a member or an element is expected on the left, nothing else can be set`},
		{`function f(a, a) {}`, `line 1, column 15: the parameter a is there twice`},
		{`return 1`, `line 1, column 1: return stands outside of a function`},
		{`break`, `line 1, column 1: break stands outside of a loop`},
		{`var a = @`, `line 1, column 9: unexpected character '@'`},
		{`var a = 'é' + ü`, `line 1, column 15: unknown name ü`},
		{`function f() {`, `line 1, column 15: } is expected behind statements, found the end of the program`},
		{`var a = ` + strings.Repeat("(", 500), `line 1, column 208: expressions and statements are nested, or operators follow each other, deeper than 200`},
		{`var a = 1` + strings.Repeat("+1", 500), `expressions and statements are nested, or operators follow each other, deeper than 200`},
		{strings.Repeat("{", 500), `deeper than 200`},
		{strings.Repeat(" ", maxProgram+1), `line 1, column 1: the program has 65537 bytes; it may have 65536`},
	} {
		program := c.program
		if strings.Contains(c.want, "unknown name ü") || strings.Contains(c.want, "cannot be set") {
			program += "\nselect('#row=1').addSeries()"
		}
		p, err := Compile(program)
		switch {
		case err == nil:
			t.Errorf("%q compiles to %v, want %s", c.program, p, c.want)
		case !strings.Contains(err.Error(), c.want):
			t.Errorf("%q: %v, want %s", c.program, err, c.want)
		}
	}
}

// A program that takes too much is stopped with a message that names the bound; the file ends there.
func TestBounds(t *testing.T) {
	for _, c := range []struct{ program, want string }{
		{`while (true) {}`, "schema line 1, column 16: the program takes more than 500000 steps for one cell"},
		{`for (;;) x = 1`, "takes more than 500000 steps"},
		{`f(); function f() { return f() }`, "more than 64 functions call each other"},
		{`var s = 'xxxxxxxx'; while (true) s += s`, "grows longer than 1048576 bytes"},
		{`var a = []; while (true) a.push('some text')`, "an array has more than 65536 elements"},
		{`var a = []; a[1e6] = 1`, "an array has more than 65536 elements"},
		{`var a = []; while (true) { var b = []; b[60000] = 1; a.push(b) }`, "makes more than 8388608 bytes of texts and arrays for one cell"},
		{`var a = []; a[0] = a; '' + a`, "arrays are nested deeper than 64"},
		{`'x'.replace('x', function g(s) { return 'x'.replace('x', f); function f() { return g2() } }); function g2() { return 'x'.replace('x', g2) }`, "call each other"},
		{`var s = 'a'; while (s.length < 500000) s += s; while (true) s.replace(/(a|b)*c/, '')`, "takes more than 500000 steps"},
	} {
		got := commands(compile(t, "var x = 0; "+c.program+"; select('#row=1-*').addMessage().messageText(x)"), rows("1\n2"))
		if len(got) != 1 || !strings.Contains(got[0], strings.TrimPrefix(c.want, "schema line 1, column 16: ")) {
			t.Errorf("%s: %q, want %s", c.program, got, c.want)
		}
	}
}

// What variables hold over rows is bounded too, and what is forgotten is not counted.
func TestHeldMemory(t *testing.T) {
	file := slices.Repeat([]cells{{strings.Repeat("x", 10_000)}}, 3000)
	keep := commands(compile(t, `var seen = []; select('#row=1-*').addMessage().messageText('' + seen.push(cell(row, 1) + row))`), file)
	if last := keep[len(keep)-1]; len(keep) > 1000 || !strings.HasSuffix(last, "the variables of the program hold more than 4194304 bytes") {
		t.Errorf("%d commands, the last is %s", len(keep), clip(last))
	}
	forget := commands(compile(t, `var seen = []; select('#row=1-*').addMessage().messageText('' + seen.push(cell(row, 1) + row) + seen.pop().length)`), file)
	if len(forget) != len(file) {
		t.Errorf("%d commands, the last is %s", len(forget), clip(forget[len(forget)-1]))
	}
}

// Of earlier rows those are kept that the program can ask for, up to a bound.
func TestKeptRows(t *testing.T) {
	long := make([]cells, 5000)
	for i := range long {
		long[i] = cells{strconv.Itoa(i + 1), strings.Repeat("x", 2000)}
	}
	for _, c := range []struct {
		program string
		rows    int // kept in the end
		want    string
	}{
		{`select('#row=5000').select('#col=1').addMessage().messageText(cell(1, 1) + '-' + cell(row, 1))`, 1, "message@1 text:1-5000"},
		{`select('#row=5000').select('#col=1').addMessage().messageText(cell(3, 1) + cell(row - 2, 1))`, 5, "message@1 text:34998"},
		{`select('#row=5000').select('#col=1').addMessage().messageText(cell(row, 1) + cell(row + 1, 1))`, 0, "message@1 text:5000"},
		{`select('#row=5000').select('#col=1').addMessage().messageText(notEmptyUp(row, 1))`, 0, "message@1 text:5000"},
		{`function first(r) { return cell(r, 1) } select('#row=5000').select('#col=1').addMessage().messageText(first(4999) + first(2))`, -1, "message@1 text:49992"},
		{`function first(r) { return cell(r, 1) } select('#row=5000').select('#col=1').addMessage().messageText(first(2500))`, -1,
			"fault 5000,1: schema line 1, column 32: row 2500 is not kept: of earlier rows 4194304 bytes are, half of them from the beginning of the file, half of them the latest"},
	} {
		p := compile(t, c.program)
		got := commands(p, long)
		if !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s: %q, want %q", c.program, got, c.want)
		}
		r := p.Start("")
		for _, row := range long {
			r.Row(row, func(*Command) bool { return true })
		}
		kept := len(r.history.head) + len(r.history.tail)
		if c.rows >= 0 && kept != c.rows || r.history.headSize+r.history.tailSize > maxKept {
			t.Errorf("%s: %d rows of %d bytes are kept, want %d", c.program, kept, r.history.headSize+r.history.tailSize, c.rows)
		}
	}
}

func FuzzCompile(f *testing.F) {
	for _, program := range []string{
		"select('#row=2-*').select('#col=4-*').addSeries().\nentity(cell(row, 2)).tag('make', cell(row, 3));",
		"# c\nvar n = ['a', \"b\"], o = {k: 1}; function f(a) { for (var i = 0; i < 3; i++) { if (a) return a[i] } } select('#cell=1,2-*,*!1,2').filter(f(n) > 1).addMessage()",
		"var r = /[/a]+\\d/gi, x = 1 / 2; do { x += r.test('a') ? 1 : ~x } while (x < 5)\nselect('#row=1').addProperty().type('t').forEach('#col=3').tag(1, 2)",
	} {
		f.Add(program)
	}
	f.Fuzz(func(t *testing.T, program string) {
		_, err := Compile(program)
		if e, ok := err.(*Error); err != nil && (!ok || e.Line < 1 || e.Column < 1 || e.Reason == "") {
			t.Errorf("%#v", err)
		}
	})
}

func FuzzRun(f *testing.F) {
	f.Add("select('#row=2-*').select('#col=2-*').addSeries().entity(cell(row, 1)).metric(cell(1, col))", "a,b\n1,2\n,3")
	f.Add("var n = [1, 2]; function f(a) { for (var i in n) a += n[i].toFixed(2); return a } select('#row=1-*').addMessage().messageText(f(value)).forEach('#col=' + col + '-*').tag(col, rowText)", "a,b")
	f.Add("select('#row=1-*').select('#col=1').addProperty().type(notEmptyUp(row - 1, col) + notEmptyLeft(row, 3)).key('k', value.replace(/(.)/g, '$1$&')).tag('t', value.split('').slice(-2).join())", "é,b\n,\n,c")
	f.Add("var o = {a: [1]}; while (o.a.length < 9) o.a.push(o.a.length, Math.max(1, o.a.pop())); select('#row=1').addSeries().value(parseInt(o.a[3]) << 2).metric(fileName + o['a'])", "1")
	f.Fuzz(func(t *testing.T, program, file string) {
		p, err := Compile(program)
		if err != nil || len(file) > 1000 {
			return
		}
		r := p.Start("f")
		for i, row := range rows(file) {
			if i > 3 {
				break
			}
			if _, fault := r.Row(row, func(c *Command) bool { return len(c.Tags) < 100 }); fault != nil && (fault.Reason == "" || fault.Final) {
				break
			}
		}
		if held := r.history.headSize + r.history.tailSize; held > maxKept {
			t.Errorf("%d bytes of rows are kept", held)
		}
	})
}
