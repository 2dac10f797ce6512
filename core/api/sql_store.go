package api

import (
	"errors"
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/sql"
)

// sqlStored is the answer of a query whose rows are stored.
type sqlStored struct {
	Rows     int64    `json:"rows"`
	Samples  int64    `json:"samples"`
	Settings int64    `json:"settings"`
	Skipped  int64    `json:"skipped"`
	Commands []string `json:"commands,omitempty"` // of a trial
}

// sqlStore runs a query and stores its rows as series.
func (c *call) sqlStore() error {
	get, err := c.sqlParameters()
	if err != nil {
		return err
	}
	r, err := c.sqlRequest(get)
	if err != nil {
		return c.sqlFailure(err, false)
	}
	options := sql.StoreOptions{Newer: strings.EqualFold(get("checkLastTime"), "true"), Try: strings.EqualFold(get("test"), "true")}
	if err := c.unhurried(); err != nil {
		return err
	}
	done, err := c.server.SQL.Store(c.r.Context(), r.Request, options)
	if err != nil {
		var known *core.Error
		if errors.As(err, &known) && known.Code != core.Internal && done.Receipt != nil {
			err = core.Errorf(known.Code, "%s (%d samples and %d settings were stored before)", known.Text, done.Samples, done.Settings)
		}
		return c.sqlFailure(err, false)
	}
	if done.Receipt != nil {
		c.durability(done.Receipt.Durability)
	}
	answer := sqlStored{Rows: done.Rows, Samples: done.Samples, Settings: done.Settings, Skipped: done.Skipped}
	for line := range strings.Lines(string(done.Commands)) {
		answer.Commands = append(answer.Commands, strings.TrimSuffix(line, "\n"))
	}
	return c.sendPlain(answer)
}
