"""Writes docs/features.md from tests/features: one line for each test. Run it with `make features`.

The docstring of a test is the statement that it shows. Below the statement stand lines of their own: `Docs:` names the
page that tells more, and `Differs:` says why a feature is not what users of similar systems may expect.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parent
ROOT: Final = TESTS.parent.parent
PAGE: Final = ROOT / "docs" / "features.md"
_INTRODUCTION: Final = """\
# Features

Each line is shown by the test beside it. This page is made from `tests/features` with `make features`.
"""


@dataclass(frozen=True, slots=True)
class Feature:
    """One statement, and the test that shows it."""

    statement: str
    page: str
    test: str
    differs: str = ""


def read_features(path: Path) -> tuple[str, list[Feature]]:
    """The title of a file of tests, and its features in order. Raises `ValueError` for a test that lacks something."""
    tree = ast.parse(path.read_text())
    title = (ast.get_docstring(tree) or "").partition("\n")[0].rstrip(".")
    if not title:
        raise ValueError(f"{path.name} has no docstring: its first line is the title of the section.")
    tests = [each for each in tree.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    return title, [_feature(path, each) for each in tests if each.name.startswith("test_")]


def _feature(path: Path, test: ast.FunctionDef | ast.AsyncFunctionDef) -> Feature:
    statement: list[str] = []
    fields = {"Docs": "", "Differs": ""}
    field = ""
    for line in (ast.get_docstring(test) or "").splitlines():
        name, colon, rest = line.partition(": ")
        if colon and name in fields:
            field, fields[name] = name, rest
        elif field:
            fields[field] = f"{fields[field]} {line.strip()}".strip()
        else:
            statement.append(line.strip())
    said = " ".join(filter(None, statement))
    if not said or not fields["Docs"]:
        raise ValueError(f"{path.name}: {test.name} needs a docstring with its statement and a line `Docs: page.md`.")
    return Feature(said, fields["Docs"], f"{path.name}::{test.name}", fields["Differs"])


def render() -> str:
    """The page as it should be."""
    parts = [_INTRODUCTION]
    for path in sorted(TESTS.glob("test_*.py")):
        title, features = read_features(path)
        parts.append(f"## {title}\n\n| feature | page | test | as described? |\n|---|---|---|---|")
        parts[-1] += "".join(f"\n{_row(each)}" for each in features) + "\n"
    return "\n".join(parts)


def _row(feature: Feature) -> str:
    file, _, name = feature.test.partition("::")
    how = f"differs: {feature.differs}" if feature.differs else "yes"
    page = f"[{feature.page.partition('.md')[0]}]({feature.page})"
    cells = (feature.statement, page, f"[`{name}`](../tests/features/{file})", how)
    return f"| {' | '.join(each.replace('|', '∣') for each in cells)} |"


if __name__ == "__main__":
    PAGE.write_text(render())
    sys.stdout.write(f"{PAGE.relative_to(ROOT)} is written.\n")
