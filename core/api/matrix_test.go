package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-db/tidemark/core"
	"github.com/tidemark-db/tidemark/core/auth"
)

// matrix says who may call each route, as the contract's table of roles does: verb and pattern, the roles (all of them, or one of them with "or"; "anybody"
// is any user, "nobody" is no credentials), the permission on entity e1 that the request below needs, then its path and its body where they matter.
// A route that is not here fails the test: name it here first, then in the table of routes.
const matrix = `
GET /health | nobody
GET /metrics | anybody
GET /api/v1/openapi.json | nobody
GET /api/v1/ping | anybody
GET /api/v1/version | API_META_READ
GET /version | API_META_READ
GET /api/v1/permissions | anybody

POST /api/v1/series/insert | API_DATA_WRITE | write | | [{"entity":"e1","metric":"m","data":[{"t":1,"v":1}]}]
POST /api/v1/series/csv/:entity | API_DATA_WRITE | write | /api/v1/series/csv/e1 | time,m\n1,2
POST /api/v1/series/query | API_DATA_READ | read | | [{"entity":"e1","metric":"m","startDate":"2030-01-01T00:00:00Z","endDate":"now"}]
POST /api/v1/series/delete | API_DATA_WRITE | write | | [{"entity":"e1","metric":"m"}]
GET /api/v1/series/:format/:entity/:metric | API_DATA_READ | read | /api/v1/series/json/e1/m?startDate=2030-01-01T00:00:00Z&endDate=now
POST /api/v1/series | API_DATA_READ | read | | [{"entity":"e1","metric":"m","startDate":"2030-01-01T00:00:00Z","endDate":"now"}]

POST /api/v1/properties/insert | API_DATA_WRITE | write | | [{"entity":"e1","type":"t","tags":{"a":"b"}}]
POST /api/v1/properties/query | API_DATA_READ | read | | [{"entity":"e1","type":"t","startDate":"2030-01-01T00:00:00Z","endDate":"now"}]
POST /api/v1/properties/delete | API_DATA_WRITE
GET /api/v1/properties/:entity/types | API_DATA_READ | read | /api/v1/properties/e1/types
GET /api/v1/properties/:entity/types/:type | API_DATA_READ | read | /api/v1/properties/e1/types/t

POST /api/v1/messages/insert | API_DATA_WRITE | write | | [{"entity":"e1","message":"x"}]
POST /api/v1/messages/query | API_DATA_READ | read | | [{"entity":"e1","startDate":"2030-01-01T00:00:00Z","endDate":"now"}]
POST /api/v1/messages/stats/query | API_DATA_READ | read | | [{"entity":"e1","type":"t","metric":"message-count","startDate":"2030-01-01T00:00:00Z","endDate":"now"}]
GET /api/v1/messages/webhook | API_DATA_WRITE | write | /api/v1/messages/webhook?entity=e1&command.message=x
GET /api/v1/messages/webhook/*path | API_DATA_WRITE | write | /api/v1/messages/webhook/ci?entity=e1&command.message=x
POST /api/v1/messages/webhook | API_DATA_WRITE | write | /api/v1/messages/webhook?entity=e1&command.message=x
POST /api/v1/messages/webhook/*path | API_DATA_WRITE | write | /api/v1/messages/webhook/ci?entity=e1&command.message=x
POST /api/v1/messages | API_DATA_READ | read | | [{"entity":"e1","startDate":"2030-01-01T00:00:00Z","endDate":"now"}]
POST /api/v1/messages/stats | API_DATA_READ | read | | [{"entity":"e1","type":"t","metric":"message-count","startDate":"2030-01-01T00:00:00Z","endDate":"now"}]

POST /api/v1/alerts/query | API_DATA_READ | read | | [{"entity":"e1"}]
POST /api/v1/alerts/history/query | API_DATA_READ | read | | [{"entity":"e1"}]
POST /api/v1/alerts/update | API_DATA_WRITE | write | | [{"id":1,"acknowledged":true}]
POST /api/v1/alerts/delete | API_DATA_WRITE | write | | [{"id":1}]
POST /api/v1/alerts | API_DATA_READ | read | | [{"entity":"e1"}]
PATCH /api/v1/alerts | API_DATA_WRITE
POST /api/v1/alerts/history | API_DATA_READ | read | | [{"entity":"e1"}]

POST /api/v1/command | API_DATA_WRITE or API_META_WRITE
GET /api/v1/command/marker | anybody
POST /api/v1/csv | API_DATA_WRITE | write | /api/v1/csv?config=lines | entity,metric,time,value\ne1,m,1,2
POST /api/v1/nmon | API_DATA_WRITE | write | | entity,metric,time,value\ne1,m,1,2
POST /nmon/wget | API_DATA_WRITE
POST /csv/configs/import | ADMIN
GET /export | API_DATA_READ
POST /api/put | API_DATA_WRITE
GET /ping | nobody
POST /write | API_DATA_WRITE
POST /api/v2/write | API_DATA_WRITE
GET /query | anybody
POST /query | anybody
GET /ping | nobody
POST /write | API_DATA_WRITE
POST /api/v2/write | API_DATA_WRITE
GET /query | anybody
POST /query | anybody

GET /api/sql | API_DATA_READ
POST /api/sql | API_DATA_READ
GET /api/sql/meta | anybody
POST /api/sql/meta | anybody
GET /api/sql/cancel | API_DATA_READ
POST /api/sql/cancel | API_DATA_READ
GET /api/sql/series | API_DATA_READ
POST /api/sql/series | API_DATA_READ
POST /api/sql/store | API_DATA_READ and API_DATA_WRITE

GET /api/v1/metrics | API_META_READ
GET /api/v1/metrics/:metric | API_META_READ
PUT /api/v1/metrics/:metric | API_META_WRITE
PATCH /api/v1/metrics/:metric | API_META_WRITE
DELETE /api/v1/metrics/:metric | API_META_WRITE
POST /api/v1/metrics/:metric/rename | API_META_WRITE
GET /api/v1/metrics/:metric/series | API_META_READ
GET /api/v1/metrics/:metric/series/tags | API_META_READ
GET /api/v1/metrics/:metric/entity-and-tags | API_META_READ

GET /api/v1/entities | API_META_READ
POST /api/v1/entities | API_META_WRITE
GET /api/v1/entities/:entity | API_META_READ
PUT /api/v1/entities/:entity | API_META_WRITE
PATCH /api/v1/entities/:entity | API_META_WRITE
DELETE /api/v1/entities/:entity | API_META_WRITE
POST /api/v1/entities/:entity/rename | API_META_WRITE
GET /api/v1/entities/:entity/groups | API_META_READ
GET /api/v1/entities/:entity/metrics | API_META_READ
GET /api/v1/entities/:entity/property-types | API_META_READ
GET /api/v1/entities/:entity/versions | API_META_READ

GET /api/v1/entity-groups | API_META_READ
GET /api/v1/entity-groups/:group | API_META_READ
PUT /api/v1/entity-groups/:group | API_META_WRITE and ENTITY_GROUP_ADMIN
PATCH /api/v1/entity-groups/:group | API_META_WRITE and ENTITY_GROUP_ADMIN
DELETE /api/v1/entity-groups/:group | API_META_WRITE and ENTITY_GROUP_ADMIN
GET /api/v1/entity-groups/:group/entities | API_META_READ
POST /api/v1/entity-groups/:group/entities/add | API_META_WRITE and ENTITY_GROUP_ADMIN
POST /api/v1/entity-groups/:group/entities/set | API_META_WRITE and ENTITY_GROUP_ADMIN
POST /api/v1/entity-groups/:group/entities/delete | API_META_WRITE and ENTITY_GROUP_ADMIN

GET /api/v1/replacement-tables/:format | API_META_READ
GET /api/v1/replacement-tables/:format/:name | API_META_READ
PUT /api/v1/replacement-tables/:format | API_META_WRITE
PUT /api/v1/replacement-tables/:format/:name | API_META_WRITE
PATCH /api/v1/replacement-tables/:format | API_META_WRITE
PATCH /api/v1/replacement-tables/:format/:name | API_META_WRITE
DELETE /api/v1/replacement-tables/:name | API_META_WRITE

GET /api/v1/search | API_META_READ
GET /api/v1/portal/export | API_DATA_READ
GET /jmx | USER
POST /collections/name | ADMIN
POST /admin/compaction | ADMIN
GET /admin/series/index | ADMIN
POST /admin/series/index | ADMIN
POST /admin/users/edit.xhtml | ADMIN
POST /admin/users/tokens/new | ADMIN
GET /admin/users/tokens/:token | ADMIN

GET /api/v1/admin/users | ADMIN
GET /api/v1/admin/users/:name | ADMIN
PUT /api/v1/admin/users/:name | ADMIN
PATCH /api/v1/admin/users/:name | ADMIN
DELETE /api/v1/admin/users/:name | ADMIN
GET /api/v1/admin/user-groups | ADMIN
GET /api/v1/admin/user-groups/:name | ADMIN
PUT /api/v1/admin/user-groups/:name | ADMIN
PATCH /api/v1/admin/user-groups/:name | ADMIN
DELETE /api/v1/admin/user-groups/:name | ADMIN
GET /api/v1/admin/tokens | ADMIN
POST /api/v1/admin/tokens | ADMIN
GET /api/v1/admin/tokens/:id | ADMIN
DELETE /api/v1/admin/tokens/:id | ADMIN
PATCH /api/v1/admin/tokens/:id | ADMIN
GET /api/v1/admin/uploads | ADMIN
GET /api/v1/admin/uploads/:id | ADMIN
DELETE /api/v1/admin/uploads/:id | ADMIN
GET /api/v1/admin/dead-letters | ADMIN
GET /api/v1/admin/dead-letters/:id | ADMIN
POST /api/v1/admin/dead-letters/:id/replay | ADMIN
DELETE /api/v1/admin/dead-letters/:id | ADMIN
GET /api/v1/admin/storage | ADMIN
POST /api/v1/admin/backup | ADMIN
POST /api/v1/admin/compact | ADMIN
POST /api/v1/password | anybody
GET /api/v1/tokens | anybody
POST /api/v1/tokens | anybody
GET /api/v1/tokens/:id | anybody
PATCH /api/v1/tokens/:id | anybody
DELETE /api/v1/tokens/:id | anybody
GET /api/v1/uploads | anybody
GET /api/v1/uploads/:id | anybody
DELETE /api/v1/uploads/:id | anybody
`

