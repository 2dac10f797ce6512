package api

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/bzip2"
	"errors"
	"io"
	"path"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/tidemark-db/tidemark/core"
)

// packing is how the files of an upload are packed.
type packing uint8

const (
	plainFile packing = iota
	gzipFile
	tarFiles
	tarGzip
	tarBzip2
	zipFiles
)

// packingOf goes by the extension of the file name alone; without a name, by the first bytes.
func packingOf(name string, start []byte) packing {
	lower := strings.ToLower(name)
	for _, kind := range []struct {
		suffix string
		packing
	}{{".tar.gz", tarGzip}, {".tgz", tarGzip}, {".tar.bz2", tarBzip2}, {".tar", tarFiles}, {".gz", gzipFile}, {".zip", zipFiles}} {
		if strings.HasSuffix(lower, kind.suffix) {
			return kind.packing
		}
	}
	switch {
	case name != "":
		return plainFile
	case bytes.HasPrefix(start, []byte{0x1f, 0x8b}):
		return gzipFile
	case bytes.HasPrefix(start, []byte("PK\x03\x04")):
		return zipFiles
	}
	return plainFile
}

// unpack calls f for each regular file of an upload, in stored order. What comes out of all of them together is bounded by limits.upload.
func (u *upload) unpack(body io.Reader, f func(name string, r io.Reader) error) error {
	buffered := bufio.NewReader(body)
	start, _ := buffered.Peek(4) // a fault shows again when the file is read
	name := u.request.FileName
	limit := u.c.server.Limits.Upload
	bound := func(r io.Reader) io.Reader { return &bounded{r: r, left: limit, limit: limit, name: "limits.upload"} }
	switch packingOf(name, start) {
	case gzipFile:
		zr, err := gzip.NewReader(buffered)
		if err != nil {
			return badArchive(err)
		}
		return f(strings.TrimSuffix(name, path.Ext(name)), bound(archiveReader{zr}))
	case tarFiles:
		return untar(bound(buffered), f)
	case tarGzip:
		zr, err := gzip.NewReader(buffered)
		if err != nil {
			return badArchive(err)
		}
		return untar(bound(archiveReader{zr}), f)
	case tarBzip2:
		return untar(bound(archiveReader{bzip2.NewReader(buffered)}), f)
	case zipFiles:
		return u.unzip(buffered, f)
	}
	return f(name, buffered)
}

// untar calls f for the regular files of a tar stream.
func untar(r io.Reader, f func(name string, r io.Reader) error) error {
	files := tar.NewReader(r)
	for {
		h, err := files.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return badArchive(err)
		case h.Typeflag != tar.TypeReg || ignoredFile(h.Name):
			continue
		}
		if err := f(h.Name, archiveReader{files}); err != nil {
			return err
		}
	}
}

// zipEntry begins an entry of the directory of an archive; zipEntryBytes is what one takes in memory, without its name.
const (
	zipEntry      = "PK\x01\x02"
	zipEntryBytes = 512
)

// unzip keeps the archive in memory, since its directory is at its end: it counts against limits.body and limits.bodies.
func (u *upload) unzip(r io.Reader, f func(name string, r io.Reader) error) error {
	limit := u.c.server.Limits.Body
	packed, err := u.c.readAll(&bounded{r: r, left: limit, limit: limit, name: "limits.body"})
	if err != nil {
		return err
	}
	// What the directory takes in memory counts as well: each of its entries, which begin with these four bytes, becomes an object. The bytes may be part of a
	// file, too; then the count is too high, by little.
	if directory := int64(strings.Count(packed, zipEntry)) * zipEntryBytes; directory > limit {
		return core.Errorf(core.TooLarge, "the directory of the archive has too many files: it would take %d bytes of memory, limits.body allows %d", directory, limit)
	} else if err := u.c.hold(u.c.held + directory); err != nil {
		return err
	}
	files, err := zip.NewReader(strings.NewReader(packed), int64(len(packed)))
	if err != nil {
		return badArchive(err)
	}
	left := u.c.server.Limits.Upload
	for _, file := range files.File {
		if !file.Mode().IsRegular() || ignoredFile(file.Name) {
			continue
		}
		content, err := file.Open()
		if err != nil {
			return badArchive(err)
		}
		one := &bounded{r: archiveReader{content}, left: left, limit: u.c.server.Limits.Upload, name: "limits.upload"}
		err = f(file.Name, one)
		left = one.left
		if err := errors.Join(err, content.Close()); err != nil {
			return err
		}
	}
	return nil
}

// ignoredFile reports whether a file of an archive is litter of the system that made it.
func ignoredFile(name string) bool {
	base := path.Base(name)
	return base == ".DS_Store" || strings.HasPrefix(base, "._") || strings.HasPrefix(name, "__MACOSX/") || strings.Contains(name, "/__MACOSX/")
}

// archiveReader marks faults of the packing as faults of the upload.
type archiveReader struct{ r io.Reader }

func (a archiveReader) Read(p []byte) (int, error) {
	n, err := a.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = badArchive(err)
	}
	return n, err
}

// badArchive hides the cause from the user, unless it is an exceeded limit or a lost connection, which say more.
func badArchive(err error) error {
	var e *core.Error
	if errors.As(err, &e) {
		return e
	}
	return core.Wrap(core.Invalid, err, "IllegalArgumentException: the archive cannot be unpacked")
}
