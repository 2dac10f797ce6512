package api

import (
	"strings"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/webhook"
)

// webhook stores whatever a foreign service sends as one message.
func (c *call) webhook() error {
	body, err := c.body()
	if err != nil {
		return err
	}
	result, err := webhook.Map(webhook.Request{
		Method:      c.r.Method,
		RawQuery:    c.r.URL.RawQuery,
		Rest:        strings.TrimPrefix(c.param("path"), "/"),
		Header:      c.r.Header,
		Host:        c.r.Host,
		Body:        body,
		ContentType: c.r.Header.Get("Content-Type"),
		RemoteIP:    c.id.Address,
		Now:         c.now(),
		Zone:        c.server.Zone,
		MaxDepth:    c.server.Limits.Depth,
	})
	if err != nil {
		return err
	}
	if result.Challenge != "" {
		return c.send(plainType, []byte(result.Challenge))
	}
	// The pipeline takes what it stores: the answer is made before.
	var debug []byte
	if result.Debug {
		if debug, err = webhook.AppendJSON(nil, result); err != nil {
			return err
		}
	}
	one := &struct { // allocated at once
		batch   core.Batch
		message [1]core.Message
	}{message: [1]core.Message{result.Message}}
	one.batch.Origin, one.batch.Messages = c.id.Origin(webhook.Door), one.message[:]
	receipt, err := c.submit(&one.batch)
	if err != nil {
		return err
	}
	if !result.Debug {
		return c.stored(receipt)
	}
	c.durability(receipt.Durability)
	return c.sendJSON(debug)
}
