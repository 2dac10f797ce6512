package api

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
)

// csvParameters are the request parameters that a csv parser knows; nmonParameters those of nmon.
var (
	csvParameters = []string{"default-entity", "entity-prefix", "entity-tags", "default-metric", "metric-prefix", "metric-tags", "time", "rules"}

	nmonParameters = []string{"e", "f"}
)

// upload is one csv or nmon file on its way through a parser plugin.
type upload struct {
	c       *call
	request core.ParseRequest
	test    bool // parse only
	rules   bool // show the records to rules

	started    core.Time
	size       countingReader
	pace       *paced // of its sender; nil for a replay
	files      int
	lines      int
	samples    int
	records    int
	rejected   int
	rejects    []core.Reject
	durability core.Durability
	failure    error // of the parser: what was stored before stays
	letters    []deadLetter
	replay     *deadLetter // the input comes from it

	// Of an upload whose sender does not wait, nil and "" for others.
	id       string                      // of a background upload
	rights   func() (core.Grants, error) // of its sender as they are now; nil = those of the caller
	progress func()                      // called after each chunk
}

// countingReader counts bytes as they were sent.
type countingReader struct {
	r io.Reader
	n int64
}

func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.n += int64(n)
	return n, err
}

// csvUpload sends a file through the named parser configuration.
func (c *call) csvUpload() error {
	q := c.values
	config := q.Get("config")
	if config == "" {
		return core.Errorf(core.Invalid, "IllegalArgumentException: Parameter config is required")
	}
	u, err := c.newUpload("csv", config, csvParameters)
	if err != nil {
		return err
	}
	var badTest, badRules error
	u.test, badTest = flagParameter(q, "test", false) // one that is misspelt must not store
	u.rules, badRules = flagParameter(q, "rules", true)
	wait, badWait := flagParameter(q, "wait", true)
	if err := cmp.Or(badTest, badRules, badWait); err != nil {
		return err
	}
	u.request.Encoding, u.request.Zone, u.request.FileName = q.Get("encoding"), q.Get("timezone"), q.Get("filename")
	if when := q.Get("time"); when != "" {
		t, err := dates.Moment{Now: u.started, Zone: c.server.Zone, Calendar: c.server.Calendars().Default()}.ParseLocal(when)
		if err != nil {
			return core.Errorf(core.Invalid, "IllegalArgumentException: Wrong time syntax: %s", excerpt(when))
		}
		u.request.Params["time"] = strconv.FormatInt(int64(t), 10) // Unix ms: the plugin reads no calendar expressions
	}
	if !wait {
		return u.accept()
	}
	return u.run()
}

// nmonUpload sends a file through the nmon parser.
func (c *call) nmonUpload() error {
	q := c.values
	name := q.Get("p")
	if name == "" {
		name = "default"
	}
	u, err := c.newUpload("nmon", name, nmonParameters)
	if err != nil {
		return err
	}
	u.request.Zone, u.request.FileName = q.Get("z"), q.Get("f")
	if u.request.FileName == "" {
		_, params, err := mime.ParseMediaType(c.r.Header.Get("Content-Disposition"))
		if err == nil {
			u.request.FileName = params["filename"]
		}
	}
	return u.run()
}

// newUpload collects what csv and nmon have in common. parameters are the names that the plugin of the format knows.
func (c *call) newUpload(format, parser string, parameters []string) (*upload, error) {
	if c.server.Parser == nil {
		return nil, c.missing()
	}
	q := c.values
	u := &upload{c: c, rules: true, started: c.now(), durability: core.Synced}
	params := map[string]string{}
	for _, name := range parameters {
		if q.Has(name) {
			params[name] = q.Get(name)
		}
	}
	tags, err := defaultTags(q)
	if err != nil {
		return nil, err
	}
	for _, tag := range tags {
		params["t:"+tag.Name] = tag.Value // as the request has it; plugins read either
	}
	origin := c.id.Origin(core.DoorPlugin)
	u.request = core.ParseRequest{Parser: parser, Format: format, Params: params, Tags: tags, Source: c.id.Address, Received: u.started, Origin: origin}
	return u, nil
}

