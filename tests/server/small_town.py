"""Two organizations with something of everything in them, to walk every route through; and what to ask a route with.

Parameters of paths and queries, and fields of bodies, are filled in by their names: a route that is added is walked by
itself if it calls things as the others do. A name that is new is to be added to `_FILLED` or `_PLAIN`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from denizen import call
from denizen.access import roles, tokens
from denizen.agents.registry import Agent
from denizen.app import Runtime
from denizen.ids import SpaceId
from denizen.memory import items
from denizen.memory.audience import Owner
from denizen.memory.items import Candidate
from denizen.notifications import subscriptions
from denizen.server.application import create_app
from denizen.spaces import directory
from denizen.spaces.directory import Entity, Organization
from denizen.tools import grants
from denizen.tools.settings import ClientTool
from tests.notifications.push_service import Browser
from tests.world import World

CONFIRM = ClientTool(name="confirm", description="Ask whether you may.")

_FILLED = {
    "space": ("space_id", "space", "conversation_id"),
    "agent": ("agent_id", "agent"),
    "entity": ("entity_id", "entity", "author", "member", "member_id", "person", "who"),
    "message": ("message_id", "message", "reply_to"),
    "file": ("file_id",),
    "call": ("call_id",),
    "webhook": ("webhook_id",),
    "bridge": ("bridge_id",),
    "channel": ("channel_id",),
    "account": ("account", "transaction_id"),
    "token": ("token_id",),
    "event": ("event_id", "event"),
    "key": ("name",),
    "note": ("key",),
    "plan": ("plan", "plan_name"),
    "panel": ("panel_id", "panel"),
    "advisor": ("advisor_id", "advisor", "voice"),
    "round": ("round_id",),
    "memory": ("memory_id",),
    "approval": ("approval_id",),
    "subscription": ("subscription_id",),
}
"""What there is in a place, and how routes call it."""

_PLAIN = {"n": "1", "cycle": "1", "number": "1", "goal": "1", "k": "0", "step": "0", "emoji": "👍"}
"""Numbers that mean something only below an agent, and what means the same everywhere."""

_KIND = {name: kind for kind, names in _FILLED.items() for name in names}
NOT_TELLING = frozenset({"name", "key", "plan", "plan_name", *_PLAIN})
"""What does not say whose it is: anyone may have one of that name."""


@cache
def description() -> Mapping[str, Any]:
    """What the API says of itself; made once, because it takes a second."""
    return create_app(Runtime()).openapi()


@dataclass
class Part:
    """What an organization has, by kind; every word in it is its own."""

    ids: dict[str, str] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)
    """A message of each caller, for what only its author may do."""
    waiting: str = ""
    """An agent that is suspended, with an event in its inbox."""


@dataclass
class Town:
    """Home, whose people ask; a diary there that only its owner is in; and Elsewhere, of which nobody here may know."""

    home: Part
    diary: Part
    elsewhere: Part
    secrets: dict[str, str]
    """An access token for someone of each role at Home."""


async def build(world: World) -> Town:
    """The town, all of it asleep. What belongs to Elsewhere says so in every word."""
    denizen = world.denizen
    home = await denizen.organizations.create("Home")
    people = {
        "owner": await world.person("Olga", organization=home),
        "admin": await world.person("Amin", organization=home),
    }
    people["member"] = await world.person("Mia", organization=home)
    await denizen.db.write(roles.set_role, people["admin"].id, "admin")
    guest = await denizen.db.write(directory.create_entity, home.id, "human", name="Gus", handle="gus", guest=True)
    people["guest"] = guest
    people["service"] = await denizen.db.write(directory.create_entity, home.id, "service", name="CI", handle="ci")
    part, ada = await _furnish(world, home, "", list(people.values()))
    people["agent"] = ada.entity
    kitchen = part.ids["space"]
    for role, who in people.items():
        # Said to Ada, because words to nobody would answer what Bee has asked.
        said = await denizen.spaces.post(directory.SpaceId(kitchen), who, f"I am {role}, @{ada.entity.handle}.")
        part.messages[role] = said.id
    diary = await denizen.spaces.create("privateonly", [people["owner"]], private=True, organization=home)
    page = await denizen.files.upload(people["owner"], b"privateonly", name="privateonly.txt")
    entry = await denizen.spaces.post(diary, people["owner"], "privateonly", files=[page])
    other = await denizen.organizations.create("elsewhereonly")
    eve = await world.person("elsewhereonly Eve", organization=other)
    elsewhere, _ = await _furnish(world, other, "elsewhereonly ", [eve])
    secrets = {role: (await denizen.db.write(tokens.create, who.id, role))[1] for role, who in people.items()}
    return Town(part, Part({**part.ids, "space": diary.id, "message": entry.id, "file": page.id}), elsewhere, secrets)


async def _furnish(world: World, home: Organization, mark: str, people: list[Entity]) -> tuple[Part, Agent]:
    """Agents that have lived, and one of everything else."""
    denizen, key = world.denizen, mark.strip().upper() or "HOME"
    first = people[0]
    victim = await world.person(f"{mark}Max", organization=home)
    ada = await denizen.agents.create(f"{mark}Ada", model="demo", instructions=f"{mark}You help.", organization=home)
    bee = await world.agent(f"{mark}Bee", call("confirm"), tools=[CONFIRM], organization=home)
    bo = await denizen.agents.create(f"{mark}Bo", model="demo", organization=home)
    kitchen = await denizen.spaces.create(f"{mark}Kitchen", [*people, victim, ada, bee], floor="all", organization=home)
    file = await denizen.files.upload(first, f"{mark}Soup".encode(), name=f"{mark}menu.txt")
    hello = f"{mark}Hello, @{ada.entity.handle} and @{bee.entity.handle}."
    said = await denizen.spaces.post(kitchen, first, hello, files=[file])
    await denizen.run_until_idle()
    [waiting] = await denizen.calls.list(kitchen)
    await denizen.goals.set(ada, f"{mark}goal")
    await denizen.notes.set(ada, f"{mark}note".replace(" ", "_"), f"{mark}text")
    await denizen.plans.set(ada, f"{mark}plan", f"{mark}instruction", cron="0 9 * * *")
    webhook, _ = await denizen.webhooks.create(ada, f"{mark}hook")
    url = {"url": "https://example.org/"}
    bridge, _ = await denizen.bridges.create(f"{mark}Helpdesk", "webhook", url, organization=home)
    garden = await denizen.spaces.create(f"{mark}Garden", people, organization=home)
    channel = await denizen.bridges.connect(bridge, garden, f"{mark}ticket")
    await denizen.secrets.set(f"{key}_KEY", f"{mark}value of a key", organization=home)
    await denizen.agents.suspend(bo)
    await denizen.agents.trigger(bo, f"{mark}CI", text=f"{mark}text")
    [event] = await denizen.minds.inbox(bo)
    panel = await denizen.panels.create(
        f"{mark}Board", people, advisors=[f"{mark}Seth", f"{mark}Pema"], model="demo", organization=home
    )
    asked = await denizen.panels.ask(panel, first, f"{mark}What now?")
    await denizen.run_until_idle()
    [seth, _] = await denizen.advisors.list(panel)
    token, _ = await denizen.db.write(tokens.create, victim.id, f"{mark}token")
    ids = {
        "space": kitchen.id,
        "agent": ada.id,
        "entity": victim.id,
        "message": said.id,
        "file": file.id,
        "call": waiting.id,
        "webhook": webhook.id,
        "bridge": bridge.id,
        "channel": channel.id,
        "account": f"{mark}account".replace(" ", "-"),
        "token": token.id,
        "subscription": await _subscribed(world, victim, token.id, key),
        "event": event.id,
        "key": f"{key}_KEY",
        "note": f"{mark}note".replace(" ", "_"),
        "plan": f"{mark}plan",
        "panel": panel.id,
        "advisor": seth.id,
        "round": asked.id,
        "approval": await _approved(world, ada, first, kitchen.id, f'{{"to": "{mark}Max"}}'),
        "memory": await _remembered(world, home, f"{mark}Tea is at four.", kitchen.id, said.id),
    }
    return Part(ids, waiting=bo.id), ada


async def _approved(world: World, agent: Agent, by: Entity, space_id: SpaceId, arguments: str) -> str:
    """Something that the agent may do again."""
    given = grants.Verdict(confirmed=True, times=100)
    about = {"by": by.id, "call_id": "call", "space_id": space_id}
    await world.denizen.db.write(grants.give, agent.id, "pay", arguments, given, **about)
    return (await world.denizen.calls.approvals(agent))[0].id


async def _subscribed(world: World, who: Entity, token_id: str, name: str) -> str:
    """A browser in which they are notified."""
    keys = Browser().keys
    new = subscriptions.checked(f"https://push.example/{name}", keys["p256dh"], keys["auth"])
    return await world.denizen.db.write(subscriptions.subscribe, who.id, token_id, new)


async def _remembered(world: World, home: Organization, text: str, space_id: SpaceId, message_id: str) -> str:
    """Something that is remembered of the conversation."""
    owner, what = Owner("conversation", home.id, space_id=space_id), Candidate("facts", text, (message_id,))
    await world.denizen.db.write(items.remember, owner, space_id, [what])
    return (await world.denizen.memory.list(owner=owner.key))[0].id


def value(name: str, part: Part, path: str, role: str = "") -> str:
    """What stands for this name in that part of the town. Raises KeyError where the walk does not know the name."""
    if name in _PLAIN:
        return _PLAIN[name]
    # Only in a path: in a body it is what an agent thinks with.
    kind = "agent" if name == "model" else _KIND[name]
    if kind == "agent" and ("{event}" in path or "{event_id}" in path):
        return part.waiting
    return part.messages.get(role, part.ids["message"]) if kind == "message" else part.ids[kind]


def names_in(path: str) -> list[str]:
    return re.findall(r"{(\w+)}", path)


def filled(path: str, part: Part, role: str = "") -> str:
    """The path of something in that part of the town."""
    return re.sub(r"{(\w+)}", lambda found: value(found[1], part, path, role), path)


def body_of(description: Mapping[str, Any], operation: Mapping[str, Any], part: Part, *, all_fields: bool) -> Any:
    """A body as the API's description shows it, about that part of the town; None where none is taken.

    With `all_fields`, every field is there whose name says that it means something in the town.
    """
    content = operation.get("requestBody", {}).get("content", {})
    if "application/json" not in content:
        return None
    schema = _resolved(description, content["application/json"]["schema"])
    example = (schema.get("examples") or [None])[0] or _least(description, schema)
    if not isinstance(example, dict):
        return example
    names = set(example) | (set(schema.get("properties", {})) if all_fields else set())
    return {name: _field(name, example.get(name), part) for name in names}


def _field(name: str, given: Any, part: Part) -> Any:
    if name == "members":
        return [part.ids["entity"]]
    if name in _KIND and name not in NOT_TELLING and (given is None or isinstance(given, str)):
        return part.ids[_KIND[name]]
    return given


def _resolved(description: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    while "$ref" in schema:
        schema = description["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def _least(description: Mapping[str, Any], schema: Mapping[str, Any]) -> Any:
    """The least that fits the schema, roughly."""
    schema = _resolved(description, schema)
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            return _least(description, schema[choice][0])
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            return {name: _least(description, schema["properties"][name]) for name in schema.get("required", [])}
        case "array":
            return []
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return False
        case _:
            return "x"


def operations(description: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Method, path and description of every request there is."""
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def needed(operation: Mapping[str, Any]) -> dict[str, str]:
    """The parameters of the query without which nothing is answered."""
    given = [each for each in operation.get("parameters", []) if each["in"] == "query" and each.get("required")]
    return {each["name"]: "anything" for each in given}


def about(operation: Mapping[str, Any], part: Part, path: str) -> dict[str, str]:
    """The parameters of the query that mean something in the town."""
    given = [each["name"] for each in operation.get("parameters", []) if each["in"] == "query"]
    return {name: value(name, part, path) for name in given if name in _KIND}
