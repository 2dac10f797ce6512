package memstore_test

import (
	"testing"

	"github.com/tidemark-db/tidemark/core/memstore"
	"github.com/tidemark-db/tidemark/core/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Backend { return storetest.Feed(memstore.New()) })
}
