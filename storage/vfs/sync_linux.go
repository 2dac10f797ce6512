package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// datasync leaves the inode's times to the kernel: on a preallocated file that saves the metadata write of fsync.
func datasync(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if err == nil {
			return nil
		}
		// An interrupted call has not reported a failed write; any other error has, and is not repeated here.
		if !errors.Is(err, unix.EINTR) {
			return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
		}
	}
}
