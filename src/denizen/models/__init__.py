"""Language models: asking them, what they cost, and the scripted one for tests."""
