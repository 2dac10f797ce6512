package journal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-db/tidemark/storage/vfs"
)

// fill makes a closed journal with frames 1..n of 100 bytes (136 with the header), each appended alone.
func fill(t testing.TB, n Position) *vfs.Mem {
	t.Helper()
	mem := vfs.NewMem()
	j, _ := mustOpen(t, mem, small())
	for p := range n {
		mustAppend(t, j, p+1, strings.Repeat("x", 100))
	}
	mustClose(t, j)
	return mem
}

const frame100 = 136 // bytes of a frame with 100 bytes of payload

// overwrite writes b into a file, durably.
func overwrite(t testing.TB, fs vfs.FS, path string, off int64, b []byte) {
	t.Helper()
	f, err := fs.Open(path, vfs.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(b, off); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestRecovery: what stands in the journal after something happened to it. A segment of 16 KiB takes 60 frames of 136 bytes behind its 8 KiB
// of header: frames 1-60 are in segment 1, 61-120 in segment 2, 121-130 in segment 3.
func TestRecovery(t *testing.T) {
	const first, second, third = "j/0000000001.seg", "j/0000000002.seg", "j/0000000003.seg"
	at := func(i int64) int64 { return firstFrame + (i-1)*frame100 }
	garbage := []byte{0xde, 0xad, 0xbe, 0xef}
	cases := []struct {
		name    string
		happens func(t *testing.T, fs *vfs.Mem)
		missing []Position // of 1..130
		damage  string
		torn    string
	}{
		{name: "nothing", happens: func(*testing.T, *vfs.Mem) {}},
		{name: "a payload in the middle of a segment", happens: func(t *testing.T, fs *vfs.Mem) { overwrite(t, fs, first, at(10)+50, garbage) },
			missing: []Position{10}, damage: "segment 1, 136 bytes at 9416: the checksum does not match; lost are at most positions 10 to 10"},
		{name: "the length of a frame", happens: func(t *testing.T, fs *vfs.Mem) {
			overwrite(t, fs, first, at(10), []byte{0xff, 0xff, 0xff, 0xff})
		}, missing: []Position{10}, damage: "segment 1, 136 bytes at 9416: the checksum does not match; lost are at most positions 10 to 10"},
		{name: "zeroes over two frames", happens: func(t *testing.T, fs *vfs.Mem) { overwrite(t, fs, third, at(3), make([]byte, 2*frame100)) },
			missing: []Position{123, 124}, damage: "segment 3, 272 bytes at 8464: frames are missing; lost are at most positions 123 to 124"},
		{name: "the first frame of a segment", happens: func(t *testing.T, fs *vfs.Mem) { overwrite(t, fs, second, at(1)+8, garbage) },
			missing: []Position{61}, damage: "segment 2, 136 bytes at 8192: the checksum does not match; lost are at most positions 61 to 61"},
		{name: "the last frame of a segment", happens: func(t *testing.T, fs *vfs.Mem) { overwrite(t, fs, first, at(60)+50, garbage) },
			missing: []Position{60}, damage: "segment 1, 136 bytes at 16216: the checksum does not match; lost are at most positions 60 to 60"},
		{name: "one header copy", happens: func(t *testing.T, fs *vfs.Mem) { overwrite(t, fs, first, 0, make([]byte, 4096)) }},
		{name: "both header copies", happens: func(t *testing.T, fs *vfs.Mem) { overwrite(t, fs, second, 0, make([]byte, 8192)) },
			missing: sequence(61, 120), damage: "segment 1, 0 bytes at 16352: frames are missing; lost are at most positions 61 to 120\n" +
				"segment 2, 16384 bytes at 0: no valid header; lost are at most positions 61 to 120"},
		{name: "a segment is gone", happens: func(t *testing.T, fs *vfs.Mem) {
			if err := errors.Join(fs.Remove(second), fs.SyncDir("j")); err != nil {
				t.Fatal(err)
			}
		}, missing: sequence(61, 120), damage: "segment 1, 0 bytes at 16352: frames are missing; lost are at most positions 61 to 120"},
		{name: "the last frame", happens: func(t *testing.T, fs *vfs.Mem) { overwrite(t, fs, third, at(10)+50, garbage) },
			missing: []Position{130}, torn: "segment 3: torn tail of 136 bytes at 9416 cut, with 0 whole frames behind it"},
		{name: "a file cut short", happens: func(t *testing.T, fs *vfs.Mem) {
			f, err := fs.Open(third, vfs.ReadWrite)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(f.Truncate(at(10)+41), f.Sync(), f.Close()); err != nil {
				t.Fatal(err)
			}
		}, missing: []Position{130}, torn: "segment 3: torn tail of 41 bytes at 9416 cut, with 0 whole frames behind it"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			mem := fill(t, 130)
			c.happens(t, mem)
			checked, err := Check(mem, "j")
			if err != nil {
				t.Fatal(err)
			}
			j, rec := mustOpen(t, mem, small())
			if got := describe(rec); got != c.damage || describe(checked) != got {
				t.Errorf("damage:\n%s\nwant\n%s\ncheck said\n%s", got, c.damage, describe(checked))
			}
			if got := fmt.Sprint(rec.Torn); rec.Torn != nil && got != c.torn || rec.Torn == nil && c.torn != "" {
				t.Errorf("torn %v, want %q", rec.Torn, c.torn)
			}
			want := sequence(1, 130)
			want = slices.DeleteFunc(want, func(p Position) bool { return slices.Contains(c.missing, p) })
			if got := positions(t, j, 0); !slices.Equal(got, want) {
				t.Errorf("got %v", got)
			}
			mustAppend(t, j, 200, "after")
			mustClose(t, j)
			// Damage stays known, the cut stays cut, and nothing else is lost by looking again.
			j, again := mustOpen(t, mem, small())
			defer mustClose(t, j)
			if got := positions(t, j, 0); !slices.Equal(got, append(want, 200)) || again.Torn != nil {
				t.Errorf("reopened: %v, torn %v", got, again.Torn)
			}
			for _, d := range again.Damage {
				if !d.Known {
					t.Errorf("reported as new again: %v", d)
				}
			}
		})
	}
}

func sequence(first, last Position) (ps []Position) {
	for p := first; p <= last; p++ {
		ps = append(ps, p)
	}
	return ps
}

func describe(r Recovery) string {
	var lines []string
	for _, d := range r.Damage {
		lines = append(lines, d.String())
	}
	return strings.Join(lines, "\n")
}

// TestDamagedSegmentIsKept: retention sets damaged files aside.
func TestDamagedSegmentIsKept(t *testing.T) {
	mem := fill(t, 130)
	overwrite(t, mem, "j/0000000001.seg", firstFrame+50, []byte("oops"))
	j, rec := mustOpen(t, mem, small())
	if len(rec.Damage) != 1 {
		t.Fatal(rec)
	}
	if err := j.DropBefore(125); err != nil {
		t.Fatal(err)
	}
	mustClose(t, j)
	names := files(t, mem)
	want := []string{"0000000001.damaged", "0000000001.seg.damaged", "0000000002.spare", "0000000003.seg"}
	if !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
}

// TestBitFlips: one wrong bit anywhere loses at most the frame it is in, and no frame is ever returned changed.
func TestBitFlips(t *testing.T) {
	image := readFile(t, fill(t, 20), "j/0000000001.seg")
	image = image[:firstFrame+20*frame100+64]
	r := rand.New(rand.NewPCG(1, 1))
	for n := range 1500 {
		bit := r.IntN(len(image) * 8)
		if n < 64*8 {
			bit = n // every bit of the header
		}
		b := slices.Clone(image)
		b[bit/8] ^= 1 << (bit % 8)
		mem := vfs.NewMem()
		writeFile(t, mem, "j/0000000001.seg", b)
		j, rec := mustOpen(t, mem, small())
		got, err := collect(j, 0)
		if err != nil {
			t.Fatal(err)
		}
		hit := Position((bit/8-firstFrame)/frame100 + 1)
		if bit/8 < firstFrame || hit > 20 {
			hit = 0
		}
		if len(got) < 19 || len(got) == 19 && hit == 0 {
			t.Fatalf("bit %d of byte %d: %d frames left, %+v", bit%8, bit/8, len(got), rec)
		}
		for _, f := range got {
			if string(f.Payload) != strings.Repeat("x", 100) || f.Received != int64(f.Position)*1000 || f.Kind != 1 || f.Depth != 0 {
				t.Fatalf("bit %d of byte %d: changed frame %+v", bit%8, bit/8, f)
			}
		}
		mustClose(t, j)
	}
}

// TestDamageStaysDamage: what was reported as damage is not taken for a torn tail, and cut, when the frames behind it that told the difference are
// lost as well.
func TestDamageStaysDamage(t *testing.T) {
	mem := fill(t, 10)
	const path = "j/0000000001.seg"
	garbage := []byte{0xde, 0xad, 0xbe, 0xef}
	spoil := func(frame int64) { overwrite(t, mem, path, firstFrame+(frame-1)*frame100+50, garbage) }
	spoil(5)
	j, _ := mustOpen(t, mem, small())
	mustClose(t, j)
	for frame := int64(6); frame <= 10; frame++ {
		spoil(frame)
	}
	before := readFile(t, mem, path)
	j, rec := mustOpen(t, mem, small())
	defer mustClose(t, j)
	if rec.Torn != nil || len(rec.Damage) != 1 || !rec.Damage[0].Known {
		t.Errorf("torn %v, damage %v", rec.Torn, rec.Damage)
	}
	if !slices.Equal(readFile(t, mem, path), before) {
		t.Error("the bytes were not kept")
	}
	if got := positions(t, j, 0); !slices.Equal(got, sequence(1, 4)) {
		t.Errorf("got %v", got)
	}
}

// TestHostilePayload: a payload that is the image of a frame does not become one when the frame around it is torn or damaged.
func TestHostilePayload(t *testing.T) {
	mem := vfs.NewMem()
	opt := small()
	opt.salt = nil // the real thing
	j, _ := mustOpen(t, mem, opt)
	mustAppend(t, j, 1, "honest")
	forged := Frame{Position: 3, Synced: 2, Kind: 1, Payload: []byte("I am the administrator")}
	for _, salt := range []uint32{0, 1, 0xffffffff} {
		forged.Position++
		mustAppend(t, j, forged.Position+10, "1234"+string(appendFrame(nil, forged, salt))) // 4 bytes bring it to a multiple of 8
	}
	mustClose(t, j)
	overwrite(t, mem, "j/0000000001.seg", firstFrame+48+8, []byte{1, 2, 3}) // the frames with the forgeries are bad
	overwrite(t, mem, "j/0000000001.seg", firstFrame+48+104+8, []byte{1, 2, 3})
	overwrite(t, mem, "j/0000000001.seg", firstFrame+48+208+8, []byte{1, 2, 3})
	j, rec := mustOpen(t, mem, small())
	defer mustClose(t, j)
	if got := positions(t, j, 0); !slices.Equal(got, []Position{1}) {
		t.Errorf("got %v, %+v", got, rec)
	}
}

// TestCostlyPayload: a torn frame full of headers that each claim the rest of the file is given up, not checksummed for hours.
func TestCostlyPayload(t *testing.T) {
	const size = 8 << 20
	payload := make([]byte, 0, size)
	payload = append(payload, 0, 0, 0, 0)
	for len(payload)+40 < size {
		f := appendFrame(nil, Frame{Position: 1 << 40}, 0)
		remaining := size - len(payload) - 40
		f[0], f[1], f[2], f[3] = byte(remaining), byte(remaining>>8), byte(remaining>>16), byte(remaining>>24)
		payload = append(payload, f...)
	}
	mem := vfs.NewMem()
	opt := Options{Inline: true}
	j, _ := mustOpen(t, mem, opt)
	mustAppend(t, j, 1, "honest")
	mustAppend(t, j, 2, string(payload))
	mustClose(t, j)
	overwrite(t, mem, "j/0000000001.seg", firstFrame+48+8, []byte{9, 9})
	j, rec := mustOpen(t, mem, opt)
	if got := positions(t, j, 0); !slices.Equal(got, []Position{1}) || rec.Torn == nil {
		t.Errorf("got %v, %+v", got, rec)
	}
	mustAppend(t, j, 2, "again")
	mustClose(t, j)
	j, rec = mustOpen(t, mem, opt)
	defer mustClose(t, j)
	if got := positions(t, j, 0); !slices.Equal(got, []Position{1, 2}) || rec.Damage != nil {
		t.Errorf("after a new frame: %v, %+v", got, rec)
	}
}

// TestRecycledSegments: frames of an earlier life of a file never come back, wherever the current life ends.
func TestRecycledSegments(t *testing.T) {
	mem := vfs.NewMem()
	opt := small() // the same salt in every life: only positions keep old frames out
	j, _ := mustOpen(t, mem, opt)
	for p := range Position(200) {
		mustAppend(t, j, p+1, strings.Repeat("x", 100))
		if err := j.DropBefore(p); err != nil {
			t.Fatal(err)
		}
		left := mem.Clone()
		k, rec := mustOpen(t, left, opt)
		if got := positions(t, k, 0); got[len(got)-1] != p+1 || rec.Torn != nil || rec.Damage != nil {
			t.Fatalf("after %d: %v, %+v", p+1, got, rec)
		}
		mustClose(t, k)
	}
	if st := j.Status(); st.Segments > 2 || st.Spares == 0 || st.First <= 60 {
		t.Errorf("%+v", st)
	}
	mustClose(t, j)
}

// TestFailedSync: the frames of a failed fdatasync are written to another file; the old one is not synced again.
func TestFailedSync(t *testing.T) {
	mem := vfs.NewMem()
	fail, syncs := false, map[string]int{}
	fs := vfs.Fault(mem, func(op vfs.Op) error {
		if op.Kind != vfs.OpSync {
			return nil
		}
		syncs[op.Path]++
		if fail && op.Path == "j/0000000001.tmp" {
			return vfs.ErrIO
		}
		return nil
	})
	j, _ := mustOpen(t, fs, small())
	mustAppend(t, j, 1, "one")
	fail = true
	mustAppend(t, j, 2, "two") // succeeds, elsewhere
	before := syncs["j/0000000001.tmp"]
	mustAppend(t, j, 3, "three")
	left := mem.Crash(rand.New(rand.NewPCG(1, 1)))
	if got := positions(t, j, 0); !slices.Equal(got, []Position{1, 2, 3}) {
		t.Errorf("read %v", got)
	}
	mustClose(t, j)
	if syncs["j/0000000001.tmp"] != before {
		t.Error("the file whose sync failed was synced again")
	}
	k, rec := mustOpen(t, left, small())
	defer mustClose(t, k)
	if got := positions(t, k, 0); !slices.Equal(got, []Position{1, 2, 3}) || rec.Damage != nil || rec.Torn != nil {
		t.Errorf("after a power cut: %v, %+v", got, rec)
	}
}

// TestBrokenDisk: while nothing can be synced every append is refused as unavailable; when the disk works again so does the journal.
func TestBrokenDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem()
		broken, tries := false, 0
		fs := vfs.Fault(mem, func(op vfs.Op) error {
			if broken && op.Kind == vfs.OpCreate {
				tries++
			}
			if broken && (op.Kind == vfs.OpSync || op.Kind == vfs.OpSyncDir) {
				return vfs.ErrIO
			}
			return nil
		})
		j, _ := mustOpen(t, fs, small())
		mustAppend(t, j, 1, "one")
		broken = true
		for p := range Position(1000) {
			_, err := j.Append(t.Context(), Frame{Position: p + 2})
			if !errors.Is(err, ErrUnavailable) || !errors.Is(err, vfs.ErrIO) {
				t.Fatalf("append on a broken disk: %v", err)
			}
			time.Sleep(time.Millisecond) // of the bubble's clock
		}
		if tries < 2 || tries > 5 {
			t.Errorf("%d tries in one second, want one in 250 ms", tries)
		}
		if j.Status().Unavailable == nil {
			t.Error("the status does not tell")
		}
		broken = false
		time.Sleep(retryAfter)
		mustAppend(t, j, 2000, "last")
		if err := j.Status().Unavailable; err != nil {
			t.Errorf("the status still says %v", err)
		}
		left := mem.Crash(rand.New(rand.NewPCG(2, 2)))
		mustClose(t, j)
		k, rec := mustOpen(t, left, small())
		defer mustClose(t, k)
		// Frame 2 was written before its sync failed: it is in the journal, although its writer was told that the outcome is unknown.
		if got := positions(t, k, 0); !slices.Equal(got, []Position{1, 2, 2000}) || rec.Damage != nil {
			t.Errorf("got %v, %+v", got, rec)
		}
	})
}

