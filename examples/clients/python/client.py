"""The contract's Python client, atsd-client: all its services, with the calls that its documentation shows."""
from datetime import datetime, timezone

from atsd_client import connect_url
from atsd_client.exceptions import ServerException, SQLException
from atsd_client.models import (
    Aggregate, AggregateType, AlertHistoryQuery, AlertsQuery, ControlFilter, DateFilter, Downsample, Entity, EntityFilter, EntityGroup, Group,
    Interpolate, Message, MessageQuery, Metric, PropertiesDeleteQuery, PropertiesQuery, Property, Rate, Sample, SampleFilter, Series, SeriesDeleteQuery,
    SeriesFilter, SeriesQuery, Severity, Smooth, TimeUnit, TransformationFilter, VersioningFilter)
from atsd_client.services import (
    AlertsService, CommandsService, EntitiesService, EntityGroupsService, MessageService, MetricsService, PropertiesService, SeriesService, SQLService)
from check import LOGIN, PASSWORD, URL, attempt, check, finish, raises

conn = connect_url(URL, LOGIN, PASSWORD, timeout=20)
series, messages, properties, alerts = SeriesService(conn), MessageService(conn), PropertiesService(conn), AlertsService(conn)
metrics, entities, groups = MetricsService(conn), EntitiesService(conn), EntityGroupsService(conn)
commands, sql = CommandsService(conn), SQLService(conn)

HOUR = DateFilter("2021-05-03T10:00:00Z", "2021-05-03T11:00:00Z")
ALWAYS = DateFilter("1970-01-01T00:00:00Z", "9999-12-31T23:59:59Z")
TEN = 1620036000000  # 2021-05-03T10:00:00Z


def hour_of(entity, metric="py.flow", transformation=None, **filters):
    if transformation:
        filters["transformation_filter"] = TransformationFilter(**transformation)
    return series.query(SeriesQuery(SeriesFilter(metric), EntityFilter(entity), HOUR, **filters))


def values(found):
    return [[(s.t, s.v) for s in x.data] for x in found]


def ms(date):
    return round(date.timestamp() * 1000)


def by_text(rows):
    return sorted(rows, key=str)


def series_round_trip():
    s = Series(entity="Py-Pump-1", metric="Py.Flow", tags={"site": "North Hall"})
    s.add_samples(Sample(value=1.5, time="2021-05-03T10:00:00Z"), Sample(value=-3, time=TEN + 30000),
                  Sample(value=7, time=datetime(2021, 5, 3, 10, 1, 30, tzinfo=timezone.utc)))
    check("series.insert", series.insert(s), True)
    found = hour_of("py-pump-1")
    check("series.query: values", values(found), [[(TEN, 1.5), (TEN + 30000, -3), (TEN + 90000, 7)]])
    check("series.query: key", [(x.entity, x.metric, dict(x.tags)) for x in found], [("py-pump-1", "py.flow", {"site": "North Hall"})])
    check("series.times", [t[:19] for t in found[0].times()], ["2021-05-03T10:00:00", "2021-05-03T10:00:30", "2021-05-03T10:01:30"])
    inner = DateFilter(datetime(2021, 5, 3, 10, 0, 1, tzinfo=timezone.utc), datetime(2021, 5, 3, 10, 1, tzinfo=timezone.utc))
    check("series.query: datetime, wildcards in entity and tag",
          values(series.query(SeriesQuery(SeriesFilter("py.flow", tags={"site": "North*"}), EntityFilter("py-pump-?"), inner))), [[(TEN + 30000, -3)]])
    check("series.query: first", values(hour_of("py-pump-1", control_filter=ControlFilter(limit=1, direction="ASC"))), [[(TEN, 1.5)]])
    check("series.query: last", values(hour_of("py-pump-1", control_filter=ControlFilter(limit=1))), [[(TEN + 90000, 7)]])
    check("series.query: milliseconds", values(hour_of("py-pump-1", control_filter=ControlFilter(time_format="milliseconds", limit=1))), [[(TEN + 90000, 7)]])
    check("series.query: cache", values(hour_of("py-pump-1", control_filter=ControlFilter(cache=True))), [[(TEN + 90000, 7)]])
    check("series.query: sample filter", values(hour_of("py-pump-1", sample_filter=SampleFilter("value > 1 AND value < 5"))), [[(TEN, 1.5)]])
    meta = hour_of("py-pump-1", control_filter=ControlFilter(add_meta=True, request_id="q-7"))[0]
    check("series.query: meta", (meta.meta["metric"].name, meta.meta["metric"].data_type, meta.meta["metric"].enabled, meta.meta["entity"].name, meta.request_id),
          ("py.flow", "FLOAT", True, "py-pump-1", "q-7"))
    check("series.query: nothing", values(hour_of("py-nobody")), [[]])
    raises("series.insert: empty tag", ServerException, lambda: series.insert(Series("py-x", "py.x", [Sample(1, TEN)], tags={"a": ""})),
           lambda e: e.status_code == 400 and 'Tag \\"a\\" has empty value' in e.content)


