package main

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// systemNames are what -systems chooses among, in the order of the rounds.
var systemNames = []string{"tidemark", "victoriametrics", "influxdb", "duckdb"}

// These name what answers are compared with.
func wantAverages(r reference) digest { return r.averages }
func wantMaxima(r reference) digest   { return r.maxima }
func wantExport(r reference) digest   { return r.export }
func wantAll(r reference) digest      { return r.all }
func wantAbove(r reference) digest    { return digest{rows: 1, sum: float64(r.above)} }

// tidemark is the server of this module.
func tidemark(binary, cache string) *server {
	password := rand.Text()
	const user = "bench"
	compiled := cmp.Or(os.Getenv("TIDEMARK_COMPILE_CACHE"), filepath.Join(cache, "wasm"))
	return &server{
		title: "tidemark", format: "commands", ready: "/health",
		command: func(dir, addr string, m mode) []string {
			sync := map[mode]string{lazy: "1s", synced: "always", small: "1s"}[m]
			args := []string{binary, "serve", "--http", addr, "--data", filepath.Join(dir, "data"), "--config", filepath.Join(dir, "config"), "--sync", sync, "--log-level", "warn"}
			if m == small {
				args = append(args, "--set", "memory=512MiB")
			}
			return args
		},
		env: func(string, string) []string {
			// Compiled plugins are no data: they go where the Makefile keeps them.
			return []string{"TIDEMARK_ADMIN_USER=" + user, "TIDEMARK_ADMIN_PASSWORD=" + password, "TIDEMARK_COMPILE_CACHE=" + compiled}
		},
		authorize: func(r *http.Request) { r.SetBasicAuth(user, password) },
		write:     request{path: "/api/v1/command", contentType: "text/plain"},
		settle:    []request{{path: "/api/v1/admin/compact", body: "{}", contentType: "application/json"}},
		rest:      time.Second,
		questions: tidemarkQuestions(),
	}
}

func tidemarkQuestions() map[string][]question {
	series := func(start, end, function string, names ...string) request {
		var queries []string
		for _, name := range names {
			queries = append(queries, fmt.Sprintf(`{"metric":%q,"entity":"*","startDate":%q,"endDate":%q,"timeFormat":"milliseconds","aggregate":{"type":%q,"period":{"count":1,"unit":"HOUR"}}}`, name, start, end, function))
		}
		return request{path: "/api/v1/series/query", contentType: "application/json", body: "[" + strings.Join(queries, ",") + "]"}
	}
	settings, _ := json.Marshal(map[string]string{"m": oneMetric, "e": "*", "st": startDate, "et": endDate, "f": "CSV"})
	sql := func(query string) request {
		return request{path: "/api/sql", contentType: "application/x-www-form-urlencoded", body: url.Values{"q": {query}, "outputFormat": {"csv"}, "metadataFormat": {"NONE"}}.Encode()}
	}
	const day = ` datetime >= '` + startDate + `' AND datetime < '` + endDate + `'`
	all := `metric IN ('` + strings.Join(metrics, `', '`) + `')`
	export := sql(`SELECT entity, datetime, value FROM ` + oneMetric + ` WHERE` + day)
	return map[string][]question{
		"probe":  {{request: series(startDate, "2026-01-01T01:00:00Z", "AVG", oneMetric), parse: tidemarkSeries}},
		"avg":    {{series(startDate, endDate, "AVG", oneMetric), tidemarkSeries, wantAverages}},
		"max":    {{series(startDate, endDate, "MAX", metrics...), tidemarkSeries, wantMaxima}},
		"export": {{export, csvColumn("value"), wantExport}, {request{path: "/export?settings=" + url.QueryEscape(string(settings))}, csvColumn("Value"), wantExport}},

		"sql, averages":      {{sql(`SELECT entity, datetime, avg(value) FROM ` + oneMetric + ` WHERE` + day + ` GROUP BY entity, PERIOD(1 HOUR)`), hourlyCSV, wantAverages}},
		"sql, maxima":        {{sql(`SELECT metric, entity, datetime, max(value) FROM atsd_series WHERE ` + all + ` AND` + day + ` GROUP BY metric, entity, PERIOD(1 HOUR)`), hourlyCSV, wantMaxima}},
		"sql, filter":        {{sql(fmt.Sprintf(`SELECT count(*) FROM atsd_series WHERE %s AND%s AND value > %v`, all, day, threshold)), csvColumn("count(*)"), wantAbove}},
		"sql, percentile":    {{request: sql(`SELECT entity, datetime, percentile(95, value) FROM ` + percentileMetric + ` WHERE` + day + ` GROUP BY entity, PERIOD(1 HOUR)`)}},
		"sql, top 10":        {{request: sql(`SELECT entity, max(value) FROM ` + oneMetric + ` WHERE` + day + ` GROUP BY entity ORDER BY max(value) DESC LIMIT 10`)}},
		"sql, export":        {{export, csvColumn("value"), wantExport}},
		"sql, export of all": {{sql(`SELECT metric, entity, datetime, value FROM atsd_series WHERE ` + all + ` AND` + day), csvColumn("value"), wantAll}},
	}
}

