package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/tidemark-db/tidemark/core/sql/expr"
)

const (
	prompt     = "tidemark=> "
	promptMore = "       -> "
)

// shell reads statements from the terminal until its end.
func (c *sqlClient) shell() error {
	fd := int(os.Stdin.Fd())
	cooked, err := term.MakeRaw(fd)
	if err != nil {
		return err
	}
	defer term.Restore(fd, cooked)
	t := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{os.Stdin, os.Stdout}, prompt)
	past := openHistory()
	t.History = past
	t.AutoCompleteCallback = newCompleter(c).key
	fmt.Fprintf(t, "tidemark %s at %s: statements end with a semicolon, \\? helps, Ctrl-D leaves.\n", version, c.URL)
	var s statements
	for {
		if width, height, err := term.GetSize(fd); err == nil {
			t.SetSize(width, height)
		}
		line, err := t.ReadLine()
		if err == io.EOF {
			return past.save()
		}
		if err != nil && !errors.Is(err, term.ErrPasteIndicator) {
			return errors.Join(err, past.save())
		}
		if command := strings.TrimSpace(line); s.pending.Len() == 0 && strings.HasPrefix(command, `\`) {
			if !c.command(t, command) {
				return past.save()
			}
			continue
		}
		for _, text := range s.add(line + "\n") {
			c.runOn(t, fd, cooked, text)
		}
		t.SetPrompt(prompt)
		if strings.TrimSpace(s.pending.String()) == "" {
			s.pending.Reset()
		} else {
			t.SetPrompt(promptMore)
		}
	}
}

// runOn runs a statement with the terminal as other programs have it, so that Ctrl-C is a signal.
func (c *sqlClient) runOn(t *term.Terminal, fd int, cooked *term.State, text string) {
	term.Restore(fd, cooked)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := c.run(ctx, text)
	stop()
	if _, fault := term.MakeRaw(fd); fault != nil {
		err = errors.Join(err, fault)
	}
	if err != nil {
		fmt.Fprintf(t, "error: %v\n", err)
	}
}

const shellHelp = `\d [NAME]           metrics, or the columns of one
\f table|csv|json   how results are printed
\timing             tell how long statements take, or stop that
\q                  leave
`

// command runs a command of the shell; false ends it.
func (c *sqlClient) command(t io.Writer, line string) bool {
	word, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch strings.TrimSuffix(word, ";") {
	case `\q`, `\quit`:
		return false
	case `\?`, `\h`, `\help`:
		io.WriteString(t, shellHelp)
	case `\timing`:
		c.timing = !c.timing
		fmt.Fprintf(t, "timing is %s\n", map[bool]string{true: "on", false: "off"}[c.timing])
	case `\f`, `\format`:
		if !slices.Contains([]string{"table", "csv", "json"}, rest) {
			fmt.Fprintf(t, "error: table, csv or json is expected, not %q\n", rest)
			break
		}
		c.format = rest
	case `\d`:
		c.describe(t, strings.TrimSuffix(rest, ";"))
	default:
		fmt.Fprintf(t, "error: unknown command %s: \\? lists those that there are\n", word)
	}
	return true
}

// describe lists tables, or the columns of one.
func (c *sqlClient) describe(t io.Writer, name string) {
	if name == "" {
		names, err := c.metrics()
		if err != nil {
			fmt.Fprintf(t, "error: %v\n", err)
			return
		}
		for _, name := range names {
			fmt.Fprintln(t, name)
		}
		return
	}
	columns, err := c.columns(name)
	if err != nil {
		fmt.Fprintf(t, "error: %v\n", err)
		return
	}
	for _, column := range columns {
		fmt.Fprintf(t, "%-30s %s\n", column.Titles, column.Datatype)
	}
}

type sqlColumn struct{ Titles, Datatype string }

// columns are those of SELECT *, tags.* of a table.
func (c *sqlClient) columns(table string) ([]sqlColumn, error) {
	quoted := `"` + strings.ReplaceAll(strings.Trim(table, `"`), `"`, `""`) + `"`
	query := "SELECT *, tags.* FROM " + quoted
	if strings.EqualFold(table, "atsd_series") {
		query = "SELECT * FROM atsd_series"
	}
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	answer, err := c.post(ctx, "/api/sql/meta", url.Values{"q": {query}})
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, sqlFault(body, answer.Status)
	}
	var m struct{ TableSchema struct{ Columns []sqlColumn } }
	return m.TableSchema.Columns, json.Unmarshal(body, &m)
}

// metrics are the names of the tables that there are. More than a screen or completion can use are left out.
func (c *sqlClient) metrics() ([]string, error) {
	var list []struct{ Name string }
	if err := c.call(http.MethodGet, "/api/v1/metrics?limit=10000", nil, &list); err != nil {
		return nil, err
	}
	names := make([]string, len(list))
	for i, m := range list {
		names[i] = m.Name
	}
	return names, nil
}

// completer completes words at the press of Tab. What the server knows is asked for once, when it is first needed.
type completer struct {
	client *sqlClient
	words  []string
	cycle  struct { // of the word at hand, when there are several
		line  string
		pos   int
		start int
		words []string
		next  int
	}
}

// sqlWords are the keywords that are worth completing.
var sqlWords = strings.Fields(`SELECT DISTINCT FROM WHERE AND OR NOT IN LIKE REGEX BETWEEN IS NULL GROUP BY HAVING ORDER ASC DESC LIMIT OFFSET WITH INTERPOLATE ROW_NUMBER LAST_TIME
TIMEZONE WORKDAY_CALENDAR JOIN USING ENTITY FULL OUTER ON CASE WHEN THEN ELSE END CAST AS PERIOD INSERT INTO VALUES UPDATE SET DELETE EXPLAIN LINEAR PREVIOUS NEXT EXTEND
MINUTE HOUR DAY WEEK MONTH QUARTER YEAR now current_day previous_day current_hour current_month datetime value text entity.label entity.tags metric.name tags.
atsd_series atsd_entity atsd_metric atsd_message atsd_property atsd_alert_history`)

func newCompleter(c *sqlClient) *completer { return &completer{client: c} }

// key is the callback of the terminal.
func (c *completer) key(line string, pos int, key rune) (string, int, bool) {
	if key != '\t' {
		return "", 0, false
	}
	if cycle := &c.cycle; len(cycle.words) > 1 && cycle.line == line && cycle.pos == pos {
		return c.step(line, pos)
	}
	start := strings.LastIndexAny(line[:pos], " \t\n,()=<>+-*/") + 1
	word := line[start:pos]
	if word == "" {
		return line, pos, true
	}
	found := c.candidates(word)
	switch len(found) {
	case 0:
		return line, pos, true
	case 1:
		text := found[0] + " "
		if strings.HasSuffix(found[0], ".") || strings.HasSuffix(found[0], "(") {
			text = found[0]
		}
		return line[:start] + text + line[pos:], start + len(text), true
	}
	if common := commonPrefix(found); len(common) > len(word) {
		return line[:start] + common + line[pos:], start + len(common), true
	}
	c.cycle.start, c.cycle.words, c.cycle.next = start, found, 0
	return c.step(line, pos)
}

// step puts the next of several words in place.
func (c *completer) step(line string, pos int) (string, int, bool) {
	cycle := &c.cycle
	word := cycle.words[cycle.next%len(cycle.words)]
	cycle.next++
	cycle.line, cycle.pos = line[:cycle.start]+word+line[pos:], cycle.start+len(word)
	return cycle.line, cycle.pos, true
}

// candidates are the words that begin with prefix, ignoring case. A name that needs quotes is found with and without them, and comes with them.
func (c *completer) candidates(prefix string) []string {
	if c.words == nil {
		c.words = slices.Clone(sqlWords)
		for _, name := range expr.Functions() {
			c.words = append(c.words, name+"(")
		}
		names, err := c.client.metrics()
		if err == nil { // without the server there are still the keywords
			for _, name := range names {
				if !plainName.MatchString(name) {
					name = `"` + name + `"`
				}
				c.words = append(c.words, name)
			}
		}
	}
	bare := strings.TrimPrefix(prefix, `"`)
	var found []string
	for _, w := range c.words {
		name := strings.TrimPrefix(w, `"`)
		if len(name) < len(bare) || !strings.EqualFold(name[:len(bare)], bare) {
			continue
		}
		if bare != prefix && name == w {
			w = `"` + name + `"`
		}
		found = append(found, w)
	}
	slices.SortStableFunc(found, func(a, b string) int { return cmp.Compare(strings.ToLower(a), strings.ToLower(b)) })
	return slices.Compact(found)
}

// plainName is a metric that stands in a statement without quotes.
var plainName = regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$`)

// commonPrefix ignores case and returns it as the first word has it.
func commonPrefix(words []string) string {
	common := words[0]
	for _, w := range words[1:] {
		n := 0
		for n < min(len(w), len(common)) && strings.EqualFold(w[n:n+1], common[n:n+1]) {
			n++
		}
		common = common[:n]
	}
	return common
}

// history keeps the lines that were typed, over sessions, in a file of the user alone.
type history struct {
	path  string // "" = nowhere
	lines []string
}

// remembered is how many lines the history has.
const remembered = 1000

func openHistory() *history {
	dir, err := os.UserConfigDir()
	if err != nil {
		return &history{}
	}
	h := &history{path: filepath.Join(dir, "tidemark", "sql_history")}
	f, err := os.Open(h.path)
	if err != nil {
		return h // there is none yet
	}
	defer f.Close()
	for scanner := bufio.NewScanner(f); scanner.Scan(); {
		h.Add(scanner.Text())
	}
	return h
}

// Add, Len and At are what the terminal asks for: the newest entry is at 0.
func (h *history) Add(line string) {
	if strings.TrimSpace(line) == "" || len(h.lines) > 0 && h.lines[len(h.lines)-1] == line {
		return
	}
	h.lines = append(h.lines, line)
	if extra := len(h.lines) - remembered; extra > 0 {
		h.lines = slices.Delete(h.lines, 0, extra)
	}
}

func (h *history) Len() int { return len(h.lines) }

func (h *history) At(i int) string { return h.lines[len(h.lines)-1-i] }

// save writes the history. Where there is no place for it, it is forgotten.
func (h *history) save() error {
	if h.path == "" || len(h.lines) == 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(h.path), 0o700); err != nil {
		return nil
	}
	return os.WriteFile(h.path, []byte(strings.Join(h.lines, "\n")+"\n"), 0o600)
}
