package guest

import "unsafe"

// The linker imports those of these functions that the plugin reaches, and no others.

func (Host) lookup(key string, buf []byte) int32 {
	return hostLookup(key, unsafe.Pointer(unsafe.SliceData(buf)), uint32(len(buf)))
}

func (Host) get(key string, buf []byte) int32 {
	return hostKVGet(key, unsafe.Pointer(unsafe.SliceData(buf)), uint32(len(buf)))
}

func (Host) put(key string, value []byte) int32 {
	return hostKVPut(key, unsafe.Pointer(unsafe.SliceData(value)), uint32(len(value)))
}

func (Host) zone(id string, buf []byte) int32 {
	return hostZone(id, unsafe.Pointer(unsafe.SliceData(buf)), uint32(len(buf)))
}

//go:wasmimport tidemark_v1 zone
func hostZone(id string, buf unsafe.Pointer, limit uint32) int32

//go:wasmimport tidemark_v1 lookup
func hostLookup(key string, buf unsafe.Pointer, limit uint32) int32

//go:wasmimport tidemark_v1 kv_get
func hostKVGet(key string, buf unsafe.Pointer, limit uint32) int32

//go:wasmimport tidemark_v1 kv_put
func hostKVPut(key string, value unsafe.Pointer, n uint32) int32
