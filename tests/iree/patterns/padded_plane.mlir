// A padded convolution of an image without channels: the pad is met in vector lanes.
// 
// crashes

func.func @main(%x: tensor<224x224xf32>, %k: tensor<3x3xf32>) -> tensor<224x224xf32> {
    %r = flow.dispatch.region -> (tensor<224x224xf32>) {
      %zero = arith.constant 0.000000e+00 : f32
      %e = tensor.empty() : tensor<224x224xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<224x224xf32>) -> tensor<224x224xf32>
      %p = tensor.pad %x low[1, 1] high[1, 1] {
      ^bb0(%a: index, %b: index):
        tensor.yield %zero : f32
      } : tensor<224x224xf32> to tensor<226x226xf32>
      %m = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0 + d2, d1 + d3)>,
          affine_map<(d0, d1, d2, d3) -> (d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1)>],
          iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
          ins(%p, %k : tensor<226x226xf32>, tensor<3x3xf32>) outs(%f : tensor<224x224xf32>) {
      ^bb0(%in: f32, %in2: f32, %out: f32):
        %v = arith.mulf %in, %in2 : f32
        %s = arith.addf %out, %v : f32
        linalg.yield %s : f32
      } -> tensor<224x224xf32>
      flow.return %m : tensor<224x224xf32>
    }
    return %r : tensor<224x224xf32>
}
