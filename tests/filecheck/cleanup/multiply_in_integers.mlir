// RUN: fuseline opt %s -p multiply-in-integers --split-input-file --print-locations | filecheck %s

// Operands become centred integers, of 8 bits where they are constants; the product of the scales follows the sum, per column.
// CHECK-LABEL: func.func @product
// CHECK: arith.subi
// CHECK-NEXT: arith.trunci %{{.*}} : i32 to i16
// CHECK: arith.constant dense_resource<{{.*}}> : tensor<3x2xi8> loc("w")
// CHECK: linalg.generic {{.*}} tensor<4x3xi16>, tensor<3x2xi8>{{.*}} tensor<4x2xi32>
// CHECK: arith.extsi %{{.*}} : i16 to i32
// CHECK-NEXT: arith.extsi %{{.*}} : i8 to i32
// CHECK-NEXT: arith.muli
// CHECK-NEXT: arith.addi
// CHECK: } -> tensor<4x2xi32> loc("mm")
// CHECK: arith.constant 5.000000e-01 : f32
// CHECK-NEXT: arith.mulf
// CHECK: } -> tensor<2xf32>
// CHECK: arith.sitofp
// CHECK-NEXT: arith.mulf
// CHECK: } -> tensor<4x2xf32>
// CHECK-NOT: linalg.generic
func.func @product(%x: tensor<4x3xi8>) -> tensor<4x2xf32> {
  %xe = tensor.empty() : tensor<4x3xf32>
  %xd = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x3xi8>) outs(%xe : tensor<4x3xf32>) {
  ^bb0(%a: i8, %o: f32):
    %n = arith.extsi %a : i8 to i32
    %z = arith.constant 3 : i32
    %c = arith.subi %n, %z : i32
    %f = arith.sitofp %c : i32 to f32
    %s = arith.constant 0.5 : f32
    %r = arith.mulf %f, %s : f32
    linalg.yield %r : f32
  } -> tensor<4x3xf32> loc("x")
  %weight = arith.constant dense<[[1, -2], [3, -128], [127, 0]]> : tensor<3x2xi8>
  %ws = arith.constant dense<[0.5, 0.25]> : tensor<2xf32>
  %we = tensor.empty() : tensor<3x2xf32>
  %wd = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%weight, %ws : tensor<3x2xi8>, tensor<2xf32>) outs(%we : tensor<3x2xf32>) {
  ^bb0(%a: i8, %s: f32, %o: f32):
    %n = arith.extsi %a : i8 to i32
    %z = arith.constant 0 : i32
    %c = arith.subi %n, %z : i32
    %f = arith.sitofp %c : i32 to f32
    %r = arith.mulf %f, %s : f32
    linalg.yield %r : f32
  } -> tensor<3x2xf32> loc("w")
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x2xf32>) -> tensor<4x2xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%xd, %wd : tensor<4x3xf32>, tensor<3x2xf32>) outs(%init : tensor<4x2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x2xf32> loc("mm")
  func.return %r : tensor<4x2xf32>
}

// -----

// What else reads the dequantised tensor reads the integers that are made of it.
// CHECK-LABEL: func.func @shared
// CHECK: %[[I:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<4x3xi8>) outs({{.*}} : tensor<4x3xi16>)
// CHECK: %[[D:.*]] = linalg.generic {{.*}} ins(%[[I]] : tensor<4x3xi16>)
// CHECK: linalg.generic {{.*}} ins(%[[I]], %{{.*}} : tensor<4x3xi16>, tensor<3x2xi8>)
// CHECK: func.return %{{.*}}, %[[D]]
func.func @shared(%x: tensor<4x3xi8>) -> (tensor<4x2xf32>, tensor<4x3xf32>) {
  %xe = tensor.empty() : tensor<4x3xf32>
  %xd = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x3xi8>) outs(%xe : tensor<4x3xf32>) {
  ^bb0(%a: i8, %o: f32):
    %n = arith.extsi %a : i8 to i32
    %z = arith.constant 3 : i32
    %c = arith.subi %n, %z : i32
    %f = arith.sitofp %c : i32 to f32
    %s = arith.constant 0.5 : f32
    %r = arith.mulf %f, %s : f32
    linalg.yield %r : f32
  } -> tensor<4x3xf32> loc("x")
  %weight = arith.constant dense<[[1, -2], [3, -128], [127, 0]]> : tensor<3x2xi8>
  %ws = arith.constant dense<[0.5, 0.25]> : tensor<2xf32>
  %we = tensor.empty() : tensor<3x2xf32>
  %wd = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%weight, %ws : tensor<3x2xi8>, tensor<2xf32>) outs(%we : tensor<3x2xf32>) {
  ^bb0(%a: i8, %s: f32, %o: f32):
    %n = arith.extsi %a : i8 to i32
    %z = arith.constant 0 : i32
    %c = arith.subi %n, %z : i32
    %f = arith.sitofp %c : i32 to f32
    %r = arith.mulf %f, %s : f32
    linalg.yield %r : f32
  } -> tensor<3x2xf32> loc("w")
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x2xf32>) -> tensor<4x2xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%xd, %wd : tensor<4x3xf32>, tensor<3x2xf32>) outs(%init : tensor<4x2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x2xf32> loc("mm")
  func.return %r, %xd : tensor<4x2xf32>, tensor<4x3xf32>
}

