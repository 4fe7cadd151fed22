"""`denizen forget`: nothing without a yes, a receipt that says how much, and never what it was."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from denizen import Runtime, reply, scripted
from denizen.cli.forget import show
from denizen.cli.home import make_home
from denizen.cli.main import app
from denizen.first_start import set_up_home
from denizen.server.shapes.forgetting import receipt_out
from denizen.settings.loading import load
from tests.cli.conftest import Run
from tests.properties.house import everything

pytestmark = pytest.mark.usefixtures("ready_home")

T = TypeVar("T")
SECRET = "Quentin hid the violet xylophone beneath seventeen crooked umbrellas."


def in_house(work: Callable[[Runtime], Awaitable[T]], **options: Any) -> T:
    """Do this with the runtime of the house, as whoever wrote a program for it would."""

    async def run() -> T:
        settings = load().settings
        make_home(settings)
        async with Runtime(settings.database_url, **options) as denizen:
            return await work(denizen)

    return asyncio.run(run())


def stored() -> str:
    return str(in_house(lambda denizen: denizen.db.read(everything)))


@pytest.fixture
def message_id(run: Run) -> str:
    """Sam has told Ada something in the cellar, and she has repeated it. There are two attics."""

    async def live(denizen: Runtime) -> str:
        world = await set_up_home(denizen, "Noor")
        ada = await denizen.people.find("ada", organization=world.owner.organization_id)
        await denizen.agents.edit(ada.id, model="mine")
        sam = await denizen.people.create("Samantha Quill", handle="sam")
        cellar = await denizen.spaces.create("Cellar", [world.owner, sam, ada])
        await denizen.spaces.create("Attic", [world.owner])
        await denizen.spaces.create("Attic", [world.owner, sam])
        posted = await denizen.spaces.post(cellar, sam, SECRET)
        await denizen.run_until_idle()
        return posted.id

    return in_house(live, models={"mine": scripted(reply(f"So: {SECRET}"), "Repeated it.")})


def answering(typed: str, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["forget", *arguments], input=typed)


def test_a_dry_run_says_how_much_and_changes_nothing(run: Run, message_id: str) -> None:
    before = stored()
    told = run("forget", "message", message_id, "--dry-run")
    assert told.exit_code == 0, told.output
    assert 'Would forget message 1 in "Cellar", Samantha Quill: Quentin hid the violet' in told.stdout
    assert "messages" in told.stdout
    assert "would be emptied or changed. Nothing was." in told.stdout
    assert stored() == before


def test_a_message_is_forgotten_with_a_receipt(run: Run, message_id: str) -> None:
    expected = json.loads(run("forget", "message", message_id, "--dry-run", "--json").stdout)
    told = json.loads(run("forget", "message", message_id, "--yes", "--json").stdout)
    assert "xylophone" not in stored()
    (receipt,) = in_house(lambda denizen: denizen.organizations.receipts())
    assert (told["id"], told["subject_id"], told["by_id"]) == (receipt.id, message_id, receipt.by_id)
    assert told["removed"] == receipt.removed == expected["removed"]
    assert (expected["id"], expected["dry_run"], told["dry_run"]) == (None, True, False)
    assert told["removed"]["messages"] == 2
    again = json.loads(run("forget", "message", message_id, "--yes", "--json").stdout)
    assert again == told


@pytest.mark.parametrize("typed", ["n\n", "\n", ""], ids=["no", "nothing", "nobody there"])
def test_without_a_yes_nothing_is_forgotten(run: Run, message_id: str, typed: str) -> None:
    before = stored()
    told = answering(typed, "message", message_id)
    assert (told.exit_code, told.stdout) == (1, "")
    assert "Would forget message 1" in told.stderr
    assert "Nothing was forgotten." in told.stderr
    assert stored() == before


def test_with_a_yes_it_is_and_the_receipt_does_not_say_what_it_was(run: Run, message_id: str) -> None:
    told = answering("y\n", "message", message_id)
    assert told.exit_code == 0
    assert told.stdout.startswith(f"Forgot a message  {message_id}\n")
    assert "entries of agents' logs" in told.stdout
    assert "Quentin" not in told.stdout
    assert "xylophone" not in stored()


def test_a_person_is_forgotten_by_handle(run: Run, message_id: str) -> None:
    told = run("forget", "person", "@sam", "--yes")
    assert told.exit_code == 0, told.output
    left = stored()
    assert "xylophone" not in left
    assert "Samantha" not in left


def test_a_space_is_forgotten_by_name_or_id(run: Run, message_id: str) -> None:
    assert run("forget", "space", "Cellar", "--yes").exit_code == 0
    assert "xylophone" not in stored()
    several = run("forget", "space", "Attic", "--yes")
    assert several.exit_code == 1
    said = " ".join(several.stderr.split())
    assert '2 spaces are called "Attic"' in said
    first = said.partition("by its id: ")[2].split(",")[0]
    assert json.loads(run("forget", "space", first, "--yes", "--json").stdout)["subject_id"] == first
    assert run("forget", "space", "Attic", "--yes").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("message", "0198c0de"), "0198c0de"),
        (("person", "@nobody"), "nobody"),
        (("person", "@ada"), "Agents cannot be forgotten like people"),
        (("space", "Nowhere"), "Nowhere"),
    ],
    ids=["message", "person", "agent", "space"],
)
def test_what_is_not_there_is_said(run: Run, message_id: str, arguments: tuple[str, ...], says: str) -> None:
    told = run("forget", *arguments, "--yes")
    assert (told.exit_code, told.stdout) == (1, "")
    assert says in " ".join(told.stderr.split())


def test_also_replies_takes_the_answers_too(run: Run, message_id: str) -> None:
    assert "Repeated it." in stored()
    assert run("forget", "message", message_id, "--also-replies", "--yes").exit_code == 0
    assert "Repeated it." not in stored()


def test_the_receipt_is_drawn_within_the_width(run: Run, message_id: str) -> None:
    receipt = in_house(lambda denizen: denizen.spaces.forget_message(message_id, dry_run=True))  # pyright: ignore[reportArgumentType]
    out = io.StringIO()
    show(Console(width=60, file=out), "something", receipt_out(receipt, dry_run=True))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 60
    assert any(line.split() == ["messages", "2"] for line in lines)
