"""A tool in Python: a typed function whose docstring is what the model reads."""

from __future__ import annotations

import os
import urllib.error
import urllib.request

from denizen import tool

DENIZEN_ITSELF = "http://127.0.0.1:8420/healthz"


@tool(on_crash="retry", seconds=15)
def check_server() -> str:
    """Ask the server whether it is well. Answers "well", or what is wrong with it."""
    url = os.environ.get("WATCHED_URL", DENIZEN_ITSELF)
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310  its owner names the address
            return "well" if answer.status == 200 else f"status {answer.status}"
    except urllib.error.HTTPError as error:
        with error:
            return f"status {error.code} {error.reason}"
    except OSError as error:
        return f"no answer: {getattr(error, 'reason', error)}"
