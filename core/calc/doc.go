// Package calc is the only arithmetic of the product: numbers in and out of text (number.go), periods of time (period.go), aggregation of samples by
// period (function.go, aggregate.go, threshold.go, fill.go), regular series (regular.go), rates (rate.go) and statistics over windows (stats.go).
// Queries, SQL and rules use it, so that an average is the same number everywhere.
//
// Samples are two parallel slices, times ascending. A NaN value is a sample without a number; every function skips it. Calendar knowledge comes in
// through Unit, which dates.Unit implements.
package calc