// TestLostFrames: unsynced frames that cannot be read back after a failed fdatasync are errors to those who wait for them, now and later, and
// do not take the others with them.
func TestLostFrames(t *testing.T) {
	mem := vfs.NewMem()
	failing := false
	fs := vfs.Fault(mem, func(op vfs.Op) error {
		if failing && op.Kind == vfs.OpSync && op.Path == "j/0000000001.tmp" {
			return vfs.ErrIO
		}
		return nil
	})
	j, _ := mustOpen(t, fs, small())
	mustAppend(t, j, 1, strings.Repeat("x", 100))
	var tickets []Ticket
	for p := range Position(4) {
		ticket, err := j.Write(Frame{Position: p + 2, Payload: []byte(strings.Repeat("x", 100))})
		if err != nil {
			t.Fatal(err)
		}
		tickets = append(tickets, ticket)
	}
	overwrite(t, mem, "j/0000000001.seg", firstFrame+2*frame100+50, []byte("gone")) // position 3
	overwrite(t, mem, "j/0000000001.seg", firstFrame+4*frame100+50, []byte("gone")) // position 5, the last
	failing = true
	for i, want := range []error{nil, ErrLost, nil, ErrLost} {
		if _, err := j.Commit(t.Context(), tickets[i]); !errors.Is(err, want) {
			t.Errorf("position %d: %v, want %v", tickets[i].Position(), err, want)
		}
	}
	mustAppend(t, j, 6, "six")
	left := mem.Crash(rand.New(rand.NewPCG(3, 3)))
	mustClose(t, j)
	k, rec := mustOpen(t, left, small())
	defer mustClose(t, k)
	if got := positions(t, k, 0); !slices.Equal(got, []Position{1, 2, 4, 6}) || rec.Damage != nil || rec.Torn != nil {
		t.Errorf("got %v, %+v", got, rec)
	}
}

