package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"
)

type sqlCmd struct {
	remote `embed:""`
	Format string   `help:"table, csv or json; default: table on a terminal, otherwise csv." enum:"auto,table,csv,json" default:"auto" short:"f"`
	Limit  int64    `help:"Rows of a result; 0 = all." default:"0"`
	Timing bool     `help:"Tell how long each statement takes."`
	Store  bool     `help:"Store the rows of queries as series instead of printing them: columns datetime or time, entity, tags.NAME, metric.FIELD, entity.FIELD; each number is a metric of its label."`
	Newer  bool     `help:"With --store: only samples later than the last one of their series."`
	Try    bool     `help:"With --store: store nothing, print the commands of the first ten rows."`
	Query  []string `arg:"" optional:"" help:"Statements; without any they are read from standard input, or typed on a terminal."`
}

// Help describes the shell.
func (*sqlCmd) Help() string {
	return `On a terminal statements may span lines and end with a semicolon. Tab completes keywords, functions, tables, columns and tags; the arrow keys bring back
earlier statements; Ctrl-C stops a statement that runs. Commands of the shell begin with a backslash: \? lists them.

The exit code is 0 when all statements worked, 1 when one failed (what follows it is not run), 2 when the command line is wrong.`
}

func (c *sqlCmd) Run() error {
	c.Endless = true
	if (c.Newer || c.Try) && !c.Store {
		return usageError{errors.New("--newer and --try need --store")}
	}
	client := &sqlClient{remote: &c.remote, format: c.Format, limit: c.Limit, timing: c.Timing, out: os.Stdout, notes: os.Stderr}
	if client.format == "auto" {
		client.format = "csv"
		if term.IsTerminal(int(os.Stdout.Fd())) {
			client.format = "table"
		}
	}
	if c.Store {
		client.store = url.Values{"checkLastTime": {strconv.FormatBool(c.Newer)}, "test": {strconv.FormatBool(c.Try)}}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	switch {
	case len(c.Query) > 0:
		return client.runAll(ctx, strings.NewReader(strings.Join(c.Query, ";\n")))
	case term.IsTerminal(int(os.Stdin.Fd())):
		stop()
		return client.shell()
	}
	return client.runAll(ctx, os.Stdin)
}

// sqlClient sends statements to a server and prints what comes back.
type sqlClient struct {
	*remote
	format string // table, csv or json
	limit  int64
	timing bool
	store  url.Values // how rows are stored; nil = they are printed
	out    io.Writer
	notes  io.Writer // times and warnings
}

// runAll runs the statements of a text one after another, up to the first that fails.
func (c *sqlClient) runAll(ctx context.Context, in io.Reader) error {
	lines := bufio.NewReader(in)
	var s statements
	for {
		line, err := lines.ReadString('\n')
		for _, text := range s.add(line) {
			if err := c.run(ctx, text); err != nil {
				return err
			}
		}
		if err == io.EOF {
			if text := strings.TrimSpace(s.pending.String()); text != "" {
				return c.run(ctx, text)
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// statements cuts a text at the semicolons that are not part of a literal, a quoted name or a comment.
type statements struct {
	pending strings.Builder
	quote   byte // ' or " inside of one, '-' in a comment to the end of the line
	depth   int  // of comments
	last    byte
}

// add takes more text and returns the statements that it ends.
func (s *statements) add(text string) (complete []string) {
	for i := range len(text) {
		b := text[i]
		pair := [2]byte{s.last, b}
		s.last = b
		switch {
		case s.depth > 0 || s.quote == 0 && pair == [2]byte{'/', '*'}:
			if pair == [2]byte{'/', '*'} {
				s.depth, s.last = s.depth+1, 0
			} else if pair == [2]byte{'*', '/'} {
				s.depth, s.last = s.depth-1, 0
			}
		case s.quote == '-':
			if b == '\n' {
				s.quote = 0
			}
		case s.quote != 0:
			if b == s.quote {
				s.quote = 0
			}
		case b == '\'' || b == '"':
			s.quote = b
		case pair == [2]byte{'-', '-'}:
			s.quote = '-'
		case b == ';':
			if text := strings.TrimSpace(s.pending.String()); text != "" {
				complete = append(complete, text)
			}
			s.pending.Reset()
			continue
		}
		s.pending.WriteByte(b)
	}
	return complete
}

// run sends one statement and prints its result. When ctx ends the statement is stopped on the server.
func (c *sqlClient) run(ctx context.Context, text string) error {
	begin := time.Now()
	rows, err := c.print(ctx, text)
	if c.timing && err == nil {
		counted := ""
		if rows >= 0 {
			counted = fmt.Sprintf("%d rows, ", rows)
		}
		fmt.Fprintf(c.notes, "%s%.3f ms\n", counted, float64(time.Since(begin).Microseconds())/1000)
	}
	return err
}

// print returns how many rows were printed; -1 when they were not looked at.
func (c *sqlClient) print(ctx context.Context, text string) (rows int, err error) {
	id := newQueryID()
	form := url.Values{"q": {text}, "queryId": {id}, "metadataFormat": {"NONE"}, "outputFormat": {"csv"}, "limit": {strconv.FormatInt(c.limit, 10)}}
	if c.format != "csv" {
		form.Set("outputFormat", "json")
	}
	path := "/api/sql"
	if c.store != nil {
		path += "/store"
		maps.Copy(form, c.store)
	}
	answer, err := c.post(ctx, path, form)
	if err != nil {
		if ctx.Err() != nil {
			return -1, errors.New("stopped")
		}
		return -1, err
	}
	defer answer.Body.Close()
	unhook := context.AfterFunc(ctx, func() { c.cancel(id) })
	defer unhook()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
		err := sqlFault(text, answer.Status)
		if hint := answer.Header.Get("Tidemark-Hint"); hint != "" {
			err = fmt.Errorf("%w: %s", err, hint)
		}
		return -1, err
	}
	switch {
	case c.store != nil:
		return -1, c.printStored(answer.Body)
	case c.format == "csv":
		return -1, c.copyCSV(answer.Body)
	case c.format == "json":
		return -1, c.copyJSON(answer.Body)
	}
	return printTable(c.out, answer.Body)
}

// printStored says what was stored, and prints the commands of a trial.
func (c *sqlClient) printStored(body io.Reader) error {
	var done struct {
		Rows, Samples, Settings, Skipped int64
		Commands                         []string
	}
	if err := json.NewDecoder(body).Decode(&done); err != nil {
		return fmt.Errorf("the answer of the server: %w", err)
	}
	for _, command := range done.Commands {
		fmt.Fprintln(c.out, command)
	}
	verb := "stored"
	if c.store.Get("test") == "true" {
		verb = "would be stored"
	}
	fmt.Fprintf(c.notes, "%d rows: %d samples and %d settings %s, %d numbers skipped\n", done.Rows, done.Samples, done.Settings, verb, done.Skipped)
	return nil
}

func newQueryID() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

func (c *sqlClient) post(ctx context.Context, path string, form url.Values) (*http.Response, error) {
	user, password, err := c.credentials()
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(c.URL, "/")+path, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, usageError{err}
	}
	request.SetBasicAuth(user, password)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := c.client().Do(request)
	if err != nil {
		return nil, fmt.Errorf("%w: is the server running?", err)
	}
	return answer, nil
}

// cancel stops a statement on the server. That it ended meanwhile is no fault.
func (c *sqlClient) cancel(id string) {
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	if answer, err := c.post(ctx, "/api/sql/cancel", url.Values{"queryId": {id}}); err == nil {
		answer.Body.Close()
	}
}

// sqlFault is the message of an error in one of the forms that servers send.
func sqlFault(body []byte, otherwise string) error {
	var e struct {
		Errors []struct{ Message string }
		Error  string
	}
	body = bytes.TrimPrefix(bytes.TrimSpace(body), []byte("#"))
	switch err := json.Unmarshal(body, &e); {
	case err == nil && len(e.Errors) > 0:
		return errors.New(e.Errors[0].Message)
	case err == nil && e.Error != "":
		return errors.New(e.Error)
	}
	return fmt.Errorf("the server answers %s", otherwise)
}

// copyCSV passes lines on. An error stands as a comment behind the last row.
func (c *sqlClient) copyCSV(body io.Reader) error {
	in, out := bufio.NewReaderSize(body, 1<<16), bufio.NewWriterSize(c.out, 1<<16)
	for {
		line, err := in.ReadSlice('\n')
		if bytes.HasPrefix(line, []byte(`#{"errors":`)) {
			rest, _ := io.ReadAll(io.LimitReader(in, 1<<20))
			return errors.Join(sqlFault(append(bytes.Clone(line), rest...), ""), out.Flush())
		}
		if _, fault := out.Write(line); fault != nil {
			return fault
		}
		if err != nil && err != bufio.ErrBufferFull {
			fault := out.Flush()
			if err == io.EOF {
				err = nil
			}
			return errors.Join(err, fault)
		}
	}
}

// copyJSON passes the answer on and looks for an error at its end.
func (c *sqlClient) copyJSON(body io.Reader) error {
	var end tail
	if _, err := io.Copy(c.out, io.TeeReader(body, &end)); err != nil {
		return err
	}
	fmt.Fprintln(c.out)
	if i := bytes.LastIndex(end.text, []byte(`],"errors":[{"state":`)); i >= 0 {
		return sqlFault(append([]byte(`{`), end.text[i+2:]...), "")
	}
	return nil
}

// tail keeps the end of what is written.
type tail struct{ text []byte }

func (t *tail) Write(b []byte) (int, error) {
	const most = 16 << 10
	t.text = append(t.text, b...)
	if extra := len(t.text) - most; extra > 0 {
		t.text = append(t.text[:0], t.text[extra:]...)
	}
	return len(b), nil
}
