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

// -----

// A slice that drops dimensions of one element is a slice of all of them and a reshape; one that drops none stays.
// CHECK-LABEL: func.func @narrow_slices
// CHECK: tensor.extract_slice %x[1, 0, 2] [1, 4, 1] [1, 1, 1] : tensor<3x4x5xf32> to tensor<1x4x1xf32>
// CHECK: tensor.collapse_shape %{{.*}} {{.*}} : tensor<1x4x1xf32> into tensor<4xf32>
// CHECK: tensor.extract_slice %x[0, 1, 2] [3, 1, 2] [1, 1, 1] : tensor<3x4x5xf32> to tensor<3x1x2xf32>
// CHECK: tensor.collapse_shape %{{.*}} {{.*}} : tensor<3x1x2xf32> into tensor<3x2xf32>
// CHECK: tensor.extract_slice %x[0, 1, 2] [2, 3, 2] [1, 1, 1] : tensor<3x4x5xf32> to tensor<2x3x2xf32>
// CHECK-NEXT: func.return
func.func @narrow_slices(%x: tensor<3x4x5xf32>) -> (tensor<4xf32>, tensor<3x2xf32>, tensor<2x3x2xf32>) {
  %a = tensor.extract_slice %x[1, 0, 2] [1, 4, 1] [1, 1, 1] : tensor<3x4x5xf32> to tensor<4xf32>
  %b = tensor.extract_slice %x[0, 1, 2] [3, 1, 2] [1, 1, 1] : tensor<3x4x5xf32> to tensor<3x2xf32>
  %c = tensor.extract_slice %x[0, 1, 2] [2, 3, 2] [1, 1, 1] : tensor<3x4x5xf32> to tensor<2x3x2xf32>
  return %a, %b, %c : tensor<4xf32>, tensor<3x2xf32>, tensor<2x3x2xf32>
}

// -----

// The source of a slice that is put in has all dimensions; with gaps between its elements it is a choice.
// CHECK-LABEL: func.func @put_in
// CHECK: tensor.expand_shape %a {{.*}} output_shape [4, 1, 2] : tensor<4x2xf32> into tensor<4x1x2xf32>
// CHECK: tensor.insert_slice %{{.*}} into %x[0, 3, 1] [4, 1, 2] [1, 1, 1] : tensor<4x1x2xf32> into tensor<4x5x6xf32>
// CHECK: tensor.expand_shape %a {{.*}} output_shape [4, 1, 2] : tensor<4x2xf32> into tensor<4x1x2xf32>
// CHECK: linalg.generic
// CHECK: arith.select
// CHECK: linalg.generic
// CHECK: arith.select
func.func @put_in(%x: tensor<4x5x6xf32>, %a: tensor<4x2xf32>, %b: tensor<2x2x3xf32>) -> (tensor<4x5x6xf32>, tensor<4x5x6xf32>, tensor<4x5x6xf32>) {
  %p = tensor.insert_slice %a into %x[0, 3, 1] [4, 1, 2] [1, 1, 1] : tensor<4x2xf32> into tensor<4x5x6xf32>
  %q = tensor.insert_slice %a into %x[0, 3, 1] [4, 1, 2] [1, 1, 3] : tensor<4x2xf32> into tensor<4x5x6xf32>
  %r = tensor.insert_slice %b into %x[1, 0, 1] [2, 2, 3] [2, 3, 2] : tensor<2x2x3xf32> into tensor<4x5x6xf32>
  return %p, %q, %r : tensor<4x5x6xf32>, tensor<4x5x6xf32>, tensor<4x5x6xf32>
}

// -----

// One number everywhere is a fill, whatever the sizes.
// CHECK-LABEL: func.func @splats
// CHECK: %[[A:.*]] = tensor.empty() : tensor<2x3xf32>
// CHECK: linalg.fill ins(%s : f32) outs(%[[A]] : tensor<2x3xf32>)
// CHECK: %[[B:.*]] = tensor.empty(%n) : tensor<?x3xf32>
// CHECK: linalg.fill ins(%s : f32) outs(%[[B]] : tensor<?x3xf32>)
// CHECK-NOT: tensor.splat
func.func @splats(%s: f32, %n: index) -> (tensor<2x3xf32>, tensor<?x3xf32>) {
  %a = tensor.splat %s : tensor<2x3xf32>
  %b = tensor.splat %s[%n] : tensor<?x3xf32>
  return %a, %b : tensor<2x3xf32>, tensor<?x3xf32>
}