def series_text():
    series.insert(Series("py-pump-2", "py.state", [Sample(value=None, time=TEN, x="Halt; dry run"), Sample(value=4, time=TEN + 1000, x="Start")]))
    raw = conn.post("v1/series/query", [SeriesQuery(SeriesFilter("py.state"), EntityFilter("py-pump-2"), HOUR)])
    check("series: texts", [(s["v"], s["x"]) for s in raw[0]["data"]], [(None, "Halt; dry run"), (4, "Start")])


def series_transformations():
    # Two minutes: 1, 3 | 5, 11. Averages 2 and 8, sums 4 and 16, greatest 3 and 11.
    series.insert(Series("py-pump-3", "py.flow", [Sample(v, TEN + 30000 * i) for i, v in enumerate([1, 3, 5, 11])]),
                  Series("py-pump-4", "py.flow", [Sample(10, TEN), Sample(22, TEN + 60000)]),
                  Series("py-pump-5", "py.flow", [Sample(v, TEN + 60000 * i) for i, v in enumerate([3, 3, 3, 3, 9])]))
    minute = {"count": 1, "unit": TimeUnit.MINUTE}
    check("aggregate AVG", values(hour_of("py-pump-3", transformation={"aggregate": Aggregate(minute, [AggregateType.AVG])})), [[(TEN, 2), (TEN + 60000, 8)]])
    both = hour_of("py-pump-3", transformation={"aggregate": Aggregate(minute, [AggregateType.SUM, AggregateType.MAX])})
    check("aggregate SUM and MAX", sorted((x.aggregate["type"], [s.v for s in x.data]) for x in both), [("MAX", [3, 11]), ("SUM", [4, 16])])
    members = EntityFilter("unset", entities=["py-pump-3", "py-pump-4"])
    members.set_entity(None)
    total = series.query(SeriesQuery(SeriesFilter("py.flow"), members, HOUR, transformation_filter=TransformationFilter(group=Group(AggregateType.SUM))))
    check("group SUM", values(total), [[(TEN, 11), (TEN + 30000, 3), (TEN + 60000, 27), (TEN + 90000, 11)]])
    rate = Rate(counter=True)
    rate.set_period(1, TimeUnit.MINUTE)
    check("rate per minute", values(hour_of("py-pump-3", transformation={"rate": rate})), [[(TEN + 30000, 4), (TEN + 60000, 4), (TEN + 90000, 12)]])
    grid = Interpolate({"count": 20, "unit": TimeUnit.SECOND}, "LINEAR")
    check("interpolate LINEAR", values(hour_of("py-pump-4", transformation={"interpolate": grid})),
          [[(TEN, 10), (TEN + 20000, 14), (TEN + 40000, 18), (TEN + 60000, 22)]])
    check("smooth AVG of 2", values(hour_of("py-pump-3", transformation={"smooth": Smooth("AVG", count=2, minimumCount=2)})),
          [[(TEN + 30000, 2), (TEN + 60000, 4), (TEN + 90000, 8)]])
    check("downsample", values(hour_of("py-pump-5", transformation={"downsample": Downsample("DETAIL")})), [[(TEN, 3), (TEN + 180000, 3), (TEN + 240000, 9)]])


