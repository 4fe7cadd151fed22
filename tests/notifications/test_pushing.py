"""People are notified in their browsers: of what concerns them, once, and only where they want it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from sqlalchemy import select
from structlog.testing import capture_logs

from denizen import Entity, call, reply
from denizen.access import people, tokens
from denizen.clock import Instant
from denizen.errors import StorageError
from denizen.notifications import news, subscriptions
from denizen.notifications.encryption import ServerKey
from denizen.notifications.pushing import LONGEST_PAUSE_SECONDS, Gone, Later, Outcome, Pusher, Refused, Sent, outcome
from denizen.storage.database import Tx, statement
from denizen.storage.schema import push_notices, push_subscriptions, server_keys
from denizen.tools.outbound import Outbound
from denizen.tools.settings import ClientTool
from tests.notifications.push_service import VAULT, PushService, push_service, pusher
from tests.world import World

CONFIRM = ClientTool(
    name="confirm_action",
    description="Ask before you do something.",
    parameters={"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]},
)


@pytest.fixture
async def reachable(tmp_path: Path) -> AsyncGenerator[tuple[PushService, Outbound]]:
    async with push_service(tmp_path) as found:
        yield found


@pytest.fixture
def service(reachable: tuple[PushService, Outbound]) -> PushService:
    return reachable[0]


@pytest.fixture
def push(reachable: tuple[PushService, Outbound], world: World) -> Pusher:
    return pusher(world.denizen, reachable[1])


_browsers = statement(select(push_subscriptions.c.id))
_notices = statement(select(push_notices.c.subject_id))
_keys = statement(select(server_keys.c.sealed))


async def rows(world: World) -> tuple[int, int]:
    """How many browsers, and how many notices, there are."""

    def count(tx: Tx) -> tuple[int, int]:
        return len(tx.all(_browsers)), len(tx.all(_notices))

    return await world.denizen.db.read(count)


async def people_of(world: World) -> tuple[Entity, Entity]:
    return await world.person("Noor", handle="noor"), await world.person("Sam", handle="sam")


async def test_a_mention_is_sent_once_to_each_browser(world: World, service: PushService, push: Pusher) -> None:
    noor, sam = await people_of(world)
    kitchen = await world.space("Kitchen", noor, sam)
    await world.say(sam, "Before, @noor.", kitchen)
    world.clock.advance(1)
    await service.subscribe(world.denizen, noor, "phone")
    await service.subscribe(world.denizen, noor, "laptop")
    await service.subscribe(world.denizen, sam, "desk")
    await world.say(sam, "Nobody in particular?", kitchen)
    message = await world.say(sam, "Tea, **@noor**?", kitchen)
    await push.send_all()
    await push.send_all()
    told = {"tag": message.id, "title": "Sam in Kitchen", "body": "Tea, @noor?", "call": None}
    assert service.told() == [told | {"path": f"/s/{kitchen.id}/m/{message.seq}"}] * 2
    assert {path for path, _, _ in service.received} == {"/send/phone", "/send/laptop"}
    _, headers, _ = service.received[0]
    assert headers["Authorization"].startswith("vapid t=ey")
    assert (headers["Content-Encoding"], headers["TTL"], headers["Urgency"]) == ("aes128gcm", "86400", "normal")
    assert await rows(world) == (3, 0)


async def test_an_answer_that_somebody_waited_for(world: World, service: PushService, push: Pusher) -> None:
    """Of two people in a space, the one who asked is told."""
    noor, sam = await people_of(world)
    ada = await world.agent("Ada", reply("It is four."), "Done.")
    kitchen = await world.space("Kitchen", noor, sam, ada)
    await service.subscribe(world.denizen, noor, "hers")
    await service.subscribe(world.denizen, sam, "his")
    await world.say(noor, "What time is it?", kitchen)
    await world.run()
    await push.send_all()
    assert [(path, each["body"]) for (path, _, _), each in zip(service.received, service.told(), strict=True)] == [
        ("/send/hers", "It is four.")
    ]


async def test_what_was_read_is_not_told(world: World, service: PushService, push: Pusher) -> None:
    noor, sam = await people_of(world)
    kitchen = await world.space("Kitchen", noor, sam)
    await service.subscribe(world.denizen, noor)
    await world.say(sam, "Tea, @noor?", kitchen)
    await world.say(noor, "Yes.", kitchen)
    forgotten = await world.say(sam, "Or not, @noor?", kitchen)
    await world.denizen.spaces.delete_message(forgotten.id, by=sam)
    await push.send_all()
    assert service.received == []
    assert await rows(world) == (1, 0)


async def test_a_question_can_be_answered_in_the_notification(world: World, service: PushService, push: Pusher) -> None:
    noor = await world.person("Noor")
    ask = call("confirm_action", question="Shall I make \u202etea?")
    ada = await world.agent("Ada", ask, reply("Tea it is."), "Made tea.", tools=[CONFIRM])
    kitchen = await world.space("Kitchen", noor, ada)
    await service.subscribe(world.denizen, noor)
    await world.say(noor, "Anything to do?", kitchen)
    await world.run()
    await push.send_all()
    await push.send_all()
    [asked] = await world.denizen.calls.waiting(noor)
    # With every character in sight: what is confirmed must be what is read.
    body = "Shall I make \\u{202e}tea?"
    assert service.told() == [
        {"tag": asked.id, "title": "Ada asks", "body": body, "path": f"/s/{kitchen.id}", "call": asked.id}
    ]
    assert service.received[0][1]["Urgency"] == "high"
    assert await rows(world) == (1, 1)

    await world.denizen.calls.answer(asked.id, {"confirmed": True}, by=noor)
    await world.run()
    await push.send_all()
    assert [each["body"] for each in service.told()] == [body, "Tea it is."]
    assert await rows(world) == (1, 0)


async def test_a_long_question_is_answered_in_the_space(world: World, service: PushService, push: Pusher) -> None:
    noor = await world.person("Noor")
    ada = await world.agent("Ada", call("confirm_action", question="Shall I " + "really " * 50), tools=[CONFIRM])
    kitchen = await world.space("Kitchen", noor, ada)
    await service.subscribe(world.denizen, noor)
    await world.say(noor, "Anything to do?", kitchen)
    await world.run()
    await push.send_all()
    [told] = service.told()
    assert (len(told["body"]), told["body"][-7:], told["call"]) == (239, "really…", None)


@pytest.mark.parametrize("status", [404, 410])
async def test_a_browser_that_is_gone_is_deleted(world: World, service: PushService, push: Pusher, status: int) -> None:
    noor, sam = await people_of(world)
    kitchen = await world.space("Kitchen", noor, sam)
    await service.subscribe(world.denizen, noor)
    service.answers = [(status, {})]
    await world.say(sam, "Tea, @noor?", kitchen)
    await push.send_all()
    assert await rows(world) == (0, 0)


async def test_a_busy_push_service_is_asked_again_when_it_says(
    world: World, service: PushService, push: Pusher
) -> None:
    noor, sam = await people_of(world)
    kitchen = await world.space("Kitchen", noor, sam)
    await service.subscribe(world.denizen, noor)
    service.answers = [(429, {"Retry-After": "120"})]
    await world.say(sam, "Tea, @noor?", kitchen)
    await push.send_all()
    world.clock.advance(119)
    await push.send_all()
    assert len(service.received) == 1
    assert await rows(world) == (1, 1)
    world.clock.advance(1)
    await push.send_all()
    assert [each["body"] for each in service.told()] == ["Tea, @noor?"] * 2
    assert await rows(world) == (1, 0)


@pytest.mark.parametrize(
    ("status", "retry_after", "tries", "means"),
    [
        (201, None, 1, Sent()),
        (404, None, 1, Gone()),
        (410, None, 1, Gone()),
        (429, "120", 1, Later(120)),
        (429, "Wed, 21 Oct 2026 07:28:00 GMT", 1, Later(30)),
        (503, "999999", 1, Later(3600)),
        (None, None, 3, Later(120)),
        (500, None, 8, Refused()),
        (400, None, 1, Refused()),
        (302, None, 1, Refused()),
    ],
)
def test_what_an_answer_means(status: int | None, retry_after: str | None, tries: int, means: Outcome) -> None:
    assert outcome(status, retry_after, tries) == means


@pytest.mark.parametrize("asked", ["9" * 400, "9" * 5_000])
async def test_a_push_service_cannot_end_the_server(
    asked: str, world: World, service: PushService, push: Pusher
) -> None:
    """Anyone may run a host that calls itself a push service. Python refuses to read numbers of 5,000 digits."""
    noor, sam = await people_of(world)
    kitchen = await world.space("Kitchen", noor, sam)
    await service.subscribe(world.denizen, noor)
    service.answers.append((429, {"Retry-After": asked}))
    await world.say(sam, "Tea, @noor?", kitchen)
    await push.send_all()
    assert len(service.received) == 1
    world.clock.advance(LONGEST_PAUSE_SECONDS)
    await push.send_all()
    assert [each["body"] for each in service.told()] == ["Tea, @noor?"] * 2


async def test_a_defect_in_sending_ends_neither_the_server_nor_other_notifications(
    world: World, service: PushService, push: Pusher, monkeypatch: pytest.MonkeyPatch
) -> None:
    noor, sam = await people_of(world)
    kitchen = await world.space("Kitchen", noor, sam)
    await service.subscribe(world.denizen, noor, "bad")
    await service.subscribe(world.denizen, noor, "good")
    await world.say(sam, "Tea, @noor?", kitchen)
    bad = service.endpoint("bad")

    def authorization(key: ServerKey, endpoint: str, contact: str, now: Instant) -> str:
        if endpoint == bad:
            raise RuntimeError("a defect")
        return signed(key, endpoint, contact, now)

    signed = ServerKey.authorization
    monkeypatch.setattr(ServerKey, "authorization", authorization)
    with capture_logs() as logs:
        await push.send_all()
    assert [each["body"] for each in service.told()] == ["Tea, @noor?"]
    assert [each["event"] for each in logs] == ["notification not sent, by a defect"]
    assert bad not in str(logs)


async def test_a_database_that_fails_does_not_end_the_server(
    world: World, service: PushService, push: Pusher, monkeypatch: pytest.MonkeyPatch
) -> None:
    noor, sam = await people_of(world)
    kitchen = await world.space("Kitchen", noor, sam)
    await service.subscribe(world.denizen, noor)
    await world.say(sam, "Tea, @noor?", kitchen)

    def failing(*_: object) -> None:
        raise StorageError("The disk is full.")

    with monkeypatch.context() as patched, capture_logs() as logs:
        patched.setattr(news, "finish", failing)
        async with push.running():
            await world.clock.sleeper(1)
    assert [each["event"] for each in logs] == ["notifications could not be read or stored"]


async def test_a_push_service_in_a_private_network_is_not_asked(
    world: World, reachable: tuple[PushService, Outbound]
) -> None:
    """Whoever may subscribe could otherwise have the server send requests into the network it is in."""
    service, outbound = reachable
    noor, sam = await people_of(world)
    kitchen = await world.space("Kitchen", noor, sam)
    await service.subscribe(world.denizen, noor)
    await world.say(sam, "Tea, @noor?", kitchen)
    with capture_logs() as logs:
        await pusher(world.denizen, outbound, allow_private=()).send_all()
    assert service.received == []
    assert [each["event"] for each in logs] == ["push service has a private address"]
    assert "/send/one" not in str(logs)
    assert await rows(world) == (0, 0)


@pytest.mark.parametrize("how", ["revoked", "expired", "left", "forgotten"])
async def test_a_browser_is_notified_only_as_long_as_its_session_lasts(
    world: World, service: PushService, push: Pusher, how: str
) -> None:
    noor, sam = await people_of(world)
    kitchen = await world.space("Kitchen", noor, sam)
    token_id = await service.subscribe(world.denizen, sam)
    await world.say(noor, "Tea, @sam?", kitchen)
    match how:
        case "revoked":
            await world.denizen.db.write(tokens.revoke, token_id)
        case "expired":
            world.clock.advance(tokens.SESSION_SECONDS)
        case "left":
            await world.denizen.db.write(people.leave, sam.id)
        case _:
            receipt = await world.denizen.people.forget(sam)
            assert receipt.removed["push_subscriptions"] == 1
            assert await rows(world) == (0, 0)
    await push.send_all()
    assert service.received == []
    assert await rows(world) == (0, 0)


async def test_a_restart_loses_nothing_and_repeats_nothing(
    world: World, reachable: tuple[PushService, Outbound]
) -> None:
    service, outbound = reachable
    noor, sam = await people_of(world)
    kitchen = await world.space("Kitchen", noor, sam)
    await service.subscribe(world.denizen, noor)
    service.answers = [(503, {})]
    await world.say(sam, "One, @noor?", kitchen)
    await pusher(world.denizen, outbound).send_all()
    await world.say(sam, "Two, @noor?", kitchen)
    await world.restart()
    world.clock.advance(60)
    await pusher(world.denizen, outbound).send_all()
    assert sorted(each["body"] for each in service.told()) == ["One, @noor?", "One, @noor?", "Two, @noor?"]


async def test_a_clock_that_is_set_back_silences_no_browser(world: World, service: PushService, push: Pusher) -> None:
    """A browser that subscribed, and a try that was put off, while the clock was ahead."""
    noor, sam = await people_of(world)
    kitchen = await world.space("Kitchen", noor, sam)
    ask = call("confirm_action", question="Tea?")
    ada = await world.agent("Ada", ask, tools=[CONFIRM])
    hall = await world.space("Hall", noor, ada)
    await service.subscribe(world.denizen, noor)
    service.answers = [(503, {})]
    await world.say(sam, "One, @noor?", kitchen)
    await push.send_all()
    world.clock.advance(-86_400)
    await world.say(sam, "Two, @noor?", kitchen)
    await world.say(noor, "Anything to do?", hall)
    await world.run()
    await push.send_all()
    assert sorted(each["body"] for each in service.told()) == ["One, @noor?", "One, @noor?", "Tea?", "Two, @noor?"]


async def test_a_browser_belongs_to_whoever_used_it_last(world: World, service: PushService, push: Pusher) -> None:
    noor, sam = await people_of(world)
    kitchen = await world.space("Kitchen", noor, sam)
    await service.subscribe(world.denizen, noor, "shared")
    await service.subscribe(world.denizen, sam, "shared")
    await world.say(sam, "Tea, @noor?", kitchen)
    await push.send_all()
    assert service.received == []
    assert await rows(world) == (1, 0)


async def test_a_person_has_a_limited_number_of_browsers(world: World, service: PushService) -> None:
    noor = await world.person("Noor")
    for number in range(subscriptions.PER_PERSON + 3):
        await service.subscribe(world.denizen, noor, f"browser-{number}")
    assert await rows(world) == (subscriptions.PER_PERSON, 0)


async def test_the_server_has_one_key_for_good_and_nobody_reads_it_in_the_database(world: World, push: Pusher) -> None:
    with capture_logs() as logs:
        key = await push.key()
        async with push.running():
            pass
    [(sealed,)] = await world.denizen.db.read(lambda tx: tx.all(_keys))
    assert key.text() not in sealed
    assert key.text() not in str(logs)
    again = await subscriptions.server_key(world.denizen.db, VAULT)
    assert again.public == key.public


async def test_what_is_said_is_sent_without_being_asked_for(world: World, service: PushService, push: Pusher) -> None:
    """While the server runs, a post wakes the sender."""
    noor, sam = await people_of(world)
    kitchen = await world.space("Kitchen", noor, sam)
    await service.subscribe(world.denizen, noor)
    world.denizen.hint_news = push.hint
    async with push.running():
        await world.clock.sleeper(1)  # it has looked once, and pauses
        world.clock.advance(1)
        await world.clock.sleeper(10)  # it waits for a hint
        await world.say(sam, "Tea, @noor?", kitchen)
        await world.clock.sleeper(1)
    assert [each["body"] for each in service.told()] == ["Tea, @noor?"]
