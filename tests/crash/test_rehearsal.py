"""The process that the others are forked from."""

from __future__ import annotations

import sys
from multiprocessing.connection import Connection

from denizen.api.wiring import Wiring
from tests.crash.killing import PRELOADED, ended, processes


def _tell(telling: Connection) -> None:
    telling.send((Wiring.finds_models, [each for each in PRELOADED if each not in sys.modules]))


def test_lives_ask_for_no_models_of_this_machine_and_have_nothing_left_to_import() -> None:
    """Each asked three servers that may be there, which also took a third of its time."""
    hearing, telling = processes().Pipe(duplex=False)
    process = processes().Process(target=_tell, args=(telling,), daemon=True)
    process.start()
    telling.close()
    with hearing:
        assert hearing.recv() == (False, [])
    assert ended(process) == 0
