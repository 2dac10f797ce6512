package events

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage/sealed"
	"github.com/tidemark-db/tidemark/storage/vfs"
)

// Check reads all of a file and verifies it: both copies of its end, every block, the order of the messages, what the directory says of the blocks, and the
// totals. It yields each block with what is wrong with it, nil when it is sound, and what is wrong with the rest of the file with a nil block.
func Check(fs vfs.FS, path string) iter.Seq2[*Block, error] {
	return func(yield func(*Block, error) bool) {
		f, err := Open(fs, path)
		if err != nil {
			yield(nil, err)
			return
		}
		c := checker{f: f, yield: yield, next: sealed.HeaderSize}
		c.ends()
		for i := 0; i < len(f.blocks) && !c.stopped; i++ {
			c.block(i)
		}
		c.totals()
		if err := f.Close(); err != nil {
			c.fault(0, err)
		}
	}
}

// Bytes is the size of the block in the file.
func (b *Block) Bytes() int64 { return int64(b.length) }

// checker walks over a file from front to back.
type checker struct {
	f        *File
	yield    func(*Block, error) bool
	stopped  bool
	next     int64 // offset of what comes next
	messages uint64
	last     *Record // of the block before
}

func (c *checker) say(b *Block, err error) {
	if !c.stopped {
		c.stopped = !c.yield(b, err)
	}
}

// fault reports something that is wrong at an offset; nil is nothing.
func (c *checker) fault(offset int64, err error) {
	if err != nil {
		c.say(nil, c.f.f.Damage(offset, err))
	}
}

// ends verifies the header, and both copies of the directory and of the tail.
func (c *checker) ends() {
	c.f.f.Check(sealed.Ends{
		Tail: func(b []byte) error {
			_, err := parseTail(b, c.f.f.Size)
			return err
		},
		Directory: c.f.directory,
		Content: func(b []byte) error {
			if sealed.Checksum(b) != c.f.tail.sum {
				return errors.New("a copy of the directory does not match its checksum")
			}
			return nil
		},
	}, func(err error) { c.say(nil, err) })
}

// block verifies a block.
func (c *checker) block(i int) {
	b := &c.f.blocks[i]
	records, err := c.f.Read(i)
	if err == nil {
		if err = c.content(b, records); err != nil {
			err = c.f.f.Damage(b.offset, err)
		}
		c.last = &records[len(records)-1]
	}
	c.messages += uint64(b.Count)
	c.next = b.offset + int64(b.length)
	c.say(b, err)
}

// content compares a block with what the directory says of it.
func (c *checker) content(b *Block, records []Record) error {
	if b.offset != c.next {
		return fmt.Errorf("the block should begin at byte %d", c.next)
	}
	want := Block{Newest: records[0].Time, Oldest: records[len(records)-1].Time, Count: len(records), offset: b.offset, length: b.length, raw: b.raw}
	var entities, types []uint32
	last := c.last
	for i := range records {
		r := &records[i]
		if last != nil && compare(last, r) > 0 {
			return fmt.Errorf("the message of %d, number %d of the block, is out of order", r.Time, i)
		}
		last = r
		want.severities |= 1 << (r.Severity & 7)
		want.Received = max(want.Received, r.Received)
		entities, types = append(entities, hash(r.Entity)), append(types, hash(r.Type))
	}
	switch {
	case want.Newest != b.Newest || want.Oldest != b.Oldest || want.Received != b.Received || want.severities != b.severities:
		return errors.New("the directory entry is wrong about times or severities")
	case !sameNames(b.entities, entities) || !sameNames(b.types, types):
		return errors.New("the directory entry is wrong about entities or types")
	}
	return nil
}

// sameNames compares what a directory entry lists, nil for any name, with the names of all messages.
func sameNames(listed, found []uint32) bool {
	slices.Sort(found)
	return listed == nil || slices.Equal(listed, slices.Compact(found))
}

// compare is the order of a file.
func compare(a, b *Record) int {
	return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Entity, b.Entity), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Source, b.Source),
		cmp.Compare(a.Arrival, b.Arrival))
}

// totals compares the tail with what was counted.
func (c *checker) totals() {
	t := &c.f.tail
	switch n := len(c.f.blocks); {
	case c.stopped:
	case c.next != t.directory:
		c.fault(c.next, fmt.Errorf("%d bytes in front of the directory", t.directory-c.next))
	case c.messages != t.messages || t.old > t.generation:
		c.fault(c.f.f.Size-tailSize, fmt.Errorf("the end of the file tells of %d messages of the generations %d to %d, and %d were found", t.messages, t.old, t.generation, c.messages))
	case n > 0 && (c.f.blocks[0].Newest != t.newest || c.f.blocks[n-1].Oldest != t.oldest):
		c.fault(c.f.f.Size-tailSize, errors.New("the end of the file is wrong about the times of its messages"))
	}
}

// Dump writes a file as text: its end, and its directory. message, when it is not nil, is asked for the text of each message. What cannot be read is a line that
// begins with an exclamation mark.
func Dump(w io.Writer, f *File, message func(*Record) string) error {
	var err error
	printf := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(w, format, args...)
		}
	}
	t := &f.tail
	printf("messages of %d bytes, version %d: %d messages in %d blocks, times %d down to %d, generations %d to %d\n", f.f.Size, version, t.messages, len(f.blocks),
		t.newest, t.oldest, t.old, t.generation)
	for i := range f.blocks {
		b := &f.blocks[i]
		printf("%d: %d messages, times %d down to %d, received up to %d, severities %s, entities %s, types %s, %d bytes packed to %d\n", b.offset, b.Count, b.Newest, b.Oldest,
			b.Received, severities(b.severities), howMany(b.entities), howMany(b.types), b.raw, b.length)
		if message == nil {
			continue
		}
		records, failed := f.Read(i)
		if failed != nil {
			printf("! %v\n", failed)
		}
		for at := range records {
			printf("  %s\n", message(&records[at]))
		}
	}
	return err
}

// severities names the bits of a set.
func severities(set byte) string {
	var b bytes.Buffer
	for s := range core.Severity(8) {
		if set>>s&1 != 0 {
			if b.Len() > 0 {
				b.WriteByte('+')
			}
			b.WriteString(s.String())
		}
	}
	return b.String()
}

// howMany counts the names that a directory entry lists.
func howMany(hashes []uint32) string {
	if hashes == nil {
		return "any"
	}
	return fmt.Sprint(len(hashes))
}
