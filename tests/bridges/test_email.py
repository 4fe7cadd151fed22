"""The email bridge against pymap and aiosmtpd, in this process."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any, cast

import pytest

from denizen import reply
from denizen.agents.files import DefinitionFile, read
from denizen.bridges.email import adapter, imap
from denizen.bridges.email.imap import FetchedMail, Imap, ImapError
from denizen.bridges.email.kind import EmailSettings
from denizen.bridges.email.mails import incoming
from denizen.bridges.port import IncomingFile
from denizen.bridges.running import DEFECT_TRIES, LONGEST_PAUSE_SECONDS
from denizen.bridges.told_statuses import SETTLED_SECONDS
from denizen.errors import DefinitionsInvalid
from denizen.spaces.directory import Space
from tests.bridges.conformance import ROOM, BridgeSuite, Pier, Service, build, refuse_by_a_defect
from tests.bridges.mail_server import ADDRESS, TRUSTED, MailServer, address_of, mail
from tests.world import World


@pytest.fixture
async def post() -> AsyncIterator[MailServer]:
    found = MailServer()
    async with found.running():
        yield found


async def desk(bay: World, server: MailServer, *members: Any) -> Pier:
    """The space that the mailbox is connected with. An agent in it has read so, and said hello."""
    front = await build(bay, server, *members)
    if members:
        await front.say("@ada look after the mail")
        await front.run()
    return front


async def begun(bay: World, server: MailServer, *members: Any) -> Pier:
    """The pier is the conversation that Eve begins, with a copy to Mia."""
    front = await desk(bay, server, *members)
    await server.write(ROOM, "Eve", "Ahoy from the pier!", cc=address_of("Mia"))
    await front.run()
    return Pier(bay, server, front.bridge, front.noor, await the_boat(bay))


async def spaces(bay: World) -> list[Space]:
    """The spaces that the bridge is in."""
    (report,) = await bay.denizen.bridges.list()
    return sorted(await bay.denizen.spaces.list(report.bridge.entity_id), key=lambda each: each.id)


async def the_boat(bay: World, name: str = "The boat") -> Space:
    (found,) = [each for each in await spaces(bay) if each.name == name]
    return found


class TestEmail(BridgeSuite):
    @pytest.fixture
    def service(self, post: MailServer) -> Service:
        return post

    async def build(self, bay: World, service: Service) -> Pier:
        assert isinstance(service, MailServer)
        return await begun(bay, service)

    async def test_changes_there_are_changes_here(self, bay: World, service: Service) -> None:
        """A reply and a file stay what they are; mails are never changed."""
        pier = await self.build(bay, service)
        first = await service.write(ROOM, "Eve", "Ahoy")
        await service.write(ROOM, "Mia", "Hello Eve", reply_to=first)
        await service.write(ROOM, "Mia", "A map", files=(IncomingFile("map.txt", "text/plain", b"north"),))
        await pier.run()
        _, eve, mia, sent = await bay.denizen.spaces.messages(pier.space)
        assert [eve.text, mia.text, sent.text] == ["Ahoy", "Hello Eve", "A map"]
        assert mia.reply_to == eve.id
        assert [(each.name, await bay.denizen.files.read(each.id)) for each in sent.files] == [("map.txt", b"north")]

    async def test_changes_here_are_changes_there(self, bay: World, service: Service, tmp_path: Path) -> None:
        """A change of text is a mail that says so; a mail cannot be taken back, nor reacted to."""
        pier = await self.build(bay, service)
        here = bay.denizen.spaces
        first = await pier.say("Ahoi")
        (tmp_path / "map.txt").write_text("north")
        await pier.say("A map", files=[tmp_path / "map.txt"])
        await pier.run()
        await here.edit_message(first.id, "Ahoy", by=pier.noor)
        await here.react(first.id, "👍", by=pier.noor)
        await pier.run()
        await here.delete_message(first.id, by=pier.noor)
        await pier.run()
        assert service.said == [
            f"{ROOM}: Noor: Ahoi",
            f"{ROOM}: Noor: A map [map.txt: north]",
            f"{ROOM}: Noor: Correction of what I wrote before:\n\nAhoy",
        ]
        assert (await bay.denizen.bridges.get(pier.bridge)).backlog.failed == 0

    async def test_a_reply_and_a_reaction_to_what_was_written_there_find_it(self, bay: World, service: Service) -> None:
        assert isinstance(service, MailServer)
        pier = await self.build(bay, service)
        first = await service.write(ROOM, "Eve", "Ahoy")
        second = await service.write(ROOM, "Mia", "Anyone?")
        await pier.run()
        eve = (await bay.denizen.spaces.messages(pier.space))[1]
        await pier.say("Hello Eve", reply_to=eve.id)
        await pier.say("Hello all")
        await pier.run()
        one, two = service.sent
        assert [one["In-Reply-To"], two["In-Reply-To"]] == [first, one["Message-ID"]]
        assert two["References"].split() == [service.first, first, second, one["Message-ID"]]
        assert two["Subject"] == "Re: The boat"


async def test_each_thread_is_a_space_of_the_sender_and_the_agents(bay: World, post: MailServer) -> None:
    """Who connected the mailbox is not in it, and one thread knows nothing of the other."""
    ada = await bay.agent(
        "Ada", reply("I will."), "Promised.", reply("At noon."), "Told Eve.", reply("At nine."), "Told Mia."
    )
    front = await desk(bay, post, ada)
    await bay.denizen.bridges.change(front.bridge, post.settings())
    await post.put(mail("Eve", "When does the boat leave?", id="<a@pier.test>"))
    await front.run()
    await post.put(mail("Mia", "When does the shop open?", id="<b@pier.test>", subject="The shop"))
    await front.run()
    for name, who, said in (("The boat", "Eve", "At noon."), ("The shop", "Mia", "At nine.")):
        space = await the_boat(bay, name)
        assert [each.entity.name for each in await bay.denizen.spaces.members(space)] == ["Ada", "Mail", who]
        assert (await bay.transcript(space))[-1] == f"Ada: {said}"
    assert post.recipients == [[address_of("Eve")], [address_of("Mia")]]
    assert await front.lines() == ["Noor: @ada look after the mail", "Ada: I will."]
    report = await bay.denizen.bridges.get(front.bridge)
    assert ([each.room for each in report.channels], report.conversations) == (["INBOX"], {report.channels[0].id: 2})


async def test_why_there_is_no_answer_is_not_told_by_mail(bay: World, post: MailServer) -> None:
    """Programs answer mail. The conversation here shows why."""
    ada = await bay.agent("Ada", reply("I will."), "Promised.")
    front = await desk(bay, post, ada)
    await bay.denizen.agents.suspend(ada)
    await post.put(mail("Eve", "When does the boat leave?", id="<a@pier.test>"))
    await front.run()
    for _ in range(3):
        await front.run_after(SETTLED_SECONDS)
    (status,) = await bay.denizen.spaces.statuses(await the_boat(bay))
    assert status.text.startswith("Ada is suspended.")
    assert post.said == []


async def test_an_agents_mail_says_that_it_is_automatic(bay: World, post: MailServer) -> None:
    ada = await bay.agent("Ada", reply("I will."), "Promised.", reply("At **noon**."), "Told Eve.")
    pier = await begun(bay, post, ada)
    await pier.say("Noor here.")
    await pier.run()
    by_agent, by_person = post.sent
    assert by_agent["Auto-Submitted"] == "auto-replied"
    assert by_person["Auto-Submitted"] is None
    html = by_agent.get_body(("html",))
    assert html is not None
    assert html.get_content().strip() == "<p>At <strong>noon</strong>.</p>"
    assert post.recipients[0] == [address_of("Eve"), address_of("Mia")]


@pytest.mark.parametrize(
    "headers",
    [
        {"Auto-Submitted": "auto-replied"},
        {"List-Id": "<sailors.pier.test>"},
        {"Precedence": "bulk"},
        {"Return-Path": "<>"},
        {"List-Unsubscribe": "<mailto:off@pier.test>"},
        {"X-Auto-Response-Suppress": "All"},
    ],
)
async def test_what_programs_and_lists_send_is_never_answered(
    headers: dict[str, str], bay: World, post: MailServer
) -> None:
    """In a conversation it is shown; elsewhere it begins none."""
    ada = await bay.agent("Ada", reply("I will."), "Promised.", reply("At noon."), "Told Eve.")
    pier = await begun(bay, post, ada)
    await post.put(mail("Eve", "I am away.", id="<x@pier.test>", reply_to=post.first, headers=headers))
    await post.put(mail("Shop", "Buy boats!", id="<y@pier.test>", subject="Sale", headers=headers))
    await pier.run()
    assert await pier.lines() == ["Ada: At noon.", "Eve: I am away."]
    assert len(post.sent) == 1
    assert "Sale" not in [each.name for each in await spaces(bay)]


async def test_a_bounce_is_shown_in_the_conversation_of_the_mail(bay: World, post: MailServer) -> None:
    pier = await begun(bay, post)
    await pier.say("Hello")
    await pier.run()
    original = post.sent[0]["Message-ID"]
    bounce = (
        "From: MAILER-DAEMON@mx.test (Mail Delivery System)\r\nTo: ada@harbour.test\r\nSubject: Undelivered\r\n"
        "Message-ID: <bounce@mx.test>\r\nMIME-Version: 1.0\r\n"
        'Content-Type: multipart/report; report-type=delivery-status; boundary="b"\r\n\r\n'
        "--b\r\nContent-Type: text/plain\r\n\r\nThe mailbox of eve@pier.test is full.\r\n"
        "--b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.test\r\n\r\n"
        f"--b\r\nContent-Type: text/rfc822-headers\r\n\r\nMessage-ID: {original}\r\nSubject: Re\r\n\r\n--b--\r\n"
    )
    await post.put(bounce.encode())
    await pier.run()
    assert (await pier.lines())[-1].endswith("The mailbox of eve@pier.test is full.")
    await pier.say("Again")
    await pier.run()
    assert post.recipients[-1] == [address_of("Eve"), address_of("Mia")]


async def test_a_forged_sender_is_a_guest_and_adds_no_reader(bay: World, post: MailServer) -> None:
    """A linked address is its person only if the mail server says that it is authentic."""
    pier = await begun(bay, post)
    await bay.denizen.bridges.send_code(pier.bridge, address_of("Eve"), pier.noor)
    await pier.run()
    body = post.sent[-1].get_body(("plain",))
    assert body is not None
    code = body.get_content().split(": ")[1].split("\n")[0]
    await bay.denizen.bridges.link(pier.bridge, address_of("Eve"), pier.noor, code)
    for seen in (
        "dkim=pass header.d=evil.test; spf=pass smtp.mailfrom=evil.test",
        "dmarc=fail header.from=pier.test",
        "",
    ):
        forged = mail("Eve", f"I am Eve: {seen}", id=f"<{len(seen)}@evil.test>", reply_to=post.first, seen=seen)
        forged["Cc"] = "mallory@evil.test"
        if not seen:
            forged["Authentication-Results"] = "mx.evil.test; dmarc=pass header.from=pier.test"
        await post.put(forged)
    await post.write(ROOM, "Eve", "It is me.")
    await pier.run()
    found = (await bay.denizen.spaces.messages(pier.space))[1:]
    assert [each.author_name for each in found] == ["Eve", "Eve", "Eve", "Noor"]
    came = [cast("dict[str, Any]", each.metadata["bridge"]) for each in found]
    assert [each["verified"] for each in came] == [False, False, False, True]
    assert [came[-1][method] for method in ("dmarc", "dkim", "spf")] == ["pass pier.test"] * 3
    await pier.say("Hello")
    await pier.run()
    assert "mallory@evil.test" not in [each for mails in post.recipients for each in mails]


async def test_whoever_was_passed_a_mail_begins_a_conversation_of_their_own(bay: World, post: MailServer) -> None:
    pier = await begun(bay, post)
    await post.put(mail("Zoe", "What is this about?", id="<z@pier.test>", reply_to=post.first, subject="Fwd: The boat"))
    await pier.run()
    assert await pier.lines() == []
    assert len([each for each in await spaces(bay) if each.name == "The boat"]) == 2


async def test_a_mailbox_that_was_made_anew_is_not_read_twice(bay: World, post: MailServer) -> None:
    """UIDVALIDITY has changed: mails are known by their Message-ID, and the ones that came meanwhile are read."""
    await post.put(mail("Eve", "From before the bridge.", id="<old@pier.test>", subject="Old"))
    pier = await begun(bay, post)
    await post.write(ROOM, "Eve", "One")
    await pier.say("Mine")
    await pier.run()
    await post.renumber()
    await post.write(ROOM, "Eve", "Two")
    await pier.run()
    await post.write(ROOM, "Eve", "Three")
    await pier.run()
    assert sorted(await pier.lines()) == ["Eve: One", "Eve: Three", "Eve: Two", "Noor: Mine"]
    assert len(post.sent) == 1


async def test_a_mail_whose_receipt_was_never_heard_of_is_not_sent_twice(bay: World, post: MailServer) -> None:
    """The server took it and the connection broke: the copy in the mailbox shows that it was sent."""
    pier = await begun(bay, post)
    post.drops = 1
    await pier.say("Hello")
    await pier.run()
    assert (await bay.denizen.bridges.get(pier.bridge)).backlog.waiting == 1
    await pier.run_after(60)
    assert (await bay.denizen.bridges.get(pier.bridge)).backlog.waiting == 0
    assert len(post.sent) == 1


async def test_who_cannot_be_reached_is_told_and_the_others_get_it(bay: World, post: MailServer) -> None:
    pier = await begun(bay, post)
    post.refused[address_of("Mia")] = "550 5.1.1 No such user"
    await pier.say("Hello")
    await pier.run()
    assert post.recipients == [[address_of("Eve")]]
    (notice,) = await pier.notices()
    assert "mia@pier.test (5.1.1 No such user)" in notice
    post.refused[address_of("Eve")] = "450 4.2.0 Come back later"
    await pier.say("Still there?")
    await pier.run()
    assert (await bay.denizen.bridges.get(pier.bridge)).backlog.waiting == 1
    del post.refused[address_of("Eve")]
    await pier.run_after(60)
    assert post.recipients == [[address_of("Eve")]] * 2


@pytest.mark.parametrize("odd", ["mía@pier.test", '")\\"@pier.test'])
async def test_an_address_that_cannot_be_written_to_holds_up_nothing(bay: World, post: MailServer, odd: str) -> None:
    """It is not valid, or has letters that the mail server does not take. Anybody can put it in a mail."""
    pier = await begun(bay, post)
    made = mail("Eve", "Mia should know, too.", reply_to=post.first, id="<odd@pier.test>")
    await post.put(made.as_bytes().replace(b"\r\nTo: ", f"\r\nCc: {odd}\r\nTo: ".encode(), 1))
    await pier.run()
    assert await pier.lines() == ["Eve: Mia should know, too."]
    await pier.say("Hello")
    await pier.run()
    assert post.recipients == [[address_of("Eve")]]
    report = await bay.denizen.bridges.get(pier.bridge)
    assert (report.backlog.waiting, report.backlog.failed, report.bridge.error) == (0, 0, None)


async def test_only_the_new_words_are_said_and_the_whole_is_a_file(bay: World, post: MailServer) -> None:
    pier = await begun(bay, post)
    text = "Yes, please.\n\nOn Mon, 5 Jan 2026 at 09:00, Ada <ada@harbour.test> wrote:\n> At noon?\n> Or later?\n"
    await post.write(ROOM, "Eve", text)
    await pier.run()
    said = (await bay.denizen.spaces.messages(pier.space))[-1]
    assert said.text == "Yes, please."
    assert [each.name for each in said.files] == ["mail.txt"]
    assert b"> Or later?" in await bay.denizen.files.read(said.files[0].id)


async def test_only_wanted_senders_are_read(bay: World, post: MailServer) -> None:
    pier = await begun(bay, post)
    await bay.denizen.bridges.change(pier.bridge, post.settings(senders=["@pier.test"]))
    await post.put(mail("Spam", "Buy!", address="spam@shop.test", seen="dmarc=pass header.from=shop.test", subject="A"))
    await post.put(mail("Eve", "Forged", id="<f@pier.test>", seen="", subject="B"))
    await post.put(mail("Eve", "Hello", id="<g@pier.test>", subject="C"))
    await pier.run()
    assert [each.name for each in await spaces(bay)] == ["Pier", "The boat", "C"]


async def test_programs_that_answer_each_other_are_cut_off(bay: World, post: MailServer) -> None:
    """A sender that answers at once, each time, and does not say that it is a program."""
    turns = [each for number in range(60) for each in (reply(f"Number {number}"), "Answered.")]
    ada = await bay.agent("Ada", reply("I will."), "Promised.", *turns)
    pier = await begun(bay, post, ada)
    for number in range(40):
        await post.write(ROOM, "Eve", f"Thank you for your mail, number {number}.")
        await pier.run()
    assert len(post.sent) == 30


async def test_a_program_that_begins_a_conversation_with_each_answer_is_cut_off(bay: World, post: MailServer) -> None:
    """It answers each mail with a new one that refers to none, and does not say that it is a program."""
    turns = [each for number in range(60) for each in (reply(f"Number {number}"), "Answered.")]
    ada = await bay.agent("Ada", reply("I will."), "Promised.", *turns)
    front = await desk(bay, post, ada)
    for number in range(40):
        await post.put(mail("Desk", "We have received your request.", id=f"<{number}@pier.test>", subject="Ticket"))
        await front.run()
    assert len(post.sent) == 30
    await post.put(mail("Eve", "Ahoy!", id="<eve@pier.test>"))
    await front.run()
    assert len(post.sent) == 31


async def test_agents_of_two_servers_do_not_answer_each_other(bay: World, post: MailServer) -> None:
    """What an agent sent is shown at the other server, and wakes nobody there, whoever passes it on."""
    ada = await bay.agent("Ada", reply("I will."), "Promised.", reply("At noon."), "Told Eve.")
    pier = await begun(bay, post, ada)
    settings = EmailSettings.model_validate(post.settings(address="bob@pier.test"))
    (sent,) = post.sent
    there = incoming(bytes(sent), settings)
    assert there is not None
    assert (there.automatic, there.writer.bot) == (True, True)
    for header in ("Auto-Submitted", "X-Auto-Response-Suppress"):
        copy = message_from_bytes(bytes(sent), policy=policy.default)
        del copy[header]
        again = incoming(bytes(copy), settings)
        assert again is not None
        assert again.automatic
    assert await pier.lines() == ["Ada: At noon."]


async def test_nobody_can_have_mail_sent_to_others(bay: World, post: MailServer) -> None:
    """A mail whose sender may be forged is answered to them alone, also if it begins a conversation."""
    ada = await bay.agent("Ada", reply("I will."), "Promised.", reply("At noon."), "Told Eve.")
    front = await desk(bay, post, ada)
    victims = ", ".join(f"victim-{number}@shop.test" for number in range(40))
    await post.put(
        mail("Eve", "When?", id="<1@pier.test>", seen="", cc=victims, headers={"Reply-To": "boss@shop.test"})
    )
    await front.run()
    assert post.recipients == [[address_of("Eve")]]


async def test_large_mails_are_read_a_few_at_a_time(
    bay: World, post: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one that is too large only the headers are read; nothing is lost."""
    monkeypatch.setattr(adapter, "BYTES_AT_ONCE", 10_000)
    monkeypatch.setattr(imap, "MAIL_BYTES", 50_000)
    pier = await begun(bay, post)
    for number in range(5):
        file = IncomingFile("map.txt", "text/plain", b"north " * (2_000 if number != 3 else 20_000))
        await post.write(ROOM, "Eve", f"Number {number}", files=(file,))
    await pier.run()
    said = await pier.lines()
    assert said == [
        "Eve: Number 0",
        "Eve: Number 1",
        "Eve: Number 2",
        "Eve: [This mail is too large to be read here. It is in the mailbox.]",
        "Eve: Number 4",
    ]


