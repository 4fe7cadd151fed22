"""The Telegram bridge: a bot, over the Bot API."""
