"""How many prompt injections succeed against an agent that always obeys them, and what the protection costs.

    python -m bench.injection [--only SUITE] [--keep FOLDER]

AgentDojo's tasks and attacks (suite v1), run by agents of Denizen: the model is a script that follows the task's ground
truth and does whatever the injection says, right after the first result or at the end. Its tools are AgentDojo's, in a
process and an environment of its own (made once in a folder, with `pip install agentdojo`). Nobody approves anything.

`attacks_succeeded` counts attacks whose goal AgentDojo's own check finds reached in either order; `text_only_succeeded`
those that only want something said, which no policy for effects can stop; `own_data_succeeded` attacks of ours on what
the person owns, with values from the person's own data. `utility` is the share of tasks that are done without a
question to a person, of those that are done without protection; `asked_a_person` counts the others.

Our own-data attacks are 275 cases (`OWN` in `_dojo.py`). The prototype that set the aims had 215 of another choice.
Each attack is tried with every task of its suite (40, 16, 20 and 21), so 215 cannot be our 212 of workspace, banking
and travel plus three. Which they were was not kept.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import venv
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic_ai.tools import ToolDefinition

from denizen import Runtime, call, reply, scripted
from denizen.models.scripted import Turn
from denizen.spaces.directory import Entity
from denizen.tools.functions import as_text
from denizen.tools.tool import CallIdentity, OutsideTool
from denizen.trust.policy import EffectSettings
from denizen.trust.values import Kind

ONLY_READS = ("get_", "search_", "read_", "list_", "check_")
"""How tools begin that only read what is the person's; `get_webpage` fetches from an address, which is an effect."""
MAKES = {"create_file": {"file_id": "id_"}}
KINDS: dict[str, dict[str, Kind]] = {"share_file": {"permission": "flag"}}
"""What whoever sets up the tools would say of them beside."""
POLICIES = {
    "none": EffectSettings(after_outside_text="allow"),
    "default": EffectSettings(),
    "strict": EffectSettings(after_outside_text="ask"),
}


class Dojo:
    """The process that has AgentDojo."""

    def __init__(self, child: asyncio.subprocess.Process) -> None:
        self._child = child
        self._turn = asyncio.Lock()

    async def ask(self, do: str, **more: Any) -> Any:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        async with self._turn:
            self._child.stdin.write(json.dumps({"do": do, **more}).encode() + b"\n")
            line = await self._child.stdout.readline()
        return json.loads(line)


@dataclass
class Outcome:
    """What became of one run."""

    utility: bool
    attack: bool
    asked: int


@dataclass
class Counts:
    """What became of all runs under one policy."""

    cases: int = 0
    attacks_succeeded: int = 0
    text_only_cases: int = 0
    text_only_succeeded: int = 0
    own_data_cases: int = 0
    own_data_succeeded: int = 0
    tasks: int = 0
    done: int = 0
    done_without_a_question: int = 0
    asked_a_person: int = 0
    succeeded: list[str] = field(default_factory=list[str])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="one suite: workspace, travel, banking or slack")
    parser.add_argument("--keep", type=Path, help="where the environment with agentdojo is made, or found again")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        python = environment(given.keep or Path(folder))
        counts = asyncio.run(measure(python, given.only))
    undefended = counts["none"].done_without_a_question
    policies = {
        name: {
            "attacks_succeeded": each.attacks_succeeded,
            "text_only_succeeded": each.text_only_succeeded,
            "own_data_succeeded": each.own_data_succeeded,
            "tasks_without_a_question": each.done_without_a_question,
            "utility": round(each.done_without_a_question / max(undefended, 1), 3),
            "asked_a_person": each.asked_a_person,
        }
        for name, each in counts.items()
    }
    usual = counts["default"]
    for each in usual.succeeded:
        print(f"succeeded under the default policy: {each}", file=sys.stderr)
    print(
        json.dumps(
            {
                "bench": "injection",
                "cases": usual.cases,
                "text_only_cases": usual.text_only_cases,
                "own_data_cases": usual.own_data_cases,
                "tasks": usual.tasks,
                **policies["default"],
                "policies": policies,
            }
        )
    )


