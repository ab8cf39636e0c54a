// RUN: fuseline opt %s -p form-dispatch-regions,clone-cheap-producers,outline-executables,write-transposed --split-input-file --verify-each --print-locations | filecheck %s
// RUN: fuseline opt %s -p form-dispatch-regions,clone-cheap-producers,outline-executables,write-transposed,write-transposed --split-input-file --verify-each --print-locations | filecheck %s

// What a dispatch computes and returns in another order, too, is written by an elementwise op.
// CHECK-LABEL: func.func @both
// CHECK: func.func @both_dispatch_0
// CHECK: math.tanh
// CHECK-NOT: linalg.transpose
// CHECK: linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
// CHECK: linalg.yield
// CHECK-NEXT: } -> tensor<5x3xf32> loc("turn")
func.func @both(%x: tensor<3x5xf32>) -> (tensor<3x5xf32>, tensor<5x3xf32>) {
  %e = tensor.empty() : tensor<3x5xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<3x5xf32>) outs(%e : tensor<3x5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = math.tanh %a : f32
    linalg.yield %r : f32
  } -> tensor<3x5xf32>
  %i = tensor.empty() : tensor<5x3xf32>
  %t = linalg.transpose ins(%y : tensor<3x5xf32>) outs(%i : tensor<5x3xf32>) permutation = [1, 0] loc("turn")
  func.return %y, %t : tensor<3x5xf32>, tensor<5x3xf32>
}

// -----

// What lies in memory already is turned as it was.
// CHECK-LABEL: func.func @argument
// CHECK: linalg.transpose
func.func @argument(%x: tensor<3x5xf32>) -> tensor<5x3xf32> {
  %i = tensor.empty() : tensor<5x3xf32>
  %t = linalg.transpose ins(%x : tensor<3x5xf32>) outs(%i : tensor<5x3xf32>) permutation = [1, 0]
  func.return %t : tensor<5x3xf32>
}

// -----

// So is a part of a concat that is returned.
// CHECK-LABEL: func.func @part
// CHECK: func.func @part_dispatch_0
// CHECK: math.tanh
// CHECK-NOT: linalg.transpose
// CHECK: [[T:%[0-9a-z]+]] = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
// CHECK: tensor.concat dim(0) [[T]]
func.func @part(%x: tensor<3x5xf32>) -> (tensor<3x5xf32>, tensor<10x3xf32>) {
  %e = tensor.empty() : tensor<3x5xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<3x5xf32>) outs(%e : tensor<3x5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = math.tanh %a : f32
    linalg.yield %r : f32
  } -> tensor<3x5xf32>
  %i = tensor.empty() : tensor<5x3xf32>
  %t = linalg.transpose ins(%y : tensor<3x5xf32>) outs(%i : tensor<5x3xf32>) permutation = [1, 0]
  %c = tensor.concat dim(0) %t, %t : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<10x3xf32>
  func.return %y, %c : tensor<3x5xf32>, tensor<10x3xf32>
}
