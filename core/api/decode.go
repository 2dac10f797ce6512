package api

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
)

// object reads the members of one JSON object with the contract's tolerance: null is absent, numbers and booleans may come as strings.
// The first fault sticks in err, so that a decoder reads all members and looks once.
type object struct {
	member string // the member of the request that is being read, for faults; empty at the top
	err    error
}

// each calls f for every member that is not null.
func (o *object) each(v gjson.Result, f func(name string, v gjson.Result)) {
	switch {
	case v.IsObject():
	case o.member != "":
		o.fail("%s: an object is expected, not %s", o.member, excerpt(v.Raw))
		return
	default:
		o.fail("an object is expected, not %s", excerpt(v.Raw))
		return
	}
	v.ForEach(func(key, v gjson.Result) bool {
		if v.Type != gjson.Null {
			f(key.Str, v)
		}
		return o.err == nil
	})
}

// fail keeps the first fault of the object.
func (o *object) fail(format string, args ...any) {
	if o.err == nil {
		o.err = core.Errorf(core.Invalid, "IllegalArgumentException: "+format, args...)
	}
}

// text reads a string; a number or boolean gives its literal text.
func (o *object) text(name string, v gjson.Result) string {
	switch v.Type {
	case gjson.String:
		return v.Str
	case gjson.JSON:
		o.fail("%s: a string is expected, not %s", name, excerpt(v.Raw))
		return ""
	}
	return v.Raw
}

// texts reads an array of strings, or one string. Null is none, in the array as well.
func (o *object) texts(name string, v gjson.Result) []string {
	switch {
	case v.Type == gjson.Null:
		return nil
	case !v.IsArray():
		return []string{o.text(name, v)}
	}
	var list []string
	v.ForEach(func(_, item gjson.Result) bool {
		if item.Type != gjson.Null {
			list = append(list, o.text(name, item))
		}
		return o.err == nil
	})
	return list
}

// flag reads a boolean, which some clients always send as a string.
func (o *object) flag(name string, v gjson.Result) bool {
	switch text := strings.ToLower(textValue(v)); text {
	case "true":
		return true
	case "false", "":
		return false
	default:
		o.fail("%s: true or false is expected, not %s", name, excerpt(v.Raw))
		return false
	}
}

// integer reads a whole number; a fraction is cut toward zero.
func (o *object) integer(name string, v gjson.Result) int64 {
	n, ok := parseInteger(textValue(v))
	if !ok {
		o.fail("%s: a number is expected, not %s", name, excerpt(v.Raw))
	}
	return n
}

// parseInteger reads a whole number, or cuts another one toward zero; beyond 64 bits it gives the nearest that fits. NaN is no number.
func parseInteger(text string) (int64, bool) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) {
		return 0, false
	}
	switch f = math.Trunc(f); {
	case f >= math.MaxInt64:
		return math.MaxInt64, true
	case f <= math.MinInt64:
		return math.MinInt64, true
	}
	return int64(f), true
}

// severity reads a code, a name or an alias. An empty text is absent, which is UNDEFINED.
func (o *object) severity(name string, v gjson.Result) core.Severity {
	text := trimmed(o.text(name, v))
	sev, ok := core.ParseSeverity(text)
	if !ok && text != "" {
		o.fail("%s: unknown severity %s", name, excerpt(v.Raw))
	}
	return sev
}

// objects calls f for each element of an array, or for a single object. The error of f ends it.
func (c *call) objects(body string, f func(v gjson.Result) error) error {
	root := gjson.Parse(body)
	if !root.IsArray() {
		return f(root)
	}
	var err error
	n := 0
	root.ForEach(func(_, v gjson.Result) bool {
		if n++; n > c.server.Limits.Records {
			err = c.tooMany()
			return false
		}
		err = f(v)
		return err == nil
	})
	return err
}

// tooMany is the refusal of a request with too many records.
func (c *call) tooMany() error {
	return core.Errorf(core.TooLarge, "the request has more records than limits.records (%d): send it in parts", c.server.Limits.Records)
}

// excerpt is the start of an offending text, short enough for an error.
func excerpt(raw string) string {
	const most = 60
	if len(raw) <= most {
		return raw
	}
	return strings.ToValidUTF8(raw[:most], "") + "..."
}

// trimmed cuts blanks and characters that do not print from both ends.
func trimmed(s string) string {
	if s == "" || (printable(s[0]) && printable(s[len(s)-1])) {
		return s
	}
	return strings.TrimFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
}

// printable holds for ASCII characters only: others take the slow way.
func printable(c byte) bool { return c > ' ' && c < 0x7f }

// lowered returns a name in lower case. It does not allocate for the usual ones.
func lowered(s string) string {
	for i := range len(s) {
		if c := s[i]; c >= 'A' && c <= 'Z' || c >= 0x80 {
			return strings.ToLower(s)
		}
	}
	return s
}

// validName reports whether a name holds only printable characters and no blanks; bytes that are not UTF-8 do not print.
func validName(s string) bool {
	for i := range len(s) {
		if !printable(s[i]) {
			return !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) || r == utf8.RuneError })
		}
	}
	return true
}

// checkTime refuses a time that a record may not carry. It names the time as it was submitted.
func checkTime(t core.Time) error {
	switch {
	case t < core.MinTime:
		return core.Errorf(core.Invalid, "IllegalArgumentException: Negative timestamp")
	case t > core.MaxTime:
		return core.Errorf(core.Invalid, "IllegalArgumentException: Too large timestamp %d. Max allowed value is %d", t, core.MaxTime)
	}
	return nil
}

// recordTime sets the time of a record: its date, which is ISO text only, else the milliseconds of older clients. Without either t stays as it is.
// fault is the text about any other date.
func recordTime(t *core.Time, date, stamp gjson.Result, fault string) error {
	switch {
	case date.Exists():
		parsed, err := dates.ParseISO(date.String())
		if err != nil {
			return core.Errorf(core.Invalid, "IllegalArgumentException: %s", fault)
		}
		*t = parsed
	case stamp.Exists():
		var o object
		if *t = core.Time(o.integer("timestamp", stamp)); o.err != nil {
			return o.err
		}
	default:
		return nil
	}
	return checkTime(*t)
}

// mappingFault is the text that series clients match when a date does not have its separators where they belong.
func mappingFault(err error) error {
	var iso *dates.ISOError
	if !errors.As(err, &iso) {
		return core.Wrap(core.Invalid, err, "com.fasterxml.jackson.databind.JsonMappingException: invalid date")
	}
	return core.Errorf(core.Invalid, "com.fasterxml.jackson.databind.JsonMappingException: %s", iso.Error())
}
