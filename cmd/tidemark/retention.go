package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/storage"
)

// retentionEvery is how often series are looked for that their metric does not keep any longer: retention is told in days.
const retentionEvery = time.Hour

// retention deletes series whose newest sample is older than their metric keeps series, until ctx ends. The deletes take the way of all writes.
func retention(db *storage.DB, to core.Ingester, log *slog.Logger) func(context.Context) error {
	return func(ctx context.Context) error {
		timer := time.NewTimer(0)
		defer timer.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-timer.C:
			}
			timer.Reset(retentionEvery)
			deletes, err := db.ExpiredSeries(ctx)
			if err == nil && len(deletes) > 0 {
				log.Info("retention: series without recent samples are deleted", "series", len(deletes))
				_, err = to.Ingest(ctx, &core.Batch{Origin: core.SystemOrigin(0), Series: deletes})
			}
			if err != nil && ctx.Err() == nil {
				log.Warn("retention: series could not be deleted", "error", err)
			}
		}
	}
}
