"""`python -m denizen` is the command `denizen`."""

from __future__ import annotations

from denizen.cli.main import main

if __name__ == "__main__":
    main()
