package journal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tidemark-db/tidemark/storage/vfs"
)

var rewrite = flag.Bool("rewrite", false, "rewrite golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// small are options under which a test sees every operation in the same order.
func small() Options {
	return Options{SegmentSize: minSegmentSize, Inline: true, salt: func() uint32 { return 0x5eed }}
}

func mustOpen(t testing.TB, fs vfs.FS, opt Options) (*Journal, Recovery) {
	t.Helper()
	j, rec, err := Open(fs, "j", opt)
	if err != nil {
		t.Fatal(err)
	}
	return j, rec
}

func mustClose(t testing.TB, j *Journal) {
	t.Helper()
	if err := j.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func mustAppend(t testing.TB, j *Journal, p Position, payload string) {
	t.Helper()
	if _, err := j.Append(context.Background(), Frame{Position: p, Received: int64(p) * 1000, Kind: 1, Payload: []byte(payload)}); err != nil {
		t.Fatal(err)
	}
}

func positions(t testing.TB, j *Journal, from Position) []Position {
	t.Helper()
	frames, err := collect(j, from)
	if err != nil {
		t.Fatal(err)
	}
	var ps []Position
	for _, f := range frames {
		ps = append(ps, f.Position)
	}
	return ps
}

func readFile(t testing.TB, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path, vfs.ReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, n)
	if _, err := f.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t testing.TB, fs vfs.FS, path string, b []byte) {
	t.Helper()
	if err := fs.MkdirAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	f, err := fs.Open(path, vfs.Create)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(b, 0); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close(), fs.SyncDir(filepath.Dir(path))); err != nil {
		t.Fatal(err)
	}
}

// TestFrameBytes holds the layout of DESIGN 5.1 against bytes put together by hand.
func TestFrameBytes(t *testing.T) {
	f := Frame{Position: 0x0102030405060708, Received: -2, Synced: 7, Kind: 9, Flags: 10, Depth: 11, Payload: []byte("abc")}
	b := appendFrame(nil, f, 0)
	want := []byte{
		3, 0, 0, 0, 0, 0, 0, 0, // len, crc (below)
		8, 7, 6, 5, 4, 3, 2, 1, // position
		0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, // received
		7, 0, 0, 0, 0, 0, 0, 0, // synced
		9, 10, 11, 0, 'a', 'b', 'c', 0, // kind, flags, depth, 0, payload, padding
	}
	crc := uint32(0xffffffff) // CRC-32C bit by bit, over position..payload
	for _, c := range want[8:39] {
		crc ^= uint32(c)
		for range 8 {
			crc = crc>>1 ^ 0x82f63b78&-(crc&1)
		}
	}
	binary.LittleEndian.PutUint32(want[4:], ^crc)
	if !bytes.Equal(b, want) {
		t.Errorf("got  % x\nwant % x", b, want)
	}
	if bytes.Equal(appendFrame(nil, f, 1)[4:8], want[4:8]) {
		t.Error("the salt does not change the checksum")
	}
}

