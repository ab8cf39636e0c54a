"""Bodies of generics that are idioms, for `view_of`."""

SCATTER = """%i = linalg.index 0 : index
  %ic = arith.index_cast %i : index to i64
  %hit = arith.cmpi eq, %ic, %a0 : i64
  %n = arith.constant 0.0 : f32
  %v = arith.select %hit, %a1, %n : f32
  %s = arith.addf %a2, %v : f32
  linalg.yield %s : f32"""

RANK = """%i = linalg.index 0 : index
  %j = linalg.index 1 : index
  %first = arith.cmpi slt, %j, %i : index
  %le = arith.cmpi sle, %a0, %a1 : i32
  %lt = arith.cmpi slt, %a0, %a1 : i32
  %before = arith.select %first, %le, %lt : i1
  %one = arith.extui %before : i1 to i64
  %s = arith.addi %a2, %one : i64
  linalg.yield %s : i64"""
