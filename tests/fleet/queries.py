"""Runs the queries of report/docs/fleet.md over a data set that `rep export --format parquet` wrote.

    queries.py duckdb|spark|clickhouse FLEET.md DIRECTORY [--json]

The directory has the data set `fleet`. Prints the answers as tables, or as JSON: a list of lists of rows.
"""

import datetime
import json
import os
import re
import sys


def blocks(page):
    """Returns the set-up of each engine, and the queries, with the lines before them."""
    text = open(page, encoding="utf-8").read()
    setups, queries = {}, []
    for before, block in re.findall(r"([^\n]*)\n\n```sql\n(.*?)```", text, re.S):
        mark = re.match(r"-- (\w+)\n", block)
        if mark:
            setups[mark.group(1)] = block[mark.end() :]
        else:
            queries.append((before.rstrip(":"), block.strip().rstrip(";")))
    return setups, queries


def statements(block):
    return [part.strip() for part in re.split(r";\s*\n|;\s*$", block) if part.strip()]


def duckdb_rows():
    import duckdb

    connection = duckdb.connect()
    return lambda sql: connection.execute(sql).fetchall()


def spark_rows():
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false")
    session = session.config("spark.log.level", "ERROR").getOrCreate()
    return lambda sql: [tuple(row) for row in session.sql(sql).collect()]


def clickhouse_rows():
    from chdb import session

    connection = session.Session()

    def rows(sql):
        answer = str(connection.query(sql, "JSONCompactEachRow"))
        return [tuple(json.loads(line)) for line in answer.splitlines()]

    return rows


ENGINES = {"duckdb": duckdb_rows, "spark": spark_rows, "clickhouse": clickhouse_rows}


def plain(value):
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return float(value)


def main():
    engine, page, directory = sys.argv[1:4]
    setups, queries = blocks(page)
    os.chdir(directory)
    run = ENGINES[engine]()
    for statement in statements(setups[engine]):
        run(statement)
    answers = [(title, [[plain(cell) for cell in row] for row in run(sql)]) for title, sql in queries]
    if "--json" in sys.argv:
        print(json.dumps([rows for _, rows in answers]))
        return
    for title, rows in answers:
        print(f"{title}:")
        for row in rows:
            print("  " + " | ".join(f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in row))
        print()


if __name__ == "__main__":
    main()
