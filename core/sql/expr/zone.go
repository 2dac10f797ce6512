package expr

import (
	"strings"
	"time"
	"unicode"

	"github.com/tidemark-db/tidemark/core/dates"
	"github.com/tidemark-db/tidemark/core/sql/ast"
	"github.com/tidemark-db/tidemark/core/sql/column"
)

// abbreviations of zones stand for the clocks of a place, which follow its summer time. Those that several countries use are those of the United States.
var abbreviations = map[string]string{
	"PST": "America/Los_Angeles", "PDT": "America/Los_Angeles", "MST": "America/Denver", "MDT": "America/Denver", "CST": "America/Chicago", "CDT": "America/Chicago",
	"EST": "America/New_York", "EDT": "America/New_York", "AKST": "America/Anchorage", "AKDT": "America/Anchorage", "HST": "Pacific/Honolulu",
	"BST": "Europe/London", "WEST": "WET", "CEST": "CET", "EEST": "EET", "MSK": "Europe/Moscow", "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "KST": "Asia/Seoul",
	"SGT": "Asia/Singapore", "HKT": "Asia/Hong_Kong", "AEST": "Australia/Sydney", "AEDT": "Australia/Sydney", "ACST": "Australia/Adelaide", "AWST": "Australia/Perth",
	"NZST": "Pacific/Auckland", "NZDT": "Pacific/Auckland", "ROC": "Asia/Taipei", "Z": "UTC",
}

// LoadZone resolves the id of a time zone: an IANA name in any letter case, an abbreviation such as PST, or an offset such as +01:00, GMT-08:00 or UTC+3.
func LoadZone(id string) (*time.Location, error) {
	if place, ok := abbreviations[strings.ToUpper(id)]; ok {
		id = place
	}
	if zone, err := dates.LoadZoneOrOffset(id); err == nil {
		return zone, nil
	}
	if upper := strings.ToUpper(id); strings.HasPrefix(upper, "GMT") || strings.HasPrefix(upper, "UTC") || strings.HasPrefix(id, "+") || strings.HasPrefix(id, "-") {
		if zone, err := dates.LoadZoneOrOffset(fullOffset(upper)); err == nil {
			return zone, nil
		}
	}
	return dates.LoadZoneOrOffset(properCase(id))
}

// fullOffset gives an offset that is only hours its minutes: GMT+8 is GMT+08:00.
func fullOffset(id string) string {
	sign := strings.IndexAny(id, "+-")
	if sign < 0 || strings.Contains(id, ":") {
		return id
	}
	switch digits := id[sign+1:]; len(digits) {
	case 1:
		return id[:sign+1] + "0" + digits + ":00"
	case 2:
		return id + ":00"
	}
	return id
}

// unusualNames are the names of the time zone database, or parts between slashes of them, that are not written with a capital at the start of each word and
// small letters otherwise.
var unusualNames = func() map[string]string {
	names := map[string]string{}
	for name := range strings.FieldsSeq("Port-au-Prince Port_of_Spain Dar_es_Salaam Isle_of_Man DumontDUrville McMurdo ComodRivadavia EasterIsland DeNoronha BajaNorte BajaSur " +
		"Knox_IN GB GB-Eire NZ NZ-CHAT PRC ROK UCT UTC GMT GMT0 GMT+0 GMT-0 EST MST HST EST5EDT CST6CDT MST7MDT PST8PDT WET CET MET EET W-SU US ACT LHI NSW Etc AST4ADT YST9YDT") {
		names[strings.ToLower(name)] = name
	}
	return names
}()

// properCase writes a name as the time zone database does, whose files are found by their exact names only.
func properCase(id string) string {
	parts := strings.Split(strings.ToLower(id), "/")
	for i, part := range parts {
		if name, ok := unusualNames[part]; ok {
			parts[i] = name
			continue
		}
		if strings.HasPrefix(part, "gmt") {
			parts[i] = strings.ToUpper(part)
			continue
		}
		start := true
		parts[i] = strings.Map(func(r rune) rune {
			if start {
				r = unicode.ToUpper(r)
			}
			start = r == '_' || r == '-'
			return r
		}, part)
	}
	return strings.Join(parts, "/")
}

// zoneReader reads a column of zone ids.
type zoneReader struct {
	at     ast.Start
	text   textReader
	ids    texts
	loaded map[string]*time.Location
	last   string
	zone   *time.Location // of last; nil = none yet
}

// read prepares for the rows of v; nil is a function without the argument.
func (r *zoneReader) read(v *column.Vector) {
	r.ids = texts{emptyOnly, nullOnly}
	if v != nil {
		r.ids = r.text.read(v)
	}
}

// of returns the zone of row i, that of the query where there is none.
func (r *zoneReader) of(env *Env, i int) (*time.Location, error) {
	if isNull(r.ids.nulls, i) {
		return env.zone(), nil
	}
	id := at(r.ids.values, i)
	if r.zone != nil && id == r.last {
		return r.zone, nil
	}
	zone, ok := r.loaded[id]
	id = strings.Clone(id) // a text of a column is gone with its batch
	if !ok {
		var err error
		if zone, err = zoneNamed(env, id); err != nil {
			return nil, r.at.Errorf("Invalid time zone: '%s'", id)
		}
		if r.loaded == nil {
			r.loaded = map[string]*time.Location{}
		}
		r.loaded[id] = zone
	}
	r.last, r.zone = id, zone
	return zone, nil
}

// zoneNamed resolves an id; auto and an empty one are that of the query.
func zoneNamed(env *Env, id string) (*time.Location, error) {
	if id == "" || strings.EqualFold(id, "auto") {
		return env.zone(), nil
	}
	return LoadZone(id)
}
