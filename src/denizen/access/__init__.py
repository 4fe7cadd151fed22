"""Access control: tokens, roles, identities, secrets, webhooks and the audit log."""
