//go:build (linux || darwin) && (amd64 || arm64)

package wasm

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// reserve maps zeroed memory that costs nothing until it is touched. It lies off the Go heap: growing there would copy, and
// leave a gigabyte of garbage on the way to 256 MB.
func reserve(n int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("reserve %d bytes for a plugin: %w", n, err)
	}
	return b[:0], nil
}

// grow never moves the memory: size is within what was reserved.
func grow(b []byte, size int) []byte { return b[:size] }

// unreserve cannot fail for what reserve returned.
func unreserve(b []byte) { _ = unix.Munmap(b[:cap(b)]) }
