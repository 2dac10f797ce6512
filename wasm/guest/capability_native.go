//go:build !wasip1

package guest

import "github.com/tidemark-db/tidemark/wasm/abi"

func (h Host) lookup(key string, buf []byte) int32 { return allowed(h.options.Lookup, key, buf) }
func (h Host) get(key string, buf []byte) int32    { return allowed(h.options.KVGet, key, buf) }
func (h Host) put(key string, value []byte) int32  { return allowed(h.options.KVPut, key, value) }

func (h Host) zone(id string, buf []byte) int32 { return allowed(h.options.Zone, id, buf) }

func allowed(f func(string, []byte) int32, key string, buf []byte) int32 {
	if f == nil {
		return int32(abi.Denied)
	}
	return f(key, buf)
}
