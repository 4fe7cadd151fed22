"""The built-in demo model: deterministic, without network or key. It reads its real prompt and uses its real tools."""
