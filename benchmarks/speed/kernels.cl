// SPDX-License-Identifier: Apache-2.0
// The measured kernels in OpenCL C, with the parameters and launches of the PTO ones.

kernel void vector_add(global const float* a, global const float* b, global float* o, uint n) {
  const uint i = get_global_id(0);
  if (i < n) {
    o[i] = a[i] + b[i];
  }
}

kernel void saxpy(global const float* x, global float* y, float alpha, uint n) {
  for (uint i = get_global_id(0); i < n; i += get_global_size(0)) {
    y[i] = fma(alpha, x[i], y[i]);
  }
}

kernel void exp_log(global const float* x, global float* y, uint n) {
  const uint i = get_global_id(0);
  if (i >= n) {
    return;
  }
  const float h = x[i] * 0.5f;
  const float e = exp(h);
  const float f = fma(e, e, 1.0f);
  const float l = log(f);
  float p = fma(l, 0.25f, x[i]);
  p = fma(p, l, 0.125f);
  p = fma(p, l, -0.5f);
  p = fma(p, l, 1.5f);
  p = fma(p, l, e);
  p = fma(p, h, -0.75f);
  y[i] = (p - x[i] + f) * 0.0625f;
}

kernel void mandelbrot(global uint* out, uint width, uint height, float x0, float y0, float dx,
                       float dy, uint limit) {
  const uint x = get_global_id(0);
  const uint y = get_global_id(1);
  if (x >= width || y >= height) {
    return;
  }
  const float cx = fma((float)x, dx, x0);
  const float cy = fma((float)y, dy, y0);
  float re = 0, im = 0, re2 = 0, im2 = 0;
  uint count = 0;
  while (count < limit && re2 + im2 <= 4.0f) {
    im = fma(re + re, im, cy);
    re = re2 - im2 + cx;
    re2 = re * re;
    im2 = im * im;
    ++count;
  }
  out[y * width + x] = count;
}

kernel void block_sum(global const float* x, global float* sums, uint n) {
  local float partial[256];
  const uint lane = get_local_id(0);
  float sum = 0;
  for (uint i = get_global_id(0); i < n; i += get_global_size(0)) {
    sum += x[i];
  }
  partial[lane] = sum;
  for (uint half_size = 128; half_size != 0; half_size /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < half_size) {
      partial[lane] += partial[lane + half_size];
    }
  }
  if (lane == 0) {
    sums[get_group_id(0)] = partial[0];
  }
}

kernel void histogram_shared(global const uchar* x, global uint* bins, uint n) {
  local uint counts[256];
  const uint lane = get_local_id(0);
  counts[lane] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint i = get_global_id(0); i < n; i += get_global_size(0)) {
    atomic_inc(&counts[x[i]]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (counts[lane] != 0) {
    atomic_add(&bins[lane], counts[lane]);
  }
}

kernel void transpose_padded(global const float* in, global float* out, uint rows, uint cols) {
  local float tile[32][33];
  const uint x = get_local_id(0);
  const uint y = get_local_id(1);
  const uint col = get_group_id(0) * 32;
  const uint row = get_group_id(1) * 32;
  for (uint i = y; i < 32; i += 8) {
    tile[i][x] = in[(row + i) * cols + col + x];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint i = y; i < 32; i += 8) {
    out[(col + i) * rows + row + x] = tile[x][i];
  }
}

kernel void spmv_lane(global const float* values, global const uint* columns,
                      global const uint* row_start, global const float* x, global float* y,
                      uint rows) {
  const uint row = get_global_id(0);
  if (row >= rows) {
    return;
  }
  float sum = 0;
  for (uint i = row_start[row]; i < row_start[row + 1]; ++i) {
    sum = fma(values[i], x[columns[i]], sum);
  }
  y[row] = sum;
}

// A tile of 64 x 64 of C a group, 4 x 4 of it a lane, slices of 16 through local memory.
kernel void matmul_lanes(global const float* a, global const float* b, global float* c, uint m,
                         uint n, uint k) {
  local float as[16][68];
  local float bs[16][64];
  const uint t = get_local_id(0);
  const uint row = get_group_id(1) * 64;
  const uint col = get_group_id(0) * 64;
  const uint ty = t / 16 * 4;
  const uint tx = t % 16 * 4;
  float acc[4][4] = {};
  for (uint k0 = 0; k0 < k; k0 += 16) {
    for (uint i = 0; i < 4; ++i) {
      as[t % 16][t / 16 + 16 * i] = a[(row + t / 16 + 16 * i) * k + k0 + t % 16];
      bs[t / 64 + 4 * i][t % 64] = b[(k0 + t / 64 + 4 * i) * n + col + t % 64];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint kk = 0; kk < 16; ++kk) {
      for (uint i = 0; i < 4; ++i) {
        for (uint j = 0; j < 4; ++j) {
          acc[i][j] = fma(as[kk][ty + i], bs[kk][tx + j], acc[i][j]);
        }
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (uint i = 0; i < 4; ++i) {
    for (uint j = 0; j < 4; ++j) {
      c[(row + ty + i) * n + col + tx + j] = acc[i][j];
    }
  }
}
