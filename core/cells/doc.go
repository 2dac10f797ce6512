// Package cells appends what tables and lists hold, as text: numbers, instants and texts. The text is that of strconv and of core/dates, to the byte; what
// is different is the time it takes, since a large answer has one of each in every row. All functions append to a buffer that the caller keeps.
//
//	AppendNumber   a double in its shortest plain notation: short decimals without the general search
//	Instants       ISO 8601 in one zone: the instants of a day share all but the clock
//	AppendText     a cell of CSV, in quotes where it needs them
package cells