// TestFullDisk: writes are refused while the disk is full and come back by themselves; the journal opens on a full disk.
func TestFullDisk(t *testing.T) {
	mem := vfs.NewMem()
	j, _ := mustOpen(t, mem, small())
	mem.SetLimit(40 << 10) // two segments
	var refused, accepted []Position
	for p := range Position(200) {
		if p == 150 {
			mem.SetLimit(0)
		}
		_, err := j.Append(t.Context(), Frame{Position: p + 1, Payload: make([]byte, 100)})
		switch {
		case err == nil:
			accepted = append(accepted, p+1)
		case errors.Is(err, vfs.ErrNoSpace):
			refused = append(refused, p+1)
		default:
			t.Fatal(err)
		}
		if p == 140 {
			mustClose(t, j)
			j, _ = mustOpen(t, mem, small())
		}
	}
	if len(refused) != 30 || refused[0] != 121 {
		t.Errorf("refused %v, want 121 to 150", refused)
	}
	if got := positions(t, j, 0); !slices.Equal(got, accepted) {
		t.Errorf("got %v", got)
	}
	mustClose(t, j)
	if names := files(t, mem); slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(n, tempExt) }) {
		t.Errorf("failed attempts are left: %v", names)
	}
}

func files(t testing.TB, fs vfs.FS) (names []string) {
	t.Helper()
	infos, err := fs.List("j")
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range infos {
		names = append(names, i.Name)
	}
	return names
}

