package api

import (
	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/selfmetrics"
)

// jmx answers with what the server measures of itself, in the form that monitoring of Java servers reads.
func (c *call) jmx() error {
	if c.server.SelfMetrics == nil {
		return c.missing()
	}
	return c.sendJSON(selfmetrics.Beans(c.values.Get("query"), c.server.SelfMetrics()))
}

// countMalformed is told of each text command that was not stored. One that its sender may not send is not malformed.
func (s *Server) countMalformed(_ []byte, err error) {
	if core.CodeOf(err) != core.Forbidden {
		s.malformed.Add(1)
	}
}

// MalformedCommands returns how many text commands came over HTTP, since the server started, that could not be stored for what is in them.
func (s *Server) MalformedCommands() uint64 { return s.malformed.Load() }
