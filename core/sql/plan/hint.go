package plan

import (
	"errors"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/nearest"
	"github.com/tidemark-db/tidemark/core/sql/ast"
)

// hint adds what may have been meant to an error.
func hint(err error, meant string) error {
	var statement *ast.Error
	if meant != "" && errors.As(err, &statement) {
		statement.Hint = `did you mean "` + meant + `"?`
	}
	return err
}

// suggest finds the column or alias that is most like an unknown name.
func (b *binder) suggest(n *ast.Name) string {
	var known []string
	for _, it := range b.items {
		if it.alias != nil {
			known = append(known, it.alias.Text)
		}
	}
	for _, t := range b.tables {
		switch t.kind {
		case viewTable:
			for _, c := range t.view.query.Columns {
				known = append(known, c.Label)
			}
		case seriesTable:
			known = append(known, "time", "datetime", "value", "text", "metric", "entity", "tags")
			for _, f := range entityFields {
				known = append(known, "entity."+f.name)
			}
			for _, f := range metricFields {
				known = append(known, "metric."+f.name)
			}
		case entityTable:
			known = append(known, namesOf(entityFields)...)
		case metricTable:
			known = append(known, namesOf(metricFields)...)
		default:
			known = append(append(known, "time", "datetime", "entity", "tags"), namesOf(recordFields[t.kind])...)
		}
	}
	return similar(pathOf(n.Parts), known)
}

func namesOf(list []field) []string {
	out := make([]string, len(list))
	for i, f := range list {
		out[i] = f.name
	}
	return out
}

// similarMetric finds the metric that is most like an unknown name, among the first of them.
func (b *binder) similarMetric(name string) string {
	if b.Metadata == nil {
		return ""
	}
	const most = 10_000 // names that are looked at: some milliseconds
	var known []string
	for m, err := range b.Metadata.Metrics(b.ctx, core.MetaQuery{}) {
		if err != nil || len(known) == most {
			break
		}
		known = append(known, m.Name)
	}
	return similar(name, known)
}

// similar finds the known name that is most like an unknown one: of long names more may differ.
func similar(name string, known []string) string {
	return nearest.Name(name, known, min(len(name)/3+2, len(name)))
}
