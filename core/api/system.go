package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/dates"
)

// health answers without credentials, for load balancers and orchestrators.
func (c *call) health() error {
	h := c.server.Health()
	body, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("encode health: %w", err)
	}
	if !h.Unready {
		return c.sendJSON(body)
	}
	c.Header().Set("Content-Type", jsonType)
	c.Header().Set("Retry-After", "1")
	c.WriteHeader(http.StatusServiceUnavailable)
	c.Write(body) // fails only when the client is gone
	return nil
}

// ping tells that the credentials are good, and keeps the session alive.
func (c *call) ping() error {
	c.WriteHeader(http.StatusOK)
	return nil
}

// version is read by clients for the server zone, and by a dashboard that wants a storage version before it offers aggregation. The inner
// objects hold exactly these fields: strict clients refuse others.
func (c *call) version() error {
	s := c.server
	now := s.Clock()
	local := now.Std().In(s.Zone)
	_, offset := local.Zone()
	body := append([]byte(nil), `{"buildInfo":{"revisionNumber":`...)
	body = appendString(body, s.Revision)
	body = appendString(append(body, `,"buildNumber":`...), s.Revision)
	body = appendString(append(body, `,"buildId":`...), s.Version)
	body = append(body, `,"hbaseVersion":"none"},"license":{"productVersion":"Standard Edition","forecastEnabled":false,`+
		`"dataVersioningEnabled":true,"remoteHbase":false,"hbaseServers":0},"date":{"currentDate":`...)
	body = appendString(body, now.Std().Format(time.RFC3339))
	body = strconv.AppendInt(append(body, `,"currentTime":`...), int64(now), 10)
	body = appendString(append(body, `,"localDate":`...), local.Format("2006-01-02 15:04:05.000"))
	body = appendString(append(body, `,"startDate":`...), dates.FormatISO(s.started))
	body = appendString(append(body, `,"timeZone":{"name":`...), zoneName(local))
	body = strconv.AppendInt(append(body, `,"offsetMinutes":`...), int64(offset/60), 10)
	body = appendString(append(body, `}},"settings":{"hostname":`...), s.Hostname)
	body = appendString(append(body, `,"server.url":`...), s.URL)
	return c.sendJSON(append(body, "}}"...))
}

// zoneName is the ID of the server zone. That of the operating system may be known by its rules only: clients get its offset then.
func zoneName(local time.Time) string {
	name, offset := local.Location().String(), local.Format("-07:00")
	switch {
	case name != "Local":
		return name
	case offset == "+00:00":
		return "UTC"
	}
	return "GMT" + offset
}

// permissions describes the caller to himself.
func (c *call) permissions() error {
	g, u := c.id.Grants, c.id.User
	admin := g.Roles.Has(core.Admin)
	body := append([]byte(nil), `{"roles":[`...)
	for i, role := range orderedRoles(u.Roles) {
		if i > 0 {
			body = append(body, ',')
		}
		body = appendString(body, "ROLE_"+role)
	}
	groups := u.Groups
	if admin {
		groups = nil // whatever they grant, the role has it
	}
	body = appendStrings(append(body, `],"user-groups":`...), groups)
	body = appendEntityGroups(append(body, `,"entity-groups":`...), g)
	body = appendStrings(append(body, `,"portals":`...), c.portalNames())
	body = strconv.AppendBool(append(body, `,"all-entities-read":`...), g.ReadAll)
	body = strconv.AppendBool(append(body, `,"all-entities-write":`...), g.WriteAll)
	body = strconv.AppendBool(append(body, `,"all-portals-permission":`...), admin)
	body = append(body, `,"ip-filter":`...)
	if u.Addresses == "" {
		body = append(body, "null"...)
	} else {
		body = appendString(body, u.Addresses)
	}
	return c.sendJSON(append(body, '}'))
}

