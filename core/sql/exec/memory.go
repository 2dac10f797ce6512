package exec

import (
	"errors"
	"sync/atomic"

	"github.com/tidemark-db/tidemark/core"
)

// Memory counts the bytes that the operators of a query keep and refuses more than its limit. It is safe for concurrent use.
type Memory struct {
	limit int64
	used  atomic.Int64
}

// NewMemory returns a Memory of so many bytes; 0 or less = no limit.
func NewMemory(limit int64) *Memory { return &Memory{limit: limit} }

// Grow takes n bytes, or refuses with an error of code TooLarge that names the setting; isShortage knows it.
func (m *Memory) Grow(n int64) error {
	if used := m.used.Add(n); m.limit > 0 && used > m.limit {
		m.used.Add(-n)
		return &shortage{core.Errorf(core.TooLarge,
			"the query needs more than the %d bytes of memory that sql.memory allows: narrow it, group by fewer keys, or raise the setting", m.limit)}
	}
	return nil
}

// shortage is the error of a Memory that refuses. What holds many rows may go on in temporary files then.
type shortage struct{ err *core.Error }

func (s *shortage) Error() string { return s.err.Error() }
func (s *shortage) Unwrap() error { return s.err }

// isShortage reports whether err says that a Memory refused.
func isShortage(err error) bool {
	var s *shortage
	return errors.As(err, &s)
}

// left reports whether one of so many equal parts of the memory is free.
func (m *Memory) left(parts int64) bool {
	return m.limit <= 0 || m.limit-m.used.Load() >= m.limit/parts
}

// Shrink gives n bytes back.
func (m *Memory) Shrink(n int64) { m.used.Add(-n) }

// Limit returns the limit in bytes; 0 or less = none.
func (m *Memory) Limit() int64 { return m.limit }

// Used returns how many bytes are taken.
func (m *Memory) Used() int64 { return m.used.Load() }

// account is what one holder took of a Memory, to be given back as a whole.
type account struct {
	memory *Memory
	taken  int64
}

func (a *account) grow(n int64) error {
	err := a.memory.Grow(n)
	if err == nil {
		a.taken += n
	}
	return err
}

// release gives everything back.
func (a *account) release() {
	a.memory.Shrink(a.taken)
	a.taken = 0
}