// -----

// Scales that are known at run time only: their product is taken with the sum. A centred weight may need 16 bits.
// CHECK-LABEL: func.func @run_time_scale
// CHECK: linalg.generic {{.*}} tensor<4x3xi16>, tensor<3x2xi16>{{.*}} tensor<4x2xi32>
// CHECK: linalg.generic {{.*}} tensor<4x2xi32>, tensor<f32>, tensor<2xf32>
// CHECK: arith.mulf
// CHECK-NEXT: arith.sitofp
// CHECK-NEXT: arith.mulf
func.func @run_time_scale(%x: tensor<4x3xi8>, %xs: tensor<f32>) -> tensor<4x2xf32> {
  %xe = tensor.empty() : tensor<4x3xf32>
  %xd = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> ()>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x, %xs : tensor<4x3xi8>, tensor<f32>) outs(%xe : tensor<4x3xf32>) {
  ^bb0(%a: i8, %s: f32, %o: f32):
    %n = arith.extui %a : i8 to i32
    %z = arith.constant 3 : i32
    %c = arith.subi %n, %z : i32
    %f = arith.sitofp %c : i32 to f32
    %r = arith.mulf %f, %s : f32
    linalg.yield %r : f32
  } -> tensor<4x3xf32> loc("x")
  %weight = arith.constant dense<[[1, -2], [3, -128], [127, 0]]> : tensor<3x2xi8>
  %ws = arith.constant dense<[0.5, 0.25]> : tensor<2xf32>
  %we = tensor.empty() : tensor<3x2xf32>
  %wd = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%weight, %ws : tensor<3x2xi8>, tensor<2xf32>) outs(%we : tensor<3x2xf32>) {
  ^bb0(%a: i8, %s: f32, %o: f32):
    %n = arith.extsi %a : i8 to i32
    %z = arith.constant 5 : i32
    %c = arith.subi %n, %z : i32
    %f = arith.sitofp %c : i32 to f32
    %r = arith.mulf %f, %s : f32
    linalg.yield %r : f32
  } -> tensor<3x2xf32> loc("w")
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x2xf32>) -> tensor<4x2xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%xd, %wd : tensor<4x3xf32>, tensor<3x2xf32>) outs(%init : tensor<4x2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x2xf32> loc("mm")
  func.return %r : tensor<4x2xf32>
}

// -----