// includes is what each role allows, as the contract's table says.
var includes = map[string][]string{
	"none":               {},
	"API_DATA_READ":      {"API_DATA_READ"},
	"API_DATA_WRITE":     {"API_DATA_WRITE"},
	"API_META_READ":      {"API_META_READ"},
	"API_META_WRITE":     {"API_META_WRITE"},
	"ENTITY_GROUP_ADMIN": {"ENTITY_GROUP_ADMIN", "USER", "API_DATA_READ", "API_META_READ"},
	"USER":               {"USER", "API_DATA_READ", "API_META_READ"},
	"EDITOR":             {"EDITOR", "USER", "API_DATA_READ", "API_META_READ"},
	"ADMIN":              {"ADMIN", "EDITOR", "USER", "ENTITY_GROUP_ADMIN", "API_DATA_READ", "API_DATA_WRITE", "API_META_READ", "API_META_WRITE"},
	// The two that entity groups need together.
	"BOTH": {"API_META_WRITE", "ENTITY_GROUP_ADMIN", "USER", "API_DATA_READ", "API_META_READ"},
}

// levels are the permissions of a user, by the user group that gives them.
var levels = map[string]struct{ read, write bool }{
	"no": {}, "group-read": {read: true}, "group-write": {write: true}, "all-read": {read: true}, "all-write": {write: true}, "all": {read: true, write: true},
}

