package webhook

import (
	"fmt"
	"testing"
)

// notification is the build notification of 1 KB that the end-to-end measurement sends.
func notification() Request {
	body := fmt.Appendf(nil, `{"job":"api","build":{"number":%d,"status":"SUCCESS","branch":"main","duration":1250.5,"ok":true},"steps":[`, 17)
	for s := 0; len(body) < 960; s++ {
		if s > 0 {
			body = append(body, ',')
		}
		body = fmt.Appendf(body, `{"name":"step-%d","ms":%d,"result":"passed"}`, s, s*17)
	}
	r := post("ci", "command.message=job&exclude=steps*.ms", string(body)+"]}")
	r.ContentType = "application/json"
	return r
}

// BenchmarkMap is a request of some 70 leaves, a third of which the query string excludes.
func BenchmarkMap(b *testing.B) {
	request := notification()
	b.SetBytes(int64(len(request.Body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Map(request); err != nil {
			b.Fatal(err)
		}
	}
}
