"""The HTTP API: REST and server-sent events over one runtime."""