// TestFaults makes every single operation of a history fail, in several ways. Afterwards the journal works, and what was acknowledged is there.
func TestFaults(t *testing.T) {
	ways := map[string]error{"EIO": vfs.ErrIO, "ENOSPC": vfs.ErrNoSpace, "short write": vfs.ShortWrite{N: 30, Err: vfs.ErrNoSpace}}
	for name, way := range ways {
		for seed := range uint64(1) {
			for n := int64(0); ; n++ {
				fired, err := faultRound(seed, n, way)
				if err != nil {
					t.Fatalf("%s at operation %d, seed %d: %v", name, n, seed, err)
				}
				if !fired {
					if n < 100 {
						t.Errorf("only %d operations", n)
					}
					break
				}
			}
		}
	}
}

func faultRound(seed uint64, n int64, way error) (fired bool, err error) {
	r := rand.New(rand.NewPCG(seed, 3))
	mem := vfs.NewMem()
	fail := &vfs.FailAt{N: n, Err: way}
	fs := vfs.Fault(mem, fail.Inject)
	opt := Options{SegmentSize: minSegmentSize, Inline: true}
	var acked, tried []Frame
	var j *Journal
	open := func() error {
		if j, _, err = Open(fs, "j", opt); err != nil { // one failure, then it must work
			j, _, err = Open(fs, "j", opt)
		}
		return err
	}
	if err := open(); err != nil {
		return fail.Fired(), err
	}
	last := Position(0)
	for i := range 30 {
		f := randomFrame(r, last)
		last = f.Position
		tried = append(tried, f)
		before := fail.Fired()
		_, err := j.Append(context.Background(), f)
		if err == nil {
			acked = append(acked, f)
		} else if before || !fail.Fired() {
			return fail.Fired(), fmt.Errorf("append without a fault: %w", err)
		}
		if i%9 == 8 {
			if err := j.DropBefore(last / 4); err != nil && before {
				return fail.Fired(), err
			}
			for _, err := range j.Read(0) {
				if err != nil && before {
					return fail.Fired(), err
				}
			}
		}
		if i%15 == 14 {
			if err := j.Close(context.Background()); err != nil && before {
				return fail.Fired(), err
			}
			if err := open(); err != nil {
				return fail.Fired(), err
			}
		}
	}
	left := mem.Crash(r)
	_ = j.Close(context.Background()) // what counts is what the power cut left
	return fail.Fired(), holds(left, acked, tried, last/4)
}

