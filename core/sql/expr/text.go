package expr

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/tidemark-db/tidemark/core/sql/column"
)

func textFunctions() map[string]definition {
	return map[string]definition{
		"upper": {1, 1, mapping(upper)},
		"lower": {1, 1, mapping(strings.ToLower)},
		"length": {1, 1, func(c *call) (Node, error) {
			return scalar{kind: column.Integer, args: c.args, lenient: 1, make: lengthKernel}.node(), nil
		}},
		"concat": {2, -1, func(c *call) (Node, error) {
			return scalar{kind: column.String, args: c.args, lenient: ^uint(0), make: concatKernel}.node(), nil
		}},
		"replace": {3, 3, func(c *call) (Node, error) {
			return scalar{kind: column.String, args: c.args, lenient: 0b010, make: replaceKernel}.node(), nil
		}},
		"locate": {2, 3, func(c *call) (Node, error) {
			return scalar{kind: column.Integer, args: c.args, make: locateKernel}.node(), nil
		}},
		"substr": {2, 3, func(c *call) (Node, error) {
			return scalar{kind: column.String, args: c.args, make: substrKernel}.node(), nil
		}},
		TagsObject: {2, -1, func(c *call) (Node, error) {
			return scalar{kind: column.String, args: c.args, lenient: ^uint(0), make: tagsKernel}.node(), nil
		}},
	}
}

// TagsObject is the function that makes a JSON object of tags: its arguments are names and values by turns, sorted by name. A tag without a value, NULL, is left out;
// without any the result is NULL. No statement can name it.
const TagsObject = "tags object"

// capitals are the letters whose capitals are several.
var capitals = strings.NewReplacer("ß", "SS", "ŉ", "ʼN", "ǰ", "J̌", "ﬀ", "FF", "ﬁ", "FI", "ﬂ", "FL", "ﬃ", "FFI", "ﬄ", "FFL", "ﬅ", "ST", "ﬆ", "ST")

func upper(s string) string { return strings.ToUpper(capitals.Replace(s)) }

// mapping is a function of one text. Runs of the same text are mapped once.
func mapping(f func(string) string) func(c *call) (Node, error) {
	return func(c *call) (Node, error) {
		return scalar{kind: column.String, args: c.args, make: func() kernel {
			var reader textReader
			var room growth
			return func(env *Env, args []*column.Vector, rows int, out *result) error {
				s := reader.read(args[0])
				dst := out.makeStrings(rows)
				size := int64(0)
				for i := range dst {
					if i > 0 && at(s.values, i) == at(s.values, i-1) {
						dst[i] = dst[i-1]
						continue
					}
					dst[i] = f(at(s.values, i))
					size += int64(len(dst[i]))
					if err := room.to(env, size); err != nil {
						return err
					}
				}
				out.unite(rows, s.nulls) // NaN has no text
				return nil
			}
		}}.node(), nil
	}
}

// lengthKernel counts characters; NULL has none of them.
func lengthKernel() kernel {
	var reader textReader
	return func(_ *Env, args []*column.Vector, rows int, out *result) error {
		s := reader.read(args[0])
		for i := range out.makeInts(rows) {
			out.v.Ints[i] = 0
			if !isNull(s.nulls, i) {
				out.v.Ints[i] = int64(utf8.RuneCountInString(at(s.values, i)))
			}
		}
		return nil
	}
}

// concatKernel joins texts; those that are NULL or NaN are empty. The texts of a batch lie in one allocation.
func concatKernel() kernel {
	var bytes []byte
	var ends []int
	var room growth
	return func(env *Env, args []*column.Vector, rows int, out *result) error {
		bytes, ends = bytes[:0], sized(ends, rows)
		for i := range rows {
			for _, a := range args {
				if a.Strings != nil && a.Nulls == nil {
					bytes = append(bytes, a.Strings[a.Index(i)]...)
					continue
				}
				bytes = a.Value(i).AppendText(bytes)
			}
			ends[i] = len(bytes)
			if err := room.to(env, 2*int64(len(bytes))); err != nil { // they are copied once
				return err
			}
		}
		all, from := string(bytes), 0
		dst := out.makeStrings(rows)
		for i, end := range ends {
			dst[i] = all[from:end]
			from = end
		}
		return nil
	}
}

