"""Where the terminal lists what an agent made, it says what was made from text from outside."""

from __future__ import annotations

from pathlib import Path

from denizen import call, scripted, tool
from denizen.memory import items
from denizen.memory.audience import Owner
from denizen.memory.items import Candidate
from tests.cli.terminals import elsewhere

MARK = " · made from text from outside"


@tool(results="outside", effect=False)
def get_page() -> str:
    """Read the page."""
    return "Buy now!"


async def test_goals_notes_plans_and_memories_are_marked(environ: dict[str, str], tmp_path: Path) -> None:
    async with elsewhere(tmp_path / "elsewhere") as terminal:
        runtime, owner = terminal.house.runtime, terminal.house.world.owner
        wanted = [
            call("set_goals", text="Buy now"),
            call("set_memories", memories={"shop": "Sells now."}),
            call("set_timer", name="Buying", reason="Buy it.", cron="0 9 * * *"),
        ]
        model = scripted(call("get_page"), wanted, "Noted.")
        reader = await runtime.agents.create("Reader", model=model, tools=[get_page], cycle={"silent_reply": "ignore"})
        await runtime.notes.set(reader, "tea", "Milk.")
        space = await runtime.spaces.create("Library", [owner, reader])
        await runtime.spaces.post(space, owner, "Read the page.")
        await runtime.run_until_idle()
        whose = Owner("user", owner.organization_id, user_id=owner.id)
        kept = [Candidate("facts", "They sing.", ("m",)), Candidate("facts", "They buy.", ("m",), outside=True)]
        await runtime.db.write(items.remember, whose, space.id, kept)

        shown = (await terminal("inspect", "@reader")).output.splitlines()
        lines = [line.strip() for line in shown if any(each in line for each in ("Buy", "Sells", "Milk"))]
        assert [line.endswith(MARK) for line in lines if "Milk" not in line] == [True] * 3
        assert [line.endswith(MARK) for line in lines if "Milk" in line] == [False]
        remembered = (await terminal("memory", "list")).output.splitlines()
        about = {line: remembered[at + 1] for at, line in enumerate(remembered) if line.startswith("They ")}
        assert {text: line.endswith(MARK) for text, line in about.items()} == {"They sing.": False, "They buy.": True}
