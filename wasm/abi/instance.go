package abi

// Instance is one running plugin seen as bytes in, bytes out. A Go plugin is one by wasm/guest, linked into the server or
// behind the exports of a module; the border adds nothing but the copy. Calls come one at a time. Output is valid until the
// next call.
type Instance interface {
	// Describe returns the manifest as JSON.
	Describe() []byte
	// Init hands over the server's settings of the plugin as JSON, once.
	Init(settings []byte) Code
	// Open begins a stream; request is the JSON of an OpenRequest.
	Open(request []byte) Code
	// Call does one job.
	Call(kind Kind, in []byte, flags uint32) ([]byte, Code)
	// LastError is the text of the last result below zero.
	LastError() string
}

// Options are the services that the host gives to an instance beside the calls.
type Options struct {
	Log   func(level uint32, text string)   // nil drops lines
	NowMs func() int64                      // receive time of the batch in work, Unix ms
	Zone  func(id string, buf []byte) int32 // offsets of a time zone, as ABI.md draws them; nil knows none

	// The capabilities, with the results that ABI.md draws; a nil one is denied.
	Lookup func(key string, buf []byte) int32
	KVGet  func(key string, buf []byte) int32
	KVPut  func(key string, value []byte) int32
}
