package core

import "time"

// Time is Unix time in milliseconds, UTC. It is never a duration and never seconds.
type Time int64

// The storable range of every record, inclusive at both ends: 1970-01-01T00:00:00Z to 2106-02-07T06:59:59.999Z.
const (
	MinTime Time = 0
	MaxTime Time = 4294969199999
)

// Storable reports whether a record may carry t.
func (t Time) Storable() bool { return t >= MinTime && t <= MaxTime }

// Std returns t as a time.Time in UTC.
func (t Time) Std() time.Time { return time.UnixMilli(int64(t)).UTC() }

// TimeOf truncates t to the millisecond, downwards.
func TimeOf(t time.Time) Time { return Time(t.UnixMilli()) }

// Range is a half-open interval of time: Start is in it, End is not.
type Range struct{ Start, End Time }

// AllTime contains every storable time.
var AllTime = Range{MinTime, MaxTime + 1}

// Contains reports whether t lies in r.
func (r Range) Contains(t Time) bool { return t >= r.Start && t < r.End }

// Empty reports whether no time lies in r.
func (r Range) Empty() bool { return r.Start >= r.End }

// Intersect returns the times that lie in both ranges.
func (r Range) Intersect(o Range) Range { return Range{max(r.Start, o.Start), min(r.End, o.End)} }
