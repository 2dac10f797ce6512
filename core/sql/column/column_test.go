package column

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/calc"
)

var (
	nan = math.NaN()
	inf = math.Inf(1)
)

// The examples of the contract, and ties on both sides of zero.
func TestShortTexts(t *testing.T) {
	for _, test := range []struct {
		f    float64
		want string
	}{
		{3, "3"}, {3.10, "3.1"}, {3.1415, "3.14"}, {0.004, "0"}, {-2.345, "-2.34"}, {2.345, "2.34"}, {0.125, "0.12"}, {12.347, "12.35"}, {0.1250001, "0.13"}, {0.006, "0.01"},
		{-0.006, "-0.01"}, {-0.004, "0"}, {0, "0"}, {math.Copysign(0, -1), "0"}, {1e15, "1000000000000000"}, {1e21, "1000000000000000000000"}, {123456789.987, "123456789.99"},
		{0.995, "0.99"}, {0.9951, "1"}, {1.0 / 3, "0.33"}, {2.0 / 3, "0.67"}, {1e-300, "0"}, {100000000000000.1, "100000000000000.1"}, {4503599627370495.5, "4503599627370495.5"},
		{inf, "Infinity"}, {-inf, "-Infinity"}, {nan, ""},
	} {
		if got := string(AppendShort(nil, test.f)); got != test.want {
			t.Errorf("%v is %q, want %q", test.f, got, test.want)
		}
	}
}

// FuzzShort compares with rounding the digits of the shortest text by hand.
func FuzzShort(f *testing.F) {
	for _, v := range []float64{2.345, 0.125, 1e20, -0.999, 5e-324, 12345678.995} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v float64) {
		if v-v != 0 {
			return
		}
		text, digits, _ := strings.Cut(strconv.FormatFloat(math.Abs(v), 'f', -1, 64), ".")
		number := []byte(text + (digits + "00")[:2])
		if len(digits) > 2 && (digits[2] > '5' || digits[2] == '5' && len(digits) > 3) {
			i := len(number) - 1
			for i >= 0 && number[i] == '9' {
				number[i] = '0'
				i--
			}
			if i < 0 {
				number = append([]byte("1"), number...)
			} else {
				number[i]++
			}
		}
		point := len(number) - 2
		want := strings.TrimSuffix(strings.TrimRight(string(number[:point])+"."+string(number[point:]), "0"), ".")
		if v < 0 && want != "0" {
			want = "-" + want
		}
		if got := string(AppendShort(nil, v)); got != want {
			t.Errorf("%v is %s, want %s", v, got, want)
		}
	})
}

func TestFormat(t *testing.T) {
	for _, test := range []struct {
		v    Value
		want string
	}{
		{FloatValue(Double, 24.5), "24.5"}, {FloatValue(Double, 7), "7"}, {FloatValue(Double, 1693287308), "1693287308"}, {FloatValue(Double, nan), "NaN"},
		{FloatValue(Double, inf), "Infinity"}, {FloatValue(Double, -inf), "-Infinity"}, {FloatValue(Float, 0.1), "0.1"}, {FloatValue(Double, 1e21), "1000000000000000000000"},
		{IntValue(Bigint, math.MinInt64), "-9223372036854775808"}, {TimeValue(1709546400000), "2024-03-04T10:00:00.000Z"}, {TextValue("a"), "a"}, {BoolValue(true), "true"},
		{BoolValue(false), "false"}, {NullValue, ""}, {Value{Type: Double, Text: "0.0"}, "0.0"},
	} {
		if got := test.v.Format(); got != test.want {
			t.Errorf("%+v is %q, want %q", test.v, got, test.want)
		}
	}
	v := &Vector{Type: Decimal, Len: 2, Floats: []float64{1, 12345678901234567890}, Exact: []core.DecimalAt{{Index: 1, Decimal: core.Decimal{Significand: 1234567890123456789, Exponent: 1}}}}
	if got := FormatValue(v, 1); got != "12345678901234567890" {
		t.Errorf("a decimal is %s", got)
	}
	if got := FormatValue(v.Gather([]int32{1, 0, 1}, nil), 2); got != "12345678901234567890" {
		t.Errorf("a gathered decimal is %s", got)
	}
	if got := FormatValue(v.Slice(1, 2), 0); got != "12345678901234567890" {
		t.Errorf("a sliced decimal is %s", got)
	}
}

