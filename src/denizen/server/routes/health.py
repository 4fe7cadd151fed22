"""Whether the server answers."""

from __future__ import annotations

from fastapi import APIRouter

from denizen import __version__
from denizen.server.schemas import Health

router = APIRouter()


@router.get("/healthz", summary="Whether the server answers; no token needed")
async def health() -> Health:
    return Health(version=__version__)
