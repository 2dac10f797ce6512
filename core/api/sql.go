package api

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/cells"
	"github.com/tidemark-db/tidemark/core/sql"
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/format"
)

// SQL answers statements.
type SQL interface {
	Run(ctx context.Context, r sql.Request, answer func(*sql.Answer) error) error
	Columns(ctx context.Context, r sql.Request) ([]sql.Column, error)
	Cancel(id string, origin core.Origin) []sql.Running
	Store(ctx context.Context, r sql.Request, o sql.StoreOptions) (sql.Stored, error)
}

// sqlRequest is a statement with what its sender wants to get.
type sqlRequest struct {
	sql.Request
	form     string // csv, json or null
	metadata string // NONE, HEADER, EMBED or COMMENTS
	discard  bool
	millis   bool // timestamps as numbers
	received core.Time
}

// sqlParameter reads a parameter of a request from wherever it stands.
type sqlParameter func(name string) string

// sqlParameters takes a request in one of its three forms: parameters in the body, the statement as the body, or everything in the query string.
func (c *call) sqlParameters() (sqlParameter, error) {
	if c.server.SQL == nil {
		return nil, c.missing()
	}
	inURL := func(name string) string { return c.values.Get(name) }
	if c.r.Method == http.MethodGet {
		return inURL, nil
	}
	body, err := c.body()
	if err != nil {
		return nil, err
	}
	media, _, _ := strings.Cut(c.r.Header.Get("Content-Type"), ";")
	if media = strings.ToLower(strings.TrimSpace(media)); media != "application/x-www-form-urlencoded" {
		if strings.TrimSpace(body) == "" {
			return inURL, nil
		}
		return func(name string) string {
			if name == "q" {
				return body
			}
			return inURL(name)
		}, nil
	}
	values, err := parseQuery(body)
	if err != nil {
		return nil, core.Errorf(core.Invalid, "the form in the body: %s", err)
	}
	return func(name string) string {
		if v, ok := values[name]; ok {
			return v[0]
		}
		return inURL(name)
	}, nil
}

// sqlRequest reads the parameters of a query. A request is returned with the error too: it says in which form to send that.
func (c *call) sqlRequest(get sqlParameter) (sqlRequest, error) {
	r := sqlRequest{form: "csv", metadata: "HEADER", received: c.now()}
	r.Text, r.ID, r.Origin = get("q"), get("queryId"), c.sqlOrigin()
	flag := func(name string) bool { return strings.EqualFold(get(name), "true") }
	r.EncodeTags, r.millis, r.discard = flag("encodeTags"), flag("datetimeAsNumber"), flag("discardOutput")
	if text := get("outputFormat"); text != "" {
		switch form := strings.ToLower(text); form {
		case "csv", "json", "null":
			r.form = form
		default:
			return r, core.Errorf(core.Invalid, "outputFormat must be csv, json or null, not %s", excerpt(text))
		}
	}
	if text := get("metadataFormat"); text != "" && r.form != "json" { // which has its own, whatever is asked for
		switch metadata := strings.ToUpper(text); metadata {
		case "NONE", "HEADER", "EMBED", "COMMENTS":
			r.metadata = metadata
		default:
			return r, core.Errorf(core.Invalid, "metadataFormat must be NONE, HEADER, EMBED or COMMENTS, not %s", excerpt(text))
		}
	}
	if text := strings.TrimSpace(get("limit")); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return r, core.Errorf(core.Invalid, "limit: a number is expected, not %s", excerpt(text))
		}
		r.Limit = max(n, 0)
	}
	if strings.TrimSpace(r.Text) == "" {
		return r, core.Errorf(core.Invalid, `missing required parameter "q"`)
	}
	return r, nil
}

// sqlOrigin is who sends a statement. A GET may change data only where it carries credentials of its own: a link on a foreign page must not.
func (c *call) sqlOrigin() core.Origin {
	origin := c.id.Origin(core.DoorHTTP)
	if c.r.Method == http.MethodGet && !c.id.MayWrite(c.r) {
		origin.Grants.Roles &^= core.DataWrite
	}
	return origin
}

// sql answers a statement.
func (c *call) sql() error {
	get, err := c.sqlParameters()
	if err != nil {
		return err
	}
	r, err := c.sqlRequest(get)
	if err != nil {
		return c.sqlFailure(err, r.form != "json")
	}
	if err := c.unhurried(); err != nil {
		return err
	}
	err = c.server.SQL.Run(c.r.Context(), r.Request, func(a *sql.Answer) error { return c.sqlAnswer(r, a) })
	if err == nil || c.status != 0 {
		return err
	}
	return c.sqlFailure(err, r.form != "json")
}

