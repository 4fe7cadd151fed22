"""The judge of the crash tests is not blind: what is lost or done twice by hand, it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text

from denizen.storage.database import Tx, statement
from denizen.storage.opening import open_database
from tests.crash.killing import Town, judge
from tests.crash.life import HastyClock, Journal, Post, append_line


def change(tx: Tx, sql: str) -> None:
    assert tx.run(statement(text(sql))) > 0


async def do(town: Town, sql: str) -> None:
    db = await open_database(town.url, clock=HastyClock(town.began), announce=lambda _: None)
    await db.write(change, sql)
    await db.close()


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Town:
    """Two questions, each answered."""
    folder = tmp_path_factory.mktemp("judged")
    town = Town(f"sqlite:///{folder / 'denizen.db'}", folder)
    posts = (Post(1, "desk", "noor", "ada", "note"), Post(2, "den", "finn", "bo", "mark"))
    assert town.live((posts,), remembers=True) == 0
    assert town.verdict().wrong == []
    return town


@pytest.fixture
def town(asked: Town, tmp_path: Path) -> Town:
    """A copy of that town, to be broken."""
    for each in asked.folder.iterdir():
        (tmp_path / each.name).write_bytes(each.read_bytes())
    return Town(f"sqlite:///{tmp_path / 'denizen.db'}", tmp_path, asked.began)


def test_an_acknowledged_question_that_is_not_there_is_lost(town: Town) -> None:
    Journal(town.folder / "journal", 1).write("posted", number=3)
    assert town.verdict().lost == [3]


async def test_an_answer_that_is_not_there_is_lost(town: Town) -> None:
    await do(town, "UPDATE messages SET text = 'nothing' WHERE text LIKE 're #1 %'")
    assert (await judge(town)).lost == [1]


async def test_a_second_answer_is_seen(town: Town) -> None:
    await do(
        town,
        "INSERT INTO messages (id, space_id, seq, author_id, text, created_at) "
        "SELECT 'again', space_id, seq + 50, author_id, text, created_at FROM messages WHERE text LIKE 're #1 %'",
    )
    verdict = await judge(town)
    assert verdict.duplicated == [1]
    assert verdict.violations


def test_a_second_effect_outside_is_seen(town: Town) -> None:
    append_line(town.folder / "note", "1")
    assert town.verdict().outside == ["#1 was noted 2 times"]


def test_an_effect_outside_that_did_not_happen_is_seen(town: Town) -> None:
    (town.folder / "note").unlink()
    (town.folder / "mark").unlink()
    assert sorted(town.verdict().outside) == ["#1 was not noted, though its answer says so", "#2 was never marked"]


def test_a_model_call_made_again_is_seen(town: Town) -> None:
    journal = Journal(town.folder / "journal", 2)
    journal.write("found", stored={"cycle": 1}, open=["cycle"])
    journal.write("asked", cycle="cycle", step=1)
    assert town.verdict().asked_again == []
    journal.write("asked", cycle="cycle", step=0)
    assert town.verdict().asked_again == [("cycle", 0)]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("UPDATE rollings SET summary = '1 1 2'", "was summed up as 1 1 2, not as 1 to 2"),
        ("DELETE FROM memories WHERE text LIKE 'Message 2 %'", "its messages are remembered [1, 0] times"),
        ("UPDATE ledger SET detail = 'memory' WHERE kind = 'usage'", "passes were paid"),
        ("UPDATE rollings SET summary = '', upto = 0", "was not summed up"),
    ],
)
async def test_a_conversation_that_came_to_something_else_is_seen(town: Town, sql: str, said: str) -> None:
    await do(town, sql)
    assert said in "\n".join((await judge(town)).memory)


def test_a_defect_is_seen(town: Town) -> None:
    append_line(town.folder / "defects", "life ended by a defect")
    assert town.verdict().wrong == ["life ended by a defect"]
