package table

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tidemark-db/tidemark/storage/vfs"
)

// document is a value like those of entities: JSON of some 120 bytes.
func document(i int) []byte {
	return fmt.Appendf(nil, `{"name":"entity-%06d","enabled":true,"label":"Pump %d","tags":{"site":"s%d","line":"%d"},"created":%d}`,
		i, i%977, i%13, i%7, 1767225600000+int64(i)*1237)
}

func benchKey(i int) []byte { return fmt.Appendf(nil, "entity\x00entity-%06d", i) }

const benchKeys = 200_000

// benchStore has its entries in one large file and some small ones, on the disk.
func benchStore(b *testing.B) *store {
	s := &store{t: b, fs: vfs.OS{}, table: New(Options{})}
	dir := b.TempDir()
	s.fs = inDir{s.fs, dir}
	for i := range benchKeys {
		s.table.Put(benchKey(i), document(i))
	}
	s.flush()
	for range 2 {
		for range 2000 {
			i := rand.IntN(benchKeys)
			s.table.Put(benchKey(i), document(i))
		}
		s.flush()
	}
	return s
}

type inDir struct {
	vfs.FS
	dir string
}

func (d inDir) Open(path string, mode vfs.Mode) (vfs.File, error) {
	return d.FS.Open(d.dir+"/"+path, mode)
}

func BenchmarkPut(b *testing.B) {
	for _, order := range []string{"ascending", "random"} {
		b.Run(order, func(b *testing.B) {
			t := New(Options{})
			keys, doc := make([][]byte, 1<<18), document(1)
			for i := range keys {
				keys[i] = benchKey(i)
			}
			if order == "random" {
				rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				if i%len(keys) == 0 {
					t = New(Options{})
				}
				t.Put(keys[i%len(keys)], doc)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "puts/s")
		})
	}
}

func BenchmarkGet(b *testing.B) {
	s := benchStore(b)
	get := func(b *testing.B, key func(i int) []byte) {
		keys := make([][]byte, 1<<14)
		for i := range keys {
			keys[i] = key(i)
		}
		b.ReportAllocs()
		b.ResetTimer()
		for i := range b.N {
			if _, _, err := s.table.Get(keys[i%len(keys)]); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("hot", func(b *testing.B) { get(b, func(i int) []byte { return benchKey(i % 4000) }) })
	b.Run("cold", func(b *testing.B) { get(b, func(int) []byte { return benchKey(rand.IntN(benchKeys)) }) })
	b.Run("absent", func(b *testing.B) { get(b, func(i int) []byte { return benchKey(i*7 + benchKeys/2)[:13] }) })
	for i := range 4000 {
		s.table.Put(benchKey(i), document(i))
	}
	b.Run("memory", func(b *testing.B) { get(b, func(i int) []byte { return benchKey(i % 4000) }) })
}

func BenchmarkAscend(b *testing.B) {
	s := benchStore(b)
	b.Run("all", func(b *testing.B) {
		n := 0
		for b.Loop() {
			for _, err := range s.table.Ascend(nil, nil) {
				if err != nil {
					b.Fatal(err)
				}
				n++
			}
		}
		b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "entries/s")
	})
	b.Run("five", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			from := benchKey(i * 131 % 4000)
			for range s.table.Ascend(from, append(from[:len(from)-1:len(from)-1], from[len(from)-1]+5)) {
			}
			i++
		}
	})
	memory := New(Options{})
	for i := range benchKeys {
		memory.Put(benchKey(i), document(i))
	}
	b.Run("memory", func(b *testing.B) {
		n := 0
		for b.Loop() {
			for range memory.Ascend(nil, nil) {
				n++
			}
		}
		b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "entries/s")
	})
}

func BenchmarkMerge(b *testing.B) {
	s := benchStore(b)
	var n, bytes int64
	for _, f := range s.table.Files() {
		n, bytes = n+f.Entries(), bytes+f.Size()
	}
	b.Logf("%d entries of some 145 bytes in %d bytes", n, bytes)
	for b.Loop() {
		if err := s.table.Merge(discard{}, s.table.Files()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
