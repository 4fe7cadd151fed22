"""Wake-ups and live streams: hints between processes, every one of which may be lost."""
