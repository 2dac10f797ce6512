package table

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"github.com/klauspost/compress/zstd"
)

// tombstones says whether marks of deleted keys are written.
type tombstones uint8

const (
	keepTombstones tombstones = iota
	dropTombstones            // there is no older layer
)

// plan is what a writer has to know before it begins.
type plan struct {
	entries int64 // at most
	marks   tombstones
}

// writeAll writes the entries of sources, from new to old, as one file.
func writeAll(to io.Writer, sources []source, p plan) error {
	w, err := newWriter(to, p.entries)
	if err != nil {
		return fmt.Errorf("table: write: %w", err)
	}
	m := newMerger(sources)
	for {
		one, err := m.next()
		switch {
		case err != nil:
			return err
		case one == nil:
			if err := w.finish(); err != nil {
				return fmt.Errorf("table: write: %w", err)
			}
			return nil
		case one.dead && p.marks == dropTombstones:
		default:
			if err := w.add(one); err != nil {
				return fmt.Errorf("table: write: %w", err)
			}
		}
	}
}

// writer makes a file in one pass.
type writer struct {
	to         *bufio.Writer
	offset     int64
	content    uint32 // CRC-32C of what was written
	packer     *zstd.Encoder
	block      []byte // entries of the block that is being filled
	restarts   []byte
	inBlock    int
	lowest     []byte
	before     []byte // the last key
	separator  []byte // of the block
	index      []byte
	filter     []byte
	entries    uint64
	tombstones uint64
	section    []byte // scratch
}

// writeBuffer is what goes to the disk at a time.
const writeBuffer = 128 << 10

func newWriter(to io.Writer, entries int64) (*writer, error) {
	size := filterSize(entries)
	if size > maxSection {
		return nil, fmt.Errorf("%d entries are too many for one file", entries)
	}
	// Without entropy coding blocks are a third larger and unpack in half the time, most of which would go into reading code tables.
	packer, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false),
		zstd.WithWindowSize(128<<10), zstd.WithNoEntropyCompression(true))
	if err != nil {
		return nil, err
	}
	w := &writer{to: bufio.NewWriterSize(to, writeBuffer), packer: packer, filter: make([]byte, size)}
	header := binary.LittleEndian.AppendUint32([]byte(magic), version)
	header = binary.LittleEndian.AppendUint32(header, crc32.Checksum(header, castagnoli))
	return w, w.write(header)
}

func (w *writer) write(b []byte) error {
	n, err := w.to.Write(b)
	w.offset += int64(n)
	w.content = crc32.Update(w.content, castagnoli, b[:n])
	return err
}

// add writes an entry whose key is above that of the one before.
func (w *writer) add(one *item) error {
	if len(one.key)+len(one.value) >= blockBytes {
		if err := w.endBlock(); err != nil {
			return err
		}
	}
	shared := commonPrefix(w.before, one.key)
	if w.inBlock == 0 {
		w.separator = append(w.separator[:0], one.key[:min(shared+1, len(one.key))]...)
	}
	if w.inBlock%restartEvery == 0 {
		w.restarts = binary.LittleEndian.AppendUint32(w.restarts, uint32(len(w.block)))
		shared = 0
	}
	w.block = binary.AppendUvarint(w.block, uint64(shared))
	w.block = binary.AppendUvarint(w.block, uint64(len(one.key)-shared))
	if one.dead {
		w.tombstones++
		w.block = append(w.block, 0)
	} else {
		w.block = binary.AppendUvarint(w.block, uint64(len(one.value))+1)
	}
	w.block = append(w.block, one.key[shared:]...)
	w.block = append(w.block, one.value...)
	if w.entries == 0 {
		w.lowest = append(w.lowest, one.key...)
	}
	w.before = append(w.before[:0], one.key...)
	w.inBlock++
	w.entries++
	filterAdd(w.filter, hashOf(one.key))
	if len(w.block) >= blockBytes {
		return w.endBlock()
	}
	return nil
}

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// endBlock writes the block that was filled, if any.
func (w *writer) endBlock() error {
	if w.inBlock == 0 {
		return nil
	}
	w.block = append(w.block, w.restarts...)
	w.block = binary.LittleEndian.AppendUint32(w.block, uint32(len(w.restarts)/4))
	start := w.offset
	if err := w.writeSection(w.block, methodZstd); err != nil {
		return err
	}
	w.index = appendText(w.index, w.separator)
	w.index = binary.AppendUvarint(w.index, uint64(w.offset-start))
	w.block, w.restarts, w.inBlock = w.block[:0], w.restarts[:0], 0
	return nil
}

func appendText(dst, text []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

// writeSection writes a section, packed if the method asks for it and an eighth is saved.
func (w *writer) writeSection(raw []byte, method byte) error {
	if len(raw) > maxSection {
		return fmt.Errorf("section of %d bytes, at most %d are possible", len(raw), maxSection)
	}
	s := append(w.section[:0], make([]byte, sectionBytes)...)
	if method == methodZstd {
		s = w.packer.EncodeAll(raw, s)
		if n := len(s) - sectionBytes; n > len(raw)-len(raw)/8 || len(raw) > maxRatio*n {
			method = methodRaw
		}
	}
	if method == methodRaw {
		s = append(s[:sectionBytes], raw...)
	}
	binary.LittleEndian.PutUint32(s[4:], uint32(len(raw)))
	s[8] = method
	binary.LittleEndian.PutUint32(s, crc32.Checksum(s[4:], castagnoli))
	w.section = s
	return w.write(s)
}

// finish writes what stands behind the blocks.
func (w *writer) finish() error {
	if err := w.endBlock(); err != nil {
		return err
	}
	index := w.offset
	bounds := appendText(appendText(nil, w.lowest), w.before)
	if err := w.writeSection(append(bounds, w.index...), methodZstd); err != nil {
		return err
	}
	filter := w.offset
	if err := w.writeSection(w.filter, methodRaw); err != nil {
		return err
	}
	if w.tombstones > math.MaxUint32 {
		return fmt.Errorf("%d marks of deleted keys are too many for one file", w.tombstones)
	}
	le := binary.LittleEndian
	footer := le.AppendUint64(nil, uint64(index))
	footer = le.AppendUint32(footer, uint32(filter-index))
	footer = le.AppendUint32(footer, uint32(w.offset-filter))
	footer = le.AppendUint64(footer, w.entries)
	footer = le.AppendUint32(footer, uint32(w.tombstones))
	footer = le.AppendUint32(footer, w.content)
	footer = le.AppendUint32(footer, version)
	footer = le.AppendUint32(footer, crc32.Checksum(footer, castagnoli))
	if err := w.write(append(footer, footerMagic...)); err != nil {
		return err
	}
	return w.to.Flush()
}