// victoriaMetrics is the single node. It takes no part in durability: rows are in memory for up to five seconds. Its windows are (t-1h, t], so that questions
// end at the last millisecond of an hour; nocache leaves the cache of earlier answers alone, which no other system has, and keeps it from moving the times.
func victoriaMetrics(binary string) *server {
	ranged := func(query string, end int64) request {
		v := url.Values{"query": {query}, "nocache": {"1"}, "step": {"1h"},
			"start": {fmt.Sprintf("%.3f", float64(dayStart+hour-1)/1000)}, "end": {fmt.Sprintf("%.3f", float64(end-1)/1000)}}
		return request{path: "/api/v1/query_range?" + v.Encode()}
	}
	export := url.Values{"match[]": {"devops_" + oneMetric}, "format": {"host,__timestamp__:unix_ms,__value__"}, "start": {startDate}, "end": {"2026-01-01T23:59:59.999Z"}}
	averages := `avg_over_time(devops_` + oneMetric + `[1h])`
	cached := ranged(averages, dayEnd)
	cached.path = strings.Replace(cached.path, "nocache=1&", "", 1)
	return &server{
		title: "victoriametrics", version: "VictoriaMetrics " + victoriaVersion, format: "influx", ready: "/health",
		command: func(dir, addr string, _ mode) []string {
			return []string{binary, "-httpListenAddr=" + addr, "-storageDataPath=" + filepath.Join(dir, "data"), "-retentionPeriod=100y", "-loggerLevel=WARN"}
		},
		write:  request{path: "/write?precision=ms", contentType: "text/plain"},
		settle: []request{{path: "/internal/force_flush"}, {path: "/internal/force_merge"}},
		rest:   time.Second,
		questions: map[string][]question{
			"probe":       {{request: ranged(averages, dayStart+hour), parse: matrix}},
			"avg":         {{ranged(averages, dayEnd), matrix, wantAverages}},
			"avg, cached": {{request: cached}},
			"max":         {{ranged(`max_over_time({__name__=~"devops_.*"}[1h])`, dayEnd), matrix, wantMaxima}},
			"export":      {{request{path: "/api/v1/export/csv?" + export.Encode()}, csvTable, wantExport}},
		},
	}
}

// influxDB is the 1.x single node of Debian.
func influxDB(binary string) *server {
	const day = ` WHERE time >= '` + startDate + `' AND time < '` + endDate + `'`
	ask := func(query, end string) request {
		return request{path: "/query?" + url.Values{"db": {"bench"}, "epoch": {"ms"}, "q": {query + end}}.Encode()}
	}
	return &server{
		title: "influxdb", format: "influx", ready: "/ping",
		command: func(string, string, mode) []string { return []string{binary, "-config", "/dev/null"} },
		env: func(dir, addr string) []string {
			data := filepath.Join(dir, "data")
			return []string{"INFLUXDB_HTTP_BIND_ADDRESS=" + addr, "INFLUXDB_BIND_ADDRESS=127.0.0.1:0", "INFLUXDB_REPORTING_DISABLED=true",
				"INFLUXDB_META_DIR=" + filepath.Join(data, "meta"), "INFLUXDB_DATA_DIR=" + filepath.Join(data, "data"), "INFLUXDB_DATA_WAL_DIR=" + filepath.Join(data, "wal"),
				"INFLUXDB_DATA_MAX_SERIES_PER_DATABASE=0", "INFLUXDB_DATA_QUERY_LOG_ENABLED=false", "INFLUXDB_HTTP_LOG_ENABLED=false", "INFLUXDB_MONITOR_STORE_ENABLED=false",
				"INFLUXDB_DATA_INDEX_VERSION=tsi1", "INFLUXDB_DATA_CACHE_SNAPSHOT_WRITE_COLD_DURATION=5s", "INFLUXDB_DATA_COMPACT_FULL_WRITE_COLD_DURATION=5s"}
		},
		prepare: []request{{path: "/query", body: "q=CREATE+DATABASE+bench", contentType: "application/x-www-form-urlencoded"}},
		write:   request{path: "/write?db=bench&precision=ms", contentType: "text/plain"},
		rest:    15 * time.Second, // it merges all of a shard when nothing was written for five seconds
		questions: map[string][]question{
			"probe":  {{request: ask(`SELECT mean(`+oneMetric+`) FROM devops`+` WHERE time >= '`+startDate+`' AND time < '2026-01-01T01:00:00Z'`, ` GROUP BY time(1h), host`), parse: influxSeries}},
			"avg":    {{ask(`SELECT mean(`+oneMetric+`) FROM devops`+day, ` GROUP BY time(1h), host`), influxSeries, wantAverages}},
			"max":    {{ask(`SELECT max(*) FROM devops`+day, ` GROUP BY time(1h), host`), influxSeries, wantMaxima}},
			"export": {{request{path: ask(`SELECT `+oneMetric+` FROM devops`+day, ` GROUP BY host`).path + "&chunked=true", accept: "application/csv"}, csvTable, wantExport}},
		},
	}
}
