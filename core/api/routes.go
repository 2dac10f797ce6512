package api

import (
	"net/http"

	"github.com/tidemark-db/tidemark/core"
)

const (
	get    = http.MethodGet
	post   = http.MethodPost
	put    = http.MethodPut
	patch  = http.MethodPatch
	remove = http.MethodDelete

	webhookPath = "/api/v1/messages/webhook"

	// groupRoles is what a change of entity groups needs: both at once.
	groupRoles = core.MetaWrite | core.EntityGroupAdmin
	// commandRoles: either of the two write roles will do, which the handler checks a line at a time.
	commandRoles = core.Authenticated
)

// routes is the whole interface, in the order of the contract. A part that is not built answers 501 and says so; its role is checked all
// the same. HEAD goes wherever GET goes. Parameters that share a place in the tree of one method must share their name.
func (s *Server) routes() []route {
	return []route{
		{get, "/health", core.Public, (*call).health},
		{get, "/metrics", core.Authenticated, (*call).metrics},
		{get, openAPIPath, core.Public, (*call).openAPI},

		{get, "/api/v1/ping", core.Authenticated, (*call).ping},
		{get, "/api/v1/version", core.MetaRead, (*call).version},
		{get, "/version", core.MetaRead, (*call).version},
		{get, "/api/v1/permissions", core.Authenticated, (*call).permissions},

		{post, "/api/v1/series/insert", core.DataWrite, (*call).seriesInsert},
		{post, "/api/v1/series/csv/:entity", core.DataWrite, (*call).seriesCSVInsert},
		{post, "/api/v1/series/query", core.DataRead, (*call).seriesQuery},
		{post, "/api/v1/series/delete", core.DataWrite, (*call).seriesDelete},
		{get, "/api/v1/series/:format/:entity/:metric", core.DataRead, (*call).seriesGet},
		{post, "/api/v1/series", core.DataRead, (*call).seriesQueries},

		{post, "/api/v1/properties/insert", core.DataWrite, (*call).propertiesInsert},
		{post, "/api/v1/properties/query", core.DataRead, (*call).propertiesQuery},
		{post, "/api/v1/properties/delete", core.DataWrite, (*call).propertiesDelete},
		{get, "/api/v1/properties/:entity/types", core.DataRead, (*call).propertyTypes},
		{get, "/api/v1/properties/:entity/types/:type", core.DataRead, (*call).propertiesGet},

		{post, "/api/v1/messages/insert", core.DataWrite, (*call).messagesInsert},
		{post, "/api/v1/messages/query", core.DataRead, (*call).messagesQuery},
		{post, "/api/v1/messages/stats/query", core.DataRead, (*call).messageStats},
		{get, webhookPath, core.DataWrite, (*call).webhook},
		{get, webhookPath + "/*path", core.DataWrite, (*call).webhook},
		{post, webhookPath, core.DataWrite, (*call).webhook},
		{post, webhookPath + "/*path", core.DataWrite, (*call).webhook},
		{post, "/api/v1/messages", core.DataRead, (*call).messagesQuery},
		{post, "/api/v1/messages/stats", core.DataRead, (*call).messageStats},

		{post, "/api/v1/alerts/query", core.DataRead, (*call).alertsQuery},
		{post, "/api/v1/alerts/history/query", core.DataRead, (*call).alertHistory},
		{post, "/api/v1/alerts/update", core.DataWrite, (*call).alertsUpdate},
		{post, "/api/v1/alerts/delete", core.DataWrite, (*call).alertsDelete},
		{post, "/api/v1/alerts", core.DataRead, (*call).alertsQuery},
		{patch, "/api/v1/alerts", core.DataWrite, (*call).alertsPatch},
		{post, "/api/v1/alerts/history", core.DataRead, (*call).alertHistory},

		{post, "/api/v1/command", commandRoles, (*call).command},
		{get, "/api/v1/command/marker", core.Authenticated, (*call).marker},
		{post, "/api/v1/csv", core.DataWrite, (*call).csvUpload},
		{post, "/api/v1/nmon", core.DataWrite, (*call).nmonUpload},
		{post, "/nmon/wget", core.DataWrite, (*call).nmonForm},
		{post, "/csv/configs/import", core.Admin, (*call).csvConfigsImport},
		{get, "/export", core.DataRead, (*call).export},
		{post, "/api/put", core.DataWrite, (*call).openTSDBPut},
		{get, "/ping", core.Public, (*call).influxPing},
		{post, influxWritePath, core.DataWrite, (*call).influxWrite},
		{post, influxWritePath2, core.DataWrite, (*call).influxWrite2},
		{get, influxQueryPath, core.Authenticated, (*call).influxQuery},
		{post, influxQueryPath, core.Authenticated, (*call).influxQuery},

		{get, "/api/sql", core.DataRead, (*call).sql},
		{post, "/api/sql", core.DataRead, (*call).sql},
		{get, "/api/sql/meta", core.Authenticated, (*call).sqlMeta},
		{post, "/api/sql/meta", core.Authenticated, (*call).sqlMeta},
		{get, "/api/sql/cancel", core.DataRead, (*call).sqlCancel},
		{post, "/api/sql/cancel", core.DataRead, (*call).sqlCancel},
		{get, "/api/sql/series", core.DataRead, (*call).sqlSeries},
		{post, "/api/sql/series", core.DataRead, (*call).sqlSeries},
		{post, "/api/sql/store", core.DataRead | core.DataWrite, (*call).sqlStore},

		{get, "/api/v1/metrics", core.MetaRead, (*call).metricList},
		{get, "/api/v1/metrics/:metric", core.MetaRead, (*call).metricGet},
		{put, "/api/v1/metrics/:metric", core.MetaWrite, (*call).metricPut},
		{patch, "/api/v1/metrics/:metric", core.MetaWrite, (*call).metricPatch},
		{remove, "/api/v1/metrics/:metric", core.MetaWrite, (*call).metricDelete},
		{post, "/api/v1/metrics/:metric/rename", core.MetaWrite, (*call).metricRename},
		{get, "/api/v1/metrics/:metric/series", core.MetaRead, (*call).metricSeries},
		{get, "/api/v1/metrics/:metric/series/tags", core.MetaRead, (*call).metricSeriesTags},
		{get, "/api/v1/metrics/:metric/entity-and-tags", core.MetaRead, (*call).metricSeries},

		{get, "/api/v1/entities", core.MetaRead, (*call).entityList},
		{post, "/api/v1/entities", core.MetaWrite, (*call).entityPost},
		{get, "/api/v1/entities/:entity", core.MetaRead, (*call).entityGet},
		{put, "/api/v1/entities/:entity", core.MetaWrite, (*call).entityPut},
		{patch, "/api/v1/entities/:entity", core.MetaWrite, (*call).entityPatch},
		{remove, "/api/v1/entities/:entity", core.MetaWrite, (*call).entityDelete},
		{post, "/api/v1/entities/:entity/rename", core.MetaWrite, (*call).entityRename},
		{get, "/api/v1/entities/:entity/groups", core.MetaRead, (*call).entityGroups},
		{get, "/api/v1/entities/:entity/metrics", core.MetaRead, (*call).entityMetrics},
		{get, "/api/v1/entities/:entity/property-types", core.MetaRead, (*call).entityPropertyTypes},
		{get, "/api/v1/entities/:entity/versions", core.MetaRead, (*call).entityVersions},

		{get, "/api/v1/entity-groups", core.MetaRead, (*call).groupList},
		{get, "/api/v1/entity-groups/:group", core.MetaRead, (*call).groupGet},
		{put, "/api/v1/entity-groups/:group", groupRoles, (*call).groupPut},
		{patch, "/api/v1/entity-groups/:group", groupRoles, (*call).groupPatch},
		{remove, "/api/v1/entity-groups/:group", groupRoles, (*call).groupDelete},
		{get, "/api/v1/entity-groups/:group/entities", core.MetaRead, (*call).groupEntities},
		{post, "/api/v1/entity-groups/:group/entities/add", groupRoles, (*call).groupAdd},
		{post, "/api/v1/entity-groups/:group/entities/set", groupRoles, (*call).groupSet},
		{post, "/api/v1/entity-groups/:group/entities/delete", groupRoles, (*call).groupRemove},

		{get, "/api/v1/replacement-tables/:format", core.MetaRead, (*call).tableList},
		{get, "/api/v1/replacement-tables/:format/:name", core.MetaRead, (*call).tableGet},
		{put, "/api/v1/replacement-tables/:format", core.MetaWrite, (*call).tablePut},
		{put, "/api/v1/replacement-tables/:format/:name", core.MetaWrite, (*call).tablePut},
		{patch, "/api/v1/replacement-tables/:format", core.MetaWrite, (*call).tablePatch},
		{patch, "/api/v1/replacement-tables/:format/:name", core.MetaWrite, (*call).tablePatch},
		{remove, "/api/v1/replacement-tables/:name", core.MetaWrite, (*call).tableDelete},

		{get, "/api/v1/search", core.MetaRead, (*call).seriesSearch},
		{get, "/api/v1/portal/export", core.DataRead, (*call).portalExport},
		{get, "/jmx", core.User, (*call).jmx},

		{post, "/collections/name", core.Admin, (*call).collectionForm},
		{post, "/admin/compaction", core.Admin, (*call).compactionForm},
		{get, "/admin/series/index", core.Admin, (*call).indexPage},
		{post, "/admin/series/index", core.Admin, (*call).indexForm},
		{post, "/admin/users/edit.xhtml", core.Admin, (*call).userForm},
		{post, "/admin/users/tokens/new", core.Admin, (*call).tokenForm},
		{get, "/admin/users/tokens/:token", core.Admin, (*call).tokenPage},

		{get, adminPath + "users", core.Admin, (*call).userList},
		{get, adminPath + "users/:name", core.Admin, (*call).userGet},
		{put, adminPath + "users/:name", core.Admin, (*call).userPut},
		{patch, adminPath + "users/:name", core.Admin, (*call).userPatch},
		{remove, adminPath + "users/:name", core.Admin, (*call).userDelete},
		{get, adminPath + "user-groups", core.Admin, (*call).userGroupList},
		{get, adminPath + "user-groups/:name", core.Admin, (*call).userGroupGet},
		{put, adminPath + "user-groups/:name", core.Admin, (*call).userGroupPut},
		{patch, adminPath + "user-groups/:name", core.Admin, (*call).userGroupPatch},
		{remove, adminPath + "user-groups/:name", core.Admin, (*call).userGroupDelete},
		{get, adminPath + "tokens", core.Admin, (*call).tokenList},
		{post, adminPath + "tokens", core.Admin, (*call).tokenIssue},
		{get, adminPath + "tokens/:id", core.Admin, (*call).tokenGet},
		{patch, adminPath + "tokens/:id", core.Admin, (*call).tokenPatch},
		{remove, adminPath + "tokens/:id", core.Admin, (*call).tokenRevoke},
		{get, adminPath + "uploads", core.Admin, (*call).uploadList},
		{get, adminPath + "uploads/:id", core.Admin, (*call).uploadGet},
		{remove, adminPath + "uploads/:id", core.Admin, (*call).uploadDelete},
		{get, adminPath + "dead-letters", core.Admin, (*call).deadLetterList},
		{get, adminPath + "dead-letters/:id", core.Admin, (*call).deadLetterGet},
		{post, adminPath + "dead-letters/:id/replay", core.Admin, (*call).deadLetterReplay},
		{remove, adminPath + "dead-letters/:id", core.Admin, (*call).deadLetterDelete},
		{get, adminPath + "storage", core.Admin, (*call).storageUsage},
		{post, adminPath + "backup", core.Admin, (*call).backup},
		{post, adminPath + "compact", core.Admin, (*call).compact},

		{get, "/api/v1/uploads", core.Authenticated, (*call).uploadList},
		{get, "/api/v1/uploads/:id", core.Authenticated, (*call).uploadGet},
		{remove, "/api/v1/uploads/:id", core.Authenticated, (*call).uploadDelete},
		{post, "/api/v1/password", core.Authenticated, (*call).ownPassword},
		{get, "/api/v1/tokens", core.Authenticated, (*call).tokenList},
		{post, "/api/v1/tokens", core.Authenticated, (*call).tokenIssue},
		{get, "/api/v1/tokens/:id", core.Authenticated, (*call).tokenGet},
		{patch, "/api/v1/tokens/:id", core.Authenticated, (*call).tokenPatch},
		{remove, "/api/v1/tokens/:id", core.Authenticated, (*call).tokenRevoke},
	}
}

// missing answers for a part of the interface that this server does not have.
func (c *call) missing() error {
	return core.Errorf(core.Unimplemented, "not implemented: %s %s", c.r.Method, c.r.URL.Path)
}
