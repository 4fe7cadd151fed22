"""`denizen secrets` and `denizen webhooks`: what is secret is typed unseen or piped in, and never shown again."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from denizen import Runtime
from denizen.access import secrets
from denizen.access.secrets import SecretLocation
from denizen.access.signatures import github_signature
from denizen.access.vault import new_key
from denizen.cli.home import secret_options
from denizen.cli.main import app
from denizen.settings.loading import load

pytestmark = pytest.mark.usefixtures("ready_home")

VALUE = "sk-proj-0123456789abcdef"


@pytest.fixture
def home(environ: dict[str, str]) -> Path:
    return Path(environ["DENIZEN_HOME"])


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, list(arguments), input=stdin)


def kept(name: str) -> str | None:
    """The value of that secret of the organization, as a server that starts now would have it."""

    async def find() -> str | None:
        settings = load().settings
        async with Runtime(settings.database_url, **secret_options(settings)) as denizen:
            place = SecretLocation(await denizen.organization_id(None), name)
            return await denizen.db.read(secrets.value_at, denizen.vault, place)

    return asyncio.run(find())


def test_a_secret_is_piped_in_kept_and_shown_only_by_its_end(home: Path) -> None:
    result = run("secrets", "set", "OPENAI_API_KEY", stdin=f"{VALUE}\n")
    assert (result.exit_code, result.stdout) == (0, "")
    assert VALUE not in result.stderr
    assert kept("OPENAI_API_KEY") == VALUE
    assert stat.S_IMODE((home / "secret.key").stat().st_mode) == 0o600

    listed = run("secrets", "list")
    assert "OPENAI_API_KEY" in listed.stdout
    assert "…cdef" in listed.stdout
    assert "0123456789" not in listed.output
    [shown] = json.loads(run("secrets", "list", "--json").stdout)
    assert (shown["name"], shown["person"], shown["hint"]) == ("OPENAI_API_KEY", None, "…cdef")
    assert (home / "denizen.db").read_bytes().count(VALUE.encode()) == 0


def test_a_secret_cannot_stand_on_the_command_line(home: Path) -> None:
    """Where others on this machine, and the history of the shell, could read it."""
    result = run("secrets", "set", "OPENAI_API_KEY", VALUE, stdin="x")
    assert result.exit_code == 2


def test_a_secret_may_be_a_persons_own(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "noor")
    assert run("secrets", "set", "CRM_TOKEN", "--person", "@noor", stdin="of noor").exit_code == 0
    [shown] = json.loads(run("secrets", "list", "--json").stdout)
    assert (shown["name"], shown["person"]) == ("CRM_TOKEN", "@noor")
    assert run("secrets", "delete", "CRM_TOKEN").exit_code == 1
    assert run("secrets", "delete", "CRM_TOKEN", "--person", "@noor").exit_code == 0
    assert json.loads(run("secrets", "list", "--json").stdout) == []
    assert "denizen secrets set" in run("secrets", "list").stderr
    for who, says in [("@ada", "not a person"), ("@nobody", "There is no person, agent or service '@nobody'. [")]:
        refused = run("secrets", "set", "CRM_TOKEN", "--person", who, stdin="x")
        assert refused.exit_code == 1
        assert says in refused.stderr


def test_the_key_may_be_given_and_changed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`denizen secrets key` makes one. Then no file is made."""
    old, new = run("secrets", "key").stdout.strip(), run("secrets", "key").stdout.strip()
    assert old != new
    monkeypatch.setenv("DENIZEN_SECRET_KEY", old)
    run("secrets", "set", "CRM_TOKEN", stdin="first")
    monkeypatch.setenv("DENIZEN_SECRET_KEY", f"{new},{old}")
    assert kept("CRM_TOKEN") == "first"
    run("secrets", "set", "CRM_TOKEN", stdin="second")
    monkeypatch.setenv("DENIZEN_SECRET_KEY", new)
    assert kept("CRM_TOKEN") == "second"
    assert not (home / "secret.key").exists()

    monkeypatch.setenv("DENIZEN_SECRET_KEY", "swordfish")
    refused = run("secrets", "list")
    assert refused.exit_code == 1
    assert "denizen secrets key" in refused.stderr
    assert "swordfish" not in refused.output
    assert "swordfish" not in run("config").output


def test_variables_that_are_shared_secrets_are_no_mistakes(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other unknown ones are. The key itself is never shared."""
    monkeypatch.setenv("DENIZEN_SECRET_KEY", new_key())
    monkeypatch.setenv("DENIZEN_SECRET_CRM_TOKEN", "of the operator")
    assert secret_options(load().settings)["shared_secrets"] == {"CRM_TOKEN": "of the operator"}
    assert "of the operator" not in run("config").output
    monkeypatch.setenv("DENIZEN_SECRETS_CRM_TOKEN", "x")
    assert "there is no setting DENIZEN_SECRETS_CRM_TOKEN" in run("config").stderr


def test_the_doctor_sees_a_key_that_others_may_read(home: Path) -> None:
    run("secrets", "set", "CRM_TOKEN", stdin="x")

    def seen() -> list[tuple[str, str]]:
        checks = json.loads(run("doctor", "--json").stdout)["checks"]
        return [(each["status"], each["advice"]) for each in checks if each["check"] == "Secrets"]

    assert seen() == [("ok", "")]
    (home / "secret.key").chmod(0o640)
    assert seen() == [("problem", f"Run `chmod 600 {home / 'secret.key'}`.")]


def test_the_key_does_not_belong_in_a_file_that_people_share(home: Path) -> None:
    Path("denizen.toml").write_text(f'secret_key = "{new_key()}"\n')
    refused = run("config")
    assert refused.exit_code == 1
    assert "secret_key does not belong in denizen.toml" in refused.stderr


def test_a_webhook_is_made_listed_and_revoked(home: Path) -> None:
    made = json.loads(run("webhooks", "add", "@ada", "--name", "GitHub", "--scheme", "github", "--json").stdout)
    assert made["secret"].startswith("dz_hook_")
    shown = run("webhooks", "add", "ada", "--name", "CI").stdout
    assert "http://127.0.0.1:" in shown
    assert "/hooks/" in shown
    assert "dz_hook_" in shown
    assert "dz_hook_" not in run("webhooks", "list", "@ada").stdout
    assert [each["name"] for each in json.loads(run("webhooks", "list", "@ada", "--json").stdout)] == ["GitHub", "CI"]

    async def send() -> None:
        settings = load().settings
        async with Runtime(settings.database_url, **secret_options(settings)) as denizen:
            signature = {"x-hub-signature-256": github_signature(made["secret"], b"{}")}
            await denizen.webhooks.receive(made["id"], signature, b"{}")

    asyncio.run(send())
    assert run("webhooks", "revoke", made["id"]).exit_code == 0
    first = json.loads(run("webhooks", "list", "@ada", "--json").stdout)[0]
    assert None not in (first["last_used_at"], first["revoked_at"])
    assert run("webhooks", "revoke", "nothing").exit_code == 1


def test_slacks_secret_is_piped_in_and_not_shown(home: Path) -> None:
    secret = "8f742231b10e8888abcd99yyyzzz85a5"
    made = run("webhooks", "add", "@ada", "--name", "Slack", "--scheme", "slack", stdin=f"{secret}\n")
    assert made.exit_code == 0
    assert secret not in made.output
    refused = run("webhooks", "add", "@ada", "--name", "X", "--scheme", "stripe")
    assert refused.exit_code == 1
    assert "github, slack, jira, generic" in refused.stderr
