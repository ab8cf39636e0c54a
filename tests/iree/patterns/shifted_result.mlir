// A result that is also read, one row further on, by what makes the other result: each workgroup has its own tile only.
// 
// wrong

func.func @main(%x: tensor<128x128xf32>) -> (tensor<128x128xf32>, tensor<128x128xf32>) {
  %r, %s = flow.dispatch.region -> (tensor<128x128xf32>, tensor<128x128xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<128x128xf32>
      %m = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]}
          ins(%x : tensor<128x128xf32>) outs(%e : tensor<128x128xf32>) {
      ^bb0(%in: f32, %out: f32):
        %v = arith.addf %in, %in : f32
        linalg.yield %v : f32
      } -> tensor<128x128xf32>
      %t = tensor.extract_slice %m[0, 0] [127, 128] [1, 1] : tensor<128x128xf32> to tensor<127x128xf32>
      %p = tensor.pad %t low[1, 0] high[0, 0] {
      ^bb0(%a: index, %b: index):
        tensor.yield %zero : f32
      } : tensor<127x128xf32> to tensor<128x128xf32>
      flow.return %m, %p : tensor<128x128xf32>, tensor<128x128xf32>
  }
  return %r, %s : tensor<128x128xf32>, tensor<128x128xf32>
}