// holds checks that fs has every acknowledged frame from position from on, in order, and none that was not tried.
func holds(fs vfs.FS, acked, tried []Frame, from Position) error {
	k, rec, err := Open(fs, "j", Options{SegmentSize: minSegmentSize, Inline: true})
	if err != nil {
		return err
	}
	got, err := collect(k, 0)
	if err = errors.Join(err, k.Close(context.Background())); err != nil {
		return err
	}
	if len(rec.Damage) > 0 {
		return fmt.Errorf("damage %v", rec.Damage)
	}
	find := func(in []Frame, f Frame) bool {
		return slices.ContainsFunc(in, func(g Frame) bool { return equal(f, g) })
	}
	for i, f := range got {
		if !find(tried, f) || i > 0 && f.Position <= got[i-1].Position {
			return fmt.Errorf("position %d was never written, or not there", f.Position)
		}
	}
	for _, f := range acked {
		if f.Position >= from && !find(got, f) {
			return fmt.Errorf("acknowledged position %d is lost: %+v", f.Position, rec)
		}
	}
	return nil
}

// TestDamageUnderReaders: damage that appears while the journal is open is an error to the reader, who can go on.
func TestDamageUnderReaders(t *testing.T) {
	mem := fill(t, 130)
	j, _ := mustOpen(t, mem, small())
	defer mustClose(t, j)
	overwrite(t, mem, "j/0000000001.seg", firstFrame+2*frame100+50, []byte("oops"))
	overwrite(t, mem, "j/0000000002.seg", firstFrame+59*frame100+50, []byte("oops"))
	var got []Position
	var holes []string
	for f, err := range j.Read(2) {
		var hole *DamageError
		switch {
		case errors.As(err, &hole):
			holes = append(holes, fmt.Sprint(hole.Segment, hole.After, hole.Before))
		case err != nil:
			t.Fatal(err)
		default:
			got = append(got, f.Position)
		}
	}
	want := slices.DeleteFunc(sequence(2, 130), func(p Position) bool { return p == 3 || p == 120 })
	if !slices.Equal(got, want) || !slices.Equal(holes, []string{"1 2 4", "2 119 121"}) {
		t.Errorf("got %v, holes %q", got, holes)
	}
	if got := positions(t, j, 2); !slices.Equal(got, want) { // known by now
		t.Errorf("second reading: %v", got)
	}
}

