package guest

import (
	"unsafe"

	"github.com/tidemark-db/tidemark/wasm/abi"
)

// registered is the one instance of this module. A module has one life: the host makes another module for another instance.
var registered = New(Plugin{}, abi.Options{})

// input is the buffer that tidemark_alloc hands out. It is reachable from here, so the guest's collector leaves it alone.
var input []byte

// errorOut keeps the text that was handed to the host reachable until the next call.
var errorOut []byte

// Register makes p the plugin of this module. Call it from an init function.
func Register(p Plugin) { registered = New(p, abi.Options{Log: hostLog, NowMs: hostNowMs}) }

//go:wasmimport tidemark_v1 log
func hostLog(level uint32, text string)

//go:wasmimport tidemark_v1 now_ms
func hostNowMs() int64

// pack returns ptr << 32 | len.
func pack(b []byte) int64 {
	if len(b) == 0 {
		return 0
	}
	return int64(uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))<<32 | uint64(len(b)))
}

func bytesAt(p unsafe.Pointer, n uint32) []byte {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(p), n)
}

func call(kind abi.Kind, in []byte, flags uint32) int64 {
	out, code := registered.Call(kind, in, flags)
	if code < 0 {
		return int64(code)
	}
	return pack(out)
}

//go:wasmexport tidemark_abi
func exportABI() uint32 { return abi.Version }

//go:wasmexport tidemark_alloc
func exportAlloc(n uint32) uint32 {
	if uint64(cap(input)) < uint64(n)+abi.InputSlack {
		input = nil // let go of the old buffer before asking for the larger one
		input = make([]byte, uint64(n)+abi.InputSlack)
	}
	return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(input))))
}

//go:wasmexport tidemark_describe
func exportDescribe() int64 { return pack(registered.Describe()) }

//go:wasmexport tidemark_init
func exportInit(p unsafe.Pointer, n uint32) int32 { return int32(registered.Init(bytesAt(p, n))) }

//go:wasmexport tidemark_open
func exportOpen(p unsafe.Pointer, n uint32) int32 { return int32(registered.Open(bytesAt(p, n))) }

//go:wasmexport tidemark_parse
func exportParse(p unsafe.Pointer, n, flags uint32) int64 {
	return call(abi.KindParser, bytesAt(p, n), flags)
}

//go:wasmexport tidemark_transform
func exportTransform(p unsafe.Pointer, n, flags uint32) int64 {
	return call(abi.KindTransform, bytesAt(p, n), flags)
}

//go:wasmexport tidemark_alert
func exportAlert(p unsafe.Pointer, n, flags uint32) int64 {
	return call(abi.KindAlert, bytesAt(p, n), flags)
}

//go:wasmexport tidemark_decode
func exportDecode(p unsafe.Pointer, n, flags uint32) int64 {
	return call(abi.KindWebhook, bytesAt(p, n), flags)
}

//go:wasmexport tidemark_last_error
func exportLastError() int64 {
	errorOut = append(errorOut[:0], registered.LastError()...)
	return pack(errorOut)
}
