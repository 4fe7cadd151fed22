"""Whatever happens, in whatever order, to agents, their inboxes and the processes that think for them: nothing is lost,
nothing happens twice, nothing that was committed changes.

A state machine runs the real transactions on a real database and keeps a plain record of what must be true.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from typing import Any, Final

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.usage import RequestUsage

from denizen.agents import registry
from denizen.agents.restrictions import UNRESTRICTED_PARTS_ONLY
from denizen.clock import SECOND
from denizen.consciousness import lease as leases
from denizen.consciousness import log
from denizen.consciousness import mind as minds
from denizen.consciousness.lease import LEASE_SECONDS, Lease
from denizen.consciousness.log import Entry
from denizen.consciousness.settings import WindowSettings
from denizen.consciousness.system_prompt import Era, Identity
from denizen.consciousness.window import budget
from denizen.cycles import calling, ending
from denizen.cycles.answering import CheckedText
from denizen.cycles.calling import FinishedCall, Progress, ResponseStep
from denizen.cycles.ending import Ending
from denizen.cycles.ledger import Charge
from denizen.cycles.opening import OpenedCycle, Waking, open_cycle, resume_cycle
from denizen.cycles.records import OpenCycle, calls_of, open_cycle_id
from denizen.errors import IdempotencyKeyReused, LeaseLost
from denizen.ids import AgentId, CycleId, EntityId, MessageId, SpaceId, new_id
from denizen.inbox import delivery
from denizen.inbox.delivery import DEAD_AFTER, Delivery
from denizen.inbox.urgency import says_only_stop
from denizen.models import codec
from denizen.spaces import directory, leaving, posting
from denizen.spaces.directory import Attention
from denizen.spaces.fan_out import HOP_BUDGET
from denizen.storage.database import Tx
from denizen.tools.calls import UNKNOWN_OUTCOME
from denizen.tools.functions import tool
from denizen.tools.prebuilt import PREBUILT
from denizen.tools.tool import OutsideTool, Toolbox
from denizen.trust.policy import EffectSettings
from tests.properties.house import House, Rows, opened, records, violations

EXAMPLES: Final = settings.default.max_examples if settings.default else 100
pytestmark = pytest.mark.timeout(900 if EXAMPLES <= 100 else 3600)


@tool
def knock(door: str) -> str:
    """Knock at a door."""
    return door


@tool(independent=True)
def glance(at: str) -> str:
    """Look at something."""
    return at


# What services tell is text from outside. Nobody is asked before an effect here: `test_waiting.py` asks people.
TOOLBOX: Final = Toolbox([*PREBUILT, knock, glance], EffectSettings(after_outside_text="allow"))
CHARGE: Final = Charge("scripted", 10, 5, 0, 0, 7)
INSTANCES: Final = ("a", "b")
REFUSED: Final = object()
OWN_MESSAGES: Final = 20
"""So many of its last messages an agent does not say again."""
UNBORN: Final = Era(0, "")
WINDOW: Final = WindowSettings()


@dataclass
class Known:
    """What must be true of an event."""

    state: str = "pending"
    attempts: int = 0
    urgent: bool = False
    message: bool = False
    interruptions: int = 0


@dataclass
class Life:
    """What must be true of an agent."""

    id: AgentId
    handle: str
    version: int = 1
    status: str = "active"
    epoch: int = 0
    holder: str | None = None
    until: int = 0
    events: dict[str, Known] = field(default_factory=dict[str, Known])
    ended: int = 0
    rows: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    """The log as it was last seen."""
    committed: int = 0
    """How many of its rows belong to ended cycles."""
    cycle: CycleId | None = None
    active: SpaceId | None = None
    effects: dict[tuple[int, int], str] = field(default_factory=dict[tuple[int, int], str])
    handed_back: bool = False
    tries: int = 0
    interruptions: int = 0
    again_at: int = 0
    before: dict[str, Any] = field(default_factory=dict[str, Any])
    """What was stored of it when its open cycle began."""

    def taken(self) -> list[str]:
        return [id for id, event in self.events.items() if event.state == "taken"]

    def close(self, state: str) -> None:
        """The open cycle is over; its events are `state`."""
        for id in self.taken():
            self.events[id].state = state
        self.cycle, self.active, self.handed_back, self.tries, self.again_at = None, None, False, 0, 0
        self.interruptions = 0
        self.effects.clear()


@dataclass
class Holder:
    """What one process has in memory of one agent; it may have lost the lease long ago."""

    lease: Lease
    phase: str = "new"
    """new (the lease is taken), idle (nothing to take up), thinking (a cycle is open), calling (so are its calls)."""
    identity: Identity | None = None
    version: int = 0
    era: Era = UNBORN
    next_seq: int = 1
    cycle: OpenCycle | None = None
    steps: int = 0
    step: ResponseStep | None = None
    waiting: tuple[int, ...] = ()
    """The outside calls that are under way, or were when the process before died."""
    told: str = ""
    """What their result is, if that is known already."""

    @property
    def open_cycle(self) -> OpenCycle:
        assert self.cycle is not None
        return self.cycle


number = st.integers(0, 20)
texts = st.sampled_from(["Hello.", "Hello @ada.", "@ben and @cyd, look!", "Please stop.", "long " * 100, "long " * 200])
arguments = st.sampled_from(["{}", "{", '{"text": ""}', '{"surprise": 1}', '{"door": "7"}', '{"at": "it"}', "null"])


@st.composite
def tool_calls(draw: st.DrawFn) -> list[tuple[str, Any]]:
    """The calls of one response; spaces are named by a number."""
    one = st.one_of(
        st.tuples(st.just("send_message"), texts.map(lambda text: {"text": text})),
        st.tuples(st.just("enter_space"), number),
        st.tuples(st.just("read_messages"), number),
        st.tuples(st.just("knock"), st.just({"door": "7"})),
        st.tuples(st.just("glance"), st.just({"at": "it"})),
        st.tuples(
            st.sampled_from(["send_message", "enter_space", "read_entry", "knock", "glance", "no_such_tool"]), arguments
        ),
    )
    return draw(st.lists(one, min_size=1, max_size=4))


@dataclass(frozen=True)
class Deed:
    """What a cycle does next, and how."""

    what: str
    calls: list[tuple[str, Any]]
    characters: int
    """How long a result may be."""
    size: int
    """How long the answer of an outside tool is."""
    flag: bool
    at: int


deeds = st.builds(
    Deed,
    st.sampled_from(["call_tools"] * 4 + ["end"] * 2 + ["remind", "skip", "fail"]),
    tool_calls(),
    st.sampled_from([400, 16_000]),
    st.sampled_from([0, 5, 20_000]),
    st.booleans(),
    number,
)


class Lives(RuleBasedStateMachine):
    """Agents, people and two processes."""

    def __init__(self, house: House) -> None:
        super().__init__()
        self.house = house
        house.empty()
        self.home = house.write(directory.create_organization, "Home").id
        self.lives: dict[AgentId, Life] = {}
        self.people: dict[EntityId, str] = {}
        self.members: dict[SpaceId, dict[EntityId, Attention]] = {}
        self.messages: dict[str, tuple[Any, ...]] = {}
        self.holders: list[Holder] = []
        self.ledger: list[Any] = []
        self.skips = 0

    def teardown(self) -> None:
        # The checker takes for granted that attention never changes; what every inbox holds is checked here anyway.
        found = [each for each in self.house.read(violations) if getattr(each, "invariant", 0) != 2]
        assert not found, found

    @property
    def now(self) -> int:
        return self.house.clock.now()

    # Who and where

    @initialize(agents=st.integers(1, 3), people=st.integers(1, 2), attention=st.sampled_from(directory.ATTENTIONS))
    def settle(self, agents: int, people: int, attention: Attention) -> None:
        for _ in range(agents):
            self.new_agent()
        for _ in range(people):
            self.new_person()
        self.new_space()
        (space,) = self.members
        for position, each in enumerate([*self.people, *self.lives]):
            self.join(space, each, attention if position == len(self.people) else "all")

    @rule(
        what=st.sampled_from(["agent", "person", "space", "join", "join", "leave", "attend"]),
        at=number,
        who=number,
        attention=st.sampled_from(directory.ATTENTIONS),
    )
    def the_surroundings_change(self, what: str, at: int, who: int, attention: Attention) -> None:
        space, entity = pick(self.members, at), pick([*self.people, *self.lives], who)
        match what:
            case "agent" if len(self.lives) < 3:
                self.new_agent()
            case "person" if len(self.people) < 2:
                self.new_person()
            case "space" if len(self.members) < 3:
                self.new_space()
            case "leave":
                self.house.write(leaving.leave, space, entity)
                self.members[space].pop(entity, None)
            case "attend" if entity in self.members[space]:
                self.house.write(directory.attend, space, entity, attention)
                self.members[space][entity] = attention
            case _:
                self.join(space, entity, attention)

    def new_agent(self) -> None:
        handle = ("ada", "ben", "cyd")[len(self.lives)]
        definition = registry.define(model="scripted")
        agent = self.house.write(
            registry.create, UNRESTRICTED_PARTS_ONLY, self.home, name=handle, handle=handle, definition=definition
        )
        self.lives[agent.id] = Life(agent.id, handle)

    def new_person(self) -> None:
        handle = f"noor{len(self.people)}"
        person = self.house.write(directory.create_entity, self.home, "human", name=handle, handle=handle)
        self.people[person.id] = handle

    def new_space(self) -> None:
        room = {"name": f"Room {len(self.members)}", "floor": "all", "agent_run_limit": 0}
        space = self.house.write(directory.create_space, self.home, **room)
        self.members[space.id] = {}

    def join(self, space: SpaceId, who: EntityId, attention: Attention) -> None:
        self.house.write(directory.join, space, who, attention=attention)
        self.members[space].setdefault(who, attention)

    # What reaches an inbox

    def authors(self) -> list[tuple[SpaceId, EntityId]]:
        return [(space, who) for space, inside in self.members.items() for who in inside]

    @precondition(lambda self: self.authors())
    @rule(who=number, text=texts, urgent=st.booleans(), hop=st.integers(1, 9))
    def someone_posts(self, who: int, text: str, urgent: bool, hop: int) -> None:
        space, author = pick(self.authors(), who)
        id = MessageId(new_id())
        what = posting.draft(text)
        hop = 0 if author in self.people else hop
        posted = self.house.write(posting.post, space, author, what, id=id, urgent=urgent, hop=hop)
        self.expect_message(space, author, text, posted.id, urgent=urgent)
        assert posted.seq == self.last_seq(space)

    @precondition(lambda self: self.messages)
    @rule(which=number, text=texts)
    def a_post_is_repeated(self, which: int, text: str) -> None:
        """The same message is not posted again, and another one is refused."""
        id = pick(self.messages, which)
        space, seq, author, said = self.messages[id][:4]
        again = self.house.write(posting.post, space, author, posting.draft(said), id=MessageId(id))
        assert (again.id, again.seq) == (id, seq)
        if text != said:
            with pytest.raises(IdempotencyKeyReused):
                self.house.write(posting.post, space, author, posting.draft(text), id=MessageId(id))

    @precondition(lambda self: self.authors())
    @rule(who=st.lists(number, min_size=2, max_size=5), instance=st.sampled_from(INSTANCES))
    def many_things_at_once(self, who: list[int], instance: str) -> None:
        """Posts, one of them twice, and a lease that both processes want: all in one moment."""
        life = pick(list(self.lives.values()), who[0])
        free = self.is_free(life)
        said = [(*pick(self.authors(), each), MessageId(new_id())) for each in who]
        what = posting.draft("All at once.")
        results = self.house.at_once(
            *((_post_again, space, author, what, id) for space, author, id in [*said, said[0]]),
            *((leases.acquire, life.id, each) for each in INSTANCES),
        )
        posted, acquired = results[: len(said)], [each for each in results[len(said) + 1 :] if each is not None]
        assert results[len(said)] == posted[0]
        for (space, author, id), each in sorted(zip(said, posted, strict=True), key=lambda pair: pair[1].seq):
            self.expect_message(space, author, "All at once.", id)
            assert each.seq == self.messages[id][1]
        assert len(acquired) == free
        for each in acquired:
            self.note_lease(life, each)

    def expect_message(
        self,
        space: SpaceId,
        author: EntityId,
        text: str,
        id: str,
        *,
        urgent: bool = False,
        cycle: str | None = None,
    ) -> None:
        """The message stands in its space, and every inbox that attends to it holds its event."""
        assert id not in self.messages
        self.messages[id] = (space, self.last_seq(space) + 1, author, text, cycle)
        for who, attention in self.members[space].items():
            life = self.lives.get(who)
            if life is None or who == author or life.status == "dead" or attention == "none":
                continue
            if attention == "all" or f"@{life.handle}" in text:
                hurry = urgent or (author in self.people and "stop" in text)
                life.events[id] = Known(urgent=hurry, message=True)

    def last_seq(self, space: SpaceId) -> int:
        return sum(message[0] == space for message in self.messages.values())

    @rule(who=number, which=st.integers(0, 3), urgent=st.booleans())
    def a_service_triggers(self, who: int, which: int, urgent: bool) -> None:
        self.trigger(pick(list(self.lives.values()), who), f"trigger-{which}", "x" * which * 3000, urgent=urgent)

    def trigger(self, life: Life, id: str, text: str, *, urgent: bool) -> None:
        payload = {"service": "clock", "text": text}
        told = Delivery(life.id, id, "service_trigger", self.now, urgent=urgent, payload=payload)
        self.house.write(delivery.deliver, [told])
        life.events.setdefault(id, Known(urgent=urgent))

    def dead_events(self) -> list[tuple[Life, str]]:
        return [
            (life, id) for life in self.lives.values() for id, event in life.events.items() if event.state == "dead"
        ]

    @precondition(lambda self: self.dead_events())
    @rule(which=number)
    def a_dead_event_is_requeued(self, which: int) -> None:
        life, id = pick(self.dead_events(), which)
        self.house.write(delivery.requeue, life.id, id)
        life.events[id].state, life.events[id].attempts, life.events[id].interruptions = "pending", 0, 0

    # Time and leases

    @rule(seconds=st.sampled_from([0.5, 5, LEASE_SECONDS + 1, 70, 400]))
    def time_passes(self, seconds: float) -> None:
        self.house.clock.advance(seconds)

    def is_free(self, life: Life) -> bool:
        return life.status == "active" and (life.holder is None or life.until < self.now)

    def note_lease(self, life: Life, lease: Lease) -> None:
        life.epoch, life.holder, life.until = life.epoch + 1, lease.holder, self.now + LEASE_SECONDS * SECOND
        assert lease.epoch == life.epoch
        self.holders.append(Holder(lease))

    @rule(who=number, instance=st.sampled_from(INSTANCES))
    def a_process_wants_the_lease(self, who: int, instance: str) -> None:
        life = pick(list(self.lives.values()), who)
        free = self.is_free(life)
        lease = self.house.write(leases.acquire, life.id, instance)
        assert (lease is not None) == free
        if lease is not None:
            self.note_lease(life, lease)

    @rule(who=number, instance=st.sampled_from(INSTANCES), new=st.booleans(), deeds=st.lists(deeds, max_size=5))
    def a_process_takes_over(self, who: int, instance: str, new: bool, deeds: list[Deed]) -> None:
        """However long it takes: once the lease has run out, whoever wants it has it, and there is something to do."""
        life = pick(list(self.lives.values()), who)
        if life.status != "active":
            return
        if new:
            self.trigger(life, new_id(), "Anything new?", urgent=False)
        self.house.clock.advance(max(life.until - self.now, 0) / SECOND + 1)
        self.a_process_wants_the_lease(who, instance)
        self.the_old_holder_tries_everything(life)
        self.continue_life(self.holders[-1])
        self.go_on(self.holders[-1], deeds)

    @rule(instance=st.sampled_from(INSTANCES))
    def leases_are_renewed(self, instance: str) -> None:
        held = self.house.run(self.house.db.write_first(leases.renew, instance))
        assert held == {life.id: life.epoch for life in self.lives.values() if life.holder == instance}
        for life in self.lives.values():
            if life.holder == instance:
                life.until = self.now + LEASE_SECONDS * SECOND

    @precondition(lambda self: self.holders)
    @rule(which=number)
    def a_lease_is_released(self, which: int) -> None:
        holder = pick(self.holders, which)
        life = self.lives[holder.lease.agent_id]
        current = self.is_current(holder)
        self.house.write(leases.release, holder.lease)
        if current:
            life.holder, life.until = None, 0

    @precondition(lambda self: self.holders)
    @rule(which=number)
    def a_process_dies(self, which: int) -> None:
        """What it had in memory is gone; what it wrote is not."""
        self.holders.remove(pick(self.holders, which))

    def is_current(self, holder: Holder) -> bool:
        life = self.lives[holder.lease.agent_id]
        return (life.epoch, life.holder) == (holder.lease.epoch, holder.lease.holder)

    def attempt(self, holder: Holder, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A write of a holder: refused whole, unless the lease is still its own."""
        if self.is_current(holder):
            return self.house.write(fn, holder.lease, *args, **kwargs)
        before = self.house.rows()
        with pytest.raises(LeaseLost):
            self.house.write(fn, holder.lease, *args, **kwargs)
        assert self.house.rows() == before
        return REFUSED

    def the_old_holder_tries_everything(self, life: Life) -> None:
        """Each write of a cycle is refused to whoever has lost the lease, and nothing of it remains."""
        stale = [each for each in self.holders[:-1] if each.lease.agent_id == life.id and each.phase == "thinking"]
        if not stale:
            return
        holder, before = stale[-1], self.house.rows()
        cycle, spoken = holder.open_cycle, self.entry(holder, "response", answer(TextPart("Too late.")))
        step = ResponseStep(holder.steps, spoken, (), {}, stored=False, characters=400)
        assert holder.identity is not None
        waking = Waking(holder.identity, holder.version, holder.era, 1_000, {"normal": TOOLBOX}, holder.next_seq)
        writes: list[tuple[Any, ...]] = [
            (resume_cycle,),
            (open_cycle, waking),
            (calling.carry_on, cycle, step, TOOLBOX, {}),
            (calling.store_reminder, cycle, (spoken,), CHARGE),
            (calling.store_note, cycle, spoken),
            (ending.end_cycle, cycle, Ending("answered", "Too late.", (spoken,), steps=1)),
            (ending.skip_cycle, cycle, "", CHARGE),
            (ending.undo_cycle, cycle, ""),
            (ending.postpone_cycle, cycle, ""),
            (ending.pay_broken_off, [CHARGE]),
            (ending.hand_back, cycle),
        ]
        for fn, *args in writes:
            with pytest.raises(LeaseLost):
                self.house.write(fn, holder.lease, *args)
        assert self.house.rows() == before

    # What owners do

    @rule(who=number, what=st.sampled_from(["suspend", "resume", "edit", "suspend", "resume", "edit", "delete"]))
    def an_owner_acts(self, who: int, what: str) -> None:
        life = pick(list(self.lives.values()), who)
        if life.status == "dead":
            return
        if what == "edit":
            life.version += 1
            new = registry.define(model="scripted", instructions=f"Version {life.version}.")
            assert self.house.write(registry.edit, UNRESTRICTED_PARTS_ONLY, life.id, new).version == life.version
            return
        self.house.write(getattr(registry, what), life.id)
        life.status = {"suspend": "suspended", "resume": "active", "delete": "dead"}[what]
        if what != "resume":
            life.epoch, life.holder, life.until = life.epoch + 1, None, 0
        if what == "suspend":
            life.handed_back = life.cycle is not None
        if what == "delete" and life.cycle is not None:
            life.ended += 1
            life.close("done")

    # A cycle, step by step

    def those(self, *phases: str) -> list[Holder]:
        return [holder for holder in self.holders if holder.phase in phases]

    @precondition(lambda self: self.those("new"))
    @rule(which=number)
    def a_holder_takes_up_what_was_cut_off(self, which: int) -> None:
        self.take_up(pick(self.those("new"), which))

    def take_up(self, holder: Holder) -> None:
        life = self.lives[holder.lease.agent_id]
        later = life.again_at > self.now
        mind = self.load(holder)
        resumed = self.attempt(holder, resume_cycle)
        if resumed is REFUSED:
            return
        if life.cycle is None:
            assert resumed is None
            self.become_idle(holder, mind.next_seq)
        elif later:
            assert resumed == "later"
        elif resumed is None:
            assert not any(row[2] == "response" for row in life.rows[life.committed :])
            self.expect_undone(life, counts=False, interrupted=not life.handed_back)
            self.become_idle(holder, mind.next_seq)
        else:
            self.expect_resumed(holder, life, resumed, mind.next_seq)

    def load(self, holder: Holder) -> minds.Mind:
        agent = self.house.read(registry.get, holder.lease.agent_id)
        mind = self.house.read(_load_mind, holder.lease, agent)
        holder.identity, holder.version, holder.era = mind.identity, mind.version, mind.era
        return mind

    def become_idle(self, holder: Holder, next_seq: int) -> None:
        holder.phase, holder.next_seq, holder.cycle, holder.step, holder.waiting = "idle", next_seq, None, None, ()

    def expect_resumed(self, holder: Holder, life: Life, cycle: OpenCycle, next_seq: int) -> None:
        """It goes on exactly where it was, whoever had it before."""
        assert cycle.id == life.cycle
        assert next_seq == cycle.first_seq
        assert [entry.encoded for entry in cycle.entries] == [row[3] for row in life.rows[life.committed :]]
        assert sorted(event.id for event in cycle.events) == sorted(life.taken())
        assert {(each.step, each.position): each.state for each in cycle.effects} == life.effects
        assert cycle.active_space_id == life.active
        life.interruptions += not (life.handed_back or life.again_at)
        assert (cycle.attempts, cycle.interruptions) == (life.tries, life.interruptions)
        life.handed_back, life.again_at = False, 0
        holder.cycle, holder.steps, holder.phase = cycle, cycle.steps, "thinking"
        holder.next_seq = cycle.entries[-1].seq + 1
        last = cycle.entries[-1]
        if calls := calls_of(last.message):
            at = cycle.steps - 1
            done = {
                each.position: each.result or "" for each in cycle.effects if each.step == at and each.state == "done"
            }
            holder.step = ResponseStep(at, last, calls, done, stored=True, characters=16_000)
            holder.waiting = tuple(position for step, position in life.effects if step == at and position not in done)
            holder.phase, holder.told = "calling", UNKNOWN_OUTCOME

    @precondition(lambda self: self.those("idle"))
    @rule(which=number, inbox_tokens=st.sampled_from([100, 10_000]))
    def a_holder_opens_a_cycle(self, which: int, inbox_tokens: int) -> None:
        self.open_one(pick(self.those("idle"), which), inbox_tokens)

    def open_one(self, holder: Holder, inbox_tokens: int = 10_000) -> None:
        life = self.lives[holder.lease.agent_id]
        rows = self.house.rows()
        due = {
            event["id"]: event
            for event in records(rows, "events")
            if event["agent_id"] == life.id and event["state"] == "pending" and event["not_before"] <= self.now
        }
        later = [
            (event["space_id"], event["number"])
            for event in records(rows, "events")
            if event["agent_id"] == life.id
            and event["state"] == "pending"
            and event["lane"] == 1
            and event["not_before"] > self.now
            and event["space_id"] is not None
        ]
        # What came after one of its space that is to be tried again waits for that.
        due = {
            id: event
            for id, event in due.items()
            if event["lane"] == 0 or not any(event["space_id"] == space and event["number"] > at for space, at in later)
        }
        assert holder.identity is not None
        waking = Waking(holder.identity, holder.version, holder.era, inbox_tokens, {"normal": TOOLBOX}, holder.next_seq)
        opened = self.attempt(holder, open_cycle, waking)
        if opened is REFUSED:
            return
        if not any(event["wakes"] for event in due.values()):
            assert opened is None
        elif holder.version != life.version:
            assert opened == "stale"
            self.load(holder)
        else:
            assert isinstance(opened, OpenedCycle)
            self.expect_opened(holder, life, opened, due, rows)

    def expect_opened(
        self, holder: Holder, life: Life, opened: OpenedCycle, due: dict[str, dict[str, Any]], rows: Rows
    ) -> None:
        cycle = opened.cycle
        taken = [event.id for event in cycle.events]
        assert taken
        assert set(taken) <= set(due)
        assert opened.more == (len(taken) < len(due))
        for id in taken:
            assert life.events[id].state == "pending"
            life.events[id].state = "taken"
        life.cycle, life.active, life.before = cycle.id, cycle.active_space_id, trace(rows, life.id)
        spaces = {event.space_id for event in cycle.events if event.space_id is not None}
        common = next(iter(spaces)) if len(spaces) == 1 else None
        assert life.active == (common if common and life.id in self.members[SpaceId(common)] else None)
        holder.era = opened.era or holder.era
        holder.cycle, holder.steps, holder.phase, holder.next_seq = cycle, 0, "thinking", holder.next_seq + 1

    @precondition(lambda self: self.those("thinking", "calling"))
    @rule(which=number, deeds=st.lists(deeds, min_size=1, max_size=5))
    def a_cycle_goes_on(self, which: int, deeds: list[Deed]) -> None:
        """As far as it goes; a holder that has lost its lease tries all the same."""
        self.go_on(pick(self.those("thinking", "calling"), which), deeds)

    def go_on(self, holder: Holder, deeds: list[Deed]) -> None:
        for deed in deeds:
            if holder not in self.those("thinking", "calling"):
                return
            if holder.phase == "calling" and deed.what != "fail":
                self.outside_tools_answer(holder, deed.size)
            else:
                getattr(self, deed.what)(holder, deed)
            self.all_is_as_it_must_be()

    def call_tools(self, holder: Holder, deed: Deed) -> None:
        parts = [self.call(name, given, position) for position, (name, given) in enumerate(deed.calls)]
        step = ResponseStep(
            number=holder.steps,
            response=self.entry(holder, "response", answer(*parts)),
            calls=tuple(parts),
            results={},
            stored=False,
            characters=deed.characters,
            streamed={at: MessageId(new_id()) for at in range(len(parts))} if deed.flag else {},
            charge=CHARGE,
        )
        self.carry_on(holder, step, {})

    def call(self, name: str, given: Any, position: int) -> ToolCallPart:
        if isinstance(given, int):
            given = {"space_id": pick([*self.members, SpaceId("nowhere")], given)}
        # Ids repeat from response to response, as those of some providers do.
        return ToolCallPart(name, given if isinstance(given, str) else json.dumps(given), f"call_{position}")

    def entry(self, holder: Holder, kind: log.EntryKind, message: Any, after: int = 0) -> Entry:
        cycle, response = holder.open_cycle, kind == "response"
        outside = () if response and cycle.outside_from is not None else None
        request = "{}" if response else None
        return log.entry(holder.next_seq + after, cycle.id, kind, message, request=request, outside=outside)

    def carry_on(self, holder: Holder, step: ResponseStep, finished: dict[int, FinishedCall]) -> None:
        progress = self.attempt(holder, calling.carry_on, holder.cycle, step, TOOLBOX, finished)
        if progress is REFUSED:
            return
        life = self.lives[holder.lease.agent_id]
        if not step.stored:
            holder.steps, holder.next_seq = holder.steps + 1, holder.next_seq + 1
            life.tries = life.interruptions = 0
        for effect in progress.effects:
            self.expect_effect(life, step, effect, effect.position in finished)
        assert progress.active_space_id == life.active
        holder.cycle = replace(holder.open_cycle, active_space_id=life.active, outside_from=progress.outside_from)
        done = {each.position: each.result or "" for each in progress.effects if each.state == "done"}
        holder.step = replace(step, stored=True, results={**step.results, **done})
        holder.waiting, holder.told = progress.intended, ""
        self.expect_results(holder, progress)

    def expect_results(self, holder: Holder, progress: Progress) -> None:
        step = holder.step
        assert step is not None
        assert (progress.results is not None) == (len(step.results) == len(step.calls))
        assert (progress.results is None) == bool(progress.intended)
        if progress.results is None:
            holder.phase = "calling"
        else:
            holder.phase, holder.step, holder.next_seq = "thinking", None, holder.next_seq + 1

    def expect_effect(self, life: Life, step: ResponseStep, effect: Any, was_outside: bool) -> None:
        """Each call happens once, in its turn, and does what it says."""
        key = (effect.step, effect.position)
        assert life.effects.get(key) == ("intent" if was_outside else None)
        life.effects[key] = effect.state
        call = step.calls[effect.position]
        before = [life.effects.get((step.number, at)) for at in range(effect.position)]
        outside = isinstance(TOOLBOX.by_name.get(call.tool_name), OutsideTool)
        if not outside:
            assert all(state == "done" for state in before), "our own calls wait for what stands before them"
        if effect.state == "intent":
            assert outside
            return
        assert len(effect.result) <= step.characters + 40
        valid = isinstance(given := _decoded(call.args), dict)
        space = given.get("space_id") if valid else None
        if call.tool_name == "send_message" and valid and set(given) == {"text"} and given["text"]:
            inside = life.active is not None and life.id in self.members[life.active]
            speaks = inside and not self.has_just_said(life, given["text"])
            assert effect.changes == speaks, effect.result
            if speaks:
                assert life.active is not None
                sent = json.loads(effect.result)["messageId"]
                assert step.streamed.get(effect.position, sent) == sent
                self.expect_message(life.active, life.id, given["text"], sent, cycle=life.cycle)
        elif call.tool_name == "enter_space" and valid and set(given) == {"space_id"}:
            if life.id in self.members.get(SpaceId(str(space)), {}):
                life.active = SpaceId(str(space))
            assert not effect.changes
        else:
            assert effect.changes == was_outside

    def has_just_said(self, life: Life, text: str) -> bool:
        """Whether the cycle said the same in the active space, and nobody has spoken there since."""
        said = sorted((each for each in self.messages.values() if each[0] == life.active), key=lambda each: -each[1])
        own = takewhile(lambda each: each[2] == life.id and each[4] == life.cycle, said)
        return text in [each[3] for each in islice(own, OWN_MESSAGES)]

    def outside_tools_answer(self, holder: Holder, size: int) -> None:
        assert holder.step is not None
        self.carry_on(holder, holder.step, dict.fromkeys(holder.waiting, FinishedCall(holder.told or "y" * size)))

    def remind(self, holder: Holder, _: Deed) -> None:
        spoken = self.entry(holder, "response", answer(TextPart("Hm.")))
        reminder = self.entry(holder, "nudge", ModelRequest(parts=[UserPromptPart("[REMINDER]")]), 1)
        told = self.attempt(holder, calling.store_reminder, holder.cycle, (spoken, reminder), CHARGE)
        if told is not REFUSED:
            holder.steps, holder.next_seq = holder.steps + 1, holder.next_seq + 2
            life = self.lives[holder.lease.agent_id]
            life.tries = life.interruptions = 0

    def end(self, holder: Holder, deed: Deed) -> None:
        life = self.lives[holder.lease.agent_id]
        homes = [space for space, inside in self.members.items() if life.id in inside]
        space = pick(homes, deed.at) if homes and deed.flag else None
        how = Ending(
            "answered",
            "Done.",
            (self.entry(holder, "response", answer(TextPart("Done."))),),
            steps=holder.steps + 1,
            charge=CHARGE,
            spent=Charge(
                "scripted", 10 * (holder.steps + 1), 5 * (holder.steps + 1), cost_micros=7 * (holder.steps + 1)
            ),
            window_from=holder.open_cycle.first_seq if deed.at % 2 else None,
            sending=None if space is None else CheckedText(space, posting.draft("Delivered."), holder.steps),
        )
        ended = self.attempt(holder, ending.end_cycle, holder.cycle, how)
        if ended is REFUSED:
            return
        life.ended += 1
        assert ended == life.ended
        if space is not None:
            known = set(self.messages)
            (new,) = [row["id"] for row in records(self.house.rows(), "messages") if row["id"] not in known]
            self.expect_message(space, life.id, "Delivered.", new, cycle=holder.open_cycle.id)
        life.close("done")
        self.become_idle(holder, holder.next_seq + 1)

    def has_changed(self, holder: Holder) -> bool:
        changed = [row for row in records(self.house.rows(), "effects") if row["changes"]]
        return any(row["cycle_id"] == holder.open_cycle.id for row in changed)

    def skip(self, holder: Holder, _: Deed) -> None:
        if self.is_current(holder) and self.has_changed(holder):
            return
        life = self.lives[holder.lease.agent_id]
        so_far = trace(self.house.rows(), life.id)
        skipped = self.attempt(holder, ending.skip_cycle, holder.cycle, "Not for me.", CHARGE)
        if skipped is REFUSED:
            return
        if not skipped:
            # A person waits, and no other agent is there to answer: the cycle is as it was.
            assert any(event.waits for event in holder.open_cycle.events)
            assert trace(self.house.rows(), life.id) == so_far
            return
        assert trace(self.house.rows(), life.id) == life.before
        self.skips += 1
        self.become_idle(holder, holder.open_cycle.first_seq)
        life.close("done")

    def fail(self, holder: Holder, deed: Deed) -> None:
        life = self.lives[holder.lease.agent_id]
        if self.is_current(holder) and self.has_changed(holder):
            tries = self.attempt(holder, ending.postpone_cycle, holder.cycle, "It failed.")
            life.tries += 1
            assert tries == life.tries
            life.again_at = self.now + delivery.back_off(tries) * SECOND
            life.handed_back = False
            self.holders.remove(holder)
        elif self.attempt(holder, ending.undo_cycle, holder.cycle, "It failed.", counts=deed.flag) is not REFUSED:
            self.expect_undone(life, counts=deed.flag)
            self.become_idle(holder, holder.open_cycle.first_seq)

    def expect_undone(self, life: Life, *, counts: bool, interrupted: bool = False) -> None:
        """The cycle never was, and its events wait again, or are dead."""
        taken = [life.events[id] for id in life.taken()]
        life.close("pending")
        for event in taken:
            event.attempts += counts
            event.interruptions += interrupted
            event.state = "dead" if counts and event.attempts >= DEAD_AFTER else "pending"
        assert trace(self.house.rows(), life.id) == life.before

    @precondition(lambda self: self.those("thinking", "calling"))
    @rule(which=number)
    def a_process_shuts_down(self, which: int) -> None:
        holder = pick(self.those("thinking", "calling"), which)
        if self.attempt(holder, ending.hand_back, holder.cycle) is not REFUSED:
            life = self.lives[holder.lease.agent_id]
            life.handed_back = True
            self.house.write(leases.release, holder.lease)
            life.holder, life.until = None, 0
        self.holders.remove(holder)

    @precondition(lambda self: self.those("new", "idle"))
    @rule(which=number, deeds=st.lists(deeds, max_size=3))
    def a_holder_lives_on(self, which: int, deeds: list[Deed]) -> None:
        holder = pick(self.those("new", "idle"), which)
        self.continue_life(holder)
        self.go_on(holder, deeds)

    def continue_life(self, holder: Holder) -> None:
        if holder.phase == "new":
            self.take_up(holder)
            self.all_is_as_it_must_be()
        if holder.phase == "idle":
            self.open_one(holder)

    # What is true after everything

    @invariant()
    def all_is_as_it_must_be(self) -> None:
        rows = self.house.rows()
        self.check_messages(rows)
        self.check_effects(rows)
        ledger = rows["ledger"]
        assert ledger[: len(self.ledger)] == self.ledger, "the ledger only grows"
        self.ledger = ledger
        assert sum(row["kind"] == "skip" for row in records(rows, "ledger")) == self.skips
        for life in self.lives.values():
            self.check_lease(rows, life)
            self.check_events(rows, life)
            self.check_cycles(rows, life)
            self.check_log(rows, life)

    def check_messages(self, rows: Rows) -> None:
        stored = {
            row["id"]: (row["space_id"], row["seq"], row["author_id"], row["text"], row["cycle_id"])
            for row in records(rows, "messages")
        }
        assert stored == self.messages
        for space in records(rows, "spaces"):
            assert space["last_seq"] == self.last_seq(space["id"])

    def check_effects(self, rows: Rows) -> None:
        """Nothing is said twice, and nothing that was said belongs to a cycle that never was."""
        cycles = {row["id"] for row in records(rows, "cycles")}
        effects = records(rows, "effects")
        assert {row["cycle_id"] for row in effects} <= cycles
        assert {row["cycle_id"] for row in records(rows, "overflow")} <= cycles
        said = Counter(message[4] for message in self.messages.values() if message[4] is not None)
        sends = [row for row in effects if row["tool"] == "send_message" and row["changes"]]
        assert said == Counter(row["cycle_id"] for row in sends)
        assert set(said) <= cycles
        for row in effects:
            assert (row["state"] == "done") == (row["result"] is not None)

    def check_lease(self, rows: Rows, life: Life) -> None:
        (lease,) = [row for row in records(rows, "leases") if row["agent_id"] == life.id]
        assert (lease["holder"], lease["epoch"], lease["until"]) == (life.holder, life.epoch, life.until)

    def check_events(self, rows: Rows, life: Life) -> None:
        events = {row["id"]: row for row in records(rows, "events") if row["agent_id"] == life.id}
        stored = {
            id: Known(
                row["state"], row["attempts"], row["lane"] == 0, row["message_id"] is not None, row["interruptions"]
            )
            for id, row in events.items()
        }
        assert stored == life.events
        # "Stop" ends what is being written, and is not answered.
        stops = {row["id"] for row in records(rows, "messages") if says_only_stop(row["plain"] or row["text"] or "")}
        hops = {row["id"]: (row["hop"], row["author_id"]) for row in records(rows, "messages")}
        skipped = {row["cycle_id"] for row in records(rows, "ledger") if row["kind"] == "skip"}
        over = {row["id"] for row in records(rows, "cycles") if row["number"] is not None}
        for row in events.values():
            assert row["state"] != "taken" or row["cycle_id"] == life.cycle
            assert row["state"] != "done" or row["cycle_id"] in skipped | over
            assert row["state"] in ("taken", "done") or row["cycle_id"] is None
            by_itself = row["message_id"] is not None and row["attempts"] == 0 and not row["wakes"]
            if by_itself and row["message_id"] not in stops:
                hop, author = hops[row["message_id"]]
                assert author in self.lives
                assert hop > HOP_BUDGET

    def check_cycles(self, rows: Rows, life: Life) -> None:
        cycles = [row for row in records(rows, "cycles") if row["agent_id"] == life.id]
        (mind,) = [row for row in records(rows, "minds") if row["agent_id"] == life.id]
        ended = [row for row in cycles if row["number"] is not None]
        assert [row["id"] for row in cycles if row["number"] is None] == ([life.cycle] if life.cycle else [])
        assert sorted(row["number"] for row in ended) == list(range(1, life.ended + 1))
        assert mind["cycle_count"] == life.ended
        answers = Counter(row["cycle_id"] for row in records(rows, "log") if row["kind"] == "response")
        for row in ended:
            assert row["steps"] == answers[row["id"]]
            assert row["outcome"] in ("acted", "failed")
            assert row["summary"]

    def check_log(self, rows: Rows, life: Life) -> None:
        """It is in order, only ever longer, and what was committed stays to the letter."""
        seen = [row for row in records(rows, "log") if row["agent_id"] == life.id]
        seen.sort(key=lambda row: row["seq"])
        new = [
            (row["seq"], row["cycle_id"], row["kind"], row["message"], row["tokens"], row["request"]) for row in seen
        ]
        assert [row[0] for row in new] == list(range(1, len(new) + 1))
        assert new[: life.committed] == life.rows[: life.committed]
        going_on = len(life.rows) > life.committed and life.rows[life.committed][1] in {row[1] for row in new}
        if going_on:
            assert new[: len(life.rows)] == life.rows
        life.rows = new
        open_rows = [row for row in new if row[1] == life.cycle]
        life.committed = len(new) - len(open_rows)
        assert new[life.committed :] == open_rows
        assert (life.cycle is None) == (not open_rows)
        self.check_calls_are_answered(life)

    def check_calls_are_answered(self, life: Life) -> None:
        history = [codec.load(row[3]) for row in life.rows]
        for position, message in enumerate(history):
            asked = [(call.tool_name, call.tool_call_id) for call in calls_of(message)]
            last_of_open = position == len(history) - 1 and life.cycle is not None
            if asked and not last_of_open:
                assert _answers(history[position + 1]) == asked
            if _answers(message):
                assert [(call.tool_name, call.tool_call_id) for call in calls_of(history[position - 1])] == _answers(
                    message
                )