func FuzzSegment(f *testing.F) {
	f.Add(readFile(f, fill(f, 3), "j/0000000001.seg")[:firstFrame+500])
	f.Add([]byte(segmentMagic))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		mem := vfs.NewMem()
		writeFile(t, mem, "j/0000000001.seg", b)
		j, _, err := Open(mem, "j", small())
		if err != nil {
			return // a later format
		}
		got, err := collect(j, 0)
		if err != nil {
			t.Fatal(err)
		}
		next := j.End() + 1
		if next > maxPosition {
			mustClose(t, j)
			return
		}
		mustAppend(t, j, next, "new")
		mustClose(t, j)
		j, rec := mustOpen(t, mem, small())
		defer mustClose(t, j)
		again, err := collect(j, 0)
		if err != nil || len(again) != len(got)+1 {
			t.Fatalf("%d frames, then %d: %v, %+v", len(got), len(again), err, rec)
		}
	})
}

func FuzzFrame(f *testing.F) {
	f.Add(appendFrame(nil, Frame{Position: 3, Synced: 1, Kind: 1, Payload: []byte("payload")}, 7), uint32(7))
	f.Fuzz(func(t *testing.T, b []byte, salt uint32) {
		mem := vfs.NewMem()
		writeFile(t, mem, "f", b)
		err := withFile(mem, "f", int64(len(b)), func(m vfs.Mapping) error {
			sc := scanner{m: m, head: header{salt: salt}, end: int64(len(b))}
			_, err := sc.at(0, 0, func(fr Frame) {
				again := appendFrame(nil, fr, salt)
				if n := frameHeader + len(fr.Payload); string(again[:n]) != string(b[:n]) {
					t.Errorf("decoded %+v, which encodes differently", fr)
				}
			})
			return err
		})
		if err != nil && !errors.Is(err, errBad) {
			t.Fatal(err)
		}
	})
}

// TestVoidSegments: what recovery could not remove stays void, and is removed later.
func TestVoidSegments(t *testing.T) {
	mem := vfs.NewMem()
	opt := small()
	opt.Mode = Never // nothing says that a frame was durable
	j, _ := mustOpen(t, mem, opt)
	for p := range Position(130) {
		mustAppend(t, j, p+1, strings.Repeat("x", 100))
	}
	left := mem.Clone()
	mustClose(t, j)
	overwrite(t, left, "j/0000000001.seg", firstFrame+9*frame100+50, []byte("torn"))
	stubborn := vfs.Fault(left, func(op vfs.Op) error {
		if op.Kind == vfs.OpRemove || op.Kind == vfs.OpTruncate {
			return vfs.ErrIO
		}
		return nil
	})
	j, rec := mustOpen(t, stubborn, small())
	if rec.Torn == nil || rec.Torn.Frames != 120 || len(rec.Warnings) != 3 || rec.Last != 9 {
		t.Errorf("%+v", rec)
	}
	mustAppend(t, j, 70, "new life of a position")
	mustClose(t, j)
	want := append(sequence(1, 9), 70)
	for range 2 {
		j, rec = mustOpen(t, left, small())
		if got := positions(t, j, 0); !slices.Equal(got, want) || rec.Damage != nil || rec.Torn != nil {
			t.Errorf("got %v, %+v", got, rec)
		}
		mustClose(t, j)
	}
	if infos, err := left.List("j"); err != nil || len(infos) != 2 {
		t.Errorf("files left: %v, %v", infos, err)
	}
}

