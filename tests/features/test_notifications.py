"""Notifications."""

from __future__ import annotations

from pathlib import Path

from denizen import call, reply
from tests.notifications.push_service import push_service, pusher
from tests.notifications.test_pushing import CONFIRM
from tests.world import open_world


async def test_people_are_notified_while_no_tab_is_open(tmp_path: Path) -> None:
    """People are notified of mentions and of answers they waited for by web push, while no tab is open; the push
    service cannot read it.

    Docs: notifications.md
    """
    async with open_world("sqlite://") as world, push_service(tmp_path) as (service, outbound):
        noor, sam = await world.person("Noor", handle="noor"), await world.person("Sam")
        ada = await world.agent("Ada", reply("It is four."), "Done.")
        kitchen = await world.space("Kitchen", noor, sam, ada)
        await service.subscribe(world.denizen, noor)
        await world.say(noor, "What time is it?", kitchen)
        await world.run()
        await world.say(sam, "Tea, @noor?", kitchen)
        await pusher(world.denizen, outbound).send_all()
        assert {each["body"] for each in service.told()} == {"It is four.", "Tea, @noor?"}
        assert not any(b"Tea" in body for _, _, body in service.received)


async def test_questions_come_as_notifications(tmp_path: Path) -> None:
    """What an agent asks comes as a notification that can be answered without opening a page.

    Docs: notifications.md
    """
    async with open_world("sqlite://") as world, push_service(tmp_path) as (service, outbound):
        noor = await world.person("Noor")
        ask = call("confirm_action", question="Shall I make tea?")
        ada = await world.agent("Ada", ask, reply("Tea it is."), "Made tea.", tools=[CONFIRM])
        kitchen = await world.space("Kitchen", noor, ada)
        await service.subscribe(world.denizen, noor)
        await world.say(noor, "Anything to do?", kitchen)
        await world.run()
        await pusher(world.denizen, outbound).send_all()
        [told] = service.told()
        assert (told["title"], told["body"]) == ("Ada asks", "Shall I make tea?")
        assert [told["call"]] == [each.id for each in await world.denizen.calls.waiting(noor)]
