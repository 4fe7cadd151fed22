"""`denizen token` and `denizen login`: what lets programs and people in, on the machine that keeps it."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import timedelta

import pytest

from denizen import Runtime
from denizen.access import tokens
from denizen.cli.token import age_of
from denizen.settings.loading import load
from tests.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("ready_home")


def kind_of(secret: str, kind: tokens.Kind = "token") -> tokens.Token | None:
    """What this secret opens, for a server that starts now."""

    async def find() -> tokens.Token | None:
        async with Runtime(load().settings.database_url) as denizen:
            return await denizen.db.read(tokens.find, secret, kind)

    return asyncio.run(find())


def listed(run: Run, *arguments: str) -> list[tuple[str, str, bool]]:
    return [
        (each["handle"], each["name"], each["revoked_at"] is not None)
        for each in json.loads(run("token", "list", "--json", *arguments).stdout)
    ]


@pytest.fixture(autouse=True)
def _noor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "noor")


def test_a_token_is_made_listed_rotated_and_revoked(run: Run) -> None:
    made = run("token", "create", "--name", "Backup", "--role", "member", "--days", "1")
    assert made.exit_code == 0, made.output
    secret = made.stdout.strip()
    token = kind_of(secret)
    assert token is not None
    assert (token.name, token.role, token.kind) == ("Backup", "member", "token")
    assert token.expires_at is not None
    assert token.id in made.stderr
    assert listed(run) == [("noor", "Backup", False)]
    assert listed(run, "@ada") == []
    # In the narrowest terminal that is usual, the id can still be copied: no line breaks it.
    shown = run("token", "list", COLUMNS="80").stdout
    assert re.search(
        rf"^{token.id}$\n  Backup \(until .*\) *\n  @noor, token, member, 0 min old, never used *$", shown, re.M
    )
    assert secret not in shown

    rotated = json.loads(run("token", "rotate", token.id, "--json").stdout)
    assert kind_of(secret) is None
    assert kind_of(rotated["secret"]) is not None
    assert run("token", "revoke", token.id).exit_code == 0
    assert kind_of(rotated["secret"]) is None
    assert listed(run) == [("noor", "Backup", True)]
    assert "revoked" in run("token", "list").stdout


@pytest.mark.parametrize(
    ("age", "shown"),
    [
        (timedelta(seconds=59), "0 min"),
        (timedelta(minutes=59), "59 min"),
        (timedelta(hours=23, minutes=59), "23 h"),
        (timedelta(days=400), "400 d"),
    ],
)
def test_the_age_of_a_token_is_shown_in_its_greatest_unit(age: timedelta, shown: str) -> None:
    assert age_of(age) == shown


def test_tokens_of_agents_and_mistakes(run: Run) -> None:
    made = json.loads(run("token", "create", "@ada", "--json").stdout)
    assert made["role"] == "agent"
    for arguments, says in [
        (("create", "@nobody"), "There is no person, agent or service '@nobody'. ["),
        (("create", "--role", "king"), "owner, admin, member"),
        (("create", "@ada", "--role", "owner"), "cannot have the role"),
        (("revoke", "nothing"), "no token"),
        (("rotate", "nothing"), "no token"),
    ]:
        refused = run("token", *arguments)
        assert refused.exit_code == 1, arguments
        assert says in refused.stderr


def test_a_login_link_is_printed_alone_and_opens_a_session_once(run: Run, environ: dict[str, str]) -> None:
    result = run("login")
    address, _, secret = result.stdout.strip().partition("/login#")
    assert address == f"http://127.0.0.1:{environ['DENIZEN_PORT']}"
    assert kind_of(secret, "login") is not None
    assert kind_of(secret) is None
    public = run("login", "@noor", "--json", DENIZEN_PUBLIC_URL="https://agents.example.com")
    assert json.loads(public.stdout)["url"].startswith("https://agents.example.com/login#dzl_")
    refused = run("login", "@ada")
    assert (refused.exit_code, "Only people sign in" in refused.stderr) == (1, True)
