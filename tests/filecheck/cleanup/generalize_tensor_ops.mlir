// RUN: fuseline opt %s -p generalize-tensor-ops --split-input-file | filecheck %s

// Arithmetic on tensors is a structured op whose body is the same arithmetic.
// CHECK-LABEL: func.func @arithmetic
// CHECK-NOT: arith.addf %a
// CHECK: linalg.generic
// CHECK: arith.addf
// CHECK: linalg.generic
// CHECK: arith.truncf
func.func @arithmetic(%a: tensor<4x?xf32>, %b: tensor<4x?xf32>) -> tensor<4x?xf16> {
  %s = arith.addf %a, %b : tensor<4x?xf32>
  %t = arith.truncf %s : tensor<4x?xf32> to tensor<4x?xf16>
  return %t : tensor<4x?xf16>
}

// -----

// CHECK-LABEL: func.func @replaced
// CHECK: linalg.index 0
// CHECK: arith.cmpi eq
// CHECK: arith.select
func.func @replaced(%a: tensor<4xf32>, %i: index) -> tensor<4xf32> {
  %c = arith.constant 1.0 : f32
  %r = tensor.insert %c into %a[%i] : tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// A pad with a constant stays; one whose body computes is a choice.
// CHECK-LABEL: func.func @pads
// CHECK: tensor.pad
// CHECK-NOT: tensor.pad
// CHECK: arith.select
func.func @pads(%a: tensor<4xf32>) -> (tensor<5xf32>, tensor<5xf32>) {
  %c = arith.constant 1.0 : f32
  %p = tensor.pad %a low[1] high[0] {
  ^bb0(%i: index):
    tensor.yield %c : f32
  } : tensor<4xf32> to tensor<5xf32>
  %q = tensor.pad %a low[1] high[0] {
  ^bb0(%i: index):
    %w = arith.index_cast %i : index to i32
    %f = arith.sitofp %w : i32 to f32
    tensor.yield %f : f32
  } : tensor<4xf32> to tensor<5xf32>
  return %p, %q : tensor<5xf32>, tensor<5xf32>
}
