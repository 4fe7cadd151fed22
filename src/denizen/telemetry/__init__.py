"""What Denizen tells those who run it: logs, metrics, traces. Never what people and agents say to each other."""
