package api

// operation describes one row of the route table. Parameters of the path need no mention: their descriptions are the components path.NAME, unless
// parameters names another one for the place.
type operation struct {
	method, path string // as the document shows the path; it differs from the route in the names of parameters only
	summary      string
	parameters   string // keys of components.parameters
	body         string // kinds, see appendKinds
	answer       string // likewise, of a success; "" is an empty body
	also         string // statuses and kinds of other answers, such as 503=Health or 400=SQLErrors,text/csv; those of errors need no mention
	status       int    // of a success; 0 = 200
}

// operationGroup is what the document puts under one tag.
type operationGroup struct {
	tag        string
	operations []operation
}

const (
	listParameters = "expression tags limit "
	whenInserted   = "addInsertTime minInsertDate maxInsertDate "
	tableBodies    = "ReplacementTableSettings text/csv"
	sqlParameters  = "q outputFormat metadataFormat queryId limit discardOutput encodeTags datetimeAsNumber"
	sqlBodies      = "application/x-www-form-urlencoded:SQLForm text/plain"
)

// operations describes every row of the route table; openapi_test.go tells which one is missing.
func operations() []operationGroup {
	return []operationGroup{
		{"system", systemOperations}, {"series", seriesOperations}, {"properties", propertyOperations}, {"messages", messageOperations},
		{"alerts", alertOperations}, {"uploads", uploadOperations}, {"foreign", foreignOperations}, {"sql", sqlOperations}, {"metrics", metricOperations},
		{"entities", entityOperations}, {"entity groups", groupOperations}, {"replacement tables", tableOperations}, {"search", searchOperations},
		{"forms", formOperations}, {"accounts", accountOperations}, {"dead letters", letterOperations}, {"storage", storageOperations}, {"self-service", ownOperations},
	}
}

var systemOperations = []operation{
	{method: get, path: "/health", summary: "Whether the server is ready.", answer: "Health", also: "503=Health"},
	{method: get, path: "/metrics", summary: "What the server counts, in Prometheus text.", answer: "text/plain"},
	{method: get, path: openAPIPath, summary: "This document.", answer: "Document"},
	{method: get, path: "/api/v1/ping", summary: "Whether the credentials are good."},
	{method: get, path: "/api/v1/version", summary: "Version, zone and name of the server.", answer: "Version"},
	{method: get, path: "/version", summary: "The same under its old path.", answer: "Version"},
	{method: get, path: "/api/v1/permissions", summary: "What the caller may do.", answer: "Permissions"},
}

var seriesOperations = []operation{
	{method: post, path: "/api/v1/series/insert", summary: "Store samples, all or none.", body: "SeriesInsert"},
	{method: post, path: "/api/v1/series/csv/{entity}", summary: "Store a table: a column of times, then a column a metric.", parameters: "anyTags", body: "text/csv", status: 204},
	{method: post, path: "/api/v1/series/query", summary: "Samples and what is computed from them.", body: "SeriesQueries", answer: "[]Series"},
	{method: post, path: "/api/v1/series/delete", summary: "Delete whole series.", body: "SeriesDelete", answer: "SeriesDeleted"},
	{method: get, path: "/api/v1/series/{format}/{entity}/{metric}", summary: "Samples of one entity and metric.",
		parameters: "startDate endDate startTime endTime interval seriesTags limit timeFormat last aggregate period align columns", answer: "[]Series text/csv"},
	{method: post, path: "/api/v1/series", summary: "The query of old clients.", body: "SeriesQueriesOfOldClients", answer: "SeriesOfOldClients"},
}

var propertyOperations = []operation{
	{method: post, path: "/api/v1/properties/insert", summary: "Store records, all or none.", body: "PropertyInsert"},
	{method: post, path: "/api/v1/properties/query", summary: "Records by type, entity and key.", body: "PropertyQueries", answer: "[]Property"},
	{method: post, path: "/api/v1/properties/delete", summary: "Delete records.", body: "PropertyDelete", answer: "Deleted"},
	{method: get, path: "/api/v1/properties/{entity}/types", summary: "Types of an entity's records.", answer: "Names"},
	{method: get, path: "/api/v1/properties/{entity}/types/{type}", summary: "Records of an entity and type.", answer: "[]Property"},
}

