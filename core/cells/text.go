package cells

import "strings"

// AppendText appends a cell of CSV: in quotes, which are doubled inside, where it would break the line apart.
func AppendText(b []byte, s string) []byte {
	if !strings.ContainsAny(s, ",\"\n\r") {
		return append(b, s...)
	}
	b = append(b, '"')
	b = append(b, strings.ReplaceAll(s, `"`, `""`)...)
	return append(b, '"')
}
