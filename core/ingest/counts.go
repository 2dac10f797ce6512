package ingest

import (
	"sync/atomic"

	"github.com/tidemark-db/tidemark/core"
)

// Counts are what went through a pipeline since it was made, in records. A batch that is refused counts as nothing but Refused, and its first bad record
// as invalid. What the server writes about itself is counted like anything else.
type Counts struct {
	Samples, SamplesStored               uint64 // received, and handed to the log to be stored
	SamplesAppended                      uint64 // with a text to be added to a stored one
	SamplesUnstored                      uint64 // of metrics that are not persistent, or that the filter of their metric does not keep
	SamplesDiscarded                     uint64 // outside the limits of their metric
	DisabledMetric, DisabledEntity       uint64 // samples
	Properties, PropertiesStored         uint64
	PropertiesDeleted, PropertiesInvalid uint64
	Messages, MessagesStored             uint64
	MessagesInvalid                      uint64
	Refused                              uint64 // batches
}

// counters are Counts that many requests add to. One lock a batch would do as well, but readers must not hold up writers.
type counters struct {
	samples, samplesStored, samplesAppended, samplesUnstored, samplesDiscarded, disabledMetric, disabledEntity atomic.Uint64
	properties, propertiesStored, propertiesDeleted, propertiesInvalid                                         atomic.Uint64
	messages, messagesStored, messagesInvalid, refused                                                         atomic.Uint64
}

// Counts returns what went through the pipeline so far.
func (p *Pipeline) Counts() Counts {
	c := &p.counters
	return Counts{
		Samples: c.samples.Load(), SamplesStored: c.samplesStored.Load(), SamplesAppended: c.samplesAppended.Load(),
		SamplesUnstored: c.samplesUnstored.Load(), SamplesDiscarded: c.samplesDiscarded.Load(),
		DisabledMetric: c.disabledMetric.Load(), DisabledEntity: c.disabledEntity.Load(),
		Properties: c.properties.Load(), PropertiesStored: c.propertiesStored.Load(),
		PropertiesDeleted: c.propertiesDeleted.Load(), PropertiesInvalid: c.propertiesInvalid.Load(),
		Messages: c.messages.Load(), MessagesStored: c.messagesStored.Load(), MessagesInvalid: c.messagesInvalid.Load(),
		Refused: c.refused.Load(),
	}
}

// sent is how much of what kind a batch had before the settings of metrics and entities took their part.
type sent struct{ samples, properties, messages int }

func sentIn(b *core.Batch) sent { return sent{b.Samples.Len(), len(b.Properties), len(b.Messages)} }

// add counts n; most batches have records of one kind only.
func add(c *atomic.Uint64, n int) {
	if n > 0 {
		c.Add(uint64(n))
	}
}

// count adds an appended batch. dropped are the samples that settings took out, by cause.
func (c *counters) count(b *core.Batch, s sent, dropped *droppedSamples) {
	stored, appended := 0, 0
	for _, f := range b.Samples.Flags {
		stored += int(f & core.Stored)
		if f&core.AppendText != 0 {
			appended++
		}
	}
	stored /= int(core.Stored)
	add(&c.samples, s.samples)
	add(&c.samplesStored, stored)
	add(&c.samplesUnstored, b.Samples.Len()-stored)
	add(&c.samplesAppended, appended)
	add(&c.samplesDiscarded, dropped.limits)
	add(&c.disabledMetric, dropped.metric)
	add(&c.disabledEntity, dropped.entity)
	add(&c.properties, s.properties)
	add(&c.propertiesStored, len(b.Properties))
	add(&c.propertiesDeleted, len(b.Removed))
	add(&c.messages, s.messages)
	stored = 0
	for i := range b.Messages {
		stored += int(b.Messages[i].Flags & core.Stored)
	}
	add(&c.messagesStored, stored/int(core.Stored))
}

// refuse counts a batch that was not taken.
func (c *counters) refuse(s sent) {
	c.refused.Add(1)
	switch {
	case s.messages > 0:
		c.messagesInvalid.Add(1)
	case s.properties > 0:
		c.propertiesInvalid.Add(1)
	}
}

// droppedSamples are the samples of one batch that are not even shown to rules.
type droppedSamples struct{ metric, entity, limits int }
