package api

import (
	"runtime"
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
	// "limits.bodies": bytes of all bodies in memory at one time, as they arrive, of requests and of answers over 1 MiB; more are asked to come back. Command streams have a quarter of
	// it besides, and requests with small bodies an eighth. Default 256 MiB.
	Bodies int64
	// "limits.bodies.user": of them bytes of the requests of one user. Default half of limits.bodies, and room for one body of limits.body in any case.
	UserBodies int64
	// "upload.idle": how long the sender of an upload may keep the server waiting for bytes. Default 30 s.
	UploadIdle time.Duration
	// "upload.rate": bytes a second, as they are sent, that an upload has to bring on average while the server waits for it. Default 1 KiB.
	UploadRate int64
	// "upload.files": files in an archive. Each is opened by the plugin, and a small archive holds millions of empty ones. Default 10,000.
	UploadFiles int
	// "upload.queue": uploads with wait=false that have not ended. Default 64.
	UploadQueue int
	// "upload.spool": bytes, as they were sent, of the bodies of all of them together. Default 1 GiB.
	UploadSpool int64
	// "upload.results": of those that have ended, how many are shown. Default 100.
	UploadResults int
	// "limits.portals": portals that are drawn at one time; others wait a moment, and are then asked to come back. Default: one a processor.
	Portals int
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
	// "limits.idle": how long a client may take for 64 KiB of a result that is streamed to it. Default 2 min.
	Idle time.Duration
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
	defaultTo(&l.UserBodies, max(l.Bodies/2, min(l.Bodies, 2*l.Body)))
	defaultTo(&l.UploadIdle, 30*time.Second)
	defaultTo(&l.UploadRate, 1<<10)
	defaultTo(&l.UploadFiles, 10_000)
	defaultTo(&l.UploadQueue, 64)
	defaultTo(&l.UploadSpool, 1<<30)
	defaultTo(&l.UploadResults, 100)
	defaultTo(&l.Portals, runtime.GOMAXPROCS(0))
	defaultTo(&l.Records, 1_000_000)
	defaultTo(&l.Samples, query.DefaultSamples)
	defaultTo(&l.Queries, 2*l.Samples)
	defaultTo(&l.Forecast, 50_000)
	defaultTo(&l.Line, 4*131072)
	defaultTo(&l.Depth, 64)
	defaultTo(&l.Response, 256<<20)
	defaultTo(&l.Idle, 2*time.Minute)
	defaultTo(&l.Rejects, 100)
	defaultTo(&l.Time, 30*time.Second)
}

func defaultTo[T int | int64 | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}
