// RUN: fuseline opt %s -p generalize-named-ops,refine-dims --split-input-file --verify-each | filecheck %s

// Operands tell the dimensions of both sides apart: both are walked in the sizes that fit both.
// CHECK-LABEL: func.func @both_sides
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<4x3x2xf32>, tensor<3x2xf32>)
// CHECK-NOT: tensor.collapse_shape {{.*}} into tensor<24xf32>
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %c : tensor<4x3x2xf32>, tensor<2xf32>)
// CHECK: [[Y:%.*]] = tensor.collapse_shape {{.*}} : tensor<4x3x2xf32> into tensor<12x2xf32>
// CHECK-NEXT: return [[Y]]
func.func @both_sides(%x: tensor<4x6xf32>, %b: tensor<6xf32>, %c: tensor<2xf32>) -> tensor<12x2xf32> {
  %e0 = tensor.empty() : tensor<4x6xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x, %b : tensor<4x6xf32>, tensor<6xf32>) outs(%e0 : tensor<4x6xf32>) {
  ^bb0(%in: f32, %s: f32, %out: f32):
    %v = arith.addf %in, %s : f32
    linalg.yield %v : f32
  } -> tensor<4x6xf32>
  %flat = tensor.collapse_shape %a [[0, 1]] : tensor<4x6xf32> into tensor<24xf32>
  %seen = tensor.expand_shape %flat [[0, 1]] output_shape [12, 2] : tensor<24xf32> into tensor<12x2xf32>
  %e1 = tensor.empty() : tensor<12x2xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%seen, %c : tensor<12x2xf32>, tensor<2xf32>) outs(%e1 : tensor<12x2xf32>) {
  ^bb0(%in: f32, %s: f32, %out: f32):
    %v = arith.mulf %in, %s : f32
    linalg.yield %v : f32
  } -> tensor<12x2xf32>
  return %y : tensor<12x2xf32>
}

// -----

// Rows of 600 would be walked in rows of 2: 240,000 elements one by one cost more than the launch that is saved.
// CHECK-LABEL: func.func @short_rows
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<400x600xf32>)
func.func @short_rows(%x: tensor<400x600xf32>, %b: tensor<600xf32>, %c: tensor<2xf32>) -> tensor<120000x2xf32> {
  %e0 = tensor.empty() : tensor<400x600xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x, %b : tensor<400x600xf32>, tensor<600xf32>) outs(%e0 : tensor<400x600xf32>) {
  ^bb0(%in: f32, %s: f32, %out: f32):
    %v = arith.addf %in, %s : f32
    linalg.yield %v : f32
  } -> tensor<400x600xf32>
  %flat = tensor.collapse_shape %a [[0, 1]] : tensor<400x600xf32> into tensor<240000xf32>
  %seen = tensor.expand_shape %flat [[0, 1]] output_shape [120000, 2] : tensor<240000xf32> into tensor<120000x2xf32>
  %e1 = tensor.empty() : tensor<120000x2xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%seen, %c : tensor<120000x2xf32>, tensor<2xf32>) outs(%e1 : tensor<120000x2xf32>) {
  ^bb0(%in: f32, %s: f32, %out: f32):
    %v = arith.mulf %in, %s : f32
    linalg.yield %v : f32
  } -> tensor<120000x2xf32>
  return %y : tensor<120000x2xf32>
}

// -----

// A product whose rows a depthwise window reads as an image makes that image.
// CHECK-LABEL: func.func @image_of_a_window
// CHECK: [[X:%.*]] = tensor.expand_shape %x {{.*}} into tensor<12x12x16xf32>
// CHECK: linalg.generic {{.*}} ins([[X]], %w : tensor<12x12x16xf32>, tensor<16x32xf32>)
// CHECK-NOT: tensor<12x12x32xf32> into
// CHECK: return
func.func @image_of_a_window(%x: tensor<144x16xf32>, %w: tensor<16x32xf32>, %f: tensor<3x3x32xf32>) -> tensor<10x10x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<144x32xf32>
  %i0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<144x32xf32>) -> tensor<144x32xf32>
  %m = linalg.matmul ins(%x, %w : tensor<144x16xf32>, tensor<16x32xf32>) outs(%i0 : tensor<144x32xf32>) -> tensor<144x32xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%m : tensor<144x32xf32>) outs(%e0 : tensor<144x32xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.maximumf %in, %zero : f32
    linalg.yield %v : f32
  } -> tensor<144x32xf32>
  %image = tensor.expand_shape %r [[0, 1], [2]] output_shape [12, 12, 32] : tensor<144x32xf32> into tensor<12x12x32xf32>
  %e1 = tensor.empty() : tensor<10x10x32xf32>
  %i1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<10x10x32xf32>) -> tensor<10x10x32xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(h, w, c, k, l) -> (h + k, w + l, c)>, affine_map<(h, w, c, k, l) -> (k, l, c)>, affine_map<(h, w, c, k, l) -> (h, w, c)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%image, %f : tensor<12x12x32xf32>, tensor<3x3x32xf32>) outs(%i1 : tensor<10x10x32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<10x10x32xf32>
  return %y : tensor<10x10x32xf32>
}

// -----

