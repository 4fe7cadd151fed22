"""Texts that people read use plain words.

Each pattern was common in our labels, and readers stumbled over it. CONTRIBUTING.md says what to write instead.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
UNCLEAR: Final = re.compile(
    r"""
    \bwhoever\b(?!\ opens\ this\ link)      # name who: "members", "people who"
    | \bwhom\b
    | \bthis\ house\b | \bthe\ house\b      # "the server"
    | \blives?\ here\b
    | \bany\ more\b | \bno\ more\b          # "no longer", "expired", "revoked"
    | \bunbidden\b
    | \bnothing\ was\b                      # "No messages yet."
    | \bit\ is\ so\b | \bset\ it\ so\b
    | \bcame\ to\b
    | \btrue\ no\ more\b
    | \bkept\ sealed\b
    | \bmay\ think\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
NOT_A: Final = re.compile(r"(?<!here )\b(is|are) no (?!longer\b)[a-z]+ |\bshall\b|\bcannot be defined so\b")
"""\"is no JSON\": write \"is not JSON\"."""
UNCLEAR_IN_COMMANDS: Final = re.compile(
    r"\b(makes|opens|keeps) one\b|\bshown this once\b|^good once\b|\bin no (space|panel)\b", re.IGNORECASE
)
"""An empty list says what is missing, and then which command fills it: "No tokens yet. Create one with …"."""
_OUTCOME: Final = re.compile(r"\bnothing was( (applied|changed|forgotten|written)\b|\.)", re.IGNORECASE)
"""What a command did not do: no empty list."""
_PRINTING: Final = ("print", "print_list", "tell", "add_row", "echo")
OF_PAGES: Final = re.compile(r"\bwhoever\b|\bunbidden\b|\bthe house\b|\bany more\b", re.IGNORECASE)
"""Those that no sentence of a page needs."""
_CODE: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_TEXT: Final = re.compile(r'"[^"\n]*"|`[^`]*`|>[^<>{}();=]*<|^\s*[A-Z][^<>{}=;()]*$', re.MULTILINE)
_TEMPLATES: Final = "templates.ts"
"""Instructions of example agents: what a model reads, in a voice of its own."""


def test_labels_of_the_web_client() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {text.strip()}"
        for path in sorted((ROOT / "web/src").rglob("*.ts*"))
        if path.name not in ("schema.d.ts", _TEMPLATES) and ".test." not in path.name
        for text in _texts(path.read_text())
        if UNCLEAR.search(text)
    ]
    assert found == []


def test_help_of_the_command_line() -> None:
    """The page about all commands is made from their help."""
    lines = (ROOT / "docs/cli.md").read_text().splitlines()
    assert [line for line in lines if UNCLEAR.search(line) or NOT_A.search(line)] == []


def test_the_pages() -> None:
    """Every document for people, and the features that tests state."""
    pages = [*sorted((ROOT / "docs").glob("*.md")), *(ROOT / name for name in ("README.md", "SECURITY.md"))]
    lines = [(page.name, line) for page in pages for line in page.read_text().splitlines()]
    found = [f"{name}: {line}" for name, line in lines if OF_PAGES.search(line)]
    assert len(pages) > 50
    assert found == []


def test_errors() -> None:
    """Every literal text of an exception that is raised in the package."""
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in sorted((ROOT / "src/denizen").rglob("*.py"))
        for line, text in _raised(ast.parse(path.read_text()))
        if UNCLEAR.search(text) or NOT_A.search(text)
    ]
    assert found == []


def test_what_commands_print() -> None:
    """Every literal text that the command line prints, in a sentence or in a table."""
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in sorted((ROOT / "src/denizen/cli").rglob("*.py"))
        for line, text in _printed(ast.parse(path.read_text()))
        if any(unclear.search(_OUTCOME.sub("", text)) for unclear in (UNCLEAR, NOT_A, UNCLEAR_IN_COMMANDS))
    ]
    assert found == []


def test_the_http_api_and_the_settings() -> None:
    """Summaries and descriptions of the OpenAPI document are in the comments of the web client's types."""
    page = (ROOT / "docs/settings.md").read_text()
    comments = re.findall(r"/\*\*.*?\*/", (ROOT / "web/src/denizen/schema.d.ts").read_text(), re.DOTALL)
    told = [" ".join(each.replace("*", " ").split()) for each in comments if "@example" not in each]
    found = [each for each in [*page.splitlines(), *told] if UNCLEAR.search(each) or NOT_A.search(each)]
    assert len(told) > 500
    assert found == []


def _raised(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            for part in ast.walk(node.exc):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.lineno, part.value


def _printed(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PRINTING:
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.lineno, part.value


def _texts(source: str) -> Iterator[str]:
    yield from _TEXT.findall(_CODE.sub("", source))
