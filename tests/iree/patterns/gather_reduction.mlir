// Rows that are gathered, kept, reduced and read again: an embedding and its layer norm.
// 
// fails: exceeded stack allocation limit of 32768 bytes

func.func @main(%i: tensor<128xi64>, %j: tensor<128xi64>, %t: tensor<1000x768xf32>, %u: tensor<1000x768xf32>) -> tensor<128x768xf32> {
  %r = flow.dispatch.region -> (tensor<128x768xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<128x768xf32>
      %n = tensor.empty() : tensor<128xf32>
      %f = linalg.fill ins(%zero : f32) outs(%n : tensor<128xf32>) -> tensor<128xf32>
      %g = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a)>, affine_map<(a, b) -> (a)>, affine_map<(a, b) -> (a, b)>],
          iterator_types = ["parallel", "parallel"]} ins(%i, %j : tensor<128xi64>, tensor<128xi64>) outs(%e : tensor<128x768xf32>) {
      ^bb0(%in: i64, %in2: i64, %out: f32):
        %row = arith.index_cast %in : i64 to index
        %row2 = arith.index_cast %in2 : i64 to index
        %column = linalg.index 1 : index
        %v = tensor.extract %t[%row, %column] : tensor<1000x768xf32>
        %w = tensor.extract %u[%row2, %column] : tensor<1000x768xf32>
        %s = arith.addf %v, %w : f32
        linalg.yield %s : f32
      } -> tensor<128x768xf32>
      %s = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a)>],
          iterator_types = ["parallel", "reduction"]} ins(%g : tensor<128x768xf32>) outs(%f : tensor<128xf32>) {
      ^bb0(%in: f32, %out: f32):
        %v = arith.addf %out, %in : f32
        linalg.yield %v : f32
      } -> tensor<128xf32>
      %d = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a)>, affine_map<(a, b) -> (a, b)>],
          iterator_types = ["parallel", "parallel"]} ins(%g, %s : tensor<128x768xf32>, tensor<128xf32>) outs(%e : tensor<128x768xf32>) {
      ^bb0(%in: f32, %in2: f32, %out: f32):
        %v = arith.subf %in, %in2 : f32
        linalg.yield %v : f32
      } -> tensor<128x768xf32>
      flow.return %d : tensor<128x768xf32>
  }
  return %r : tensor<128x768xf32>
}
