"""The commands that speak the HTTP API, and what they ask of it, without a server and with one."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer import Context
from typer.testing import CliRunner

from denizen.cli.api import find
from denizen.cli.home import kept_token
from denizen.cli.main import COMMANDS, app, command_of
from denizen.client import Client
from denizen.errors import DenizenError, RequestRefused
from denizen.ids import SpaceId
from denizen.inbox import parking
from denizen.settings.shape import Settings
from denizen.storage.database import Tx
from tests import warm
from tests.cli.chat.houses import House, open_house
from tests.cli.conftest import Run
from tests.servers import free_port


@pytest.fixture
async def house(ready_sqlite_url: str) -> AsyncGenerator[House]:
    async with open_house(ready_sqlite_url) as house:
        yield house


@pytest.fixture
async def client(house: House) -> AsyncGenerator[Client]:
    async with house.client() as client:
        yield client


def refusal(error: DenizenError) -> str:
    """The code of an error, here or there."""
    return error.problem if isinstance(error, RequestRefused) else error.code


async def test_an_agent_is_made_changed_and_deleted(client: Client, house: House) -> None:
    fields = {"instructions": "You are terse.", "cycle": {"max_steps": 5}, "spaces": [house.kitchen.id]}
    made = await client.create_agent("Cleo", fields)  # type: ignore[arg-type]
    assert (made.handle, made.status, made.cycles) == ("cleo", "sleeping", 0)
    assert made.definition == {"instructions": "You are terse.", "cycle": {"max_steps": 5}}
    assert "cleo" in {each.handle for each in (await client.space(house.kitchen.id)).members}
    changes = {"name": "Cleo B", "cycle": {"token_budget": 9_000}, "instructions": None}
    changed = await client.edit_agent("@cleo", changes)  # type: ignore[arg-type]
    assert (changed.name, changed.version > made.version) == ("Cleo B", True)
    assert changed.definition == {"cycle": {"max_steps": 5, "token_budget": 9_000}}
    assert [each.handle for each in await client.agents()] == ["ada", "bo", "cleo"]
    assert (await client.suspend_agent("@cleo")).status == "suspended"
    assert (await client.resume_agent(made.id)).status == "sleeping"
    await client.delete_agent("@cleo")
    assert [each.handle for each in await client.agents()] == ["ada", "bo"]


async def test_who_changed_what_is_told(client: Client, house: House) -> None:
    made = await client.create_agent("Cleo", {"instructions": "You are terse."})
    await client.edit_agent("@cleo", {"name": "Cleo B"})
    token = await client.create_token("A token")
    await client.revoke_token(token.token.id)
    page = await client.audit(limit=3)
    assert [each.action for each in page.entries] == ["revoke_token", "create_token", "edit_agent"]
    first = (await client.audit(before=page.next)).entries[0]
    assert (first.action, first.subject_id, first.subject and first.subject.name) == ("create_agent", made.id, "Cleo B")
    assert all(each.by is None for each in page.entries), (
        "whoever works on the server's machine is nobody in particular"
    )
    agents = [each.action for each in (await client.audit(kind="agents")).entries]
    assert agents == ["edit_agent", "create_agent", "create_agent", "create_agent"], "Cleo, and two from Python"


async def test_an_owner_opens_a_private_space(client: Client, house: House) -> None:
    sam = await house.runtime.people.create("Sam", organization=house.noor.organization_id)
    den = await house.runtime.spaces.create("Den", [sam], private=True, organization=house.noor.organization_id)
    opened = await client.open_private_space(den.id, "A complaint has come.")
    assert (opened.space_id, opened.reason) == (den.id, "A complaint has come.")
    assert "A complaint has come." in (await house.runtime.spaces.transcript(den))[0]
    with pytest.raises(DenizenError) as refused:
        await client.open_private_space(house.kitchen.id, "Why not?")
    assert refusal(refused.value) == "invalid_input"


async def test_an_agent_that_cannot_think_is_shown_and_tried_again(client: Client, house: House) -> None:
    def reject_key(tx: Tx) -> None:
        parking.park(tx, house.ada.id, "key", provider="OpenAI")

    await house.runtime.spaces.post(house.room, house.noor, "Hello?")
    await house.runtime.run_until_idle()
    await house.runtime.db.write(reject_key)
    ada, bo = await client.agents()
    assert (ada.trouble and ada.trouble.cause, bo.trouble) == ("key", None)
    assert (await client.agent("@ada")).trouble == ada.trouble
    members = (await client.space(house.room.id)).members
    assert [each.trouble for each in members] == [None, ada.trouble]
    assert (await client.try_again("@ada")).handle == "ada"
    parked = await house.runtime.db.read(parking.get, house.ada.id)
    assert parked is None or parked.until == 0, "it may think again at once"


async def test_what_cannot_be_is_refused_with_the_same_code(client: Client) -> None:
    with pytest.raises(RequestRefused) as refused:
        await client.agent("@nobody")
    assert refusal(refused.value) == "not_found"
    with pytest.raises(DenizenError) as refused:
        await client.create_agent("Ada")
    assert refusal(refused.value) == "handle_taken"
    with pytest.raises(DenizenError, match="max_steps") as refused:
        await client.edit_agent("@ada", {"cycle": {"max_stps": 3}})
    assert refusal(refused.value) in ("invalid_input", "invalid_request")


async def test_a_space_is_opened_changed_and_left(client: Client) -> None:
    garden = await client.create_space("Garden", ["@ada"], private=True)
    assert [(each.handle, each.role) for each in garden.members] == [("noor", "owner"), ("ada", "member")]
    assert (garden.private, garden.last_seq, garden.unread) == (True, 0, 0)
    assert (await client.add_member(garden.id, "@bo", attention="mentions")).attention == "mentions"
    assert (await client.change_member(garden.id, "@bo", attention="none")).attention == "none"
    await client.remove_member(garden.id, "@bo")
    assert (await client.change_space(garden.id, name="Big garden", private=False)).name == "Big garden"
    assert (garden.floor, garden.agent_run_limit) == ("one", 12)
    changed = await client.change_space(garden.id, floor="all", agent_run_limit=2)
    assert (changed.name, changed.floor, changed.agent_run_limit) == ("Big garden", "all", 2)
    made = await client.create_space("Attic", floor="addressed", agent_run_limit=0)
    assert (made.floor, made.agent_run_limit) == ("addressed", 0)
    with pytest.raises(DenizenError) as refused:
        await client.change_space(garden.id, floor="everyone")
    assert refusal(refused.value) == "invalid_input"
    assert (await find(client, "big gar")).id == garden.id
    assert (await find(client, garden.id)).private is False
    with pytest.raises(DenizenError) as refused:
        await client.remove_member(garden.id, "@bo")
    assert refusal(refused.value) == "not_found"


async def test_agents_that_have_stopped_are_let_go_on(client: Client, house: House) -> None:
    attic = await client.create_space("Attic", ["@ada", "@bo"], floor="all", agent_run_limit=1)
    for text in ("One", "Two"):
        await house.runtime.spaces.post(SpaceId(attic.id), house.ada, text)
    assert (await client.space(attic.id)).stopped
    assert not (await client.let_agents_go_on(attic.id)).stopped


async def test_what_is_unread_is_told_with_what_mentions_one(client: Client, house: House) -> None:
    """In the list and of one space; of a space that one has read, nothing."""
    for text in ("@noor, tea?", "Or coffee?", "@noor?"):
        await house.runtime.spaces.post(house.kitchen.id, house.ada, text)
    listed = {each.id: each for each in await client.spaces()}
    one = await client.space(house.kitchen.id)
    assert [(each.unread, each.unread_mentions) for each in (listed[house.kitchen.id], one)] == [(3, 2), (3, 2)]
    assert listed[house.cellar.id].unread_mentions == 0


async def test_what_is_sent_is_said_and_what_happens_is_told(client: Client, house: House) -> None:
    first = await client.post(house.cellar.id, "Is anyone here?", key="0190a3f5-0000-7000-8000-000000000001")
    again = await client.post(house.cellar.id, "Is anyone here?", key="0190a3f5-0000-7000-8000-000000000001")
    assert (first.seq, first.author.name, again.id) == (1, "Noor", first.id)
    answer = await client.post(house.cellar.id, "Nobody.", reply_to=first.id)
    assert [(each.text, each.reply_to) for each in await client.messages(house.cellar.id)] == [
        ("Is anyone here?", None),
        ("Nobody.", first.id),
    ]
    assert [each.id for each in await client.messages(house.cellar.id, limit=1)] == [answer.id]
    await house.runtime.agents.suspend(house.ada)
    told = await client.trigger("@ada", "builds", "It broke.", data={"job": 7}, id="job-7")
    assert (await client.trigger("@ada", "builds", "It broke.", data={"job": 7}, id="job-7")).id == told.id
    (event,) = await house.runtime.minds.inbox(house.ada)
    assert (event.text, event.payload["data"]) == ("It broke.", {"job": 7})


async def test_an_agent_is_looked_into(client: Client, house: House) -> None:
    await house.runtime.spaces.post(house.room, house.noor, "Hello!")
    await house.runtime.run_until_idle()
    await house.runtime.notes.set(house.ada, "tea", "Milk.")
    mind = await client.mind("@ada")
    assert (mind.handle, mind.status, mind.cycles, mind.model) == ("ada", "sleeping", 1, house.ada.definition.model)
    assert [(each.key, each.text) for each in mind.notes] == [("tea", "Milk.")]
    assert [part.part for part in mind.window.parts] == ["self", "tools", "recent", "free"]
    assert [(each.number, each.outcome) for each in mind.last_cycles] == [(1, "acted")]
    first, second = await client.replay("@ada", 1)
    assert (first.step, second.step, second.messages[:-2]) == (0, 1, first.messages)
    assert await client.replay("@ada", 1, step=1) == [second]
    (again,) = await client.rethink("@ada", 1, "demo", step=0)
    assert (again.step, again.model, again.difference[1]) == (0, "demo", "+++ demo")
    fork = await client.fork_agent("@ada", at=1)
    assert (fork.handle, fork.name, fork.cycles) == ("ada-2", "Ada", 1)
    with pytest.raises(DenizenError) as refused:
        await client.replay("@ada", 7)
    assert refusal(refused.value) in ("not_found", "invalid_input")


async def test_keys_tokens_and_webhooks_are_looked_after(client: Client, house: House) -> None:
    await client.set_key("CRM_TOKEN", "swordfish-12345678", whose="@noor")
    await client.set_key("OPENAI_API_KEY", "sk-0123456789abcdef")
    listed = {(each.name, each.whose, each.hint) for each in await client.keys()}
    assert listed == {("CRM_TOKEN", "me", "…5678"), ("OPENAI_API_KEY", "organization", "…cdef")}
    await client.delete_key("CRM_TOKEN", whose="me")
    assert [each.name for each in await client.keys()] == ["OPENAI_API_KEY"]

    made = await client.create_token("Backup", role="member", expires_at=datetime(2096, 1, 5, tzinfo=UTC))
    assert (made.token.role, made.token.expires_at) == ("member", datetime(2096, 1, 5, tzinfo=UTC))
    await client.create_token("Its own", entity="@ada")
    assert [(each.handle, each.name) for each in await client.tokens(everyone=True)] == [
        ("noor", "test"),
        ("noor", "Backup"),
        ("ada", "Its own"),
    ]
    assert [each.name for each in await client.tokens("@ada")] == ["Its own"]
    assert (await client.rotate_token(made.token.id)).secret != made.secret
    await client.revoke_token(made.token.id)
    assert [each.revoked_at is None for each in await client.tokens("@noor")] == [True, False]
    assert (await client.create_login()).url.startswith("http://127.0.0.1:")

    hook = await client.create_webhook("@ada", "GitHub", scheme="github", urgent=True)
    assert (hook.webhook.path, hook.secret[:8]) == (f"/hooks/{hook.webhook.id}", "dz_hook_")
    await client.revoke_webhook(hook.webhook.id)
    (closed,) = await client.webhooks("@ada")
    assert (closed.urgent, closed.revoked_at is None) == (True, False)


async def test_definitions_are_applied_whole_or_not_at_all(client: Client, house: House) -> None:
    tool: dict[str, Any] = {"kind": "http", "name": "look", "description": "Look.", "url": "https://example.com"}
    tool["headers"] = {"Authorization": "Bearer ${CRM_TOKEN}"}
    cleo: dict[str, Any] = {"name": "Cleo", "instructions": "You are terse.", "spaces": ["Kitchen"], "tools": [tool]}
    documents = [("a.yaml:1", {"kind": "person", "name": "Sam"}), ("a.yaml:4", cleo)]
    tried = await client.apply(documents, dry_run=True)
    assert (tried.dry_run, [(each.name, each.action) for each in tried.changes]) == (
        True,
        [("sam", "created"), ("cleo", "created")],
    )
    assert "cleo" not in {each.handle for each in await client.agents()}
    await client.apply(documents)
    assert "cleo" in {each.handle for each in (await client.space(house.kitchen.id)).members}
    again = await client.apply([("b.yaml:1", await client.document("@cleo"))])
    assert [each.action for each in again.changes] == ["unchanged"]
    tool["headers"] = {"Authorization": "Bearer abcdefgh12345678"}
    done = await client.apply([("a.yaml:4", cleo)])
    assert [(each.path, each.new) for each in done.changes[0].fields] == [("tools.look.headers.Authorization", "•••")]
    wrong = [("a.yaml:1", {"kind": "person", "name": "Zoe"}), ("a.yaml:4", {"name": "Bo", "mode": "demo"})]
    with pytest.raises(DenizenError, match=r"a\.yaml:4: .*did you mean 'model'") as refused:
        await client.apply(wrong)
    assert refusal(refused.value) == "definitions_invalid"
    with pytest.raises(DenizenError):
        await client.entity("@zoe")


async def test_something_is_forgotten(client: Client, house: House) -> None:
    said = await client.post(house.cellar.id, "The violet xylophone.")
    assert (await client.message(said.id)).text == "The violet xylophone."
    tried = await client.forget("message", said.id, dry_run=True)
    assert (tried.id, tried.dry_run, tried.removed["messages"]) == (None, True, 1)
    done = await client.forget("message", said.id)
    assert (done.subject_id, done.by_id, done.removed) == (said.id, house.noor.id, tried.removed)
    assert [each.id for each in await client.spaces_named("Cellar")] == [house.cellar.id]
    for kind, id in (("message", "nothing"), ("person", "@nobody"), ("space", "nowhere")):
        with pytest.raises(DenizenError) as refused:
            await client.forget(kind, id)
        assert refusal(refused.value) == "not_found"
    with pytest.raises(DenizenError, match="needs an owner"):
        await client.forget("person", "@noor")


async def test_lives_go_out_and_come_in(client: Client, house: House, tmp_path: Path) -> None:
    await house.runtime.spaces.post(house.room, house.noor, "A line\u2028that some take for two.")
    await house.runtime.run_until_idle()
    file = tmp_path / "ada.jsonl"
    file.write_text("".join([line async for line in client.export_agent("@ada")]))
    made = await client.import_file(file, handle="ada-2", name="Ada again")
    assert (made.kind, made.handle, made.name, made.counts["cycle"]) == ("agent", "ada-2", "Ada again", 1)
    assert (await client.agent("@ada-2")).status == "suspended"
    file.write_text("".join([line async for line in client.export_space(house.room.id)]))
    made = await client.import_file(file, name="The room again")
    (there,) = await client.spaces_named("The room again")
    assert (await client.messages(there.id, after=0, limit=1))[0].text == "A line\u2028that some take for two."
    file.write_text(file.read_text().replace('"row":"message"', '"row":"ghost"', 1))
    with pytest.raises(DenizenError, match="knows no such kind of line") as refused:
        await client.import_file(file)
    assert refusal(refused.value) == "import_invalid"
    with pytest.raises(DenizenError) as refused:
        _ = [line async for line in client.export_agent("@nobody")]
    assert refusal(refused.value) == "not_found"


# The commands themselves


def test_the_commands_look_good_on_a_narrow_terminal(run: Run) -> None:
    """Eighty columns are enough, and what identifies is never cut."""
    assert run("agents", "create", "A rather long name for an agent", "--handle", "rather-long").exit_code == 0
    for arguments in (("agents", "list"), ("spaces", "list"), ("agents", "show", "@rather-long")):
        shown = run(*arguments, COLUMNS="80")
        assert shown.exit_code == 0, shown.output
        assert max(map(len, shown.stdout.splitlines())) <= 80
    listed = run("agents", "list", COLUMNS="80").stdout
    assert "@rather-long" in listed
    assert "sleeping" in listed


def test_files_are_sent_from_the_terminal(run: Run, tmp_path: Path) -> None:
    for name, text in (("menu.txt", "Soup, then pie."), ("cat.png", "not quite a picture")):
        (tmp_path / name).write_text(text)
    files = ("--file", str(tmp_path / "cat.png"), "--file", str(tmp_path / "menu.txt"))
    sent = json.loads(run("send", "Lobby", "Look", *files, "--alt", "A cat.", "--json").stdout)
    assert [(each["name"], each["size"], each["alt"]) for each in sent["files"]] == [
        ("cat.png", 19, "A cat."),
        ("menu.txt", 15, None),
    ]
    assert "There are more --alt than --file." in run("send", "Lobby", "Look", "--alt", "A cat.").stderr
    missing = run("send", "Lobby", "Look", "--file", str(tmp_path / "none.txt"))
    assert (missing.exit_code, "none.txt" in missing.stderr) == (1, True)
    assert run("trigger", "@ada", "It rains.", *files).exit_code == 0


def test_a_house_is_looked_after_from_the_terminal(run: Run) -> None:
    made = json.loads(
        run("agents", "create", "Cleo", "--set", "cycle.max_steps=5", "--space", "lobby", "--json").stdout
    )
    assert made["definition"] == {"cycle": {"max_steps": 5}}
    edited = run("agents", "edit", "@cleo", "--model", "demo", "--unset", "cycle.max_steps", "--json")
    assert json.loads(edited.stdout)["definition"] == {"model": "demo"}
    assert "Nothing to change" in run("agents", "edit", "@cleo").stderr
    assert json.loads(run("send", "Lobby", "Hello @cleo", "--json").stdout)["seq"] == 1
    assert run("trigger", "@cleo", "It rains.", "--data", '{"mm": 3}').exit_code == 0
    assert "--data is not JSON" in run("trigger", "@cleo", "--data", "{").stderr
    shown = run("spaces", "show", "Lobby").stdout
    assert "@cleo" in shown
    assert "Hello @cleo" in shown
    assert json.loads(run("spaces", "create", "Garden", "@cleo", "--private", "--json").stdout)["private"] is True
    assert run("spaces", "attend", "Garden", "@cleo", "mentions").exit_code == 0
    edited = run("spaces", "edit", "Garden", "--floor", "addressed", "--agent-run-limit", "3", "--json")
    assert (json.loads(edited.stdout)["floor"], json.loads(edited.stdout)["agent_run_limit"]) == ("addressed", 3)
    assert run("spaces", "edit", "Garden").exit_code == 1
    assert "are kept for ever, as everywhere in the organization." in run("spaces", "keep", "Garden").stdout
    assert "Add --yes." in run("spaces", "keep", "Garden", "--days", "90").stderr
    kept = run("spaces", "keep", "Garden", "--days", "90", "--archive", "--yes")
    assert "are kept for 90 days, then archived and removed." in kept.stdout
    assert json.loads(run("spaces", "keep", "Garden", "--default", "--json").stdout)["own"] is False
    assert run("spaces", "keep", "Garden", "--default", "--days", "3").exit_code == 1
    assert run("spaces", "continue", "Garden").exit_code == 0
    assert "floor: one" in run("spaces", "show", "Lobby").stdout
    assert json.loads(run("spaces", "leave", "Garden", "@cleo", "--json").stdout)["left"] is True
    assert "Add --yes [invalid_input]" in run("agents", "delete", "@cleo").stderr.replace(". [", " [")
    assert run("agents", "delete", "@cleo", "--yes").exit_code == 0
    missing = run("agents", "show", "@nobody")
    assert (missing.exit_code, missing.stderr) == (1, "There is no agent '@nobody'. [not_found]\n")


def test_bridges_are_looked_after_from_the_terminal(run: Run) -> None:
    assert "No bridges yet." in run("bridges", "list").stderr
    mail = ("--set", "address=ada@example.org", "--set", "imap=imaps://imap.example.org")
    wrong = run("bridges", "create", "Mail", "--kind", "email", *mail, "--set", "smtp=smtps://smtp.example.org")
    assert "Set either password" in wrong.stderr
    open_ = run("bridges", "create", "Mail", "--kind", "email", *mail, "--set", "password=correct horse")
    assert "may only name a secret" in open_.stderr
    signed = ("--set", "smtp=smtps://smtp.example.org", "--set", "password=${MAIL}")
    made = json.loads(run("bridges", "create", "Mail", "--kind", "email", *mail, *signed, "--json").stdout)
    assert (made["bridge"]["handle"], made["secret"]) == ("mail", None)
    connected = json.loads(run("bridges", "connect", "mail", "Lobby", "--room", "INBOX", "--json").stdout)
    shown = run("bridges", "show", "@mail").stdout
    for word in ("INBOX ↔ Lobby", "stopped", "${MAIL}", "imaps://imap.example.org"):
        assert word in shown
    changed = json.loads(run("bridges", "change", "mail", "--set", "auth_server=mx.example.org", "--json").stdout)
    assert (changed["settings"]["auth_server"], changed["settings"]["address"]) == ("mx.example.org", "ada@example.org")
    assert json.loads(run("bridges", "pause", "mail", "--json").stdout)["state"] == "paused"
    assert json.loads(run("bridges", "resume", "mail", "--json").stdout)["state"] == "stopped"
    assert run("bridges", "retry", "mail").exit_code == 0
    assert "stopped" in run("bridges", "list").stdout
    assert run("bridges", "disconnect", connected["id"]).exit_code == 0
    assert "There is no bridge 'post'. The bridges here: mail." in run("bridges", "show", "post").stderr
    web = run("bridges", "create", "Helpdesk", "--set", "url=https://example.org/denizen").stdout
    assert "/hooks/bridges/" in web
    assert "shown only once" in web
    assert run("bridges", "remove", "mail").exit_code == 0
    assert [each["name"] for each in json.loads(run("bridges", "list", "--json").stdout)] == ["Helpdesk"]


def test_a_key_that_was_used_for_another_text_is_refused(run: Run) -> None:
    """As over HTTP; the same text with the same key is said once."""
    for _ in range(2):
        assert json.loads(run("send", "Lobby", "Hello", "--key", "greeting", "--json").stdout)["seq"] == 1
    refused = run("send", "Lobby", "Goodbye", "--key", "greeting")
    assert (refused.exit_code, "[idempotency_key_reused]" in refused.stderr) == (1, True)
    assert "Goodbye" not in run("spaces", "show", "Lobby").stdout


def test_an_agent_goes_through_a_file(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "ada.jsonl"
    assert json.loads(run("export", "@ada", "-o", str(file), "--json").stdout) == {"file": str(file), "lines": 3}
    assert file.stat().st_mode & 0o077 == 0, "for its owner only"
    Path(f"{file}.part").touch(0o644)  # left by an export that was cut off
    assert run("export", "@ada", "-o", str(file)).exit_code == 0
    assert file.stat().st_mode & 0o077 == 0, "also then"
    assert run("export", "@ada").stdout == file.read_text()
    assert "[handle_taken]" in run("import", str(file)).stderr
    made = json.loads(run("import", str(file), "--handle", "ada-2", "--json").stdout)
    assert (made["kind"], made["handle"], made["counts"]["agent"]) == ("agent", "ada-2", 1)
    assert json.loads(run("agents", "show", "@ada-2", "--json").stdout)["status"] == "suspended"
    file.write_text(file.read_text().replace('"row":"agent"', '"row":"ghost"'))
    broken = run("import", str(file), "--handle", "ada-3")
    assert "ada.jsonl, line 2: this Denizen knows no such kind of line" in broken.stderr
    assert "[import_invalid]" in broken.stderr
    assert "There is no file" in run("import", str(tmp_path / "nothing")).stderr


def test_a_space_goes_through_a_file(run: Run, tmp_path: Path) -> None:
    run("send", "Lobby", "Hello!")
    file = tmp_path / "lobby.jsonl"
    assert run("export", "--space", "Lobby", "-o", str(file)).exit_code == 0
    made = json.loads(run("import", str(file), "--name", "Lobby again", "--json").stdout)
    assert (made["counts"]["message"], made["people"], made["absent"]) == (1, [], [])
    assert "Hello!" in run("spaces", "show", "Lobby again").stdout
    assert "an AGENT, or a --space" in run("export").stderr


def test_the_schema_is_shown_and_brought_up_to_date(run: Run) -> None:
    before = run("migrate", "--check", "--json")
    assert (before.exit_code, json.loads(before.stdout)["before"]) == (1, None)
    assert json.loads(run("migrate", "--json").stdout)["ran"] != []
    after = run("migrate", "--check", "--json")
    assert (after.exit_code, json.loads(after.stdout)["ran"]) == (0, [])
    assert "up to date" in run("migrate").stderr


async def test_a_server_elsewhere_is_asked_by_its_address(house: House, tmp_path: Path) -> None:
    """With what stands in the environment, or on the command line."""

    async def denizen(*arguments: str) -> tuple[int | None, str, str]:
        process = await asyncio.create_subprocess_exec(
            *warm.denizen(),
            *arguments,
            env=house.environ(tmp_path / "home", NO_COLOR="1"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        return process.returncode, out.decode(), err.decode()

    code, out, _ = await denizen("agents", "list", "--json")
    assert (code, [each["handle"] for each in json.loads(out)]) == (0, ["ada", "bo"])
    assert (await denizen("send", "Cellar", "From afar."))[0] == 0
    assert [each.text for each in await house.runtime.spaces.messages(house.cellar)] == ["From afar."]
    code, _, err = await denizen("agents", "show", "@nobody")
    assert (code, err) == (1, "There is no agent '@nobody'. [not_found]\n")
    code, _, err = await denizen("agents", "list", "--token", "dz_wrong")
    assert (code, "[token_refused]" in err) == (1, True)
    assert not (tmp_path / "home" / "denizen.db").exists(), "no database is opened here"


def announced(environ: dict[str, str], address: str, token: str) -> Path:
    """The home of a server that runs at that address."""
    home = Path(environ["DENIZEN_HOME"])
    home.mkdir()
    (home / "address").write_text(address)
    (home / "token").write_text(token)
    return home


async def test_the_server_that_runs_on_this_home_is_found(house: House, environ: dict[str, str]) -> None:
    """By the address and the token that it keeps there; nothing else of the home is touched."""
    home = announced(environ, house.url, house.token)
    found = await asyncio.to_thread(CliRunner().invoke, app, ["agents", "list", "--json"])
    assert [each["handle"] for each in json.loads(found.stdout)] == ["ada", "bo"]
    assert not (home / "denizen.db").exists()

    (home / "token").write_text("dz_of_another_house")
    refused = await asyncio.to_thread(CliRunner().invoke, app, ["agents", "list"])
    assert (refused.exit_code, "[token_refused]" in refused.stderr) == (1, True)

    (home / "token").unlink()
    alone = await asyncio.to_thread(CliRunner().invoke, app, ["spaces", "list", "--json"])
    assert "Lobby" in [each["name"] for each in json.loads(alone.stdout)], "without a token, in this process"


async def test_a_server_that_is_gone_is_not_waited_for(house: House, environ: dict[str, str]) -> None:
    """Its address stays in the home where it was killed."""
    announced(environ, f"http://127.0.0.1:{free_port()}", house.token)
    alone = await asyncio.to_thread(CliRunner().invoke, app, ["spaces", "list", "--json"])
    assert "Lobby" in [each["name"] for each in json.loads(alone.stdout)]


ASKING = """
import sys
from denizen.cli.main import app
from typer import Context
from typer.testing import CliRunner
for arguments in (["agents", "list"], ["spaces", "list"], ["send", "Cellar", "Hello"], ["inspect", "@ada"]):
    assert CliRunner().invoke(app, arguments).exit_code == 0
