package vfs

import "fmt"

// VersionError says that a file has a format that this program does not know yet. Such a file is sound: nothing may be repaired, set aside or removed
// because of it.
type VersionError struct {
	Path         string
	Found, Known uint32 // versions of the format: of the file, and the latest one that this program reads
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("%s has format version %d, and this program knows formats up to version %d: it was written by a later release: start that release, "+
		"or restore a backup", e.Path, e.Found, e.Known)
}
