// A constant of booleans as a resource.
// 
// crashes: ElementsAttr does not provide iteration facilities

func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %m = arith.constant dense_resource<mask> : tensor<8xi1>
  %r = flow.dispatch.region -> (tensor<8xf32>) {
      %e = tensor.empty() : tensor<8xf32>
      %s = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> (a)>, affine_map<(a) -> (a)>, affine_map<(a) -> (a)>],
          iterator_types = ["parallel"]} ins(%m, %x, %y : tensor<8xi1>, tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
      ^bb0(%in: i1, %in2: f32, %in3: f32, %out: f32):
        %v = arith.select %in, %in2, %in3 : f32
        linalg.yield %v : f32
      } -> tensor<8xf32>
      flow.return %s : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

{-#
  dialect_resources: {
    builtin: {
      mask: "0x010000000001000101000100"
    }
  }
#-}
