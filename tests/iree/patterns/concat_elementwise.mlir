// A concat and what reads it, in one dispatch: parts of different sizes are cut with the sizes of the first.
// 
// fails: runs out-of-bounds

func.func @main(%x: tensor<8x64xf32>, %y: tensor<8x32xf32>) -> tensor<8x96xf32> {
  %r = flow.dispatch.region -> (tensor<8x96xf32>) {
      %e = tensor.empty() : tensor<8x96xf32>
      %c = tensor.concat dim(1) %x, %y : (tensor<8x64xf32>, tensor<8x32xf32>) -> tensor<8x96xf32>
      %m = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]}
          ins(%c : tensor<8x96xf32>) outs(%e : tensor<8x96xf32>) {
      ^bb0(%in: f32, %out: f32):
        %v = math.exp %in : f32
        linalg.yield %v : f32
      } -> tensor<8x96xf32>
      flow.return %m : tensor<8x96xf32>
  }
  return %r : tensor<8x96xf32>
}
