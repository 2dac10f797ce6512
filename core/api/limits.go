package api

import (
	"time"

	"github.com/tidemark-db/tidemark/core/query"
)

// Limits bound what one request may cost. The zero value of a field means its default. The text of a refusal names the limit by the name
// given here in quotes.
type Limits struct {
	// "limits.body": bytes of a body that is read as a whole, after decompression. Default 64 MiB.
	Body int64
	// "limits.upload": bytes of a csv or nmon upload, which is streamed, after decompression. Default 1 GiB.
	Upload int64
	// "limits.bodies": bytes of all bodies in memory at one time, of requests and of answers over 1 MiB; more are asked to come back. Default 256 MiB.
	Bodies int64
	// "limits.records": samples, messages, properties or queries in one request. Default 1,000,000.
	Records int
	// "limits.samples": samples that a series query may hold in memory at one time, 16 bytes each. Default 6,000,000.
	Samples int
	// "limits.queries": samples that all series queries together may hold; more are asked to come back. At least twice limits.samples. Default 12,000,000.
	Queries int
	// "limits.forecast": samples that the forecast of one series reads, and that it gives. Default 50,000.
	Forecast int
	// "limits.line": bytes of one text command. The contract has 131072 characters; the default is what they need at 4 bytes each.
	Line int
	// "limits.depth": levels of a JSON text. Default 64.
	Depth int
	// "limits.response": bytes of one answer, which is built as a whole before it is sent. Default 256 MiB.
	Response int
	// "limits.rejects": rejected lines that an upload lists; more are counted. Default 100.
	Rejects int
	// "limits.time": how long a request may read and evaluate what it asks for. Streams have no such limit, and a write that was decoded is
	// not cut: its outcome would be unknown. Default 30 s.
	Time time.Duration
}

func (l *Limits) setDefaults() {
	defaultTo(&l.Body, 64<<20)
	defaultTo(&l.Upload, 1<<30)
	defaultTo(&l.Bodies, 256<<20)
	defaultTo(&l.Records, 1_000_000)
	defaultTo(&l.Samples, query.DefaultSamples)
	defaultTo(&l.Queries, 2*l.Samples)
	defaultTo(&l.Forecast, 50_000)
	defaultTo(&l.Line, 4*131072)
	defaultTo(&l.Depth, 64)
	defaultTo(&l.Response, 256<<20)
	defaultTo(&l.Rejects, 100)
	defaultTo(&l.Time, 30*time.Second)
}

func defaultTo[T int | int64 | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}
