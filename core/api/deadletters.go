package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"

	"github.com/tidemark-db/tidemark/core"
)

// letterPrefix keeps the dead letters of uploads apart from those of notifications, which have the same kind of document.
const letterPrefix = "plugin "

// defaultLetters bounds all letters of uploads together, in bytes as they are stored.
const defaultLetters = 64 << 20

// deadLetter is a piece of an upload that a plugin could not take. Its JSON form is the body of a document; its key is letterPrefix and the
// ID. It holds what a replay needs, and of the sender only the name: no rights, no address, no credentials.
type deadLetter struct {
	ID       string            `json:"id"` // receive time of the letter and a number: ids sort by age
	Plugin   string            `json:"plugin"`
	Parser   string            `json:"parser"`
	Format   string            `json:"format"`
	Params   map[string]string `json:"params,omitempty"`
	Tags     map[string]string `json:"tags,omitempty"`
	User     string            `json:"user"`
	Received core.Time         `json:"received"` // of the upload: a replay sees the same
	FileName string            `json:"fileName,omitempty"`
	Zone     string            `json:"zone,omitempty"`
	Hidden   bool              `json:"hiddenFromRules,omitempty"`
	Error    string            `json:"error"`

	Offset    int64 `json:"offset"`              // of the lost piece in the file
	Size      int   `json:"size"`                // bytes of the input that is kept
	Skip      int64 `json:"skip,omitempty"`      // of them were stored before: a stateful plugin has to read them again
	Headless  bool  `json:"headless,omitempty"`  // a stateful plugin would have to read what is not kept
	Truncated bool  `json:"truncated,omitempty"` // there was more than limits.dead_letter

	Packed []byte `json:"packed,omitempty"` // the input in UTF-8, gzip
}

// lostInput is the error of a Parser for a piece of a file that a plugin could not take. If the iteration goes on, what follows it is tried.
type lostInput interface {
	error
	LostAt() (plugin string, offset int64)
	LostInput() (kept []byte, skip int64)
	LostParts() (headless, truncated bool)
}

// resumer is a Parser that can take up a file whose first bytes were stored before.
type resumer interface {
	Resume(ctx context.Context, r core.ParseRequest, body io.Reader, from int64) iter.Seq2[core.Parsed, error]
}

// letterBox knows the sizes of all letters, so that a new one need not read the others.
type letterBox struct {
	mu     sync.Mutex
	loaded bool
	sizes  map[string]int // by ID
	total  int64
	newest letterID
}

// letterID sorts by age: it never goes back, also when the clock does.
type letterID struct {
	at core.Time
	n  int
}

func (id letterID) String() string { return fmt.Sprintf("%013d-%04d", int64(id.at), id.n) }

// after is the first id at or after now that follows id.
func (id letterID) after(now core.Time) letterID {
	if now > id.at {
		return letterID{now, 1}
	}
	return letterID{id.at, id.n + 1}
}

func (b *letterBox) set(id string, size int) {
	b.total += int64(size - b.sizes[id])
	b.sizes[id] = size
	if size == 0 {
		delete(b.sizes, id)
	}
}

// load is called with mu held.
func (b *letterBox) load(ctx context.Context, r core.Reader) error {
	if b.loaded {
		return nil
	}
	b.sizes, b.total, b.newest = map[string]int{}, 0, letterID{}
	for d, err := range r.Documents(ctx, core.DocumentQuery{Kind: core.DocDeadLetter}) {
		if err != nil {
			return err
		}
		if id, ok := strings.CutPrefix(d.Key, letterPrefix); ok {
			b.set(strings.Clone(id), len(d.Body))
			var at letterID
			if _, err := fmt.Sscanf(id, "%d-%d", &at.at, &at.n); err == nil {
				b.newest = at // they come in order
			}
		}
	}
	b.loaded = true
	return nil
}

// keep stores a letter, at the cost of the oldest ones when there is no room, and returns its id.
func (s *Server) keep(ctx context.Context, d deadLetter) (string, error) {
	box := &s.letters
	box.mu.Lock()
	defer box.mu.Unlock()
	if err := box.load(ctx, s.Reader); err != nil {
		return "", err
	}
	limit := s.DeadLetterBytes
	defaultTo(&limit, defaultLetters)
	id := box.newest.after(s.Clock())
	d.ID = id.String()
	body, err := json.Marshal(d)
	if err != nil {
		return "", err
	}
	if int64(len(body)) > limit {
		return "", core.Errorf(core.TooLarge, "the dead letter has %d bytes, limits.dead_letters allows %d", len(body), limit)
	}
	b := &core.Batch{Origin: core.SystemOrigin(0), Documents: []core.DocChange{{Kind: core.DocDeadLetter, Key: letterPrefix + d.ID, Body: body}}}
	left := box.total + int64(len(body))
	var dropped []string
	for _, id := range slices.Sorted(maps.Keys(box.sizes)) {
		if left <= limit {
			break
		}
		left -= int64(box.sizes[id])
		dropped = append(dropped, id)
		b.Documents = append(b.Documents, core.DocChange{Kind: core.DocDeadLetter, Key: letterPrefix + id, Op: core.DocDelete})
	}
	if _, err := s.Ingest.Ingest(ctx, b); err != nil {
		return "", err
	}
	box.newest = id
	box.set(d.ID, len(body))
	for _, id := range dropped {
		s.Log.Warn("a dead letter was dropped for a later one: limits.dead_letters is used up", "id", id, "bytes", box.sizes[id], "limit", limit)
		box.set(id, 0)
	}
	return d.ID, nil
}

