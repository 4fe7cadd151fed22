"""Logs, metrics and traces for operators. They never include what people and agents say, unless that is switched on."""