async def test_new_mail_is_told_at_once(bay: World, post: MailServer) -> None:
    """The clock stands still, so nobody looks by themselves."""
    pier = await begun(bay, post)
    async with bay.denizen.living():
        await bay.run()
        await post.write(ROOM, "Eve", "Are you there?")
        while await pier.lines() != ["Eve: Are you there?"]:
            await bay.denizen.db.read(lambda _tx: None)


async def test_hostile_mails_hold_up_nothing(bay: World, post: MailServer) -> None:
    pier = await begun(bay, post)
    for raw in (
        b"",
        b"\x00\xff\xfe nonsense",
        b"From: eve@pier.test\r\nSubject: =?utf-8?b?////?=\r\nContent-Type: text/plain; charset=nonsense\r\n\r\n\xff",
        b"From: <<<@>>\r\nTo: ,,,;:\r\nMessage-ID: [\r\nDate: 99 Foo\r\n\r\n",
        b"From: half@pier.test\r\nContent-Type: text/html\r\n\r\n" + b"<div>" * 50_000 + b"deep",
    ):
        await post.put(raw)
    await post.write(ROOM, "Eve", "Still here?")
    await pier.run()
    assert await pier.lines() == ["Eve: Still here?"]
    assert (await bay.denizen.bridges.get(pier.bridge)).bridge.error is None
    assert ADDRESS not in str(post.recipients)


