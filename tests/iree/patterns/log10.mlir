// `math.log10` of f32: there is no code for it.
// 
// fails: undefined symbol: log10f

func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
  %r = flow.dispatch.region -> (tensor<64xf32>) {
      %e = tensor.empty() : tensor<64xf32>
      %m = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> (a)>], iterator_types = ["parallel"]}
          ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
      ^bb0(%in: f32, %out: f32):
        %v = math.log10 %in : f32
        linalg.yield %v : f32
      } -> tensor<64xf32>
      flow.return %m : tensor<64xf32>
  }
  return %r : tensor<64xf32>
}
