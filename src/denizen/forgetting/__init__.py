"""Taking back what was said: edited and deleted messages are told to agents, forgotten ones are gone everywhere."""
