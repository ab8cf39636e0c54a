"""Candidates: valid models that compute what they computed, of fewer nodes; smaller sizes, plainer details."""

from __future__ import annotations

import numpy as np
import onnx

from fuseline.compile_options import CompileOptions
from fuseline.verify.reduce.candidate import Candidate, reads, rebuilt, weights_of
from fuseline.verify.reduce.details import fewer_attributes, plainer_numbers
from fuseline.verify.reduce.nodes import bypassed, fewer_nodes, fewer_outputs, frozen_inputs
from fuseline.verify.reduce.search import Reduction
from fuseline.verify.reduce.sizes import smaller_sizes
from fuseline.verify.reduce.values import constants_of, values_of
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

OPTIONS = CompileOptions(threads=1)
TEXT = """(float[4, 6] x, float[6] k) => (y, z) {
    s = Shape(w) t = Reshape(x, s) p = Relu(t) q = Mul(p, k) y = Softmax<axis = 1>(q)
    u = Abs(p) z = ReduceSum<keepdims = 0>(u)
}"""


def _candidate() -> Candidate:
    model = onnx_model(TEXT, w=np.ones((4, 6), np.float32))
    feeds = {"x": RNG.standard_normal((4, 6)).astype(np.float32), "k": RNG.standard_normal(6).astype(np.float32)}
    whole = Candidate(model, feeds)
    declared = rebuilt(whole, whole.nodes, ["y", "z"], values_of(whole, OPTIONS))
    assert declared is not None
    return declared


def test_candidates_of_fewer_nodes_are_valid_and_compute_what_they_did():
    whole = _candidate()
    values, constants = values_of(whole, OPTIONS), constants_of(whole.model)
    assert constants == {"w", "s"}
    seen = 0
    for simplify in (fewer_outputs, fewer_nodes, bypassed, frozen_inputs):
        for candidate in simplify(whole, values, constants):
            onnx.checker.check_model(candidate.model)
            assert not set(candidate.feeds) & constants  # what is constant stays so
            if simplify is not bypassed:
                again = values_of(candidate, OPTIONS)
                for name in (output.name for output in candidate.model.graph.output):
                    np.testing.assert_allclose(again[name], values[name], rtol=1e-6)
            seen += 1
    assert seen > 10


def test_sizes_shrink_wherever_they_stand():
    made = list(smaller_sizes(_candidate()))
    shapes = {tuple(sorted(one.feeds["x"].shape)) for one in made}
    assert {(1, 4), (2, 4), (3, 4), (4, 5), (1, 6), (2, 6), (3, 6)} <= shapes
    assert all(one.elements < _candidate().elements for one in made)
    for one in made:
        onnx.checker.check_model(one.model)
    same = [one for one in made if one.feeds["x"].shape == (4, 3) and one.feeds["k"].shape == (3,)]
    assert same and weights_of(same[0])["w"].shape == (4, 3)


def test_attributes_go_and_numbers_become_plain():
    whole = _candidate()
    assert [len(one.nodes[4].attribute) + len(one.nodes[6].attribute) for one in fewer_attributes(whole)] == [1, 1]
    made = list(plainer_numbers(whole))
    assert any((one.feeds["x"] == 1).all() for one in made)
    plain = Candidate(whole.model, {name: np.ones_like(array) for name, array in whole.feeds.items()})
    assert not list(plainer_numbers(plain))


def test_what_subgraphs_read_is_read():
    model = onnx_model(
        "(float[3] x, bool c) => (y) { a = Abs(x) y = If(c) <then_branch = g () => (t) { t = Exp(a) }, "
        "else_branch = g () => (e) { e = Neg(x) }> }"
    )
    assert {"c", "a", "x"} <= set(reads(model.graph.node[1]))


def test_the_search_keeps_what_shows_the_same_kind_of_thing():
    """A judge that wants a Mul of at least two columns: all else goes."""
    kept: list[tuple[int, int, int]] = []

    def shows(candidate: Candidate) -> tuple[str, str]:
        found = [node for node in candidate.nodes if node.op_type == "Mul"]
        wide = bool(found) and values_of(candidate, OPTIONS)[found[0].output[0]].shape[-1] >= 2
        return ("differs", "a product") if wide else ("", "")

    search = Reduction(OPTIONS, shows, lambda candidate, words: kept.append(candidate.size))
    smallest = search.run(_candidate())
    assert [node.op_type for node in smallest.nodes] == ["Mul"]
    assert smallest.elements <= 5 and search.tried > 5
    assert kept[-1] == smallest.size and kept[0][0] == 7
    onnx.checker.check_model(smallest.model, full_check=True)
