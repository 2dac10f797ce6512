package expr

import (
	"slices"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
	"github.com/tidemark-db/tidemark/core/sql/column"
)

// databaseFunctions ask the database. They are evaluated only on rows that need them: an unknown table is an error of the row that looks into it.
func databaseFunctions() map[string]definition {
	return map[string]definition{
		"lookup":             {2, 2, lookup},
		"collection":         {1, 1, collectionText},
		"is_entity_in_group": {2, 2, inGroup},
		"entity_tag":         {2, 3, entityTag},
		"property":           {2, 4, property},
	}
}

const asks = usesEnv | mayFail | costly

// asking is a function of texts that asks the database. Rows that follow each other with the same arguments ask once.
type asking struct {
	kind column.Type
	args []Node
	ask  func(env *Env, args []string) (column.Value, error)
}

func (a asking) node() Node {
	return scalar{kind: a.kind, args: a.args, flags: asks, make: func() kernel {
		n := len(a.args)
		readers, lists, now, last := make([]textReader, n), make([]texts, n), make([]string, n), make([]string, n)
		return func(env *Env, args []*column.Vector, rows int, out *result) error {
			if a.kind == column.String {
				clear(out.makeStrings(rows))
			} else {
				clear(out.makeInts(rows))
			}
			for j := range lists {
				lists[j] = readers[j].read(args[j])
				out.unite(rows, lists[j].nulls)
			}
			var answer column.Value
			known := false
			for i := range rows {
				if out.skip(i) {
					continue
				}
				for j := range lists {
					now[j] = at(lists[j].values, i)
				}
				if !known || !slices.Equal(now, last) {
					cloneTexts(last, now)
					var err error
					if answer, err = a.ask(env, last); err != nil {
						return err
					}
					known = true
				}
				a.store(out, rows, i, answer)
			}
			return nil
		}
	}}.node()
}

// cloneTexts copies texts that whoever is asked may keep: texts of a column are gone with its batch.
func cloneTexts(dst, src []string) {
	for i, s := range src {
		dst[i] = strings.Clone(s)
	}
}

// store sets row i.
func (a asking) store(out *result, rows, i int, v column.Value) {
	switch {
	case v.IsNull():
		out.makeNulls(rows)[i] = true
	case a.kind == column.String:
		out.v.Strings[i] = v.Text
	default:
		out.v.Ints[i] = v.Int
	}
}

func lookup(c *call) (Node, error) {
	return asking{kind: column.String, args: c.args, ask: func(env *Env, s []string) (column.Value, error) {
		value, found, exists, err := env.Facts.Lookup(s[0], s[1])
		switch {
		case err != nil:
			return column.NullValue, err
		case !exists:
			return column.NullValue, c.at.Errorf("Lookup table not found for name '%s'", s[0])
		case !found:
			return column.NullValue, nil
		}
		return column.TextValue(value), nil
	}}.node(), nil
}

func collectionText(c *call) (Node, error) {
	return asking{kind: column.String, args: c.args, ask: func(env *Env, s []string) (column.Value, error) {
		values, err := collection(env, s[0], c.at)
		if err != nil {
			return column.NullValue, err
		}
		return column.TextValue(jsonList(values)), nil
	}}.node(), nil
}

func inGroup(c *call) (Node, error) {
	return asking{kind: column.Boolean, args: c.args, ask: func(env *Env, s []string) (column.Value, error) {
		groups, err := env.Facts.Groups(strings.ToLower(s[0]))
		return column.BoolValue(slices.Contains(groups, s[1])), err
	}}.node(), nil
}

// entityTag is ENTITY_TAG(entity, tag, version).
func entityTag(c *call) (Node, error) {
	args := c.args
	if len(args) > 2 {
		args = []Node{args[0], args[1], Cast(Instant(args[2], c.at), "string")}
	}
	return asking{kind: column.String, args: args, ask: func(env *Env, s []string) (column.Value, error) {
		version := env.Version
		if len(s) > 2 {
			t := core.Time(calc.Saturated(column.ParseFloat(s[2])))
			version = &t
		}
		entity, ok, err := env.Facts.Entity(strings.ToLower(s[0]), version)
		if err != nil || !ok {
			return column.NullValue, err
		}
		tag, ok := entity.Tags[strings.ToLower(s[1])]
		if !ok {
			return column.NullValue, nil
		}
		return column.TextValue(tag), nil
	}}.node(), nil
}

// property is PROPERTY(entity, search, since, merge).
func property(c *call) (Node, error) {
	args := slices.Clone(c.args)
	if len(args) > 2 {
		args[2] = Cast(Instant(args[2], c.at), "string")
	}
	return asking{kind: column.String, args: args, ask: func(env *Env, s []string) (column.Value, error) {
		since, merge := core.MinTime, false
		if len(s) > 2 {
			since = core.Time(calc.Saturated(column.ParseFloat(s[2])))
		}
		if len(s) > 3 {
			merge = strings.EqualFold(s[3], "true")
		}
		text, err := env.Facts.Property(strings.ToLower(s[0]), s[1], since, merge)
		return column.TextValue(text), err
	}}.node(), nil
}
