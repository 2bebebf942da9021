"""Every column is explained, and the page about them is the one that the code makes."""

from pathlib import Path

import pytest

from tests.support.recorded import a_changing_history, a_header, a_run, a_ulid
from vertumnus.cli import main
from vertumnus.commandline.exit_codes import BAD_INPUT, OK
from vertumnus.domain.errors import ConfigError
from vertumnus.records.columns import TABLES
from vertumnus.records.meanings import MEANINGS, TABLE_MEANINGS, meaning
from vertumnus.report.schema import markdown, shared_names
from vertumnus.report.store import query

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = [(table, column.name) for table, columns in TABLES.items() for column in columns]


@pytest.mark.parametrize("table", TABLES)
def test_every_column_has_a_meaning(table: str) -> None:
    """Add it to records/meanings.py, where the other columns of the table are."""
    missing = [column for of, column in COLUMNS if of == table and not meaning(of, column)]
    assert missing == []


def test_no_meaning_is_of_a_column_that_is_gone() -> None:
    """A key is a column of some table, or of the one that it names; every table has its line."""
    known = {column for _, column in COLUMNS} | {f"{table}.{column}" for table, column in COLUMNS}
    assert set(MEANINGS) <= known
    assert list(TABLE_MEANINGS) == list(TABLES)


def test_the_page_is_up_to_date() -> None:
    """Make it again with: vertumnus sql --schema --markdown > docs/tables.md."""
    assert (ROOT / "docs" / "tables.md").read_text(encoding="utf-8") == markdown()


def test_names_that_need_a_table_in_a_join_are_told(tmp_path: Path) -> None:
    """What DuckDB calls ambiguous in a join of runs and requests is on the page, and nothing else is."""
    a_run(tmp_path, a_ulid(1), a_changing_history(), a_header())
    told = {name for name, tables in shared_names().items() if {"runs", "requests"} <= set(tables)}
    join = "SELECT {} FROM runs JOIN requests USING (run_id)"
    names = {column for table, column in COLUMNS if table == "runs"} - {"schema_version"}
    query(tmp_path, join.format(", ".join(sorted(names - told))))
    query(tmp_path, join.format(", ".join(f"runs.{name}, requests.{name}" for name in sorted(told))))
    assert told == {"status", "input_tokens", "cached_tokens"}
    for name in told:
        with pytest.raises(ConfigError, match=r"(?i)ambiguous"):
            query(tmp_path, join.format(name))


@pytest.mark.parametrize("form", [(), ("--json",), ("--csv",), ("--markdown",)])
def test_the_schema_on_the_command_line(form: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """Each form has every column."""
    assert main(["sql", "--schema", *form]) == OK
    out = capsys.readouterr().out
    assert [column for _, column in COLUMNS if column not in out] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--schema", "SELECT 1"), "--schema: takes no statement"),
        (("SELECT 1", "--markdown"), "--markdown: has no effect without --schema"),
        (("--schema", "--parquet"), "--schema: found --parquet, allowed: --json, --csv, --markdown"),
    ],
)
def test_bad_flags(words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What was found, what is allowed."""
    assert main(["sql", *words]) == BAD_INPUT
    assert said in capsys.readouterr().err