// Padding stays padding with zeros, and a reshape a reshape.
// CHECK-LABEL: func.func @moved
// CHECK: tensor<6xi16> to tensor<8xi16>
// CHECK: tensor.expand_shape {{.*}} : tensor<8xi16> into tensor<2x4xi16>
// CHECK: linalg.generic {{.*}} tensor<2x4xi16>, tensor<4x2xi16>{{.*}} tensor<2x2xi32>
func.func @moved(%x: tensor<6xi8>, %y: tensor<2x4xi8>) -> tensor<2x2xf32> {
  %xe = tensor.empty() : tensor<6xf32>
  %xd = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<6xi8>) outs(%xe : tensor<6xf32>) {
  ^bb0(%a: i8, %o: f32):
    %n = arith.extsi %a : i8 to i32
    %z = arith.constant -7 : i32
    %c = arith.subi %n, %z : i32
    %f = arith.sitofp %c : i32 to f32
    %s = arith.constant 0.5 : f32
    %r = arith.mulf %f, %s : f32
    linalg.yield %r : f32
  } -> tensor<6xf32> loc("x")
  %pz = arith.constant 0.0 : f32
  %pad = tensor.pad %xd low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %pz : f32
  } : tensor<6xf32> to tensor<8xf32>
  %open = tensor.expand_shape %pad [[0, 1]] output_shape [2, 4] : tensor<8xf32> into tensor<2x4xf32>
  %ye = tensor.empty() : tensor<2x4xf32>
  %yd = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<2x4xi8>) outs(%ye : tensor<2x4xf32>) {
  ^bb0(%a: i8, %o: f32):
    %n = arith.extsi %a : i8 to i32
    %z = arith.constant 9 : i32
    %c = arith.subi %n, %z : i32
    %f = arith.sitofp %c : i32 to f32
    %s = arith.constant 0.125 : f32
    %r = arith.mulf %f, %s : f32
    linalg.yield %r : f32
  } -> tensor<2x4xf32> loc("y")
  %te = tensor.empty() : tensor<4x2xf32>
  %yt = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%yd : tensor<2x4xf32>) outs(%te : tensor<4x2xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<4x2xf32> loc("t")
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<2x2xf32>) -> tensor<2x2xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%open, %yt : tensor<2x4xf32>, tensor<4x2xf32>) outs(%init : tensor<2x2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<2x2xf32> loc("mm")
  func.return %r : tensor<2x2xf32>
}

// -----

// A scale that varies along the sum cannot follow it.
// CHECK: mm: not computed in integers of 16 bits (scale-in-sum): a scale that varies along the sum
// CHECK-LABEL: func.func @scale_in_sum
// CHECK-NOT: arith.muli
func.func @scale_in_sum(%x: tensor<4x3xi8>) -> tensor<4x2xf32> {
  %xe = tensor.empty() : tensor<4x3xf32>
  %xd = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x3xi8>) outs(%xe : tensor<4x3xf32>) {
  ^bb0(%a: i8, %o: f32):
    %n = arith.extsi %a : i8 to i32
    %z = arith.constant 3 : i32
    %c = arith.subi %n, %z : i32
    %f = arith.sitofp %c : i32 to f32
    %s = arith.constant 0.5 : f32
    %r = arith.mulf %f, %s : f32
    linalg.yield %r : f32
  } -> tensor<4x3xf32> loc("x")
  %weight = arith.constant dense<[[1, -2], [3, -128], [127, 0]]> : tensor<3x2xi8>
  %ws = arith.constant dense<[0.5, 0.25, 0.75]> : tensor<3xf32>
  %we = tensor.empty() : tensor<3x2xf32>
  %wd = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%weight, %ws : tensor<3x2xi8>, tensor<3xf32>) outs(%we : tensor<3x2xf32>) {
  ^bb0(%a: i8, %s: f32, %o: f32):
    %n = arith.extsi %a : i8 to i32
    %z = arith.constant 0 : i32
    %c = arith.subi %n, %z : i32
    %f = arith.sitofp %c : i32 to f32
    %r = arith.mulf %f, %s : f32
    linalg.yield %r : f32
  } -> tensor<3x2xf32> loc("w")
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x2xf32>) -> tensor<4x2xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%xd, %wd : tensor<4x3xf32>, tensor<3x2xf32>) outs(%init : tensor<4x2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x2xf32> loc("mm")
  func.return %r : tensor<4x2xf32>
}

// -----

