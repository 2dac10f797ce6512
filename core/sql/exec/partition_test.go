package exec

import (
	"fmt"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql/column"
)

// cells returns the rows of a batch as texts.
func cells(b *column.Batch) (rows []string) {
	for i := range b.Len {
		row := ""
		for _, v := range b.Columns {
			row += fmt.Sprintf("%v %v|", v.Type, cell(v, i))
		}
		rows = append(rows, row)
	}
	return rows
}

// Rows that are dealt out come back from their files as they were, in their order, as often as they are read; files are used again.
func TestPartitions(t *testing.T) {
	x := &execution{Config: Config{Memory: NewMemory(1 << 20), SpillDir: t.TempDir()}, spill: &spillSpace{}}
	defer x.spill.close()
	numbers, texts, mixed := column.NewBuilder(column.Double), column.NewBuilder(column.String), column.NewBuilder(column.Object)
	for i := range 9 {
		if i == 4 {
			numbers.AppendNull()
			texts.AppendNull()
			mixed.AppendNull()
			continue
		}
		numbers.AppendFloat(float64(i) / 4)
		texts.AppendText(fmt.Sprint("text ", i))
		mixed.Append([]column.Value{column.IntValue(column.Bigint, int64(i)), column.TextValue("x"), column.BoolValue(true)}[i%3])
	}
	exact := &column.Vector{Type: column.Decimal, Len: 9, Floats: make([]float64, 9),
		Exact: []core.DecimalAt{{Index: 3, Decimal: core.Decimal{Significand: 12345678901234567, Exponent: -1}}}}
	in := &column.Batch{Len: 9, Columns: []*column.Vector{numbers.Vector(), texts.Vector(), mixed.Vector(), exact, column.Constant(column.TextValue("same"), 9),
		column.Constant(column.NullValue, 9), column.Constant(column.IntValue(column.Bigint, 7), 9)}}
	all := cells(in)
	p, err := x.newPartitions(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.deal(in, []int32{2, 2, -1, 5, 5, 2, 2, -1, 2}); err != nil {
		t.Fatal(err)
	}
	if err := p.deal(in.Slice(0, 3), []int32{5, 5, 5}); err != nil {
		t.Fatal(err)
	}
	want := map[int][]string{2: {all[0], all[1], all[5], all[6], all[8]}, 5: {all[3], all[4], all[0], all[1], all[2]}}
	for n, r := range p.runs {
		for range 2 {
			var got []string
			if r == nil {
				break
			}
			for b, err := range r.batches(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, cells(b)...)
			}
			if fmt.Sprint(got) != fmt.Sprint(want[n]) {
				t.Errorf("file %d has\n%v\nwant\n%v", n, got, want[n])
			}
		}
	}
	if p.runs[2] == nil || p.runs[5] == nil || x.spill.used != p.runs[2].size+p.runs[5].size {
		t.Errorf("%d bytes are counted", x.spill.used)
	}
	p.close()
	if x.spill.used != 0 || x.Memory.Used() != 0 || len(x.spill.files) != 2 || len(x.spill.free) != 2 {
		t.Errorf("%d bytes, %d of memory, %d files, %d free", x.spill.used, x.Memory.Used(), len(x.spill.files), len(x.spill.free))
	}
	r, err := x.spill.create(x.SpillDir, 0)
	if err != nil || len(x.spill.files) != 2 {
		t.Fatalf("%d files, %v", len(x.spill.files), err)
	}
	for b, err := range r.batches(t.Context()) {
		t.Errorf("an empty file has rows: %v, %v", b, err)
	}
}
