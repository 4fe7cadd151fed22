"""Metadata of conversations, as clients get it with an answer and in `metadata.update`."""

from __future__ import annotations

from denizen.bus.streams import MetadataUpdated
from denizen.ids import AgentId
from denizen.memory import reminding, rolling, stored_policies
from denizen.reflection.stance_store import AGENTS, Stance
from denizen.server.shapes.memory import conversation_memory_out
from denizen.shapes.events import MetadataUpdate
from denizen.shapes.memory import RetrievalOut
from denizen.shapes.stances import PromptProfileOut
from denizen.storage.database import Tx


def metadata_update(tx: Tx, frame: MetadataUpdated) -> MetadataUpdate:
    """Returns what has changed in the conversation, as it is now."""
    space_id = frame.space
    if frame.agent is None or frame.cycle is None:
        memory = conversation_memory_out(rolling.find(tx, space_id), stored_policies.policy_of(tx, space_id))
        return MetadataUpdate(space=space_id, rolling_memory=memory)
    stance = AGENTS.stance(tx, frame.agent, space_id)
    return MetadataUpdate(
        space=space_id,
        agent=frame.agent,
        prompt_profile=prompt_profile_out(stance) if stance.preset_reason else None,
        long_term_memory=retrieval_out(tx, frame.agent, frame.cycle),
    )


def prompt_profile_out(stance: Stance) -> PromptProfileOut:
    return PromptProfileOut(id=stance.preset, reason=stance.preset_reason)


def retrieval_out(tx: Tx, agent_id: AgentId, cycle_id: str) -> RetrievalOut | None:
    """Returns the recall of memories in a cycle; None if there was none."""
    found = reminding.retrieval_of(tx, agent_id, cycle_id)
    return None if found is None else RetrievalOut.model_validate(found)