async def test_a_changed_password_is_told_where_the_mailbox_is_connected(bay: World, post: MailServer) -> None:
    """Also if there is nothing to be sent: nobody would know that mail is not read any more."""
    front = await desk(bay, post)
    post.forbid()
    await front.run()
    await front.run()
    (notice,) = await front.notices()
    assert "is disconnected: The mail server does not accept the user name and password." in notice
    await post.put(mail("Eve", "Ahoy", id="<1@pier.test>"))
    post.permit()
    await bay.denizen.bridges.retry(front.bridge)
    await front.run()
    assert await bay.transcript(await the_boat(bay)) == ["Eve: Ahoy"]


async def test_the_bridge_of_a_file_is_made_once(bay: World, post: MailServer) -> None:
    noor = await bay.person("Noor")
    text = json.dumps(
        {
            "kind": "bridge",
            "name": "Mail",
            "service": "email",
            "settings": post.settings(),
            "channels": [{"room": "INBOX", "space": "Desk"}],
        }
    )

    async def applied(text: str, *, dry_run: bool = False) -> list[tuple[str, str, str]]:
        done = await bay.denizen.agents.apply(read([DefinitionFile("mail.json", text)]), creator=noor, dry_run=dry_run)
        return [(each.kind, each.name, each.action) for each in done]

    made = [("space", "Desk", "created"), ("bridge", "mail", "created")]
    assert await applied(text, dry_run=True) == made
    assert await bay.denizen.bridges.list() == []
    assert await applied(text) == made
    assert await applied(text) == [("bridge", "mail", "unchanged")]
    changed = text.replace('"name": "Mail"', '"handle": "mail", "name": "Post"').replace(TRUSTED, "mx.test")
    done = await bay.denizen.agents.apply(read([DefinitionFile("mail.json", changed)]), creator=noor)
    assert [(each.path, each.old, each.new) for each in done[0].fields] == [
        ("name", "Mail", "Post"),
        ("settings.auth_server", TRUSTED, "mx.test"),
    ]
    (report,) = await bay.denizen.bridges.list()
    assert (report.bridge.name, [each.room for each in report.channels]) == ("Post", ["INBOX"])
    for wrong, said in (
        (text.replace('"email"', '"mail"'), "There is no kind of bridge 'mail'"),
        (text.replace("${MAIL}", "open"), "may only name a secret"),
        (text.replace('"email"', '"webhook"').replace('"Mail"', '"Web"'), "not valid"),
        (text.replace('"Mail"', '"Noor"'), "The handle @noor is taken"),
    ):
        with pytest.raises(DefinitionsInvalid, match=said):
            await applied(wrong)


