// RUN: fuseline opt -p scalars-to-tensors --split-input-file %s | FileCheck %s

// A number that the caller gives is a tensor, and an input of who reads it.
// CHECK-LABEL: func.func @argument(%a: tensor<4xf32>, %s: tensor<f32>)
// CHECK: linalg.generic
// CHECK-SAME: affine_map<(d0) -> ()>
// CHECK-SAME: ins(%a, %s : tensor<4xf32>, tensor<f32>)
func.func @argument(%a: tensor<4xf32>, %s: f32) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%x: f32, %o: f32):
    %y = arith.addf %x, %s : f32
    linalg.yield %y : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// An element at a constant place is a view; arithmetic on it an op without loops.
// CHECK-LABEL: func.func @element
// CHECK: tensor.extract_slice %a[3] [1] [1]
// CHECK: tensor.collapse_shape
// CHECK: linalg.generic
// CHECK: arith.mulf
// CHECK: func.return %{{.*}} : tensor<f32>
func.func @element(%a: tensor<4xf32>) -> f32 {
  %c3 = arith.constant 3 : index
  %s = tensor.extract %a[%c3] : tensor<4xf32>
  %t = arith.mulf %s, %s : f32
  return %t : f32
}

// -----

// A computed index that a size depends on is read on the host; arithmetic on it stays a size.
// CHECK-LABEL: func.func @size
// CHECK: %[[N:.*]] = func.call @host.index.0
// CHECK: %[[M:.*]] = arith.addi %[[N]]
// CHECK: tensor.empty(%[[M]])
func.func @size(%a: tensor<i64>) -> tensor<?xf32> {
  %c1 = arith.constant 1 : index
  %v = tensor.extract %a[] : tensor<i64>
  %n = arith.index_cast %v : i64 to index
  %m = arith.addi %n, %c1 : index
  %e = tensor.empty(%m) : tensor<?xf32>
  return %e : tensor<?xf32>
}

// -----

