"""Schemathesis, a fuzzer that reads the OpenAPI document of the server and sends what it allows and what it forbids.

A failed check is an answer of 5xx, a lost connection, or an answer that the document does not describe. Requests come from a fixed seed; the time is bounded, so that a
slow machine tries fewer of them.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

from check import LOGIN, PASSWORD, URL, check, finish, request

SECONDS = 75

# The document itself, as every client sees it.
status, text = request("GET", "/api/v1/openapi.json")
document = json.loads(text)
check("the server describes itself", (status, document["openapi"]), (200, "3.1.0"))
described = sum(len(methods) for methods in document["paths"].values()) - 1  # schemathesis leaves out the one that it reads the document from

with tempfile.TemporaryDirectory() as folder:
    report = os.path.join(folder, "report.xml")
    run = subprocess.run(
        [sys.argv[1], "--config-file", "schemathesis.toml", "run", URL + "/api/v1/openapi.json", "--auth", LOGIN + ":" + PASSWORD,
         "--max-examples", "30", "--workers", "1", "--seed", "1", "--max-time", str(SECONDS), "--request-timeout", "20", "--max-redirects", "0", "--no-shrink",
         "--continue-on-failure", "--generation-database", "none", "--warnings", "off", "--no-color", "--report", "junit", "--report-junit-path", report],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS + 20)
print(run.stdout.replace(PASSWORD, "***"))

failures = run.stdout.count("\n- ST")
check("schemathesis finds no fault in %d operations" % described, (run.returncode, failures), (0, 0))
check("all operations were tried", re.findall(r"(\d+) selected / (\d+) total\n", run.stdout)[:1], [(str(described), str(described))])
status, text = request("GET", "/health")
check("the server is well after that", (status, json.loads(text)["status"]), (200, "ok"))
finish()
