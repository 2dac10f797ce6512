package api

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// BenchmarkWebhook is a whole webhook request of 1 KB, from the header to the answer, without the connection.
func BenchmarkWebhook(b *testing.B) {
	w := newWorld(b, Limits{})
	w.server.Ingest = accepting{}
	body := fmt.Appendf(nil, `{"job":"api","build":{"number":%d,"status":"SUCCESS","branch":"main","duration":1250.5,"ok":true},"steps":[`, 17)
	for s := 0; len(body) < 960; s++ {
		if s > 0 {
			body = append(body, ',')
		}
		body = fmt.Appendf(body, `{"name":"step-%d","ms":%d,"result":"passed"}`, s, s*17)
	}
	sent := strings.NewReader(string(body) + "]}")
	r := httptest.NewRequest(http.MethodPost, webhookPath+"/ci?command.message=job&exclude=steps*.ms", sent)
	r.Header.Set("Content-Type", "application/json")
	r.SetBasicAuth("eva", password)
	b.ReportAllocs()
	for b.Loop() {
		sent.Seek(0, 0)
		rec := httptest.NewRecorder()
		if w.server.ServeHTTP(rec, r); rec.Code != http.StatusOK {
			b.Fatal(rec.Body)
		}
	}
}
