"""The Python API of a runtime by subject, and its wiring."""