// ordered are values of one kind each, in ascending order.
var ordered = map[string][]Value{
	"numbers": {NullValue, FloatValue(Double, -inf), IntValue(Bigint, math.MinInt64), IntValue(Bigint, math.MinInt64+1), FloatValue(Double, -1.5), IntValue(Bigint, -1), IntValue(Bigint, 0),
		FloatValue(Double, 5e-324), FloatValue(Double, 0.5), IntValue(Bigint, 1), FloatValue(Double, 1<<53), IntValue(Bigint, 1<<53+1), IntValue(Bigint, 1<<53+2),
		IntValue(Bigint, math.MaxInt64-1), IntValue(Bigint, math.MaxInt64), FloatValue(Double, 1<<63), FloatValue(Double, inf), FloatValue(Double, nan)},
	"texts":    {NullValue, TextValue(""), TextValue("\x00"), TextValue("\x00\x01"), TextValue("1"), TextValue("Z"), TextValue("a"), TextValue("a\x00"), TextValue("a\x00b"), TextValue("ab"), TextValue("é"), TextValue("\U0001F600")},
	"booleans": {NullValue, BoolValue(false), BoolValue(true)},
	"instants": {NullValue, TimeValue(-5), TimeValue(0), TimeValue(math.MaxInt64)},
}

// Comparisons give the same order through vectors.
func TestOrder(t *testing.T) {
	for name, values := range ordered {
		b := NewBuilder(Object)
		for _, v := range values {
			b.Append(v)
		}
		v := b.Vector()
		for i, x := range values {
			for j, y := range values {
				want := cmp.Compare(i, j)
				if got := CompareValues(x, y); got != want {
					t.Errorf("%s: %s against %s is %d", name, x.Format(), y.Format(), got)
				}
				if got := Compare(v, i, v, j); got != want {
					t.Errorf("%s: row of %s against %s is %d", name, x.Format(), y.Format(), got)
				}
			}
		}
	}
	if CompareValues(TextValue("5"), FloatValue(Double, 10)) <= 0 {
		t.Error("a text and a number are not compared as texts")
	}
	same := [][2]Value{{IntValue(Bigint, 1), FloatValue(Double, 1)}, {FloatValue(Double, 0), FloatValue(Double, math.Copysign(0, -1))}, {FloatValue(Double, nan), FloatValue(Float, -nan)}}
	for _, s := range same {
		if CompareValues(s[0], s[1]) != 0 {
			t.Errorf("%v and %v differ", s[0], s[1])
		}
	}
}

func texts(v *Vector) string {
	var list []string
	for i := range v.Len {
		if v.IsNull(i) {
			list = append(list, "NULL")
		} else {
			list = append(list, FormatValue(v, i))
		}
	}
	return strings.Join(list, " ")
}

func TestBuilder(t *testing.T) {
	b := NewBuilder(Double)
	b.AppendInt(1)
	b.AppendNull()
	if v := b.Vector(); v.Ints == nil || texts(v) != "1 NULL" {
		t.Errorf("whole numbers are %+v", v)
	}
	b.AppendFloat(2.5)
	b.AppendInt(3)
	b.AppendVector(&Vector{Type: Double, Len: 2, Ints: []int64{4, 5}})
	if v := b.Vector(); v.Floats == nil || texts(v) != "1 NULL 2.5 3 4 5" {
		t.Errorf("mixed numbers are %s", texts(v))
	}
	b.Reset(String)
	b.AppendVector(&Vector{Type: String, Const: true, Len: 2, Strings: []string{"c"}})
	b.AppendVector(&Vector{Type: String, Len: 2, Strings: []string{"x", "y"}})
	b.AppendVector(&Vector{Type: Null, Len: 1})
	b.AppendText("z")
	if v := b.Vector(); texts(v) != "c c x y NULL z" {
		t.Errorf("texts are %s", texts(v))
	}
	b.Reset(Null)
	b.AppendNull()
	if v := b.Vector(); v.Len != 1 || !v.IsNull(0) {
		t.Errorf("NULLs are %+v", v)
	}
	b.Reset(Object)
	b.Append(TextValue("a"))
	b.Append(NullValue)
	b.Append(IntValue(Bigint, 3))
	if v := b.Vector(); texts(v) != "a NULL 3" {
		t.Errorf("objects are %s", texts(v))
	}
	if v := NewBuilder(String).Vector(); v.Strings == nil || v.Len != 0 {
		t.Errorf("an empty column is %+v", v)
	}
}

func TestGatherAndSlice(t *testing.T) {
	v := &Vector{Type: Double, Len: 4, Floats: []float64{0, 1, nan, 3}, Nulls: []bool{false, true, false, false}}
	var memory Vector
	if got := texts(v.Gather([]int32{3, 1, 2, 3}, &memory)); got != "3 NULL NaN 3" {
		t.Errorf("gathered %s", got)
	}
	if got := texts(v.Slice(1, 3)); got != "NULL NaN" {
		t.Errorf("sliced %s", got)
	}
	// Memory that was filled from a constant is not written through.
	c := Constant(TextValue("c"), 5)
	into := c.Gather([]int32{1}, &memory)
	if texts(into) != "c" || into.Len != 1 {
		t.Errorf("a constant is %s", texts(into))
	}
	other := &Vector{Type: String, Len: 1, Strings: []string{"other"}}
	other.Gather([]int32{0}, &memory)
	if c.Strings[0] != "c" {
		t.Error("the constant has changed")
	}
	b := Batch{Len: 4, Columns: []*Vector{v, nil, c}}
	if got := b.Gather([]int32{0}); got.Len != 1 || got.Columns[1] != nil || texts(got.Columns[0]) != "0" {
		t.Errorf("a gathered batch is %+v", got)
	}
	if got := b.Slice(2, 4); got.Len != 2 || texts(got.Columns[2]) != "c c" {
		t.Errorf("a sliced batch is %+v", got)
	}
}

