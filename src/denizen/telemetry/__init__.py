"""What Denizen tells those who run it: logs."""
