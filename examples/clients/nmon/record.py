"""The tool nmon records this machine for a few seconds; its file goes to the server by upload, and over TCP while nmon still writes it."""
import json
import os
import socket
import subprocess
import tempfile
import time

from check import address, attempt, check, eventually, finish, request, samples


def column(text, section, name):
    """Values of a column of the file, in order: what the server has to have."""
    rows = [line.split(",") for line in text.splitlines() if line.startswith(section + ",")]
    at = rows[0].index(name)
    return [float(row[at]) for row in rows[1:]]


def record(path, seconds):
    return subprocess.Popen(["nmon", "-F", path, "-s", "1", "-c", str(seconds)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def wait_for_end(path, seconds):
    """nmon goes on in the background: its file ends with its last snapshot, and no longer grows."""
    last = "ZZZZ,T%04d" % seconds

    def done():
        try:
            text = open(path).read()
        except OSError:
            return ""
        return text if last in text else ""
    eventually(done, len, seconds + 20)
    time.sleep(1.5)
    return open(path).read()


def arrives(name, entity, text):
    """Free memory is a number that nobody knows before."""
    want = column(text, "MEM", "memfree")
    got = eventually(lambda: [[v for _, v in data] for _, data in samples("nmon.memory_mb.memfree", entity)], lambda got: got == [want])
    check(name, got, [want])


def upload(folder):
    path = os.path.join(folder, "up.nmon")
    record(path, 2)
    text = wait_for_end(path, 2)
    status, answer = request("POST", "/api/v1/nmon?e=nmon-up", text, "text/plain")
    check("upload: accepted", (status, json.loads(answer)["taskStatus"], json.loads(answer)["rejected"]), (200, "COMPLETED", 0))
    arrives("upload: memory", "nmon-up", text)


def stream(folder):
    path = os.path.join(folder, "live.nmon")
    record(path, 3)
    eventually(lambda: os.path.exists(path), bool)
    with socket.create_connection(address("TCP")) as sock, open(path, "rb") as file:
        sock.sendall(b"nmon p:default e:nmon-live f:nmon-live_record.nmon\n")
        began = time.monotonic()
        while time.monotonic() - began < 6:
            sock.sendall(file.read())
            time.sleep(0.1)
    arrives("stream: memory", "nmon-live", open(path).read())


with tempfile.TemporaryDirectory() as place:
    attempt("upload", lambda: upload(place))
    attempt("stream", lambda: stream(place))
finish()