// permit is one row of the matrix.
type permit struct {
	method, pattern, roles, need, target, body string
}

func readMatrix(t *testing.T) map[string]permit {
	t.Helper()
	rows := map[string]permit{}
	for line := range strings.Lines(matrix) {
		cells := strings.SplitN(strings.TrimSpace(line), " | ", 5)
		if cells[0] == "" {
			continue
		}
		cells = append(cells, "", "", "", "")
		p := permit{roles: cells[1], need: cells[2], target: strings.TrimSpace(strings.Trim(cells[3], "| ")), body: strings.ReplaceAll(cells[4], `\n`, "\n")}
		if body, ok := strings.CutPrefix(cells[3], "| "); ok { // an empty target
			p.target, p.body = "", strings.ReplaceAll(body, `\n`, "\n")
		}
		p.method, p.pattern, _ = strings.Cut(cells[0], " ")
		if p.target == "" {
			p.target = concrete(p.pattern)
		}
		rows[cells[0]] = p
	}
	return rows
}

// allows reports whether a user with a role and a level may make the request.
func (p permit) allows(role, level string) bool {
	has := func(name string) bool { return slices.Contains(includes[role], name) }
	ok := p.roles == "anybody" || p.roles == "nobody"
	switch {
	case ok:
	case strings.Contains(p.roles, " or "):
		ok = slices.ContainsFunc(strings.Split(p.roles, " or "), has)
	default:
		ok = true
		for name := range strings.SplitSeq(p.roles, " and ") {
			ok = ok && has(name)
		}
	}
	switch {
	case !ok || p.need == "" || role == "ADMIN":
		return ok
	case p.need == "read":
		return levels[level].read
	}
	return levels[level].write
}

