"""`denizen.rounds`: what the advisors of a panel answer to one message."""

from __future__ import annotations

import builtins

from denizen.access.requesters import THIS_PROCESS, Requester
from denizen.api.arguments import number_of, optional_number_of
from denizen.api.subject import EntityRef, PanelRef, Subject, id_of, optional_id_of, requester_of
from denizen.errors import InvalidInput
from denizen.ids import SpaceId
from denizen.panel import claims, rounds
from denizen.panel.advisors import Advisor
from denizen.panel.claims import AdvisorContext
from denizen.panel.rounds import Part, Round


class Rounds(Subject):
    """The rounds of panels.

    ```python
    board = await denizen.panels.create("Board", [noor], advisors=["Kai", "Lena"], model="demo")
    asked = await denizen.panels.ask(board, noor, "Bread or rolls?")
    await denizen.run_until_idle()
    answered = await denizen.rounds.get(asked)
    assert [each.name for each in answered.spoken if each.text] == ["Kai", "Lena"]
    ```
    """

    async def get(self, asked: Round) -> Round:
        """The round as it is now."""
        return await self._runtime.db.read(rounds.get, *_place(asked))

    async def list(self, panel: PanelRef, *, before: int | None = None, limit: int = 50) -> builtins.list[Round]:
        """The last rounds of the panel, the oldest first; with `before`, those before that turn."""
        return await self._read_space(
            panel, rounds.before, optional_number_of(before, "before"), limit=number_of(limit, "limit", 1)
        )

    async def cancel(
        self, asked: Round, advisor: Advisor | str | None = None, *, by: Requester = THIS_PROCESS
    ) -> Round:
        """Cancel the answer of the advisor; without one, of everyone who has not finished."""
        voice = optional_id_of(advisor)
        return await self._runtime.db.write(rounds.cancel, by, *_place(asked), voice)

    async def retry(self, asked: Round, advisor: Advisor | str | None = None, *, by: Requester = THIS_PROCESS) -> Round:
        """Ask the advisor again; without one, everyone who failed or was cancelled.

        A named advisor that has answered answers again, and its first answer is removed.
        """
        voice = optional_id_of(advisor)
        return await self._runtime.db.write(rounds.retry, by, *_place(asked), voice)

    async def synthesize(self, asked: Round, *, by: Requester = THIS_PROCESS) -> Round:
        """Ask for a synthesis of the answers: the part `synthesis` of the round."""
        return await self._runtime.db.write(rounds.want_synthesis, by, *_place(asked))

    async def crosstalk(
        self, asked: Round, *, by: EntityRef | Requester, times: int = 1, id: str | None = None
    ) -> Round:
        """Let the advisors answer each other, so many times. Returns the first such round. Repeated with the same
        `id`, it is begun once.
        """
        return await self._runtime.db.write(rounds.begin_crosstalk, requester_of(by), *_place(asked), times, id=id)

    async def vote(
        self, asked: Round, question: str = "", *, by: EntityRef | Requester, id: str | None = None
    ) -> Round:
        """Let the advisors vote on the question, or on the subject of the turn; `voting.tally` counts."""
        return await self._runtime.db.write(rounds.begin_vote, requester_of(by), *_place(asked), question, id=id)

    async def context(self, asked: Round, advisor: Advisor | str, *, part: Part | None = None) -> AdvisorContext:
        """What the advisor was shown when it answered in this round."""
        return await self._runtime.db.read(claims.context_of, *_place(asked), id_of(advisor), part)


def _place(asked: object) -> tuple[SpaceId, str]:
    """Raises `InvalidInput` if it is not a round."""
    if not isinstance(asked, Round):
        raise InvalidInput("`asked` is not a round. Give what `denizen.panels.ask` or `denizen.rounds.list` returned.")
    return asked.panel_id, asked.id
