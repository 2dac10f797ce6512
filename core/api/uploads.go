package api

import "strings"

// The routes of background uploads come twice, as those of tokens do: below /api/v1/admin/uploads for those of all users, below /api/v1/uploads for the caller's own.

// findUploads returns the uploads that the route of the call shows, all of them or the one with an id. It is called with backlog.mu held.
func (c *call) findUploads(id string) ([]*backgroundUpload, error) {
	q := &c.server.uploads
	if err := q.load(c.server); err != nil {
		return nil, err
	}
	own := !strings.HasPrefix(c.route, adminPath)
	var found []*backgroundUpload
	for _, b := range q.all {
		if (id == "" || b.ID == id) && (!own || b.User == c.id.User.Name) {
			found = append(found, b)
		}
	}
	if id != "" && found == nil {
		return nil, notFound("upload", id)
	}
	return found, nil
}

// uploadList lists background uploads, the oldest first: all of them below /api/v1/admin/, the caller's own otherwise.
func (c *call) uploadList() error {
	body, err := c.listedUploads()
	if err != nil {
		return err
	}
	return c.sendJSON(body)
}

func (c *call) listedUploads() ([]byte, error) {
	c.server.uploads.mu.Lock()
	defer c.server.uploads.mu.Unlock()
	found, err := c.findUploads("")
	out := list{body: []byte{'['}}
	for _, b := range found {
		out.next()
		out.body = append(out.body, b.shown...)
	}
	return append(out.body, ']'), err
}

// uploadGet shows how far a background upload is.
func (c *call) uploadGet() error {
	c.server.uploads.mu.Lock()
	found, err := c.findUploads(c.param("id"))
	if err != nil {
		c.server.uploads.mu.Unlock()
		return err
	}
	body := found[0].shown
	c.server.uploads.mu.Unlock()
	return c.sendJSON(body)
}

// uploadDelete forgets a background upload. One that has not ended ends: what it stored so far stays.
func (c *call) uploadDelete() error {
	q := &c.server.uploads
	q.mu.Lock()
	defer q.mu.Unlock()
	found, err := c.findUploads(c.param("id"))
	if err != nil {
		return err
	}
	b := found[0]
	if b.cancel != nil {
		b.dropped = true // the worker removes it
		b.cancel(errDropped)
	} else {
		q.remove(c.server, b)
	}
	return c.ping() // an empty 200
}
