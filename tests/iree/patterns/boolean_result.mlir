// Two results of unknown size, one of them booleans that the other reads.
// 
// fails: write affecting operations on global resources are restricted to workgroup distributed contexts

func.func @main(%x: tensor<3x?xf32>, %y: tensor<3xf32>) -> (tensor<3x?xi1>, tensor<3x?xf32>) {
  %one = arith.constant 1 : index
  %n = tensor.dim %x, %one : tensor<3x?xf32>
  %r, %s = flow.dispatch.region -> (tensor<3x?xi1>{%n}, tensor<3x?xf32>{%n}) {
      %d = tensor.empty(%n) : tensor<3x?xi1>
      %e = tensor.empty(%n) : tensor<3x?xf32>
      %c = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a)>, affine_map<(a, b) -> (a, b)>],
          iterator_types = ["parallel", "parallel"]} ins(%x, %y : tensor<3x?xf32>, tensor<3xf32>) outs(%d : tensor<3x?xi1>) {
      ^bb0(%in: f32, %in2: f32, %out: i1):
        %v = arith.cmpf ogt, %in, %in2 : f32
        linalg.yield %v : i1
      } -> tensor<3x?xi1>
      %m = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a)>,
          affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]}
          ins(%c, %x, %y : tensor<3x?xi1>, tensor<3x?xf32>, tensor<3xf32>) outs(%e : tensor<3x?xf32>) {
      ^bb0(%in: i1, %in2: f32, %in3: f32, %out: f32):
        %v = arith.select %in, %in2, %in3 : f32
        linalg.yield %v : f32
      } -> tensor<3x?xf32>
      flow.return %c, %m : tensor<3x?xi1>, tensor<3x?xf32>
  }
  return %r, %s : tensor<3x?xi1>, tensor<3x?xf32>
}
