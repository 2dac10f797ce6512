package nmon

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-db/tidemark/wasm/abi"
	"github.com/tidemark-db/tidemark/wasm/guest"
)

// opened returns a stream and a function that hands over one chunk.
func opened(t *testing.T, r abi.OpenRequest) func(chunk string, flags uint32) (records, rejects []string) {
	t.Helper()
	in := guest.New(Plugin(), abi.Options{})
	r.Kind = abi.KindParser
	request, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if code := in.Open(request); code != abi.OK {
		t.Fatal(in.LastError())
	}
	return func(chunk string, flags uint32) (records, rejects []string) {
		t.Helper()
		out, code := in.Call(abi.KindParser, []byte(chunk), flags)
		if code != abi.OK {
			t.Fatal(in.LastError())
		}
		var b abi.Batch
		if err := b.Decode(string(out), abi.Limits{}); err != nil {
			t.Fatal(err)
		}
		for _, reject := range b.Rejects {
			rejects = append(rejects, reject.Reason)
		}
		return texts(&b), rejects
	}
}

// While the sender pauses the totals of the snapshot are written; a row that comes then corrects them.
func TestPauseWritesTotals(t *testing.T) {
	call := opened(t, abi.OpenRequest{})
	const at = "2021-05-03T10:00:00Z h "
	call("AAA,host,h\nDISKREAD,Disk Read KB/s h,sda\nDISKREAD1,Disk Read KB/s h,sdb\nZZZZ,T0001,10:00:00,03-MAY-2021\n", 0)
	for _, step := range []struct {
		chunk string
		want  []string
	}{
		{"DISKREAD,T0001,1.5\n", []string{at + "nmon.disk_read_kb/s=1.5 t:id=sda"}},
		{"", []string{at + "nmon.disk_read_kb/s=1.5 t:id=total"}},
		{"", nil},
		{"DISKREAD1,T0001,2\n", []string{at + "nmon.disk_read_kb/s=2 t:id=sdb"}},
		{"", []string{at + "nmon.disk_read_kb/s=3.5 t:id=total"}},
		{"AAA,steal,1\n", nil},
		{"", []string{"property 2021-05-03T10:00:00Z h configuration v:steal=1"}},
	} {
		if got, _ := call(step.chunk, 0); !slices.Equal(got, step.want) {
			t.Errorf("%q gives %q, want %q", step.chunk, got, step.want)
		}
	}
	if got, _ := call("", abi.FlagLast); got != nil {
		t.Errorf("the end gives %q", got)
	}
}

// The warning of the contract names the parser and the file, once for each section.
func TestRowsWithoutHeader(t *testing.T) {
	call := opened(t, abi.OpenRequest{ConfigName: "default", File: "h_1.nmon", Params: map[string]string{"e": "h"}})
	_, got := call("ZZZZ,T0001,10:00:00,03-MAY-2021\nMEM,T0001,1\nMEM,T0001,2\nTOP,12,T0001,1,x\n", 0)
	want := []string{"Header not found for row 'MEM', parser default, file h_1.nmon", "Header not found for row 'TOP', parser default, file h_1.nmon"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A stream of any length knows a bounded number of snapshots; the totals of those that it forgets were written.
func TestLongStreamsAreBounded(t *testing.T) {
	p := new(parser)
	if err := p.Open(&abi.OpenRequest{}); err != nil {
		t.Fatal(err)
	}
	totals := 0
	parse := func(text string) {
		var out abi.Encoder
		if err := p.Parse([]byte(text), false, &out); err != nil {
			t.Fatal(err)
		}
		var b abi.Batch
		if err := b.Decode(string(out.Finish()), abi.Limits{}); err != nil {
			t.Fatal(err)
		}
		for _, r := range texts(&b) {
			if strings.HasSuffix(r, "id=total") {
				totals++
			}
		}
	}
	parse("AAA,host,h\nDISKREAD,Disk Read KB/s h,sda\n")
	const snapshots = maxSnapshots + 1000
	var text strings.Builder
	for i := range snapshots {
		fmt.Fprintf(&text, "ZZZZ,T%05d,%02d:%02d:%02d,%02d-MAY-2021\nDISKREAD,T%05d,1\n", i, i/3600%24, i/60%60, i%60, 1+i/86400, i)
		if text.Len() > 100_000 {
			parse(text.String())
			text.Reset()
		}
	}
	parse(text.String())
	parse("")
	if len(p.times) != maxSnapshots || len(p.totals) != maxTotals || totals != snapshots {
		t.Errorf("%d times and %d totals are known, %d totals were written; want %d, %d and %d", len(p.times), len(p.totals), totals, maxSnapshots, maxTotals, snapshots)
	}
}
