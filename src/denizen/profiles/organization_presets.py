"""Presets of an organization's own: stored with its settings, they replace the server's for its agents and panels."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from denizen.errors import InvalidInput
from denizen.ids import OrganizationId, SpaceId
from denizen.profiles import presets
from denizen.profiles.library import Library
from denizen.profiles.presets import Presets
from denizen.spaces import organization_settings
from denizen.storage.database import Tx, select_where, value
from denizen.storage.schema import spaces
from denizen.telemetry.logs import get_logger

log_line = get_logger(__name__)

DOCUMENT_CHARACTERS: Final = 100_000
"""The longest document, as JSON."""
_KEY: Final = "presets"
"""Where the document is, beside the settings of the organization."""
_ORGANIZATIONS_KNOWN: Final = 1_000

_organization_of = select_where(spaces, "organization_id", "id")


def store(tx: Tx, organization_id: OrganizationId, document: Mapping[str, JsonValue] | None) -> bool:
    """Stores the organization's presets; with None, removes them. Returns whether it had some before."""
    stored = organization_settings.lock(tx, organization_id)
    had_some = stored.pop(_KEY, None) is not None
    if document is not None:
        stored[_KEY] = document
    organization_settings.store(tx, organization_id, stored)
    return had_some


@dataclass(frozen=True, slots=True)
class _CachedPresets:
    text: str
    """The settings of the organization as they are stored."""
    document: Mapping[str, JsonValue] | None
    base: Presets | None
    presets: Presets | None


class OrganizationPresets:
    """The presets of each organization, parsed again only when they change, here or in another process."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._known: OrderedDict[OrganizationId, _CachedPresets] = OrderedDict()

    def document(self, tx: Tx, organization_id: OrganizationId) -> Mapping[str, JsonValue] | None:
        """Returns the organization's own presets as they were stored; None if it uses the server's."""
        return self._current(tx, organization_id, self._library.current()).document

    def of(self, tx: Tx, organization_id: OrganizationId, base: Presets | None) -> Presets | None:
        """Returns the organization's presets; `base` if it has none of its own, or profiles are off here."""
        return None if base is None else self._current(tx, organization_id, base).presets

    def in_space(self, tx: Tx, space_id: SpaceId, base: Presets | None) -> Presets | None:
        """Returns the presets of the organization that has this space."""
        organization_id = None if base is None else value(tx, _organization_of, id=space_id)
        return base if organization_id is None else self.of(tx, organization_id, base)

    def _current(self, tx: Tx, organization_id: OrganizationId, base: Presets | None) -> _CachedPresets:
        text = organization_settings.read_text(tx, organization_id)
        known = self._known.get(organization_id)
        if known is None or known.text != text or known.base is not base:
            known = self._parsed(organization_id, text, base)
            self._known[organization_id] = known
            if len(self._known) > _ORGANIZATIONS_KNOWN:
                self._known.popitem(last=False)
        return known

    def _parsed(self, organization_id: OrganizationId, text: str, base: Presets | None) -> _CachedPresets:
        document: Mapping[str, JsonValue] | None = json.loads(text).get(_KEY)
        if document is None:
            return _CachedPresets(text, None, base, base)
        try:
            return _CachedPresets(text, document, base, presets.read(document, self._library.find_addon) or base)
        except InvalidInput as error:  # An add-on file that it uses may be gone.
            log_line.warning("presets of an organization are wrong", organization=organization_id, message=str(error))
            return _CachedPresets(text, document, base, base)