def series_versions():
    metrics.create_or_replace(Metric("py.versioned", versioned=True))
    for value, status in ((1, "draft"), (2, "final")):
        series.insert(Series("py-pump-1", "py.versioned", [Sample(value, TEN, version={"source": "meter", "status": status})]))
    found = hour_of("py-pump-1", "py.versioned", versioning_filter=VersioningFilter(versioned=True))
    check("versions", [(s.v, s.version["source"], s.version["status"]) for s in found[0].data], [(1, "meter", "draft"), (2, "meter", "final")])
    final = hour_of("py-pump-1", "py.versioned", versioning_filter=VersioningFilter(versioned=True, version_filter="version_status = 'draft'"))
    check("version filter", values(final), [[(TEN, 1)]])
    check("latest version", values(hour_of("py-pump-1", "py.versioned")), [[(TEN, 2)]])


def series_delete():
    series.insert(Series("py-pump-9", "py.gone", [Sample(1, TEN)], tags={"a": "1"}), Series("py-pump-9", "py.gone", [Sample(2, TEN)]))
    series.delete(SeriesDeleteQuery("py-pump-9", "py.gone", tags={"a": "1"}))
    check("series.delete takes one", values(hour_of("py-pump-9", "py.gone")), [[(TEN, 2)]])
    series.delete(SeriesDeleteQuery("py-pump-9", "py.gone", exact_match=False))
    check("series.delete takes the rest", values(hour_of("py-pump-9", "py.gone")), [[]])


def message_round_trip():
    messages.insert(Message("Audit", "Valve", "py-pump-1", date="2021-05-03T10:00:00Z", severity=Severity.WARNING, tags={"user": "Ann"},
                            message="opened\nby hand"),
                    Message("audit", "valve", "py-pump-1", date=TEN + 60000, severity="CRITICAL", message="burst"))
    pump = EntityFilter("py-pump-1")
    found = messages.query(MessageQuery(pump, HOUR, type="audit"))
    check("messages.query", sorted((ms(m.date), m.severity, m.type, m.source, dict(m.tags), m.message) for m in found),
          [(TEN, "WARNING", "audit", "valve", {"user": "Ann"}, "opened\nby hand"), (TEN + 60000, "CRITICAL", "audit", "valve", {}, "burst")])
    check("messages.query: severity", [m.message for m in messages.query(MessageQuery(pump, HOUR, min_severity="MAJOR"))], ["burst"])
    check("messages.query: expression", [ms(m.date) for m in messages.query(MessageQuery(EntityFilter("py-*"), HOUR, expression="tags.user = 'Ann'"))], [TEN])
    check("messages.query: tags", [ms(m.date) for m in messages.query(MessageQuery(pump, HOUR, tags={"user": "Ann"}, limit=1))], [TEN])


def property_round_trip():
    properties.insert(Property("Disk", "py-pump-1", tags={"size": "10 GB", "fs": "ext4"}, key={"slot": "1"}, date="2021-05-03T10:00:00Z"),
                      Property("disk", "py-pump-1", tags={"size": "20 GB"}, key={"slot": "2"}, date=TEN),
                      Property("location", "py-pump-1", tags={"hall": "north"}, date=TEN))
    first, second = ("disk", {"slot": "1"}, {"size": "10 GB", "fs": "ext4"}, TEN), ("disk", {"slot": "2"}, {"size": "20 GB"}, TEN)
    plain = lambda found: by_text((p.type, dict(p.key), dict(p.tags), p.timestamp) for p in found)
    disks = lambda **more: plain(properties.query(PropertiesQuery(EntityFilter("py-pump-1"), HOUR, type="disk", **more)))
    check("properties.query", disks(), [first, second])
    check("properties.query: key", disks(key={"slot": "2"}, exact_match=True), [second])
    check("properties.query: key expression", disks(key_tag_expression="tags.size = '10 GB'"), [first])
    check("properties.type_query", sorted(properties.type_query("py-pump-1")), ["disk", "location"])
    check("properties.url_query", plain(properties.url_query("py-pump-1", "location")), [("location", {}, {"hall": "north"}, TEN)])
    properties.delete(PropertiesDeleteQuery("disk", "py-pump-1", key={"slot": "1"}, exact_match=True))
    check("properties.delete", disks(), [second])