// 130x130 pixels of 16 channels do not lie between the two, but bands of their rows do.
// CHECK-LABEL: func.func @large_image_in_bands
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %w : tensor<130x130x16xf32>, tensor<16x32xf32>)
func.func @large_image_in_bands(%x: tensor<16900x16xf32>, %w: tensor<16x32xf32>, %f: tensor<3x3x32xf32>) -> tensor<128x128x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<16900x32xf32>
  %i0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<16900x32xf32>) -> tensor<16900x32xf32>
  %m = linalg.matmul ins(%x, %w : tensor<16900x16xf32>, tensor<16x32xf32>) outs(%i0 : tensor<16900x32xf32>) -> tensor<16900x32xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%m : tensor<16900x32xf32>) outs(%e0 : tensor<16900x32xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.maximumf %in, %zero : f32
    linalg.yield %v : f32
  } -> tensor<16900x32xf32>
  %image = tensor.expand_shape %r [[0, 1], [2]] output_shape [130, 130, 32] : tensor<16900x32xf32> into tensor<130x130x32xf32>
  %e1 = tensor.empty() : tensor<128x128x32xf32>
  %i1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<128x128x32xf32>) -> tensor<128x128x32xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(h, w, c, k, l) -> (h + k, w + l, c)>, affine_map<(h, w, c, k, l) -> (k, l, c)>, affine_map<(h, w, c, k, l) -> (h, w, c)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%image, %f : tensor<130x130x32xf32>, tensor<3x3x32xf32>) outs(%i1 : tensor<128x128x32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<128x128x32xf32>
  return %y : tensor<128x128x32xf32>
}

// -----

// Rows of products of 1024 numbers are not computed twice: the product keeps its long rows.
// CHECK-LABEL: func.func @large_image_of_a_window
// CHECK: linalg.generic {{.*}} ins(%x, %w : tensor<16900x1024xf32>, tensor<1024x32xf32>)
func.func @large_image_of_a_window(%x: tensor<16900x1024xf32>, %w: tensor<1024x32xf32>, %f: tensor<3x3x32xf32>) -> tensor<128x128x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<16900x32xf32>
  %i0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<16900x32xf32>) -> tensor<16900x32xf32>
  %m = linalg.matmul ins(%x, %w : tensor<16900x1024xf32>, tensor<1024x32xf32>) outs(%i0 : tensor<16900x32xf32>) -> tensor<16900x32xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%m : tensor<16900x32xf32>) outs(%e0 : tensor<16900x32xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.maximumf %in, %zero : f32
    linalg.yield %v : f32
  } -> tensor<16900x32xf32>
  %image = tensor.expand_shape %r [[0, 1], [2]] output_shape [130, 130, 32] : tensor<16900x32xf32> into tensor<130x130x32xf32>
  %e1 = tensor.empty() : tensor<128x128x32xf32>
  %i1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<128x128x32xf32>) -> tensor<128x128x32xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(h, w, c, k, l) -> (h + k, w + l, c)>, affine_map<(h, w, c, k, l) -> (k, l, c)>, affine_map<(h, w, c, k, l) -> (h, w, c)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%image, %f : tensor<130x130x32xf32>, tensor<3x3x32xf32>) outs(%i1 : tensor<128x128x32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<128x128x32xf32>
  return %y : tensor<128x128x32xf32>
}

// -----

// The channels of a window's image stay one loop; sums of them are made in groups of the reshape that there is.
// CHECK-LABEL: func.func @sums_go_over_to_a_reshape
// CHECK: [[IMAGE:%.*]] = tensor.expand_shape {{.*}} : tensor<7x6xf32> into tensor<7x3x2xf32>
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction", "parallel", "parallel"]} ins([[IMAGE]] : tensor<7x3x2xf32>)
// CHECK-NOT: tensor<6xf32>
func.func @sums_go_over_to_a_reshape(%x: tensor<9x6xf32>, %f: tensor<3x6xf32>, %c: tensor<3xf32>) -> (tensor<7x3x2xf32>, tensor<3x2xf32>) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<7x6xf32>
  %i0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<7x6xf32>) -> tensor<7x6xf32>
  %w = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i + k, j)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %f : tensor<9x6xf32>, tensor<3x6xf32>) outs(%i0 : tensor<7x6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<7x6xf32>
  %e1 = tensor.empty() : tensor<6xf32>
  %i1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<6xf32>) -> tensor<6xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]} ins(%w : tensor<7x6xf32>) outs(%i1 : tensor<6xf32>) {
  ^bb0(%in: f32, %o: f32):
    %s = arith.addf %o, %in : f32
    linalg.yield %s : f32
  } -> tensor<6xf32>
  %read = tensor.expand_shape %w [[0], [1, 2]] output_shape [7, 3, 2] : tensor<7x6xf32> into tensor<7x3x2xf32>
  %e2 = tensor.empty() : tensor<7x3x2xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (j)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%read, %c : tensor<7x3x2xf32>, tensor<3xf32>) outs(%e2 : tensor<7x3x2xf32>) {
  ^bb0(%in: f32, %g: f32, %o: f32):
    %v = arith.mulf %in, %g : f32
    linalg.yield %v : f32
  } -> tensor<7x3x2xf32>
  %sums = tensor.expand_shape %sum [[0, 1]] output_shape [3, 2] : tensor<6xf32> into tensor<3x2xf32>
  %e3 = tensor.empty() : tensor<3x2xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%sums, %c : tensor<3x2xf32>, tensor<3xf32>) outs(%e3 : tensor<3x2xf32>) {
  ^bb0(%in: f32, %g: f32, %o: f32):
    %v = arith.mulf %in, %g : f32
    linalg.yield %v : f32
  } -> tensor<3x2xf32>
  return %y, %z : tensor<7x3x2xf32>, tensor<3x2xf32>
}
