package column

import "github.com/tidemark-db/tidemark/core"

// Builder makes a vector row by row. The type of the vector is given; numeric vectors keep Ints until a number comes that needs Floats, vectors of type
// Object keep values as they are.
type Builder struct{ v Vector }

// NewBuilder returns a builder of vectors of a type.
func NewBuilder(t Type) *Builder { return &Builder{Vector{Type: t}} }

// Reset empties the builder, and keeps its memory for the next vector: that of Vector is no longer valid.
func (b *Builder) Reset(t Type) {
	v := &b.v
	*v = Vector{Type: t, Ints: v.Ints[:0], Floats: v.Floats[:0], Strings: v.Strings[:0], Values: v.Values[:0], Nulls: v.Nulls[:0]}
}

// Len returns how many rows there are.
func (b *Builder) Len() int { return b.v.Len }

// Vector returns the rows so far. It shares its memory with the builder: it is valid until Reset.
func (b *Builder) Vector() *Vector {
	v := b.v
	v.Ints, v.Floats, v.Strings, v.Values = nil, nil, nil, nil
	if len(v.Nulls) == 0 {
		v.Nulls = nil
	}
	switch {
	case v.Type == Null:
		v.Nulls = nil
	case v.Type == Object:
		v.Values = notNil(b.v.Values)
	case v.Type == String:
		v.Strings = notNil(b.v.Strings)
	case len(b.v.Floats) > 0:
		v.Floats = b.v.Floats
	default:
		v.Ints = notNil(b.v.Ints)
	}
	return &v
}

// notNil tells an empty column of a kind from one of another kind.
func notNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// AppendNull adds NULL.
func (b *Builder) AppendNull() {
	b.push(NullValue)
	if b.v.Type == Null {
		return
	}
	for len(b.v.Nulls) < b.v.Len {
		b.v.Nulls = append(b.v.Nulls, false)
	}
	b.v.Nulls[b.v.Len-1] = true
}

// Append adds a value, whose type is that of the builder or, for numbers, another numeric one.
func (b *Builder) Append(x Value) {
	if x.Type == Null {
		b.AppendNull()
		return
	}
	b.push(x)
	if len(b.v.Nulls) > 0 {
		b.v.Nulls = append(b.v.Nulls, false)
	}
}

// push adds a value without its mark of NULL. In a numeric vector NULL does not decide between Ints and Floats.
func (b *Builder) push(x Value) {
	v := &b.v
	v.Len++
	switch {
	case v.Type == Null:
	case v.Type == Object:
		v.Values = append(v.Values, x)
	case v.Type == String:
		v.Strings = append(v.Strings, x.Text)
	case len(v.Floats) > 0 && x.Text == "" && !x.isInt(): // the usual case, cheaply
		v.Floats = append(v.Floats, x.Float)
	case len(v.Floats) > 0:
		b.pushFloat(x)
	case x.Type.Numeric() && !x.Whole:
		whole := v.Ints
		v.Ints, v.Len = v.Ints[:0], 0
		for _, i := range whole {
			v.Len++
			b.pushFloat(IntValue(Bigint, i))
		}
		v.Len++
		b.pushFloat(x)
	default:
		v.Ints = append(v.Ints, x.Int)
	}
}

// pushFloat adds a number to Floats, as row Len - 1.
func (b *Builder) pushFloat(x Value) {
	b.v.Floats = append(b.v.Floats, x.anyFloat())
	if !x.isInt() && x.Text == "" {
		return
	}
	if d, ok := x.Decimal(); ok {
		b.v.Exact = append(b.v.Exact, core.DecimalAt{Index: uint32(b.v.Len - 1), Decimal: d})
	}
}

func (v Value) anyFloat() float64 {
	if v.isInt() || v.Type == Null {
		return float64(v.Int)
	}
	return v.Float
}

// AppendInt adds a whole number, an instant or a boolean.
func (b *Builder) AppendInt(i int64) { b.Append(IntValue(b.kind(Bigint), i)) }

// AppendFloat adds a number.
func (b *Builder) AppendFloat(f float64) { b.Append(FloatValue(b.kind(Double), f)) }

// AppendText adds a string.
func (b *Builder) AppendText(s string) { b.Append(TextValue(s)) }