var messageOperations = []operation{
	{method: post, path: "/api/v1/messages/insert", summary: "Store messages, all or none.", body: "MessageInsert"},
	{method: post, path: "/api/v1/messages/query", summary: "Messages, newest first.", body: "MessageQueries", answer: "[]Message"},
	{method: post, path: "/api/v1/messages/stats/query", summary: "How many messages there are.", body: "MessageStatsQueries", answer: "[]Series"},
	{method: get, path: webhookPath, summary: "Store what a foreign service sends as one message.", parameters: "webhookFields", answer: "WebhookMessage text/plain"},
	{method: get, path: webhookPath + "/{path}", summary: "The same, with the type, source and entity in the path.", parameters: "webhookFields", answer: "WebhookMessage text/plain"},
	{method: post, path: webhookPath, summary: "Store what a foreign service sends as one message.", parameters: "webhookFields",
		body: "WebhookBody application/x-www-form-urlencoded text/plain", answer: "WebhookMessage text/plain"},
	{method: post, path: webhookPath + "/{path}", summary: "The same, with the type, source and entity in the path.", parameters: "webhookFields",
		body: "WebhookBody application/x-www-form-urlencoded text/plain", answer: "WebhookMessage text/plain"},
	{method: post, path: "/api/v1/messages", summary: "The query of old clients.", body: "MessageQueries", answer: "[]Message"},
	{method: post, path: "/api/v1/messages/stats", summary: "The statistics of old clients.", body: "MessageStatsQueries", answer: "[]Series"},
}

var alertOperations = []operation{
	{method: post, path: "/api/v1/alerts/query", summary: "Open alerts.", body: "AlertQueries", answer: "OpenAlerts"},
	{method: post, path: "/api/v1/alerts/history/query", summary: "What happened to alerts.", body: "AlertQueries", answer: "AlertRows"},
	{method: post, path: "/api/v1/alerts/update", summary: "Acknowledge alerts, or take that back.", body: "AlertUpdates"},
	{method: post, path: "/api/v1/alerts/delete", summary: "Close alerts.", body: "AlertIds"},
	{method: post, path: "/api/v1/alerts", summary: "The query of old clients.", body: "AlertQueries", answer: "OpenAlerts"},
	{method: patch, path: "/api/v1/alerts", summary: "The changes of old clients.", body: "AlertActions"},
	{method: post, path: "/api/v1/alerts/history", summary: "The history of old clients.", body: "AlertQueries", answer: "AlertRows"},
}

var uploadOperations = []operation{
	{method: post, path: "/api/v1/command", summary: "Store text commands, one a line. Bad ones are counted and left out. series, property and message need API_DATA_WRITE, metric and entity API_META_WRITE.",
		parameters: "commit", body: "text/plain", answer: "CommandCounts"},
	{method: get, path: "/api/v1/command/marker", summary: "How many lines arrived after a marker.", parameters: "marker", answer: "Marker"},
	{method: post, path: "/api/v1/csv", summary: "Send a file through a parser.",
		parameters: "config wait encoding timezone filename test rules time default-entity entity-prefix entity-tags default-metric metric-prefix metric-tags seriesTags",
		body:       "text/csv multipart/form-data:FileForm application/octet-stream", answer: "Upload", also: "400=FailedUpload 408=Upload"},
	{method: get, path: "/api/v1/uploads", summary: "The caller's uploads that were sent with wait=false, oldest first.", answer: "[]Upload"},
	{method: get, path: "/api/v1/uploads/{id}", summary: "How far one of them is.", answer: "Upload"},
	{method: remove, path: "/api/v1/uploads/{id}", summary: "Forget one of them. One that has not ended ends; what it stored so far stays."},
	{method: get, path: adminPath + "uploads", summary: "Uploads of all users that were sent with wait=false, oldest first.", answer: "[]Upload"},
	{method: get, path: adminPath + "uploads/{id}", summary: "How far one of them is.", answer: "Upload"},
	{method: remove, path: adminPath + "uploads/{id}", summary: "Forget one of them. One that has not ended ends; what it stored so far stays."},
	{method: post, path: "/api/v1/nmon", summary: "Send a file of nmon through a parser.", parameters: "nmonParser nmonEntity nmonFile nmonZone seriesTags",
		body: "text/plain multipart/form-data:FileForm application/octet-stream", answer: "Upload", also: "400=FailedUpload 408=Upload"},
	{method: post, path: "/nmon/wget", summary: "The same under its old path.", parameters: "config wgetEntity wgetZone", body: "text/plain", answer: "Upload", also: "400=FailedUpload 408=Upload"},
	{method: post, path: "/csv/configs/import", summary: "Import parser configurations in XML.", body: "multipart/form-data:FileForm", answer: "text/html"},
	{method: get, path: "/export", summary: "A table of samples.", parameters: "exportSettings", answer: "text/csv text/html"},
}

