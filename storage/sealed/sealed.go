// Package sealed is what files of samples and of messages have in common: they are written once, their blocks carry checksums, and their end is there twice.
//
//	header (16 bytes) | blocks | directory | the directory again | tail | the tail again
package sealed

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/tidemark-db/tidemark/storage/vfs"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum is the CRC-32C of b.
func Checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// DamageError says which part of a file cannot be read.
type DamageError struct {
	Kind   string // of what is in the file: samples
	Path   string
	Offset int64
	Cause  error
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s: %s is damaged at byte %d: %v", e.Kind, e.Path, e.Offset, e.Cause)
}

func (e *DamageError) Unwrap() error { return e.Cause }

// HeaderSize is the length of a header: eight bytes of magic, the version u32, and zeroes.
const HeaderSize = 16

// Kind is what sets one kind of file apart.
type Kind struct {
	Name     string // in errors
	Magic    string // eight bytes
	Version  uint32
	TailSize int64
}

// AppendHeader appends the header of a file.
func (k Kind) AppendHeader(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(append(b, k.Magic...), k.Version)
	return append(b, 0, 0, 0, 0)
}

// File is a mapped file.
type File struct {
	Kind
	Path string
	Size int64
	Map  vfs.Mapping
}

// Open maps a file that has room for a header and two tails.
func (k Kind) Open(fs vfs.FS, path string) (*File, error) {
	f, err := fs.Open(path, vfs.ReadOnly)
	if err != nil {
		return nil, fmt.Errorf("%s: open: %w", k.Name, err)
	}
	defer f.Close() // read only; the mapping outlives it
	size, err := f.Size()
	if err != nil {
		return nil, fmt.Errorf("%s: size of %s: %w", k.Name, path, err)
	}
	if err := k.later(f, path, size); err != nil {
		return nil, err
	}
	if size < HeaderSize+2*k.TailSize {
		return nil, &DamageError{k.Name, path, 0, fmt.Errorf("%d bytes are too few", size)}
	}
	m, err := f.Map(size)
	if err != nil {
		return nil, fmt.Errorf("%s: map %s: %w", k.Name, path, err)
	}
	return &File{Kind: k, Path: path, Size: size, Map: m}, nil
}

// later is a vfs.VersionError for a file of a later version. Whatever else changes, a file begins with its magic and its version, and eight bytes before its end
// is the version once more: both have to say the same, or a damaged byte would keep the server from starting.
func (k Kind) later(f vfs.File, path string, size int64) error {
	var head [HeaderSize]byte
	var end [8]byte
	if size < int64(len(head)+len(end)) {
		return nil
	}
	for at, b := range map[int64][]byte{0: head[:], size - int64(len(end)): end[:]} {
		if _, err := f.ReadAt(b, at); err != nil {
			return nil // whether the file can be read without it is found out soon
		}
	}
	v := binary.LittleEndian.Uint32(head[len(k.Magic):])
	if string(head[:len(k.Magic)]) != k.Magic || v <= k.Version || v != binary.LittleEndian.Uint32(end[:]) {
		return nil
	}
	return &vfs.VersionError{Path: path, Found: v, Known: k.Version}
}

// Damage wraps what is wrong at an offset; nil is nothing.
func (f *File) Damage(offset int64, cause error) error {
	if cause == nil {
		return nil
	}
	return &DamageError{f.Name, f.Path, offset, cause}
}

// Ends is how the end of a kind of file is read. Directory is asked when Tail has accepted one of the tails.
type Ends struct {
	Tail      func(b []byte) error
	Directory func() (offset, length int64)
	Content   func(b []byte) error // of the directory
}

// ReadEnds reads the tail and the directory, or their copies.
func (f *File) ReadEnds(e Ends) error {
	at := f.Size - f.TailSize
	err := f.Map.View(at, f.TailSize, e.Tail)
	if err != nil && f.Map.View(at-f.TailSize, f.TailSize, e.Tail) == nil {
		err = nil
	}
	if err != nil {
		return f.Damage(at, err)
	}
	at, length := e.Directory()
	err = f.Map.View(at, length, e.Content)
	if err != nil && f.Map.View(at+length, length, e.Content) == nil {
		err = nil
	}
	return f.Damage(at, err)
}

// Check reports all that is wrong with the header, and with each copy of tail and directory, of which ReadEnds needs one. The functions of e must not keep
// anything.
func (f *File) Check(e Ends, report func(error)) {
	told := func(offset int64, err error) {
		if err != nil {
			report(f.Damage(offset, err))
		}
	}
	told(0, f.Map.View(0, HeaderSize, func(b []byte) error {
		if !bytes.Equal(b, f.AppendHeader(nil)) {
			return fmt.Errorf("the header is not that of a file of %s", f.Name)
		}
		return nil
	}))
	directory, length := e.Directory()
	for i := range int64(2) {
		at := f.Size - f.TailSize*(2-i)
		told(at, f.Map.View(at, f.TailSize, e.Tail))
		at = directory + i*length
		told(at, f.Map.View(at, length, e.Content))
	}
}

// Reader takes fields off the front of bytes; after the end it gives zeroes and has Failed.
type Reader struct {
	Rest   []byte
	Failed bool
}

func (r *Reader) fail() {
	r.Failed, r.Rest = true, nil
}

// Uvarint reads an unsigned number, seven bits a byte.
func (r *Reader) Uvarint() uint64 {
	v, n := binary.Uvarint(r.Rest)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.Rest = r.Rest[n:]
	return v
}

// Varint reads a signed number in zigzag form.
func (r *Reader) Varint() int64 {
	v, n := binary.Varint(r.Rest)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.Rest = r.Rest[n:]
	return v
}

// U8, U32 and U64 read numbers of fixed width, little-endian.
func (r *Reader) U8() byte    { return r.fixed(1)[0] }
func (r *Reader) U64() uint64 { return binary.LittleEndian.Uint64(r.fixed(8)) }
func (r *Reader) U32() uint32 { return binary.LittleEndian.Uint32(r.fixed(4)) }

var zeroes [8]byte

// fixed returns the next n bytes, at most 8; zeroes after the end.
func (r *Reader) fixed(n int) []byte {
	if n > len(r.Rest) {
		r.fail()
		return zeroes[:n]
	}
	return r.Take(uint64(n))
}

// Take returns the next n bytes; none after the end.
func (r *Reader) Take(n uint64) []byte {
	if n > uint64(len(r.Rest)) {
		r.fail()
		return nil
	}
	v := r.Rest[:n]
	r.Rest = r.Rest[n:]
	return v
}