// The sum starts from something else.
// CHECK: mm: not computed in integers of 16 bits (not-from-zero): the sum starts from something else than 0
// CHECK-LABEL: func.func @not_from_zero
// CHECK-NOT: arith.muli
func.func @not_from_zero(%x: tensor<4x3xi8>) -> tensor<4x2xf32> {
  %xe = tensor.empty() : tensor<4x3xf32>
  %xd = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x3xi8>) outs(%xe : tensor<4x3xf32>) {
  ^bb0(%a: i8, %o: f32):
    %n = arith.extsi %a : i8 to i32
    %z = arith.constant 3 : i32
    %c = arith.subi %n, %z : i32
    %f = arith.sitofp %c : i32 to f32
    %s = arith.constant 0.5 : f32
    %r = arith.mulf %f, %s : f32
    linalg.yield %r : f32
  } -> tensor<4x3xf32> loc("x")
  %weight = arith.constant dense<[[1, -2], [3, -128], [127, 0]]> : tensor<3x2xi8>
  %ws = arith.constant dense<[0.5, 0.25]> : tensor<2xf32>
  %we = tensor.empty() : tensor<3x2xf32>
  %wd = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%weight, %ws : tensor<3x2xi8>, tensor<2xf32>) outs(%we : tensor<3x2xf32>) {
  ^bb0(%a: i8, %s: f32, %o: f32):
    %n = arith.extsi %a : i8 to i32
    %z = arith.constant 0 : i32
    %c = arith.subi %n, %z : i32
    %f = arith.sitofp %c : i32 to f32
    %r = arith.mulf %f, %s : f32
    linalg.yield %r : f32
  } -> tensor<3x2xf32> loc("w")
  %zero = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<4x2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x2xf32>) -> tensor<4x2xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%xd, %wd : tensor<4x3xf32>, tensor<3x2xf32>) outs(%init : tensor<4x2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x2xf32> loc("mm")
  func.return %r : tensor<4x2xf32>
}

// -----

// So many products may exceed 32 bits.
// CHECK: mm: not computed in integers of 16 bits (sum-overflow): the sum may not fit 32 bits
// CHECK-LABEL: func.func @overflow
// CHECK-NOT: arith.muli
func.func @overflow(%x: tensor<4x70000xi8>, %xs: tensor<f32>) -> tensor<4x2xf32> {
  %xe = tensor.empty() : tensor<4x70000xf32>
  %xd = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> ()>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x, %xs : tensor<4x70000xi8>, tensor<f32>) outs(%xe : tensor<4x70000xf32>) {
  ^bb0(%a: i8, %s: f32, %o: f32):
    %n = arith.extui %a : i8 to i32
    %z = arith.constant 3 : i32
    %c = arith.subi %n, %z : i32
    %f = arith.sitofp %c : i32 to f32
    %r = arith.mulf %f, %s : f32
    linalg.yield %r : f32
  } -> tensor<4x70000xf32> loc("x")
  %weight = arith.constant dense<-128> : tensor<70000x2xi8>
  %ws = arith.constant dense<[0.5, 0.25]> : tensor<2xf32>
  %we = tensor.empty() : tensor<70000x2xf32>
  %wd = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%weight, %ws : tensor<70000x2xi8>, tensor<2xf32>) outs(%we : tensor<70000x2xf32>) {
  ^bb0(%a: i8, %s: f32, %o: f32):
    %n = arith.extsi %a : i8 to i32
    %z = arith.constant 5 : i32
    %c = arith.subi %n, %z : i32
    %f = arith.sitofp %c : i32 to f32
    %r = arith.mulf %f, %s : f32
    linalg.yield %r : f32
  } -> tensor<70000x2xf32> loc("w")
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x2xf32>) -> tensor<4x2xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%xd, %wd : tensor<4x70000xf32>, tensor<70000x2xf32>) outs(%init : tensor<4x2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x2xf32> loc("mm")
  func.return %r : tensor<4x2xf32>
}

// -----

// Integers of 16 bits have differences of 17.
// CHECK-LABEL: func.func @wide
// CHECK-NOT: arith.muli
func.func @wide(%x: tensor<4x3xi16>) -> tensor<4x2xf32> {
  %xe = tensor.empty() : tensor<4x3xf32>
  %xd = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x3xi16>) outs(%xe : tensor<4x3xf32>) {
  ^bb0(%a: i16, %o: f32):
    %n = arith.extsi %a : i16 to i32
    %z = arith.constant 3 : i32
    %c = arith.subi %n, %z : i32
    %f = arith.sitofp %c : i32 to f32
    %s = arith.constant 0.5 : f32
    %r = arith.mulf %f, %s : f32
    linalg.yield %r : f32
  } -> tensor<4x3xf32> loc("x")
  %weight = arith.constant dense<[[1, -2], [3, -128], [127, 0]]> : tensor<3x2xi8>
  %ws = arith.constant dense<[0.5, 0.25]> : tensor<2xf32>
  %we = tensor.empty() : tensor<3x2xf32>
  %wd = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%weight, %ws : tensor<3x2xi8>, tensor<2xf32>) outs(%we : tensor<3x2xf32>) {
  ^bb0(%a: i8, %s: f32, %o: f32):
    %n = arith.extsi %a : i8 to i32
    %z = arith.constant 0 : i32
    %c = arith.subi %n, %z : i32
    %f = arith.sitofp %c : i32 to f32
    %r = arith.mulf %f, %s : f32
    linalg.yield %r : f32
  } -> tensor<3x2xf32> loc("w")
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x2xf32>) -> tensor<4x2xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%xd, %wd : tensor<4x3xf32>, tensor<3x2xf32>) outs(%init : tensor<4x2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x2xf32> loc("mm")
  func.return %r : tensor<4x2xf32>
}

