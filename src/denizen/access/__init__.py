"""Who may come in: access tokens."""
