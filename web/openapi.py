"""Prints the description of the HTTP API as JSON, from which the types of the web client are made (`make schema`)."""

from __future__ import annotations

import json
import sys

from denizen.app import Runtime
from denizen.server.application import create_app

json.dump(create_app(Runtime()).openapi(), sys.stdout, ensure_ascii=False, indent=1, sort_keys=True)
