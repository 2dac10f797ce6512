package abi

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Framing says where the host may cut a stream into chunks.
type Framing string

// The framings of version 1.
const (
	FramingLines Framing = "lines" // at newlines only; a line never spans two chunks
	FramingNone  Framing = "none"  // anywhere
)

// Manifest is what tidemark_describe returns, as JSON.
type Manifest struct {
	ABI          int             `json:"abi"` // major version
	Name         string          `json:"name"`
	Version      string          `json:"version"`
	Description  string          `json:"description,omitempty"`
	Kinds        []Kind          `json:"kinds"`
	Formats      []Format        `json:"formats,omitempty"`
	Stateful     bool            `json:"stateful,omitempty"`      // a stream needs tidemark_open and one instance from first to last chunk
	ConfigSchema json.RawMessage `json:"config_schema,omitempty"` // JSON schema of OpenRequest.Config
	Limits       ManifestLimits  `json:"limits,omitzero"`
	Capabilities []string        `json:"capabilities,omitempty"` // host functions beyond log and now_ms; the administrator grants them
	SDK          string          `json:"sdk,omitempty"`          // for example "go/1"
}

// Format is one input that a parser reads.
type Format struct {
	Name         string   `json:"name"`
	ContentTypes []string `json:"content_types,omitempty"`
	Magic        string   `json:"magic,omitempty"` // the first bytes of such an input
	Framing      Framing  `json:"framing,omitempty"`
	Header       bool     `json:"header,omitempty"` // the host hands the first line over in OpenRequest.Header
}

// ManifestLimits may only lower what the server allows. Zero means the server's own limit.
type ManifestLimits struct {
	MemoryMB   int `json:"memory_mb,omitempty"`
	DeadlineMs int `json:"deadline_ms,omitempty"`
}

// Has reports whether the plugin does jobs of kind k.
func (m *Manifest) Has(k Kind) bool { return slices.Contains(m.Kinds, k) }

// FramingOf returns where an input of the named format may be cut. An unnamed format is the first one; without any format
// the host may cut anywhere.
func (m *Manifest) FramingOf(format string) Framing {
	for _, f := range m.Formats {
		if (format == "" || f.Name == format) && f.Framing != "" {
			return f.Framing
		}
	}
	return FramingNone
}

// isName is written out since a regular expression would add half a megabyte to every Go plugin.
func isName(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter, other := c >= 'a' && c <= 'z', c >= '0' && c <= '9' || c == '_' || c == '-'
		if !letter && (i == 0 || !other) {
			return false
		}
	}
	return len(s) >= 1 && len(s) <= 64
}

// Validate lists every fault of the manifest.
func (m *Manifest) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if m.ABI != Version>>16 {
		fault("manifest: abi is %d, this side speaks %d", m.ABI, Version>>16)
	}
	if !isName(m.Name) {
		fault("manifest: name %q: use 1 to 64 of a-z 0-9 _ - that begin with a letter", m.Name)
	}
	if len(m.Kinds) == 0 {
		fault("manifest: no kinds: name at least one of %v", Kinds())
	}
	for _, k := range m.Kinds {
		if k.Export() == "" {
			fault("manifest: unknown kind %q: use one of %v", k, Kinds())
		}
	}
	for _, f := range m.Formats {
		if f.Name == "" {
			fault("manifest: a format has no name")
		}
		if f.Framing != "" && f.Framing != FramingLines && f.Framing != FramingNone {
			fault("manifest: format %q: framing %q is neither %q nor %q", f.Name, f.Framing, FramingLines, FramingNone)
		}
	}
	if m.Limits.MemoryMB < 0 || m.Limits.DeadlineMs < 0 {
		fault("manifest: a limit is negative")
	}
	return errors.Join(faults...)
}

// ParseManifest reads and validates the JSON of tidemark_describe.
func ParseManifest(data []byte) (*Manifest, error) {
	m := new(Manifest)
	if err := json.Unmarshal(data, m); err != nil {
		return nil, formatErrorf("manifest: %v", err)
	}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	return m, nil
}

// OpenRequest begins a stream. It crosses the border as JSON, argument of tidemark_open.
type OpenRequest struct {
	Kind        Kind              `json:"kind"`
	Format      string            `json:"format,omitempty"`
	Config      json.RawMessage   `json:"config,omitempty"` // the named configuration, whatever shape the plugin asks for
	ConfigName  string            `json:"config_name,omitempty"`
	Params      map[string]string `json:"params,omitempty"`   // of the HTTP request
	Tags        map[string]string `json:"tags,omitempty"`     // default tags of what the stream gives
	Settings    map[string]string `json:"settings,omitempty"` // of this upload, over those of Config
	Received    int64             `json:"received"`           // Unix ms
	Zone        string            `json:"zone,omitempty"`     // IANA name of the zone for times that carry none
	Offsets     []ZoneOffset      `json:"offsets,omitempty"`  // of Zone, ordered, for guests without zone data
	Source      string            `json:"source,omitempty"`   // address of the sender
	File        string            `json:"file,omitempty"`     // as named by the sender
	ContentType string            `json:"content_type,omitempty"`
	Header      string            `json:"header,omitempty"` // first line, when the format has one
	Limits      OpenLimits        `json:"limits,omitzero"`
	Test        bool              `json:"test,omitempty"` // only check the configuration; no chunk follows
}

// ZoneOffset is the offset from UTC that holds from an instant on.
type ZoneOffset struct {
	From    int64 `json:"from"`    // Unix ms
	Seconds int   `json:"seconds"` // east of UTC
}

// zoneOffsetSize is that of an offset in the answer of ImportZone: i64 from, i32 seconds.
const zoneOffsetSize = 12

// AppendZone appends the answer of ImportZone.
func AppendZone(dst []byte, offsets []ZoneOffset) []byte {
	for _, o := range offsets {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(o.From))
		dst = binary.LittleEndian.AppendUint32(dst, uint32(int32(o.Seconds)))
	}
	return dst
}

// DecodeZone is the inverse of AppendZone.
func DecodeZone(b []byte) ([]ZoneOffset, error) {
	if len(b)%zoneOffsetSize != 0 {
		return nil, formatErrorf("a zone of %d bytes", len(b))
	}
	offsets := make([]ZoneOffset, 0, len(b)/zoneOffsetSize)
	for ; len(b) > 0; b = b[zoneOffsetSize:] {
		offsets = append(offsets, ZoneOffset{From: int64(binary.LittleEndian.Uint64(b)), Seconds: int(int32(binary.LittleEndian.Uint32(b[8:])))})
	}
	return offsets, nil
}

// OpenLimits are what the host will accept in one batch.
type OpenLimits struct {
	Records     int `json:"records,omitempty"`
	LineBytes   int `json:"line_bytes,omitempty"`
	OutputBytes int `json:"output_bytes,omitempty"`
}
