"""What the clients in Python share: one line a check, and a plain way to read back what a client of another kind has written."""
import base64
import json
import os
import sys
import time
import urllib.error
import urllib.request

URL, LOGIN, PASSWORD = os.environ["URL"], os.environ["LOGIN"], os.environ["PASSWORD"]
failed = 0


def check(name, got, want):
    """Compares exactly, types of numbers included: 1 and 1.0 are equal, "1" is not."""
    global failed
    if got == want:
        print("ok   " + name)
    else:
        failed += 1
        print("FAIL %s: got %r, want %r" % (name, got, want))


def raises(name, kind, call, test):
    """Checks that the call raises an error of the kind, and that test(error) holds."""
    try:
        got = call()
    except kind as error:
        check(name, test(error) or repr(error), True)
        return
    check(name, "answer %r" % (got,), "an error")


def attempt(name, call):
    """Runs one group of checks: what it raises is a failed check, and the next group runs."""
    global failed
    try:
        call()
    except Exception as error:
        failed += 1
        print("FAIL %s: %s: %s" % (name, type(error).__name__, str(error)[:600]))


def address(name):
    """Host and port of one of the server's doors: TCP, UDP or PICKLE."""
    host, port = os.environ[name].rsplit(":", 1)
    return host, int(port)


def request(method, path, body=None, kind="application/json"):
    """Status and text of a plain request, made with the standard library alone."""
    if body is not None and not isinstance(body, (str, bytes)):
        body = json.dumps(body)
    if isinstance(body, str):
        body = body.encode()
    login = base64.b64encode((LOGIN + ":" + PASSWORD).encode()).decode()
    req = urllib.request.Request(URL + path, data=body, method=method, headers={"Authorization": "Basic " + login, "Content-Type": kind})
    try:
        with urllib.request.urlopen(req, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def samples(metric, entity, **more):
    """[(tags, [(ms, value)])] of a series, as the server has them."""
    query = dict(metric=metric, entity=entity, startDate="1970-01-01T00:00:00Z", endDate="9999-12-31T23:59:59Z", timeFormat="milliseconds")
    query.update(more)
    status, text = request("POST", "/api/v1/series/query", [query])
    if status != 200:
        raise RuntimeError("%d %s" % (status, text))
    return [(s["tags"], [(x["t"], x["v"]) for x in s["data"]]) for s in json.loads(text) if s["data"]]


def eventually(ask, good, seconds=20):
    """Asks until the answer is good: for doors that do not answer, and agents that write when they like. Gives the last answer."""
    deadline = time.monotonic() + seconds
    while True:
        answer = ask()
        if good(answer) or time.monotonic() > deadline:
            return answer
        time.sleep(0.1)


def finish():
    sys.exit(1 if failed else 0)
