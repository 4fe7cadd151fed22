"""The Matrix bridge: an application service of a homeserver, over plain HTTP."""
