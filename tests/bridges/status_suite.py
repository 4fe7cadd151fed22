"""What the other side shows of why an answer is missing, for every service but mail: once, and only while it is so."""

from __future__ import annotations

from denizen import failpoints, reply
from denizen.bridges.told_statuses import SETTLED_SECONDS
from tests.bridges.conformance import ROOM, STEPS_OUT, Service, build, kill_once_at
from tests.world import World

STEPS_TO_TELL = ("commit:tell", "committed:tell", *STEPS_OUT)
SUSPENDED = "Ada is suspended. Your message is kept. Ada answers when an admin resumes it."


def line(text: str) -> str:
    """What is said there without the name of an author: the bridge says it."""
    return f"{ROOM}: {text}"


class StatusSuite:
    async def test_why_there_is_no_answer_is_told_there_once(self, bay: World, service: Service) -> None:
        """When it has lasted for a minute, as a reply to who asked. Not again while it lasts."""
        ada = await bay.agent("Ada")
        pier = await build(bay, service, ada)
        await bay.denizen.agents.suspend(ada)
        asked = await service.write(ROOM, "Eve", "@ada when?")
        await pier.run()
        await pier.run_after(SETTLED_SECONDS - 1)
        assert service.said == []
        await pier.run_after(1)
        assert service.said == [f"{line(SUSPENDED)} (to {asked})"]
        await service.write(ROOM, "Eve", "@ada please!")
        for _ in range(3):
            await pier.run_after(SETTLED_SECONDS)
        await bay.restart()
        await pier.run_after(SETTLED_SECONDS)
        assert len(service.said) == 1
        assert await pier.notices() == []

    async def test_trouble_that_is_over_before_it_is_told_is_not_told(self, bay: World, service: Service) -> None:
        ada = await bay.agent("Ada", reply("At noon."), "Told Eve.")
        pier = await build(bay, service, ada)
        await bay.denizen.agents.suspend(ada)
        await service.write(ROOM, "Eve", "@ada when?")
        await pier.run()
        await pier.run_after(SETTLED_SECONDS - 1)
        await bay.denizen.agents.resume(ada)
        await pier.run_after(SETTLED_SECONDS)
        assert service.said == [f"{ROOM}: Ada: At noon."]

    async def test_killed_at_each_step_of_telling_it_is_told(self, bay: World, service: Service) -> None:
        """Once where the service can tell; elsewhere perhaps twice."""
        ada = await bay.agent("Ada", *[turn for step in STEPS_TO_TELL for turn in (reply(step), "Told Eve.")])
        pier = await build(bay, service, ada)
        wanted: list[str] = []
        for step in STEPS_TO_TELL:
            await bay.denizen.agents.suspend(ada)
            asked = await service.write(ROOM, "Eve", f"@ada {step}?")
            await pier.run()
            kill_once_at(step)
            await pier.run_after(SETTLED_SECONDS)
            assert not failpoints.armed, f"{step} was never passed"
            await bay.restart()
            await pier.run_after(3600)
            await bay.denizen.agents.resume(ada)
            await pier.run()
            wanted += [f"{line(SUSPENDED)} (to {asked})", f"{ROOM}: Ada: {step}"]
        assert list(dict.fromkeys(service.said)) == wanted
        assert len(service.said) == len(wanted) if service.sends_once else len(service.said) <= len(wanted) + 2
