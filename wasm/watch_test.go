package wasm_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-db/tidemark/wasm"
	"github.com/tidemark-db/tidemark/wasm/abi"
	"github.com/tidemark-db/tidemark/wasm/guest"
	"github.com/tidemark-db/tidemark/wasm/wasmtest/testdata/guest/plain"
)

func TestRunUnloadsIdlePlugins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := wasm.New(t.Context(), wasm.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- h.Run(ctx) }()
		var ps [2]*wasm.Plugin
		for i, name := range []string{"busy", "idle"} {
			ps[i], err = h.AddNative(name, func(o abi.Options) abi.Instance {
				return guest.New(guest.Plugin{Manifest: plain.Manifest(), NewParser: plain.NewParser}, o)
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := parse(t, ps[i], line); err != nil {
				t.Fatal(err)
			}
		}
		busy, err := ps[0].Open(t.Context(), abi.OpenRequest{Kind: abi.KindParser})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(4*time.Minute + 59*time.Second)
		synctest.Wait()
		if !ps[1].Stats().Loaded {
			t.Error("unloaded before five minutes had passed")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if ps[1].Stats().Loaded || !ps[0].Stats().Loaded {
			t.Errorf("loaded: idle %v, with an open stream %v; want false, true", ps[1].Stats().Loaded, ps[0].Stats().Loaded)
		}
		if _, err := parse(t, ps[1], line); err != nil || !ps[1].Stats().Loaded {
			t.Errorf("the next use does not load it again: %v", err)
		}
		busy.Close()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := h.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
}