// -----

// Constants are a constant; numbers are put side by side and take their shape; sizes in a row stay.
// CHECK-LABEL: func.func @numbers
// CHECK: arith.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
// CHECK: tensor.concat dim(0)
// CHECK-SAME: -> tensor<4xf32>
// CHECK: tensor.expand_shape %{{.*}} output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>
// CHECK: linalg.fill ins(%t : f32)
// CHECK: tensor.collapse_shape %{{.*}} [] : tensor<1xf32> into tensor<f32>
// CHECK: tensor.from_elements %n, %m : tensor<2xindex>
// CHECK: tensor.from_elements %m, %n : tensor<2xindex>
// CHECK-NEXT: tensor.expand_shape %{{.*}} output_shape [2, 1] : tensor<2xindex> into tensor<2x1xindex>
func.func @numbers(%s: f32, %t: f32, %n: index, %m: index) -> (tensor<2xf32>, tensor<2x2xf32>, tensor<f32>, tensor<2xindex>, tensor<2x1xindex>) {
  %one = arith.constant 1.0 : f32
  %two = arith.constant 2.0 : f32
  %a = tensor.from_elements %one, %two : tensor<2xf32>
  %b = tensor.from_elements %s, %one, %t, %s : tensor<2x2xf32>
  %c = tensor.from_elements %t : tensor<f32>
  %d = tensor.from_elements %n, %m : tensor<2xindex>
  %e = tensor.from_elements %m, %n : tensor<2x1xindex>
  return %a, %b, %c, %d, %e : tensor<2xf32>, tensor<2x2xf32>, tensor<f32>, tensor<2xindex>, tensor<2x1xindex>
}

// -----

// One place among several dimensions: all of them must agree.
// CHECK-LABEL: func.func @replaced_in_two_dimensions
// CHECK: %[[I:.*]] = arith.cmpi eq, %{{.*}}, %i
// CHECK: %[[J:.*]] = arith.cmpi eq, %{{.*}}, %j
// CHECK: %[[H:.*]] = arith.andi %[[I]], %[[J]] : i1
// CHECK: arith.select %[[H]], %s
func.func @replaced_in_two_dimensions(%a: tensor<4x5xf32>, %s: f32, %i: index, %j: index) -> tensor<4x5xf32> {
  %r = tensor.insert %s into %a[%i, %j] : tensor<4x5xf32>
  return %r : tensor<4x5xf32>
}

// -----

// What a body says of each place is a structured op that asks where it is; a tensor without dimensions has one place.
// CHECK-LABEL: func.func @generated
// CHECK: tensor.empty(%n) : tensor<?x3xindex>
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]}
// CHECK: %[[I:.*]] = linalg.index 0
// CHECK: %[[J:.*]] = linalg.index 1
// CHECK: %[[A:.*]] = arith.muli %[[I]], %k
// CHECK: arith.addi %[[A]], %[[J]]
// CHECK: linalg.generic {{.*}} iterator_types = []}
// CHECK: linalg.yield %s : f32
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel"]}
// CHECK: linalg.yield %k : index
// CHECK-NOT: tensor.generate
func.func @generated(%n: index, %k: index, %x: tensor<f32>, %s: f32) -> (tensor<?x3xindex>, tensor<f32>, tensor<2xindex>) {
  %r = tensor.generate %n {
  ^bb0(%i: index, %j: index):
    %a = arith.muli %i, %k : index
    %b = arith.addi %a, %j : index
    tensor.yield %b : index
  } : tensor<?x3xindex>
  %t = tensor.insert %s into %x[] : tensor<f32>
  %u = tensor.generate {
  ^bb0(%i: index):
    tensor.yield %k : index
  } : tensor<2xindex>
  return %r, %t, %u : tensor<?x3xindex>, tensor<f32>, tensor<2xindex>
}
