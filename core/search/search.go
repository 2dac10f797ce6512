// Package search finds series by words: names, labels, tags and dates of a series, its metric and its entity. A query is parsed once (parse.go), then
// matched against the live catalog, series by series (match.go); there is no index to build or to refresh.
//
// # Relevance
//
// Each term or phrase of the query that a series matches adds to its relevance
//
//	idf x boost,  idf = 1 + ln(N / n)
//
// for N readable series, n of which match the term (the inverse document frequency of Sparck Jones, 1972). The boost is 2 where a whole name,
// label or value equals the term, 1 where a word of it does. A term with a wildcard adds 1.0 whatever it matches. What is excluded by NOT adds nothing.
package search

import (
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
)

// Document is one series with what belongs to it.
type Document struct {
	Key    core.SeriesKey
	Serial uint64    // ascends in the order of creation
	Last   core.Time // of the newest sample
	Metric *core.Metric
	Entity *core.Entity
}

// Hit is a found series.
type Hit struct {
	Document
	Relevance float64
}

// Synonyms maps a lower-case word to all words that stand for the same, itself included.
type Synonyms map[string][]string

// ParseSynonyms reads lines of the form `word => synonym, synonym`; empty lines and those that start with # do not count. The error names the line.
func ParseSynonyms(text string) (Synonyms, error) {
	s := Synonyms{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.ToLower(strings.TrimSpace(line))
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		word, list, ok := strings.Cut(line, "=>")
		group := []string{strings.TrimSpace(word)}
		for synonym := range strings.SplitSeq(list, ",") {
			group = append(group, strings.TrimSpace(synonym))
		}
		if !ok || slices.Contains(group, "") {
			return nil, core.Errorf(core.Invalid, "synonyms line %d: expected `word => synonym, synonym`, found %q", n, line)
		}
		for _, w := range group {
			s[w] = mergeWords(s[w], group)
		}
	}
	return s, nil
}

func mergeWords(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// Query is a parsed search expression. It is immutable and safe for concurrent use.
type Query struct {
	root   *node
	leaves []*node // terms and phrases, in the order of the text
}

// Expand returns the query with the synonyms of its terms; terms with wildcards and phrases stay as they are.
func (q *Query) Expand(s Synonyms) *Query {
	for _, leaf := range q.leaves {
		if leaf.kind == nodeTerm && !leaf.wild {
			leaf.same = s[leaf.text]
		}
	}
	return q
}

// String is the parsed form: every term with its field, `+` where all have to match, `-` where none may.
func (q *Query) String() string {
	var b strings.Builder
	q.root.print(&b, true)
	return b.String()
}

// Page is which of the hits are wanted.
type Page struct {
	Offset, Limit int // of the hits, the most relevant first
	// Keep is told whenever one more hit is kept in memory, with their number; its error ends the search. nil = as many as the page needs.
	Keep func(n int) error
}

// Result is what a search found.
type Result struct {
	Hits  []Hit // of the page, the most relevant first, equals in the order of their serials
	Found int   // documents that match
	Total int   // documents
}

// Run matches the documents, each of which is seen once and in any order. What it keeps depends on the page and on the number of its terms, not on the number
// of documents.
func (q *Query) Run(documents iter.Seq2[Document, error], p Page) (Result, error) {
	m := newMatcher(q)
	var r Result
	var k kept
	reach := p.Offset + min(p.Limit, math.MaxInt-p.Offset)
	for d, err := range documents {
		if err != nil {
			return Result{}, err
		}
		r.Total++
		m.load(d)
		for i := range q.leaves {
			if m.boost[i] > 0 {
				m.found[i]++
			}
		}
		if !m.matches(q.root) {
			continue
		}
		r.Found++
		if k.add(m.boost, d, reach) && p.Keep != nil {
			if err := p.Keep(k.count); err != nil {
				return Result{}, err
			}
		}
	}
	hits := k.hits(func(boost []uint8) float64 { return q.relevance(boost, r.Total, m.found) })
	hits = hits[min(p.Offset, len(hits)):]
	r.Hits = hits[:min(p.Limit, len(hits))]
	return r, nil
}

// relevance is the formula of the package comment. found are the documents by leaf.
func (q *Query) relevance(boost []uint8, total int, found []int) float64 {
	sum := 0.0
	for leaf, b := range boost {
		switch n := q.leaves[leaf]; {
		case b == 0 || n.excluded:
		case n.wild:
			sum++
		default:
			sum += float64(b) * (1 + math.Log(float64(total)/float64(found[leaf])))
		}
	}
	return sum
}
