// What is computed and padded in one dispatch: the interior is written without its offset.
// 
// wrong

func.func @main(%x: tensor<112x112x64xf32>) -> tensor<114x114x64xf32> {
  %r = flow.dispatch.region -> (tensor<114x114x64xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<112x112x64xf32>
      %m = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]}
          ins(%x : tensor<112x112x64xf32>) outs(%e : tensor<112x112x64xf32>) {
      ^bb0(%in: f32, %out: f32):
        %v = arith.addf %in, %in : f32
        linalg.yield %v : f32
      } -> tensor<112x112x64xf32>
      %p = tensor.pad %m low[1, 1, 0] high[1, 1, 0] {
      ^bb0(%a: index, %b: index, %c: index):
        tensor.yield %zero : f32
      } : tensor<112x112x64xf32> to tensor<114x114x64xf32>
      flow.return %p : tensor<114x114x64xf32>
  }
  return %r : tensor<114x114x64xf32>
}
