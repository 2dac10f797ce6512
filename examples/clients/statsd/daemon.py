"""The StatsD daemon, which gathers for a second and then writes: with the contract's own backend over TCP and UDP, and as Graphite, in text and in pickles."""
import json
import os
import socket
import subprocess
import sys
import tempfile
import time

from check import address, attempt, check, eventually, finish, samples

MODULES = os.path.join(sys.argv[1], "node_modules")


def free_port(kind):
    with socket.socket(socket.AF_INET, kind) as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def accepts(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False


def daemon(config, lines, read):
    """Starts a daemon with the backend of the configuration, gives it one datagram, and reads what it flushed."""
    port, admin = free_port(socket.SOCK_DGRAM), free_port(socket.SOCK_STREAM)
    config = dict(config, port=port, address="127.0.0.1", mgmt_port=admin, mgmt_address="127.0.0.1", flushInterval=1000, deleteIdleStats=True)
    with tempfile.NamedTemporaryFile("w", suffix=".js") as file:
        file.write("(" + json.dumps(config) + ")")
        file.flush()
        process = subprocess.Popen(["node", os.path.join(MODULES, "statsd/stats.js"), file.name], stdout=sys.stderr)
        try:
            check("the daemon starts", eventually(lambda: accepts(admin), bool), True)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
                sock.sendto("\n".join(lines).encode(), ("127.0.0.1", port))
            read(time.time() * 1000)
        finally:
            process.kill()
            process.wait()


def arrive(name, entity, tags, want, began):
    """Each metric has its value, the tags, and the whole second of its flush as time."""
    for metric, value in want:
        got = eventually(lambda: [(t, v, when) for t, data in samples(metric, entity) for when, v in data], lambda got: any(v == value for _, v, _ in got))
        good = [(t, v) for t, v, when in got if v == value and abs(when - began) < 60000 and when % 1000 == 0]
        check("%s: %s" % (name, metric), good[:1] or got, [(tags, value)])


def backend(protocol):
    """The contract's backend takes entity and tags out of the name of a metric."""
    host, door = address(protocol.upper())
    entity = "statsd-" + protocol
    config = {"backends": [os.path.join(MODULES, "atsd-statsd-backend/lib/atsd.js")],
              "atsd": {"host": host, "port": door, "protocol": protocol, "patterns": [{"pattern": "^statsd-", "atsd_pattern": "<entity>.<metric>.<tag:site>"}]}}
    lines = [entity + line for line in (".hits.north:3|c", ".hits.north:4|c", ".queue.north:42.5|g", ".took.north:100|ms", ".took.north:300|ms", ".user.north:a|s", ".user.north:b|s")]
    want = [("counters.hits.count", 7), ("counters.hits.rate", 7), ("gauges.queue", 42.5), ("timers.took.mean", 200), ("timers.took.upper", 300), ("sets.user.count", 2)]
    daemon(config, lines, lambda began: arrive("backend over " + protocol.upper(), entity, {"site": "north"}, want, began))


def graphite(protocol):
    host, door = address("TCP" if protocol == "text" else "PICKLE")
    entity = "statsd-" + protocol
    config = {"backends": ["./backends/graphite"], "graphiteHost": host, "graphitePort": door, "graphitePicklePort": door, "graphiteProtocol": protocol,
              "graphite": {"legacyNamespace": False, "globalPrefix": entity}}
    lines = ["hits:3|c", "hits:4|c", "queue:42.5|g", "took:100|ms", "took:300|ms", "user:ann|s", "user:bob|s"]
    want = [("counters.hits.count", 7), ("gauges.queue", 42.5), ("timers.took.mean", 200), ("timers.took.upper", 300), ("sets.user.count", 2)]
    daemon(config, lines, lambda began: arrive("Graphite as " + protocol, entity, {}, want, began))


attempt("backend over TCP", lambda: backend("tcp"))
attempt("backend over UDP", lambda: backend("udp"))
attempt("Graphite as text", lambda: graphite("text"))
attempt("Graphite as pickle", lambda: graphite("pickle"))
finish()