// drop deletes a letter.
func (s *Server) drop(ctx context.Context, id string) (core.Receipt, error) {
	s.letters.mu.Lock()
	defer s.letters.mu.Unlock()
	receipt, err := s.Ingest.Ingest(ctx, &core.Batch{Origin: core.SystemOrigin(0),
		Documents: []core.DocChange{{Kind: core.DocDeadLetter, Key: letterPrefix + id, Op: core.DocDelete}}})
	if err == nil && s.letters.loaded {
		s.letters.set(id, 0)
	}
	return receipt, err
}

// letter reads one letter.
func (c *call) letter(id string) (deadLetter, error) {
	for d, err := range c.server.Reader.Documents(c.reading(), core.DocumentQuery{Kind: core.DocDeadLetter, Key: letterPrefix + id}) {
		if err != nil {
			return deadLetter{}, err
		}
		var letter deadLetter
		if err := json.Unmarshal(d.Body, &letter); err != nil {
			return letter, core.Wrap(core.Internal, err, "dead letter "+id+" is damaged")
		}
		return letter, nil
	}
	return deadLetter{}, core.Errorf(core.NotFound, "DEAD LETTER not found for id: '%s'", excerpt(id))
}

// input unpacks what is kept of the upload.
func (d *deadLetter) input() ([]byte, error) {
	zr, err := gzip.NewReader(bytes.NewReader(d.Packed))
	if err != nil {
		return nil, core.Wrap(core.Internal, err, "dead letter "+d.ID+" is damaged")
	}
	input, err := io.ReadAll(io.LimitReader(zr, int64(d.Size)))
	if err != nil {
		return nil, core.Wrap(core.Internal, err, "dead letter "+d.ID+" is damaged")
	}
	return input, nil
}

func (d *deadLetter) pack(input []byte) {
	var out bytes.Buffer
	zw := gzip.NewWriter(&out)
	zw.Write(input)
	zw.Close() // a buffer takes everything
	d.Size, d.Packed = len(input), out.Bytes()
}

// deadLetterList answers with all letters of uploads, oldest first, without their input.
func (c *call) deadLetterList() error {
	list := []deadLetter{}
	for d, err := range c.server.Reader.Documents(c.reading(), core.DocumentQuery{Kind: core.DocDeadLetter}) {
		if err != nil {
			return err
		}
		if !strings.HasPrefix(d.Key, letterPrefix) {
			continue
		}
		var letter deadLetter
		if err := json.Unmarshal(d.Body, &letter); err != nil {
			return core.Wrap(core.Internal, err, "dead letter "+d.Key+" is damaged")
		}
		letter.Packed = nil
		list = append(list, letter)
	}
	return c.sendPlain(list)
}

// deadLetterGet answers with one letter. Input is the text, or base64 in inputBase64 when it is none.
func (c *call) deadLetterGet() error {
	letter, err := c.letter(c.param("id"))
	if err != nil {
		return err
	}
	input, err := letter.input()
	if err != nil {
		return err
	}
	letter.Packed = nil
	answer := struct {
		deadLetter
		Input  *string `json:"input,omitempty"`
		Binary []byte  `json:"inputBase64,omitempty"`
	}{deadLetter: letter}
	if utf8.Valid(input) {
		text := string(input)
		answer.Input = &text
	} else {
		answer.Binary = input
	}
	return c.sendPlain(answer)
}

// sendPlain answers with JSON in which `<` and `&` stay as they are.
func (c *call) sendPlain(v any) error {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	return c.sendJSON(bytes.TrimRight(out.Bytes(), "\n"))
}

func (c *call) deadLetterDelete() error {
	id := c.param("id")
	if _, err := c.letter(id); err != nil {
		return err
	}
	receipt, err := c.server.drop(c.r.Context(), id)
	if err != nil {
		return err
	}
	return c.stored(receipt)
}

// rightsOfSender are what a replay may do: what the sender may do now, and not what the administrator may who replays it. Otherwise whoever knows an input
// that a plugin cannot take could have it stored where they may not write.
func (c *call) rightsOfSender(d *deadLetter) (core.Grants, error) {
	grants, err := c.server.Users.Grants(c.r.Context(), d.User)
	if code := core.CodeOf(err); code == core.Unauthenticated {
		return grants, core.Errorf(core.Invalid, "%s, who sent dead letter %s, cannot log in any more: read the letter and upload its input yourself", d.User, d.ID)
	}
	return grants, err
}

