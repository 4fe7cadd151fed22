"""Metrics of one process, in Prometheus's text format. A registry is an object; there are no globals.

Used on one event loop, so nothing is locked. Labels come from small sets: a family that has reached its limit of rows
counts new ones as `other`, so that no input can make it grow.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
MOST_ROWS: Final = 500
"""The most combinations of labels in one family."""
OTHER: Final = "other"

_MOMENTS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_WHILES: Final = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0)
_TOKENS: Final = (1_000.0, 2_000.0, 5_000.0, 10_000.0, 20_000.0, 50_000.0, 100_000.0, 200_000.0, 500_000.0)

Labels = tuple[str, ...]


class Family:
    """All rows of one metric."""

    kind = "untyped"

    def __init__(self, name: str, about: str, *labels: str) -> None:
        self.name = name
        self.about = about
        self.labels = labels
        self.values: dict[Labels, float] = {}

    def samples(self) -> Iterator[str]:
        """Yields its lines, without the description."""
        for labels, value in self.values.items():
            yield f"{self.name}{_braced(self.labels, labels)} {_number(value)}"

    def _others(self) -> Labels:
        return (OTHER,) * len(self.labels)


class Counter(Family):
    """Only grows, from the start of the process."""

    kind = "counter"

    def __init__(self, name: str, about: str, *labels: str) -> None:
        super().__init__(name, about, *labels)
        if not labels:
            self.values[()] = 0

    def add(self, amount: float, *labels: str) -> None:
        if labels not in self.values:
            if len(self.values) >= MOST_ROWS:
                labels = self._others()
            self.values.setdefault(labels, 0)
        self.values[labels] += amount

    def reach(self, total: float) -> None:
        """Raises the counter to this total, which was counted elsewhere."""
        self.values[()] = total


class Gauge(Family):
    """A present value: set whenever the metrics are read."""

    kind = "gauge"

    def set(self, value: float, *labels: str) -> None:
        self.values[labels] = value

    def change(self, amount: float) -> None:
        """Adds this amount, which may be negative."""
        self.values[()] = self.values.get((), 0) + amount

    def clear(self) -> None:
        """Removes the value: it is not shown."""
        self.values.clear()


class Histogram(Family):
    """Counts values by size."""

    kind = "histogram"

    def __init__(self, name: str, about: str, *labels: str, bounds: tuple[float, ...]) -> None:
        super().__init__(name, about, *labels)
        self._bounds = bounds
        self._rows: dict[Labels, tuple[list[int], list[float]]] = {}
        if not labels:
            self._row(())

    def observe(self, value: float, *labels: str) -> None:
        counts, total = self._rows.get(labels) or self._row(labels)
        counts[bisect_left(self._bounds, value)] += 1
        total[0] += value

    def _row(self, labels: Labels) -> tuple[list[int], list[float]]:
        if len(self._rows) >= MOST_ROWS:
            labels = self._others()
        return self._rows.setdefault(labels, ([0] * (len(self._bounds) + 1), [0.0]))

    def samples(self) -> Iterator[str]:
        for labels, (counts, total) in self._rows.items():
            below = 0
            for bound, count in zip((*self._bounds, float("inf")), counts, strict=True):
                below += count
                where = _braced((*self.labels, "le"), (*labels, _number(bound)))
                yield f"{self.name}_bucket{where} {below}"
            braced = _braced(self.labels, labels)
            yield f"{self.name}_sum{braced} {_number(total[0])}"
            yield f"{self.name}_count{braced} {below}"


class Metrics:
    """All metrics of one process."""

    def __init__(self) -> None:
        self.cycles = Counter("denizen_cycles_total", "Think cycles that came to an end here, by outcome.", "outcome")
        self.stops = Counter("denizen_cycle_stops_total", "Cycles that acted, by why they stopped.", "reason")
        self.skips = Counter("denizen_skips_total", "Times that events were skipped, by what decided it.", "by")
        self.steps = Counter("denizen_steps_total", "Answers of models in cycles.", "model")
        self.model_errors = Counter(
            "denizen_model_errors_total", "Requests to models that failed, those tried again too.", "model", "error"
        )
        self.tokens = Counter("denizen_tokens_total", "Tokens of model calls.", "model", "kind")
        self.cost = Counter("denizen_cost_dollars_total", "What model calls cost, where the price is known.", "model")
        self.tool_calls = Counter("denizen_tool_calls_total", "Calls of tools.", "kind", "outcome")
        self.compactions = Counter("denizen_compactions_total", "Compactions of windows.", "outcome")
        self.posts = Counter("denizen_posts_total", "Messages said in spaces by way of this process.")
        self.http_requests = Counter(
            "denizen_http_requests_total", "HTTP requests answered.", "method", "route", "status"
        )
        self.wake_seconds = Histogram(
            "denizen_wake_seconds", "From an event's arrival to the begin of the cycle that it woke.", bounds=_MOMENTS
        )
        self.cycle_seconds = Histogram("denizen_cycle_seconds", "How long cycles took.", bounds=_WHILES)
        self.first_chunk_seconds = Histogram(
            "denizen_first_chunk_seconds", "From a request to a model to the first of its answer.", bounds=_MOMENTS
        )
        self.tool_seconds = Histogram("denizen_tool_seconds", "How long calls of tools took.", "kind", bounds=_WHILES)
        self.window_tokens = Histogram(
            "denizen_window_tokens", "The estimated size of the window at the end of a cycle.", bounds=_TOKENS
        )
        self.http_seconds = Histogram(
            "denizen_http_request_seconds", "How long HTTP requests took, streams apart.", "route", bounds=_MOMENTS
        )
        self.build = Gauge("denizen_build_info", "1, with the version as label.", "version")
        self.cached_share = Gauge("denizen_cached_share", "The share of input tokens that providers had cached.")
        self.awake = Gauge("denizen_agents_awake", "Agents that are awake in this process.")
        self.readers = Gauge("denizen_stream_readers", "Open streams of server-sent events.")
        self.database_up = Gauge("denizen_database_up", "1 if the database answered, else 0.")
        self.commits = Counter("denizen_database_commits_total", "Transactions that this process committed.")
        self.events = Gauge("denizen_events", "Events that are not done, by state.", "state")
        self.calls_waiting = Gauge("denizen_calls_waiting", "Tool calls that wait for an answer.")
        self.oldest_unanswered = Gauge(
            "denizen_oldest_unanswered_seconds",
            "For how long the person has waited who has waited longest for an agent that is not suspended; 0: nobody.",
        )
        self.parked = Gauge("denizen_agents_parked", "Agents that cannot think until something changes.", "cause")
        self.readers.set(0)

    def families(self) -> list[Family]:
        """All families, in the order in which they are shown."""
        return [each for each in vars(self).values() if isinstance(each, Family)]

    def exposition(self) -> str:
        """Renders all metrics as text."""
        self.cached_share.set(self._cached_share())
        lines: list[str] = []
        for family in self.families():
            lines.append(f"# HELP {family.name} {family.about}")
            lines.append(f"# TYPE {family.name} {family.kind}")
            lines.extend(family.samples())
        return "\n".join(lines) + "\n"

    def _cached_share(self) -> float:
        read = sum(value for (_, kind), value in self.tokens.values.items() if kind == "cache_read")
        whole = sum(value for (_, kind), value in self.tokens.values.items() if kind == "input")
        return read / whole if whole else 0.0


def _braced(names: Labels, values: Labels) -> str:
    if not names:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True)) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(value)
