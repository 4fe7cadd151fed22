"""Language models: requests to them, their prices, and the scripted one for tests."""