def pick(things: Any, at: int) -> Any:
    """One of them."""
    things = list(things)
    return things[at % len(things)]


def answer(*parts: TextPart | ToolCallPart) -> ModelResponse:
    """A response that costs what `CHARGE` says."""
    used = RequestUsage(input_tokens=CHARGE.input_tokens, output_tokens=CHARGE.output_tokens)
    return ModelResponse(parts=parts, usage=used, model_name="scripted")


def trace(rows: Rows, agent_id: AgentId) -> dict[str, Any]:
    """What a cycle would leave behind: the log, the cycles, their effects and long results, the mind's counters."""
    kept = {
        table: [row for row in records(rows, table) if row["agent_id"] == agent_id]
        for table in ("log", "cycles", "overflow")
    }
    ids = {row["id"] for row in kept["cycles"]}
    kept["effects"] = [row for row in records(rows, "effects") if row["cycle_id"] in ids]
    (mind,) = [row for row in records(rows, "minds") if row["agent_id"] == agent_id]
    return {**kept, "count": mind["cycle_count"], "last": mind["last_cycle_at"], "window": mind["window_from"]}


def _answers(message: Any) -> list[tuple[str, str]]:
    return [(part.tool_name, part.tool_call_id) for part in message.parts if isinstance(part, ToolReturnPart)]


