"""A judge's name as people type it: `chat:gpt-4o-mini,seed=3`, `cascade:low=0.2,lexical,chat:gpt-4o-mini`.

A name may have an argument behind a colon; parts behind commas of the form `key=value` are options of the judge before
them. Only a cascade has further parts without `=`: the names of its judges, its own options before the first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from citespan.evaluators.errors import UsageError

__all__ = ["JudgeSpec", "parse_spec"]

_OPTION = re.compile(r"\s*([a-z][a-z0-9_]*)=(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class JudgeSpec:
    """What was asked for."""

    name: str
    """The judge's name in the registry."""

    argument: str = ""
    """What stands behind the colon: a model, a folder; empty without one."""

    options: Mapping[str, str] = field(default_factory=dict[str, str])
    """Options as text."""

    members: tuple[JudgeSpec, ...] = ()
    """The judges of a cascade, in order."""


def parse_spec(text: str) -> JudgeSpec:
    """Read a judge's name with its argument and options.

    Raises:
        UsageError: It is empty, or has a part that is neither an option nor a member of a cascade.
    """
    if not text.strip():
        raise UsageError("the judge's name is empty: give one such as lexical")
    name, _, rest = text.strip().partition(":")
    if name == "cascade":
        return _parse_cascade(rest)
    specs = _parse_list(text.strip())
    if len(specs) > 1:
        raise UsageError(
            f"{text!r}: {specs[1].name!r} is no option: options are written key=value, "
            f"and several judges as cascade:{specs[0].name},{specs[1].name}"
        )
    return specs[0]


def _parse_cascade(rest: str) -> JudgeSpec:
    own: dict[str, str] = {}
    parts = rest.split(",")
    while parts and (option := _OPTION.fullmatch(parts[0])) is not None:
        own[option[1]] = option[2].strip()
        del parts[0]
    members = _parse_list(",".join(parts)) if any(part.strip() for part in parts) else []
    return JudgeSpec("cascade", options=own, members=tuple(members))


def _parse_list(text: str) -> list[JudgeSpec]:
    found: list[tuple[str, dict[str, str]]] = []
    for part in text.split(","):
        option = _OPTION.fullmatch(part)
        if option is not None and found:
            found[-1][1][option[1]] = option[2].strip()
        elif part.strip():
            found.append((part.strip(), {}))
    specs: list[JudgeSpec] = []
    for head, options in found:
        name, _, argument = head.partition(":")
        specs.append(JudgeSpec(name.strip(), argument.strip(), options))
    return specs
