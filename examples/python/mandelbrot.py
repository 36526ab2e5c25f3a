# SPDX-License-Identifier: Apache-2.0
"""Iterations until a point escapes: lanes that leave a loop at different times. Compare ../mandelbrot."""
import numpy as np

import pypto as pto


@pto.kernel
def mandelbrot(out, width, height, x0, y0, dx, dy, limit):
    i, j = pto.get_global_id(0), pto.get_global_id(1)
    if i >= width or j >= height:
        return
    cx, cy = pto.fma(i, dx, x0), pto.fma(j, dy, y0)
    re, im, re2, im2 = 0.0, 0.0, 0.0, 0.0
    k = 0
    while k < limit and re2 + im2 <= 4.0:
        im = pto.fma(re + re, im, cy)
        re = re2 - im2 + cx
        re2, im2 = re * re, im * im
        k += 1
    pto.store(out + (j * width + i), k)


def main():
    width, height, limit = 60, 40, 50
    d_out = pto.Tensor.from_numpy(np.zeros((height, width), np.int32))
    args = (d_out, width, height, -2.0, -1.0, 3.0 / width, 2.0 / height, limit)
    pto.launch(mandelbrot, grid=(2, 5, 1), block=(32, 8, 1), args=args)
    out = d_out.numpy(np.int32, (height, width))
    assert out.max() == limit and out.min() >= 1 and out[height // 2, width * 2 // 3] == limit
    for row in out[::2]:
        print("".join(" .:-=+*#%@"[min(v * 10 // (limit + 1), 9)] for v in row))


if __name__ == "__main__":
    main()
