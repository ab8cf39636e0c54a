// RUN: fuseline opt %s -p canonicalize --split-input-file | filecheck %s

// CHECK-LABEL: func.func @index
// CHECK-NEXT: arith.constant 17 : index
// CHECK-NEXT: func.return %n, %n, %{{.*}}
func.func @index(%n: index) -> (index, index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  %c2 = arith.constant 2 : index
  %a = arith.addi %n, %c0 : index
  %b = arith.muli %c1, %n : index
  %p = arith.muli %c3, %c5 : index
  %s = arith.addi %p, %c2 : index
  return %a, %b, %s : index, index, index
}

// -----

// x + 0.0 is not x when x is -0.0; x + -0.0, x - 0.0, x * 1.0 and x / 1.0 are.
// CHECK-LABEL: func.func @floats
// CHECK: %[[KEPT:.*]] = arith.addf %x, %{{.*}}
// CHECK-NEXT: func.return %[[KEPT]], %x, %x, %x, %x
func.func @floats(%x: f32) -> (f32, f32, f32, f32, f32) {
  %zero = arith.constant 0.0 : f32
  %nzero = arith.constant -0.0 : f32
  %one = arith.constant 1.0 : f32
  %a = arith.addf %x, %zero : f32
  %b = arith.addf %x, %nzero : f32
  %c = arith.subf %x, %zero : f32
  %d = arith.mulf %one, %x : f32
  %e = arith.divf %x, %one : f32
  return %a, %b, %c, %d, %e : f32, f32, f32, f32, f32
}

// -----

// CHECK-LABEL: func.func @choices
// CHECK-NEXT: func.return %x, %x, %y, %x, %x
func.func @choices(%x: f32, %y: f32, %c: i1) -> (f32, f32, f32, f32, f32) {
  %t = arith.constant true
  %f = arith.constant false
  %a = arith.select %t, %x, %y : f32
  %b = arith.select %c, %x, %x : f32
  %d = arith.select %f, %x, %y : f32
  %e = arith.maximumf %x, %x : f32
  %n = arith.negf %x : f32
  %m = arith.negf %n : f32
  return %a, %b, %d, %e, %m : f32, f32, f32, f32, f32
}

// -----

// Through i32, an index may lose bits; through i64 it does not.
// CHECK-LABEL: func.func @casts
// CHECK-NEXT: arith.index_cast %i : index to i32
// CHECK-NEXT: %[[NARROW:.*]] = arith.index_cast
// CHECK-NEXT: func.return %[[NARROW]], %i
func.func @casts(%i: index) -> (index, index) {
  %a = arith.index_cast %i : index to i32
  %b = arith.index_cast %a : i32 to index
  %c = arith.index_cast %i : index to i64
  %d = arith.index_cast %c : i64 to index
  return %b, %d : index, index
}

// -----

// A division by zero is not folded.
// CHECK-LABEL: func.func @undefined
// CHECK: arith.divsi
func.func @undefined() -> i32 {
  %c0 = arith.constant 0 : i32
  %c3 = arith.constant 3 : i32
  %a = arith.divsi %c3, %c0 : i32
  return %a : i32
}
