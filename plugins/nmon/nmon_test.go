package nmon

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/tidemark-db/tidemark/wasm/abi"
	"github.com/tidemark-db/tidemark/wasm/guest"
)

// upload runs a file through the plugin in chunks of some size and returns what it stored, one text a record, sorted, and the rejects.
func upload(t testing.TB, r abi.OpenRequest, file string, size int) (records, rejects []string, err error) {
	t.Helper()
	in := guest.New(Plugin(), abi.Options{})
	r.Kind = abi.KindParser
	request, _ := json.Marshal(r)
	if code := in.Open(request); code != abi.OK {
		return nil, nil, fmt.Errorf("open: %s", in.LastError())
	}
	for start := 0; ; start += size {
		end := min(start+size, len(file))
		var flags uint32
		if end == len(file) {
			flags = abi.FlagLast
		}
		out, code := in.Call(abi.KindParser, []byte(file[start:end]), flags)
		if code != abi.OK {
			return records, rejects, fmt.Errorf("%s", in.LastError())
		}
		var b abi.Batch
		if err := b.Decode(string(out), abi.Limits{}); err != nil {
			t.Fatal(err)
		}
		if what := unstorable(&b); what != "" {
			t.Fatalf("the server would refuse the batch for %s", what)
		}
		records = append(records, texts(&b)...)
		for _, reject := range b.Rejects {
			rejects = append(rejects, fmt.Sprintf("%d: %s", reject.Line, reject.Reason))
		}
		if flags != 0 {
			slices.Sort(records)
			return slices.Compact(records), rejects, nil
		}
	}
}

// unstorable names the first text that the server would refuse, and with it the whole batch; "" when there is none.
func unstorable(b *abi.Batch) string {
	name := func(s string) bool {
		return s != "" && utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r == utf8.RuneError || unicode.IsSpace(r) || unicode.IsControl(r) })
	}
	blank := func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
	tags := func(pairs []abi.Pair) string {
		for _, p := range pairs {
			spaced := strings.Trim(p.Name, " ") == p.Name && name(strings.ReplaceAll(p.Name, " ", ""))
			if !spaced || strings.TrimFunc(p.Value, blank) == "" || strings.ContainsAny(p.Value, "\x00\x01") {
				return fmt.Sprintf("tag %q=%q", p.Name, p.Value)
			}
		}
		return ""
	}
	for _, s := range b.Series {
		if what := tags(s.Tags); !name(s.Metric) || !name(s.Entity) || what != "" {
			return fmt.Sprintf("metric %q, entity %q %s", s.Metric, s.Entity, what)
		}
	}
	for _, p := range b.Properties {
		if what := tags(append(slices.Clone(p.Keys), p.Tags...)); !name(p.Type) || !name(p.Entity) || what != "" {
			return fmt.Sprintf("property type %q, entity %q %s", p.Type, p.Entity, what)
		}
	}
	return ""
}

// texts prints the samples and properties of a batch in the style of text commands, metric records left out.
func texts(b *abi.Batch) []string {
	var out []string
	for _, s := range b.Samples {
		key := b.Series[s.Series]
		out = append(out, fmt.Sprintf("%s %s %s=%s%s", iso(s.Time), key.Entity, key.Metric, strconv.FormatFloat(s.Value, 'f', -1, 64), pairs(" t:", key.Tags)))
	}
	for _, p := range b.Properties {
		out = append(out, fmt.Sprintf("property %s %s %s%s%s", iso(p.Time), p.Entity, p.Type, pairs(" k:", p.Keys), pairs(" v:", p.Tags)))
	}
	return out
}

func iso(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05Z") }

func pairs(prefix string, ps []abi.Pair) string {
	m := map[string]string{}
	for _, p := range ps {
		m[p.Name] = p.Value
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, "%s%s=%s", prefix, name, m[name])
	}
	return b.String()
}