// deadLetterReplay sends a letter through its parser again, with the rights of its sender. The letter goes when all of it was taken;
// the answer is that of an upload.
func (c *call) deadLetterReplay() error {
	if c.server.Parser == nil {
		return c.missing()
	}
	d, err := c.letter(c.param("id"))
	if err != nil {
		return err
	}
	if d.Headless {
		return core.Errorf(core.Invalid, "plugin %s reads a file from its start, and the %d bytes before this letter are not kept: upload the file again",
			d.Plugin, d.Offset)
	}
	input, err := d.input()
	if err != nil {
		return err
	}
	origin := c.id.Origin(core.DoorPlugin)
	if origin.Grants, err = c.rightsOfSender(&d); err != nil {
		return err
	}
	if err := c.unhurried(); err != nil {
		return err
	}
	u := &upload{c: c, rules: !d.Hidden, started: c.now(), durability: core.Synced, files: 1, replay: &d}
	u.rights = func() (core.Grants, error) { return c.rightsOfSender(&d) }
	u.size.n = int64(len(input))
	u.request = core.ParseRequest{Parser: d.Parser, Format: d.Format, Params: d.Params, Tags: tagsOf(d.Tags), FileName: d.FileName,
		Source: c.id.Address, Encoding: "utf-8", Zone: d.Zone, Received: d.Received, Origin: origin}
	if err := u.parse(bytes.NewReader(input)); err != nil && !errors.Is(err, errFileFailed) {
		return err
	}
	switch {
	case u.failure != nil:
	case d.Truncated:
		u.failure = core.Errorf(core.Invalid, "what dead letter %s holds is stored, but its end was cut off at limits.dead_letter: it stays until it is deleted", d.ID)
	default:
		if _, err := c.server.drop(c.r.Context(), d.ID); err != nil {
			return err
		}
	}
	return u.answer()
}

func tagsOf(m map[string]string) core.Tags {
	var tags core.Tags
	for name, value := range m {
		tags = append(tags, core.Tag{Name: name, Value: value})
	}
	return tags.Normal()
}

// lose keeps what a plugin could not take, and makes it a failure of the upload.
func (u *upload) lose(lost lostInput) {
	text := userText(lost)
	if u.replay != nil || u.test {
		u.fail(core.Wrap(core.Invalid, lost, text))
		return
	}
	d := deadLetter{Parser: u.request.Parser, Format: u.request.Format, Params: u.request.Params, Tags: u.request.Tags.Map(),
		User: u.request.Origin.User, Received: u.request.Received, FileName: u.request.FileName, Zone: u.request.Zone, Hidden: !u.rules, Error: text}
	d.Plugin, d.Offset = lost.LostAt()
	kept, skip := lost.LostInput()
	d.Skip = skip
	d.Headless, d.Truncated = lost.LostParts()
	d.pack(kept)
	log := u.c.server.Log.With("plugin", d.Plugin, "parser", d.Parser, "file", d.FileName, "offset", d.Offset)
	var err error
	if d.ID, err = u.c.server.keep(u.c.r.Context(), d); err != nil {
		log.Error("a part of an upload is lost: its dead letter cannot be kept", "fault", text, "error", err)
		u.fail(core.Wrap(core.Invalid, err, text+"; it could not be kept as a dead letter: "+userText(err)))
		return
	}
	log.Warn("a part of an upload is a dead letter", "id", d.ID, "fault", text)
	text = fmt.Sprintf("%s; dead letter %s holds what is lost from byte %d on", text, d.ID, d.Offset)
	if d.Truncated {
		text += fmt.Sprintf(", cut off after %d bytes, the limit limits.dead_letter", d.Size)
	}
	d.Packed = nil
	u.letters = append(u.letters, d)
	u.fail(core.Wrap(core.Invalid, lost, text))
}

// fail keeps the first failure of an upload, which is the one that the answer tells.
func (u *upload) fail(err error) {
	if u.failure == nil {
		u.failure = err
	}
}

// nameLetters adds to an error that ends an upload what was lost before it.
func (u *upload) nameLetters(err error) error {
	var e *core.Error
	if len(u.letters) == 0 || !errors.As(err, &e) {
		return err
	}
	named := *e
	for _, d := range u.letters {
		named.Text += fmt.Sprintf("; dead letter %s from byte %d on", d.ID, d.Offset)
	}
	return &named
}

func appendLetters(body []byte, letters []deadLetter) []byte {
	if len(letters) == 0 {
		return body
	}
	body = append(body, `,"deadLetters":[`...)
	for i, d := range letters {
		if i > 0 {
			body = append(body, ',')
		}
		body = appendString(append(body, `{"id":`...), d.ID)
		body = appendString(append(body, `,"fileName":`...), d.FileName)
		body = strconv.AppendInt(append(body, `,"offset":`...), d.Offset, 10)
		body = strconv.AppendInt(append(body, `,"size":`...), int64(d.Size), 10)
		body = strconv.AppendBool(append(body, `,"truncated":`...), d.Truncated)
		body = append(body, '}')
	}
	return append(body, ']')
}