// tagsKernel makes JSON objects.
func tagsKernel() kernel {
	var room growth
	return func(env *Env, args []*column.Vector, rows int, out *result) error {
		dst := out.makeStrings(rows)
		var b strings.Builder
		to := json.NewEncoder(&b)
		to.SetEscapeHTML(false)
		size := int64(0)
		for i := range dst {
			tags := map[string]string{} // the encoder sorts it
			for k := 0; k+1 < len(args); k += 2 {
				if text, ok := args[k+1].AsText(i); ok {
					name, _ := args[k].AsText(i)
					tags[name] = text
				}
			}
			if dst[i] = ""; len(tags) == 0 {
				out.makeNulls(rows)[i] = true
				continue
			}
			b.Reset()
			if err := to.Encode(tags); err != nil {
				return err
			}
			dst[i] = strings.TrimSuffix(b.String(), "\n")
			size += int64(len(dst[i]))
			if err := room.to(env, size); err != nil {
				return err
			}
		}
		return nil
	}
}

// replaceKernel puts one text in the place of another. Where there is nothing to look for, nothing is replaced.
func replaceKernel() kernel {
	var text, what, by textReader
	var room growth
	return func(env *Env, args []*column.Vector, rows int, out *result) error {
		size := int64(0)
		s, find, put := text.read(args[0]), what.read(args[1]), by.read(args[2])
		dst := out.makeStrings(rows)
		for i := range dst {
			dst[i] = at(s.values, i)
			if old := at(find.values, i); old != "" && !isNull(find.nulls, i) && !isNull(s.nulls, i) {
				put := at(put.values, i)
				if size += int64(len(dst[i])); len(put) > len(old) {
					size += int64(strings.Count(dst[i], old)) * int64(len(put)-len(old))
				}
				if err := room.to(env, size); err != nil {
					return err
				}
				dst[i] = strings.ReplaceAll(dst[i], old, put)
			}
		}
		out.unite(rows, s.nulls, put.nulls)
		return nil
	}
}

// locateKernel finds a text at or after a character, counted from 1.
func locateKernel() kernel {
	var what, text textReader
	var first numberReader
	return func(_ *Env, args []*column.Vector, rows int, out *result) error {
		find, s := what.read(args[0]), text.read(args[1])
		start := numbers{values: []float64{1}}
		if len(args) > 2 {
			start = first.read(args[2])
		}
		dst := out.makeInts(rows)
		for i := range dst {
			if dst[i] = 0; !isNull(find.nulls, i) && !isNull(s.nulls, i) {
				dst[i] = locate(at(find.values, i), at(s.values, i), start.at(i))
			}
		}
		out.unite(rows, find.nulls, s.nulls)
		return nil
	}
}

func locate(find, s string, start float64) int64 {
	skipped := int64(0)
	if start > 1 {
		rest, ok := skipRunes(s, start-1)
		if !ok {
			return 0
		}
		skipped = int64(utf8.RuneCountInString(s) - utf8.RuneCountInString(rest))
		s = rest
	}
	before := strings.Index(s, find)
	if before < 0 {
		return 0
	}
	return skipped + int64(utf8.RuneCountInString(s[:before])) + 1
}

// skipRunes cuts n characters off; ok is false when there are fewer.
func skipRunes(s string, n float64) (rest string, ok bool) {
	for ; n >= 1; n-- {
		_, size := utf8.DecodeRuneInString(s)
		if size == 0 {
			return "", false
		}
		s = s[size:]
	}
	return s, true
}

// substrKernel cuts a part out of a text, counted in characters from 1.
func substrKernel() kernel {
	var text textReader
	var first, count numberReader
	return func(_ *Env, args []*column.Vector, rows int, out *result) error {
		s, start := text.read(args[0]), first.read(args[1])
		length := numbers{values: []float64{0}}
		if len(args) > 2 {
			length = count.read(args[2])
		}
		dst := out.makeStrings(rows)
		for i := range dst {
			from, count := start.at(i), length.at(i)
			if dst[i] = ""; from != from || count != count {
				out.makeNulls(rows)[i] = true
				continue
			}
			dst[i] = substr(at(s.values, i), from, count)
		}
		out.unite(rows, s.nulls)
		return nil
	}
}

// substr takes length characters, 0 or less for all that follow, from start, where 0 is 1 and what lies before the text is its beginning.
func substr(s string, start, length float64) string {
	s, _ = skipRunes(s, start-1)
	if !(length >= 1) {
		return s
	}
	rest, ok := skipRunes(s, length)
	if !ok {
		return s
	}
	return s[:len(s)-len(rest)]
}
