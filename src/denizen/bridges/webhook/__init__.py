"""The webhook bridge: signed JSON in and out, for any service that a small program can reach."""
