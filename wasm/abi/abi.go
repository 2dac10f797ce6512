// Package abi is the contract between the server and a plugin, version 1: names of exports and imports, result codes, the
// manifest, and the binary forms that cross the border. Both sides use this package, so that what one writes the other reads;
// wasm/ABI.md draws every form for authors of other languages.
//
// The package imports nothing of ours and only the standard library, since every byte of it is linked into Go plugins.
// All integers are little-endian. "packed" is an i64 of pointer << 32 | length.
package abi

import (
	"errors"
	"fmt"
)

// Version is what tidemark_abi returns: major << 16 | minor. A host refuses another major; a minor only adds optional
// exports, imports, flags, manifest keys and fields behind a header-size word.
const Version = 0x10001

// Major returns the part of an ABI version that must agree.
func Major(version uint32) uint32 { return version >> 16 }

// Minor returns the part of an ABI version that may differ.
func Minor(version uint32) uint32 { return version & 0xffff }

// Names of the exports of a plugin. The ones up to ExportLastError are required.
const (
	ExportMemory     = "memory"
	ExportABI        = "tidemark_abi"
	ExportAlloc      = "tidemark_alloc"
	ExportDescribe   = "tidemark_describe"
	ExportInit       = "tidemark_init"
	ExportLastError  = "tidemark_last_error"
	ExportOpen       = "tidemark_open"
	ExportInitialize = "_initialize"
)

// Names of what a plugin may import.
const (
	HostModule = "tidemark_v1"
	WASIModule = "wasi_snapshot_preview1"

	ImportLog   = "log"    // (level, ptr, len i32)
	ImportNowMs = "now_ms" // () -> i64, the receive time of the batch in work, Unix ms
	ImportTick  = "tick"   // () -> i32, inserted by the host alone; a module that imports it is refused
	ImportZone  = "zone"   // (id, id_len, buf, limit i32) -> i32, the offsets of a time zone

	// The capabilities, all of (key, key_len, buf, limit i32) -> i32. A plugin gets those that its manifest names and the operator granted.
	ImportLookup = "lookup" // reads replacement tables and entity tags, with the rights of the uploader
	ImportKVGet  = "kv_get" // reads what the plugin remembers
	ImportKVPut  = "kv_put" // remembers buf under key, together with the output of the call
)

// Capabilities lists the names that Manifest.Capabilities may hold.
func Capabilities() []string { return []string{ImportLookup, ImportKVGet, ImportKVPut} }

// Parts of the keys of ImportLookup: kind 00 name 00 key.
const (
	LookupTable  = "table"  // name of a replacement table, key in it
	LookupEntity = "entity" // name of an entity, name of a tag
	LookupBreak  = "\x00"   // between the parts; names never hold it
)

// Before the name of a tag these stand for the value that the tag has in the description of what the command names. Such a tag has no value of its own.
const (
	CopyEntity = "entity" + LookupBreak
	CopyMetric = "metric" + LookupBreak
)

// Denial is a result below zero of a capability, or of ImportZone.
type Denial int32

// The denials.
const (
	// Absent means that there is nothing under the key, or nothing that the uploader may see; of a zone, that there is none of this name.
	Absent Denial = -1
	// Malformed means that key or buffer lie outside the memory, or that the key is none.
	Malformed Denial = -2
	// OverLimit means that key, value or the number of keys is over its limit; the log of the plugin names it.
	OverLimit Denial = -3
	// Denied means that the capability is not granted, or that the uploader lacks the role for such a key.
	Denied Denial = -4
	// Unavailable means that the call in work has no uploader or may not remember, or that the database cannot answer.
	Unavailable Denial = -5
)

// Error makes a denial an error of the guest.
func (d Denial) Error() string {
	switch d {
	case Absent:
		return "no such value"
	case Malformed:
		return "malformed key or buffer"
	case OverLimit:
		return "over a limit, which the log names"
	case Denied:
		return "not granted"
	case Unavailable:
		return "not available in this call"
	}
	return fmt.Sprintf("denial %d", int32(d))
}

// InputSlack is how many writable bytes tidemark_alloc grants beyond what was asked, so that a guest may load and copy in
// words of up to 16 bytes without a check at the end of its input.
const InputSlack = 16

// Flags of a call.
const (
	// FlagLast marks the last chunk of a stream. The chunk may be empty.
	FlagLast uint32 = 1 << 0
)

// Levels of tidemark_v1.log.
const (
	LogDebug uint32 = iota
	LogInfo
	LogWarn
	LogError
)

// Storable times are those from MinTime to MaxTime, Unix milliseconds, both inclusive.
const (
	MinTime int64 = 0
	MaxTime int64 = 4294969199999
)

// Code is the result of a call. Zero and above is success.
type Code int32

// The results below zero.
const (
	OK Code = 0
	// Failed means a fault in data or configuration. The instance is fine.
	Failed Code = -1
	// Panicked means that the guest caught a panic. The host gives the instance up.
	Panicked Code = -2
	// Unsupported means that the plugin has no such kind.
	Unsupported Code = -3
)

// String names the code for logs.
func (c Code) String() string {
	switch c {
	case OK:
		return "ok"
	case Failed:
		return "failed"
	case Panicked:
		return "panicked"
	case Unsupported:
		return "unsupported"
	}
	return fmt.Sprintf("code %d", int32(c))
}

// Kind is a job that a plugin can do. Each has an export of its own.
type Kind string

// The kinds of version 1.
const (
	KindParser    Kind = "parser"    // bytes of a chunk -> command batch
	KindTransform Kind = "transform" // command batch -> command batch
	KindAlert     Kind = "alert"     // evaluation events -> renderings
	KindWebhook   Kind = "webhook"   // raw request -> command batch
)

// Kinds lists every kind.
func Kinds() []Kind { return []Kind{KindParser, KindTransform, KindAlert, KindWebhook} }

// Export returns the name of the export that does the job, "" for an unknown kind.
func (k Kind) Export() string {
	switch k {
	case KindParser:
		return "tidemark_parse"
	case KindTransform:
		return "tidemark_transform"
	case KindAlert:
		return "tidemark_alert"
	case KindWebhook:
		return "tidemark_decode"
	}
	return ""
}

// ErrFormat is wrapped by every error of a decoder of this package: the other side broke the format.
var ErrFormat = errors.New("broken plugin data")

func formatErrorf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
}
