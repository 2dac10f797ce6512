package api

import "github.com/tidemark-db/tidemark/core/selfmetrics"

// jmx answers with what the server measures of itself, in the form that monitoring of Java servers reads.
func (c *call) jmx() error {
	if c.server.SelfMetrics == nil {
		return c.missing()
	}
	return c.sendJSON(selfmetrics.Beans(c.values.Get("query"), c.server.SelfMetrics()))
}