func TestTrue(t *testing.T) {
	for _, test := range []struct {
		v    *Vector
		want []int32
	}{
		{&Vector{Type: Boolean, Len: 4, Ints: []int64{1, 0, 1, 1}}, []int32{9, 0, 2, 3}},
		{&Vector{Type: Boolean, Len: 3, Ints: []int64{1, 1, 0}, Nulls: []bool{true, false, true}}, []int32{9, 1}},
		{Constant(BoolValue(true), 2), []int32{9, 0, 1}},
		{Constant(BoolValue(false), 2), []int32{9}},
		{&Vector{Type: Boolean, Const: true, Len: 2, Ints: []int64{1}, Nulls: []bool{true}}, []int32{9}},
		{Constant(NullValue, 2), []int32{9}},
		{&Vector{Type: Boolean, Ints: []int64{}}, []int32{9}},
	} {
		if got := test.v.True([]int32{9}); !slices.Equal(got, test.want) {
			t.Errorf("%+v passes %v, want %v", test.v, got, test.want)
		}
	}
}

// Vectors of each kind are ordered and read like the values in them.
func TestKindsOfVectors(t *testing.T) {
	vectors := []*Vector{
		{Type: Double, Len: 3, Floats: []float64{1.5, nan, -2}},
		{Type: Bigint, Len: 3, Ints: []int64{5, -7, 0}, Nulls: []bool{false, false, true}},
		{Type: Timestamp, Len: 3, Ints: []int64{5, 1709546400000, 0}},
		{Type: Boolean, Len: 3, Ints: []int64{1, 0, 1}},
		{Type: String, Len: 3, Strings: []string{"12.5", "a\x00", ""}},
		{Type: Object, Len: 3, Values: []Value{TextValue("7"), NullValue, FloatValue(Double, 3)}, Nulls: []bool{false, true, false}},
		{Type: String, Const: true, Len: 3, Strings: []string{"c"}},
		{Type: Null, Len: 3},
	}
	for _, v := range vectors {
		for i := range v.Len {
			x := v.Value(i)
			if f, want := v.Float(i), x.Number(); f != want && (f == f || want == want) {
				t.Errorf("%v, row %d: the number is %v, that of the value %v", v.Type, i, f, want)
			}
			text, ok := v.AsText(i)
			if want, wantOK := x.AsText(); text != want || ok != wantOK {
				t.Errorf("%v, row %d: the text is %q %v, that of the value %q %v", v.Type, i, text, ok, want, wantOK)
			}
			for j := range v.Len {
				if got, want := Compare(v, i, v, j), CompareValues(x, v.Value(j)); got != want {
					t.Errorf("%v, rows %d and %d compare as %d, their values as %d", v.Type, i, j, got, want)
				}
			}
		}
		b := NewBuilder(v.Type)
		b.AppendRow(v, 1)
		b.AppendVector(v)
		b.AppendVector(v)
		if got, want := texts(b.Vector()), texts(v.Slice(1, 2))+" "+texts(v)+" "+texts(v); got != want || b.Len() != 7 {
			t.Errorf("%v: built %s, want %s", v.Type, got, want)
		}
	}
}

func TestValues(t *testing.T) {
	if !BoolValue(true).IsTrue() || BoolValue(false).IsTrue() || NullValue.IsTrue() || IntValue(Bigint, 1).IsTrue() {
		t.Error("only true is true")
	}
	for v, want := range map[Value]float64{TextValue("1.5"): 1.5, TimeValue(7): 7, IntValue(Bigint, 3): 3, FloatValue(Float, 2.5): 2.5} {
		if got := v.Number(); got != want {
			t.Errorf("%+v is the number %v", v, got)
		}
	}
	for _, v := range []Value{NullValue, BoolValue(true), TextValue("x")} {
		if got := v.Number(); got == got {
			t.Errorf("%+v is the number %v", v, got)
		}
	}
	names := "java_object boolean smallint integer bigint float double decimal string xsd:dateTimeStamp java_object"
	for i, name := range strings.Fields(names) {
		if Type(i).String() != name || Type(i).Numeric() != (i >= 2 && i <= 7) {
			t.Errorf("type %d is %s, numeric %v", i, Type(i), Type(i).Numeric())
		}
	}
	if v := TextValue("a").Clone(); v.Text != "a" {
		t.Errorf("a clone is %+v", v)
	}
}