def alert_life():
    series.insert(Series("py-boiler", "client.temperature", [Sample(95, TEN)]))
    open_alerts = lambda **more: alerts.query(AlertsQuery(EntityFilter("py-boiler"), ALWAYS, **more))
    found = open_alerts(rules=["client-hot"])
    check("alerts.query", [(a.rule, a.entity, a.metric, a.severity, a.value, a.open_value, a.acknowledged) for a in found],
          [("client-hot", "py-boiler", "client.temperature", "CRITICAL", 95, 95, False)])
    alerts.update({"id": found[0].id, "acknowledged": True})
    check("alerts.update", [a.id for a in open_alerts(acknowledged=True)], [found[0].id])
    series.insert(Series("py-boiler", "client.temperature", [Sample(20, TEN + 60000)]))
    check("alerts.query: closed", open_alerts(), [])
    history = alerts.history_query(AlertHistoryQuery(EntityFilter("py-boiler"), ALWAYS, rule="client-hot"))
    check("alerts.history_query", sorted((h.type, h.value, h.severity) for h in history), [("CANCEL", 20, "UNDEFINED"), ("OPEN", 95, "CRITICAL")])
    series.insert(Series("py-boiler", "client.temperature", [Sample(99, TEN + 120000)]))
    alerts.delete({"id": open_alerts()[0].id})
    check("alerts.delete", open_alerts(), [])


def metric_settings():
    metrics.create_or_replace(Metric("Py.Level", label="Level", enabled=True, data_type="DOUBLE", units="m", min_value=0, max_value=9.5, invalid_action="TRANSFORM",
                                     retention_days=30, interpolate="PREVIOUS", time_zone="Europe/Berlin", description="of the tank", tags={"team": "water"}))
    m = metrics.get("py.level")
    check("metrics.get", (m.name, m.label, m.enabled, m.data_type, m.units, m.min_value, m.max_value, m.invalid_action, m.retention_days, m.interpolate,
                          m.time_zone, m.description, dict(m.tags), m.versioned, m.persistent),
          ("py.level", "Level", True, "DOUBLE", "m", 0, 9.5, "TRANSFORM", 30, "PREVIOUS", "Europe/Berlin", "of the tank", {"team": "water"}, False, True))
    check("metrics.get: unknown", metrics.get("py.unknown"), None)
    metrics.update(Metric("py.level", label="Tank level", enabled=False, tags={"shift": "2"}))
    m = metrics.get("py.level")
    check("metrics.update", (m.label, m.enabled, m.units, dict(m.tags)), ("Tank level", False, "m", {"team": "water", "shift": "2"}))
    metrics.create_or_replace(Metric("py.level", label="Level"))
    check("metrics.create_or_replace", (metrics.get("py.level").units, dict(metrics.get("py.level").tags)), (None, {}))
    series.insert(Series("py-tank", "py.level", [Sample(1, TEN)], tags={"side": "A B"}))
    check("metrics.list", [m.name for m in metrics.list(expression="name LIKE 'py.lev*'", tags="*", limit=5)], ["py.level"])
    check("metrics.list: dates", [m.name for m in metrics.list(expression="name LIKE 'py.level'", min_insert_date="2021-05-03T10:00:00Z",
                                                               max_insert_date="2021-05-03T10:00:01Z")], ["py.level"])
    found = metrics.series("py.level", entity="py-tank", tags={"side": "A B"})
    check("metrics.series", [(s.entity, s.metric, dict(s.tags), ms(s.last_insert_date)) for s in found],
          [("py-tank", "py.level", {"side": "A B"}, TEN)])
    metrics.delete("py.level")
    check("metrics.delete", metrics.get("py.level"), None)
    odd = "py/rack 7(in)".replace(" ", "_")
    metrics.create_or_replace(Metric(odd, label="odd"))
    check("metrics: a name with a slash", metrics.get(odd).label, "odd")


def entity_settings():
    entities.create_or_replace(Entity("Py-Host", label="Host", enabled=True, interpolate="LINEAR", time_zone="UTC", tags={"App": "Web Shop", "env": "test"}))
    e = entities.get("py-host")
    check("entities.get", (e.name, e.label, e.enabled, e.interpolate, e.time_zone, dict(e.tags)), ("py-host", "Host", True, "LINEAR", "UTC", {"app": "Web Shop", "env": "test"}))
    check("entities.get: unknown", entities.get("py-nobody-2"), None)
    entities.update(Entity("py-host", tags={"env": "live"}))
    check("entities.update", dict(entities.get("py-host").tags), {"app": "Web Shop", "env": "live"})
    check("entities.list", [e.name for e in entities.list(expression="tags.app = 'Web Shop'", tags="app", limit=3)], ["py-host"])
    series.insert(Series("py-host", "py.load", [Sample(1, TEN)]), Series("py-host", "py.free", [Sample(2, TEN + 1000)]))
    found = entities.metrics("py-host", expression="name LIKE 'py.*'", use_entity_insert_time=True)
    check("entities.metrics", sorted((m.name, ms(m.last_insert_date)) for m in found), [("py.free", TEN + 1000), ("py.load", TEN)])
    entities.delete("py-host")
    check("entities.delete", entities.get("py-host"), None)


