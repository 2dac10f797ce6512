package inorder

import (
	"context"
	"errors"
	"slices"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// boxes keeps one number a piece.
type boxes struct {
	Gate
	done map[int]int
}

func newBoxes(width int) *boxes {
	b := &boxes{done: map[int]int{}}
	b.Open(width)
	return b
}

func (b *boxes) put(n, v int) {
	b.Lock()
	defer b.Unlock()
	b.done[n] = v
	b.Broadcast()
}

func (b *boxes) next(ctx context.Context) (int, bool, error) {
	b.Lock()
	defer b.Unlock()
	for {
		if v, ok := b.done[b.Due]; ok {
			b.Due++
			b.Broadcast()
			return v, true, nil
		}
		if b.Stopped {
			return 0, false, context.Cause(ctx)
		}
		if b.Ended {
			return 0, false, b.Failure
		}
		b.Wait()
	}
}

func TestRunKeepsTheOrder(t *testing.T) {
	const pieces, width = 100, 4
	b := newBoxes(width)
	work := func(ctx context.Context) error {
		ended := make(chan struct{}, pieces)
		for n := range pieces {
			go func() { // all at once: the gate holds back those that are too far ahead
				defer func() { ended <- struct{}{} }()
				if b.Enter(n) {
					b.put(n, n*n)
				}
			}()
		}
		for range pieces {
			<-ended
		}
		return nil
	}
	var got []int
	for v, err := range Run(t.Context(), &b.Gate, work, b.next) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, v)
	}
	if len(got) != pieces || !slices.IsSorted(got) {
		t.Errorf("got %v", got)
	}
}

func TestRunEndsWithTheFailureOfWork(t *testing.T) {
	b, broken := newBoxes(2), errors.New("broken")
	var got []int
	var last error
	for v, err := range Run(t.Context(), &b.Gate, func(context.Context) error { b.put(0, 7); return broken }, b.next) {
		if last = err; err == nil {
			got = append(got, v)
		}
	}
	if !slices.Equal(got, []int{7}) || last != broken {
		t.Errorf("got %v and %v: what was done comes before the failure", got, last)
	}
}

func TestRunStopsWorkWhenTheCallerLeaves(t *testing.T) {
	b := newBoxes(2)
	refused := false
	work := func(ctx context.Context) error {
		b.put(0, 1)
		<-ctx.Done()
		refused = !b.Enter(1)
		return ctx.Err()
	}
	for range Run(t.Context(), &b.Gate, work, b.next) {
		break
	}
	if !refused { // Run returns when work has, so that this is no race
		t.Error("a piece was let in after the caller had left")
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	b := newBoxes(2)
	ctx, cancel := context.WithCancel(t.Context())
	work := func(ctx context.Context) error {
		cancel()
		if b.Enter(2) { // waits: nothing is done, and two are in flight
			t.Error("a piece was let in")
		}
		return ctx.Err()
	}
	var last error
	for _, err := range Run(ctx, &b.Gate, work, b.next) {
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("got %v", last)
	}
}
