"""The audit log: every operation that changes who may do what writes one entry, in the transaction of the change."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import func, select

from denizen.access import audit, roles
from denizen.app import Runtime
from denizen.clock import ManualClock
from denizen.server.application import create_app
from denizen.server.context import ServerLimits
from denizen.server.failed_sign_ins import FailedSignIns
from denizen.server.permissions import permissions
from denizen.storage.database import Tx, statement
from denizen.storage.schema import audit as audit_table
from tests.server import small_town
from tests.server.conftest import SEALED_WITH, Built, House, served
from tests.world import UNHURRIED, World, open_world

NOT_AUDITED = {
    # What people say to each other and to agents, and where.
    "post_message", "edit_message", "delete_message", "mark_read", "create_space", "change_space", "let_agents_go_on",
    "add_member", "change_member", "remove_member", "private_space", "ask_for_answer", "stop_answer", "chat",
    "try_answer_again", "add_reaction", "remove_reaction", "pin_message", "unpin_message",
    "complete_chat", "create_response", "embed",
    "answer_call", "answer_by_address", "trigger", "receive_webhook", "close_session", "change_memory",
    "revert_memory", "subscribe", "unsubscribe", "send_code", "receive_bridge_event", "receive_matrix_push",
    "change_conversation_memory", "create_file", "upload_content", "delete_file", "describe_file",
    # How people and agents look.
    "set_picture", "remove_picture",
    # In the audit log as change_entity, and as set_key.
    "change_me", "begin_mcp_sign_in", "finish_mcp_sign_in",
    # One call, which costs a few tokens and keeps nothing.
    "test_model",
    # Panels are spaces.
    "create_panel", "change_panel", "add_advisor", "switch_group", "import_advisors", "order_advisors",
    "suggest_advisors", "remove_advisor", "change_advisor", "foretell_cost", "ask_panel", "cancel_round",
    "begin_crosstalk", "retry_round", "want_synthesis", "begin_vote",
    # What an agent has in mind: told to it, and in its own log.
    "add_goal", "put_goal", "delete_goal", "put_note", "delete_note", "put_plan", "delete_plan", "requeue_event",
    "mark_event_urgent", "set_stance_settings", "set_state", "reset_state", "try_metaprompt", "rethink", "try_again",
    "set_voice_state", "reset_voice_state", "try_voice_metaprompt", "try_profile",
}  # fmt: skip
"""The operations that change something and are in no audit log. A new one has to be put here, or into `ACTIONS`."""

BY_AGENTS = {"ask_approval", "deny_effect", "approve_effect", "refuse_effect"}
"""What is audited where it happens, in a cycle or by the answer to a call: tests/trust/test_approvals.py shows it."""

BY_SERVER = {"expire"}
"""What the server does by itself, once a day: tests/forgetting/test_expiring.py shows that it is audited."""

_count = statement(select(func.count()).select_from(audit_table))
_last = statement(
    select(audit_table.c.action, audit_table.c.kind, audit_table.c.by_id, audit_table.c.token_id)
    .order_by(audit_table.c.number.desc())
    .limit(1)
)


def test_every_operation_that_changes_something_is_audited_or_listed() -> None:
    known = set(audit.ACTIONS) | NOT_AUDITED
    every = permissions(create_app(Runtime()))
    assert sorted(each.operation for each in every if each.method != "GET" and each.operation not in known) == []
    assert not set(audit.ACTIONS) & NOT_AUDITED
    operations = {each.operation for each in every} | {"failed_sign_in"}
    assert sorted((set(audit.ACTIONS) | NOT_AUDITED) - operations) == sorted(BY_AGENTS | BY_SERVER)


def _entries(tx: Tx) -> int:
    row = tx.one(_count)
    return row[0] if row else 0


LINES = {"Content-Type": "application/jsonl"}
BODIES: dict[str, Any] = {
    "change_entity": {"role": "admin"},
    "change_organization": {"name": "Another home"},
    "choose_model": {"name": "demo"},
    "change_organization_memory": {"enabled": False},
    "create_token": {"name": "A token"},
    "create_login": {},
    "put_budget": {"tokens_per_day": 1_000},
    "edit_agent": {"instructions": "Be brief."},
    "set_key": {"value": "sk-canary-0123456789", "whose": "organization"},
    "create_webhook": {"name": "hook", "secret": "canary-of-a-webhook"},
    "fork_agent": {"handle": "forked"},
    "create_agent": {"name": "Nina", "model": "demo"},
    "create_entity": {"kind": "human", "name": "Nell"},
    "apply": {"documents": [{"place": "x", "document": {"name": "Zed", "model": "demo"}}]},
}
LAST = ("remove_bridge", "remove_entity", "delete_agent", "forget")


async def test_each_audited_operation_writes_one_entry(built: Built, tmp_path: Path) -> None:
    """Asked as the owner, with the ids of the town, one after the other; what takes something away comes last."""
    path = tmp_path / "denizen.db"
    path.write_bytes(built.database.read_bytes())
    description, town = small_town.description(), built.town
    asked: Counter[str] = Counter()
    wrong: list[str] = []
    async with (
        open_world(
            f"sqlite:///{path}", secret_key=SEALED_WITH, pace=UNHURRIED, presets=tmp_path / "presets.json"
        ) as world,
        served(world) as house,
    ):
        order = sorted(
            (each for each in permissions(create_app(Runtime())) if each.operation in audit.ACTIONS),
            key=lambda each: (each.operation in LAST, each.method == "DELETE", each.path),
        )
        for each in order:
            operation = description["paths"][each.path][each.method.lower()]
            body = BODIES.get(each.operation, small_town.body_of(description, operation, town.home, all_fields=False))
            if each.operation == "open_session":
                made = await _call(house, town, "POST", "/api/logins", {})
                body = {"secret": made["secret"]}
            if each.operation == "forget":
                body = {"kind": "message", "id": town.home.ids["message"]}
            if each.operation in ("link_identity", "unlink_identity"):
                continue  # needs an identity provider: test_oidc
            if each.operation == "open_private_space":
                continue  # of a space that the owner is not in: test_openings
            if each.operation in ("link_address", "unlink_address"):
                continue  # needs an account that has written: tests/bridges
            if each.operation == "import_file":
                continue  # below
            before = await world.denizen.db.read(_entries)
            headers = {"Authorization": f"Bearer {town.secrets['owner']}"}
            answer = await house.client.request(
                each.method,
                small_town.filled(each.path, town.home, "owner"),
                headers={} if each.operation == "open_session" else headers,
                params=small_town.needed(operation),
                json=body,
            )
            written = await world.denizen.db.read(_entries) - before
            if answer.status_code >= 300 or written != 1:
                wrong.append(f"{each.operation}: {answer.status_code}, {written} entries: {answer.text[:300]}")
                continue
            row = await world.denizen.db.read(lambda tx: tx.one(_last))
            assert row is not None
            assert (row[0], row[1]) == (each.operation, audit.ACTIONS[each.operation].kind)
            assert row[2] is not None, each.operation
            asked[each.operation] += 1
            # What is refused writes nothing; but a link that was used up is a failed sign-in.
            refused = await house.client.request(
                each.method,
                small_town.filled(each.path, town.elsewhere, "owner"),
                headers={"Authorization": f"Bearer {town.secrets['member']}"},
                params=small_town.needed(operation),
                json=body,
            )
            if refused.status_code >= 400:
                assert await world.denizen.db.read(_entries) == before + 1 + (each.operation == "open_session"), (
                    each.operation
                )
        written = await world.denizen.db.read(_all)
    assert wrong == []
    assert len(asked) >= len(set(audit.ACTIONS) - BY_AGENTS - BY_SERVER) - 7
    assert "canary" not in written


_rows = statement(select(audit_table))


def _all(tx: Tx) -> str:
    return "\n".join(map(str, tx.all(_rows)))


async def _call(house: House, town: small_town.Town, method: str, path: str, body: Any) -> Any:
    headers = {"Authorization": f"Bearer {town.secrets['owner']}"}
    answer = await house.client.request(method, path, headers=headers, json=body)
    assert answer.status_code < 300, answer.text
    return answer.json()


async def test_an_import_is_in_the_audit_log(small_house: House) -> None:
    world = small_house.world
    noor = await world.person("Noor")
    ada = await world.agent("Ada", "Hello.")
    file = (await small_house.call("GET", f"/api/agents/{ada.id}/export", noor)).text
    made = await small_house.call("POST", "/api/import?handle=twin", noor, content=file, headers=LINES)
    assert made.status_code == 201
    entries = (await small_house.call("GET", "/api/audit", noor)).json()["entries"]
    assert [each["action"] for each in entries] == ["import_file", "export_agent", "create_agent"]
    assert entries[0]["subject_id"] == made.json()["id"]


async def test_the_log_is_read_page_by_page_and_by_person_kind_and_time(house: House) -> None:
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    await world.denizen.db.write(roles.set_role, sam.id, "admin")
    for who, tokens in ((noor, 1_000), (sam, 2_000)):
        world.clock.advance(60)
        await house.call("PUT", "/api/organization/budget", who, json={"tokens_per_day": tokens})
    world.clock.advance(60)
    await house.call("PATCH", "/api/organization", noor, json={"name": "Harbour"})

    async def found(**query: str) -> list[tuple[str, str]]:
        page = (await house.call("GET", "/api/audit", sam, params=query)).json()
        return [(each["action"], each["by"]["handle"]) for each in page["entries"]]

    everything = [("change_organization", "noor"), ("put_budget", "sam"), ("put_budget", "noor")]
    assert await found() == everything
    assert await found(kind="budgets") == everything[1:]
    assert await found(by="@noor", kind="budgets") == everything[2:]
    page = (await house.call("GET", "/api/audit", sam, params={"limit": "2"})).json()
    assert len(page["entries"]) == 2
    assert await found(before=str(page["next"])) == everything[2:]
    at = page["entries"][1]["at"]
    assert await found(since=at) == everything[:2]
    assert await found(until=at) == everything[2:]
    lines = (await house.call("GET", "/api/audit/export", noor)).text.splitlines()
    unknown = await house.call("GET", "/api/audit/export?by=nobody", noor)
    assert unknown.status_code == 404  # and not a file that breaks off
    assert [json.loads(line)["action"] for line in lines] == [each[0] for each in everything]
    assert json.loads(lines[1])["detail"] == {"before": {"tokens_per_day": 1_000}, "after": {"tokens_per_day": 2_000}}


async def sign_in_with(house: House, secret: str, way: str) -> int:
    """The status of signing in with this secret: as a token, or with a link."""
    if way == "token":
        return (await house.call("GET", "/api/me", headers={"Authorization": f"Bearer {secret}"})).status_code
    return (await house.call("POST", "/api/session", json={"secret": secret})).status_code


@pytest.mark.parametrize("way", ["token", "login link"])
async def test_failed_sign_ins_are_audited(house: House, way: str) -> None:
    noor = await house.world.person("Noor")
    assert await sign_in_with(house, "dz_guessed", way) == 401
    [entry] = (await house.call("GET", "/api/audit", noor)).json()["entries"]
    assert (entry["action"], entry["kind"], entry["by"], entry["subject"]) == ("failed_sign_in", "tokens", None, None)
    assert entry["detail"] == {"address": "127.0.0.1", "attempts_this_hour": 1}
    assert "guessed" not in await house.world.denizen.db.read(_all)


async def test_a_revoked_token_that_is_used_is_audited_for_its_owner(house: House) -> None:
    noor = await house.world.person("Noor")
    made = (await house.call("POST", "/api/tokens", noor, json={"name": "Builds"})).json()
    assert (await house.call("DELETE", f"/api/tokens/{made['token']['id']}", noor)).status_code == 204
    assert await sign_in_with(house, made["secret"], "token") == 401
    entry = (await house.call("GET", "/api/audit", noor)).json()["entries"][0]
    assert (entry["action"], entry["subject_id"], entry["detail"]["token"]) == (
        "failed_sign_in",
        noor.id,
        made["token"]["id"],
    )


async def test_a_flood_of_failed_sign_ins_makes_few_entries(world: World) -> None:
    """By address the first, the tenth, the hundredth of an hour; all addresses together a hundred."""
    noor = await world.person("Noor")
    async with served(world, limits=ServerLimits(failed_logins_per_minute=0)) as house:
        for attempt in range(120):
            assert await sign_in_with(house, f"dz_guessed_{attempt}", "token") == 401
        entries = (await house.call("GET", "/api/audit", noor)).json()["entries"]
        assert [each["detail"]["attempts_this_hour"] for each in entries] == [100, 10, 1]
        world.clock.advance(3_600)
        await sign_in_with(house, "dz_guessed", "token")
        entries = (await house.call("GET", "/api/audit", noor)).json()["entries"]
        assert [each["detail"]["attempts_this_hour"] for each in entries] == [1, 100, 10, 1]


def test_addresses_without_number_make_a_hundred_entries_an_hour() -> None:
    clock = ManualClock()
    failed = FailedSignIns(clock)
    assert [failed.count(f"2001:db8::{number:x}") for number in range(300)] == [1] * 100 + [None] * 200
    clock.advance(3_600)
    assert failed.count("2001:db8::1") == 1


async def test_a_session_that_has_ended_is_not_a_failed_sign_in(house: House) -> None:
    noor = await house.world.person("Noor")
    link = (await house.call("POST", "/api/logins", noor, json={})).json()["secret"]
    opened = await house.call("POST", "/api/session", json={"secret": link})
    cookie = opened.headers["set-cookie"].partition(";")[0]
    headers = {"Cookie": cookie, "Denizen-Page-Key": opened.json()["page_key"]}
    assert (await house.call("GET", "/api/me", headers=headers)).status_code == 200
    assert (await house.call("DELETE", f"/api/tokens/{opened.json()['id']}", noor)).status_code == 204
    assert (await house.call("GET", "/api/me", headers=headers)).status_code == 401
    entries = (await house.call("GET", "/api/audit", noor)).json()["entries"]
    assert [each["action"] for each in entries] == ["revoke_token", "open_session", "create_login"]


async def test_an_entry_says_which_login_link_was_created_and_that_a_name_was_changed(house: House) -> None:
    noor = await house.world.person("Noor")
    await house.call("POST", "/api/logins", noor, json={})
    [link] = [
        each for each in (await house.call("GET", "/api/tokens", noor)).json()["tokens"] if each["kind"] == "login"
    ]
    for _ in range(2):  # The second changes nothing.
        await house.call("PATCH", "/api/me", noor, json={"name": "Noor Ali"})
    entries = (await house.call("GET", "/api/audit", noor)).json()["entries"]
    assert [(each["action"], each["subject_id"], each["detail"]) for each in entries] == [
        ("change_entity", noor.id, {"renamed": True}),
        ("create_login", noor.id, {"token": link["id"]}),
    ]


async def test_whoever_gets_a_token_from_somebody_else_is_told(house: House) -> None:
    """Its maker knows its secret. One's own tokens are not told."""
    world = house.world
    noor, mia = await world.person("Noor"), await world.person("Mia")
    async with house.listen(mia, "/api/stream") as stream:
        await stream.until("ready")
        await house.call("POST", "/api/tokens", mia, json={"name": "Mine"})
        made = (await house.call("POST", "/api/tokens", noor, json={"name": "Builds", "entity": "@mia"})).json()
        await house.call("POST", f"/api/tokens/{made['token']['id']}/rotate", noor)
        await house.call("POST", "/api/logins", noor, json={"entity": "@mia"})
        told = [each.data for each in [*await stream.until("notice"), *await stream.until("notice")]]
        told += [each.data for each in await stream.until("notice")]
    then = "You can revoke it on your own page (You)."
    assert [(each["kind"], each["text"]) for each in told if each.get("type") == "notice"] == [
        ("token_created", f"Noor (@noor) created the access token 'Builds' for you. {then}"),
        ("token_created", f"Noor (@noor) gave your access token 'Builds' a new secret. {then}"),
        ("token_created", f"Noor (@noor) created a login link for you. {then}"),
    ]


