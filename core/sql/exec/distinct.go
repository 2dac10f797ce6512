package exec

import (
	"github.com/tidemark-db/tidemark/core/sql/column"
	"github.com/tidemark-db/tidemark/core/sql/plan"
)

// distinct drops rows whose first columns equal those of an earlier row.
func (x *execution) distinct(op *plan.Distinct, in stream) stream {
	return func(yield func(*column.Batch, error) bool) {
		held := account{memory: x.Memory}
		defer held.release()
		seen := map[string]struct{}{}
		var key []byte
		var pick []int32
		var out column.Batch
		for b, err := range in {
			if err != nil {
				yield(nil, err)
				return
			}
			pick = pick[:0]
			for i := range b.Len {
				key = key[:0]
				for _, v := range b.Columns[:op.Width] {
					key = appendKey(key, v, i)
				}
				if _, ok := seen[string(key)]; ok {
					continue
				}
				if err := held.grow(int64(len(key)) + mapEntry); err != nil {
					yield(nil, err)
					return
				}
				seen[string(key)] = struct{}{}
				pick = append(pick, int32(i))
			}
			if len(pick) < b.Len {
				gather(&out, b, pick)
				b = &out
			}
			if b.Len > 0 && !yield(b, nil) {
				return
			}
		}
	}
}

// mapEntry is roughly what an entry of a map of texts costs beside the text.
const mapEntry = 64