// defaultTags reads the parameters t:NAME.
func defaultTags(q url.Values) (core.Tags, error) {
	var tags core.Tags
	for name, values := range q {
		tag, ok := strings.CutPrefix(name, "t:")
		if !ok {
			continue
		}
		if tag = lowered(tag); tag == "" || !validName(tag) {
			return nil, core.Errorf(core.Invalid, "IllegalArgumentException: Invalid tag name '%s'", excerpt(tag))
		}
		tags = append(tags, core.Tag{Name: tag, Value: trimmed(values[0])})
	}
	slices.SortFunc(tags, func(a, b core.Tag) int { return strings.Compare(a.Name, b.Name) })
	return tags.Normal(), nil
}

// run streams the body through the parser and each batch into the pipeline, so that an upload of a gigabyte needs the memory of a chunk.
func (u *upload) run() error {
	c := u.c
	if err := c.unhurried(); err != nil { // a large file on a slow line
		return err
	}
	limit := c.server.Limits.Upload
	if c.r.ContentLength > limit {
		return core.Errorf(core.TooLarge, "the body exceeds limits.upload (%d bytes)", limit)
	}
	u.pace = c.paced(c.r.Body)
	u.size.r = u.pace
	c.r.Body = io.NopCloser(&u.size)
	err := u.read()
	switch {
	case u.pace.late:
		u.fail(u.nameLetters(u.pace.fault()))
	case err != nil && !errors.Is(err, errFileFailed):
		return err
	}
	return u.answer()
}

// read sends the files of the body through the parser.
func (u *upload) read() error {
	stream, err := u.c.stream("limits.upload", u.c.server.Limits.Upload)
	if err != nil {
		return err
	}
	body, err := u.file(stream)
	if err != nil {
		return err
	}
	name := u.request.FileName
	err = u.unpack(body, func(name string, r io.Reader) error {
		if u.files++; u.files > u.c.server.Limits.UploadFiles {
			return core.Errorf(core.TooLarge, "the archive has more than upload.files (%d) files; those before are stored", u.c.server.Limits.UploadFiles)
		}
		u.request.FileName = name
		return u.parse(r)
	})
	u.request.FileName = name
	return err
}

// errFileFailed ends an upload whose answer is that of u.failure.
var errFileFailed = errors.New("a file failed")

// file finds the file in the body: the body itself, or the first part with a file name of a multipart one. A multipart body may hide
// behind a plain type that has a boundary.
func (u *upload) file(body io.Reader) (io.Reader, error) {
	kind, params, err := mime.ParseMediaType(u.c.r.Header.Get("Content-Type"))
	if err != nil || (!strings.HasPrefix(kind, "multipart/") && params["boundary"] == "") {
		return body, nil
	}
	parts := multipart.NewReader(bufio.NewReader(body), params["boundary"])
	for {
		part, err := parts.NextRawPart()
		switch {
		case errors.Is(err, io.EOF):
			return nil, core.Errorf(core.Invalid, "IllegalArgumentException: No file part in the multipart body")
		case err != nil:
			return nil, core.Wrap(core.Invalid, err, "IllegalArgumentException: the multipart body is not valid")
		case part.FileName() != "":
			u.request.FileName = part.FileName()
			return part, nil
		}
	}
}