def entity_groups():
    groups.create_or_replace(EntityGroup("Py Hosts", tags={"owner": "ops"}))
    g = groups.get("Py Hosts")
    check("groups.get", (g.name, dict(g.tags), g.enabled), ("Py Hosts", {"owner": "ops"}, True))
    check("groups.get: unknown", groups.get("Py Nobody"), None)
    names = lambda: sorted(e.name for e in groups.get_entities("Py Hosts", tags="*"))
    groups.add_entities("Py Hosts", ["py-a", Entity("py-b")], create_entities=True)
    check("groups.add_entities", names(), ["py-a", "py-b"])
    groups.set_entities("Py Hosts", ["py-b", "py-c"])
    check("groups.set_entities", names(), ["py-b", "py-c"])
    groups.delete_entities("Py Hosts", ["py-b"])
    check("groups.delete_entities", names(), ["py-c"])
    check("groups.get_entities: expression", [e.name for e in groups.get_entities("Py Hosts", expression="name LIKE '*-c'", limit=2)], ["py-c"])
    groups.update(EntityGroup("Py Hosts", tags={"shift": "2"}))
    check("groups.update", dict(groups.get("Py Hosts").tags), {"owner": "ops", "shift": "2"})
    check("groups.list", [g.name for g in groups.list(expression="name LIKE 'Py*'", tags="*", limit=5)], ["Py Hosts"])
    series.insert(Series("py-c", "py.flow", [Sample(4, TEN)]))
    # The client writes this filter as entity_expression, which no server knows: the name of the interface is set by hand.
    member = EntityFilter("*")
    member.entityExpression = "memberOf('Py Hosts')"
    found = series.query(SeriesQuery(SeriesFilter("py.flow"), member, HOUR))
    check("series.query: members of a group", [(s.entity, s.data[0].v) for s in found], [("py-c", 4)])
    groups.delete("Py Hosts")
    check("groups.delete", groups.get("Py Hosts"), None)


def network_commands():
    check("send_commands: commit", commands.send_commands(["series e:py-cmd m:py.flow=1.25 ms:%d" % TEN, "nonsense", 'message e:py-cmd m:"hello there" ms:%d' % TEN], commit=True),
          {"fail": 1, "success": 2, "total": 3, "stored": 2})
    check("send_commands", commands.send_commands("property e:py-cmd t:disk k:a=1 v:b=2"), {"fail": 0, "success": 1, "total": 1})
    check("send_commands: stored", values(hour_of("py-cmd")), [[(TEN, 1.25)]])


def refusals():
    raises("wrong password", ServerException, lambda: SeriesService(connect_url(URL, LOGIN, "wrong")).query({}), lambda e: e.status_code == 401)


def sql_query():
    select = {"q": "SELECT value FROM \"py.flow\" WHERE entity = 'py-cmd'", "outputFormat": "csv"}
    try:
        conn.post("sql", None, select)
    except ServerException as error:
        if error.status_code != 501:
            raise
        print("skip SQL: this server has none yet, it answers 501")
        return
    text = sql.query_with_params(select["q"], {"outputFormat": "csv"})
    check("sql.query_with_params", str(text).replace("\r", "").replace('"', "").strip(), "value\n1.25")
    raises("sql.query_with_params: error", SQLException, lambda: sql.query_with_params("SELECT oops FROM"), lambda e: e.status_code == 400)


for group in (series_round_trip, series_text, series_transformations, series_versions, series_delete, message_round_trip, property_round_trip, alert_life,
              metric_settings, entity_settings, entity_groups, network_commands, refusals, sql_query):
    attempt(group.__name__, group)
finish()
