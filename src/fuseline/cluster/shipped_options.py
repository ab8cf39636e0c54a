"""Arguments of a compile that name files, as other machines can use them: the files go along by content."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from fuseline.cache.folder import SHIPPED, private_folder
from fuseline.cluster.jobs import NotPreparedError
from fuseline.cluster.shipment import Shipment, shipment, target_shipment
from fuseline.cluster.shipped_files import place_of
from fuseline.tuning.records import export_records

_BUILTIN = ("cpu", "null", "interpreter", "iree")


class ShippedOptions(msgspec.Struct, frozen=True):
    """Arguments of `fuseline.compile` without those that name files, and the shipments behind these: `plan`, `tuned`
    records, `rules`, and the `target` with the text before its path and behind it."""

    plain: dict[str, Any]
    plan: Shipment | None = None
    tuned: Shipment | None = None
    rules: tuple[Shipment, ...] = ()
    target: tuple[str, Shipment, str] | None = None

    def shipments(self) -> Iterator[Shipment]:
        """All that has to be sent."""
        yield from () if self.plan is None else (self.plan,)
        yield from () if self.tuned is None else (self.tuned,)
        yield from self.rules
        yield from () if self.target is None else (self.target[1],)

    def here(self) -> dict[str, Any]:
        """The arguments with the paths that the files have on this machine. Raises NotPreparedError where one is
        missing."""
        options = dict(self.plain)
        if self.plan is not None:
            options["plan"] = here(self.plan)
        if self.tuned is not None:
            options["tuned"] = here(self.tuned)
        if self.rules:
            options["rules"] = [here(rule) for rule in self.rules]
        if self.target is not None:
            before, sent, behind = self.target
            options["target"] = f"{before}{here(sent)}{behind}"
        return options


def here(sent: Shipment) -> str:
    """The path of a shipment on this machine. Raises NotPreparedError where it is missing."""
    found = place_of(sent)
    if found is None:
        raise NotPreparedError(sent.main)
    return str(found)


def shipped_options(options: Mapping[str, Any]) -> ShippedOptions:
    """The arguments `options` with the files that they name. Raises E0101 for a file that is not there."""
    plain = {name: value for name, value in options.items() if name not in ("plan", "rules", "tuned")}
    plan = options.get("plan")
    target = _target(str(options.get("target", "cpu")))
    if target is not None:
        del plain["target"]
    return ShippedOptions(
        plain=plain,
        plan=None if plan is None else shipment(Path(plan)),
        tuned=_records(options.get("tuned")),
        rules=tuple(shipment(Path(rule)) for rule in options.get("rules") or ()),
        target=target,
    )


def _records(tuned: Any) -> Shipment | None:
    """The file of tuning records, or this user's own as one: those of a worker's user are others."""
    if not tuned:
        return None
    if tuned is not True:
        return shipment(Path(tuned))
    file = private_folder(SHIPPED) / f"records-{os.getpid()}.json"
    export_records(file)
    return shipment(file)


def _target(name: str) -> tuple[str, Shipment, str] | None:
    """The parts of a target that is named by a path; None for others."""
    from fuseline.targets.outside.loading import is_path
    from fuseline.targets.outside.named import split_name

    family, _, variant = name.partition(":")
    if family in _BUILTIN:
        is_file = variant.endswith(".toml")
        return (f"{family}:", target_shipment(Path(variant)), "") if is_file else None
    if not is_path(name):
        return None
    path, variant = split_name(name)
    return "", target_shipment(Path(path)), f":{variant}" if variant else ""
