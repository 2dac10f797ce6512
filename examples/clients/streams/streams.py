"""What people do with nc: commands, files and datagrams sent by hand."""
import json
import os
import socket

from check import address, attempt, check, eventually, finish, request, samples

TEN = 1620036000000  # 2021-05-03T10:00:00Z


def send(text):
    """nc host port < text, and what comes back until the server closes."""
    with socket.create_connection(address("TCP"), timeout=20) as sock:
        sock.sendall(text if isinstance(text, bytes) else text.encode())
        sock.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: sock.recv(4096), b"")).decode()


def arrives(name, metric, entity, want):
    check(name, eventually(lambda: samples(metric, entity), lambda got: got == want), want)


def commands():
    reply = send('ping\ndebug series e:nc-1 m:nc.flow=1.5 t:site="north hall" ms:%d\nseries e:nc-1 m:nc.flow=2 t:site="north hall" ms:%d\n'
                 'message e:nc-1 t:type=audit m:"valve\nopened" ms:%d\nmetric m:nc.flow u:l/s\nentity e:nc-1 l:One\ndebug drop e:nc-1\n' % (TEN, TEN + 1000, TEN))
    check("replies", reply.replace("\r", ""), "ok\nok\nInvalid command: drop e:nc-1\n")
    arrives("series", "nc.flow", "nc-1", [({"site": "north hall"}, [(TEN, 1.5), (TEN + 1000, 2)])])
    found = json.loads(request("POST", "/api/v1/messages/query", [{"entity": "nc-1", "startDate": "2021-05-03T10:00:00Z", "endDate": "2021-05-03T11:00:00Z"}])[1])
    check("message over two lines", [(m["type"], m["message"]) for m in found], [("audit", "valve\nopened")])
    check("metric", json.loads(request("GET", "/api/v1/metrics/nc.flow")[1])["units"], "l/s")
    check("entity", json.loads(request("GET", "/api/v1/entities/nc-1")[1])["label"], "One")
    check("exit", send("ping\nexit\n").replace("\r", ""), "ok\nGoodbye\n")
    check("time", send("time\n").strip().isdigit(), True)
    send("series e:nc-2 m:nc.flow=7 ms:%d" % TEN)
    arrives("no line break at the end", "nc.flow", "nc-2", [({}, [(TEN, 7)])])


def many():
    lines = "".join("series e:nc-3 m:nc.many=%d ms:%d\n" % (i, TEN + i * 1000) for i in range(20000))
    send(lines)
    arrives("20,000 commands in one connection", "nc.many", "nc-3", [({}, [(TEN + i * 1000, i) for i in range(20000)])])


def datagrams():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect(address("UDP"))
        sock.send(b"series e:nc-udp m:nc.flow=1 ms:%d" % TEN)
        sock.send(b"series e:nc-udp m:nc.flow=2 ms:%d\nseries e:nc-udp m:nc.flow=3 ms:%d\n" % (TEN + 1000, TEN + 2000))
    arrives("datagrams", "nc.flow", "nc-udp", [({}, [(TEN, 1), (TEN + 1000, 2), (TEN + 2000, 3)])])


def nmon():
    with open(os.path.join(os.environ["DATA"], "linux16n-cpuutil-uarg.nmon"), "rb") as file:
        text = file.read()
    send(b"nmon p:default e:nc-nmon f:nc-nmon_231127.nmon\n" + text)
    rows = [line.split(",") for line in text.decode().splitlines() if line.startswith("CPU_ALL,")]
    want = [float(row[rows[0].index("User%")]) for row in rows[1:]]
    got = eventually(lambda: [[v for _, v in data] for _, data in samples("nmon.cpu_total.user%", "nc-nmon")], lambda got: got == [want])
    check("nmon file", got, [want])


def csv():
    send("csv p:meter t:site=north\nTime,Meter,flow,level\n2021-05-03 10:00:00,nc-csv-1,1.5,10\n2021-05-03 10:01:00,nc-csv-1,2.25,11\n2021-05-03 10:00:00,nc-csv-2,-7,12\n")
    site = {"site": "north"}
    arrives("csv: flow", "meter.flow", "nc-csv-1", [(site, [(TEN, 1.5), (TEN + 60000, 2.25)])])
    arrives("csv: level", "meter.level", "nc-csv-1", [(site, [(TEN, 10), (TEN + 60000, 11)])])
    arrives("csv: other meter", "meter.flow", "nc-csv-2", [(site, [(TEN, -7)])])


for group in (commands, many, datagrams, nmon, csv):
    attempt(group.__name__, group)
finish()
