"""What an agent is; its activation and living loop."""