// Arithmetic on sizes and constants costs nothing, and stays.
// CHECK-LABEL: func.func @count
// CHECK: arith.sitofp
// CHECK-NOT: tensor<f32>
// CHECK: func.return
func.func @count(%a: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %a, %c0 : tensor<?xf32>
  %i = arith.index_cast %n : index to i64
  %f = arith.sitofp %i : i64 to f32
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a : tensor<?xf32>) outs(%e : tensor<?xf32>) {
  ^bb0(%x: f32, %o: f32):
    %y = arith.divf %x, %f : f32
    linalg.yield %y : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// -----

// A fill with a given number is a broadcast of it.
// CHECK-LABEL: func.func @fill
// CHECK-NOT: linalg.fill
// CHECK: linalg.generic
func.func @fill(%a: tensor<4xf32>, %s: f32) -> tensor<4xf32> {
  %r = linalg.fill ins(%s : f32) outs(%a : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// Sizes that are results are tensors without dimensions, made where they are known.
// CHECK-LABEL: func.func @sizes
// CHECK-SAME: -> (tensor<index>, tensor<index>)
// CHECK-DAG: tensor.from_elements %n : tensor<1xindex>
// CHECK-DAG: %[[D:.*]] = tensor.dim %a
// CHECK-DAG: tensor.from_elements %[[D]] : tensor<1xindex>
// CHECK: tensor.collapse_shape %{{.*}} [] : tensor<1xindex> into tensor<index>
// CHECK: func.return
func.func @sizes(%a: tensor<?xf32>, %n: index) -> (index, index) {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %a, %c0 : tensor<?xf32>
  return %n, %d : index, index
}

// -----

// A place that a body computes from data is an index that the host reads.
// CHECK-LABEL: func.func @captured_index
// CHECK: %[[N:.*]] = func.call @host.index.0
// CHECK: tensor.pad
// CHECK: arith.index_cast %[[N]] : index to i64
func.func @captured_index(%a: tensor<i64>, %x: tensor<4xi64>) -> tensor<6xi64> {
  %v = tensor.extract %a[] : tensor<i64>
  %n = arith.index_cast %v : i64 to index
  %p = tensor.pad %x low[1] high[1] {
  ^bb0(%i: index):
    %m = arith.index_cast %n : index to i64
    tensor.yield %m : i64
  } : tensor<4xi64> to tensor<6xi64>
  return %p : tensor<6xi64>
}

// -----

// Arithmetic on sizes is a size: nothing is read on the host for it.
// CHECK-LABEL: func.func @larger
// CHECK-NOT: host.index
// CHECK: tensor.empty(%{{.*}}) : tensor<?xf32>
// CHECK: func.return
func.func @larger(%a: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %a, %c0 : tensor<?xf32>
  %m = arith.addi %n, %c1 : index
  %e = tensor.empty(%m) : tensor<?xf32>
  return %e : tensor<?xf32>
}

// -----

// A sum of sizes that is a result is made of the sizes, by no kernel.
// CHECK-LABEL: func.func @next
// CHECK: %[[M:.*]] = arith.addi
// CHECK: tensor.from_elements %[[M]] : tensor<1xindex>
// CHECK-NOT: linalg.generic
// CHECK: func.return
func.func @next(%a: tensor<?xf32>) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %a, %c0 : tensor<?xf32>
  %m = arith.addi %n, %c1 : index
  return %m : index
}

// -----

// A constant that is a result is a tensor constant.
// CHECK-LABEL: func.func @answer
// CHECK: %[[C:.*]] = arith.constant dense<4.200000e+01> : tensor<f32>
// CHECK: func.return %[[C]] : tensor<f32>
func.func @answer() -> f32 {
  %c = arith.constant 42.0 : f32
  return %c : f32
}

// -----

// Of scalar operands, those that are data become inputs without dimensions; constants and sizes are captured by the body.
// CHECK-LABEL: func.func @scalar_operands
// CHECK-SAME: %s: tensor<f32>, %k: tensor<i64>
// CHECK: linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>, affine_map<(d0) -> ()>, affine_map<(d0) -> (d0)>]
// CHECK-SAME: ins(%a, %s, %k : tensor<?xf32>, tensor<f32>, tensor<i64>)
// CHECK: arith.mulf %{{.*}}, %c : f32
// CHECK: arith.index_cast %n : index to i64
// CHECK: func.return
func.func @scalar_operands(%a: tensor<?xf32>, %s: f32, %k: i64) -> tensor<?xf32> {
  %c = arith.constant 2.0 : f32
  %c0 = arith.constant 0 : index
  %n = tensor.dim %a, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> ()>, affine_map<(i) -> (i)>, affine_map<(i) -> ()>, affine_map<(i) -> ()>, affine_map<(i) -> ()>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%c, %a, %n, %s, %k : f32, tensor<?xf32>, index, f32, i64) outs(%e : tensor<?xf32>) {
  ^bb0(%two: f32, %x: f32, %size: index, %scale: f32, %count: i64, %o: f32):
    %p = arith.mulf %x, %two : f32
    %q = arith.mulf %p, %scale : f32
    %m = arith.index_cast %size : index to i64
    %t = arith.addi %m, %count : i64
    %f = arith.sitofp %t : i64 to f32
    %y = arith.addf %q, %f : f32
    linalg.yield %y : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// -----

// What a body captures is one input each, behind the others, and the body reads it there.
// CHECK-LABEL: func.func @captured
// CHECK: ins(%a, %s, %t : tensor<4xf32>, tensor<f32>, tensor<f32>)
// CHECK-NEXT: ^bb0(%{{.*}}: f32, %[[S:.*]]: f32, %[[T:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: arith.mulf %{{.*}}, %[[S]]
// CHECK-NEXT: arith.subf %{{.*}}, %[[T]]
// CHECK-NEXT: arith.divf %{{.*}}, %[[S]]
func.func @captured(%a: tensor<4xf32>, %s: f32, %t: f32) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%x: f32, %o: f32):
    %p = arith.mulf %x, %s : f32
    %q = arith.subf %p, %t : f32
    %y = arith.divf %q, %s : f32
    linalg.yield %y : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}
