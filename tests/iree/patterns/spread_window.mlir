// A nearest-neighbour upsampling that a padded convolution reads is made whole, on the stack of each tile.
// 
// fails: all stack allocations need to be hoisted to the entry block of the function

func.func @main(%x: tensor<30x20x16xf32>, %k: tensor<3x3x16x16xf32>) -> tensor<60x40x16xf32> {
  %r = flow.dispatch.region -> (tensor<60x40x16xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<60x40x16xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<60x40x16xf32>) -> tensor<60x40x16xf32>
      %u = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a floordiv 2, b floordiv 2, c)>, affine_map<(a, b, c) -> (a, b, c)>],
          iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<30x20x16xf32>) outs(%e : tensor<60x40x16xf32>) {
      ^bb0(%in: f32, %out: f32):
        linalg.yield %in : f32
      } -> tensor<60x40x16xf32>
      %p = tensor.pad %u low[1, 1, 0] high[1, 1, 0] {
      ^bb0(%a: index, %b: index, %c: index):
        tensor.yield %zero : f32
      } : tensor<60x40x16xf32> to tensor<62x42x16xf32>
      %m = linalg.generic {indexing_maps = [affine_map<(a, b, c, i, j, k) -> (a + i, b + j, k)>,
          affine_map<(a, b, c, i, j, k) -> (i, j, k, c)>, affine_map<(a, b, c, i, j, k) -> (a, b, c)>],
          iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
          ins(%p, %k : tensor<62x42x16xf32>, tensor<3x3x16x16xf32>) outs(%f : tensor<60x40x16xf32>) {
      ^bb0(%in: f32, %in2: f32, %out: f32):
        %v = arith.mulf %in, %in2 : f32
        %s = arith.addf %out, %v : f32
        linalg.yield %s : f32
      } -> tensor<60x40x16xf32>
      flow.return %m : tensor<60x40x16xf32>
  }
  return %r : tensor<60x40x16xf32>
}
