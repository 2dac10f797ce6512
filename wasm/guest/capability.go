package guest

import "github.com/tidemark-db/tidemark/wasm/abi"

// The capabilities of a plugin: its manifest names those that it uses, and the operator grants them. A module that imports one which is not
// granted is not loaded; only what a plugin calls is imported. Errors are of type abi.Denial.

// startBuffer holds most values, so that they take one call of the host.
const startBuffer = 256

// Table returns the value of a key in a replacement table. The uploader must be allowed to read metadata. Within one upload a table does not
// change.
func (h Host) Table(table, key string) (string, error) {
	value, err := read(func(buf []byte) int32 {
		return h.lookup(abi.LookupTable+abi.LookupBreak+table+abi.LookupBreak+key, buf)
	})
	return string(value), err
}

// EntityTag returns a tag of an entity that the uploader may read.
func (h Host) EntityTag(entity, tag string) (string, error) {
	value, err := read(func(buf []byte) int32 {
		return h.lookup(abi.LookupEntity+abi.LookupBreak+entity+abi.LookupBreak+tag, buf)
	})
	return string(value), err
}

// Get returns what the plugin remembers under key; abi.Absent when that is nothing. It sees what Put wrote in the same call.
func (h Host) Get(key string) ([]byte, error) {
	return read(func(buf []byte) int32 { return h.get(key, buf) })
}

// Put remembers value under key, across restarts; a value of no bytes removes the key. It is stored together with the output of this call,
// or not at all when the call fails.
func (h Host) Put(key string, value []byte) error {
	if n := h.put(key, value); n < 0 {
		return abi.Denial(n)
	}
	return nil
}

// read calls with a larger buffer when the first is too small.
func read(call func(buf []byte) int32) ([]byte, error) {
	buf := make([]byte, startBuffer)
	for {
		n := call(buf)
		if n < 0 {
			return nil, abi.Denial(n)
		}
		if int(n) <= len(buf) {
			return buf[:n], nil
		}
		buf = make([]byte, n)
	}
}
