"""Panels, over HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import httpx2
from pydantic import JsonValue

from denizen.client.connection import REQUEST_SECONDS, Connection, keyed, path_to, those_given
from denizen.client.streaming import LifeEvent, resuming
from denizen.shapes.panels import (
    Advisor,
    ContextOut,
    CostOut,
    Panel,
    RoundOut,
    RoundPage,
    SuggestionList,
    SuggestionOut,
)
from denizen.shapes.value import Value


class _Panels(Value):
    panels: list[Panel]


class _Advisors(Value):
    advisors: list[Advisor]


class Panels(Connection):
    """Panels, their advisors and their rounds."""

    async def panels(self) -> list[Panel]:
        """Returns the caller's panels."""
        return (await self._ask(_Panels, "GET", "/api/panels")).panels

    async def panel(self, panel_id: str) -> Panel:
        return await self._ask(Panel, "GET", path_to("panels", panel_id))

    async def create_panel(
        self,
        name: str,
        advisors: Iterable[Mapping[str, JsonValue]] = (),
        *,
        members: Iterable[str] = (),
        private: bool = False,
        settings: Mapping[str, JsonValue] | None = None,
        key: str | None = None,
    ) -> Panel:
        body = {
            "name": name, "advisors": list(advisors), "members": list(members), "private": private,
            "settings": dict(settings or {}),
        }  # fmt: skip
        return await self._ask(Panel, "POST", "/api/panels", json=body, headers=keyed(key))

    async def change_panel(self, panel_id: str, *, name: str | None = None, **settings: JsonValue) -> Panel:
        """Renames the panel, or changes these settings."""
        body = those_given(name=name) | {"settings": settings}
        return await self._ask(Panel, "PATCH", path_to("panels", panel_id), json=body)

    async def add_advisor(self, panel_id: str, fields: Mapping[str, JsonValue]) -> Advisor:
        return await self._ask(Advisor, "POST", path_to("panels", panel_id, "advisors"), json=dict(fields))

    async def change_advisor(self, panel_id: str, advisor_id: str, **changes: JsonValue) -> Advisor:
        return await self._ask(Advisor, "PATCH", path_to("panels", panel_id, "advisors", advisor_id), json=changes)

    async def remove_advisor(self, panel_id: str, advisor_id: str) -> None:
        await self._tell("DELETE", path_to("panels", panel_id, "advisors", advisor_id))

    async def order_advisors(self, panel_id: str, advisor_ids: Iterable[str]) -> list[Advisor]:
        body = {"advisors": list(advisor_ids)}
        return (await self._ask(_Advisors, "PUT", path_to("panels", panel_id, "advisors", "order"), json=body)).advisors

    async def switch_group(self, panel_id: str, group: str, active: bool) -> list[Advisor]:
        """Switches the advisors of the group on or off; returns all."""
        body = {"group": group, "active": active}
        return (await self._ask(_Advisors, "PUT", path_to("panels", panel_id, "advisors", "group"), json=body)).advisors

    async def export_advisors(self, panel_id: str) -> dict[str, Any]:
        return (await self._tell("GET", path_to("panels", panel_id, "advisors", "export"))).json()

    async def import_advisors(
        self, panel_id: str, document: Mapping[str, Any], *, replace: bool = False
    ) -> list[Advisor]:
        body = {**document, "replace": replace}
        return (
            await self._ask(_Advisors, "POST", path_to("panels", panel_id, "advisors", "import"), json=body)
        ).advisors

    async def suggest_advisors(self, panel_id: str, topic: str, *, count: int = 8) -> list[SuggestionOut]:
        body, waiting = {"topic": topic, "count": count}, httpx2.Timeout(REQUEST_SECONDS, read=300)
        path = path_to("panels", panel_id, "advisors", "suggest")
        return (await self._ask(SuggestionList, "POST", path, json=body, timeout=waiting)).suggestions

    async def ask_panel(
        self,
        panel_id: str,
        text: str,
        *,
        key: str | None = None,
        organization_id: str | None = None,
        files: Sequence[str] = (),
    ) -> RoundOut:
        """Posts a message to the panel, which begins a round. `files`: the ids of uploads."""
        path = path_to("panels", panel_id, "rounds")
        said = those_given(text=text, organizationId=organization_id, files=list(files) or None)
        return await self._ask(RoundOut, "POST", path, json=said, headers=keyed(key))

    async def rounds(self, panel_id: str, *, before: int | None = None, limit: int = 20) -> RoundPage:
        """Returns the rounds of the last turns before that one."""
        return await self._ask(
            RoundPage, "GET", path_to("panels", panel_id, "rounds"), params=those_given(before=before, limit=limit)
        )

    async def round(self, panel_id: str, round_id: str) -> RoundOut:
        return await self._ask(RoundOut, "GET", path_to("panels", panel_id, "rounds", round_id))

    async def cancel_round(self, panel_id: str, round_id: str, advisor: str | None = None) -> RoundOut:
        """Cancels the advisor's reply, or all unfinished ones."""
        return await self._of_round(panel_id, round_id, "cancel", {"advisor": advisor})

    async def retry_round(self, panel_id: str, round_id: str, advisor: str | None = None) -> RoundOut:
        """Asks the advisor again, or all that failed or were cancelled."""
        return await self._of_round(panel_id, round_id, "retry", {"advisor": advisor})

    async def synthesize(self, panel_id: str, round_id: str) -> RoundOut:
        return await self._of_round(panel_id, round_id, "synthesis", None)

    async def crosstalk(self, panel_id: str, round_id: str, *, rounds: int = 1) -> RoundOut:
        """Makes the advisors answer each other; returns the first such round."""
        return await self._of_round(panel_id, round_id, "crosstalk", {"rounds": rounds})

    async def vote(self, panel_id: str, round_id: str, question: str = "") -> RoundOut:
        """Returns the round of the vote."""
        return await self._of_round(panel_id, round_id, "vote", {"question": question})

    async def _of_round(
        self, panel_id: str, round_id: str, what: str, body: Mapping[str, JsonValue] | None
    ) -> RoundOut:
        return await self._ask(RoundOut, "POST", path_to("panels", panel_id, "rounds", round_id, what), json=body)

    async def reply_context(self, panel_id: str, round_id: str, advisor: str) -> ContextOut:
        """Returns the request that the advisor was sent."""
        path = path_to("panels", panel_id, "rounds", round_id, "replies", advisor, "context")
        return await self._ask(ContextOut, "GET", path)

    async def panel_cost(self, panel_id: str, text: str) -> CostOut:
        """Estimates what the message would cost."""
        return await self._ask(CostOut, "POST", path_to("panels", panel_id, "cost"), json={"text": text})

    async def panel_transcript(self, panel_id: str) -> str:
        """Returns the whole panel in Markdown."""
        return (await self._tell("GET", path_to("panels", panel_id, "transcript"))).text

    async def stream_panel(self, panel_id: str) -> AsyncGenerator[LifeEvent]:
        """Streams the panel's events from now on: `RoundOut`, `PanelReply`, `PanelDelta`."""

        def once(last: str | None) -> AsyncGenerator[tuple[str | None, LifeEvent]]:
            return self._events(path_to("spaces", panel_id, "stream"), last)

        async with aclosing(resuming(once, None, self._clock)) as events:
            async for event in events:
                yield event
