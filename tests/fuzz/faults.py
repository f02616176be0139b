"""Calls through a server of which a share of the answers is trouble: the same table as without."""

import asyncio
import random
import threading
from collections import Counter
from pathlib import Path

from fuzz import Broken
from fuzz.data import all_of, judge_at
from fuzz.mock import KINDS, Faults, answer
from server import Provider
from weft import api
from weft.calls.caller import RetryPolicy

QUICK = RetryPolicy(tries=12, rate_limit_tries=12, base=0.001, cap=0.01)
SHARE = 0.3


def attack(chance: random.Random, count: int, folder: Path) -> Counter[str]:
    done: Counter[str] = Counter()
    found = all_of(folder / "faults", max(2, count // 14), chance.randrange(10**6))
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    made: set[str] = set()
    for name, (_, data) in found.items():
        tables: list[str] = []
        for share in (0.0, SHARE):
            faults = Faults(share, chance.randrange(10**6))
            provider = Provider(answer=answer, fault=faults, keep=False)
            asyncio.run_coroutine_threadsafe(provider.start(), loop).result(10)
            run = api.evaluate(
                name,
                data=data,
                model=f"openai-chat/model@{provider.url}",
                judge=judge_at(provider.url, name),
                home=folder / "faults" / f"{name}-{share}",
                retry_policy=QUICK,
            )
            lost = [verdict.reason for verdict in run.verdicts if verdict.value is None]
            if lost:
                raise Broken(f"{name}: {len(lost)} verdicts are unscored: {lost[0]}")
            tables.append("\n".join(run.report("csv").splitlines()))
            done[f"{name}: {'calls with faults among them' if share else 'calls without'}"] = provider.count
            done[f"{name}: faults"] += sum(faults.made.values())
            made |= set(faults.made)
            asyncio.run_coroutine_threadsafe(provider.stop(), loop).result(10)
        if _numbers(tables[0]) != _numbers(tables[1]):
            raise Broken(f"{name}: faults changed the table")
    if count >= 1000 and made != set(KINDS):
        raise Broken(f"kinds of faults that never came: {set(KINDS) - made}")
    done["kinds of faults"] = len(made)
    return done


def _numbers(table: str) -> list[str]:
    """All but the run's name, which has the server's address in it."""
    return [",".join(line.split(",")[2:]) for line in table.splitlines()]
