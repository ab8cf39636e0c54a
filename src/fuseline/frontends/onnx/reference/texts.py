"""Numbers from strings, as onnxruntime reads them: the standard says what plain and scientific notation mean, and
leaves open what else is read.

    floats          the longest beginning that is a number, hexadecimal ones too, infinities and NaN in any case; what
                    no double holds is refused
    integers, bool  the digits that the text begins with, in 64 bits; narrower types take the low bits, and true is what
    is not 0

A text that begins with no number is refused.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

_HEXADECIMAL, _DECIMAL = r"0x[0-9a-f]+(?:\.[0-9a-f]*)?(?:p[+-]?\d+)?", r"(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"
_FLOAT = re.compile(rf"\s*([+-]?(?:{_HEXADECIMAL}|inf(?:inity)?|nan|{_DECIMAL}))", re.IGNORECASE | re.ASCII)
_DIGITS = re.compile(r"\s*([+-]?\d+)", re.ASCII)
WIDEST = 64


def numbers_of(texts: Any, dtype: Any) -> Any:
    """The numbers of an array of strings, in `dtype` (of NumPy or ml_dtypes). Raises ValueError for a text that is
    none."""
    kind = np.dtype(dtype)
    flat = [str(text) for text in texts.reshape(-1)]
    if kind.kind not in "biu":
        with np.errstate(over="ignore"):
            return np.array([_float_of(text) for text in flat], np.float64).astype(kind).reshape(texts.shape)
    whole = [_integer_of(text, signed=kind.kind == "i") for text in flat]
    if kind.kind == "b":
        return np.array([number != 0 for number in whole], bool).reshape(texts.shape)
    return np.array([number % (1 << WIDEST) for number in whole], np.uint64).astype(kind).reshape(texts.shape)


def _float_of(text: str) -> float:
    found = _FLOAT.match(text)
    if found is None:
        raise ValueError(f"{text!r} is no number")
    digits = found[1].lower()
    number = float.fromhex(digits) if "0x" in digits else float(digits)
    if np.isinf(number) and "inf" not in digits:
        raise ValueError(f"{text!r} is larger than any float64")
    return number


def _integer_of(text: str, *, signed: bool) -> int:
    found = _DIGITS.match(text)
    if found is None:
        raise ValueError(f"{text!r} begins with no integer")
    number = int(found[1])
    low, high = (-(1 << WIDEST - 1), (1 << WIDEST - 1) - 1) if signed else (1 - (1 << WIDEST), (1 << WIDEST) - 1)
    if not low <= number <= high:
        raise ValueError(f"{text!r} does not fit 64 bits")
    return number
