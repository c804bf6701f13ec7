"""Sampling and shards are decided by the trace id alone."""

from __future__ import annotations

import hashlib
from itertools import pairwise

import pytest

from citespan.evaluators.errors import UsageError
from citespan.evaluators.periodic.sampling import Sampling, Shard

IDS = [hashlib.md5(str(n).encode()).hexdigest() for n in range(4000)]


def test_a_lower_rate_takes_a_subset_of_a_higher_one() -> None:
    taken = [{i for i in IDS if Sampling(rate).holds(i)} for rate in (0.0, 0.01, 0.1, 0.5, 1.0)]
    assert all(lower <= higher for lower, higher in pairwise(taken))
    assert taken[0] == set()
    assert taken[-1] == set(IDS)


def test_a_rate_takes_its_share() -> None:
    # 4000 ids at 0.1: 400 expected, standard deviation 19; four of them either way.
    assert 324 <= sum(Sampling(0.1).holds(i) for i in IDS) <= 476


def test_a_trace_is_placed_by_the_sha256_of_its_id() -> None:
    # sha256("00") = f1534392279b...: f1/ff = 0.94 of the way up.
    assert hashlib.sha256(b"00").hexdigest()[:4] == "f153"
    assert Sampling(0.95).holds("00")
    assert not Sampling(0.94).holds("00")


def test_every_trace_is_in_exactly_one_shard() -> None:
    shards = [Shard.parse(f"{i}/3") for i in (1, 2, 3)]
    assert all(sum(shard.holds(i) for shard in shards) == 1 for i in IDS)
    # 4000 / 3 = 1333, standard deviation 30.
    assert all(1213 <= sum(shard.holds(i) for i in IDS) <= 1453 for shard in shards)


def test_shards_divide_what_is_sampled_evenly() -> None:
    sampled = [i for i in IDS if Sampling(0.5).holds(i)]
    half = sum(Shard.parse("1/2").holds(i) for i in sampled)
    assert 0.44 < half / len(sampled) < 0.56


def test_counting_shards_from_zero_works_too() -> None:
    assert Shard.parse("0/3") == Shard.parse("3/3")
    assert str(Shard.parse("0/3")) == "3/3"


@pytest.mark.parametrize("text", ["", "1", "4/3", "1/0", "-1/3", "a/b", "1/2/3"])
def test_a_shard_that_is_none_says_what_is_expected(text: str) -> None:
    with pytest.raises(UsageError, match="expected i/n"):
        Shard.parse(text)
