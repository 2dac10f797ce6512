package api

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
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
