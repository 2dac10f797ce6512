package api

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"iter"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
)

type packedFile struct{ name, text string }

// packed are the files of an archive; two of them are litter.
var packed = []packedFile{
	{"a.csv", "entity,metric,time,value\na,m,1,1\n"},
	{"__MACOSX/a.csv", "x\n"},
	{"dir/._b.csv", "x\n"},
	{"dir/b.csv", "entity,metric,time,value\nb,m,2,2\nb,m,3,3\n"},
}

func tarOf(t *testing.T, more ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	tw := tar.NewWriter(&out)
	for _, f := range withMore(more) {
		if err := tw.WriteHeader(&tar.Header{Name: f.name, Typeflag: tar.TypeReg, Mode: 0o600, Size: int64(len(f.text))}); err != nil {
			t.Fatal(err)
		}
		tw.Write([]byte(f.text))
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zipOf(t *testing.T, more ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	zw := zip.NewWriter(&out)
	for _, f := range withMore(more) {
		w, err := zw.Create(f.name)
		if err != nil {
			t.Fatal(err)
		}
		w.Write([]byte(f.text))
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func withMore(texts []string) []packedFile {
	files := slices.Clone(packed)
	for _, text := range texts {
		files = append(files, packedFile{"more.csv", text})
	}
	return files
}

func gzipOf(text []byte) []byte {
	var out bytes.Buffer
	zw := gzip.NewWriter(&out)
	zw.Write(text)
	zw.Close()
	return out.Bytes()
}

func TestArchives(t *testing.T) {
	all := `"processed":5,`
	for _, tt := range []struct {
		name, target string
		body         []byte
		status       int
		want         []string
	}{
		{"tar.gz", "&filename=x.tar.gz", gzipOf(tarOf(t)), 200, []string{all, `"fileName":"x.tar.gz","fileCount":2,`, `"samples":3,`}},
		{"tgz", "&filename=x.TGZ", gzipOf(tarOf(t)), 200, []string{all}},
		{"zip", "&filename=x.zip", zipOf(t), 200, []string{all, `"fileCount":2,`}},
		{"zip by its first bytes", "", zipOf(t), 200, []string{all}},
		{"gzip by its first bytes", "", gzipOf([]byte(packed[0].text)), 200, []string{`"processed":2,`, `"fileCount":1,`}},
		{"gzip", "&filename=x.csv.gz", gzipOf([]byte(packed[0].text)), 200, []string{`"processed":2,`}},
		{"a name decides, not the bytes", "&filename=x.csv", gzipOf([]byte("x")), 200, []string{`"processed":1,`}},
		{"no gzip", "&filename=x.gz", []byte("plain"), 400, []string{"the archive cannot be unpacked"}},
		{"no zip", "&filename=x.zip", []byte("plain"), 400, []string{"the archive cannot be unpacked"}},
		{"a bomb", "&filename=x.gz", gzipOf([]byte(strings.Repeat("x\n", 5000))), 413, []string{"limits.upload"}},
		{"a bomb in a zip", "&filename=x.zip", zipOf(t, strings.Repeat("x\n", 5000)), 413, []string{"limits.upload"}},
		{"a bomb in a tar", "&filename=x.tgz", gzipOf(tarOf(t, strings.Repeat("x\n", 5000))), 413, []string{"limits.upload"}},
	} {
		w := newWorld(t, Limits{Upload: 8000})
		r := httptest.NewRequest("POST", "/api/v1/csv?config=lines"+tt.target, bytes.NewReader(tt.body))
		r.SetBasicAuth("admin", password)
		rec := httptest.NewRecorder()
		w.server.ServeHTTP(rec, r)
		for _, want := range tt.want {
			if rec.Code != tt.status || !strings.Contains(rec.Body.String(), want) {
				t.Errorf("%s: %d %s, want %d with %s", tt.name, rec.Code, rec.Body, tt.status, want)
			}
		}
	}
}

// blockParser reads as a plugin host does, in blocks: a reader that ends in io.ErrUnexpectedEOF looks to it like one that ends.
type blockParser struct{}

func (blockParser) Parse(_ context.Context, _ core.ParseRequest, body io.Reader) iter.Seq2[core.Parsed, error] {
	return func(yield func(core.Parsed, error) bool) {
		block := make([]byte, 1<<16)
		_, err := io.ReadFull(body, block)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			yield(core.Parsed{}, err)
			return
		}
		yield(core.Parsed{Lines: 1}, nil)
	}
}

// TestCutUpload: half a file is not a whole one, whatever it was packed in.
func TestCutUpload(t *testing.T) {
	file := gzipOf([]byte(packed[0].text))
	archive := gzipOf(tarOf(t))
	form := []byte("--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.csv\"\r\n\r\na,b\r\n--B--\r\n")
	for _, tt := range []struct {
		name, target, header, value string
		body                        []byte
		cut                         int
	}{
		{"gzip by name", "&filename=a.gz", "", "", file, 10},
		{"gzip without its checksum", "&filename=a.gz", "", "", file, 4},
		{"Content-Encoding", "", "Content-Encoding", "gzip", file, 10},
		{"tar.gz", "&filename=a.tgz", "", "", archive, 20},
		{"form", "", "Content-Type", "multipart/form-data; boundary=B", form, 8},
	} {
		for _, cut := range []int{0, tt.cut} {
			w := newWorld(t, Limits{})
			w.server.Parser = blockParser{}
			r := httptest.NewRequest("POST", "/api/v1/csv?config=lines"+tt.target, bytes.NewReader(tt.body[:len(tt.body)-cut]))
			r.SetBasicAuth("admin", password)
			if tt.header != "" {
				r.Header.Set(tt.header, tt.value)
			}
			rec := httptest.NewRecorder()
			w.server.ServeHTTP(rec, r)
			want := 200
			if cut > 0 {
				want = 400
			}
			if rec.Code != want {
				t.Errorf("%s cut by %d: %d %s, want %d", tt.name, cut, rec.Code, rec.Body, want)
			}
		}
	}
}
