"""Why an agent has not answered, in `denizen chat`: a line says it, the bar names it, a command does something."""

from __future__ import annotations

from pathlib import Path

from denizen.inbox import parking
from denizen.models.scripted import forever, reply, skip
from denizen.storage.database import Tx
from tests.cli.chat.houses import House, has_replied, open_house
from tests.cli.chat.test_answering import Paper, bar, talking


async def shows(paper: Paper, beginning: str) -> None:
    await paper.until(lambda: any(" ".join(each.split()).startswith(beginning) for each in paper.shown))


async def test_a_parked_agent_is_shown_and_tried_again(house: House, tmp_path: Path) -> None:
    def reject_key(tx: Tx) -> None:
        parking.park(tx, house.ada.id, "key", provider="OpenAI")

    await house.runtime.db.write(reject_key)
    async with talking(house, tmp_path, "@ada") as (paper, talk, _):
        paper.type("Hello?")
        await shows(paper, "OpenAI rejected the API key of Ada.")
        await paper.until(lambda: bar(talk) == "Noor and Ada · no answer from Ada · with Ada · /help")
        paper.type("/ask ada")
        await shows(paper, "No agent here waits for that.")
        paper.type("/retry @ada")
        await shows(paper, "Ada tries again.")
        await paper.until("Ada: Ada hears you.")
        await paper.until(lambda: bar(talk) == "Noor and Ada · with Ada · /help")
    [line] = [" ".join(each.split()) for each in paper.shown if "rejected" in each]
    assert line.endswith("/retry")


async def test_an_agent_that_did_not_reply_is_asked(ready_sqlite_url: str, tmp_path: Path) -> None:
    ada = forever(
        lambda messages, info: "Done." if has_replied(messages) else skip("no") if info.number == 0 else reply("Sorry!")
    )
    async with open_house(ready_sqlite_url, ada=ada) as house, talking(house, tmp_path, "@ada") as (paper, _, _):
        paper.type("Hello?")
        await shows(paper, "Ada read this and did not reply. /ask")
        paper.type("/ask")
        await shows(paper, "Ada is asked for an answer.")
        await paper.until("Ada: Sorry!")
