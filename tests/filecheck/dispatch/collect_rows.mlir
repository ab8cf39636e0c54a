// RUN: fuseline opt %s -p form-dispatch-regions,clone-cheap-producers,outline-executables,collect-rows --split-input-file --verify-each | filecheck %s
// RUN: fuseline opt %s -p form-dispatch-regions,clone-cheap-producers,outline-executables,collect-rows,collect-rows --split-input-file --verify-each | filecheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#r = affine_map<(d0, d1) -> (d0)>
#c = affine_map<(d0, d1) -> (d1)>

// A row of the table is made whole for each row of the result, whose elements are inside then.
// CHECK-LABEL: func.func @rows_dispatch_0
// CHECK-SAME: grids = {{\[\[}}"90"]]
// CHECK: arith.addf
// CHECK: [[R:%[0-9a-z_]+]] = linalg.generic
// CHECK: tensor.extract
// CHECK: -> tensor<90x40xf32>
// CHECK: tensor.extract [[R]]
// CHECK: -> tensor<90x50xf32>
func.func @rows(%a: tensor<60x40xf32>, %b: tensor<60x40xf32>, %p: tensor<90xi64>, %q: tensor<50xi64>) -> tensor<90x50xf32> {
  %e = tensor.empty() : tensor<60x40xf32>
  %t = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %b : tensor<60x40xf32>, tensor<60x40xf32>) outs(%e : tensor<60x40xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %v = arith.addf %x, %y : f32
    linalg.yield %v : f32
  } -> tensor<60x40xf32>
  %g = tensor.empty() : tensor<90x50xf32>
  %s = linalg.generic {indexing_maps = [#r, #c, #id], iterator_types = ["parallel", "parallel"]} ins(%p, %q : tensor<90xi64>, tensor<50xi64>) outs(%g : tensor<90x50xf32>) {
  ^bb0(%i: i64, %j: i64, %o: f32):
    %k = arith.index_cast %i : i64 to index
    %l = arith.index_cast %j : i64 to index
    %v = tensor.extract %t[%k, %l] : tensor<60x40xf32>
    linalg.yield %v : f32
  } -> tensor<90x50xf32>
  func.return %s : tensor<90x50xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#r = affine_map<(d0, d1) -> (d0)>

// Rows that are taken whole lie along memory as they are.
// CHECK-LABEL: func.func @whole_dispatch_0
// CHECK-SAME: grids = {{\[\[}}"90", "40"]]
func.func @whole(%a: tensor<60x40xf32>, %b: tensor<60x40xf32>, %p: tensor<90xi64>) -> tensor<90x40xf32> {
  %e = tensor.empty() : tensor<60x40xf32>
  %t = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %b : tensor<60x40xf32>, tensor<60x40xf32>) outs(%e : tensor<60x40xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %v = arith.addf %x, %y : f32
    linalg.yield %v : f32
  } -> tensor<60x40xf32>
  %g = tensor.empty() : tensor<90x40xf32>
  %s = linalg.generic {indexing_maps = [#r, #id], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<90xi64>) outs(%g : tensor<90x40xf32>) {
  ^bb0(%i: i64, %o: f32):
    %k = arith.index_cast %i : i64 to index
    %l = linalg.index 1 : index
    %v = tensor.extract %t[%k, %l] : tensor<60x40xf32>
    linalg.yield %v : f32
  } -> tensor<90x40xf32>
  func.return %s : tensor<90x40xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#r = affine_map<(d0, d1) -> (d0)>
#c = affine_map<(d0, d1) -> (d1)>

// Most of a row would be made for nothing.
// CHECK-LABEL: func.func @few_dispatch_0
// CHECK-SAME: grids = {{\[\[}}"90", "10"]]
func.func @few(%a: tensor<60x40xf32>, %b: tensor<60x40xf32>, %p: tensor<90xi64>, %q: tensor<10xi64>) -> tensor<90x10xf32> {
  %e = tensor.empty() : tensor<60x40xf32>
  %t = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %b : tensor<60x40xf32>, tensor<60x40xf32>) outs(%e : tensor<60x40xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %v = arith.addf %x, %y : f32
    linalg.yield %v : f32
  } -> tensor<60x40xf32>
  %g = tensor.empty() : tensor<90x10xf32>
  %s = linalg.generic {indexing_maps = [#r, #c, #id], iterator_types = ["parallel", "parallel"]} ins(%p, %q : tensor<90xi64>, tensor<10xi64>) outs(%g : tensor<90x10xf32>) {
  ^bb0(%i: i64, %j: i64, %o: f32):
    %k = arith.index_cast %i : i64 to index
    %l = arith.index_cast %j : i64 to index
    %v = tensor.extract %t[%k, %l] : tensor<60x40xf32>
    linalg.yield %v : f32
  } -> tensor<90x10xf32>
  func.return %s : tensor<90x10xf32>
}
