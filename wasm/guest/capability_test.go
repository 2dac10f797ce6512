package guest

import (
	"errors"
	"testing"

	"github.com/tidemark-db/tidemark/wasm/abi"
)

// The SDK asks again with a larger buffer, whatever the value's length is by then.
func TestCapabilitiesReadValuesOfAnyLength(t *testing.T) {
	value := make([]byte, startBuffer)
	calls := 0
	get := func(key string, buf []byte) int32 {
		calls++
		if calls == 2 {
			value = append(value, make([]byte, 1000)...) // it grew between the two calls
		}
		if key != "k" {
			return int32(abi.Absent)
		}
		if len(value) <= len(buf) {
			copy(buf, value)
		}
		return int32(len(value))
	}
	h := Host{abi.Options{KVGet: get}}
	if got, err := h.Get("k"); err != nil || len(got) != startBuffer || calls != 1 {
		t.Errorf("%d bytes, error %v after %d calls; want %d after 1", len(got), err, calls, startBuffer)
	}
	if got, err := h.Get("k"); err != nil || len(got) != startBuffer+1000 || calls != 3 {
		t.Errorf("%d bytes, error %v after %d calls; want %d after 3", len(got), err, calls, startBuffer+1000)
	}
	if _, err := h.Get("x"); !errors.Is(err, abi.Absent) {
		t.Errorf("error %v, want %v", err, abi.Absent)
	}
	if err := h.Put("k", nil); !errors.Is(err, abi.Denied) {
		t.Errorf("error %v, want %v", err, abi.Denied)
	}
	if _, err := h.Table("t", "k"); !errors.Is(err, abi.Denied) {
		t.Errorf("error %v, want %v", err, abi.Denied)
	}
}
