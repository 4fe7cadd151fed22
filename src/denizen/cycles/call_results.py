"""What the stored result of a tool call says: whether it was refused, failed, is pending or succeeded. Pure."""

from __future__ import annotations

import json
from typing import Final, Literal

from denizen.errors import DenizenError
from denizen.tools import calls

REFUSED: Final = '{"success": false'
"""The beginning of the result of a refused call."""
_NOT_DONE: Final = ("Refused: ", "Nobody answered within ", "Not run: ", calls.UNKNOWN_OUTCOME)
_NOT_YET: Final = ('{"status": "pending"', "Not made yet: ", calls.NOT_YET)

Outcome = Literal["succeeded", "failed", "pending"]


def refusal_result(error: DenizenError) -> str:
    """The result of a call that is refused because of this error."""
    return json.dumps({"success": False, "error": error.code, "message": str(error)}, ensure_ascii=False)


def has_failed(tool: str, told: str) -> bool:
    """Whether a call with this result was refused, or failed while the tool ran."""
    return told.startswith((REFUSED, f"{tool} failed: "))


def is_error(tool: str, told: str) -> bool:
    """Whether this result is an error to reflect on: also one of a background call, or of a tool that is too slow."""
    return told.startswith((REFUSED, f"{tool} failed:", "Failed:", f"{tool} has not answered within"))


def outcome_of(tool: str, told: str) -> Outcome:
    """The outcome of a call, by its result; a call with an unknown outcome has not succeeded."""
    if has_failed(tool, told) or told.startswith(_NOT_DONE):
        return "failed"
    return "pending" if told.startswith((*_NOT_YET, f"{tool} has not answered within ")) else "succeeded"
