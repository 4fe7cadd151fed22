"""A model that stops in the middle of what it says."""

from __future__ import annotations

import asyncio


class Hesitation:
    """For a model that stops in the middle of its message and goes on when `may_go_on` is set.

    Without it, a scripted agent may be done before the reader has heard that it began: then it is shown the message.
    The message has more than 24 characters, or the model stops only after it.
    """

    def __init__(self) -> None:
        self.may_go_on = asyncio.Event()
        self.pieces = 0

    async def __call__(self) -> None:
        self.pieces += 1
        # The first pieces, of twelve characters, are of the call before its text: by the third, some text was said.
        if self.pieces == 4:
            await self.may_go_on.wait()
