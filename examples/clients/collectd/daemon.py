"""The collectd daemon with write_graphite over TCP and UDP: values put into its socket come out exactly, those of this machine come out somehow."""
import os
import socket
import subprocess
import tempfile

from check import address, attempt, check, eventually, finish, samples

TEN = 1620036000000  # 2021-05-03T10:00:00Z

CONFIG = """
Hostname "cd-agent"
FQDNLookup false
Interval 1
BaseDir "{dir}"
PIDFile "{dir}/pid"
TypesDB "/usr/share/collectd/types.db"
LoadPlugin unixsock
LoadPlugin load
LoadPlugin write_graphite
<Plugin unixsock>
  SocketFile "{dir}/socket"
</Plugin>
<Plugin write_graphite>
  <Node "tcp">
    Host "{tcp[0]}"
    Port "{tcp[1]}"
    Protocol "tcp"
    LogSendErrors true
  </Node>
  <Node "udp">
    Host "{udp[0]}"
    Port "{udp[1]}"
    Protocol "udp"
    Prefix "udp-"
  </Node>
</Plugin>
"""


def put(path, line):
    """Says one line to collectd and gives its answer."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(path)
        sock.sendall(line.encode() + b"\n")
        return sock.recv(1000).decode().strip()


def run():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "socket")
        with open(os.path.join(folder, "conf"), "w") as file:
            file.write(CONFIG.format(dir=folder, tcp=address("TCP"), udp=address("UDP")))
        daemon = subprocess.Popen(["collectd", "-f", "-C", file.name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            eventually(lambda: os.path.exists(path), lambda there: there)
            for line in ('"cd-1/boiler-north/gauge-level" interval=10 1620036000:42.5', '"cd-1/boiler-north/gauge-level" interval=10 1620036010:-3',
                         '"cd.2/disk-sda/if_octets" interval=10 1620036000:1:2', '"cd.2/disk-sda/if_octets" interval=10 1620036010:11:22'):
                check("PUTVAL is taken", put(path, "PUTVAL " + line).startswith("0 "), True)
            put(path, "FLUSH plugin=write_graphite")
            read()
        finally:
            daemon.terminate()
            said = daemon.communicate(timeout=20)[0]
        check("the server keeps the connection", [line for line in said.splitlines() if "write_graphite plugin: send" in line], [])


def read():
    want = [({}, [(TEN, 42.5), (TEN + 10000, -3)])]
    for door, prefix in (("TCP", ""), ("UDP", "udp-")):
        ask = lambda: samples("boiler-north.gauge-level", prefix + "cd-1")
        check("%s: exact values" % door, eventually(ask, lambda got: got == want), want)
        # Dots of a host name become _, and counters become rates: (22 - 2) / 10 s. The first reading has no rate: collectd writes it as nan.
        ask = lambda: samples("disk-sda.if_octets.tx", prefix + "cd_2")
        rates = [({}, [(TEN + 10000, 2)])]
        check("%s: rates" % door, eventually(ask, lambda got: got == rates), rates)
        load = eventually(lambda: samples("load.load.shortterm", prefix + "cd-agent"), len)
        check("%s: load of this machine" % door, len(load) == 1 and all(v >= 0 for _, v in load[0][1]), True)


attempt("collectd", run)
finish()