func TestDumpGolden(t *testing.T) {
	fs := vfs.NewMem()
	j, _ := mustOpen(t, fs, small())
	mustAppend(t, j, 1, "first")
	mustAppend(t, j, 4, "")
	if _, err := j.Append(t.Context(), Frame{Position: 5, Received: 1700000000000, Kind: 2, Flags: 0x81, Depth: 3, Payload: []byte("third frame")}); err != nil {
		t.Fatal(err)
	}
	mustClose(t, j)
	var out strings.Builder
	if err := Dump(&out, fs, "j/0000000001.seg", func(f Frame) string { return fmt.Sprintf("%q", f.Payload) }); err != nil {
		t.Fatal(err)
	}
	used := readFile(t, fs, "j/0000000001.seg")
	fmt.Fprintf(&out, "header % x\nframes\n", used[:segmentHeader])
	for line := range slices.Chunk(used[firstFrame:firstFrame+144], 16) {
		fmt.Fprintf(&out, "% x\n", line)
	}
	const golden = "testdata/segment.txt"
	if *rewrite {
		if err := os.WriteFile(golden, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Error(diff)
	}
}

// TestOldSegment opens a segment file written by format 1 and kept: a release reads what earlier ones wrote.
func TestOldSegment(t *testing.T) {
	const kept = "testdata/format1.seg"
	if *rewrite {
		fs := vfs.NewMem()
		j, _ := mustOpen(t, fs, small())
		for p := range Position(5) {
			mustAppend(t, j, p+1, strings.Repeat("x", int(p)))
		}
		mustClose(t, j)
		if err := os.WriteFile(kept, readFile(t, fs, "j/0000000001.seg")[:firstFrame+1024], 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	fs := vfs.NewMem()
	writeFile(t, fs, "j/0000000001.seg", b)
	j, rec := mustOpen(t, fs, small())
	defer mustClose(t, j)
	if got := positions(t, j, 0); !slices.Equal(got, []Position{1, 2, 3, 4, 5}) || rec.Torn != nil || rec.Damage != nil {
		t.Errorf("got %v, %+v", got, rec)
	}
	b[8] = 2 // a later format is refused with words, not taken for damage
	for _, at := range []int{0, headerCopy} {
		copy(b[at:], b[:40])
		binary.LittleEndian.PutUint32(b[at+40:], crc32c(b[at:at+40]))
	}
	later := vfs.NewMem()
	writeFile(t, later, "j/0000000001.seg", b)
	if _, _, err := Open(later, "j", small()); err == nil || !strings.Contains(err.Error(), "j/0000000001.seg has format version 2") {
		t.Errorf("a later format: %v", err)
	}
}

func TestRotateTrace(t *testing.T) {
	var trace []string
	fs := vfs.Trace(vfs.NewMem(), func(op vfs.Op) {
		if op.Kind.Changes() {
			trace = append(trace, op.String())
		}
	})
	j, _ := mustOpen(t, fs, small())
	mustAppend(t, j, 1, strings.Repeat("a", 5000))
	mustAppend(t, j, 2, strings.Repeat("b", 5000))
	mustAppend(t, j, 3, "c")
	if err := j.DropBefore(2); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, j, 4, strings.Repeat("d", 5000))
	mustClose(t, j)
	want := []string{
		"mkdir .",
		"create 0000000001.tmp", "write 0000000001.tmp 0+16384", // zeroes
		"write 0000000001.tmp 0+8200", "sync 0000000001.tmp", "rename 0000000001.tmp 0000000001.seg", // header
		"write 0000000001.seg 8192+5048", "syncdir .", "sync 0000000001.tmp", // the descriptor keeps its first name
		"create 0000000002.tmp", "write 0000000002.tmp 0+16384",
		"write 0000000002.tmp 0+8200", "sync 0000000002.tmp", "rename 0000000002.tmp 0000000002.seg",
		"write 0000000002.seg 8192+5048", "syncdir .", "sync 0000000002.tmp",
		"write 0000000002.seg 13232+48", "sync 0000000002.tmp",
		"rename 0000000001.seg 0000000001.spare", "syncdir .",
		"write 0000000001.spare 0+8200", "sync 0000000001.spare", "rename 0000000001.spare 0000000003.seg", // no zeroes
		"write 0000000003.seg 8192+5048", "syncdir .", "sync 0000000001.spare",
	}
	// An open file is traced under the name it was opened with.
	for i := range want {
		for n, name := range map[string]string{"0000000001.seg": "0000000001.tmp", "0000000002.seg": "0000000002.tmp", "0000000003.seg": "0000000001.spare"} {
			if strings.HasPrefix(want[i], "write "+n) {
				want[i] = "write " + name + strings.TrimPrefix(want[i], "write "+n)
			}
		}
	}
	if diff := cmp.Diff(want, trace); diff != "" {
		t.Error(diff)
	}
}

func crc32c(b []byte) uint32 {
	crc := uint32(0xffffffff)
	for _, c := range b {
		crc ^= uint32(c)
		for range 8 {
			crc = crc>>1 ^ 0x82f63b78&-(crc&1)
		}
	}
	return ^crc
}

func TestPositions(t *testing.T) {
	j, _ := mustOpen(t, vfs.NewMem(), small())
	defer mustClose(t, j)
	mustAppend(t, j, 5, "")
	for _, p := range []Position{0, 4, 5, 1<<64 - 1} {
		if _, err := j.Append(t.Context(), Frame{Position: p}); err == nil {
			t.Errorf("position %d is accepted after 5", p)
		}
	}
	mustAppend(t, j, 9, "")
	if got := positions(t, j, 6); !slices.Equal(got, []Position{9}) {
		t.Errorf("from 6: %v", got)
	}
	if j.End() != 9 || j.Synced() != 9 {
		t.Errorf("end %d, synced %d", j.End(), j.Synced())
	}
}

// TestIdle: promise 4, an idle server writes nothing; nor does a clean reopening.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		changes := 0
		fs := vfs.Trace(vfs.NewMem(), func(op vfs.Op) {
			if op.Kind.Changes() && op.Kind != vfs.OpMkdir {
				changes++
			}
		})
		opt := small()
		opt.Mode, opt.Interval = Interval, time.Second
		j, _ := mustOpen(t, fs, opt)
		d, err := j.Append(t.Context(), Frame{Position: 1})
		if err != nil || d != Journaled || j.Synced() != 0 {
			t.Fatalf("%v, %v, synced %d", d, err, j.Synced())
		}
		time.Sleep(999 * time.Millisecond)
		synctest.Wait()
		if j.Synced() != 0 {
			t.Error("synced before the interval is over")
		}
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if j.Synced() != 1 {
			t.Error("not synced after the interval")
		}
		before := changes
		time.Sleep(time.Hour)
		synctest.Wait()
		if changes != before {
			t.Errorf("%d operations in an idle hour", changes-before)
		}
		mustClose(t, j)
		j, _ = mustOpen(t, fs, opt) // gives back the unused end of the segment
		mustClose(t, j)
		before = changes
		j, _ = mustOpen(t, fs, opt)
		mustClose(t, j)
		if changes != before+3 { // the last frame once more, and syncs of the directory and the file
			t.Errorf("%d operations to open and close a clean journal", changes-before)
		}
	})
}

