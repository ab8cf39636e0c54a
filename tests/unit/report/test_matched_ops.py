"""Ops are matched by ids, names and structure, whatever was renamed or put between them."""

from __future__ import annotations

import random

from fuseline.report.difference import difference
from fuseline.report.matched_ops import matched_ops
from fuseline.report.records import CompileRecord, Decision, DispatchRecord, FusionNodeRecord, MemberRecord

CHAIN = ("convolution", "elementwise", "pooling", "contraction", "elementwise", "reduction", "contraction")


def _chain(kinds: tuple[str, ...], prefix: str, names: str = "", *, sized: bool = True) -> CompileRecord:
    """Dispatches of one op each, each reading the one before; ids and names begin with what is given."""
    ids = [f"{kind}.{prefix}{at}" for at, kind in enumerate(kinds)]
    nodes = [(f"{names}{at}",) if names else () for at in range(len(kinds))]
    loops = [(str(8 + len(kind)),) for kind in kinds]
    members = [MemberRecord(id=i, kind=k, role="root", nodes=n) for i, k, n in zip(ids, kinds, nodes, strict=True)]
    edges = [
        Decision(rule="r", verdict="missed", producer=a, consumer=b, producer_op=j, consumer_op=k, code="scratch")
        for (a, j), (b, k) in zip(
            list(zip(ids, kinds, strict=True)), list(zip(ids, kinds, strict=True))[1:], strict=False
        )
    ]
    return CompileRecord(
        dispatches=[DispatchRecord(name=m.id, executable=m.id, root=m.kind, members=[m]) for m in members],
        decisions=edges,
        fusion_nodes={i: FusionNodeRecord(kind=k, loops=x) for i, k, x in zip(ids, kinds, loops, strict=True)}
        if sized
        else {},
    )


def test_ids_come_first_then_names():
    assert matched_ops(_chain(CHAIN, "a"), _chain(CHAIN, "a")) == {f"a{at}": f"a{at}" for at in range(len(CHAIN))}
    named = matched_ops(_chain(CHAIN, "a", "/n/"), _chain(CHAIN, "b", "/n/"))
    assert named == {f"b{at}": f"a{at}" for at in range(len(CHAIN))}


def test_a_renamed_model_is_the_same_model():
    for sized in (True, False):
        found = matched_ops(_chain(CHAIN, "a", "/old/"), _chain(CHAIN, "b", "/new/", sized=sized))
        assert found == {f"b{at}": f"a{at}" for at in range(len(CHAIN))}
        assert difference(_chain(CHAIN, "a", "/old/"), _chain(CHAIN, "b", "/new/", sized=sized)).empty


def test_an_op_that_was_put_in_between_is_the_only_new_one():
    for at in range(1, len(CHAIN)):
        longer = (*CHAIN[:at], "gather", *CHAIN[at:])
        found = matched_ops(_chain(CHAIN, "a", "/old/"), _chain(longer, "b", "/new/"))
        expected = {f"b{i + (i >= at)}": f"a{i}" for i in range(len(CHAIN))}
        assert found == {**expected, f"b{at}": f"+b{at}"}
        told = difference(_chain(CHAIN, "a", "/old/"), _chain(longer, "b", "/new/"))
        assert told.appeared == [f"gather [/new/{at}]"] and not told.vanished and not told.changed


def test_graphs_of_one_fingerprint_are_matched_by_ids_alone():
    old, new = _chain(CHAIN, "a", "/n/"), _chain(CHAIN, "b", "/n/")
    old.fingerprint = new.fingerprint = "g"
    assert set(matched_ops(old, new).values()).isdisjoint(f"a{at}" for at in range(len(CHAIN)))


def test_many_ops_of_few_kinds():
    kinds = tuple(random.Random(5).choices(("elementwise", "contraction", "copy"), k=3000))
    found = matched_ops(_chain(kinds, "a"), _chain((*kinds[:1500], "gather", *kinds[1500:]), "b"))
    assert sum(key == f"a{int(id[1:]) - (int(id[1:]) > 1500)}" for id, key in found.items()) >= 2990