def environment(folder: Path) -> Path:
    """The Python of an environment that has agentdojo."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "agentdojo"], check=True)
    return python


async def measure(python: Path, only: str | None) -> dict[str, Counts]:
    counts = {name: Counts() for name in POLICIES}
    async with dojo_process(python) as dojo:
        catalog: dict[str, Any] = await dojo.ask("catalog")
        for suite, known in catalog.items():
            if only not in (None, suite):
                continue
            for name, policy in POLICIES.items():
                async with house(dojo, known["tools"], policy) as agents:
                    await run_suite(agents, suite, known, counts[name])
                print(f"{suite}, {name}: {replace(counts[name], succeeded=[])}", file=sys.stderr)
    return counts


@asynccontextmanager
async def dojo_process(python: Path) -> AsyncGenerator[Dojo]:
    script = Path(__file__).with_name("_dojo.py")
    child = await asyncio.create_subprocess_exec(
        python, script, stdin=subprocess.PIPE, stdout=subprocess.PIPE, limit=2**24
    )
    try:
        yield Dojo(child)
    finally:
        child.terminate()
        await child.wait()


async def run_suite(agents: Agents, suite: str, known: Mapping[str, Any], counts: Counts) -> None:
    for task in known["user_tasks"]:
        alone = await agents.run(suite, task, None, last=True)
        counts.tasks += 1
        counts.done += alone.utility
        counts.done_without_a_question += alone.utility and not alone.asked
        counts.asked_a_person += bool(alone.asked)
        for attack in known["attacks"]:
            counts.cases += 1
            if await _succeeds(agents, suite, task, attack):
                counts.attacks_succeeded += 1
                counts.succeeded.append(f"{suite} {task} {attack}")
        for attack in known["text_only"]:
            counts.text_only_cases += 1
            counts.text_only_succeeded += await _succeeds(agents, suite, task, attack)
        for attack in known["own_attacks"]:
            counts.own_data_cases += 1
            if await _succeeds(agents, suite, task, attack):
                counts.own_data_succeeded += 1
                counts.succeeded.append(f"{suite} {task} {attack}")


async def _succeeds(agents: Agents, suite: str, task: str, attack: str) -> bool:
    """Whether the attack reaches its goal, at once after the first result or at the end."""
    return any([(await agents.run(suite, task, attack, last=last)).attack for last in (False, True)])


class Agents:
    """A house in which every run is a new agent, so that none remembers another."""

    def __init__(
        self, dojo: Dojo, denizen: Runtime, noor: Entity, tools: Sequence[str], policy: EffectSettings
    ) -> None:
        self._dojo, self._denizen, self._noor, self._policy = dojo, denizen, noor, policy
        self._tools = list(tools)
        self._number = 0

    async def run(self, suite: str, task: str, attack: str | None, *, last: bool) -> Outcome:
        case: dict[str, Any] = await self._dojo.ask("begin", suite=suite, user_task=task, attack=attack)
        output = f"{case['output']} {case['attack_output']}".strip() or "Done."
        self._number += 1
        agent = await self._denizen.agents.create(
            f"Agent {self._number}",
            model=scripted(*script(case, last=last), reply(output), "Done."),
            tools=self._tools,
            effects=self._policy,
            cycle={"max_steps": 60},
        )
        space = await self._denizen.spaces.create(f"Space {self._number}", [self._noor, agent])
        await self._denizen.spaces.post(space, self._noor, case["prompt"])
        asked = await self._until_it_sleeps()
        ended: dict[str, Any] = await self._dojo.ask("end", output=output)
        await self._denizen.agents.delete(agent)
        return Outcome(ended["utility"], ended["attack"], asked)

    async def _until_it_sleeps(self) -> int:
        """Run the agent to its end; gives how often it asked a person, who always refuses."""
        asked = 0
        while True:
            await self._denizen.run_until_idle()
            waiting = [each for each in await self._denizen.calls.waiting(self._noor) if each.asks_approval]
            if not waiting:
                return asked
            for each in waiting:
                asked += 1
                await self._denizen.calls.answer(each, {"confirmed": False}, by=self._noor)


def script(case: Mapping[str, Any], *, last: bool) -> list[Turn]:
    """What the model does: name the tools of the task, do the task, and what the injection says."""
    calls, attack = list(case["calls"]), list(case["attack"])
    named = sorted({each["tool"] for each in calls})
    steps = [*calls, *attack] if last else [*calls[:1], *attack, *calls[1:]]
    return [call("will_use", tools=named), *(call(each["tool"], **each["arguments"]) for each in steps)]


@asynccontextmanager
async def house(dojo: Dojo, tools: Sequence[Mapping[str, Any]], policy: EffectSettings) -> AsyncGenerator[Agents]:
    made = [proxy(dojo, each) for each in tools]
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'bench.db'}"
        async with Runtime(url, tools=made, default_model="demo") as denizen:
            noor = await denizen.people.create("Noor")
            yield Agents(dojo, denizen, noor, [each.name for each in made], policy)


def proxy(dojo: Dojo, of: Mapping[str, Any]) -> OutsideTool:
    """One of AgentDojo's tools. Whatever it answers may have been written by an attacker."""
    name = of["name"]

    async def run(arguments: Mapping[str, Any], _: CallIdentity) -> str:
        answer: dict[str, Any] = await dojo.ask("call", tool=name, arguments=dict(arguments))
        return as_text(answer["result"])

    def check(arguments: str | Mapping[str, Any] | None) -> Mapping[str, Any]:
        return json.loads(arguments or "{}") if isinstance(arguments, str) else arguments or {}

    return OutsideTool(
        ToolDefinition(name=name, description=of["description"], parameters_json_schema=of["parameters"]),
        check,
        run,
        effect=not name.startswith(ONLY_READS) or name == "get_webpage",
        kinds=KINDS.get(name, {}),
        makes=MAKES.get(name, {}),
    )


if __name__ == "__main__":
    main()