async def test_members_may_not_read_it(small_house: House) -> None:
    await small_house.world.person("Noor")
    mia = await small_house.world.person("Mia")
    assert (await small_house.call("GET", "/api/audit", mia)).status_code == 403


async def test_forgetting_a_person_keeps_the_fact_and_drops_the_name(small_house: House) -> None:
    world = small_house.world
    noor, rumpel = await world.person("Noor"), await world.person("Rumpelstiltskin")
    await world.denizen.db.write(roles.set_role, rumpel.id, "admin")
    await small_house.call("PUT", "/api/organization/budget", rumpel, json={"tokens_per_day": 1_000})
    await small_house.call("PATCH", f"/api/entities/{rumpel.id}", noor, json={"name": "Rumpelstiltskin the second"})
    forgotten = await small_house.call("POST", "/api/forget", noor, json={"kind": "person", "id": rumpel.id})
    assert forgotten.status_code == 200
    answer = await small_house.call("GET", "/api/audit", noor)
    assert [each["action"] for each in answer.json()["entries"]] == ["forget", "change_entity", "put_budget"]
    assert "rumpel" not in answer.text.lower()


async def test_rows_cannot_be_changed_or_removed(ready_sqlite_url: str) -> None:
    async with open_world(ready_sqlite_url, secret_key=SEALED_WITH) as world:
        await world.person("Noor")
        await world.denizen.secrets.set("A_KEY", "v" * 20)
    with closing(sqlite3.connect(ready_sqlite_url.removeprefix("sqlite:///"))) as connection:
        for change in ("UPDATE audit SET action = 'nothing'", "DELETE FROM audit"):
            with pytest.raises(sqlite3.IntegrityError, match="never changed"):
                connection.execute(change)
        assert connection.execute("SELECT by_id, action FROM audit").fetchall() == [(None, "set_key")]


async def test_nor_on_postgresql(ready_postgres_url: str) -> None:
    async with open_world(ready_postgres_url, secret_key=SEALED_WITH) as world:
        await world.person("Noor")
        await world.denizen.secrets.set("A_KEY", "v" * 20)
    with psycopg.connect(ready_postgres_url, autocommit=True) as connection:
        for change in ("UPDATE audit SET action = 'nothing'", "DELETE FROM audit"):
            with pytest.raises(psycopg.errors.RaiseException, match="never changed"):
                connection.execute(change)