var foreignOperations = []operation{
	{method: post, path: "/api/put", summary: "Store points of OpenTSDB. Bad ones are left out.", parameters: "summary details", body: "OpenTSDBPoints", answer: "OpenTSDBCounts", also: "204= 400=OpenTSDBCounts"},
	{method: get, path: "/ping", summary: "Whether the server is there, for agents of InfluxDB.", parameters: "influxVerbose", also: "200=InfluxVersion", status: 204},
	{method: post, path: influxWritePath, summary: "Store lines of InfluxDB, version 1. Bad ones are left out.", parameters: "precision", body: "text/plain", status: 204},
	{method: post, path: influxWritePath2, summary: "Store lines of InfluxDB, version 2. Bad ones are left out.", parameters: "precision2", body: "text/plain",
		also: "400=InfluxError 403=InfluxError 413=InfluxError 415=InfluxError 503=InfluxError 507=InfluxError", status: 204},
	{method: get, path: influxQueryPath, summary: "What agents of InfluxDB ask before they write.", parameters: "influxStatement", answer: "InfluxResults"},
	{method: post, path: influxQueryPath, summary: "The same, with the statement in a form.", parameters: "influxStatement", body: "application/x-www-form-urlencoded:InfluxForm", answer: "InfluxResults"},
}

var sqlOperations = []operation{
	{method: get, path: "/api/sql", summary: "Run a query.", parameters: sqlParameters, answer: "SQLTable text/csv", also: "400=SQLErrors,text/csv 503=SQLErrors,text/csv"},
	{method: post, path: "/api/sql", summary: "Run a query from a form or a text.", parameters: sqlParameters, body: sqlBodies, answer: "SQLTable text/csv", also: "400=SQLErrors,text/csv 503=SQLErrors,text/csv"},
	{method: get, path: "/api/sql/meta", summary: "Columns of a query.", parameters: "q", answer: "SQLMetadata", also: "400=SQLErrors"},
	{method: post, path: "/api/sql/meta", summary: "Columns of a query from a form or a text.", parameters: "q", body: sqlBodies, answer: "SQLMetadata", also: "400=SQLErrors"},
	{method: get, path: "/api/sql/cancel", summary: "Stop queries.", parameters: "queryId", answer: "SQLCancelled"},
	{method: post, path: "/api/sql/cancel", summary: "Stop queries.", parameters: "queryId", answer: "SQLCancelled"},
	{method: get, path: "/api/sql/series", summary: "Run a query whose answer is series.", parameters: "q timeFormat requestId", answer: "[]Series", also: "400=SQLErrors"},
	{method: post, path: "/api/sql/series", summary: "The same, with the query as a text.", parameters: "q timeFormat requestId", body: sqlBodies, answer: "[]Series", also: "400=SQLErrors"},
	{method: post, path: "/api/sql/store", summary: "Store the rows of a query as series.", parameters: "q queryId limit checkLastTime storeTest", body: sqlBodies, answer: "SQLStored", also: "400=SQLErrors"},
}

var metricOperations = []operation{
	{method: get, path: "/api/v1/metrics", summary: "Metrics, by name.", parameters: listParameters + whenInserted, answer: "[]Metric"},
	{method: get, path: "/api/v1/metrics/{metric}", summary: "One metric.", parameters: "addInsertTime", answer: "Metric"},
	{method: put, path: "/api/v1/metrics/{metric}", summary: "Create a metric or replace its settings.", body: "MetricSettings"},
	{method: patch, path: "/api/v1/metrics/{metric}", summary: "Change settings; tags are merged by name.", body: "MetricSettings"},
	{method: remove, path: "/api/v1/metrics/{metric}", summary: "Delete a metric with its data."},
	{method: post, path: "/api/v1/metrics/{metric}/rename", summary: "Give a metric another name.", body: "NewName"},
	{method: get, path: "/api/v1/metrics/{metric}/series", summary: "Series of a metric.", parameters: "entityFilter tagFilters limit addMeta minInsertDate maxInsertDate", answer: "[]MetricSeries"},
	{method: get, path: "/api/v1/metrics/{metric}/series/tags", summary: "Values of tags over the series of a metric.", parameters: "entityFilter tagFilters tags minInsertDate maxInsertDate", answer: "TagValues"},
	{method: get, path: "/api/v1/metrics/{metric}/entity-and-tags", summary: "Series of a metric, under their old path.", parameters: "entityFilter tagFilters limit addMeta minInsertDate maxInsertDate", answer: "[]MetricSeries"},
}

