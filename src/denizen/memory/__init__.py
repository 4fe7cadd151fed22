"""Rolling memory of conversations, and long-term memory beyond them: scopes, policy, retrieval."""