// TestSpareInUse: a spare that was being taken into use when the power was cut, so that it still has its old name, is not reused: it may hold
// frames whose positions are used again.
func TestSpareInUse(t *testing.T) {
	mem := fill(t, 5)
	j, _ := mustOpen(t, mem, small())
	mustAppend(t, j, 6, "unacknowledged")
	image := readFile(t, mem, "j/0000000002.seg")
	mustClose(t, j)
	mem = fill(t, 5)
	writeFile(t, mem, "j/0000000009.spare", image)
	j, _ = mustOpen(t, mem, small())
	defer mustClose(t, j)
	if st := j.Status(); st.Spares != 0 {
		t.Errorf("%+v", st)
	}
}

// TestFailedWrite: a frame whose write failed is not there, even when all its bytes got to the file, also when the process dies at once.
func TestFailedWrite(t *testing.T) {
	for _, again := range []error{nil, vfs.ErrIO} { // whether the end mark can be written
		mem := vfs.NewMem()
		writes := 0
		fs := vfs.Fault(mem, func(op vfs.Op) error {
			if op.Kind != vfs.OpWrite || op.Off <= firstFrame {
				return nil
			}
			switch writes++; writes {
			case 1:
				return vfs.ShortWrite{N: frame100 - 1, Err: vfs.ErrNoSpace}
			case 2:
				return again
			}
			return nil
		})
		j, _ := mustOpen(t, fs, small())
		mustAppend(t, j, 1, strings.Repeat("x", 100))
		if _, err := j.Append(t.Context(), Frame{Position: 2, Payload: make([]byte, 100)}); !errors.Is(err, vfs.ErrNoSpace) {
			t.Errorf("got %v", err)
		}
		want := []Position{1}
		if again != nil { // the frame is void as soon as there is another segment
			mustAppend(t, j, 3, "")
			want = []Position{1, 3}
		}
		k, rec := mustOpen(t, mem.Clone(), small())
		if got := positions(t, k, 0); !slices.Equal(got, want) || rec.Torn != nil {
			t.Errorf("found %v, %+v", got, rec)
		}
		mustClose(t, k)
		if again == nil {
			mustAppend(t, j, 2, "")
		}
		mustClose(t, j)
	}
}

// TestWholeFrameInSpiteOfAnError: the disk took the frame and only the end mark behind it was refused. It would be found by the next Open, so it counts.
func TestWholeFrameInSpiteOfAnError(t *testing.T) {
	mem := vfs.NewMem()
	fail := &vfs.FailAt{N: 1, Err: vfs.ShortWrite{N: frame100, Err: vfs.ErrNoSpace},
		Match: func(op vfs.Op) bool { return op.Kind == vfs.OpWrite && op.Off >= firstFrame }}
	j, _ := mustOpen(t, vfs.Fault(mem, fail.Inject), small())
	for p := range Position(3) {
		mustAppend(t, j, p+1, strings.Repeat("x", 100))
	}
	if !fail.Fired() {
		t.Error("the write did not fail")
	}
	left := mem.Crash(rand.New(rand.NewPCG(1, 1)))
	mustClose(t, j)
	k, rec := mustOpen(t, left, small())
	defer mustClose(t, k)
	if got := positions(t, k, 0); !slices.Equal(got, sequence(1, 3)) || rec.Damage != nil {
		t.Errorf("got %v, %+v", got, rec)
	}
}

// TestFailedSyncOfTheProcessBefore: an fdatasync failed, and the kernel forgot that the pages are not on the disk. The process was started again. What
// it says is durable must be: a power cut takes nothing.
func TestFailedSyncOfTheProcessBefore(t *testing.T) {
	mem := vfs.NewMem()
	broken := false
	fs := vfs.Fault(mem, func(op vfs.Op) error {
		if broken && op.Kind.Changes() && op.Kind != vfs.OpWrite {
			return vfs.ErrIO
		}
		return nil
	})
	j, _ := mustOpen(t, fs, small())
	mustAppend(t, j, 1, "durable")
	broken = true
	if _, err := j.Append(t.Context(), Frame{Position: 2, Payload: []byte("readable")}); !errors.Is(err, ErrUnavailable) {
		t.Fatalf("got %v", err)
	}
	killed := mem.Clone()
	if err := j.Close(t.Context()); err == nil {
		t.Error("closed without an error")
	}
	k, _ := mustOpen(t, killed, small())
	if k.Synced() != 2 {
		t.Errorf("synced up to %d, want 2", k.Synced())
	}
	mustAppend(t, k, 3, "")
	left := killed.Crash(rand.New(rand.NewPCG(2, 2)))
	mustClose(t, k)
	l, rec := mustOpen(t, left, small())
	defer mustClose(t, l)
	if got := positions(t, l, 0); !slices.Equal(got, sequence(1, 3)) || rec.Damage != nil {
		t.Errorf("got %v, %+v", got, rec)
	}
}

