"""The Slack bridge against a stand-in for the Web API and socket mode."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from denizen import failpoints, reply
from denizen.bridges.port import IncomingFile
from denizen.bridges.receiving import RECEIVED
from denizen.bridges.slack.emoji import emoji_of, name_of
from denizen.bridges.slack.events import SlackContext, harmless, incoming, text_of
from tests.bridges.conformance import ROOM, Service, build
from tests.bridges.listening import listening
from tests.bridges.live_suite import SocketLiveSuite
from tests.bridges.slack_api import BOT, BOT_USER, SlackApi
from tests.world import World


@pytest.fixture
async def slack() -> AsyncIterator[SlackApi]:
    found = SlackApi()
    async with listening(found.handle) as found.url:
        yield found


class TestSlack(SocketLiveSuite):
    @pytest.fixture
    def service(self, slack: SlackApi) -> Service:
        return slack


async def test_the_agent_that_the_app_is_has_its_face_and_others_have_their_own(bay: World, slack: SlackApi) -> None:
    slack.settings = {"speaker": "@ada", "icons": {"noor": ":sunny:"}}
    ada = await bay.agent("Ada", reply("At noon."), "Told Eve.")
    pier = await build(bay, slack, ada)
    await slack.write(ROOM, "Eve", f"<@{BOT_USER}> when does the *boat* leave?")
    await pier.run()
    await pier.say("See you there, @eve-slack!")
    await pier.run()
    assert await pier.lines() == [
        "Eve: @ada when does the **boat** leave?",
        "Ada: At noon.",
        "Noor: See you there, @eve-slack!",
    ]
    assert slack.said == [f"{ROOM}: At noon.", f"{ROOM}: Noor: See you there, <@UEVE>!"]
    assert slack.icons == [":sunny:"]


async def test_without_the_scope_to_customize_names_stand_before_texts(bay: World, slack: SlackApi) -> None:
    slack.customizes = False
    pier = await build(bay, slack)
    first = await pier.say("Ahoi")
    await pier.say("Anyone?")
    await pier.run()
    await bay.denizen.spaces.edit_message(first.id, "Ahoy", by=pier.noor)
    await pier.say("Well then.")
    await pier.run()
    assert [each.partition(": ")[2] for each in slack.said] == [
        "Noor: Ahoi",
        "Noor: Anyone?",
        "edit (out-1): Noor: Ahoy",
        "Noor: Well then.",
    ]


async def test_events_are_confirmed_when_they_are_stored(bay: World, slack: SlackApi) -> None:
    pier = await build(bay, slack)
    await slack.write(ROOM, "Eve", "One")
    (event,) = slack.unconfirmed
    waiting: list[bool] = []
    failpoints.arm(RECEIVED, lambda: waiting.append(event in slack.unconfirmed))
    try:
        await pier.run()
    finally:
        failpoints.disarm()
    assert waiting[0]
    assert slack.unconfirmed == {}
    assert await pier.lines() == ["Eve: One"]


async def test_answers_in_threads_that_were_written_while_the_server_was_away_are_read(
    bay: World, slack: SlackApi
) -> None:
    """The history of a channel does not have them: only that a thread has a new one."""
    pier = await build(bay, slack)
    asked = await slack.write(ROOM, "Eve", "When?")
    await pier.run()
    await slack.write(ROOM, "Mia", "At noon.", reply_to=asked)
    slack.forget_events()
    await pier.run()
    eve, mia = (await bay.denizen.spaces.messages(pier.space))[-2:]
    assert (mia.author_name, mia.reply_to) == ("Mia", eve.id)
    await pier.say("Thank you", reply_to=mia.id)
    await pier.run()
    assert slack.said == [f"{ROOM}: Noor: Thank you (to {asked})"]


async def test_a_connection_that_slack_renews_is_made_anew(bay: World, slack: SlackApi) -> None:
    pier = await build(bay, slack)
    async with bay.denizen.living():
        await bay.run()
        before = slack.connections
        await slack.tell({"type": "disconnect", "reason": "refresh_requested"})
        await slack.write(ROOM, "Eve", "Ahoy!")
        await bay.run()
        assert slack.connections == before + 1
    assert await pier.lines() == ["Eve: Ahoy!"]


async def test_a_token_that_is_revoked_while_connected_parks_the_bridge(bay: World, slack: SlackApi) -> None:
    pier = await build(bay, slack)
    async with bay.denizen.living():
        await bay.run()
        slack.forbid()
        await slack.hang_up()
        await bay.run()
    (notice,) = await pier.notices()
    assert "Install the app again" in notice


async def test_a_file_elsewhere_is_not_asked_for_with_the_token(bay: World, slack: SlackApi) -> None:
    pier = await build(bay, slack)
    await slack.write(ROOM, "Eve", "Look", files=(IncomingFile("map.txt", "text/plain", b"north"),))
    slack.channels[slack.room_id(ROOM)][0]["files"][0]["url_private_download"] = "https://example.org/map.txt"
    slack.forget_events()
    await pier.run()
    assert (await pier.lines())[0].endswith("[A file is missing: Slack does not have map.txt.]")


KNOWN = SlackContext(BOT_USER, "ada", {"U2": "mia-slack"}, BOT, {"U1": "Eve"})


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("*bold*, _slanted_ and ~struck~", "**bold**, _slanted_ and ~~struck~~"),
        ("2*3*4 and snake_case", "2*3*4 and snake_case"),
        ("`*code*` and ```\n*more*\n```", "`*code*` and ```\n*more*\n```"),
        ("<https://example.org|here> or <https://example.org>", "[here](https://example.org) or https://example.org"),
        ("<@U1>, <@U2|mia>, <@U3> and <@U0APP>", "@Eve, @mia-slack, @U3 and @ada"),
        ("<!here> in <#C1|harbour>", "@here in #harbour"),
        ("1 &lt; 2 &amp;&amp; 3 &gt; 2", "1 < 2 && 3 > 2"),
    ],
)
def test_the_markup_of_slack_becomes_markdown(written: str, read: str) -> None:
    assert text_of({"text": written}, KNOWN) == read


@pytest.mark.parametrize("text", ["<!channel>", "<@U1>", "a <!here|x> b", "<#C1>"])
def test_nobody_can_call_a_whole_channel(text: str) -> None:
    assert "<!" not in harmless(text)
    assert "<@" not in harmless(text)
    assert "<#" not in harmless(text)


@pytest.mark.parametrize("emoji", ["👍", "🎉", "❤️", "🚀", "🐙", "✅", "🦀", ":party_parrot:"])
def test_reactions_keep_their_emoji(emoji: str) -> None:
    assert emoji_of(name_of(emoji)) == emoji


def test_a_preview_of_a_link_is_no_edit() -> None:
    message = {"user": "U1", "text": "https://example.org", "ts": "1.0", "edited": {"ts": "2.0"}}
    told = {"type": "message", "subtype": "message_changed", "message": message, "previous_message": message}
    assert incoming(told, KNOWN) is None