// sqlAnswer sends a result as it is made. Nothing is sent before the first batch of rows is there, so that most errors have a status of their own.
func (c *call) sqlAnswer(r sqlRequest, a *sql.Answer) error {
	next, stop := iter.Pull2(a.Rows)
	defer stop()
	first, err, some := next()
	if err != nil {
		return err
	}
	if a.Receipt != nil {
		c.durability(a.Receipt.Durability)
	}
	if r.form == "null" || r.discard {
		return c.sqlDiscard(next, some)
	}
	table := c.sqlTable(r, a.Columns)
	s := &sqlStream{call: c, rows: format.NewRows(format.Options{JSON: r.form == "json", Millis: r.millis, Width: len(a.Columns), Fraction: sql.Fractions(a.Columns)})}
	if s.rows.JSON {
		s.begin(jsonType)
		s.buf = append(table.JSON(append(s.buf, `{"metadata":`...)), `,"data":[`...)
	} else {
		if r.metadata == "HEADER" {
			if link := table.Link(); link != "" {
				c.Header()["Link"] = []string{link}
			}
		}
		s.begin(csvType)
		s.buf = sqlHead(s.buf, r, table)
	}
	for b := first; some && err == nil && s.err == nil; b, err, some = next() {
		s.append(b)
	}
	return s.end(err)
}

// sqlHead appends what stands above the rows of CSV: metadata, and labels where there are columns.
func sqlHead(dst []byte, r sqlRequest, table *format.Table) []byte {
	switch r.metadata {
	case "EMBED":
		dst = table.Embedded(dst)
	case "COMMENTS":
		dst = table.Comments(dst)
	}
	if len(table.Columns) == 0 {
		return dst
	}
	labels := make([]string, len(table.Columns))
	for i, c := range table.Columns {
		labels[i] = c.Label
	}
	return format.Header(dst, labels)
}

// sqlDiscard runs a query for its effects, such as how long it takes, and answers with an empty body.
func (c *call) sqlDiscard(next func() (*column.Batch, error, bool), some bool) error {
	for some {
		var err error
		if _, err, some = next(); err != nil {
			return err
		}
	}
	c.Header().Set("Content-Type", csvType) // an empty text is CSV, and no JSON
	c.WriteHeader(http.StatusOK)
	return nil
}

func (c *call) sqlTable(r sqlRequest, columns []sql.Column) *format.Table {
	t := &format.Table{Created: r.received, Server: c.server.URL, Query: r.Text}
	for _, col := range columns {
		t.Columns = append(t.Columns, format.Column{Label: col.Label, Name: col.Name, Type: col.Type, Unknown: col.Unknown, Table: col.Table, Property: col.Property, About: col.About})
	}
	return t
}

// sqlStream is a result on its way to the client. Its memory is one buffer, whatever the result has.
type sqlStream struct {
	*call
	rows *format.Rows
	buf  []byte
	out  io.Writer
	zw   *gzip.Writer
	err  error // of the connection: the client is gone, or does not read
}

// chunk is how many bytes go to the client at once.
const chunk = 64 << 10

func (s *sqlStream) begin(contentType string) {
	s.buf = make([]byte, 0, chunk+chunk/4)
	s.out = s.ResponseWriter
	h := s.Header()
	h.Set("Content-Type", contentType)
	h.Add("Vary", "Accept-Encoding")
	if acceptsGzip(s.r.Header) {
		h.Set("Content-Encoding", "gzip")
		s.zw = gzipWriters.Get().(*gzip.Writer)
		s.zw.Reset(s.ResponseWriter)
		s.out = s.zw
	}
}

func (s *sqlStream) append(b *column.Batch) {
	for from := 0; from < b.Len && s.err == nil; from += format.Chunk {
		s.buf = s.rows.Append(s.buf, b, from, min(from+format.Chunk, b.Len))
		if len(s.buf) >= chunk {
			s.flush()
		}
	}
}

// flush sends the buffer. A client has limits.idle for each.
func (s *sqlStream) flush() {
	if s.status == 0 {
		s.WriteHeader(http.StatusOK)
	}
	deadline := http.NewResponseController(s.call)
	if err := deadline.SetWriteDeadline(time.Now().Add(s.server.Limits.Idle)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		s.err = err
	}
	if s.err == nil {
		_, s.err = s.out.Write(s.buf)
	}
	s.buf = s.buf[:0]
}