// -----

// Padding that is no zero would be scaled.
// CHECK-LABEL: func.func @padded_with_ones
// CHECK-NOT: arith.muli
func.func @padded_with_ones(%x: tensor<4x3xi8>) -> tensor<4x2xf32> {
  %xe = tensor.empty() : tensor<4x3xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x3xi8>) outs(%xe : tensor<4x3xf32>) {
  ^bb0(%a: i8, %o: f32):
    %n = arith.extsi %a : i8 to i32
    %z = arith.constant 3 : i32
    %c = arith.subi %n, %z : i32
    %f = arith.sitofp %c : i32 to f32
    %s = arith.constant 0.5 : f32
    %r = arith.mulf %f, %s : f32
    linalg.yield %r : f32
  } -> tensor<4x3xf32> loc("x")
  %pz = arith.constant 1.0 : f32
  %xd = tensor.pad %d low[0, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %pz : f32
  } : tensor<4x3xf32> to tensor<4x3xf32>
  %weight = arith.constant dense<[[1, -2], [3, -128], [127, 0]]> : tensor<3x2xi8>
  %ws = arith.constant dense<[0.5, 0.25]> : tensor<2xf32>
  %we = tensor.empty() : tensor<3x2xf32>
  %wd = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%weight, %ws : tensor<3x2xi8>, tensor<2xf32>) outs(%we : tensor<3x2xf32>) {
  ^bb0(%a: i8, %s: f32, %o: f32):
    %n = arith.extsi %a : i8 to i32
    %z = arith.constant 0 : i32
    %c = arith.subi %n, %z : i32
    %f = arith.sitofp %c : i32 to f32
    %r = arith.mulf %f, %s : f32
    linalg.yield %r : f32
  } -> tensor<3x2xf32> loc("w")
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x2xf32>) -> tensor<4x2xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%xd, %wd : tensor<4x3xf32>, tensor<3x2xf32>) outs(%init : tensor<4x2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x2xf32> loc("mm")
  func.return %r : tensor<4x2xf32>
}

// -----

// A product that is in integers already: over narrower ones.
// CHECK-LABEL: func.func @integers
// CHECK: linalg.generic {{.*}} tensor<4x3xi16>, tensor<3x2xi16>{{.*}} tensor<4x2xi32>
// CHECK: } -> tensor<4x2xi32> loc("mm")
// CHECK-NEXT: func.return
func.func @integers(%x: tensor<4x3xi8>, %y: tensor<3x2xi8>) -> tensor<4x2xi32> {
  %xe = tensor.empty() : tensor<4x3xi32>
  %xc = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x3xi8>) outs(%xe : tensor<4x3xi32>) {
  ^bb0(%a: i8, %o: i32):
    %n = arith.extui %a : i8 to i32
    %z = arith.constant 128 : i32
    %c = arith.subi %n, %z : i32
    linalg.yield %c : i32
  } -> tensor<4x3xi32> loc("x")
  %ye = tensor.empty() : tensor<3x2xi32>
  %yc = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<3x2xi8>) outs(%ye : tensor<3x2xi32>) {
  ^bb0(%a: i8, %o: i32):
    %n = arith.extui %a : i8 to i32
    %z = arith.constant 7 : i32
    %c = arith.subi %n, %z : i32
    linalg.yield %c : i32
  } -> tensor<3x2xi32> loc("y")
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<4x2xi32>
  %init = linalg.fill ins(%zero : i32) outs(%e : tensor<4x2xi32>) -> tensor<4x2xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%xc, %yc : tensor<4x3xi32>, tensor<3x2xi32>) outs(%init : tensor<4x2xi32>) {
  ^bb0(%a: i32, %b: i32, %c: i32):
    %p = arith.muli %a, %b : i32
    %s = arith.addi %c, %p : i32
    linalg.yield %s : i32
  } -> tensor<4x2xi32> loc("mm")
  func.return %r : tensor<4x2xi32>
}

