"""The support desk, played by the demo model."""

from __future__ import annotations

from tests.examples.playing import playing


async def test_sana_answers_remembers_and_asks_theo(ready_url: str) -> None:
    """Theo hears only what mentions him."""
    async with playing("support-desk", ready_url) as house:
        for said in (
            "Hello!",
            "@sana tell @theo that the printer on floor 2 is broken",
            "@sana ask @theo what is 12 * 30?",
        ):
            await house.say("Support", said)
        assert await house.transcript("Support") == [
            "Noor: Hello!",
            'Sana: Hello, Noor. I am Sana. Say "help" to see what I can do.',
            "Noor: @sana tell @theo that the printer on floor 2 is broken",
            "Sana: @theo, Noor asks me to tell you: the printer on floor 2 is broken",
            "Noor: @sana ask @theo what is 12 * 30?",
            "Sana: @theo, Noor asks: what is 12 * 30?",
            "Theo: 12 × 30 = 360",
        ]
        theo = await house.agent("theo")
        heard = [entry for entry in await house.denizen.minds.log(theo) if entry.kind == "inbox"]
        assert "Hello!" not in str(heard)
        sana = await house.agent("sana")
        assert [plan.name for plan in await house.denizen.plans.list(sana)] == ["What is left"]
