"""Changes by people to an agent's stance in one conversation: settings, state of mind, metaprompt."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

from pydantic import JsonValue

from denizen.access.requesters import Requester, find_agent
from denizen.agents import registry
from denizen.agents.prompt_config import PromptConfig
from denizen.consciousness import privacy
from denizen.errors import InvalidInput, NotFound
from denizen.ids import AgentId, SpaceId
from denizen.profiles.settings import NAME_CHARACTERS
from denizen.reflection import configuration, records
from denizen.reflection.settings import Metaprompt, ReflectionSettings
from denizen.reflection.stance_store import AGENTS, Stance
from denizen.reflection.state import Adjustment
from denizen.storage.database import Tx, storable

if TYPE_CHECKING:
    from denizen.reflection.thinking import Reflector

SETTINGS: Final = ("preset", "mode", "reflection")
"""The agent's settings that a conversation can override."""


def find(tx: Tx, by: Requester, named: str, space_id: str) -> tuple[AgentId, SpaceId]:
    """The agent and the conversation, if the agent is in it and the requester may read what it knows there. For
    admins.
    """
    by.require("admin")
    agent_id, wanted = find_agent(tx, by, named, also_dead=True), SpaceId(storable(space_id))
    records.require_there(tx, agent_id, wanted)
    if by.is_limited and privacy.reader(tx, agent_id, by.entity_id).hides_space(wanted):
        raise NotFound("conversation", space_id)
    return agent_id, wanted


def set_state(tx: Tx, by: Requester, named: str, space_id: str, wanted: Adjustment) -> Stance:
    """Set the agent's state of mind in the conversation; values that are not given stay."""
    return records.set_state(tx, *find(tx, by, named, space_id), wanted, by=by.optional_entity_id)


def reset(tx: Tx, by: Requester, named: str, space_id: str) -> Stance:
    """Clear imprints, counters and the state of mind. The history stays."""
    return records.reset(tx, *find(tx, by, named, space_id), by=by.optional_entity_id)


def set_settings(
    tx: Tx, by: Requester, named: str, conversation_id: str, given: Mapping[str, JsonValue], prompt_config: PromptConfig
) -> Stance:
    """Override the agent's settings in the conversation; without any given, the agent's own apply."""
    agent_id, space_id = find(tx, by, named, conversation_id)
    agent = registry.get(tx, agent_id)
    kept = {name: value for name, value in given.items() if value not in (None, "", {})}
    reflection = check_settings(kept, agent.definition.reflection)
    presets = prompt_config.presets_of(tx, agent.entity.organization_id)
    if presets is not None and "preset" in kept:
        _require_known(str(kept["preset"]), presets.presets, "preset")
    if "reflection" in kept:
        configuration.require_known(reflection, prompt_config.configuration())
    records.set_overrides(tx, agent_id, space_id, kept, reflects=agent.definition.reflection.is_on)
    return AGENTS.stance(tx, agent_id, space_id)


def check_settings(given: Mapping[str, JsonValue], own: ReflectionSettings) -> ReflectionSettings:
    """The agent's reflection settings with the overrides of a conversation. Raises `InvalidInput` for bad ones."""
    for name, value in given.items():
        if name not in SETTINGS:
            raise InvalidInput(f"Unknown conversation setting {name!r}. There are: {', '.join(SETTINGS)}.")
        if name != "reflection" and (not isinstance(value, str) or len(value) > NAME_CHARACTERS):
            raise InvalidInput(f"{name}: write a text of up to {NAME_CHARACTERS} characters.")
    changes = given.get("reflection", {})
    if not isinstance(changes, dict):
        raise InvalidInput('reflection: write the settings to change, such as { "profile": "basic" }.')
    return configuration.merged(own, changes)


def find_metaprompt(id: str, reflector: Reflector, stance: Stance) -> Metaprompt:
    """The metaprompt with that id: the conversation's or the agent's own, otherwise that of the configuration."""
    own = configuration.merged(reflector.settings, stance.overrides.get("reflection"))
    return configuration.find(own, reflector.configuration, id)


def _require_known(name: str, known: Collection[str], what: str) -> None:
    if name not in known:
        raise InvalidInput(f"There is no {what} {name!r}. There is: {', '.join(known) or 'none'}.")
