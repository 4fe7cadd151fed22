"""Edits, deletions and forgetting: agents are told of edited and deleted messages; forgotten ones are removed
everywhere.
"""
