// Package core holds the nouns of Tidemark and the contracts between its parts. It imports only the standard library.
//
// # Reading map
//
// Start here, then follow one of the two walks below with the code open. Everything that may be stored is one of the nouns in this
// package: series (series.go), messages (message.go), properties (property.go), alerts (alert.go), and documents such as metrics, entities
// and users (catalog.go). All of them travel in one Batch (ingest.go), with an Origin that says who sends it and with which
// rights (scope.go). What is kept is read through Reader (store.go). Every error that a user sees is an Error (errors.go).
//
//	cmd/tidemark      the verbs; serve.go wires everything on one screen
//	core/api          HTTP: one table of routes, one file a resource
//	core/webhook      any HTTP request -> one Message, pure functions
//	core/command      the text command language: parse and print
//	core/line         foreign line protocols: Graphite, StatsD, tcollector, OpenTSDB, Influx
//	core/network      the TCP and UDP doors
//	core/ingest       accept -> authorise -> append: the only writer
//	core/query        series, message and property queries, step by step
//	core/calc         the only arithmetic: aggregation, grouping, smoothing, periods, number text; forecast predicts
//	core/sql          SQL: parse -> plan -> exec, over columns; Engine keeps what runs
//	core/cells        numbers, instants and texts of large answers
//	core/inorder      work done by several at once, back in its order; core/nearest finds the name that somebody meant; core/regular sizes up regular expressions
//	core/search       finds series by words
//	core/chart        draws series as PNG
//	core/selfmetrics  what the server measures of itself
//	core/filter       the filter expression language
//	core/dates        ISO, calendar expressions, patterns, zones
//	core/auth         users, groups, roles, tokens, sessions
//	core/memstore     the oracle: a slow, obvious Store; core/storetest is the contract it and storage must keep
//	storage           the database: journal, state, index; FORMAT.md draws every byte
//	rules             rules as expressions over windows; outbox delivers notifications
//	wasm              the plugin host; ABI.md is the contract of a plugin; guest is the Go SDK
//	plugins           csv, nmon, alert: pure Go, compiled to WebAssembly
//
// # Walk 1: a webhook arrives
//
// The route table in core/api sends POST /api/v1/messages/webhook/ci to the webhook handler. webhook.Map turns the request into a Message. The
// handler puts it into a Batch and calls Ingester.Ingest. ingest.Pipeline normalises names, checks limits and metric settings (accept), checks the grants
// in the batch's Origin (authorise) and calls Log.Append. storage.DB encodes the batch, writes it to the journal under one lock, which
// fixes its Position and receive time, applies it to the state that readers see, and waits until the group commit has made it durable. Then the client has its
// 200. The handler knows nothing of rules.
//
// On its own goroutine rules.Engine ranges over Log.Tail. The batch passes the filters of each rule that can match, enters a window, the
// condition is evaluated, the status changes. The change of the alert, the notifications it causes and the commands that the rule
// writes back are one new Batch, which takes the same way in with a depth one higher. rules/outbox sees the notification document, sends it, and retries until the
// target has it. Ingest waits a moment for the engine to pass the position, if a rule can match at all, so that a client which inserts and then asks for
// alerts sees them.
//
// # Walk 2: a series query
//
// The route table sends POST /api/v1/series/query to the query handler, which reads the JSON into a request of core/query. The request is validated as a whole
// before any name is looked up. Each query becomes a SeriesQuery: plain data with the scope of the caller in it. Reader.Series yields blocks, one series
// after the other, in key order; core/query runs them through the steps of the request (sample selection, then aggregation with calc.Period and
// calc.Aggregate, then limits) and appends the JSON to the response.
//
// # Walk 3: a query in SQL
//
// POST /api/sql goes to core/api/sql.go, which reads the statement from a form or a text and hands it to sql.Engine. The engine waits for a slot, starts the clock of sql.time and leads the text through
// the phases: parse makes the tree of core/sql/ast, each node with its place; plan binds names to columns, takes intervals, entities and tags out of the WHERE, and makes operators whose expressions
// (core/sql/expr) refer to columns by number; exec runs the operators as iterators over batches of columns (core/sql/column). At the bottom a scan builds a SeriesQuery and reads
// Reader.Series, or, where the order of rows does not matter, several series at once through core.Parallel, with the statistics of blocks in place of their samples where these suffice. At the top the
// handler takes the first batch before it sends a status, and then writes each batch through core/sql/format: its memory is one buffer, whatever the result has.
package core
