"""The prompt profiles of an organization as its people read, change, try and reset them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from denizen.access import audit
from denizen.access.requesters import Requester
from denizen.agents.prompt_config import PromptConfig
from denizen.errors import InvalidInput, SettingsError
from denizen.ids import OrganizationId
from denizen.memory import settings as memory_settings
from denizen.profiles import organization_presets, presets
from denizen.profiles.organization_presets import DOCUMENT_CHARACTERS
from denizen.profiles.presets import Presets
from denizen.shapes.vocabulary import PresetSource
from denizen.storage.database import Tx

SECTIONS: Final = ("version", "routing", "presets", "rules", "addonPrompts", "memoryCompaction")
"""The sections of a presets file that an organization can set for itself."""
SERVER_ONLY: Final = ("sentimentTracking", "metaPrompts", "longTermMemory")
"""The sections that only the server's file sets."""
_OFF: Final = "Prompt profiles are off in this runtime. Start it with `presets=`."


@dataclass(frozen=True, slots=True)
class PresetsDocument:
    """The presets that apply in an organization, in the format of a presets file."""

    source: PresetSource
    document: Mapping[str, JsonValue]
    addons: Mapping[str, str]
    """The texts of all add-ons that presets can use."""
    warnings: tuple[str, ...] = ()


def get(tx: Tx, organization_id: OrganizationId, config: PromptConfig) -> PresetsDocument:
    """Returns the organization's own presets, otherwise the server's."""
    own = config.organizations.document(tx, organization_id)
    if own is None:
        server = config.library.file()
        document = {name: server[name] for name in SECTIONS if name in server}
        return PresetsDocument(config.library.source, document, config.library.addons())
    return PresetsDocument("organization", own, config.library.addons(), _warnings(own, config))


def change(
    tx: Tx,
    by: Requester,
    organization_id: OrganizationId,
    document: Mapping[str, JsonValue],
    config: PromptConfig,
) -> PresetsDocument:
    """Stores presets of the organization's own, in the format of a presets file. They apply from the next turn of each
    conversation on. Raises `InvalidInput` with everything that is wrong in them, and `NotAllowed` unless the
    requester is an owner.
    """
    _require_owner(by, organization_id)
    if config.presets() is None:
        raise InvalidInput(_OFF)
    check(document, config)
    organization_presets.store(tx, organization_id, document)
    audit.record(tx, organization_id, by.actor, "change_presets", sections=[*sorted(document)])
    return get(tx, organization_id, config)


def reset(tx: Tx, by: Requester, organization_id: OrganizationId, config: PromptConfig) -> PresetsDocument:
    """Removes the organization's own presets, so that the server's apply, and returns those. For owners."""
    _require_owner(by, organization_id)
    if organization_presets.store(tx, organization_id, None):
        audit.record(tx, organization_id, by.actor, "reset_presets")
    return get(tx, organization_id, config)


def _require_owner(by: Requester, organization_id: OrganizationId) -> None:
    by.require("owner")
    by.require_organization(organization_id)


def check(document: Mapping[str, JsonValue], config: PromptConfig) -> Presets:
    """Parses the document. Raises `InvalidInput` with everything that is wrong in it."""
    if len(json.dumps(document, ensure_ascii=False)) > DOCUMENT_CHARACTERS:
        raise InvalidInput(f"These presets have more than {DOCUMENT_CHARACTERS:,} characters. Shorten the add-ons.")
    found = presets.read(document, config.library.find_addon)
    if found is None or not found.presets:
        raise InvalidInput("Invalid presets. presets: list at least one preset.")
    try:
        profiles = memory_settings.read(document).compaction.profiles
    except SettingsError as error:
        raise InvalidInput(f"Invalid presets. {error}") from error
    for name, profile in profiles.items():
        try:
            config.check_model(profile.model)
        except InvalidInput as error:
            raise InvalidInput(f"Invalid presets. memoryCompaction.profiles.{name}.modelId: {error}") from error
    return found


def _warnings(document: Mapping[str, JsonValue], config: PromptConfig) -> tuple[str, ...]:
    ignored = (f"{name} is ignored: only the server's file sets it." for name in SERVER_ONLY if name in document)
    try:
        found = check(document, config)
    except InvalidInput as error:  # An add-on file that it uses may be gone.
        return (str(error), *ignored)
    return (*found.warnings, *memory_settings.read(document).warnings, *ignored)
