"""The JSON of usage and budgets."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from denizen.cycles.accounting import Account, By, Group, Sums
from denizen.cycles.budgets import BudgetSettings
from denizen.shapes.usage import DayOut, GroupOut, Limits, UsageOut, UsedOut


def used_out(used: Sums) -> UsedOut:
    return UsedOut(**_fields(used))


def usage_out(account: Account, by: By) -> UsageOut:
    return UsageOut(
        since=account.first,
        until=account.first + timedelta(days=len(account.days) - 1),
        by=by,
        total=used_out(account.total),
        days=_days(account.first, account.days),
        groups=[_group(account.first, each) for each in account.groups],
        others=account.others,
    )


def _group(first: date, group: Group) -> GroupOut:
    return GroupOut(
        key=group.key, name=group.name, kind=group.kind, **_fields(group.total), days=_days(first, group.days)
    )


def _days(first: date, days: tuple[Sums, ...]) -> list[DayOut]:
    return [DayOut(day=first + timedelta(days=at), **_fields(each)) for at, each in enumerate(days)]


def _fields(used: Sums) -> dict[str, Any]:
    share = None if used.cached_share is None else round(used.cached_share, 4)
    return {
        "calls": used.calls,
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "cache_read_tokens": used.cache_read_tokens,
        "cache_write_tokens": used.cache_write_tokens,
        "cached_share": share,
        "dollars": used.cost_micros / 1_000_000,
        "unpriced_calls": used.unpriced_calls,
    }


def limits_out(budget: BudgetSettings | None) -> Limits:
    given = budget or BudgetSettings()
    return Limits(
        dollars_per_day=None if given.dollars_per_day is None else float(given.dollars_per_day),
        tokens_per_day=given.tokens_per_day,
        dollars=None if given.dollars is None else float(given.dollars),
        tokens=given.tokens,
    )