var entityOperations = []operation{
	{method: get, path: "/api/v1/entities", summary: "Entities, by name.", parameters: listParameters + whenInserted, answer: "[]Entity"},
	{method: post, path: "/api/v1/entities", summary: "Create an entity, with its name in the body.", body: "NamedEntitySettings"},
	{method: get, path: "/api/v1/entities/{entity}", summary: "One entity.", parameters: "addInsertTime version", answer: "Entity"},
	{method: put, path: "/api/v1/entities/{entity}", summary: "Create an entity or replace its settings.", body: "EntitySettings"},
	{method: patch, path: "/api/v1/entities/{entity}", summary: "Change settings; tags are merged by name.", body: "EntitySettings"},
	{method: remove, path: "/api/v1/entities/{entity}", summary: "Delete an entity with its data."},
	{method: post, path: "/api/v1/entities/{entity}/rename", summary: "Give an entity another name.", body: "NewName"},
	{method: get, path: "/api/v1/entities/{entity}/groups", summary: "Groups that an entity belongs to.", answer: "[]EntityGroupOfEntity"},
	{method: get, path: "/api/v1/entities/{entity}/metrics", summary: "Metrics of an entity.", parameters: listParameters + whenInserted + "useEntityInsertTime", answer: "[]Metric"},
	{method: get, path: "/api/v1/entities/{entity}/property-types", summary: "Types of an entity's properties.", parameters: "minInsertDate", answer: "Names"},
	{method: get, path: "/api/v1/entities/{entity}/versions", summary: "Times at which an entity changed.", parameters: "minVersionDate maxVersionDate", answer: "[]Date"},
}

var groupOperations = []operation{
	{method: get, path: "/api/v1/entity-groups", summary: "Groups, by name.", parameters: listParameters, answer: "[]EntityGroup"},
	{method: get, path: "/api/v1/entity-groups/{group}", summary: "One group.", answer: "EntityGroup"},
	{method: put, path: "/api/v1/entity-groups/{group}", summary: "Create a group or replace its settings.", body: "EntityGroupSettings"},
	{method: patch, path: "/api/v1/entity-groups/{group}", summary: "Change settings; tags are merged by name.", body: "EntityGroupSettings"},
	{method: remove, path: "/api/v1/entity-groups/{group}", summary: "Delete a group; its members stay."},
	{method: get, path: "/api/v1/entity-groups/{group}/entities", summary: "Members of a group.", parameters: listParameters + whenInserted, answer: "[]Entity"},
	{method: post, path: "/api/v1/entity-groups/{group}/entities/add", summary: "Add members.", parameters: "createEntities", body: "Members"},
	{method: post, path: "/api/v1/entity-groups/{group}/entities/set", summary: "Replace all members.", parameters: "createEntities", body: "Members"},
	{method: post, path: "/api/v1/entity-groups/{group}/entities/delete", summary: "Remove members.", body: "Members"},
}

// A path of one parameter is one path of the document, whatever the routes of its methods call it.
var tableOperations = []operation{
	{method: get, path: "/api/v1/replacement-tables/{name}", summary: "Names of tables.", parameters: "tableListFormat", answer: "Names text/csv"},
	{method: get, path: "/api/v1/replacement-tables/{format}/{name}", summary: "One table.", parameters: "addComments", answer: "ReplacementTable text/csv"},
	{method: put, path: "/api/v1/replacement-tables/{name}", summary: "Create or replace a table.", body: "ReplacementTableSettings"},
	{method: put, path: "/api/v1/replacement-tables/{format}/{name}", summary: "Create or replace a table.", body: tableBodies},
	{method: patch, path: "/api/v1/replacement-tables/{name}", summary: "Change records and settings.", body: "ReplacementTableSettings"},
	{method: patch, path: "/api/v1/replacement-tables/{format}/{name}", summary: "Change records and settings.", body: tableBodies},
	{method: remove, path: "/api/v1/replacement-tables/{name}", summary: "Delete a table."},
}

var searchOperations = []operation{
	{method: get, path: "/api/v1/search", summary: "Series by words.", parameters: "query searchLimit offset metricFields entityFields metricTags entityTags", answer: "SearchResult"},
	{method: get, path: "/api/v1/portal/export", summary: "A page of charts.", parameters: "portalId portalName portalEntity width height theme", answer: "image/png"},
	{method: get, path: "/jmx", summary: "What the server measures of itself, as Java servers show it.", parameters: "beans", answer: "Beans"},
}

