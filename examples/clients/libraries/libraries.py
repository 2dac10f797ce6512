"""Libraries that programs write with, in the protocols of other products: InfluxDB 1 and 2 over HTTP, StatsD over UDP and TCP, Graphite over TCP, UDP and as pickles,
OpenTSDB over TCP."""
import logging
import pickle
import socket
import struct

import graphyte
import potsdb
import statsd
from check import LOGIN, PASSWORD, URL, address, attempt, check, eventually, finish, raises, samples
from influxdb import InfluxDBClient
from influxdb.exceptions import InfluxDBClientError
from influxdb_client import InfluxDBClient as InfluxDBClient2, Point, WritePrecision
from influxdb_client.client.write_api import SYNCHRONOUS, WriteOptions
from influxdb_client.rest import ApiException

logging.disable(logging.CRITICAL)
TEN = 1620036000000  # 2021-05-03T10:00:00Z


def later(metric, entity, want):
    """Samples of a series that may still be on their way."""
    return eventually(lambda: samples(metric, entity), lambda got: got == want)


def values(metric, entity):
    """Values alone, of what has the time of its arrival."""
    return [v for _, data in samples(metric, entity) for _, v in data]


def influx_1():
    host, port = URL.split("//")[1].split(":")
    client = InfluxDBClient(host, int(port), LOGIN, PASSWORD, "metrics", timeout=20)
    check("influxdb: ping", client.ping().split(".")[0], "1")
    client.create_database("metrics")
    points = [{"measurement": "weather", "tags": {"host": "Infl-1", "place": "North Hall, 2"}, "time": "2021-05-03T10:00:00Z",
               "fields": {"value": 21.5, "humidity": 40, "note": 'dry, "hot"', "open": True}},
              {"measurement": "weather", "tags": {"host": "infl-1", "place": "North Hall, 2"}, "time": "2021-05-03T10:00:01.5Z", "fields": {"value": -3.0}}]
    check("influxdb: write_points", client.write_points(points, time_precision="ms"), True)
    place = {"place": "North Hall, 2"}
    check("influxdb: value", samples("weather", "infl-1"), [(place, [(TEN, 21.5), (TEN + 1500, -3)])])
    check("influxdb: integer", samples("weather.humidity", "infl-1"), [(place, [(TEN, 40)])])
    check("influxdb: boolean", samples("weather.open", "infl-1"), [(place, [(TEN, 1)])])
    check("influxdb: nanoseconds", client.write_points([{"measurement": "weather", "tags": {"host": "infl-2"}, "time": TEN * 1000000 + 7000000, "fields": {"value": 1.0}}]), True)
    check("influxdb: nanoseconds are cut to ms", samples("weather", "infl-2"), [({}, [(TEN + 7, 1)])])
    check("influxdb: seconds in batches", client.write_points([{"measurement": "weather", "tags": {"host": "infl-3"}, "time": TEN // 1000 + i, "fields": {"value": float(i)}}
                                                               for i in range(1000)], time_precision="s", batch_size=300), True)
    check("influxdb: a thousand points", [len(data) for _, data in samples("weather", "infl-3")], [1000])
    compressed = InfluxDBClient(host, int(port), LOGIN, PASSWORD, "metrics", timeout=20, gzip=True)
    compressed.write_points([{"measurement": "weather", "tags": {"host": "infl-4"}, "time": TEN, "fields": {"value": 2.0}}], time_precision="ms")
    check("influxdb: gzip", samples("weather", "infl-4"), [({}, [(TEN, 2)])])
    raises("influxdb: wrong password", InfluxDBClientError, lambda: InfluxDBClient(host, int(port), LOGIN, "wrong", "metrics", timeout=20, retries=1).write_points(points),
           lambda e: e.code == 401)
    raises("influxdb: bad line", InfluxDBClientError, lambda: client.write_points(["weather,host=infl-9 value=x"], protocol="line"), lambda e: e.code == 400)


def influx_2():
    with InfluxDBClient2(url=URL, token=LOGIN + ":" + PASSWORD, org="any", timeout=20000) as client:
        check("influxdb-client: ping", client.ping(), True)
        write = client.write_api(write_options=SYNCHRONOUS)
        point = Point("mem").tag("host", "Infl2-1").tag("kind", "a b").field("used", 12.25).field("free", 7).time(TEN, WritePrecision.MS)
        write.write(bucket="any", record=point)
        check("influxdb-client: point", samples("mem.used", "infl2-1") + samples("mem.free", "infl2-1"), [({"kind": "a b"}, [(TEN, 12.25)]), ({"kind": "a b"}, [(TEN, 7)])])
        write.write(bucket="any", record=["mem,host=infl2-2 used=1 1620036000", "mem,host=infl2-2 used=2 1620036001"], write_precision=WritePrecision.S)
        check("influxdb-client: lines", samples("mem.used", "infl2-2"), [({}, [(TEN, 1), (TEN + 1000, 2)])])
        with client.write_api(write_options=WriteOptions(batch_size=50, flush_interval=200)) as batching:
            for i in range(120):
                batching.write("any", record={"measurement": "mem", "tags": {"host": "infl2-3"}, "fields": {"used": i}, "time": TEN * 1000000 + i * 1000000000})
        check("influxdb-client: batching", [(len(d), d[-1]) for _, d in samples("mem.used", "infl2-3")], [(120, (TEN + 119000, 119))])
        raises("influxdb-client: bad line", ApiException, lambda: write.write(bucket="any", record="mem used="), lambda e: e.status == 400)
    with InfluxDBClient2(url=URL, token=LOGIN + ":wrong", org="any", timeout=20000, enable_gzip=True) as client:
        raises("influxdb-client: wrong token", ApiException, lambda: client.write_api(write_options=SYNCHRONOUS).write(bucket="any", record="mem used=1"), lambda e: e.status == 401)


def statsd_client():
    host, port = address("UDP")
    client = statsd.StatsClient(host, port)
    client.incr("lib-statsd/hits", 3)
    client.gauge("lib-statsd/depth", 20.5)
    client.timing("lib-statsd/took", 320)
    for metric, value in (("hits", 3), ("depth", 20.5), ("took", 320)):
        check("statsd: UDP, " + metric, eventually(lambda: values(metric, "lib-statsd"), lambda got: got == [value]), [value])
    with client.pipeline() as pipe:  # several lines in one datagram, without a line break at the end
        pipe.gauge("lib-statsd2/a", 1)
        pipe.gauge("lib-statsd2/b", 2)
    check("statsd: several in a datagram", eventually(lambda: values("a", "lib-statsd2"), lambda got: got == [1]), [1])
    check("statsd: the last of a datagram", eventually(lambda: values("b", "lib-statsd2"), lambda got: got == [2], seconds=3), [2])
    host, port = address("TCP")
    stream = statsd.TCPStatsClient(host, port, timeout=5)
    stream.gauge("lib-statsd3/level", 7)
    stream.incr("lib-statsd3/hits")
    stream.close()
    check("statsd: TCP", eventually(lambda: values("level", "lib-statsd3") + values("hits", "lib-statsd3"), lambda got: len(got) == 2), [7, 1])


def graphite():
    for door, protocol in (("TCP", "tcp"), ("UDP", "udp")):
        host, port = address(door)
        sender = graphyte.Sender(host, port, prefix="lib-graphite-" + protocol, protocol=protocol, raise_send_errors=True)
        sender.send("load.short", 42.5, timestamp=TEN / 1000)
        sender.send("load.short", -1, timestamp=TEN / 1000 + 60)
        want = [({}, [(TEN, 42.5), (TEN + 60000, -1)])]
        check("graphyte: " + door, later("load.short", "lib-graphite-" + protocol, want), want)
    raw = [("lib-pickle.load.short", (TEN // 1000 + i, i / 4)) for i in range(500)]
    for version in range(pickle.HIGHEST_PROTOCOL + 1):
        entity = "lib-pickle-%d" % version
        payload = pickle.dumps([(name.replace("lib-pickle", entity), pair) for name, pair in raw], protocol=version)
        with socket.create_connection(address("PICKLE")) as sock:
            sock.sendall(struct.pack("!L", len(payload)) + payload)
        want = [({}, [(TEN + i * 1000, i / 4) for i in range(500)])]
        check("pickle protocol %d" % version, later("load.short", entity, want) == want, True)


def opentsdb():
    host, port = address("TCP")
    client = potsdb.Client(host, port=port, host_tag="lib-tsdb", check_host=True)
    client.log("sys.load", 1.5, cpu="0", timestamp=TEN // 1000)
    client.log("sys.load", 3, cpu="0", timestamp=TEN // 1000 + 60)
    client.wait()
    want = [({"cpu": "0"}, [(TEN, 1.5), (TEN + 60000, 3)])]
    check("potsdb: put", later("sys.load", "lib-tsdb", want), want)


for group in (influx_1, influx_2, statsd_client, graphite, opentsdb):
    attempt(group.__name__, group)
finish()
