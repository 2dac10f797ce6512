// Package command is the text command language: one line writes a sample, a message, a property, or the settings of a metric or an entity.
//
//	series e:pump-a m:flow=5.5 x:flow="low, ""dry run""" t:site="north hall" d:2021-05-03T10:00:00Z
//	message e:pump-a t:type=audit t:severity=warn m:"valve opened"
//	property e:pump-a t:hardware k:slot=1 v:make=KX-3
//	metric m:flow u:l/min p:double
//	entity e:pump-a l:"Pump A" t:site=north
//
// A [Splitter] finds where commands begin and end in a stream, [Parser.Line] turns one command into records of a [core.Batch], [Classify] recognises
// the control words that are no records, and the Append functions print records as commands. In the mode [Exact], printing and parsing are inverse to
// each other. A command is read completely before its first record goes into the batch: a refused one leaves the batch as it was.
package command
