// RUN: fuseline opt %s -p cleanup,layout,padding,fusion,dispatch | filecheck %s

// CHECK-COUNT-1: flow.dispatch @
// CHECK-NOT: flow.dispatch @

// DeepLabV3 int8: relu6 written transposed, collapse_shape, expand_shape, fake quantisation (iree-amd-aie#515).
// Want: 1 dispatch. The two reshapes only move a unit dimension; they must move out of the way, which no local fold does.
func.func @relu6_reshape_qdq(%x: tensor<1x144x129x129xf32>) -> tensor<1x129x129x144xf32> {
  %zero = arith.constant 0.0 : f32
  %six = arith.constant 6.0 : f32
  %scale = arith.constant 0.0235294122 : f32
  %min = arith.constant -128.0 : f32
  %max = arith.constant 127.0 : f32
  %e0 = tensor.empty() : tensor<129x129x1x144xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d2, d3, d0, d1)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : tensor<1x144x129x129xf32>) outs(%e0 : tensor<129x129x1x144xf32>) {
  ^bb0(%in: f32, %out: f32):
    %lo = arith.cmpf ult, %in, %zero : f32
    %a = arith.select %lo, %zero, %in : f32
    %hi = arith.cmpf ugt, %a, %six : f32
    %b = arith.select %hi, %six, %a : f32
    linalg.yield %b : f32
  } -> tensor<129x129x1x144xf32>
  %c = tensor.collapse_shape %r [[0], [1], [2, 3]] : tensor<129x129x1x144xf32> into tensor<129x129x144xf32>
  %s = tensor.expand_shape %c [[0, 1], [2], [3]] output_shape [1, 129, 129, 144] : tensor<129x129x144xf32> into tensor<1x129x129x144xf32>
  %e1 = tensor.empty() : tensor<1x129x129x144xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s : tensor<1x129x129x144xf32>) outs(%e1 : tensor<1x129x129x144xf32>) {
  ^bb0(%in: f32, %out: f32):
    %d = arith.divf %in, %scale : f32
    %n = math.roundeven %d : f32
    %lo = arith.maximumf %n, %min : f32
    %hi = arith.minimumf %lo, %max : f32
    %q = arith.fptosi %hi : f32 to i8
    %w = arith.extsi %q : i8 to i32
    %f = arith.sitofp %w : i32 to f32
    %m = arith.mulf %f, %scale : f32
    linalg.yield %m : f32
  } -> tensor<1x129x129x144xf32>
  return %y : tensor<1x129x129x144xf32>
}
