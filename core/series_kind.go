package core

import "strings"

// Kind says which of the stores of a series key is meant: what was measured, a stored forecast, or the standard deviation of one.
type Kind uint8

const (
	Measured Kind = iota
	Predicted
	Deviation
)

// kindTag is the name of the tag that sets the stores apart. No name that comes from outside can be equal to it, since control characters are
// refused there; it sorts before all others; and both separators of the canonical key are below it. A measured series has no such tag, so that it
// costs nothing.
const kindTag = "\x02"

// Letters that the value of a kind tag starts with; the name of the forecast follows.
const (
	predictedLetter = "f"
	deviationLetter = "s"
)

// In returns the key of another store of a measured series; forecast is "" for the default forecast. The result shares no slice with k.
func (k SeriesKey) In(kind Kind, forecast string) SeriesKey {
	letter := predictedLetter
	switch kind {
	case Measured:
		return k
	case Deviation:
		letter = deviationLetter
	}
	tags := make(Tags, 0, len(k.Tags)+1)
	k.Tags = append(append(tags, Tag{kindTag, letter + forecast}), k.Tags...)
	return k
}

// Store takes k apart: the key of the measured series, its store and the name of the forecast. ok is false for a key that In cannot have made.
func (k SeriesKey) Store() (measured SeriesKey, kind Kind, forecast string, ok bool) {
	if !k.Tags.derived() {
		return k, Measured, "", true
	}
	value := k.Tags[0].Value
	k.Tags = k.Tags[1:]
	if forecast, ok = strings.CutPrefix(value, predictedLetter); ok {
		return k, Predicted, forecast, true
	}
	forecast, ok = strings.CutPrefix(value, deviationLetter)
	return k, Deviation, forecast, ok
}

// IsMeasured reports whether k belongs to the store of what was measured.
func (k *SeriesKey) IsMeasured() bool { return !k.Tags.derived() }

// derived reports whether t belongs to a series that was not measured.
func (t Tags) derived() bool { return len(t) > 0 && t[0].Name == kindTag }

// SetsStore reports whether t is the tag that sets the stores of a series key apart, in the form that In gives it.
func (t Tag) SetsStore() bool {
	_, _, _, ok := SeriesKey{Tags: Tags{t}}.Store()
	return ok && t.Name == kindTag
}

// InStore reports whether a key lies in the store that q asks for, and returns its tags without what sets the stores apart.
func (q *SeriesQuery) InStore(k *SeriesKey) (tags Tags, ok bool) {
	if !k.Tags.derived() {
		return k.Tags, q.Kind == Measured
	}
	measured, kind, forecast, ok := k.Store()
	return measured.Tags, ok && kind == q.Kind && forecast == q.Forecast
}