// kind is the type of what is added without one.
func (b *Builder) kind(otherwise Type) Type {
	if b.v.Type == Object || b.v.Type == Null {
		return otherwise
	}
	return b.v.Type
}

// AppendRow adds row i of another vector.
func (b *Builder) AppendRow(v *Vector, i int) { b.Append(v.Value(i)) }

// AppendVector adds all rows of another vector; their texts are not copied.
func (b *Builder) AppendVector(from *Vector) {
	v := &b.v
	if from.Const || from.Nulls != nil || from.Type != v.Type || len(v.Nulls) > 0 {
		for i := range from.Len {
			b.Append(from.Value(i))
		}
		return
	}
	switch {
	case from.Strings != nil:
		v.Strings = append(v.Strings, from.Strings[:from.Len]...)
	case from.Values != nil:
		v.Values = append(v.Values, from.Values[:from.Len]...)
	case from.Floats != nil && len(v.Ints) == 0:
		v.Floats = append(v.Floats, from.Floats[:from.Len]...)
		for _, d := range from.Exact {
			v.Exact = append(v.Exact, core.DecimalAt{Index: d.Index + uint32(v.Len), Decimal: d.Decimal})
		}
	case from.Ints != nil && len(v.Floats) == 0:
		v.Ints = append(v.Ints, from.Ints[:from.Len]...)
	default:
		for i := range from.Len {
			b.Append(from.Value(i))
		}
		return
	}
	v.Len += from.Len
}

// Gather returns the given rows of v, in that order. The vector has memory of its own, that of into when it is not nil and large enough; into may not be v.
func (v *Vector) Gather(rows []int32, into *Vector) *Vector {
	n := len(rows)
	if v.Const {
		out := *v
		out.Len = n
		return &out
	}
	if into == nil {
		into = &Vector{}
	}
	ints, floats, strings, values, nulls := into.Ints, into.Floats, into.Strings, into.Values, into.Nulls
	*into = Vector{Type: v.Type, Len: n}
	if v.Ints != nil {
		into.Ints = pick(ints, v.Ints, rows)
	}
	if v.Floats != nil {
		into.Floats = pick(floats, v.Floats, rows)
	}
	if v.Strings != nil {
		into.Strings = pick(strings, v.Strings, rows)
	}
	if v.Values != nil {
		into.Values = pick(values, v.Values, rows)
	}
	if v.Nulls != nil {
		into.Nulls = pick(nulls, v.Nulls, rows)
	}
	if v.Exact != nil {
		into.Exact = pickExact(v.Exact, rows)
	}
	return into
}

func pick[T any](dst, src []T, rows []int32) []T {
	if cap(dst) < len(rows) {
		dst = make([]T, len(rows))
	}
	dst = dst[:len(rows)]
	for i, row := range rows {
		dst[i] = src[row]
	}
	return dst
}

// Slice returns the rows from from, inclusive, to to, exclusive. It shares the memory of v.
func (v *Vector) Slice(from, to int) *Vector {
	out := *v
	out.Len = to - from
	if v.Const {
		return &out
	}
	out.Ints, out.Floats, out.Strings = part(v.Ints, from, to), part(v.Floats, from, to), part(v.Strings, from, to)
	out.Values, out.Nulls = part(v.Values, from, to), part(v.Nulls, from, to)
	out.Exact = sliceExact(v.Exact, from, to)
	return &out
}

func part[T any](s []T, from, to int) []T {
	if s == nil {
		return nil
	}
	return s[from:to:to]
}

// Gather returns the given rows of a batch, with memory of their own. Columns that are nil stay nil.
func (b *Batch) Gather(rows []int32) *Batch {
	out := &Batch{Len: len(rows), Columns: make([]*Vector, len(b.Columns))}
	for i, v := range b.Columns {
		if v != nil {
			out.Columns[i] = v.Gather(rows, nil)
		}
	}
	return out
}

// Slice returns some rows of a batch, which share its memory.
func (b *Batch) Slice(from, to int) *Batch {
	out := &Batch{Len: to - from, Columns: make([]*Vector, len(b.Columns))}
	for i, v := range b.Columns {
		if v != nil {
			out.Columns[i] = v.Slice(from, to)
		}
	}
	return out
}
