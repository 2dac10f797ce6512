package vfs

import "os"

// datasync is F_FULLFSYNC, which is what os.File.Sync does on darwin: fsync there leaves the bytes in the drive's cache.
func datasync(f *os.File) error { return f.Sync() }