// -----

// A depthwise convolution of integers is one of f32 where its sums are exact there.
// CHECK-LABEL: func.func @depthwise
// CHECK: linalg.generic {{.*}} tensor<8x5xf32>, tensor<3x5xf32>{{.*}} tensor<6x5xf32>
// CHECK: arith.fptosi %{{.*}} : f32 to i32
func.func @depthwise(%x: tensor<8x5xi8>, %y: tensor<3x5xi8>) -> tensor<6x5xi32> {
  %xe = tensor.empty() : tensor<8x5xi32>
  %xc = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x5xi8>) outs(%xe : tensor<8x5xi32>) {
  ^bb0(%a: i8, %o: i32):
    %n = arith.extui %a : i8 to i32
    %z = arith.constant 128 : i32
    %c = arith.subi %n, %z : i32
    linalg.yield %c : i32
  } -> tensor<8x5xi32> loc("x")
  %ye = tensor.empty() : tensor<3x5xi32>
  %yc = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<3x5xi8>) outs(%ye : tensor<3x5xi32>) {
  ^bb0(%a: i8, %o: i32):
    %n = arith.extui %a : i8 to i32
    %z = arith.constant 7 : i32
    %c = arith.subi %n, %z : i32
    linalg.yield %c : i32
  } -> tensor<3x5xi32> loc("y")
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<6x5xi32>
  %init = linalg.fill ins(%zero : i32) outs(%e : tensor<6x5xi32>) -> tensor<6x5xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(x, c, k) -> (x + k, c)>, affine_map<(x, c, k) -> (k, c)>, affine_map<(x, c, k) -> (x, c)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%xc, %yc : tensor<8x5xi32>, tensor<3x5xi32>) outs(%init : tensor<6x5xi32>) {
  ^bb0(%a: i32, %b: i32, %c: i32):
    %p = arith.muli %a, %b : i32
    %s = arith.addi %c, %p : i32
    linalg.yield %s : i32
  } -> tensor<6x5xi32> loc("mm")
  func.return %r : tensor<6x5xi32>
}

// -----

// With as many products as these they are not.
// CHECK: mm: not computed in integers of 16 bits (narrow-groups): fewer than 16 output channels read the same input channels
// CHECK-LABEL: func.func @long_depthwise
// CHECK-NOT: xf32>
func.func @long_depthwise(%x: tensor<604x5xi8>, %y: tensor<600x5xi8>) -> tensor<5x5xi32> {
  %xe = tensor.empty() : tensor<604x5xi32>
  %xc = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<604x5xi8>) outs(%xe : tensor<604x5xi32>) {
  ^bb0(%a: i8, %o: i32):
    %n = arith.extui %a : i8 to i32
    %z = arith.constant 128 : i32
    %c = arith.subi %n, %z : i32
    linalg.yield %c : i32
  } -> tensor<604x5xi32> loc("x")
  %ye = tensor.empty() : tensor<600x5xi32>
  %yc = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<600x5xi8>) outs(%ye : tensor<600x5xi32>) {
  ^bb0(%a: i8, %o: i32):
    %n = arith.extui %a : i8 to i32
    %z = arith.constant 7 : i32
    %c = arith.subi %n, %z : i32
    linalg.yield %c : i32
  } -> tensor<600x5xi32> loc("y")
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<5x5xi32>
  %init = linalg.fill ins(%zero : i32) outs(%e : tensor<5x5xi32>) -> tensor<5x5xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(x, c, k) -> (x + k, c)>, affine_map<(x, c, k) -> (k, c)>, affine_map<(x, c, k) -> (x, c)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%xc, %yc : tensor<604x5xi32>, tensor<600x5xi32>) outs(%init : tensor<5x5xi32>) {
  ^bb0(%a: i32, %b: i32, %c: i32):
    %p = arith.muli %a, %b : i32
    %s = arith.addi %c, %p : i32
    linalg.yield %s : i32
  } -> tensor<5x5xi32> loc("mm")
  func.return %r : tensor<5x5xi32>
}

// -----