// TestRescueAtOpen: the first fdatasync after a restart fails, so frames that were acknowledged before move to another file. The files they were in
// must not go before the name of that one is durable.
func TestRescueAtOpen(t *testing.T) {
	mem := fill(t, 121) // the last one alone in its segment
	again, _ := mustOpen(t, mem, small())
	mustClose(t, again) // the file has been cut
	for cut := range uint64(40) {
		disk := mem.Clone()
		var left *vfs.Mem
		failed := false
		j, _ := mustOpen(t, vfs.Fault(disk, func(op vfs.Op) error {
			if op.Kind == vfs.OpSync && !failed {
				failed = true
				return vfs.ErrIO
			}
			if op.Kind == vfs.OpSyncDir && failed && left == nil {
				left = disk.Crash(rand.New(rand.NewPCG(cut, 6)))
			}
			return nil
		}), small())
		mustClose(t, j)
		if left == nil {
			t.Fatal("nothing was rescued")
		}
		k, _ := mustOpen(t, left, small())
		if got := positions(t, k, 0); !slices.Equal(got, sequence(1, 121)) {
			t.Errorf("cut %d: %v", cut, got)
		}
		mustClose(t, k)
	}
}

// TestNamesInOrder: without commits two segments can be written before the directory is synced. The second must not survive without the first.
func TestNamesInOrder(t *testing.T) {
	opt := small()
	opt.Mode = Never
	mem := vfs.NewMem()
	j, _ := mustOpen(t, mem, opt)
	for p := range Position(70) { // 60 fit in the first segment
		mustAppend(t, j, p+1, strings.Repeat("x", 100))
	}
	for cut := range uint64(40) {
		k, _ := mustOpen(t, mem.Crash(rand.New(rand.NewPCG(cut, 7))), small())
		if got := positions(t, k, 0); len(got) > 0 && got[0] != 1 {
			t.Errorf("cut %d: begins at %d", cut, got[0])
		}
		mustClose(t, k)
	}
	mustClose(t, j)
}

// TestRescueManySegments: unsynced frames of several files move into one, and the files they were in go away.
func TestRescueManySegments(t *testing.T) {
	mem := vfs.NewMem()
	// Three segments have their names made durable when the next one is begun; the commit does it for the fourth.
	fail := &vfs.FailAt{N: 3, Err: vfs.ErrIO, Match: func(op vfs.Op) bool { return op.Kind == vfs.OpSyncDir }}
	j, _ := mustOpen(t, vfs.Fault(mem, fail.Inject), small())
	var last Ticket
	for p := range Position(200) {
		var err error
		if last, err = j.Write(Frame{Position: p + 1, Payload: make([]byte, 100)}); err != nil {
			t.Fatal(err)
		}
	}
	if d, err := j.Commit(t.Context(), last); err != nil || d != Synced || !fail.Fired() {
		t.Errorf("%v, %v", d, err)
	}
	left := mem.Crash(rand.New(rand.NewPCG(4, 4)))
	mustClose(t, j)
	if names := files(t, mem); !slices.Equal(names, []string{"0000000005.seg"}) {
		t.Errorf("files %v", names)
	}
	k, rec := mustOpen(t, left, small())
	defer mustClose(t, k)
	if got := positions(t, k, 0); !slices.Equal(got, sequence(1, 200)) || rec.Damage != nil {
		t.Errorf("got %d frames, %+v", len(got), rec)
	}
}

// TestDropUnderReader: a reader finishes the segment it is in although retention has given the file up and new frames have been written since.
func TestDropUnderReader(t *testing.T) {
	mem := fill(t, 130)
	j, _ := mustOpen(t, mem, small())
	var got []Position
	for f, err := range j.Read(0) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, f.Position)
		if f.Position == 5 {
			if err := j.DropBefore(130); err != nil {
				t.Fatal(err)
			}
			for p := Position(131); p <= 260; p++ {
				mustAppend(t, j, p, strings.Repeat("y", 100))
			}
		}
	}
	want := append(sequence(1, 60), sequence(121, 260)...) // segment 2 is gone
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	mustClose(t, j)
	j, _ = mustOpen(t, mem, small())
	mustClose(t, j)
	// Frames 121-130, the end of a life, take what they need and no more.
	if i, err := mem.Stat("j/0000000003.seg"); err != nil || i.Size != firstFrame+10*frame100 {
		t.Errorf("%+v, %v", i, err)
	}
}
