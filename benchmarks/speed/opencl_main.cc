// SPDX-License-Identifier: Apache-2.0
// speed_opencl WORKLOAD [seconds [small]]: the same kernels on the first OpenCL device: Oclgrind if
// run under it, else PoCL. Compiling them is left out of the time.
#define CL_TARGET_OPENCL_VERSION 120
#include "workload.h"

#include <CL/cl.h>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace pto::bench {
namespace {

void check(cl_int status, const char* what) {
  if (status != CL_SUCCESS) {
    std::fprintf(stderr, "speed_opencl: %s: OpenCL error %d\n", what, status);
    std::exit(1);
  }
}

int run(const std::string& name, double seconds, bool is_small) {
  Workload work = make_workload(name, is_small);
  cl_int status = CL_SUCCESS;
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  check(clGetPlatformIDs(1, &platform, nullptr), "no platform");
  check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr), "no device");
  cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &status);
  check(status, "context");
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
  check(status, "queue");
  std::ifstream file(PTO_SOURCE_DIR "/benchmarks/speed/kernels.cl");
  std::stringstream stream;
  stream << file.rdbuf();
  const std::string text = stream.str();
  const char* source = text.c_str();
  cl_program program = clCreateProgramWithSource(context, 1, &source, nullptr, &status);
  check(status, "program");
  check(clBuildProgram(program, 1, &device, "", nullptr, nullptr), "compiling");
  cl_kernel kernel = clCreateKernel(program, work.kernel.c_str(), &status);
  check(status, "kernel");
  std::vector<cl_mem> buffers;
  for (Array& array : work.arrays) {
    buffers.push_back(clCreateBuffer(context,
                                     CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                     array.bytes.size(),
                                     array.bytes.data(),
                                     &status));
    check(status, "buffer");
  }
  for (cl_uint i = 0; i < work.params.size(); ++i) {
    const Param& param = work.params[i];
    check(
        param.array < 0
            ? clSetKernelArg(kernel, i, sizeof param.bits, &param.bits)
            : clSetKernelArg(kernel, i, sizeof(cl_mem), &buffers[static_cast<size_t>(param.array)]),
        "argument");
  }
  size_t global[3];
  size_t local[3];
  for (size_t i = 0; i < 3; ++i) {
    local[i] = work.block[i];
    global[i] = size_t{work.block[i]} * work.grid[i];
  }
  const auto launch = [&] {
    check(clEnqueueNDRangeKernel(queue, kernel, 3, nullptr, global, local, 0, nullptr, nullptr),
          "launch");
    check(clFinish(queue), "run");
  };
  launch();
  Array& output = work.arrays[work.output];
  check(clEnqueueReadBuffer(queue,
                            buffers[work.output],
                            CL_TRUE,
                            0,
                            output.bytes.size(),
                            output.bytes.data(),
                            0,
                            nullptr,
                            nullptr),
        "reading back");
  const double sum = work.checksum();
  const Timing timing = measure(launch, seconds, 1);
  print_result(work, timing, sum);
  return 0;
}

} // namespace
} // namespace pto::bench

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (args.empty() || pto::bench::make_workload(args[0], true).name.empty()) {
    std::fprintf(stderr, "usage: speed_opencl WORKLOAD [SECONDS [small]]\n");
    return 2;
  }
  return pto::bench::run(args[0],
                         args.size() > 1 ? std::strtod(args[1].c_str(), nullptr) : 0.2,
                         args.size() > 2 && args[2] == "small");
}