// TestGroupCommit: whoever waits while a sync runs shares the next one.
func TestGroupCommit(t *testing.T) {
	var mu sync.Mutex
	syncs, gate := 0, make(chan struct{})
	fs := vfs.Fault(vfs.NewMem(), func(op vfs.Op) error {
		if op.Kind != vfs.OpSync {
			return nil
		}
		mu.Lock()
		syncs++
		n := syncs
		mu.Unlock()
		if n == 2 { // the first commit; sync 1 is the header of the segment
			<-gate
		}
		return nil
	})
	j, _ := mustOpen(t, fs, small())
	defer mustClose(t, j)
	var wg sync.WaitGroup
	var tickets []Ticket
	for p := range Position(21) {
		ticket, err := j.Write(Frame{Position: p + 1})
		if err != nil {
			t.Fatal(err)
		}
		tickets = append(tickets, ticket)
		if p == 0 {
			wg.Go(func() { commitOne(t, j, ticket) })
			for { // until the first commit holds the disk
				mu.Lock()
				n := syncs
				mu.Unlock()
				if n == 2 {
					break
				}
			}
		}
	}
	var started sync.WaitGroup
	for _, ticket := range tickets[1:] {
		started.Add(1)
		wg.Go(func() { started.Done(); commitOne(t, j, ticket) })
	}
	started.Wait()
	close(gate)
	wg.Wait()
	if syncs < 3 || syncs > 5 {
		t.Errorf("%d syncs for 21 frames, want 3: header, the first frame, all others (a late waiter may add one)", syncs)
	}
}

func commitOne(t *testing.T, j *Journal, ticket Ticket) {
	if d, err := j.Commit(context.Background(), ticket); err != nil || d != Synced {
		t.Errorf("commit %d: %v, %v", ticket.Position(), d, err)
	}
}