// Each file holds an upload, a line `---`, and what must be stored. They are worked examples of the contract.
func TestExamples(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txt")
	if len(files) < 4 {
		t.Fatalf("only %d examples", len(files))
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			input, expected, ok := strings.Cut(string(data), "---\n")
			if !ok {
				t.Fatal("no --- line")
			}
			want := strings.Split(strings.TrimSpace(expected), "\n")
			slices.Sort(want)
			for _, size := range []int{1, 7, 1 << 20} {
				got, _, err := upload(t, abi.OpenRequest{}, input, size)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("chunks of %d (-want +got):\n%s", size, diff)
				}
			}
		})
	}
}

const (
	committed = "../../examples/quickstart/data"
	more      = "../../../shared/data/nmon" // captures that may not be committed; TIDEMARK_SAMPLES names another folder
)

func sample(t testing.TB, name string) string {
	t.Helper()
	dirs := []string{committed, more}
	if dir := os.Getenv("TIDEMARK_SAMPLES"); dir != "" {
		dirs = append(dirs, filepath.Join(dir, "nmon"))
	}
	for _, dir := range dirs {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			return string(data)
		}
	}
	t.Skipf("SKIPPED: the sample %s is not on this machine", name)
	return ""
}

// The expected lines were read off the files by eye, following the contract.
func TestRealFiles(t *testing.T) {
	for _, c := range []struct {
		file, zone string
		want       []string
		wantReject string
	}{
		{file: "linux16n-cpuutil-uarg.nmon", want: []string{
			"2023-11-27T21:33:05Z linhost4 nmon.cpu.user%=84.2 t:id=1",
			"2023-11-27T21:33:05Z linhost4 nmon.cpu.busy%=86 t:id=1",
			"2023-11-27T21:33:05Z linhost4 nmon.cpu_total.idle%=42.7",
			"2023-11-27T21:33:05Z linhost4 nmon.cpu_total.cpus=2",
			"2023-11-27T21:33:05Z linhost4 nmon.cpu_util_stats.user%=83.16 t:id=1",
			"2023-11-27T21:33:05Z linhost4 nmon.cpu_util_stats.sys%=9.53 t:id=2",
			"2023-11-27T21:33:05Z linhost4 nmon.cpu_util_stats.user%=101.35 t:id=total",
			"2023-11-27T21:33:05Z linhost4 nmon.clock_speed_(mhz)=2100 t:id=2",
			"2023-11-27T21:33:05Z linhost4 nmon.memory_mb.memfree=17410.7",
			"2023-11-27T21:33:05Z linhost4 nmon.memory_mb.hightotal=0",
			"2023-11-27T21:33:05Z linhost4 nmon.paging_and_virtual.nr_slab_reclaimable=87117",
			"2023-11-27T21:33:05Z linhost4 nmon.network_packets.read/s=1.7 t:id=total",
			"2023-11-27T21:33:05Z linhost4 nmon.jfs_filespace_%used=7.5 t:id=/",
			"2023-11-27T21:33:05Z linhost4 nmon.disk_group_backlog_time_(ms)=0 t:id=grp1",
			`property 2023-11-27T21:33:07Z linhost4 nmon.process k:pid=0016719 v:command=app-server v:fullcommand=app-server --listen :8080,:8081 --tags a,b="c d"`,
			"property 2023-11-27T21:33:05Z linhost4 nmon.jfs k:id=/data1 v:file_system=/data1",
			"property 2023-11-27T21:33:05Z linhost4 configuration v:steal=1",
		}},
		{file: "aix53-nmon64-no-date.nmon", want: []string{
			"2011-03-03T00:00:04Z aixhost3 nmon.cpu.user%=16 t:id=1",
			"2011-03-03T00:10:04Z aixhost3 nmon.cpu.idle%=",
			"2011-03-03T00:00:04Z aixhost3 nmon.memory.real_total(mb)=4164864",
			"2011-03-03T00:00:04Z aixhost3 nmon.memory.virtual_free_%=8.2",
			"2011-03-03T00:00:04Z aixhost3 nmon.memory.virtual_used_%=91.8",
			"2011-03-03T00:00:04Z aixhost3 nmon.disk_read_kb/s=746.1 t:id=hdisk0",
			"2011-03-03T00:00:04Z aixhost3 nmon.disk_adapter.kb/s=745.9 t:id=sas0_read",
			"2011-03-03T00:00:04Z aixhost3 nmon.disk_adapter.tps=169.5 t:id=sas0_xfer",
			"2011-03-03T00:00:04Z aixhost3 nmon.network_i/o.write-kb/s=6.4 t:id=en0",
			"2011-03-03T00:00:04Z aixhost3 nmon.processes.rcvint=0",
		}, wantReject: "more values than column names"},
		{file: "aix71-lpar-midnight.nmon", want: []string{
			"2016-02-10T17:28:10Z aixhost1 nmon.cpu.user%=25.7 t:id=1",
			"2016-02-10T23:58:34Z aixhost1 nmon.cpu_total.",
			"2016-02-11T00:03:34Z aixhost1 nmon.cpu_total.",
		}, wantReject: "more values than column names"},
		{file: "linux13g-nan-trailing-comma.nmon", want: []string{
			"2012-12-07T13:18:32Z linhost1 nmon.cpu.user%=12.8 t:id=1",
			"2012-12-07T13:18:32Z linhost1 nmon.network_packets.read/s=13.3 t:id=eth0",
			"2012-12-07T13:18:32Z linhost1 nmon.network_packets.write/s=13.3 t:id=total",
			"2012-12-07T13:18:32Z linhost1 nmon.jfs_filespace_%used=60.3 t:id=/media/disk1",
		}},
		{file: "linux15h-double-comma-groups.nmon", want: []string{
			"2015-08-18T10:24:26Z linhost2 nmon.network_i/o.read-kb/s=0 t:id=virbr1-nic",
			"2015-08-18T10:24:26Z linhost2 nmon.disk_group_busy=81.7 t:id=sdb",
			"2015-08-18T10:24:26Z linhost2 nmon.processes.blocked=0",
		}},
	} {
		t.Run(c.file, func(t *testing.T) {
			file := sample(t, c.file)
			got, rejects, err := upload(t, abi.OpenRequest{}, file, 1<<18)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if !slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, want) }) {
					t.Errorf("missing: %s", want)
				}
			}
			if !strings.Contains(strings.Join(rejects, "\n"), c.wantReject) {
				t.Errorf("no reject says %q: %q", c.wantReject, rejects)
			}
			small, _, err := upload(t, abi.OpenRequest{}, file, 4093)
			if err != nil || !slices.Equal(small, got) {
				t.Errorf("small chunks give something else: %v, %d and %d records", err, len(small), len(got))
			}
		})
	}
}

