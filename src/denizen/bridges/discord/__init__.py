"""The Discord bridge: a bot, over the gateway and the REST API."""