var formOperations = []operation{
	{method: post, path: "/collections/name", summary: "Create or replace a named collection.", parameters: "collectionName collectionValues", status: 302},
	{method: post, path: "/admin/compaction", summary: "Ask for maintenance, which goes on by itself.", status: 302},
	{method: get, path: "/admin/series/index", summary: "State of the search.", answer: "text/html"},
	{method: post, path: "/admin/series/index", summary: "Ask for a refresh of the search, which needs none.", status: 302},
	{method: post, path: "/admin/users/edit.xhtml", summary: "Create or change a user.", parameters: "formUser formPassword formRepeat formEnabled formRoles formGroups", status: 302},
	{method: post, path: "/admin/users/tokens/new", summary: "Issue a token; the header Location ends in it.", parameters: "tokenUser tokenUsername tokenMethod tokenURLs", status: 302},
	{method: get, path: "/admin/users/tokens/{token}", summary: "A token by its text.", answer: "Token"},
}

var accountOperations = []operation{
	{method: get, path: adminPath + "users", summary: "All users.", answer: "[]User"},
	{method: get, path: adminPath + "users/{name}", summary: "One user.", answer: "User"},
	{method: put, path: adminPath + "users/{name}", summary: "Create a user or replace its settings.", body: "UserSettings", answer: "User"},
	{method: patch, path: adminPath + "users/{name}", summary: "Change settings.", body: "UserSettings", answer: "User"},
	{method: remove, path: adminPath + "users/{name}", summary: "Delete a user."},
	{method: get, path: adminPath + "user-groups", summary: "All user groups.", answer: "[]UserGroup"},
	{method: get, path: adminPath + "user-groups/{name}", summary: "One user group.", answer: "UserGroup"},
	{method: put, path: adminPath + "user-groups/{name}", summary: "Create a user group or replace what it grants.", body: "UserGroupSettings", answer: "UserGroup"},
	{method: patch, path: adminPath + "user-groups/{name}", summary: "Change what a user group grants.", body: "UserGroupSettings", answer: "UserGroup"},
	{method: remove, path: adminPath + "user-groups/{name}", summary: "Delete a user group."},
	{method: get, path: adminPath + "tokens", summary: "Tokens of all users.", parameters: "tokenUser", answer: "[]Token"},
	{method: post, path: adminPath + "tokens", summary: "Issue a token for any user.", body: "TokenRequest", answer: "Token"},
	{method: get, path: adminPath + "tokens/{id}", summary: "One token.", answer: "Token"},
	{method: patch, path: adminPath + "tokens/{id}", summary: "Change the description, the end or the addresses of a token.", body: "TokenPatch", answer: "Token"},
	{method: remove, path: adminPath + "tokens/{id}", summary: "Revoke a token."},
}

var letterOperations = []operation{
	{method: get, path: adminPath + "dead-letters", summary: "What parsers could not take, oldest first.", answer: "[]DeadLetter"},
	{method: get, path: adminPath + "dead-letters/{id}", summary: "One dead letter with its input.", answer: "DeadLetter"},
	{method: post, path: adminPath + "dead-letters/{id}/replay", summary: "Send a dead letter through its parser again.", answer: "Upload", also: "400=FailedUpload"},
	{method: remove, path: adminPath + "dead-letters/{id}", summary: "Delete a dead letter."},
}

var storageOperations = []operation{
	{method: get, path: adminPath + "storage", summary: "What the storage engine takes and how it fares.", answer: "StorageUsage"},
	{method: post, path: adminPath + "backup", summary: "Copy the database to a directory below backup.dir; into one with an earlier backup only what is new.", body: "BackupRequest", answer: "Backup"},
	{method: post, path: adminPath + "compact", summary: "Write what is in memory to files and merge the files.", answer: "Compacted"},
}

var ownOperations = []operation{
	{method: post, path: "/api/v1/password", summary: "Change the caller's password.", body: "PasswordChange"},
	{method: get, path: "/api/v1/tokens", summary: "The caller's tokens.", answer: "[]Token"},
	{method: post, path: "/api/v1/tokens", summary: "Issue a token for the caller.", body: "TokenRequest", answer: "Token"},
	{method: get, path: "/api/v1/tokens/{id}", summary: "One of the caller's tokens.", answer: "Token"},
	{method: patch, path: "/api/v1/tokens/{id}", summary: "Change the description, the end or the addresses of one of the caller's tokens.", body: "TokenPatch", answer: "Token"},
	{method: remove, path: "/api/v1/tokens/{id}", summary: "Revoke one of the caller's tokens."},
}
