"""The Slack bridge: an app in socket mode, over the Web API."""
