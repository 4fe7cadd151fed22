"""The command `denizen`, also as `python -m denizen`."""

from __future__ import annotations

import signal


def main() -> None:
    """Runs the command. Interrupted while its modules are loaded, it ends without a word, as it does later."""
    # Whoever starts a command in the background lets it ignore Ctrl-C: then that stays so.
    heeds_interrupts = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if heeds_interrupts:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from denizen.cli.main import main as run

    if heeds_interrupts:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


if __name__ == "__main__":
    main()