func TestSortedFileGivesTheSame(t *testing.T) {
	file := sample(t, "linux16n-cpuutil-uarg.nmon")
	want, _, err := upload(t, abi.OpenRequest{}, file, 1<<18)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(file, "\n")
	slices.Sort(lines)
	sorted, _, err := upload(t, abi.OpenRequest{}, strings.Join(lines, ""), 1<<18)
	if err != nil {
		t.Fatal(err)
	}
	isSample := func(s string) bool { return !strings.HasPrefix(s, "property") && !strings.Contains(s, "process.") }
	keep := func(all []string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return !isSample(s) })
	}
	if diff := cmp.Diff(keep(want), keep(sorted)); diff != "" {
		t.Errorf("-in order +sorted:\n%s", diff)
	}
}

func TestTruncatedFileKeepsWhatCameBefore(t *testing.T) {
	file := sample(t, "linux16n-cpuutil-uarg.nmon")
	whole, _, _ := upload(t, abi.OpenRequest{}, file, 1<<18)
	for cut := strings.Index(file, "ZZZZ,T0002") + 40; cut < len(file); cut += 977 {
		got, _, err := upload(t, abi.OpenRequest{}, file[:cut], 1<<18)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		extra := slices.DeleteFunc(got, func(s string) bool {
			_, found := slices.BinarySearch(whole, s)
			return found || strings.Contains(s, "id=total") || strings.Contains(s, "configuration")
		})
		if len(extra) > 1 { // the last number of the last line may be cut
			t.Errorf("cut at %d invents %q", cut, extra)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		name, file, config, want string
	}{
		{"nothing", "", "", "IllegalArgumentException: Entity not found in nmon file"},
		{"no snapshot", "AAA,progname,nmon\nAAA,host,h\n", "", "IllegalArgumentException: No data"},
		{"no host", "AAA,progname,nmon\nZZZZ,T0001,10:00:00,03-MAY-2021\n", "", "IllegalArgumentException: Entity not found in nmon file"},
		{"unknown setting", "", `{"prefx":"x"}`, `unknown field "prefx"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.config == "" {
				c.config = "{}"
			}
			if _, _, err := upload(t, abi.OpenRequest{Config: json.RawMessage(c.config)}, c.file, 100); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestSettings(t *testing.T) {
	file := sample(t, "linux16n-cpuutil-uarg.nmon")
	request := abi.OpenRequest{Params: map[string]string{"e": "Other"}, Config: json.RawMessage(`{"prefix":"os","ignored":["cpu_total.user%","disk_*"],"top":false,"uarg":false,"properties":false}`)}
	got, _, err := upload(t, request, file, 1<<18)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range got {
		for _, banned := range []string{"nmon.", "os.cpu_total.user%", "os.disk_", "process.", "property"} {
			if strings.Contains(line, banned) || !strings.Contains(line, "Z Other os.") {
				t.Fatalf("%s", line)
			}
		}
	}
	if len(got) < 100 {
		t.Errorf("only %d records", len(got))
	}
}

func TestIgnoreErrors(t *testing.T) {
	file := `AAA,progname,nmon
AAA,host,q2
UNK,Foo Bar q2,a
CPU,CPU q2,a
CPUX,CPU X q2,a
NFSSVRV4,NFS Server V4 q2,read
DISKBUSY1,Disk %Busy q2,sda
MEMPAGES64KB,MemoryPages,numframes
MEM,Memory MB q2,memtotal
ZZZZ,T0001,10:00:05,03-MAY-2021
UNK,T0001,3
CPUX,T0001,4
NFSSVRV4,T0001,5
DISKBUSY1,T0001,6,7
MEMPAGES64KB,T0001,8
MEM,T0001,x
MEM,T0001,9
rubbish
`
	known := []string{
		"2021-05-03T10:00:05Z q2 nmon.disk_%busy=6 t:id=sda",
		"2021-05-03T10:00:05Z q2 nmon.disk_%busy=6 t:id=total",
		"2021-05-03T10:00:05Z q2 nmon.memory_mb.memtotal=9",
		"2021-05-03T10:00:05Z q2 nmon.memorypages.numframes=8 t:id=64KB",
		"2021-05-03T10:00:05Z q2 nmon.nfs_server_v4.read=5",
		"property 2021-05-03T10:00:05Z q2 configuration v:host=q2 v:progname=nmon",
	}
	unknown := append([]string{"2021-05-03T10:00:05Z q2 nmon.cpu_x.a=4", "2021-05-03T10:00:05Z q2 nmon.foo_bar.a=3"}, known...)
	slices.Sort(unknown)
	for _, c := range []struct {
		config  string
		want    []string
		rejects int
	}{
		{`{}`, unknown, 3}, // the surplus, the number and the torn line
		{`{"ignore_errors":true}`, known, 0},
	} {
		got, rejects, err := upload(t, abi.OpenRequest{Config: json.RawMessage(c.config)}, file, 1<<18)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.config, diff)
		}
		if len(rejects) != c.rejects {
			t.Errorf("%s: rejects %q, want %d", c.config, rejects, c.rejects)
		}
	}
}

// A name or value that cannot be stored as it is must not cost the snapshot.
func TestOddTexts(t *testing.T) {
	file := "AAA,progname,nmon\nAAA,host,My Host\nAAA,o\x01d\xffd,v\x01\nBBBL,01,\tCPU\tin  SYS ,64\nUNK,Foo\tBar,a\tb,\x02,\x01c,,\xff\n" +
		"JFSFILE,JFS Filespace %Used,\x01,/a\x00\nTOP,+PID,Time,%C P\tU,Command\nZZZZ,T0001,10:00:05,03-MAY-2021\nUNK,T0001,3,4,5,6,7\n" +
		"JFSFILE,T0001,1,2\nTOP,12,T0001,1.5,a\x01b\nTOP,\x01,T0001,1.5,a\nTOP,,T0001,1.5,a\nUARG,T0001,12,p\x01,c\x01d\n"
	want := []string{
		"2021-05-03T10:00:05Z my_host nmon.foo_bar._=7",
		"2021-05-03T10:00:05Z my_host nmon.foo_bar.a_b=3",
		"2021-05-03T10:00:05Z my_host nmon.foo_bar.c=5",
		"2021-05-03T10:00:05Z my_host nmon.jfs_filespace=2 t:id=/a",
		"2021-05-03T10:00:05Z my_host nmon.process.%c_p_u=1.5 t:command=a\uFFFDb t:pid=12",
		"property 2021-05-03T10:00:05Z my_host configuration v:cpu_in  sys=64 v:host=My Host v:o_d_d=v v:progname=nmon",
		"property 2021-05-03T10:00:05Z my_host nmon.jfs k:id=/a v:file_system=/a",
		"property 2021-05-03T10:00:05Z my_host nmon.process k:pid=12 v:command=p v:fullcommand=c\uFFFDd",
	}
	got, rejects, err := upload(t, abi.OpenRequest{}, file, 7)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(rejects) != 4 { // two sections with a value under no name, two process rows without an id
		t.Errorf("rejects: %q", rejects)
	}
}

// Europe/Berlin: +1 h from 2023-10-29T01:00Z, +2 h before.
func TestZone(t *testing.T) {
	c := clock{offsets: []abi.ZoneOffset{{From: 0, Seconds: 7200}, {From: 1698541200000, Seconds: 3600}, {From: 1711846800000, Seconds: 7200}}}
	for local, want := range map[string]string{
		"01:59:59,29-OCT-2023": "2023-10-28T23:59:59Z",
		"02:30:00,29-OCT-2023": "2023-10-29T00:30:00Z", // comes twice: the first
		"03:00:00,29-OCT-2023": "2023-10-29T02:00:00Z",
		"02:30:00,31-MAR-2024": "2024-03-31T01:30:00Z", // skipped: counts with the offset before
		"03:00:00,31-MAR-2024": "2024-03-31T01:00:00Z",
	} {
		ms, err := c.snapshot(local, "")
		if err != nil || iso(ms) != want {
			t.Errorf("%s: got %s, %v; want %s", local, iso(ms), err, want)
		}
	}
}

func FuzzParser(f *testing.F) {
	f.Add("AAA,host,h\nCPU_ALL,CPU Total h,User%\nZZZZ,T0001,10:00:00,03-MAY-2021\nCPU_ALL,T0001,1\n", 3)
	f.Add("TOP,+PID,Time,%CPU,Command\nZZZZ,T0001,1:1:1,3/3/21\nTOP,1,T0001,1,a,b\nUARG,T0001,1,a,b", 1000)
	f.Add("MEM,Memory,a,b c,d\nAAA,host,x\nAAA,date,13/1/99\nZZZZ,T0001,10:00:00\nMEM,T0001,1,2,3,4,5,6", 7)
	f.Add("AAA,host,a b\x01\nAAA,\xff \t,\x01v\nBBBL,0,A  b,1\nUNK,X\ty,\x02,\xff\nZZZZ,T0001,10:00:00,03-MAY-2021\nUNK,T0001,1,2\nTOP,\x01,T0001,1", 5)
	f.Fuzz(func(t *testing.T, file string, size int) {
		if size < 1 || len(file)/size > 1000 {
			return
		}
		_, _, _ = upload(t, abi.OpenRequest{}, strings.ToValidUTF8(file, "\uFFFD"), size) // the host makes UTF-8 of every file
	})
}