// parse sends one file through the parser. A fault of the file ends the upload but not what was stored before it; any other fault is the answer.
func (u *upload) parse(body io.Reader) error {
	for chunk, err := range u.chunks(fileReader{body}) {
		var lost lostInput
		if errors.As(err, &lost) {
			u.lose(lost)
			continue // the parser knows whether there is more
		}
		if err != nil {
			err = u.nameLetters(err)
			if u.lines == 0 || core.CodeOf(err) != core.Invalid {
				return err // nothing was read, or the fault is not the file's
			}
			u.fail(err)
			return errFileFailed
		}
		if err := u.take(chunk); err != nil {
			return u.nameLetters(err)
		}
		if u.progress != nil {
			u.progress()
		}
	}
	return nil
}

// chunks is what the parser makes of a file.
func (u *upload) chunks(body io.Reader) iter.Seq2[core.Parsed, error] {
	p, ctx := u.c.server.Parser, u.c.r.Context()
	if u.replay == nil || u.replay.Skip == 0 {
		return p.Parse(ctx, u.request, body)
	}
	if r, ok := p.(resumer); ok {
		return r.Resume(ctx, u.request, body, u.replay.Skip)
	}
	return func(yield func(core.Parsed, error) bool) { yield(core.Parsed{}, u.c.missing()) }
}

// fileReader makes every fault of an upload a refusal with nothing behind it. Compressed and multipart bodies that were cut off end in
// io.ErrUnexpectedEOF, which whoever reads in blocks takes for the end of a whole file.
type fileReader struct{ r io.Reader }

func (f fileReader) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if err == nil || err == io.EOF { // the very end, not a wrapped one
		return n, err
	}
	var e *core.Error
	if !errors.As(err, &e) {
		return n, core.Errorf(core.Invalid, "IllegalArgumentException: the file ends before it is complete")
	}
	return n, &core.Error{Code: e.Code, Text: e.Text, RetryAfter: e.RetryAfter}
}

// take stores what one chunk gave.
func (u *upload) take(chunk core.Parsed) error {
	u.lines += chunk.Lines
	u.rejected += len(chunk.Rejects) + chunk.Dropped
	room := max(0, u.c.server.Limits.Rejects-len(u.rejects))
	u.rejects = append(u.rejects, chunk.Rejects[:min(room, len(chunk.Rejects))]...)
	b := chunk.Batch
	if b == nil || b.Len() == 0 {
		return nil
	}
	samples, records := b.Samples.Len(), b.Len()
	for _, d := range b.Documents {
		if d.Kind == core.DocPluginState {
			records-- // it is none of the file
		}
	}
	if !u.test {
		if !u.rules {
			b.HideFromRules()
		}
		grants, err := u.grants()
		if err != nil {
			return err
		}
		added := b.Origin.Grants.Roles &^ u.request.Origin.Grants.Roles // the right for what its plugin remembers, which the parser adds
		b.Origin = u.request.Origin
		b.Origin.Grants = grants
		b.Origin.Grants.Roles |= added
		receipt, err := u.c.submit(b)
		if err != nil {
			return err
		}
		u.durability = min(u.durability, receipt.Durability)
	}
	u.samples += samples
	u.records += records
	return nil
}

// grants are the rights of the sender as they are now: an upload may take hours.
func (u *upload) grants() (core.Grants, error) {
	if u.rights != nil {
		return u.rights()
	}
	err := u.c.renew(u.c.r.Context())
	return u.c.id.Grants, err
}

// The states of an upload in the contract's object.
const (
	inProgress = "IN_PROGRESS"
	completed  = "COMPLETED"
	failed     = "FAILED"
)

// state is that of an upload that has ended.
func (u *upload) state() string {
	if u.failure != nil {
		return failed
	}
	return completed
}

