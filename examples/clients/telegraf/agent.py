"""Telegraf, once for each of its outputs that a tidemark understands: the InfluxDB 1 and 2 interfaces, Graphite, and OpenTSDB over HTTP and as put lines."""
import os
import subprocess
import sys

from check import address, attempt, check, eventually, finish, request, samples

TEN = 1620036000000  # 2021-05-03T10:00:00Z


def telegraf(output):
    """Runs one round of reading and writing, and shows what Telegraf complains about."""
    web = os.environ["URL"].split("//")[1]
    host, port = address("TCP")
    env = dict(os.environ, HTTP_HOST=web.split(":")[0], HTTP_PORT=web.split(":")[1], TCP_HOST=host, TCP_PORT=str(port))
    done = subprocess.run([sys.argv[1], "--once", "--config", "telegraf.conf", "--config", output + ".conf"], env=env, capture_output=True, text=True, timeout=60)
    complaints = [line for line in (done.stdout + done.stderr).splitlines() if " E! " in line or " W! [outputs." in line]
    check(output + ": writes without a complaint", (done.returncode, complaints), (0, []))


def arrives(name, metric, entity, want):
    check(name, eventually(lambda: samples(metric, entity), lambda got: got == want), want)


def values(output, metric, tags):
    """The values of points.influx, under the name that the output gives them, before {} for the field."""
    def series(*data):
        return [(tags, list(data))]
    arrives(output + ": numbers", metric.format("level"), "tg-1", series((TEN, 1.5), (TEN + 60500, 2.25)))
    arrives(output + ": integers", metric.format("valves"), "tg-1", series((TEN, 4), (TEN + 60500, 4)))
    check(output + ": second host", [d for _, d in samples(metric.format("level"), "tg-2")], [[(TEN, -7)]])


def wipe():
    """Takes away what the output before this one has written under the same names."""
    for field in ("level", "valves", "open", "state"):
        for host in ("tg-1", "tg-2"):
            request("POST", "/api/v1/series/delete", [{"metric": "tank." + field, "entity": host, "exactMatch": False}])
    check("deleted", samples("tank.level", "tg-1"), [])


def influxdb():
    telegraf("influxdb")
    values("influxdb", "tank.{}", {"site": "north hall"})
    check("influxdb: booleans", samples("tank.open", "tg-1"), [({"site": "north hall"}, [(TEN, 1), (TEN + 60500, 0)])])
    status, text = request("POST", "/api/v1/series/query", [{"metric": "tank.state", "entity": "tg-1", "startDate": "2021-05-03T10:00:00Z", "endDate": "2021-05-03T11:00:00Z"}])
    check("influxdb: texts", (status, '"x":"filling"' in text), (200, True))
    check("influxdb: its own host", len(samples("mem.total", "tg-agent")), 1)


def influxdb_2():
    wipe()
    telegraf("influxdb_v2")
    values("influxdb_v2", "tank.{}", {"site": "north hall"})


def graphite():
    wipe()
    telegraf("graphite")
    # Graphite has whole seconds.
    arrives("graphite: numbers", "tank.level", "tg-1", [({}, [(TEN, 1.5), (TEN + 60000, 2.25)])])
    arrives("graphite: second host", "tank.level", "tg-2", [({}, [(TEN, -7)])])


def opentsdb():
    telegraf("opentsdb_http")
    site = {"site": "north_hall"}
    whole = [(TEN, 1.5), (TEN + 60000, 2.25)]
    arrives("opentsdb over HTTP: numbers", "tsdb.tank_level", "tg-1", [(site, whole)])
    arrives("opentsdb over HTTP: second host", "tsdb.tank_level", "tg-2", [({}, [(TEN, -7)])])
    telegraf("opentsdb")
    arrives("opentsdb put: numbers", "put.tank_level", "tg-1", [(site, whole)])
    arrives("opentsdb put: second host", "put.tank_level", "tg-2", [({}, [(TEN, -7)])])


for group in (influxdb, influxdb_2, graphite, opentsdb):
    attempt(group.__name__, group)
finish()