// seedMatrix makes a user for each role and level, and entity e1 with a series and an alert.
func (w *world) seedMatrix(t *testing.T) {
	t.Helper()
	w.document(t, core.DocEntity, "e1", core.NewEntity("e1", 1))
	w.document(t, core.DocGroup, "eg", core.Group{Name: "eg", Enabled: true, Members: []string{"e1"}})
	for name, g := range map[string]auth.Group{
		"no": {}, "group-read": {Read: []string{"eg"}}, "group-write": {Write: []string{"eg"}}, "all-read": {ReadAll: true}, "all-write": {WriteAll: true},
		"all": {ReadAll: true, WriteAll: true},
	} {
		g.Name = name
		w.document(t, core.DocUserGroup, name, g)
		for role := range includes {
			u := auth.User{Name: role + "+" + name, Enabled: true, Groups: []string{name}, Hash: passwordHash, Roles: []string{role}}
			switch role {
			case "none":
				u.Roles = nil
			case "BOTH":
				u.Roles = []string{"API_META_WRITE", "ENTITY_GROUP_ADMIN"}
			}
			w.document(t, core.DocUser, u.Name, u)
		}
	}
}

// restore brings back what a request may have deleted.
func (w *world) restore(t *testing.T) {
	t.Helper()
	b := &core.Batch{Origin: core.SystemOrigin(0)}
	b.Add(b.Ref(core.SeriesKey{Metric: "m", Entity: "e1"}), w.clock(), 1)
	if _, err := w.server.Ingest.Ingest(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	w.alerts.open = []core.Alert{{ID: 1, Entity: "e1", Metric: "m", Rule: "r", OpenTime: 1, LastEvent: 1}}
}

// TestAuthorizationMatrix tries every route as every role with every permission.
func TestAuthorizationMatrix(t *testing.T) {
	w := newWorld(t, Limits{})
	w.seedMatrix(t)
	rows := readMatrix(t)
	tried := 0
	for _, rt := range w.server.routes() {
		row, ok := rows[rt.method+" "+rt.path]
		if !ok {
			t.Errorf("%s %s is not in the matrix: say there who may call it", rt.method, rt.path)
			continue
		}
		delete(rows, rt.method+" "+rt.path)
		unauthorized := w.do("", row.method, row.target, row.body).Code == http.StatusUnauthorized
		if unauthorized != (row.roles != "nobody") {
			t.Errorf("%s %s without credentials: 401 is %v", row.method, row.target, unauthorized)
		}
		for role := range includes {
			for level := range levels {
				tried++
				w.tryPermit(t, row, role, level)
			}
		}
	}
	for name := range rows {
		t.Errorf("%s is in the matrix and no route", name)
	}
	t.Logf("%d requests", tried)
}

func (w *world) tryPermit(t *testing.T, row permit, role, level string) {
	t.Helper()
	if row.need == "write" {
		w.restore(t)
	}
	rec := w.do(role+"+"+level, row.method, row.target, row.body)
	who := fmt.Sprintf("%s %s as %s with permission %s", row.method, row.target, role, level)
	switch denied := rec.Code == http.StatusForbidden; {
	case rec.Code == http.StatusUnauthorized:
		t.Errorf("%s: 401 %s", who, rec.Body)
	case denied && rec.Body.String() != `{"error":"code 15"}`:
		t.Errorf("%s: body %s", who, rec.Body)
	case !denied && rec.Code == http.StatusNotImplemented && row.allows(role, "all"):
		// A part that is not built has a role, and no entities yet.
	case denied == row.allows(role, level):
		t.Errorf("%s: %d %s", who, rec.Code, rec.Body)
	}
}
