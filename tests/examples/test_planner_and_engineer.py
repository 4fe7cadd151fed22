"""Planner and engineer: two agents work out what a person asked for."""

from __future__ import annotations

from denizen import reply
from tests.examples.playing import cast, playing


async def test_pat_asks_eli_and_sends_the_spec(ready_url: str) -> None:
    """Each with a mind of its own, in one space, each told its own role."""
    model = cast(
        pat=[
            reply("I'll draft the spec. @eli, what's the technical complexity?"),
            "Asked Eli about dark mode for Noor.",
            reply("Here's the spec: toggle (2 days, Eli confirmed), persistence (0.5), sync (1). Total: 3.5 days."),
            "Sent Noor the spec for dark mode.",
        ],
        eli=[
            reply("Medium. The theme provider and three component libraries, about 2 days."),
            "Told Pat: about 2 days.",
        ],
    )
    async with playing("planner-and-engineer", ready_url, model) as house:
        await house.say("Planning", "@pat I need a feature spec for dark mode")
        assert await house.transcript("Planning") == [
            "Noor: @pat I need a feature spec for dark mode",
            "Pat: I'll draft the spec. @eli, what's the technical complexity?",
            "Eli: Medium. The theme provider and three component libraries, about 2 days.",
            "Pat: Here's the spec: toggle (2 days, Eli confirmed), persistence (0.5), sync (1). Total: 3.5 days.",
        ]
        pat, eli = await house.agent("pat"), await house.agent("eli")
        assert [len(await house.denizen.minds.cycles(each)) for each in (pat, eli)] == [2, 1]
        told = str(model.requests[0][0])
        assert "You are a product manager." in told
        assert "Every feature has a spec before anyone builds it (goal 1, active)" in told
