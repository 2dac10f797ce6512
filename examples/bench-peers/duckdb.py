"""Asks DuckDB the SQL questions: arguments are the CSV file, a directory, threads, askings, threshold. Prints a JSON object a question."""
import json
import os
import sys
import time

import duckdb

table, directory, threads, asks, threshold = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])
name = os.path.join(directory, "bench.duckdb")
con = duckdb.connect(name, config={"threads": threads})
con.execute(f"CREATE TABLE s AS SELECT metric, entity, make_timestamp(time * 1000) AS datetime, value FROM read_csv('{table}', "
            "columns={'metric': 'VARCHAR', 'entity': 'VARCHAR', 'time': 'BIGINT', 'value': 'DOUBLE'}, header=true) ORDER BY metric, entity, datetime")
con.execute("CHECKPOINT")
print(json.dumps({"measure": "disk", "bytes": os.path.getsize(name)}))

hour = "date_trunc('hour', datetime)"
QUESTIONS = {
    "sql, averages": f"SELECT entity, {hour} AS h, avg(value) AS v FROM s WHERE metric = 'cpu_user' GROUP BY entity, h",
    "sql, maxima": f"SELECT metric, entity, {hour} AS h, max(value) AS v FROM s GROUP BY metric, entity, h",
    "sql, filter": f"SELECT count(*) AS v FROM s WHERE value > {threshold}",
    "sql, percentile": f"SELECT entity, {hour} AS h, quantile_cont(value, 0.95) AS v FROM s WHERE metric = 'latency' GROUP BY entity, h",
    "sql, top 10": "SELECT entity, max(value) AS v FROM s WHERE metric = 'cpu_user' GROUP BY entity ORDER BY v DESC LIMIT 10",
    "sql, export": "SELECT entity, datetime, value AS v FROM s WHERE metric = 'cpu_user'",
    "sql, export of all": "SELECT metric, entity, datetime, value AS v FROM s",
}


def timed(ask):
    start = time.perf_counter()
    ask()
    return time.perf_counter() - start


for measure, query in QUESTIONS.items():
    rows, total = con.execute(f"SELECT count(*), sum(v) FROM ({query})").fetchone()
    out = os.path.join(directory, "out.csv")

    def copy():
        con.execute(f"COPY ({query}) TO '{out}' (FORMAT csv, HEADER)")

    def fetch():
        con.execute(query).fetchall()

    # The faster of its two ways to give a small answer away; a large one is a CSV file on both sides.
    ways = [copy] if "export" in measure else [copy, fetch]
    best = None
    for way in ways:
        way()
        way()
        times = sorted(timed(way) for _ in range(asks))
        if best is None or times[len(times) // 2] < best[len(best) // 2]:
            best = times
    print(json.dumps({"measure": measure, "times": best, "rows": rows, "sum": total}))
