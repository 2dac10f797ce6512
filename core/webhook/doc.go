// Package webhook turns one HTTP request of a foreign service into one message. It is a pure function of the request: no clock, no store, no network.
//
//	parameters.go  query string and form fields, the reserved names
//	payload.go     JSON flattened to name and value: job.steps[1].ms = 1250.5
//	fields.go      type, source, entity, severity, date and message from literal, command and header parameters
//	tags.go        what is left becomes tags, after the include and exclude patterns
//	debug.go       the record as the debug answer shows it
package webhook
