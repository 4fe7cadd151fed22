"""Leafing through a conversation: nothing on the screen moves but by the reader's hand."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise

from playwright.async_api import Page, expect

from denizen.spaces.directory import Entity, Space
from tests.server.conftest import House
from tests.web.conftest import PHONE, Visit

WATCH = """
() => {
  // After each frame that was painted: where every message on the screen stands.
  const log = document.querySelector("[role=log]");
  const painted = new MessageChannel();
  window.frames_seen = [];
  window.watching = true;
  painted.port1.onmessage = () => {
    const box = log.getBoundingClientRect();
    const at = {};
    for (const each of log.querySelectorAll("article[data-seq]")) {
      const { top, bottom } = each.getBoundingClientRect();
      if (bottom > box.top && top < box.bottom) at[each.dataset.seq] = top;
    }
    window.frames_seen.push(at);
  };
  const frame = () => {
    if (!window.watching) return;
    painted.port2.postMessage(null);
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}
"""
AT_REST = """
() => new Promise(done => {
  // Nothing has moved for a while: what was scrolled has come to its end, and what was asked for is there.
  const log = document.querySelector("[role=log]");
  let same = 0, last = "";
  const frame = () => {
    const now = log.ariaBusy + JSON.stringify(window.frames_seen.at(-1));
    same = now === last ? same + 1 : 0;
    last = now;
    if (same < 8 || log.ariaBusy === "true") requestAnimationFrame(frame);
    else done([window.frames_seen.length, Object.keys(window.frames_seen.at(-1))]);
  };
  requestAnimationFrame(frame);
})
"""


@dataclass
class Watched:
    """What the reader saw, frame by frame: the place of each message on the screen."""

    page: Page
    frames: list[dict[str, float]] = field(default_factory=list)
    stops: list[int] = field(default_factory=list)
    """How many frames there were whenever everything had come to rest."""

    async def rest(self) -> set[int]:
        """The numbers of the messages on the screen, when everything has come to rest."""
        count, last = await self.page.evaluate(AT_REST)
        self.stops.append(count)
        return {int(seq) for seq in last}

    def moves(self) -> list[float]:
        """By how much everything moved from each frame to the next; that it moved together."""
        return [_move(before, after) for before, after in pairwise(self.frames)]

    def strides(self) -> list[float]:
        """By how much it moved from each stop to the next."""
        moves = self.moves()
        return [sum(moves[begin - 1 : end - 1]) for begin, end in pairwise(self.stops)]


def _move(before: dict[str, float], after: dict[str, float]) -> float:
    each = [after[seq] - before[seq] for seq in before.keys() & after.keys()]
    assert each, f"Nothing that was on the screen is on it any more: {before}, then {after}"
    assert max(each) - min(each) <= 1, f"Messages moved apart: {before}, then {after}"
    return each[0]


@asynccontextmanager
async def watching(page: Page) -> AsyncGenerator[Watched]:
    """What is on the screen is written down until the end."""
    await page.evaluate(WATCH)
    watched = Watched(page)
    yield watched
    watched.frames += await page.evaluate("window.watching = false, window.frames_seen")


async def a_long_conversation(house: House, length: int = 140) -> tuple[Entity, Entity, Space]:
    """Of many days and heights: names, days and code come and go between the lines."""
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    garden = await world.space("Garden", noor, sam)
    for number in range(1, length + 1):
        if number % 40 == 0:
            world.clock.advance(90_000)
        text = f"Leaf {number}. {'Long enough to fill a line or two. ' * (number % 5)}"
        await world.say(
            noor if number % 7 < 2 else sam, f"{text}\n```py\nx = {number}\n```" if number % 9 == 0 else text, garden
        )
    return noor, sam, garden


async def test_the_wheel_leads_through_everything_both_ways_without_a_jump(house: House, visit: Visit) -> None:
    """A turn of the wheel moves what is read by that turn, while pages come in above, and below."""
    noor, _, garden = await a_long_conversation(house)
    hers = await visit(noor, reduced_motion="no-preference")
    page = await hers.open(f"/s/{garden.id}")
    await expect(page.get_by_role("article", name="Leaf 140.")).to_be_in_viewport()
    await page.get_by_role("log").hover()

    async with watching(page) as back:
        met = await back.rest()
        while 1 not in met and len(back.stops) < 40:
            await page.mouse.wheel(0, -500)
            met |= await back.rest()
    assert met == set(range(1, 141))
    assert min(back.moves()) >= -1, "Something moved against the reader's hand."
    # All but the last, which came to the beginning, went their whole way.
    assert {abs(stride - 500) <= 2 for stride in back.strides()[:-1]} == {True}, back.strides()

    # Down again, from the middle of it, where what comes after has to be read first.
    page = await hers.open(f"/s/{garden.id}/m/20")
    await expect(page.get_by_role("article", name="Leaf 20.")).to_be_in_viewport()
    await page.get_by_role("log").hover()
    async with watching(page) as on:
        met = await on.rest()
        while 140 not in met and len(on.stops) < 40:
            await page.mouse.wheel(0, 500)
            met |= await on.rest()
    assert met >= set(range(25, 141))
    assert max(on.moves()) <= 1
    assert {abs(stride + 500) <= 2 for stride in on.strides()[:-1]} == {True}, on.strides()


async def test_keys_leaf_and_what_comes_meanwhile_moves_nothing(house: House, visit: Visit) -> None:
    """On a narrow screen, page by page up, while others write; their messages wait below."""
    noor, sam, garden = await a_long_conversation(house, 90)
    hers = await visit(noor, size=PHONE)
    page = await hers.open(f"/s/{garden.id}")
    await expect(page.get_by_role("article", name="Leaf 90.")).to_be_in_viewport()
    await page.get_by_role("log").focus()

    async with watching(page) as back:
        await back.rest()
        for number in range(6):
            await page.keyboard.press("PageUp")
            await back.rest()
            await house.world.say(sam, f"Meanwhile {number}", garden)
            await expect(page.get_by_role("button", name=f"{number + 1} new")).to_be_visible()
    strides = back.strides()
    assert min(strides) > 100
    assert max(strides) - min(strides) <= 2, strides
    await page.get_by_role("button", name="6 new").click()
    await expect(page.get_by_role("article", name="Sam: Meanwhile 5")).to_be_in_viewport()
    # And whoever is at the end stays there, whatever is said.
    await house.world.say(sam, "And on.\n\n" * 20 + "The end.", garden)
    await expect(page.get_by_role("article").get_by_text("The end.")).to_be_in_viewport()
    await expect(page.get_by_role("button", name="Newest")).to_be_hidden()


GROW_WHILE_SCROLLING = """
([seq, pixels]) => new Promise(done => requestAnimationFrame(() => {
  // The scroll events of this frame are over: the list learns of the new size before it learns that it was scrolled.
  const log = document.querySelector("[role=log]");
  const place = () => log.querySelector(`article[data-seq="${seq}"]`).getBoundingClientRect().top;
  const before = place();
  log.scrollTop -= 100;
  log.querySelector("article[data-seq]").style.paddingBottom = `${pixels}px`;
  requestAnimationFrame(() => requestAnimationFrame(() => done(place() - before)));
}))
"""


async def test_a_row_that_grows_does_not_undo_scrolling(house: House, visit: Visit) -> None:
    """The browser scrolls before it dispatches the scroll event. What changes in between keeps the new position."""
    noor, _, garden = await a_long_conversation(house, 40)
    page = await (await visit(noor)).open(f"/s/{garden.id}")
    await expect(page.get_by_role("article", name="Leaf 40.")).to_be_in_viewport()

    # From the end, which the list follows, and once more from where that leads.
    assert abs(await page.evaluate(GROW_WHILE_SCROLLING, [40, 30]) - 100) <= 1
    assert abs(await page.evaluate(GROW_WHILE_SCROLLING, [40, 90]) - 100) <= 1