heavy = {"denizen.app", "denizen.server", "denizen.storage", "sqlalchemy", "fastapi", "pydantic_ai"}
print(sorted(heavy & {*sys.modules}))
"""


async def test_asking_a_server_imports_nothing_of_it(house: House, tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        ASKING,
        env=house.environ(tmp_path / "home"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert (out.decode(), err.decode()) == ("[]\n", "")


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("http://127.0.0.1:8420", True),
        ("http://localhost:9000", True),
        ("http://[::1]:8420", True),
        ("https://agents.example.com/", True),
        ("https://agents.example.com.evil.example", False),
        ("http://agents.example.com", False),
        ("https://elsewhere.example", False),
    ],
)
def test_the_token_of_this_house_is_shown_to_no_other_server(tmp_path: Path, address: str, shown: bool) -> None:
    """Whoever names another server has to name a token for it."""
    (tmp_path / "token").write_text("dz_secret\n")
    settings = Settings(home=tmp_path, public_url="https://agents.example.com")
    assert kept_token(settings, address) == ("dz_secret" if shown else None)


WITHOUT_JSON = {
    "up",  # it serves until it is stopped
    "config reference",  # these print pages of the docs
    "config access",
    "config commands",
}


def test_every_command_prints_json_for_programs() -> None:
    options = {name: {option for each in command.params for option in each.opts} for name, command in _commands()}
    assert {name for name, known in options.items() if "--json" not in known} == WITHOUT_JSON


HERE = {"up", "check", "migrate", "doctor", "backup", "restore", "config"}
"""They are about this machine, as the page says."""
FILES_HERE = {"profiles check", "profiles init"}
"""So are they."""


def test_every_other_command_asks_a_server() -> None:
    options = {name: {option for each in command.params for option in each.opts} for name, command in _commands()}
    asking = {name for name, known in options.items() if {"--url", "--token"} <= known}
    assert {name for name in options if name.split()[0] not in HERE} - asking == {"secrets key", *FILES_HERE}
    assert not any(name.split()[0] in HERE for name in asking)


def _commands() -> Iterator[tuple[str, Any]]:
    """Every command by its whole name."""

    def below(name: str, command: Any) -> Iterator[tuple[str, Any]]:
        inner: dict[str, Any] = getattr(command, "commands", {})
        if not inner or command.invoke_without_command:
            yield name, command
        for each, one in inner.items():
            yield from below(f"{name} {each}", one)

    for entry in COMMANDS:
        yield from below(entry.name, command_of(entry))


NAMES_SOMEONE = {"AGENT", "MEMBER", "HANDLE"}
MORE_THAN_HANDLES = {"spaces create", "panel create"}
"""These take lists, each of which is looked at in the command."""


def test_every_command_takes_a_handle_with_or_without_its_at_sign() -> None:
    """`denizen inspect ada` is `denizen inspect @ada`; an id stays an id."""
    id = "01a1e50f-6bb2-7f3f-8f67-744ca3379451"
    checked: set[str] = set()
    for name, command in _commands():
        for each in command.params:
            if (each.metavar or "").strip("[].") in NAMES_SOMEONE and name not in MORE_THAN_HANDLES:
                context = Context(command)
                given = [each.process_value(context, named) for named in ("ada", "@ada", id)]
                assert given == ["@ada", "@ada", id], f"{name}: {each.name}"
                checked.add(name.split()[0])
    assert checked >= {"inspect", "replay", "fork", "agents", "spaces", "trigger", "webhooks", "mind", "memory"}
    assert checked >= {"token", "login", "secrets", "forget", "export", "apply", "approvals"}


def test_an_agent_is_inspected_by_its_bare_handle(ready_home: None, run: Run) -> None:
    for named in ("ada", "@ada", "ADA"):
        result = run("inspect", named, "--json")
        assert result.exit_code == 0, result.stderr
        assert json.loads(result.stdout)["handle"] == "ada"


def test_the_page_about_commands_is_the_one_they_make() -> None:
    """`denizen config commands > docs/cli.md`"""
    from denizen.cli.commands_page import render

    assert (Path(__file__).parents[2] / "docs" / "cli.md").read_text() == render()
