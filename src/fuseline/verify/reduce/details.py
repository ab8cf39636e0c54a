"""Plainer attributes, weights and feeds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx

from fuseline.verify.reduce.candidate import Array, Candidate, forget_sizes, weight_of, weights_of

_PLAIN = {"pads": 0, "strides": 1, "dilations": 1, "output_padding": 0, "group": 1}


def fewer_attributes(candidate: Candidate) -> Iterator[Candidate]:
    """Each attribute left out, or as it mostly is; names of nodes stay."""
    for index, node in enumerate(candidate.nodes):
        for place, attribute in enumerate(node.attribute):
            yield _with_node(candidate, index, place, None)
            plain = _PLAIN.get(attribute.name)
            if plain is not None and any(value != plain for value in attribute.ints):
                same = onnx.helper.make_attribute(attribute.name, [plain] * len(attribute.ints))
                yield _with_node(candidate, index, place, same)


def _with_node(candidate: Candidate, index: int, place: int, attribute: onnx.AttributeProto | None) -> Candidate:
    model = onnx.ModelProto()
    model.CopyFrom(candidate.model)
    attributes = model.graph.node[index].attribute
    del attributes[place]
    if attribute is not None:
        attributes.append(attribute)
    forget_sizes(model)
    return Candidate(model, candidate.feeds)


def plainer_numbers(candidate: Candidate) -> Iterator[Candidate]:
    """Each array of floats as ones, or as a few small random numbers."""
    weights = weights_of(candidate)
    for name, array in weights.items():
        for plain in _plain(array):
            model = onnx.ModelProto()
            model.CopyFrom(candidate.model)
            del model.graph.initializer[:]
            model.graph.initializer.extend(
                weight_of(plain if other == name else held, other) for other, held in weights.items()
            )
            yield Candidate(model, candidate.feeds)
    for name, array in candidate.feeds.items():
        for plain in _plain(array):
            yield Candidate(candidate.model, {**candidate.feeds, name: plain})


def _plain(array: Array) -> Iterator[Array]:
    """Nothing for what is plain already: multiples of 1/4 between -2 and 2."""
    if array.dtype.kind != "f" or array.size == 0 or np.array_equal(array * 4, np.clip(np.round(array * 4), -8, 8)):
        return
    yield np.ones_like(array)
    rng = np.random.default_rng(0)
    yield (rng.integers(-8, 9, array.shape) / 4).astype(array.dtype)
