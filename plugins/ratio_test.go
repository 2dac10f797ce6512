package plugins_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-db/tidemark/plugins"
	"github.com/tidemark-db/tidemark/plugins/csv"
	"github.com/tidemark-db/tidemark/plugins/nmon"
	"github.com/tidemark-db/tidemark/wasm"
	"github.com/tidemark-db/tidemark/wasm/abi"
	"github.com/tidemark-db/tidemark/wasm/guest"
)

// input is a file of about a megabyte with its configuration.
type input struct {
	name   string
	plugin guest.Plugin
	config string
	chunk  []byte
}

func inputs() []input {
	return []input{
		{"csv", csv.Plugin(), `{"timestampColumns":"time","entityColumns":"host","tagColumns":"dc"}`, csvFile()},
		{"nmon", nmon.Plugin(), `{}`, nmonFile()},
	}
}

func csvFile() []byte {
	var b strings.Builder
	b.WriteString("time,host,dc,cpu,mem,disk,net\n")
	for i := range 4000 {
		fmt.Fprintf(&b, "2026-01-01T%02d:%02d:%02d.%03dZ,host-%d,eu,%d.%02d,%d,%d.5,-%d.125\n", i/3600%24, i/60%60, i%60, i%1000, i%50, i%100, i%97, i*1000, i%70, i%40)
	}
	return []byte(b.String())
}

func nmonFile() []byte {
	var b strings.Builder
	b.WriteString("AAA,progname,nmon\nAAA,host,h\n")
	for c := range 16 {
		fmt.Fprintf(&b, "CPU%03d,CPU %d h,User%%,Sys%%,Wait%%,Idle%%,Steal%%\n", c+1, c+1)
	}
	b.WriteString("DISKREAD,Disk Read KB/s h,sda,sdb,sdc,sdd\nNET,Network I/O h,eth0-read-KB/s,lo-read-KB/s,eth0-write-KB/s,lo-write-KB/s\n")
	for s := range 300 {
		fmt.Fprintf(&b, "ZZZZ,T%04d,%02d:%02d:%02d,01-JAN-2026\n", s+1, s/3600, s/60%60, s%60)
		for c := range 16 {
			fmt.Fprintf(&b, "CPU%03d,T%04d,%d.%d,%d.5,0.0,%d.1,0.0\n", c+1, s+1, (s+c)%90, c%10, c%9, 100-(s+c)%90)
		}
		fmt.Fprintf(&b, "DISKREAD,T%04d,%d.5,0.0,12.25,%d.0\nNET,T%04d,1.5,%d.0,2.5,0.0\n", s+1, s, s%7, s+1, s)
	}
	return []byte(b.String())
}

// BenchmarkMeteredRatio parses the same file natively and as a metered WebAssembly module, in turns, and reports the median of the ratios: absolute
// times of a shared machine say little, the ratio of neighbours in time does.
func BenchmarkMeteredRatio(b *testing.B) {
	host, err := wasm.New(b.Context(), wasm.Options{CacheDir: os.Getenv("TIDEMARK_COMPILE_CACHE")})
	if err != nil {
		b.Fatal(err)
	}
	defer host.Close(b.Context())
	for _, in := range inputs() {
		module := plugins.Module(in.name)
		if module == nil {
			b.Fatal("run make plugins first")
		}
		if _, err := host.Load(b.Context(), in.name, module, nil); err != nil {
			b.Fatal(err)
		}
		b.Run(in.name, func(b *testing.B) { ratio(b, host, in) })
	}
}

func ratio(b *testing.B, host *wasm.Host, in input) {
	request := abi.OpenRequest{Kind: abi.KindParser, Config: json.RawMessage(in.config)}
	text, err := json.Marshal(request)
	if err != nil {
		b.Fatal(err)
	}
	native := guest.New(in.plugin, abi.Options{})
	var ratios []float64
	var batch abi.Batch
	for b.Loop() {
		start := time.Now()
		if code := native.Open(text); code != abi.OK {
			b.Fatal(native.LastError())
		}
		out, code := native.Call(abi.KindParser, in.chunk, abi.FlagLast)
		if code != abi.OK {
			b.Fatal(native.LastError())
		}
		if err := batch.Decode(string(out), abi.Limits{}); err != nil || len(batch.Samples) < 1000 {
			b.Fatalf("%d samples: %v", len(batch.Samples), err)
		}
		nativeTime := time.Since(start)

		start = time.Now()
		s, err := host.Plugin(in.name).Open(b.Context(), request)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.Write(b.Context(), in.chunk, abi.FlagLast); err != nil {
			b.Fatal(err)
		}
		s.Close()
		ratios = append(ratios, time.Since(start).Seconds()/nativeTime.Seconds())
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "times-native")
	b.SetBytes(int64(len(in.chunk)))
}
