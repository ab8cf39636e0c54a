"""Kernels that every image has, as LLVM text with `$CHUNK` for a number: copies, and sizes stored as a tensor."""

from __future__ import annotations

COPY_SYMBOL = "fuseline_copy"
SIZES_SYMBOL = "fuseline_sizes"

COPY_WORKGROUP_BYTES = 64 * 1024
"""Bytes one workgroup of the copy kernel moves."""

VALUES = {"CHUNK": COPY_WORKGROUP_BYTES}

_COPY = """
; Built-in kernel: bindings (source, target), sizes (bytes); a workgroup moves $CHUNK bytes.
define void @fuseline_copy(ptr %bindings, ptr %sizes, i64 %begin, i64 %end, ptr %scratch) nounwind {
entry:
  %source = load ptr, ptr %bindings
  %target.p = getelementptr i8, ptr %bindings, i64 8
  %target = load ptr, ptr %target.p
  %bytes = load i64, ptr %sizes
  %from = mul i64 %begin, $CHUNK
  %to.0 = mul i64 %end, $CHUNK
  %clip = icmp ult i64 %to.0, %bytes
  %to = select i1 %clip, i64 %to.0, i64 %bytes
  %length = sub i64 %to, %from
  %rest = and i64 %length, 63
  %whole = sub i64 %to, %rest
  br label %head
head:
  %i = phi i64 [%from, %entry], [%i1, %body]
  %more = icmp ult i64 %i, %whole
  br i1 %more, label %body, label %tail
body:
  %sp = getelementptr i8, ptr %source, i64 %i
  %v = load <64 x i8>, ptr %sp, align 1
  %tp = getelementptr i8, ptr %target, i64 %i
  store <64 x i8> %v, ptr %tp, align 1
  %i1 = add i64 %i, 64
  br label %head
tail:
  %j = phi i64 [%whole, %head], [%j1, %byte]
  %left = icmp ult i64 %j, %to
  br i1 %left, label %byte, label %exit
byte:
  %bp = getelementptr i8, ptr %source, i64 %j
  %b = load i8, ptr %bp
  %btp = getelementptr i8, ptr %target, i64 %j
  store i8 %b, ptr %btp
  %j1 = add i64 %j, 1
  br label %tail
exit:
  ret void
}
"""

_SIZES = """
; Built-in kernel: bindings (target of 64-bit integers); workgroup i writes size i.
define void @fuseline_sizes(ptr %bindings, ptr %sizes, i64 %begin, i64 %end, ptr %scratch) nounwind {
entry:
  %target = load ptr, ptr %bindings
  br label %head
head:
  %i = phi i64 [%begin, %entry], [%i1, %body]
  %more = icmp ult i64 %i, %end
  br i1 %more, label %body, label %exit
body:
  %sp = getelementptr i64, ptr %sizes, i64 %i
  %v = load i64, ptr %sp
  %tp = getelementptr i64, ptr %target, i64 %i
  store i64 %v, ptr %tp
  %i1 = add i64 %i, 1
  br label %head
exit:
  ret void
}
"""


KERNELS_TEXT = _COPY + _SIZES
