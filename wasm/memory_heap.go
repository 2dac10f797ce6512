//go:build !((linux || darwin) && (amd64 || arm64))

package wasm

// reserve takes nothing yet: a reservation of the whole limit would count against the limit of the Go heap, and fill half of
// a 32-bit address space.
func reserve(int) ([]byte, error) { return nil, nil }

// grow copies, with a quarter of headroom.
func grow(b []byte, size int) []byte {
	if size <= cap(b) {
		return b[:size]
	}
	larger := make([]byte, size, size+size/4)
	copy(larger, b)
	return larger
}

func unreserve([]byte) {}