def _decoded(given: Any) -> Any:
    try:
        return json.loads(given)
    except ValueError:
        return None


def _post_again(tx: Tx, space: SpaceId, author: EntityId, what: posting.Draft, id: MessageId) -> posting.Posted:
    return posting.post(tx, space, author, what, id=id)


def _load_mind(tx: Tx, lease: Lease, agent: registry.Agent) -> minds.Mind:
    identity = Identity(agent.entity, agent.definition.instructions)
    open_id = open_cycle_id(tx, lease.agent_id)
    return minds.load(tx, lease, identity, agent.version, WINDOW, budget(WINDOW, None), open_id)


def _live(url: str, examples: int, steps: int) -> None:
    with opened(url) as house:
        run_state_machine_as_test(
            lambda: Lives(house),  # pyright: ignore[reportArgumentType]  any factory will do
            settings=settings(max_examples=examples, stateful_step_count=steps),
        )


def test_nothing_is_lost_doubled_or_changed_on_sqlite(sqlite_url: str) -> None:
    _live(sqlite_url, max(EXAMPLES * 3 // 10, 1), 50)


def test_nothing_is_lost_doubled_or_changed_on_postgresql(postgres_url: str) -> None:
    _live(postgres_url, max(EXAMPLES // 16, 1), 50)
