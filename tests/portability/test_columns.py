"""No column is left out of exported files by accident: each is a field of a line, or is named here with the reason."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from denizen.portability import lines
from denizen.storage.schema import metadata

IMPLIED = {"agent_id", "space_id", "cycle_id", "organization_id", "number"}
"""Keys that follow from the file and the place of the line in it, or that are assigned anew by an import."""

TABLES: dict[str, tuple[type[BaseModel], set[str]]] = {
    "toolsets": (lines.ToolsetLine, set()),
    "selves": (lines.SelfLine, set()),
    # Only cycles that have ended are exported: nothing is left to try.
    "cycles": (lines.CycleLine, {"id", "attempts", "interruptions", "not_before", "handed_back", "digest"}),
    "cycle_spaces": (lines.CycleSpaceLine, set()),
    "log": (lines.EntryLine, {"salt", "digest"}),  # an import begins new chains of digests
    "effects": (lines.EffectLine, {"rule"}),  # of the policy of the organization that the file comes from
    "overflow": (lines.LongTextLine, set()),
    # Only events that are done are exported: nobody waits for them. `said` has the message.
    "events": (lines.EventLine, {"state", "waits", "interruptions", "not_before", "message_id"}),
    "layers": (lines.LayerLine, set()),
    "goals": (lines.GoalLine, set()),
    "notes": (lines.NoteLine, set()),
    "plans": (lines.PlanLine, set()),
    "passages": (lines.PassageLine, set()),
    "stances": (lines.StanceLine, set()),
    "feelings": (lines.FeelingLine, set()),
    "signals": (lines.SignalLine, set()),
    "reflections": (lines.ReflectionLine, set()),
    "memories": (lines.MemoryLine, {"owner", "hash", "length"}),  # computed from the others
    "memory_changes": (lines.MemoryChangeLine, {"memory"}),  # each is in the line of its memory
    # Counted and dated by the import; nobody elsewhere reads an imported space until somebody connects it.
    "spaces": (lines.SpaceLine, {"last_seq", "agent_run", "created_at", "head", "bridged"}),
    "entities": (lines.EntityLine, {"metadata", "left_at", "created_at"}),  # people are found there, or made anew
    # Files are lines of their own; no reader has seen the marks before, and the rest is digested anew.
    "messages": (lines.MessageLine, {"files", "marked_at", "salt", "digest"}),
    "files": (lines.FileLine, {"content_id", "uploader_id"}),  # the author of the message, or the agent
    "file_pages": (lines.FilePageLine, {"content_id"}),
    "memory_policies": (lines.PolicyLine, set()),
    "rollings": (lines.RollingLine, {"tried_at", "failures"}),  # the next pass begins with a clean slate
    "panels": (lines.PanelLine, set()),
    "advisors": (lines.AdvisorLine, set()),
    "rounds": (lines.RoundLine, {"state"}),  # only those that have ended are exported
    # Leases and reservations of replies that were under way.
    "replies": (lines.ReplyPart, {"round_id", "holder", "epoch", "until", "reserved_micros", "reserved_tokens"}),
    "voice_stances": (lines.VoiceStanceLine, {"mind_line"}),  # told anew
    "voice_feelings": (lines.VoiceFeelingLine, set()),
    "voice_signals": (lines.VoiceSignalLine, set()),
    "voice_reflections": (lines.VoiceReflectionLine, set()),
    # `cycles` of the line is the count; an import begins a new era and has told the agent nothing yet.
    "minds": (lines.AgentLine, {"cycle_count", "era_version", "news", "news_told", "told", "head"}),
}


@pytest.mark.parametrize("name", TABLES)
def test_every_column_is_exported_or_left_out_for_a_reason(name: str) -> None:
    line, left_out = TABLES[name]
    columns = {column.name for column in metadata.tables[name].columns}
    assert columns - line.model_fields.keys() - IMPLIED == left_out
