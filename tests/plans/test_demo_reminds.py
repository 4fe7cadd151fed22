"""The built-in demo model keeps its word: it sets a timer with the tools there are, and speaks when it goes off."""

from __future__ import annotations

from denizen import ManualClock, Runtime


async def test_the_demo_model_reminds_whoever_asked_it(ready_sqlite_url: str):
    clock = ManualClock()
    async with Runtime(ready_sqlite_url, clock=clock) as denizen:
        noor = await denizen.people.create("Noor")
        ada = await denizen.agents.create("Ada", model="demo")
        home = await denizen.spaces.create("Home", [noor, ada])
        await denizen.spaces.post(home, noor, "Remind me in 2 minutes to call mum")
        await denizen.run_until_idle()
        [timer] = await denizen.plans.list(ada)
        said = len(await denizen.spaces.transcript(home))
        clock.advance(120)
        await denizen.run_until_idle()
        assert timer.kind == "timer"
        assert [line for line in (await denizen.spaces.transcript(home))[said:] if "call mum" in line]
        assert await denizen.plans.list(ada) == []
