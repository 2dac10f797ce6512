SELECT 1
SELECT 2 + 3 * 4 AS a, 7 % 4 AS b, 1/0 AS c, -1/0 AS d, 0/0 AS e
SELECT NULL + 1 AS a, 1 = 1 AS b, NaN = NaN AS c, 1 <> 1 OR NULL = 1 AS d, 10 BETWEEN 1 AND 10 AS e, 10 BETWEEN 1 AND 10 EXCL AS f
SELECT UPPER('aB') AS a, LOWER('aB') AS b, LENGTH('valve') AS c, REPLACE('a-b-a', 'a', 'x') AS d, CONCAT('v:', 3.10, '/', NULL) AS e, LOCATE('v', 'valve', 2) AS f, SUBSTR('valve', 2, 3) AS g, SUBSTR('valve', 0) AS h
SELECT ABS(-2.5) AS a, CEIL(2.1) AS b, FLOOR(-2.1) AS c, ROUND(2.567, 1) AS d, MOD(-7, 3) AS e, POWER(2, 10) AS f, LOG(2, 8) AS g, SQRT(-1) AS h, ROUND(DEGREES(PI())) AS i
SELECT date_format(0) AS a, date_format(1709546400000, 'yyyy-MM-dd HH:mm z', 'America/New_York') AS b, date_parse('04.03.2024 10:00', 'dd.MM.yyyy HH:mm') AS c, date_format(DATEADD(MONTH, 1, 1706659200000)) AS d, DAYOFWEEK(1709546400000) AS e, date_format(date_round(1709547780000, 15 MINUTE)) AS f
SELECT CAST('12.5' AS NUMBER) * 2 AS a, CAST(12.347 AS STRING) AS b, CAST(7.0 AS STRING) AS c, CAST('abc' AS NUMBER) AS d, CAST(0/0 AS STRING) AS e
SELECT ISNULL(NaN, 5) AS a, COALESCE(NULL, NaN, 'x') AS b, CASE WHEN 1 > 2 THEN 'a' END AS c, CASE 3 WHEN 1 OR 3 THEN 'hit' ELSE 'miss' END AS d
SELECT LOOKUP('codes', 3.0) AS a, LOOKUP('codes', '7.5') AS b, LOOKUP('codes', 'none') AS c
SELECT IS_WORKDAY(1709510400000, 'demo') AS a, IS_WORKDAY(1709596800000, 'demo') AS b, IS_WEEKDAY(1709596800000, 'demo') AS c, IS_WORKDAY(1709942400000, 'demo') AS d, IS_WEEKDAY(1709942400000, 'demo') AS e, date_format(WORKDAY(1709712000000, -1, 'demo'), 'yyyy-MM-dd HH:mm') AS f
SELECT 'it''s' AS "q""q", '2024-01-01T00:00:00Z' AS d
SELECT * FROM flow WHERE entity = 'PUMP-1' ORDER BY time LIMIT 2
SELECT entity, value, tags.*, tags FROM level WHERE datetime = '2024-03-04T10:05:00Z' ORDER BY entity, value
SELECT entity, entity.label, entity.tags.site, entity.groups FROM flow GROUP BY entity ORDER BY entity
SELECT metric, metric.label, metric.units, metric.tags, metric.dataType FROM flow LIMIT 1
SELECT metric, entity, datetime, value FROM atsd_series WHERE metric IN ('flow', 'temp') AND entity = 'pump-2' ORDER BY metric, datetime
SELECT name, label, tags.site AS site FROM atsd_entity WHERE name LIKE 'pump-%' ORDER BY name
SELECT name, units FROM atsd_metric WHERE name IN metrics('pump-1') AND units IS NOT NULL ORDER BY name
SELECT entity, tags FROM level WHERE tags.tank = 'B' ORDER BY datetime LIMIT 1
SELECT datetime, value FROM temp WHERE entity = 'pump-2'
SELECT AVG( value ),COUNT(*),Percentile(75,value), MAX(value)-MIN(value) FROM flow WHERE entity='pump-1'
SELECT DISTINCT entity FROM level ORDER BY entity
SELECT entity, value, text FROM flow WHERE entity = 'pump-2' ORDER BY time
/* who */ SELECT entity /* only one */ FROM "temp" WHERE "temp".entity = 'pump-2' ;
SELECT EXTRACT(month FROM datetime) AS m, ENTITY_TAG(entity, 'site') AS s, IS_ENTITY_IN_GROUP(entity, 'north') AS n FROM temp WHERE entity = 'pump-2'
SELECT datetime, value FROM flow WHERE entity = 'pump-1' AND datetime >= '2024-03-04T10:02:00Z' AND datetime < '2024-03-04T10:05:00Z'
SELECT value FROM flow WHERE entity = 'pump-1' AND datetime BETWEEN '2024-03-04T10:02:00Z' AND '2024-03-04T10:05:00Z' ORDER BY time
SELECT value FROM flow WHERE entity = 'pump-1' AND datetime BETWEEN '2024-03-04T10:02:00Z' AND '2024-03-04T10:05:00Z' EXCL
SELECT value FROM flow WHERE entity = 'pump-1' AND datetime >= '2024-03-04 05:02:00' AND datetime < '2024-03-04 05:06:00' WITH TIMEZONE = 'America/New_York' ORDER BY datetime
SELECT datetime, value, INTERVAL_NUMBER() AS n FROM flow WHERE entity = 'pump-1' AND (datetime BETWEEN '2024-03-04T10:00:00Z' AND '2024-03-04T10:03:00Z' OR datetime BETWEEN '2024-03-04T10:10:00Z' AND '2024-03-04T10:12:00Z') ORDER BY datetime
SELECT datetime, value FROM flow WHERE entity = 'pump-1' AND datetime BETWEEN (SELECT datetime FROM state WHERE entity = 'pump-1' AND (text = 'run' OR LAG(text) = 'run') ORDER BY datetime)
SELECT entity, count(*) FROM level WHERE entity NOT IN ('pump-2', 'VALVE-9') GROUP BY entity
SELECT entity, value FROM level WHERE tags.tank LIKE '_' AND entity LIKE 'pump%' AND value > 60 ORDER BY value
SELECT entity, value FROM temp WHERE entity REGEX '(?i)PUMP-[2-9]'
SELECT entity, value FROM level WHERE tags.tank IS NULL
SELECT entity, value FROM level WHERE tags.side = 'left' OR tags.side != 'left' ORDER BY datetime
SELECT datetime, text FROM flow WHERE value IS NULL
SELECT entity, value FROM level WHERE 'north' IN entity.groups AND tags.tank NOT IN collection('skip') ORDER BY value
SELECT datetime, value FROM flow WHERE value = '14'
SELECT datetime, value FROM flow WHERE entity = 'pump-1' AND value > LAG(value) ORDER BY datetime
SELECT datetime, value * 60 AS per_hour FROM flow WHERE entity = 'pump-1' AND per_hour > 800 ORDER BY datetime
SELECT value FROM level WHERE tags.tank > 'A' ORDER BY value
SELECT value FROM flow WHERE tags.nosuch = 'x' OR entity = 'nobody'
SELECT date_format(workday(time, 1), 'yyyy-MM-dd') AS d FROM temp WHERE entity = 'pump-2' WITH WORKDAY_CALENDAR = 'demo'
SELECT value, tags.tank FROM level WHERE entity = 'pump-1'
SELECT value, tags.* FROM level WHERE tags.side IS NULL ORDER BY value
SELECT value, tags.* FROM level WHERE NOT tags.side IS NOT NULL ORDER BY value
SELECT /* x /* y */ 'z */ value FROM temp WHERE entity = 'pump-2' AND datetime < now - minute AND (1 = 1 OR LOOKUP('nosuch', value) = 'x')
SELECT entity, tags, count(*) AS n FROM level GROUP BY entity, tags
SELECT count(*), count(value), min(value), max(value), sum(value), avg(value) FROM flow
SELECT entity, first(value), last(value), date_format(max_value_time(value), 'HH:mm') AS t FROM flow GROUP BY entity ORDER BY entity
SELECT percentile(75, value) AS a, median(value) AS b, percentile(0, value) AS c, stddev(value) AS d, stddev(value, POPULATION) AS e, median_abs_dev(value) AS f FROM flow WHERE entity = 'pump-1'
SELECT datetime, counter(value), delta(value) FROM odo GROUP BY PERIOD(5 MINUTE) ORDER BY datetime
SELECT wavg(value) AS a, wtavg(value) AS b, ROUND(regr_slope(value, time) * 60000, 4) AS c FROM flow WHERE entity = 'pump-1'
SELECT ROUND(CORREL(f.value, t.value), 6) AS r, COVAR(f.value, t.value) AS c FROM flow f JOIN temp t WHERE f.entity = 'pump-1'
SELECT min(datetime) AS a, max(time) AS b FROM temp
SELECT datetime, avg(value) FROM flow WHERE entity = 'pump-1' GROUP BY PERIOD(5 MINUTE) ORDER BY datetime
SELECT datetime, avg(value) FROM flow WHERE entity = 'pump-1' GROUP BY PERIOD(3 MINUTE, LINEAR) ORDER BY datetime
SELECT datetime, count(value) FROM flow WHERE entity = 'pump-1' AND datetime >= '2024-03-04T09:57:00Z' AND datetime < '2024-03-04T10:15:00Z' GROUP BY PERIOD(3 MINUTE, VALUE 0, EXTEND) ORDER BY datetime
SELECT datetime, avg(value) FROM flow WHERE entity = 'pump-1' AND datetime >= '2024-03-04T09:57:00Z' AND datetime < '2024-03-04T10:15:00Z' GROUP BY PERIOD(3 MINUTE, PREVIOUS, EXTEND) ORDER BY datetime
SELECT datetime, sum(value) FROM flow WHERE entity = 'pump-1' AND datetime >= '2024-03-04T10:01:00Z' AND datetime < '2024-03-04T10:13:00Z' GROUP BY PERIOD(4 MINUTE, START_TIME) ORDER BY datetime
SELECT datetime, sum(value) FROM flow WHERE entity = 'pump-1' AND datetime >= '2024-03-04T10:01:00Z' AND datetime <= '2024-03-04T10:11:00Z' GROUP BY PERIOD(5 MINUTE, END_TIME) ORDER BY datetime
SELECT datetime, sum(value) FROM odo WHERE datetime >= '2024-03-04T10:03:00Z' GROUP BY PERIOD(5 MINUTE, FIRST_VALUE_TIME) ORDER BY datetime
SELECT datetime, sum(value) FROM daily GROUP BY PERIOD(1 MONTH) ORDER BY datetime
SELECT datetime, sum(value) FROM daily GROUP BY PERIOD(1 MONTH, 'America/New_York') ORDER BY datetime
SELECT date_format(time, 'yyyy-MM') AS m, count(*) AS c FROM daily GROUP BY date_format(time, 'yyyy-MM') ORDER BY m
SELECT entity, avg(value) FROM flow GROUP BY entity HAVING avg(value) > 10
SELECT tags.*, max(value) FROM level WHERE entity = 'pump-1' GROUP BY entity, tags ORDER BY tags
SELECT CASE WHEN value >= 10 THEN 'high' WHEN value IS NULL THEN 'none' ELSE 'low' END AS c, count(*) AS n FROM flow GROUP BY c ORDER BY c
SELECT tags.tank AS k, count(*) AS n FROM level GROUP BY tags.tank ORDER BY tags.tank DESC
SELECT count(DISTINCT entity) AS n FROM level OPTION (ROW_MEMORY_THRESHOLD 10)
SELECT entity, tags, datetime, value FROM level WITH ROW_NUMBER(entity, tags ORDER BY time DESC) <= 1 ORDER BY entity, tags
SELECT ROUND(value / 10) AS g, row_number() AS rn, rank() AS rk, dense_rank() AS dr FROM flow WHERE entity = 'pump-1' WITH ROW_NUMBER(entity ORDER BY ROUND(value / 10) DESC) > 0 ORDER BY rn
SELECT value, avg(value) AS a, count(value) AS c FROM flow WHERE entity = 'pump-1' WITH ROW_NUMBER(entity ORDER BY time) BETWEEN 2 PRECEDING AND CURRENT ROW
SELECT value, avg(value) AS a, count(value) AS c FROM flow WHERE entity = 'pump-1' WITH ROW_NUMBER(entity ORDER BY time) BETWEEN 5 MINUTE PRECEDING AND CURRENT ROW
SELECT value, sum(value) AS s, ema(0.5, value) AS e FROM flow WHERE entity = 'pump-1' WITH ROW_NUMBER(entity ORDER BY time) > 0
SELECT entity, datetime, avg(value) FROM flow GROUP BY entity, PERIOD(5 MINUTE) WITH ROW_NUMBER(entity ORDER BY avg(value) DESC) <= 1 ORDER BY entity
SELECT value, LAG(value) AS p, LEAD(value, 1, -1) AS n, FIRST_VALUE(value) AS f FROM flow WHERE entity = 'pump-1' WITH ROW_NUMBER(entity ORDER BY time) > 0
SELECT entity, datetime, value FROM flow WITH time >= last_time - 5*MINUTE ORDER BY entity, datetime
SELECT datetime, value FROM flow WHERE entity = 'pump-1' AND datetime >= '2024-03-04T10:00:00Z' AND datetime < '2024-03-04T10:12:00Z' WITH INTERPOLATE(5 MINUTE) ORDER BY datetime
SELECT datetime, value FROM flow WHERE entity = 'pump-1' AND datetime BETWEEN '2024-03-04T09:56:00Z' AND '2024-03-04T10:16:00Z' WITH INTERPOLATE(4 MINUTE, PREVIOUS, INNER, TRUE) ORDER BY datetime
SELECT datetime, value FROM flow WHERE entity = 'pump-1' AND datetime BETWEEN '2024-03-04T09:56:00Z' AND '2024-03-04T10:16:00Z' WITH INTERPOLATE(4 MINUTE, LINEAR, INNER, VALUE NaN) ORDER BY datetime
SELECT datetime, value FROM flow WHERE entity = 'pump-1' AND datetime BETWEEN '2024-03-04T10:04:00Z' AND '2024-03-04T10:10:00Z' WITH INTERPOLATE(2 MINUTE, LINEAR, OUTER) ORDER BY datetime
SELECT datetime, value FROM flow WHERE entity = 'pump-1' AND datetime BETWEEN '2024-03-04T10:01:00Z' AND '2024-03-04T10:07:00Z' WITH INTERPOLATE(3 MINUTE, LINEAR, OUTER, FALSE, START_TIME) ORDER BY datetime
SELECT datetime, value FROM flow WHERE entity = 'pump-1' AND value < 15 AND datetime >= '2024-03-04T10:00:00Z' AND datetime < '2024-03-04T10:12:00Z' WITH INTERPOLATE(5 MINUTE) ORDER BY datetime
SELECT datetime, text FROM state WHERE datetime BETWEEN '2024-03-04T10:02:00Z' AND '2024-03-04T10:11:00Z' WITH INTERPOLATE(3 MINUTE, LINEAR, OUTER, TRUE) ORDER BY datetime
SELECT count(value) AS c, sum(value) AS s FROM flow WHERE entity = 'pump-1' AND datetime >= '2024-03-04T10:00:00Z' AND datetime < '2024-03-04T10:12:00Z' WITH INTERPOLATE(5 MINUTE, LINEAR)
SELECT f.entity, f.datetime, f.value, t.value FROM flow f JOIN temp t WHERE f.entity = 'pump-1' ORDER BY f.datetime
SELECT datetime, f.value, t.value FROM flow f FULL OUTER JOIN temp t WHERE f.entity = 'pump-1' ORDER BY datetime
SELECT t.datetime, t.value, l.value, l.tags FROM temp t JOIN USING ENTITY level l WHERE t.entity = 'pump-1' ORDER BY t.datetime, l.value
SELECT t.datetime, t.value, l.value FROM temp t JOIN level l WHERE t.entity = 'pump-1'
SELECT datetime, f.value, t.value FROM flow f OUTER JOIN temp t WHERE f.entity = 'pump-1' AND datetime BETWEEN '2024-03-04T10:00:00Z' AND '2024-03-04T10:10:00Z' WITH INTERPOLATE(DETAIL, LINEAR, OUTER) ORDER BY datetime
SELECT datetime, avg(f.value) AS f1, avg(t.value) AS t1 FROM flow f JOIN temp t WHERE f.entity = 'pump-1' GROUP BY PERIOD(10 MINUTE)
SELECT * FROM flow f JOIN temp t WHERE f.entity = 'pump-2'
SELECT b.metric, b.datetime, b.value, t.value FROM atsd_series b JOIN temp t WHERE b.metric IN ('flow', 'odo') AND b.entity = 'pump-1' ORDER BY b.metric, b.datetime
SELECT MAX(v) AS m FROM (SELECT datetime, AVG(value) AS v FROM flow WHERE entity = 'pump-1' GROUP BY PERIOD(5 MINUTE))
SELECT datetime, avg(value) AS a FROM (SELECT datetime, max(value) AS "value" FROM flow WHERE entity = 'pump-1' GROUP BY PERIOD(5 MINUTE)) GROUP BY PERIOD(1 HOUR)
SELECT entity, value FROM level ORDER BY 2 DESC LIMIT 1, 2
SELECT tags.side AS s, max(value) AS m FROM level GROUP BY tags.side ORDER BY tags.side
SELECT entity, sum(value) AS s FROM flow GROUP BY entity ORDER BY s DESC LIMIT 1 OFFSET 1
SELECT value FROM flow WHERE entity = 'pump-1' ORDER BY time LIMIT 3
SELECT entity, count(*) FROM flow GROUP BY entity
INSERT INTO level (entity, datetime, value, tags.tank) VALUES ('valve-9', '2024-03-04T11:00:00Z', 12, 'C')
INSERT INTO atsd_series (flow, temp, entity, datetime) VALUES (1.5, 18, 'pump-3', '2024-03-04T11:00:00Z')
UPDATE temp SET entity = 'pump-3', datetime = '2024-03-04T11:00:00Z', value = 19
DELETE FROM temp WHERE entity = 'pump-3'
INSERT INTO temp (entity, datetime) VALUES ('pump-3', '2024-03-04T11:00:00Z')
SELECT t.*, m.tags.*, entity.tags.*, metric.* FROM m t
SELECT value 'my-label', tags.'tag-1' FROM "disk.used" d WHERE disk.used.entity = 'x'
SELECT entity AS entity, value AS value, max(value) AS "max" FROM a.b.c
SELECT 1 OPTION (ROW_MEMORY_THRESHOLD -1) OPTION (ROW_MEMORY_THRESHOLD 5)
SELECT * FROM (SELECT value FROM m ORDER BY time LIMIT 5) a OUTER JOIN (SELECT 1 FROM n) AS b ON (b.entity = a.entity AND b.time = a.time)
SELECT * FROM a FULL JOIN b ON a.entity = b.entity FULL OUTER JOIN c INNER JOIN USING ENTITY "d" "e"
SELECT ? FROM m WHERE ? = value AND x IN (?, ?) GROUP BY ? HAVING ? ORDER BY ?
SELECT entity.name FROM m WHERE datetime BETWEEN (SELECT time FROM n) WITH VERSION = now - 30*second, TIMEZONE = "UTC"
SELECT 1 FROM m WITH last_time - minute < time, ROW_NUMBER(entity, tags ORDER BY time DESC, value ASC) = 1 GROUP BY entity WITH ROW_NUMBER(entity ORDER BY avg(value)) > 0
SELECT groups, interpolate, timeZone, name FROM atsd_entity WHERE 'g' IN groups AND 'h' NOT IN t.entity.groups
SELECT 1 FROM m GROUP BY t.PERIOD(1 DAY, entity.timeZone, NEXT, EXTEND, END_TIME), "a b".PERIOD(5 MINUTE)
EXPLAIN SELECT value FROM flow;
UPDATE "m" SET entity='e', tags."x y"='v', value=-1e3 WHERE time = now - 1*hour AND text = NULL
DELETE FROM a.b
insert into atsd_series ("m 1", m2, entity, datetime) values (NaN, ?, 'e', current_day - 1*hour) ;
