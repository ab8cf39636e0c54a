// A concat that a window reads is made whole, on the stack.
// 
// fails: exceeded stack allocation limit of 32768 bytes for function. Got 1548800 bytes

func.func @main(%x: tensor<55x55x64xf32>, %y: tensor<55x55x64xf32>) -> tensor<27x27x128xf32> {
  %r = flow.dispatch.region -> (tensor<27x27x128xf32>) {
      %low = arith.constant 0xff800000 : f32
      %w = tensor.empty() : tensor<3x3xf32>
      %e = tensor.empty() : tensor<27x27x128xf32>
      %f = linalg.fill ins(%low : f32) outs(%e : tensor<27x27x128xf32>) -> tensor<27x27x128xf32>
      %c = tensor.concat dim(2) %x, %y : (tensor<55x55x64xf32>, tensor<55x55x64xf32>) -> tensor<55x55x128xf32>
      %m = linalg.generic {indexing_maps = [affine_map<(a, b, c, i, j) -> (a * 2 + i, b * 2 + j, c)>,
          affine_map<(a, b, c, i, j) -> (i, j)>, affine_map<(a, b, c, i, j) -> (a, b, c)>],
          iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
          ins(%c, %w : tensor<55x55x128xf32>, tensor<3x3xf32>) outs(%f : tensor<27x27x128xf32>) {
      ^bb0(%in: f32, %window: f32, %out: f32):
        %v = arith.maximumf %out, %in : f32
        linalg.yield %v : f32
      } -> tensor<27x27x128xf32>
      flow.return %m : tensor<27x27x128xf32>
  }
  return %r : tensor<27x27x128xf32>
}
