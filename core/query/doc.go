// Package query answers series, message and property queries, one step after the other in the order of the request.
//
// A query passes three stations, for series: [Series] is the request as the client wrote it, plain data; [Series.Validate] judges all of it before any
// name is looked up and gives a [Plan]; [Plan.Run] reads and yields one [Result] a series, in the order of the answer, with placeholders where the
// contract wants them. Messages and properties take the same way.
//
// The steps of a series query, in order: select series (the backend does, from the core.SeriesQuery that the plan makes), load their samples, transform
// (stages), cut to limit and seriesLimit, fill in placeholders. Stages are the seam for transformations: each takes the results of the one before.
//
// When aggregation comes first and the backend is a core.Parallel, parallel.go takes the place of loading and of that stage: it aggregates several series
// at once from what the backend has in pieces, and brings them back into order. Nobody can tell from the answer.
//
// Results are plain structs. AppendJSON and AppendCSV print them for every route that answers with them.
package query
