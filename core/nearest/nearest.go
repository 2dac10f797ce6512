// Package nearest finds the name that somebody meant: settings, members of a rule file, columns.
package nearest

import "strings"

// Name returns the known name that differs from name in the fewest letters, in fewer than below; the first of equals, "" for none. Case does not count.
func Name(name string, known []string, below int) string {
	name = strings.ToLower(name)
	found := ""
	for _, k := range known {
		if d := distance(name, strings.ToLower(k), below); d < below {
			below, found = d, k
		}
	}
	return found
}

// longest is how long names are compared: the work grows with the product of two lengths, and nobody mistypes a longer one.
const longest = 100

// distance counts the bytes to insert, drop or replace (Levenshtein); from most on it is not exact.
func distance(a, b string, most int) int {
	if len(a)-len(b) >= most || len(b)-len(a) >= most || len(a) > longest {
		return most
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
