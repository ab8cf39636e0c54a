"""Value conversions between element types, down to what every ISA can do without a library call."""

from __future__ import annotations

from typing import Any

from fuseline.targets.cpu.kernel_ir.lanes import Lanes
from fuseline.targets.cpu.kernel_ir.types import BITS, I64, Type, Value


class Conversion(Lanes):
    """`cast` and its parts."""

    half_conversion = True
    """Whether the machine converts between f16 and f32; else it is done on the bits."""

    def cast(self, a: Any, dtype: str, *, unsigned: bool = False) -> Any:
        """`a` as `dtype`: the same number where it fits, rounded or wrapped otherwise; to i1, whether it differs from
        0.

        `unsigned` reads an integer source, or makes an integer result, as unsigned. Floats become integers by
        truncation; what none can be (NaN, numbers out of range) becomes what compilers for x86 make of it.
        """
        if isinstance(a, int):
            return a if dtype == "i64" else self.const(float(a) if Type(dtype).is_float else a, dtype)
        source: Type = a.type
        if source.dtype == dtype:
            return a
        if dtype == "i1":
            zero = 0.0 if source.is_float else 0
            return self.compare("ne", a, self.const(zero, *source))
        if source.is_float:
            return self._from_float(a, dtype, unsigned)
        return self._from_int(a, dtype, unsigned or source.dtype == "i1")

    def _convert(self, name: str, a: Value, dtype: str) -> Value:
        return self.pure("cast", Type(dtype, a.type.lanes), (a,), name)

    def _from_float(self, a: Value, dtype: str, unsigned: bool) -> Value:
        if a.type.dtype == "bf16":
            return self.cast(self._widen_bf16(a), dtype, unsigned=unsigned)
        if dtype == "bf16":
            return self._narrow_to_bf16(self.cast(a, "f32"))
        if not Type(dtype).is_float:
            return self._float_to_int(a, dtype, unsigned)
        if (a.type.dtype, dtype) == (
            "f64",
            "f16",
        ):  # no ISA does it in one step; by way of an f32 rounded to odd the result is right
            return self.cast(self._round_to_odd(a), "f16")
        if "f16" in (a.type.dtype, dtype) and not self.half_conversion:
            return self._narrow_to_f16(self.cast(a, "f32")) if dtype == "f16" else self.cast(self._widen_f16(a), dtype)
        return self._convert("fpext" if BITS[dtype] > BITS[a.type.dtype] else "fptrunc", a, dtype)

    def _float_to_int(self, a: Value, dtype: str, unsigned: bool) -> Value:
        if a.type.dtype == "f16":
            a = self.cast(a, "f32")
        if BITS[dtype] < 32:
            return self.cast(self._convert("fptosi", a, "i32"), dtype)
        return self._float_to_unsigned(a, dtype) if unsigned else self._convert("fptosi", a, dtype)

    def _float_to_unsigned(self, a: Value, dtype: str) -> Value:
        """By the signed conversion, of what is left above half the range where it is there: NaN and what does not fit
        become what compilers for x86 make of them, and so what onnxruntime and NumPy do, whatever instructions a
        machine has."""
        middle = 2.0 ** (BITS[dtype] - 1)
        upper = self.compare("ge", a, middle)
        low = self._convert("fptosi", self.select(upper, self.sub(a, middle), a), dtype)
        return self.xor(
            low, self.select(upper, self.const(-(1 << (BITS[dtype] - 1)), *low.type), self.const(0, *low.type))
        )

    def _from_int(self, a: Value, dtype: str, unsigned: bool) -> Value:
        source = a.type.dtype
        if dtype == "bf16" or (dtype == "f16" and BITS[source] > 8):
            return self.cast(self.cast(a, "f32", unsigned=unsigned), dtype)
        if Type(dtype).is_float:
            return self._int_to_float(a, dtype, unsigned)
        if BITS[dtype] < BITS[source]:
            return self._convert("trunc", a, dtype)
        return self._convert("zext" if unsigned else "sext", a, dtype)

    def _int_to_float(self, a: Value, dtype: str, unsigned: bool) -> Value:
        if BITS[a.type.dtype] < 32:  # widened first, since no ISA converts small integers
            return self.cast(self.cast(self.cast(a, "i32", unsigned=unsigned), "f32"), dtype)
        return self._convert("uitofp" if unsigned else "sitofp", a, dtype)

    def _widen_f16(self, a: Value) -> Value:
        """The exponent is rebiased by a multiplication, which is right for denormals too; infinities and NaN get theirs
        by hand."""
        bits = self.cast(self.bitcast(a, "i16"), "i32", unsigned=True)
        size = self.bitand(bits, 0x7FFF)
        regular = self.bitcast(self.mul(self.bitcast(self.shl(size, 13), "f32"), 2.0**112), "i32")
        special = self.bitor(self.shl(size, 13), 0x7F800000)
        chosen = self.select(self.compare("ge", size, 0x7C00), special, regular)
        return self.bitcast(self.bitor(chosen, self.shl(self.bitand(bits, 0x8000), 16)), "f32")

    def _narrow_to_f16(self, a: Value) -> Value:
        """Rounds to nearest, ties to even: by integer addition, for denormals by the addition of 1/2, whose unit is
        theirs."""
        bits = self.bitcast(a, "i32")
        size = self.bitand(bits, 0x7FFFFFFF)
        odd = self.bitand(self.lshr(size, 13), 1)
        regular = self.lshr(self.add(self.add(size, odd), 0xFFF - (112 << 23)), 13)
        tiny = self.sub(self.bitcast(self.add(self.bitcast(size, "f32"), 0.5), "i32"), 0x3F000000)
        finite = self.select(self.compare("lt", size, 0x38800000), tiny, regular)
        special = self.select(
            self.compare("gt", size, 0x7F800000), self.const(0x7E00, *bits.type), self.const(0x7C00, *bits.type)
        )
        chosen = self.select(self.compare("ge", size, 0x47800000), special, finite)
        signed = self.bitor(chosen, self.bitand(self.lshr(bits, 16), 0x8000))
        return self.bitcast(self.cast(signed, "i16"), "f16")

    def _widen_bf16(self, a: Value) -> Value:
        bits = self.cast(self.bitcast(a, "i16"), "i32", unsigned=True)
        return self.bitcast(self.shl(bits, self.const(16, *bits.type)), "f32")

    def _narrow_to_bf16(self, a: Value) -> Value:
        """Rounds to nearest, ties to even; NaN stays NaN."""
        bits = self.bitcast(a, "i32")
        odd = self.bitand(self.lshr(bits, 16), 1)
        rounded = self.lshr(self.add(self.add(bits, odd), 0x7FFF), 16)
        quiet = self.bitor(self.lshr(bits, 16), 0x40)
        return self.bitcast(self.cast(self.select(self.compare("uno", a, a), quiet, rounded), "i16"), "bf16")

    def _round_to_odd(self, a: Value) -> Value:
        """f64 to f32, where an inexact result gets its last bit set, so that rounding once more is exact."""
        near = self._convert("fptrunc", a, "f32")
        back = self._convert("fpext", near, "f64")
        bits = self.bitcast(near, "i32")
        away = self.compare("gt", self.abs(back), self.abs(a))
        truncated = self.select(self.cast_mask(away, bits.type), self.sub(bits, 1), bits)
        inexact = self.compare("one", back, a)
        return self.bitcast(self.select(inexact, self.bitor(truncated, 1), bits), "f32")

    def cast_mask(self, condition: Value, like: Type) -> Value:
        """`condition` with the lanes of `like`."""
        return (
            self.splat(condition, like.lanes)
            if condition.type.lanes == 1 and like.lanes > 1 and like != I64
            else condition
        )