// portalNames are the portals that the caller may see, by name. Administrators see all of them, for which the contract has a flag and no list.
func (c *call) portalNames() []string {
	if c.server.Portals == nil || c.id.Grants.Roles.Has(core.Admin) {
		return nil
	}
	var names []string
	for _, p := range c.server.Portals() {
		if p.visible(c.id.User.Groups) {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return names
}

// orderedRoles puts the granted roles into the contract's order: the data and meta roles, writing first, then the others.
func orderedRoles(granted []string) []string {
	var out []string
	for _, role := range [...]core.Roles{core.DataWrite, core.DataRead, core.MetaWrite, core.MetaRead, core.EntityGroupAdmin, core.User, core.Editor, core.Admin} {
		if name := role.Names()[0]; slices.Contains(granted, name) {
			out = append(out, name)
		}
	}
	return out
}

// appendEntityGroups writes the entity groups of a user; where both permissions are granted the contract shows WRITE.
func appendEntityGroups(body []byte, g core.Grants) []byte {
	names := slices.Concat(g.ReadGroups, g.WriteGroups)
	slices.Sort(names)
	body = append(body, '{')
	for i, name := range slices.Compact(names) {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(appendString(body, name), ':')
		if slices.Contains(g.WriteGroups, name) {
			body = append(body, `"WRITE"`...)
		} else {
			body = append(body, `"READ"`...)
		}
	}
	return append(body, '}')
}

// appendStrings writes a list of texts; none is exactly [].
func appendStrings(body []byte, list []string) []byte {
	body = append(body, '[')
	for i, text := range list {
		if i > 0 {
			body = append(body, ',')
		}
		body = appendString(body, text)
	}
	return append(body, ']')
}

// stats counts requests in a set of its own: two servers in one process, as in tests, do not share it.
type stats struct {
	set *metrics.Set
	mu  struct {
		sync.RWMutex
		byKey map[statsKey]requestStats // as many as routes, methods and codes occur together
	}
}

// statsKey is a kind of request.
type statsKey struct {
	method string
	route  string // pattern
	status int
}

// requestStats are the metrics of one kind of request.
type requestStats struct {
	requests  *metrics.Counter
	durations *metrics.PrometheusHistogram // nil for paths without a route
}

func newStats(set *metrics.Set) *stats {
	s := &stats{set: set}
	s.mu.byKey = map[statsKey]requestStats{}
	return s
}

// durations are the upper bounds, in seconds, of the histogram: from what memory answers, over one fsync, to what a user gives up on.
var durations = []float64{0.001, 0.005, 0.025, 0.1, 0.25, 1, 5, 30}

// done counts one request. Routes are labelled by their pattern, so that names in paths make no new time series.
func (s *stats) done(c *call, took core.Time) {
	status := c.status
	if status == 0 {
		status = http.StatusOK // net/http sends it for a handler that wrote nothing
	}
	one := s.of(statsKey{knownMethod(c.r.Method), c.route, status})
	one.requests.Inc()
	if one.durations != nil {
		one.durations.Update(float64(took) / 1000)
	}
}

// of finds the metrics of a kind of request, and makes them for the first one.
func (s *stats) of(key statsKey) requestStats {
	s.mu.RLock()
	one, ok := s.mu.byKey[key]
	s.mu.RUnlock()
	if ok {
		return one
	}
	labels := fmt.Sprintf(`{method=%q,route=%q,code="%d"}`, key.method, key.route, key.status)
	one.requests = s.set.GetOrCreateCounter("tidemark_http_requests_total" + labels)
	if key.route != "none" {
		name := fmt.Sprintf(`tidemark_http_request_duration_seconds{route=%q}`, key.route)
		one.durations = s.set.GetOrCreatePrometheusHistogramExt(name, durations)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.byKey[key] = one
	return one
}

// knownMethod keeps invented methods out of the labels.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}

// metrics writes the Prometheus text: what this package counts, then what the rest of the server adds.
func (c *call) metrics() error {
	h := c.Header()
	h.Set("Content-Type", plainType)
	c.WriteHeader(http.StatusOK)
	c.server.stats.set.WritePrometheus(c)
	fmt.Fprintf(c, "tidemark_http_body_bytes %d\n", c.server.held.Load())
	waiting, bytes := c.server.uploadLoad()
	fmt.Fprintf(c, "tidemark_uploads_waiting %d\ntidemark_uploads_spool_bytes %d\n", waiting, bytes)
	if c.server.Metrics != nil {
		c.server.Metrics(c)
	}
	return nil
}