func TestMissing(t *testing.T) {
	for v, want := range map[*Vector]bool{
		Constant(NullValue, 1): true, Constant(FloatValue(Double, nan), 1): true, Constant(FloatValue(Double, 0), 1): false, Constant(TextValue(""), 1): false,
		{Type: Object, Len: 1, Values: []Value{FloatValue(Double, nan)}}: true, {Type: Bigint, Len: 1, Ints: []int64{0}, Nulls: []bool{true}}: true,
	} {
		if v.IsMissing(0) != want {
			t.Errorf("%+v: %v", v, !want)
		}
	}
	if f := Constant(TextValue("1e3"), 1).Float(0); f != 1000 {
		t.Errorf("the text 1e3 is the number %v", f)
	}
	for _, text := range []string{"", "x", "-", "0x10", "1_0", "NaN", "1 "} {
		if f := ParseFloat(text); f == f {
			t.Errorf("%q is the number %v", text, f)
		}
	}
}

// A number that a double does not give exactly keeps its digits, and its place among those with the same double.
func TestDigits(t *testing.T) {
	decimal := func(f float64, significand int64, exponent int32) Value {
		return DecimalValue(Decimal, f, core.Decimal{Significand: significand, Exponent: exponent})
	}
	ascending := []Value{decimal(-2.345, -234500000000000001, -17), FloatValue(Decimal, -2.345), decimal(0.1, 99999999999999999, -18), FloatValue(Decimal, 0.1),
		decimal(0.1, 1000000000000000001, -19), decimal(1<<53, 9007199254740992, 0), decimal(1<<53, 9007199254740993, 0), IntValue(Bigint, 9007199254740994),
		decimal(1e19, 9999999999999999999/10, 1), FloatValue(Double, 1e19), decimal(1e19, 1000000000000000001, 1)}
	b := NewBuilder(Decimal)
	for _, v := range ascending {
		b.Append(v)
	}
	v := b.Vector()
	if got, want := texts(v), "-2.34500000000000001 -2.345 0.099999999999999999 0.1 0.1000000000000000001 9007199254740992 9007199254740993 9007199254740994 9999999999999999990 "+
		"10000000000000000000 10000000000000000010"; got != want {
		t.Errorf("they are %s, want %s", got, want)
	}
	for i := range ascending {
		for j := range ascending {
			if got, want := Compare(v, i, v, j), cmp.Compare(i, j); got != want {
				t.Errorf("%s against %s is %d", FormatValue(v, i), FormatValue(v, j), got)
			}
		}
	}
	again := NewBuilder(Decimal)
	again.AppendVector(v)
	again.AppendVector(v)
	again.AppendRow(v, 6)
	if got := texts(again.Vector().Slice(len(ascending)+6, again.Len())); got != "9007199254740993 9007199254740994 9999999999999999990 10000000000000000000 10000000000000000010 9007199254740993" {
		t.Errorf("twice: %s", got)
	}
	v = v.Gather([]int32{6, 1}, nil)
	v.SetNumber(1, ascending[0])
	v.SetNumber(0, FloatValue(Decimal, 7))
	if got := texts(v); got != "7 -2.34500000000000001" {
		t.Errorf("overwritten: %s", got)
	}
	for _, test := range []struct{ number, want string }{{"9007199254740993", "9007199254740993"}, {"0.12500000000000001", "0.13"}, {"0.125", "0.12"}, {"-2.34500000000000001", "-2.35"},
		{"123456789012345.6789", "123456789012345.68"}, {"0.0000000000000000000001234567890123456789", "0"}, {"-0.000000000000000001", "0"}, {"0.004999999999999999999", "0"}} {
		if got := string(ParseValue(test.number).AppendText(nil)); got != test.want {
			t.Errorf("%s in short is %s, want %s", test.number, got, test.want)
		}
	}
}

// FuzzExcess compares the order of decimals that share a double with that of their digits.
func FuzzExcess(f *testing.F) {
	f.Add(int64(9007199254740993), int64(9007199254740992), int32(0))
	f.Add(int64(1000000000000000001), int64(1000000000000000002), int32(-19))
	f.Fuzz(func(t *testing.T, a, b int64, exponent int32) {
		if exponent < -300 || exponent > 280 || a == 0 || b == 0 {
			return
		}
		x, y := ParseValue(string(calc.AppendDecimal(nil, a, exponent))), ParseValue(string(calc.AppendDecimal(nil, b, exponent)))
		if got, want := CompareNumbers(x, y), cmp.Compare(a, b); got != want {
			t.Errorf("%de%d against %d is %d", a, exponent, b, got)
		}
	})
}
