"""Operators on strings and sequences."""

from __future__ import annotations

import numpy as np

from tests.conformance.node_calls.draw import Call, Draw, calls


@calls("StringConcat")
def string_concat(d: Draw) -> Call:
    left, right = d.broadcast(2)
    return Call([d.words(left), d.words(right)])


@calls("StringSplit")
def string_split(d: Draw) -> Call:
    words = np.array(
        [" ".join(d.rng.choice(["a", "b,c", "de", ""], d.whole(1, 3))) for _ in range(d.whole(1, 3))], object
    )
    return Call([words], d.some(delimiter=d.one_of(",", " "), maxsplit=d.whole(1, 2)), 2)


@calls("RegexFullMatch")
def regex(d: Draw) -> Call:
    return Call([d.words(d.sizes(1, 2))], {"pattern": d.one_of("[a-z]+", "a|b", ".*")})


@calls("StringNormalizer")
def string_normalizer(d: Draw) -> Call:
    given = d.some(
        case_change_action=d.one_of("NONE", "LOWER", "UPPER"), is_case_sensitive=d.whole(0, 1), stopwords=["a", "FUSE"]
    )
    return Call([d.words((d.whole(1, 5),) if d.chance() else (1, d.whole(1, 5)))], given)


@calls("TfIdfVectorizer")
def tf_idf(d: Draw) -> Call:
    words = d.holds_words()
    given = {
        "min_gram_length": 1,
        "max_gram_length": 2,
        "max_skip_count": d.whole(0, 2),
        "mode": d.one_of("TF", "IDF", "TFIDF"),
    }
    pool = (
        {"pool_strings": ["a", "b", "fuse", "a", "b", "line", "a"]} if words else {"pool_int64s": [1, 2, 3, 1, 2, 5, 1]}
    )
    x = d.words(d.sizes(1, 2)) if words else d.rng.integers(0, 6, d.sizes(1, 2)).astype(d.dtype())
    weights = d.some(weights=[d.number(0.5, 2) for _ in range(5)])
    return Call([x], {**given, **pool, "ngram_counts": [0, 3], "ngram_indexes": [0, 1, 2, 3, 4], **weights})


@calls("SequenceAt", "SequenceErase")
def sequence_at(d: Draw) -> Call:
    items = [d.values(d.sizes(1, 2), np.float32) for _ in range(d.whole(1, 3))]
    return Call([items, np.asarray(d.axis(len(items)), d.dtypes.get("I", np.int64))])


@calls("SequenceInsert")
def sequence_insert(d: Draw) -> Call:
    items = [d.values((2,), np.float32) for _ in range(d.whole(1, 3))]
    return Call(
        [
            items,
            d.values((3,), np.float32),
            *([np.asarray(d.axis(len(items)), d.dtypes.get("I", np.int64))] if d.chance() else []),
        ]
    )


@calls("SequenceLength")
def sequence_length(d: Draw) -> Call:
    return Call([[d.values((2,), np.float32) for _ in range(d.whole(1, 3))]])


@calls("SequenceConstruct")
def sequence_construct(d: Draw) -> Call:
    return Call([d.values(d.sizes(0, 2)) for _ in range(d.whole(1, 3))])


@calls("ConcatFromSequence")
def concat_from_sequence(d: Draw) -> Call:
    sizes = d.sizes(1, 3)
    return Call(
        [[d.values(sizes, np.float32) for _ in range(d.whole(1, 3))]],
        {"axis": d.axis(len(sizes)), **d.some(new_axis=d.whole(0, 1))},
    )


@calls("SplitToSequence")
def split_to_sequence(d: Draw) -> Call:
    sizes = d.sizes(1, 3)
    axis = d.axis(len(sizes))
    given = {"axis": axis, **d.some(keepdims=d.whole(0, 1))}
    return Call([d.values(sizes), *([np.asarray(d.whole(1, sizes[axis]), d.dtype(1))] if d.chance() else [])], given)
