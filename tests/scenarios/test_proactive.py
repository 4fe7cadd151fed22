"""Scenario 5: an agent that wakes itself. No person ever said anything."""

from __future__ import annotations

import re

from denizen import call, reply, scripted, tool
from tests.world import World


async def test_a_server_watcher_looks_every_hour_and_speaks_up_when_it_must(world: World):
    """It sets a timer, sleeps, is woken by it, looks, warns the others, sets the next one, and sleeps again.

    A service woke it first, so its timers are marked. It looks without asking anybody: looking has no effect.
    """
    loads = iter([41, 95])

    @tool(effect=False)
    def server_health() -> str:
        """Look at the server."""
        return f"CPU at {next(loads)}%"

    hourly = call("set_timer", after="1 hour", reason="Check the health of the server.")
    watcher = await world.agent("Watcher", tools=[server_health])
    ops = await world.space("Ops", watcher)
    await world.restart(
        watcher=scripted(
            hourly,
            "Began to watch the server.",
            call("server_health"),
            hourly,
            "All quiet. Looking again in an hour.",
            call("server_health"),
            [call("enter_space", space_id=ops.id), reply("⚠️ Server CPU at 95%"), hourly],
            "Warned Ops: CPU at 95%. Looking again in an hour.",
        )
    )
    await world.denizen.agents.trigger(watcher, "boot", text="You watch the server from now on.", id="boot")
    await world.run()
    assert await world.denizen.agents.status(watcher) == "sleeping"
    await world.run_after(3599)
    assert len(await world.cycles(watcher)) == 1
    await world.run_after(1)
    await world.run_after(3600)

    assert await world.transcript(ops) == ["Watcher: ⚠️ Server CPU at 95%"]
    history, timers = with_timers_named(await world.history(watcher))
    assert history == [
        (
            "inbox: [INBOX - 1 new event]\n"
            "Now: Monday 2026-01-05 09:00 UTC\n"
            "\n"
            '1. [Service "boot"] "You watch the server from now on."\n'
            "   → received just now"
        ),
        'response: set_timer {"after":"1 hour","reason":"Check the health of the server."}',
        'results: set_timer → {"success":true,"timerId":"<timer 1>","at":"2026-01-05 10:00 UTC"}',
        "response: Began to watch the server.",
        (
            "inbox: [INBOX - 1 new event]\n"
            "Now: Monday 2026-01-05 10:00 UTC\n"
            "\n"
            "1. [Timer | timerId: <timer 1> | holds text from outside] Your reminder:\n"
            "   > Check the health of the server.\n"
            "   → received just now"
        ),
        "response: server_health {}",
        "results: server_health → CPU at 41%",
        'response: set_timer {"after":"1 hour","reason":"Check the health of the server."}',
        'results: set_timer → {"success":true,"timerId":"<timer 2>","at":"2026-01-05 11:00 UTC"}',
        "response: All quiet. Looking again in an hour.",
        (
            "inbox: [INBOX - 1 new event]\n"
            "Now: Monday 2026-01-05 11:00 UTC\n"
            "\n"
            "1. [Timer | timerId: <timer 2> | holds text from outside] Your reminder:\n"
            "   > Check the health of the server.\n"
            "   → received just now"
        ),
        "response: server_health {}",
        "results: server_health → CPU at 95%",
        (
            'response: enter_space {"space_id":"<Ops>"}\n'
            'send_message {"text":"⚠️ Server CPU at 95%"}\n'
            'set_timer {"after":"1 hour","reason":"Check the health of the server."}'
        ),
        (
            'results: enter_space → {"success":true,"spaceName":"Ops"}\n'
            'send_message → {"success":true,"messageId":"<Ops 1>"}\n'
            'set_timer → {"success":true,"timerId":"<timer 3>","at":"2026-01-05 12:00 UTC"}'
        ),
        "response: Warned Ops: CPU at 95%. Looking again in an hour.",
    ]
    assert await world.denizen.agents.status(watcher) == "sleeping"
    assert [plan.id for plan in await world.denizen.plans.list(watcher)] == timers[2:]


def with_timers_named(history: list[str]) -> tuple[list[str], list[str]]:
    """The history with names for the ids of timers, and those ids in the order in which they were set."""
    timers = list(dict.fromkeys(re.findall(r'"timerId":"([^"]+)"', "\n".join(history))))
    for number, timer in enumerate(timers, start=1):
        history = [text.replace(timer, f"<timer {number}>") for text in history]
    return history, timers
