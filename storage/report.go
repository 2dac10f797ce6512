package storage

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/index"
	"github.com/tidemark-db/tidemark/storage/journal"
)

// Report is what Open found and did, for the log and for /health.
type Report struct {
	Files      int           `json:"files"` // of the manifest that were opened
	Segments   int           `json:"segments"`
	Frames     int           `json:"frames"`
	First      core.Position `json:"first"`
	Last       core.Position `json:"last"`
	Series     int           `json:"series"`
	Samples    int           `json:"samples"`
	TornBytes  int64         `json:"tornBytes"`            // cut from the end: writes that nobody had been told were stored
	Damage     []string      `json:"damage,omitempty"`     // ranges that were stored and cannot be read any more
	Unreadable []string      `json:"unreadable,omitempty"` // sound frames that this program could not decode or apply; at most maxListed are listed
	Skipped    int           `json:"skipped"`              // frames of that kind
	Warnings   []string      `json:"warnings,omitempty"`   // repairs that could not be done yet
	Duration   time.Duration `json:"durationNs"`
}

// maxListed bounds the list of unreadable frames: the first few tell what is wrong.
const maxListed = 20

func (r *Report) addJournal(found journal.Recovery) {
	r.Segments, r.Frames, r.First, r.Last = found.Segments, found.Frames, core.Position(found.First), core.Position(found.Last)
	if found.Torn != nil {
		r.TornBytes = found.Torn.Bytes
	}
	for _, d := range found.Damage {
		r.addDamage(d.String())
	}
	for _, err := range found.Warnings {
		r.Warnings = append(r.Warnings, err.Error())
	}
}

func (r *Report) addDamage(text string) { r.Damage = append(r.Damage, text) }

func (r *Report) addUnreadable(p journal.Position, err error) {
	if r.Skipped++; len(r.Unreadable) < maxListed {
		r.Unreadable = append(r.Unreadable, fmt.Sprintf("position %d: %v", p, err))
	}
}

// Damaged reports whether anything that was acknowledged may be missing.
func (r Report) Damaged() bool { return len(r.Damage) > 0 || r.Skipped > 0 }

// String is one line for the log, with a line more for each damaged range.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "recovered %d files and %d frames (positions %d to %d) from %d segments, %d series, %d samples from the journal, in %v", r.Files, r.Frames, r.First, r.Last,
		r.Segments, r.Series, r.Samples, r.Duration.Round(time.Millisecond))
	if r.TornBytes > 0 {
		fmt.Fprintf(&b, "; cut %d bytes of an unfinished write", r.TornBytes)
	}
	if r.Skipped > 0 {
		fmt.Fprintf(&b, "; passed over %d frames that cannot be read", r.Skipped)
	}
	for _, list := range [][]string{r.Damage, r.Unreadable, r.Warnings} {
		for _, line := range list {
			b.WriteString("\n  " + line)
		}
	}
	return b.String()
}

// Status is a moment's view of an open database, for /health and /metrics.
type Status struct {
	Journal  journal.Status
	End      core.Position
	Series   int
	Messages int
	Records  int // property records
	History  int // rows of the alert history
	Ring     int // bytes of batches in memory
	Cache    index.CacheStats
}

// Status returns the state of the database. Journal.Unavailable says why writes fail, when they do.
func (db *DB) Status() Status {
	s := Status{Journal: db.journal.Status(), Series: db.index.Len(), Messages: db.msgs.len(), Records: db.props.Len(),
		History: db.history.rows.Len(), Cache: db.index.Cache()}
	db.ring.mu.RLock()
	defer db.ring.mu.RUnlock()
	s.End, s.Ring = db.ring.end, db.ring.bytes
	return s
}
