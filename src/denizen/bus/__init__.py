"""Wake-ups and live streams between processes: hints, each of which may be lost."""