// Only the weight is quantised: the product is in f32, the weight stays in 8 bits, and its scale follows the sum.
// CHECK-LABEL: func.func @weight_only
// CHECK: linalg.generic {{.*}} tensor<4x3xf32>, tensor<3x2xi8>{{.*}} tensor<4x2xf32>
// CHECK: arith.sitofp %{{.*}} : i8 to f32
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: arith.addf
// CHECK: linalg.generic {{.*}} tensor<4x2xf32>, tensor<2xf32>
func.func @weight_only(%xd: tensor<4x3xf32>) -> tensor<4x2xf32> {
  %weight = arith.constant dense<[[1, -2], [3, -128], [127, 0]]> : tensor<3x2xi8>
  %ws = arith.constant dense<[0.5, 0.25]> : tensor<2xf32>
  %we = tensor.empty() : tensor<3x2xf32>
  %wd = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%weight, %ws : tensor<3x2xi8>, tensor<2xf32>) outs(%we : tensor<3x2xf32>) {
  ^bb0(%a: i8, %s: f32, %o: f32):
    %n = arith.extsi %a : i8 to i32
    %z = arith.constant 0 : i32
    %c = arith.subi %n, %z : i32
    %f = arith.sitofp %c : i32 to f32
    %r = arith.mulf %f, %s : f32
    linalg.yield %r : f32
  } -> tensor<3x2xf32> loc("w")
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x2xf32>) -> tensor<4x2xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%xd, %wd : tensor<4x3xf32>, tensor<3x2xf32>) outs(%init : tensor<4x2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x2xf32> loc("mm")
  func.return %r : tensor<4x2xf32>
}

// -----

// A weight that needs more than 8 bits when it is centred stays as it is.
// CHECK-LABEL: func.func @weight_of_16_bits
// CHECK-NOT: tensor<4x3xf32>, tensor<3x2xi8>
func.func @weight_of_16_bits(%xd: tensor<4x3xf32>) -> tensor<4x2xf32> {
  %weight = arith.constant dense<[[1, -2], [3, -128], [127, 0]]> : tensor<3x2xi8>
  %ws = arith.constant dense<[0.5, 0.25]> : tensor<2xf32>
  %we = tensor.empty() : tensor<3x2xf32>
  %wd = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%weight, %ws : tensor<3x2xi8>, tensor<2xf32>) outs(%we : tensor<3x2xf32>) {
  ^bb0(%a: i8, %s: f32, %o: f32):
    %n = arith.extsi %a : i8 to i32
    %z = arith.constant 5 : i32
    %c = arith.subi %n, %z : i32
    %f = arith.sitofp %c : i32 to f32
    %r = arith.mulf %f, %s : f32
    linalg.yield %r : f32
  } -> tensor<3x2xf32> loc("w")
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x2xf32>) -> tensor<4x2xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%xd, %wd : tensor<4x3xf32>, tensor<3x2xf32>) outs(%init : tensor<4x2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x2xf32> loc("mm")
  func.return %r : tensor<4x2xf32>
}

// -----

// So does one whose scale varies along the sum.
// CHECK-LABEL: func.func @weight_scaled_in_sum
// CHECK-NOT: tensor<4x3xf32>, tensor<3x2xi8>
func.func @weight_scaled_in_sum(%xd: tensor<4x3xf32>) -> tensor<4x2xf32> {
  %weight = arith.constant dense<[[1, -2], [3, -128], [127, 0]]> : tensor<3x2xi8>
  %ws = arith.constant dense<[0.5, 0.25, 0.75]> : tensor<3xf32>
  %we = tensor.empty() : tensor<3x2xf32>
  %wd = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%weight, %ws : tensor<3x2xi8>, tensor<3xf32>) outs(%we : tensor<3x2xf32>) {
  ^bb0(%a: i8, %s: f32, %o: f32):
    %n = arith.extsi %a : i8 to i32
    %z = arith.constant 0 : i32
    %c = arith.subi %n, %z : i32
    %f = arith.sitofp %c : i32 to f32
    %r = arith.mulf %f, %s : f32
    linalg.yield %r : f32
  } -> tensor<3x2xf32> loc("w")
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x2xf32>) -> tensor<4x2xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%xd, %wd : tensor<4x3xf32>, tensor<3x2xf32>) outs(%init : tensor<4x2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x2xf32> loc("mm")
  func.return %r : tensor<4x2xf32>
}
