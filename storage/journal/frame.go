package journal

import (
	"encoding/binary"
	"hash/crc32"
)

// Position numbers a frame. Positions start at 1, grow strictly, and may have gaps: the owner also numbers what it does not journal.
type Position uint64

// maxPosition bounds positions so that one more never wraps.
const maxPosition = ^Position(0) - 1

// Frame is one entry of the journal.
type Frame struct {
	Position Position
	Received int64 // receive time, Unix milliseconds UTC; opaque to the journal
	// Synced is the position up to which all frames were durable when this one was written. The journal sets it; what a writer puts here is ignored.
	Synced  Position
	Kind    uint8 // Kind, Flags and Depth belong to the owner
	Flags   uint8
	Depth   uint8
	Payload []byte
}

// A frame, little-endian, at a multiple of 8:
//
//	0        4        8            16           24         32     33      34      35  36
//	+--------+--------+------------+------------+----------+------+-------+-------+---+---------+-----------+
//	| len u32| crc u32|position u64|received i64|synced u64|kind 1|flags 1|depth 1| 0 | payload | 0..7 zero |
//	+--------+--------+------------+------------+----------+------+-------+-------+---+---------+-----------+
//
// len counts the payload. crc is CRC-32C (Castagnoli), continued from the salt of the segment, over byte 8 to the end of the payload. Eight zero
// bytes where a frame would start, written together with the frame before, end a segment early.
const (
	frameHeader = 36
	frameAlign  = 8
	// MaxPayload bounds a payload. It is far above the 64 MiB an upload may unpack to, and fits int on 32-bit.
	MaxPayload = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// terminator is the end mark. It is never a frame: the position of one is not 0.
var terminator [frameAlign]byte

// frameSize returns the bytes a frame takes with its padding.
func frameSize(payload int) int64 {
	return (frameHeader + int64(payload) + frameAlign - 1) &^ (frameAlign - 1)
}

// appendFrame appends the bytes of f in a segment with the given salt.
func appendFrame(b []byte, f Frame, salt uint32) []byte {
	at := len(b)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(f.Payload)))
	b = binary.LittleEndian.AppendUint32(b, 0) // crc
	b = binary.LittleEndian.AppendUint64(b, uint64(f.Position))
	b = binary.LittleEndian.AppendUint64(b, uint64(f.Received))
	b = binary.LittleEndian.AppendUint64(b, uint64(f.Synced))
	b = append(b, f.Kind, f.Flags, f.Depth, 0)
	b = append(b, f.Payload...)
	binary.LittleEndian.PutUint32(b[at+4:], crc32.Update(salt, castagnoli, b[at+8:]))
	for len(b)-at < int(frameSize(len(f.Payload))) {
		b = append(b, 0)
	}
	return b
}

// parseHeader reads the fixed part of a frame: all but the payload, whose length and checksum it returns apart.
func parseHeader(b []byte) (f Frame, length, crc uint32) {
	f = Frame{
		Position: Position(binary.LittleEndian.Uint64(b[8:])),
		Received: int64(binary.LittleEndian.Uint64(b[16:])),
		Synced:   Position(binary.LittleEndian.Uint64(b[24:])),
		Kind:     b[32], Flags: b[33], Depth: b[34],
	}
	return f, binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
}

// plausible is the part of verification that needs no payload: room bytes are left for the whole frame, and its position must be above last.
func plausible(b []byte, room int64, last Position) bool {
	f, length, _ := parseHeader(b)
	return b[35] == 0 && f.Position > last && f.Position <= maxPosition && f.Synced < f.Position &&
		length <= MaxPayload && frameSize(int(length)) <= room
}

// sound verifies the checksum of the frame that fills b up to its padding.
func sound(b []byte, salt uint32) bool {
	length := binary.LittleEndian.Uint32(b)
	return crc32.Update(salt, castagnoli, b[8:frameHeader+int(length)]) == binary.LittleEndian.Uint32(b[4:])
}
