"""The tables and the words of the summary, explained: on the terminal, and as docs/tables.md."""

from collections.abc import Iterator

from vertumnus.records.columns import TABLES, TABLES_VERSION
from vertumnus.records.meanings import TABLE_MEANINGS, meaning
from vertumnus.report.terms import TERMS

HEAD = f"""\
# Tables and terms

Made by `vertumnus sql --schema --markdown`; a test keeps it so. Schema version {TABLES_VERSION}: a column
never changes its unit or meaning, so runs of other versions lie in the same tables, with NULL where they
lack a column. Durations are seconds (`_s`), the clock nanoseconds (`t_ns`), lengths tokens, shares 0..1;
undefined is NULL. Every table has `run_id`.
"""


def schema_rows() -> list[dict[str, str]]:
    """Return a row for each column of each table: table, column, type, meaning."""
    return [
        {
            "table": table,
            "column": column.name,
            "type": column.type,
            "meaning": meaning(table, column.name) or "",
        }
        for table, columns in TABLES.items()
        for column in columns
    ]


def shared_names() -> dict[str, list[str]]:
    """Return the columns besides the version that several tables have, with these tables."""
    found: dict[str, list[str]] = {}
    for row in schema_rows():
        found.setdefault(row["column"], []).append(row["table"])
    return {name: tables for name, tables in found.items() if len(tables) > 1 and name != "schema_version"}


def markdown() -> str:
    """Return the whole as docs/tables.md."""
    return "\n".join([HEAD, *_terms(), *_joins(), *_tables()]).rstrip() + "\n"


def _terms() -> Iterator[str]:
    yield "## Terms of the summary\n"
    yield "| term | meaning |"
    yield "|---|---|"
    for term, says in TERMS.items():
        yield f"| {term} | {says} |"
    yield ""


def _joins() -> Iterator[str]:
    yield "## Names that several tables have\n"
    yield "In a join they are qualified: `FROM runs JOIN requests USING (run_id)` knows `runs.cached_tokens`,"
    yield "the sum of a run, and `requests.cached_tokens`.\n"
    yield ", ".join(f"`{name}` ({', '.join(tables)})" for name, tables in shared_names().items()) + "\n"


def _tables() -> Iterator[str]:
    rows = schema_rows()
    for table, says in TABLE_MEANINGS.items():
        yield f"## {table}\n"
        yield f"{says}\n"
        yield "| column | type | meaning |"
        yield "|---|---|---|"
        for row in rows:
            if row["table"] == table:
                yield f"| {row['column']} | {row['type']} | {row['meaning'].replace('|', chr(92) + '|')} |"
        yield ""