// object is the contract's object, with the rejected lines beside it, and without its closing brace. The end is 0 while there is none.
func (u *upload) object(state string, ended core.Time) []byte {
	body := strconv.AppendInt([]byte(`{"startTime":`), int64(u.started), 10)
	body = append(body, `,"endTime":`...)
	if ended == 0 {
		body = append(body, "null"...)
	} else {
		body = strconv.AppendInt(body, int64(ended), 10)
	}
	body = strconv.AppendInt(append(body, `,"processed":`...), int64(u.lines), 10)
	body = appendString(append(body, `,"source":`...), u.request.Source)
	body = appendString(append(body, `,"parser":`...), u.request.Parser)
	body = append(body, `,"errorMessage":`...)
	switch {
	case u.failure != nil:
		body = appendString(body, userText(u.failure))
	case len(u.rejects) > 0:
		body = appendString(body, rejectText(u.rejects[0]))
	default:
		body = append(body, "null"...)
	}
	body = appendString(append(body, `,"taskStatus":`...), state)
	body = append(body, `,"type":"upload","fileName":`...)
	if name := u.fileName(); name == "" {
		body = append(body, "null"...)
	} else {
		body = appendString(body, name)
	}
	body = strconv.AppendInt(append(body, `,"fileCount":`...), int64(u.files), 10)
	body = strconv.AppendInt(append(body, `,"fileSize":`...), u.size.n, 10)
	body = strconv.AppendInt(append(body, `,"samples":`...), int64(u.samples), 10)
	body = strconv.AppendInt(append(body, `,"records":`...), int64(u.records), 10)
	body = strconv.AppendInt(append(body, `,"rejected":`...), int64(u.rejected), 10)
	body = appendRejects(append(body, `,"rejects":`...), u.rejects)
	return appendLetters(body, u.letters)
}

// answer is that object; with a failure its text is there once more, as in every error.
func (u *upload) answer() error {
	c := u.c
	body := u.object(u.state(), c.now())
	if u.records > 0 && !u.test {
		c.durability(u.durability)
	}
	if u.failure == nil {
		return c.sendJSON(append(body, '}'))
	}
	body = append(appendString(append(body, `,"error":`...), userText(u.failure)), '}')
	c.Header().Set("Content-Type", jsonType)
	c.WriteHeader(u.failed())
	c.Write(body) // fails only when the client is gone
	return nil
}

// shown is the object of a background upload, with what tells it apart.
func (u *upload) shown(state string, ended core.Time) []byte {
	body := appendText(u.object(state, ended), "id", u.id)
	return append(appendText(body, "user", u.c.id.User.Name), '}')
}

// failed is the status of an upload that was not read to its end.
func (u *upload) failed() int {
	if u.pace != nil && u.pace.late {
		return http.StatusRequestTimeout
	}
	return http.StatusBadRequest
}

// fileName is the name that was sent. For csv the contract makes one up when there is none; nmon has none then.
func (u *upload) fileName() string {
	if u.request.FileName == "" && u.request.Format == "csv" {
		return fmt.Sprintf("csv-upload-%d.csv", u.started)
	}
	return u.request.FileName
}

// userText is what of an error may be shown.
func userText(err error) string {
	var e *core.Error
	if errors.As(err, &e) {
		return e.Text
	}
	return "internal error"
}

// rejectText is the one-line form of a reject.
func rejectText(r core.Reject) string {
	switch {
	case r.Line > 0 && r.Column > 0:
		return fmt.Sprintf("Line %d, column %d: %s", r.Line, r.Column, r.Reason)
	case r.Line > 0:
		return fmt.Sprintf("Line %d: %s", r.Line, r.Reason)
	}
	return r.Reason
}

func appendRejects(body []byte, rejects []core.Reject) []byte {
	body = append(body, '[')
	for i, r := range rejects {
		if i > 0 {
			body = append(body, ',')
		}
		body = strconv.AppendInt(append(body, `{"line":`...), int64(r.Line), 10)
		if r.Column > 0 {
			body = strconv.AppendInt(append(body, `,"column":`...), int64(r.Column), 10)
		}
		body = appendString(append(body, `,"reason":`...), r.Reason)
		if r.Text != "" {
			body = appendString(append(body, `,"text":`...), r.Text)
		}
		body = append(body, '}')
	}
	return append(body, ']')
}
