"""`denizen apply` as a person uses it: what it does, what it says, and what it does not do."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from denizen.agents.documents import KINDS
from denizen.cli.definitions_page import keys, render_reference
from denizen.cli.main import app
from tests import warm
from tests.cli.conftest import Run
from tests.fresh import ROOT, started, until

PAGE = ROOT / "docs" / "definitions.md"
PAT = "name: Pat\ninstructions: You plan.\nspaces: [Planning]\n"


def write(name: str, text: str) -> str:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return name


def test_a_file_is_applied_and_then_is_as_it_says(run: Run) -> None:
    """Plain text when piped: one line for each thing, and a sum."""
    file = write("agents.yaml", PAT)
    first, second = run("apply", file), run("apply", file)
    assert first.exit_code == second.exit_code == 0, first.output
    assert first.stdout == '+ space "Planning" created\n+ agent @pat created\nApplied: 2 created.\n'
    assert second.stdout == "= agent @pat unchanged\nApplied: 1 unchanged.\n"


def test_a_diff_shows_each_field(run: Run) -> None:
    """Old and new, and no secret."""
    tool = (
        "tools: [{kind: http, name: get, description: Get., url: 'https://example.com/', headers: {X-Key: hunter2}}]\n"
    )
    write("agents.yaml", PAT)
    run("apply", "agents.yaml")
    write("agents.yaml", PAT.replace("plan", "plan well") + tool)
    result = run("apply", "agents.yaml", "--diff")
    assert "~ agent @pat changed: instructions, tools.get.kind" in result.stdout
    assert "    instructions: 'You plan.' → 'You plan well.'\n" in result.stdout
    assert "    tools.get.headers.X-Key: nothing → '•••'\n" in result.stdout
    assert "hunter2" not in result.output


def test_a_dry_run_says_what_would_be(run: Run) -> None:
    """And does not do it."""
    file = write("agents.yaml", PAT)
    result = run("apply", file, "--dry-run")
    assert result.stdout.splitlines()[-1] == "Dry run: nothing was changed. It would be 2 created."
    assert run("apply", "--export", "pat").exit_code == 1
    assert "+ agent @pat created" in run("apply", file).stdout


def test_an_exported_agent_applies_as_the_same(run: Run) -> None:
    """It is a file like any other, also through a pipe."""
    run("apply", write("agents.yaml", PAT))
    text = run("apply", "--export", "pat").stdout
    assert text == "name: Pat\ninstructions: You plan.\nspaces:\n  - name: Planning\n"
    piped = CliRunner().invoke(app, ["apply", "-"], input=text)
    assert (piped.exit_code, piped.stdout) == (0, "= agent @pat unchanged\nApplied: 1 unchanged.\n")


def test_problems_of_all_files_are_told_and_nothing_is_applied(run: Run) -> None:
    """On stderr, with the status of a failure; before the house is even opened."""
    write("team/a.yaml", PAT)
    write("team/deep/b.json", json.dumps({"name": "Eli", "modell": "demo"}))
    result = run("apply", "team", "nope.yaml")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines() == [
        "nope.yaml: cannot be read: No such file or directory",
        "team/deep/b.json:1: modell: unknown key 'modell' (did you mean 'model'?)",
        "Nothing was applied: 2 problems [definitions_invalid]",
    ]
    assert not Path(str(Path.home()), "home").exists()
    write("team/deep/b.json", json.dumps({"name": "Eli", "spaces": ["Planning"]}))
    write("team/.hidden.yaml", "= ?")
    assert "Applied: 3 created." in run("apply", "team").stdout


def test_what_the_house_refuses_is_told_in_the_same_way(run: Run) -> None:
    """With the place of the document."""
    result = run("apply", write("a.yaml", "kind: space\nname: Ops\nmembers: [adda]\n"))
    assert result.exit_code == 1
    assert "a.yaml:1: members: There is no person, agent or service '@adda'. Did you mean @ada?" in result.stderr


def test_an_empty_folder_and_no_file_at_all_are_told(run: Run) -> None:
    Path("empty").mkdir()
    assert "empty: cannot be read: there is no .yaml" in run("apply", "empty").stderr


def test_the_unreadable_files_of_a_folder_are_named_with_the_mistakes_of_the_others(run: Run) -> None:
    """Only the folder was named, and nothing of its other files was told."""
    write("many/agents.yaml", PAT.replace("name", "nmae"))
    for name in ("one.yaml", "two.yaml"):
        Path("many", name).write_bytes(b"name: \xff\xfe")
    told = run("apply", "many").stderr.splitlines()
    assert told[:2] == ["many/one.yaml: is not UTF-8 text", "many/two.yaml: is not UTF-8 text"]
    assert told[2].startswith("many/agents.yaml:1: ")
    assert run("apply").exit_code == 2


def test_a_tool_that_is_not_loaded_is_told(run: Run) -> None:
    """It is applied all the same: another process may have it."""
    file = write("a.yaml", "name: Pat\ntools: [oven]\n")
    result = run("apply", file)
    assert (result.exit_code, "a.yaml:1: no tool 'oven' is loaded here." in result.stderr) == (0, True)
    write("kitchen.py", 'from denizen import tool\n\n@tool\ndef oven() -> str:\n    """Heat."""\n    return "hot"\n')
    assert run("apply", file, DENIZEN_TOOLS="kitchen.py").stderr == ""


@pytest.mark.timeout(900)
def test_it_is_applied_to_a_house_that_is_up(tmp_path: Path) -> None:
    """Two processes, one database; the agent that was made answers without a restart."""
    up = [*warm.denizen(), "up"]
    (tmp_path / "fern.yaml").write_text("name: Fern\ninstructions: You look after the garden.\nspaces: [Garden]\n")
    with started(up, ROOT, tmp_path / "home") as house:
        environment = {"HOME": str(tmp_path), "DENIZEN_HOME": str(house.home), "PATH": "/usr/bin:/bin"}
        applied = subprocess.run(
            [*warm.denizen(), "apply", str(tmp_path / "fern.yaml")],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "+ agent @fern created" in applied.stdout, applied.stderr
        garden = house.space("Garden")
        said = house.ask(garden["id"], "Please repeat: the tomatoes are ripe")
        until(lambda: len(house.said(garden["id"])) >= 2, 100)
        assert "the tomatoes are ripe" in said[-1]
        assert said[-1].startswith("Fern: ")


def test_the_page_about_definitions_is_up_to_date(run: Run) -> None:
    """It is written by `denizen apply --reference > docs/definitions.md`, never by hand."""
    assert PAGE.read_text() == render_reference(), "run: denizen apply --reference > docs/definitions.md"
    assert run("apply", "--reference").stdout == render_reference()


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_has_a_meaning(kind: str) -> None:
    """One without words of its own needs some in `MEANINGS`."""
    listed = list(keys(KINDS[kind]))
    assert set(KINDS[kind].model_fields) <= {path for path, _, _ in listed}
    assert [path for path, _, meaning in listed if not meaning] == []
