"""Sealing: only the right key opens, only for what it was sealed for; keys are made once and can be changed."""

from __future__ import annotations

import base64
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.access.vault import KEY_BYTES, Vault, given_keys, keys_in_file, keys_in_memory, no_keys
from denizen.errors import SecretKeyMissing, SecretUnreadable, SettingsError

# Always the same, because they stand in the names of tests, which several processes have to agree on.
OLD, NEW = (base64.urlsafe_b64encode(bytes([each]) * KEY_BYTES).decode() for each in (1, 2))


@given(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8")))
def test_what_was_sealed_opens_again_and_cannot_be_read(text: str, purpose: str) -> None:
    vault = Vault(given_keys(OLD))
    sealed = vault.seal(text, purpose)
    assert vault.open(sealed, purpose) == text
    assert vault.seal(text, purpose) != sealed
    assert len(text) < 8 or text not in sealed


def test_a_sealed_text_opens_only_for_its_purpose() -> None:
    """A row that was copied into another organization is worth nothing there."""
    vault = Vault(given_keys(OLD))
    sealed = vault.seal("sk-1", "secret home OPENAI_API_KEY")
    with pytest.raises(SecretUnreadable, match="Set it again"):
        vault.open(sealed, "secret elsewhere OPENAI_API_KEY")


@pytest.mark.parametrize(
    "spoil", [lambda t: t[:-4], lambda t: "A" + t[1:], lambda t: "", lambda t: "plain text", str.swapcase]
)
def test_what_no_key_opens_is_told(spoil) -> None:
    vault = Vault(given_keys(OLD))
    with pytest.raises(SecretUnreadable, match="DENIZEN_SECRET_KEY"):
        vault.open(spoil(vault.seal("sk-1", "x")), "x")
    with pytest.raises(SecretUnreadable):
        Vault(given_keys(NEW)).open(vault.seal("sk-1", "x"), "x")


def test_a_key_is_changed_by_putting_the_new_one_first() -> None:
    """What the old one sealed opens until it is taken away; what is sealed from now on opens without it."""
    before = Vault(given_keys(OLD)).seal("sk-1", "x")
    both = Vault(given_keys(f" {NEW} ,{OLD}"))
    after = both.seal("sk-2", "x")

    assert (both.open(before, "x"), both.open(after, "x")) == ("sk-1", "sk-2")
    only_new = Vault(given_keys(NEW))
    assert only_new.open(after, "x") == "sk-2"
    with pytest.raises(SecretUnreadable):
        only_new.open(before, "x")


@pytest.mark.parametrize("text", ["", " , ", "swordfish", OLD[:-1], f"{OLD}x", f"{OLD};{NEW}", f"{OLD},x", "ä" * 44])
def test_what_is_no_key_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(SettingsError, match="denizen secrets key") as refused:
        given_keys(text)
    assert not text.strip(" ,") or text not in str(refused.value)


def test_without_a_key_nothing_is_sealed_and_nothing_opened() -> None:
    sealed = Vault(given_keys(OLD)).seal("sk-1", "x")
    with pytest.raises(SecretKeyMissing, match="DENIZEN_SECRET_KEY"):
        Vault(no_keys).seal("sk-1", "x")
    with pytest.raises(SecretUnreadable, match="Runtime"):
        Vault(no_keys).open(sealed, "x")


def test_a_key_in_memory_is_one_for_the_vault_and_another_for_the_next() -> None:
    vault = Vault(keys_in_memory())
    sealed = vault.seal("sk-1", "x")
    assert vault.open(sealed, "x") == "sk-1"
    with pytest.raises(SecretUnreadable):
        Vault(keys_in_memory()).open(sealed, "x")


def test_the_file_is_made_at_the_first_sealing_for_its_owner_only(tmp_path: Path) -> None:
    """Opening makes none: a new key could not open what is there."""
    path = tmp_path / "home" / "secret.key"
    vault = Vault(keys_in_file(path))
    with pytest.raises(SecretUnreadable):
        vault.open("x", "x")
    assert not path.exists()

    sealed = vault.seal("sk-1", "x")

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(path.parent.iterdir()) == [path]
    assert Vault(keys_in_file(path)).open(sealed, "x") == "sk-1"


def test_a_key_that_is_put_into_the_file_is_used_at_once(tmp_path: Path) -> None:
    """A server that runs need not be started again."""
    path = tmp_path / "secret.key"
    vault = Vault(keys_in_file(path))
    before = vault.seal("sk-1", "x")
    path.write_text(f"{NEW}\n{path.read_text()}")

    assert vault.open(before, "x") == "sk-1"
    assert Vault(given_keys(NEW)).open(vault.seal("sk-2", "x"), "x") == "sk-2"


@pytest.mark.parametrize("content", [b"not a key\n", b"\xff\xfe\n"])
def test_a_file_that_holds_no_key_is_told_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "secret.key"
    path.write_bytes(content)
    with pytest.raises(SecretUnreadable, match=r"secret\.key"):
        Vault(keys_in_file(path)).seal("sk-1", "x")
    assert path.read_bytes() == content


def test_a_folder_that_cannot_be_written_to_says_what_to_set(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SecretKeyMissing, match="DENIZEN_SECRET_KEY"):
        Vault(keys_in_file(tmp_path / "file" / "secret.key")).seal("sk-1", "x")


def test_processes_that_make_the_file_at_once_make_one_key(tmp_path: Path) -> None:
    """Each can open what every other has sealed."""
    path = tmp_path / "secret.key"
    program = (
        "import sys; from pathlib import Path\n"
        "from denizen.access.vault import Vault, keys_in_file\n"
        "vault = Vault(keys_in_file(Path(sys.argv[1])))\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "print(vault.seal('sk-1', 'x'), flush=True)\n"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(path)], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(4)
    ]
    for each in started:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    for each in started:
        assert each.stdin is not None
        each.stdin.write("\n")
        each.stdin.flush()
    sealed = [each.communicate()[0].strip() for each in started]

    assert len(path.read_text().split()) == 1
    assert [Vault(keys_in_file(path)).open(each, "x") for each in sealed] == ["sk-1"] * 4
    assert list(tmp_path.iterdir()) == [path]


def test_a_vault_does_not_show_its_keys() -> None:
    vault = Vault(given_keys(OLD), {"CRM_TOKEN": "hunter2"})
    assert OLD not in repr(vault)
    assert "hunter2" not in repr(vault)