func TestCommitContext(t *testing.T) {
	gate, synced := make(chan struct{}), 0
	fs := vfs.Fault(vfs.NewMem(), func(op vfs.Op) error {
		if op.Kind == vfs.OpSync {
			if synced++; synced == 2 {
				<-gate
			}
		}
		return nil
	})
	j, _ := mustOpen(t, fs, small())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := j.Append(ctx, Frame{Position: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := j.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("close: %v", err)
	}
	close(gate)
	if _, err := j.Write(Frame{Position: 2}); !errors.Is(err, ErrClosed) {
		t.Errorf("write after close: %v", err)
	}
	<-j.done
}

// TestConcurrent runs writers, readers and retention together; its worth is under -race.
func TestConcurrent(t *testing.T) {
	opt := Options{SegmentSize: minSegmentSize}
	j, _, err := Open(vfs.OS{}, t.TempDir(), opt)
	if err != nil {
		t.Fatal(err)
	}
	var order sync.Mutex
	next := Position(0)
	const writers, each = 8, 60
	var wg, readers sync.WaitGroup
	stop := make(chan struct{})
	for range writers {
		wg.Go(func() {
			for range each {
				order.Lock()
				next++
				p := next
				ticket, err := j.Write(Frame{Position: p, Payload: bytes.Repeat([]byte{byte(p)}, int(p)%700)})
				order.Unlock()
				if err != nil {
					t.Error(err)
					return
				}
				commitOne(t, j, ticket)
				if p%50 == 0 {
					if err := j.DropBefore(p - 40); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	for range 2 {
		readers.Go(func() {
			at := Position(0)
			for {
				for f, err := range j.Read(at + 1) {
					if err != nil {
						t.Error(err)
						return
					}
					if f.Position <= at || len(f.Payload) != int(f.Position)%700 || bytes.Count(f.Payload, []byte{byte(f.Position)}) != len(f.Payload) {
						t.Errorf("after %d: %d with %d bytes", at, f.Position, len(f.Payload))
					}
					at = f.Position
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	readers.Wait()
	if j.End() != writers*each || j.Synced() != writers*each {
		t.Errorf("end %d, synced %d", j.End(), j.Synced())
	}
	mustClose(t, j)
}

func TestOptionsValidate(t *testing.T) {
	err := Options{Mode: 7, Interval: -1, SegmentSize: 17 << 10 >> 1}.Validate()
	for _, part := range []string{"mode 7", "-1ns", "size 8704"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v: want %q in it", err, part)
		}
	}
	if err := (Options{}).Validate(); err != nil {
		t.Error(err)
	}
}

// BenchmarkAppend measures appends from one writer and from 16 at a time.
func BenchmarkAppend(b *testing.B) {
	for _, mode := range []struct {
		name string
		mode Mode
	}{{"always", Always}, {"interval", Interval}, {"never", Never}} {
		for _, size := range []int{64, 16 << 10} {
			for _, writers := range []int{1, 16} {
				b.Run(fmt.Sprintf("%s/%dB/writers=%d", mode.name, size, writers), func(b *testing.B) { benchmarkAppend(b, mode.mode, size, writers) })
			}
		}
	}
}

func benchmarkAppend(b *testing.B, mode Mode, size, writers int) {
	j, _, err := Open(vfs.OS{}, b.TempDir(), Options{Mode: mode})
	if err != nil {
		b.Fatal(err)
	}
	defer mustClose(b, j)
	payload := make([]byte, size)
	var order sync.Mutex
	next := Position(0)
	write := func() (Ticket, error) {
		order.Lock()
		defer order.Unlock()
		next++
		if next%4096 == 0 {
			if err := j.DropBefore(next - 1024); err != nil {
				return Ticket{}, err
			}
		}
		return j.Write(Frame{Position: next, Payload: payload})
	}
	b.SetBytes(int64(size))
	b.ResetTimer()
	var wg sync.WaitGroup
	for w := range writers {
		n := (b.N + w) / writers
		wg.Go(func() {
			for range n {
				ticket, err := write()
				if err == nil {
					_, err = j.Commit(context.Background(), ticket)
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// TestReadNear: a reader that starts in the middle of a segment does not read the segment from its start.
func TestReadNear(t *testing.T) {
	read := int64(0)
	fs := vfs.Trace(vfs.NewMem(), func(op vfs.Op) {
		if op.Kind == vfs.OpRead {
			read += op.Len
		}
	})
	j, _ := mustOpen(t, fs, Options{Inline: true})
	defer func() { mustClose(t, j) }()
	for p := range Position(300) {
		mustAppend(t, j, 2*(p+1), strings.Repeat("x", 4000))
	}
	for from := Position(1); from <= 600; from += 7 {
		read = 0
		for f, err := range j.Read(from) {
			if err != nil || f.Position != (from+1)/2*2 {
				t.Fatalf("from %d: got %d, %v", from, f.Position, err)
			}
			break
		}
		if limit := int64(2*markDistance + 3*peek); read > limit {
			t.Fatalf("from %d: %d bytes read for one frame, want at most %d", from, read, limit)
		}
	}
	mustClose(t, j)
	j, _ = mustOpen(t, fs, Options{Inline: true}) // the second reader profits from what the first has seen
	for range 2 {
		read = 0
		if got := positions(t, j, 590); !slices.Equal(got, []Position{590, 592, 594, 596, 598, 600}) {
			t.Errorf("got %v", got)
		}
	}
	if read > 2*markDistance+12*peek {
		t.Errorf("%d bytes read for six frames", read)
	}
}