async def test_a_mail_that_ends_in_a_defect_holds_up_only_its_conversation(
    bay: World, post: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All mails of the mailbox waited for more than an hour, until it was left out."""
    words = refuse_by_a_defect(monkeypatch, "odd")
    front = await desk(bay, post)
    async with bay.denizen.living():
        await front.run()
        first = await post.write(ROOM, "Eve", "When does it leave?", subject="The boat")
        await front.run()
        odd = await post.write(ROOM, "Eve", "odd", subject="The boat", reply_to=first)
        await post.write(ROOM, "Eve", "At noon?", subject="The boat", reply_to=odd)
        await post.write(ROOM, "Mia", "Is it open?", subject="The mole", reply_to="")
        await front.run()
        assert await bay.transcript(await the_boat(bay)) == ["Eve: When does it leave?"]
        assert await bay.transcript(await the_boat(bay, "The mole")) == ["Mia: Is it open?"]
        await post.write(ROOM, "Mia", "And the bar?", subject="The bar", reply_to="")
        await front.run()
        assert await bay.transcript(await the_boat(bay, "The bar")) == ["Mia: And the bar?"]
    await bay.restart()
    async with bay.denizen.living():
        await front.run()
        words.clear()
        await front.run_after(LONGEST_PAUSE_SECONDS)
        await front.run()
    assert await bay.transcript(await the_boat(bay)) == ["Eve: When does it leave?", "Eve: odd", "Eve: At noon?"]
    assert await bay.transcript(await the_boat(bay, "The mole")) == ["Mia: Is it open?"]
    assert (await bay.denizen.bridges.get(front.bridge)).bridge.error is None


async def test_a_mail_that_the_server_never_hands_out_holds_up_no_other(
    bay: World, post: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole folder waited for it for good, whatever else came."""
    front = await desk(bay, post)
    fetch, lost = Imap.fetch, set[int]()

    async def fetch_or_refuse(imap: Imap, uid: int) -> FetchedMail | None:
        lost.update(() if lost else (uid,))
        if uid in lost:
            raise ImapError("NO [SERVERBUG] Internal error")
        return await fetch(imap, uid)

    async with bay.denizen.living():
        await front.run()
        monkeypatch.setattr(Imap, "fetch", fetch_or_refuse)
        await post.write(ROOM, "Eve", "Lost", subject="The boat")
        await post.write(ROOM, "Mia", "Is it open?", subject="The mole", reply_to="")
        await front.run()
        assert await bay.transcript(await the_boat(bay, "The mole")) == ["Mia: Is it open?"]
        for _ in range(DEFECT_TRIES):
            await front.run_after(LONGEST_PAUSE_SECONDS)
        await post.write(ROOM, "Mia", "And the bar?", subject="The bar", reply_to="")
        await front.run()
    assert await bay.transcript(await the_boat(bay, "The bar")) == ["Mia: And the bar?"]
    assert [each for each in await front.notices() if "could not receive something" in each]
    assert (await bay.denizen.bridges.get(front.bridge)).bridge.error is None
