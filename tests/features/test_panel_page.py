"""Panels in the browser."""

from __future__ import annotations

from denizen import forever
from tests.world import World

GOOD = (
    "What did your teacher say when they recommended The Prosperous Coach?",
    "How many of these potential clients have you worked with before?",
)
BAD = ("What would it mean to risk an authentic encounter?", "What are you protecting?")


async def test_advisors_are_shown_good_and_bad_questions(small_world: World) -> None:
    """In its first three turns an advisor is told to ask one question, with two good and two bad examples, each with
    its reason.

    Docs: panel.md
    """
    denizen, noor = small_world.denizen, await small_world.person("Noor")
    denizen.models.register("echo", forever(lambda messages, info: "Why?"))
    board = await denizen.panels.create("Board", [noor], advisors=["Seth"], model="echo")
    asked = await denizen.panels.ask(board, noor, "Should I open a bakery?")
    await denizen.run_until_idle()

    (seth,) = await denizen.advisors.list(board)
    prompt = (await denizen.rounds.context(asked, seth)).lines[0].text
    examples = [line for line in prompt.splitlines() if line.startswith(("Good: ", "Bad: "))]
    assert [line.split('"')[1] for line in examples] == [*GOOD, *BAD]
    assert all(line.endswith(".)") for line in examples)


async def test_a_panel_can_hide_what_the_others_said(small_world: World) -> None:
    """Each panel decides whether its advisors see what the others said in the previous turn. The context of a reply
    lists what was left out, and why.

    Docs: panel.md
    """
    denizen, noor = small_world.denizen, await small_world.person("Noor")
    denizen.models.register("echo", forever(lambda messages, info: "Why?"))
    board = await denizen.panels.create("Board", [noor], advisors=["Seth", "Buber"], model="echo", show_others=False)
    await denizen.panels.ask(board, noor, "Should I open a bakery?")
    await denizen.run_until_idle()
    asked = await denizen.panels.ask(board, noor, "And when?")
    await denizen.run_until_idle()

    seth, _ = await denizen.advisors.list(board)
    shown = await denizen.rounds.context(asked, seth)
    assert [line.role for line in shown.lines] == ["system", "user", "assistant", "user"]
    assert [each.sentence() for each in shown.omitted] == [
        "What Buber said last was left out: the panel's settings hide it."
    ]
