"""The documents tell the truth: their code runs, and their links lead somewhere."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urlsplit

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
MISSPELT = {"py", "python3", "py3", "pycon", "ipython"}


def name_in_repository(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_in_repository)
def test_the_code_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every Python block of a page runs, one after the other, as the program a reader would type."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DENIZEN_HOME", str(tmp_path / "denizen"))
    run_page(path.read_text(), str(path), monkeypatch)


def test_the_links_lead_somewhere() -> None:
    """Every link to another file of the repository has that file at its end."""
    missing = [
        f"{name_in_repository(path)} links to {target}, which is not there"
        for path in DOCUMENTS
        for target in linked_files(path.read_text())
        if not (path.parent / target).exists()
    ]
    assert not missing, "\n".join(missing)


def run_page(text: str, filename: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the blocks in order and in one namespace. `await` may stand at the top level, on one loop for all blocks."""
    program = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", program)
    with asyncio.Runner() as runner:
        for token in python_blocks(text):
            code = compiled(token, filename)
            if "no-run" not in token.info.split():
                result = eval(code, program.__dict__)
                if inspect.iscoroutine(result):
                    runner.run(result)


def python_blocks(text: str) -> Iterator[Token]:
    """The fenced blocks marked `python` or `python no-run`. A mark that looks like it and is not is an error."""
    for token in MarkdownIt().parse(text):
        language, *marks = token.info.split() or [""]
        assert language.lower() not in MISSPELT, f"write ```python instead of ```{language}"
        if language.lower() == "python":
            assert language == "python", f"write ```python instead of ```{language}"
            assert marks in ([], ["no-run"]), f"unknown mark on a block: ```{token.info}"
            yield token


def compiled(token: Token, filename: str):
    """The block as code whose line numbers are those of the page."""
    assert token.map is not None
    tree = ast.increment_lineno(ast.parse(token.content, filename), token.map[0] + 1)
    return compile(tree, filename, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


def linked_files(text: str) -> Iterator[str]:
    """The paths of links and pictures that lead to a file and not to the web or within the page."""
    for token in MarkdownIt().parse(text):
        for part in token.children or []:
            address = urlsplit(str(part.attrGet("href") or part.attrGet("src") or ""))
            if address.path and not address.scheme and not address.netloc:
                yield unquote(address.path)


def test_blocks_share_names_and_may_await(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one block defines, the next may use; a wrong claim in a page fails, at its line."""
    page = "```python\nimport asyncio\nn = await asyncio.sleep(0, 1)\n```\n\n```python\nassert n == 2\n```\n"
    with pytest.raises(AssertionError) as failure:
        run_page(page, "page.md", monkeypatch)
    assert failure.traceback[-1].lineno == 6


def test_a_block_marked_no_run_is_only_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may need a key or a network, but it has to be Python."""
    run_page("```python no-run\nmissing()\n```\n", "page.md", monkeypatch)
    with pytest.raises(SyntaxError):
        run_page("```python no-run\nx = =\n```\n", "page.md", monkeypatch)


@pytest.mark.parametrize("info", ["py", "Python", "python norun"])
def test_no_block_is_passed_over_because_of_its_spelling(info: str) -> None:
    """A block that only looks as if it were tested is an error."""
    with pytest.raises(AssertionError, match="```"):
        list(python_blocks(f"```{info}\n1\n```\n"))


def test_links_to_files_are_found_and_others_left_alone() -> None:
    """Anchors and the web are not ours to check."""
    page = "[a](b.md#part) ![c](d%20e.png) [f](https://example.com/g.md) [h](#i) <mailto:j@example.com>"
    assert list(linked_files(page)) == ["b.md", "d e.png"]


def test_every_page_is_found_from_the_first() -> None:
    """A page that nobody is led to is read by nobody."""
    docs = ROOT / "docs"
    found = {*linked_files((docs / "README.md").read_text()), "README.md"}
    assert [path.name for path in sorted(docs.glob("*.md")) if path.name not in found] == []


@pytest.mark.parametrize("page", ["invariants.md", "threats.md"])
def test_the_tests_that_a_page_names_are_there(page: str) -> None:
    named = re.findall(r"`((?:tests|bench)/[^`]*)`", (ROOT / "docs" / page).read_text())
    assert len(named) > 10
    assert [each for each in named if not (ROOT / each).exists()] == []


def test_the_readme_draws_the_tree_as_it_is() -> None:
    """Every room of the package, every folder beside it that is ours to explain, and every command."""
    from denizen.cli.main import COMMANDS

    drawn = (ROOT / "README.md").read_text().partition("## The tree")[2].partition("```\n")[2].partition("```")[0]
    rooms = [
        each.name
        for each in (ROOT / "src" / "denizen").iterdir()
        if not each.name.startswith("__") and each.name != "py.typed"
    ]
    folders = ["bench", "deploy", "examples", "docs", "tests"]
    told = {word.strip("(),;:") for word in drawn.split()}
    missing = [each for each in [*rooms, *folders] if (each if "." in each else f"{each}/") not in told]
    assert missing + [each.name for each in COMMANDS if each.name not in told] == []


def test_the_files_to_change_together_are_there() -> None:
    table = (ROOT / "CONTRIBUTING.md").read_text().partition("## Files to change together")[2].partition("\n## ")[0]
    named = re.findall(r"`([a-z_]+/[a-z_/]+(?:\.py)?)`", table)
    assert len(named) > 15
    assert [each for each in named if not (ROOT / "src" / "denizen" / each).exists()] == []
    assert [each for each in re.findall(r"`(\w+\.ts)`", table) if not list((ROOT / "web" / "src").rglob(each))] == []


def test_what_contributing_names_is_there() -> None:
    """Each module that decides something, and the function or class in it."""
    table = (ROOT / "CONTRIBUTING.md").read_text().partition("## Where is it decided?")[2].partition("\n## ")[0]
    named = re.findall(r"`([a-z_]+/[a-z_]+\.py)`(?: \(`(\w+)`\))?", table)
    assert len(named) > 15
    for module, what in named:
        code = (ROOT / "src" / "denizen" / module).read_text()
        assert re.search(rf"^(?:class|def|async def) {what}\b" if what else "", code, re.MULTILINE), (module, what)
