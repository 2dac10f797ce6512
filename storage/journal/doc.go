// Package journal is the ordered, durable list of everything that was written to a Tidemark server: numbered segment files of checksummed
// frames, written with pwrite, made durable by group commit, and read through read-only mappings while they grow.
//
// # Reading map
//
//	frame.go    the frame and its bytes          segment.go  the segment file and its header
//	journal.go  Open, Write, Close               commit.go   group commit, sync modes, what a failed sync leads to
//	scan.go     frames out of unreliable bytes   recover.go  torn tail or damage; what Open does about it
//	read.go     readers                          drop.go     retention, recycled files
//	check.go    Check and Dump for the command line
//
// # Why a frame that is found is a frame that was written
//
// A segment file is reused, so the bytes behind its last frame can be frames of an earlier life. Three things keep them out. Each life has a
// random salt from which the checksum of its frames is continued, so an old frame fails its checksum. Positions only grow and a file is
// recycled only when all its frames are below the base of every later segment, so an old frame is also below the base. And writes that were
// never acknowledged, the only ones whose positions could be used twice, are removed and not recycled. The salt does one thing more: a payload
// that contains the image of a frame, by accident or by malice, cannot be taken for one when recovery searches behind a bad frame.
//
// # Why recovery can tell damage from a torn tail
//
// Every frame, and every segment header, says up to which position all frames were durable when it was written. When frames are missing after
// position Q and something later says "synced beyond Q", they were acknowledged and the disk lost them: damage, reported and kept. When
// nothing says so they were in flight: a torn tail, cut. What lies behind a cut was in flight too and goes with it.
//
// # Why segments may overlap
//
// The header of a segment names its base: all frames below base are in earlier segments, and every frame at or above base in an earlier
// segment is void. So abandoning the end of a file is done by opening the next one: after a failed write, after a failed fdatasync (the
// unsynced frames are written again, into a file that gets its name only when it is durable) and after recovery. It also tells whether the
// end of a segment is missing: its last frame must be base-1 of the next.
package journal
