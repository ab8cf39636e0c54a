"""Operators that only change how numbers are stored: reports say which of them stayed."""

from __future__ import annotations

QUANTIZERS = frozenset({"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"})