// end sends what is left. After rows were sent an error can only stand behind them.
func (s *sqlStream) end(err error) error {
	if err != nil && s.status == 0 {
		s.Header().Del("Content-Encoding")
		s.Header().Del("Link")
		s.release()
		return err
	}
	switch text := s.trailer(err); {
	case s.rows.JSON:
		s.buf = append(s.buf, ']')
		if text != nil {
			s.buf = append(append(s.buf, ','), text[1:len(text)-1]...)
		}
		s.buf = append(s.buf, '}')
	case text != nil:
		s.buf = append(append(append(s.buf, '#'), text...), '\n')
	}
	s.flush()
	if s.zw != nil && s.err == nil {
		s.err = s.zw.Close()
	}
	s.release()
	if s.err != nil {
		panic(http.ErrAbortHandler) // nobody reads any more, or what was read is cut: only the end of the connection says so
	}
	return nil
}

// trailer is the error that stands behind the rows; nil for none.
func (s *sqlStream) trailer(err error) []byte {
	if err == nil {
		return nil
	}
	_, text := s.sqlText(err)
	return appendSQLError(nil, text)
}

func (s *sqlStream) release() {
	if s.zw != nil {
		gzipWriters.Put(s.zw)
		s.zw = nil
	}
}

// sqlFailure answers with an error in the form of SQL where the statement is at fault, otherwise like every other route.
func (c *call) sqlFailure(err error, commented bool) error {
	code := core.CodeOf(err)
	if code != core.Invalid && code != core.TooLarge && code != core.Unavailable {
		return err
	}
	status, text := c.sqlText(err)
	var fault *sql.Fault
	if errors.As(err, &fault) && fault.Hint != "" {
		c.Header().Set("Tidemark-Hint", fault.Hint)
	}
	var body []byte
	if commented {
		body = append(body, '#')
		c.Header().Set("Content-Type", csvType)
	} else {
		c.Header().Set("Content-Type", jsonType)
	}
	body = appendSQLError(body, text)
	c.Header().Set("Content-Length", strconv.Itoa(len(body)))
	c.WriteHeader(status)
	c.Write(body)
	return nil
}

// sqlText is what the user learns of an error, and its status.
func (c *call) sqlText(err error) (status int, text string) {
	var e *core.Error
	if known := errors.As(err, &e); !known && core.CodeOf(err) == core.Canceled {
		return statuses[core.Canceled], "Query stopped" // the client went away, or the server does
	} else if !known || e.Code == core.Internal {
		id := requestID()
		c.server.Log.Error("query failed", "request", id, "user", c.id.User.Name, "err", err)
		return http.StatusInternalServerError, internalText(id)
	}
	if e.Code == core.Invalid || e.Code == core.TooLarge {
		return http.StatusBadRequest, e.Text
	}
	return statuses[e.Code], e.Text
}

// appendSQLError appends {"errors":[...]}. The state tells clients that a metric does not exist.
func appendSQLError(dst []byte, text string) []byte {
	state := "42"
	if strings.HasPrefix(text, "Metric ") && strings.HasSuffix(text, " not found") {
		state = "07"
	}
	dst = append(append(append(dst, `{"errors":[{"state":"`...), state...), `","exception":[],"message":`...)
	return append(cells.AppendJSON(dst, text), `}]}`...)
}

// sqlMeta answers with the columns that a query would have.
func (c *call) sqlMeta() error {
	get, err := c.sqlParameters()
	if err != nil {
		return err
	}
	r, err := c.sqlRequest(get)
	if err == nil {
		var columns []sql.Column
		if columns, err = c.server.SQL.Columns(c.reading(), r.Request); err == nil {
			return c.sendJSON(c.sqlTable(r, columns).WithDialect(nil))
		}
	}
	if core.CodeOf(err) != core.Invalid {
		return err
	}
	_, text := c.sqlText(err)
	body := appendSQLError(nil, text)
	body = append(cells.AppendJSON(append(body[:len(body)-1], `,"error":`...), text), '}') // beside the list, for clients that know errors in no other form
	c.Header().Set("Content-Type", jsonType)
	c.WriteHeader(http.StatusBadRequest)
	c.Write(body)
	return nil
}

// sqlCancel stops the running queries of an id.
func (c *call) sqlCancel() error {
	get, err := c.sqlParameters()
	if err != nil {
		return err
	}
	body := []byte{'['}
	for i, q := range c.server.SQL.Cancel(get("queryId"), c.id.Origin(core.DoorHTTP)) {
		if i > 0 {
			body = append(body, ',')
		}
		for j, m := range [...][2]string{{"queryId", q.ID}, {"atsdQueryId", q.ServerID}, {"status", "Cancelled"}, {"user", q.User}, {"sql", q.Text}} {
			body = append(body, "{,"[min(j, 1)])
			body = cells.AppendJSON(append(cells.AppendJSON(body, m[0]), ':'), m[1])
		}
		body = append(body, '}')
	}
	return c.sendJSON(append(body, ']'))
}
