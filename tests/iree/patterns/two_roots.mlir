// A product, and the depthwise convolution that reads it, padded: an inverted residual.
// 
// fails: One or more operations with large vector sizes

func.func @main(%x: tensor<56x56x24xf32>, %w: tensor<24x144xf32>, %k: tensor<3x3x144xf32>) -> tensor<56x56x144xf32> {
  %r = flow.dispatch.region -> (tensor<56x56x144xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<56x56x144xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<56x56x144xf32>) -> tensor<56x56x144xf32>
      %c = linalg.generic {indexing_maps = [affine_map<(a, b, c, k) -> (a, b, k)>, affine_map<(a, b, c, k) -> (k, c)>,
          affine_map<(a, b, c, k) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
          ins(%x, %w : tensor<56x56x24xf32>, tensor<24x144xf32>) outs(%f : tensor<56x56x144xf32>) {
      ^bb0(%in: f32, %in2: f32, %out: f32):
        %v = arith.mulf %in, %in2 : f32
        %s = arith.addf %out, %v : f32
        linalg.yield %s : f32
      } -> tensor<56x56x144xf32>
      %p = tensor.pad %c low[1, 1, 0] high[1, 1, 0] {
      ^bb0(%a: index, %b: index, %d: index):
        tensor.yield %zero : f32
      } : tensor<56x56x144xf32> to tensor<58x58x144xf32>
      %m = linalg.generic {indexing_maps = [affine_map<(a, b, c, i, j) -> (a + i, b + j, c)>, affine_map<(a, b, c, i, j) -> (i, j, c)>,
          affine_map<(a, b, c, i, j) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
          ins(%p, %k : tensor<58x58x144xf32>, tensor<3x3x144xf32>) outs(%f : tensor<56x56x144xf32>) {
      ^bb0(%in: f32, %in2: f32, %out: f32):
        %v = arith.mulf %in, %in2 : f32
        %s = arith.addf %out, %v : f32
        linalg.yield %s : f32
      } -> tensor<56x56x144xf32>
      flow.return %m : tensor<56x56x144xf32>
  }
  return %r : tensor<56x56x144xf32>
}
