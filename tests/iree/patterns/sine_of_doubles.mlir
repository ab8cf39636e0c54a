// `math.sin` of f64: there is no code for it.
// 
// fails: undefined symbol: sin

func.func @main(%x: tensor<64xf64>) -> tensor<64xf64> {
  %r = flow.dispatch.region -> (tensor<64xf64>) {
      %e = tensor.empty() : tensor<64xf64>
      %m = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> (a)>], iterator_types = ["parallel"]}
          ins(%x : tensor<64xf64>) outs(%e : tensor<64xf64>) {
      ^bb0(%in: f64, %out: f64):
        %v = math.sin %in : f64
        linalg.yield %v : f64
      } -> tensor<64xf64>
      flow.return %m : tensor<64xf64>
  }
  return %r : tensor<64xf64>
}
