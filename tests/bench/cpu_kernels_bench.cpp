// SPDX-License-Identifier: Apache-2.0
// The CPU kernels of turnpoint-probe: our own loops beside oneDNN where it is installed, in one run, by processor time
// (the least of several), on the convolutions and products of LeNet, ResNets and attention.
#include <time.h>
#include <cmath>
#include <cstdio>
#include <functional>
#include <random>
#include <vector>

#include "gpu_probe/cpu/gemm.h"
#include "gpu_probe/cpu/kernels.h"
#include "gpu_probe/cpu/onednn.h"

using namespace turnpoint;
using namespace turnpoint::probe;

namespace {

double processor_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double least(const std::function<void()>& run) {
  double best = 1e9;
  run();
  for (double began = processor_time(), spent = 0; spent < 0.3; spent = processor_time() - began) {
    int repeats = 0;
    const double start = processor_time();
    while (processor_time() - start < 2e-3) run(), ++repeats;
    best = std::min(best, (processor_time() - start) / repeats);
  }
  return best;
}

std::vector<float> noise(std::int64_t count) {
  static std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> made(static_cast<std::size_t>(count));
  for (auto& x : made) x = uniform(random);
  return made;
}

struct Mean {
  double log_sum = 0;
  int count = 0;
  void add(double ratio) { log_sum += std::log(ratio), ++count; }
  double value() const { return count ? std::exp(log_sum / count) : 0; }
};

double worst_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0, scale = 1e-30;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, static_cast<double>(std::abs(a[i] - b[i])));
    scale = std::max(scale, static_cast<double>(std::abs(a[i])));
  }
  return most / scale;
}

ConvolutionSizes sizes(std::int64_t n, std::int64_t c, std::int64_t size, std::int64_t k, std::int64_t kernel,
                       std::int64_t stride, std::int64_t pad) {
  const std::int64_t out = (size + 2 * pad - kernel) / stride + 1;
  ProbeCall call;
  call.size = {n, c, size, size, k, kernel, kernel, out, out, stride, stride, pad, pad, 1, 1, 1};
  return ConvolutionSizes(call);
}

}  // namespace

int main() {
  if (!onednn()) {
    for (const auto& missing : onednn_missing()) std::printf("%s\n", missing.c_str());
    std::printf("oneDNN is not here: nothing to compare\n");
    return 0;
  }
  std::printf("oneDNN %s; processor time, least of several\n", onednn_version(*onednn()).c_str());
  Mean products, forward, data, filter;
  struct Product {
    const char* what;
    GemmShape shape;
  };
  const Product list[] = {{"LeNet dense 64x400x120", {64, 120, 400}},
                          {"dense 64x1024x1024", {64, 1024, 1024}},
                          {"dense 256x1024x1024", {256, 1024, 1024}},
                          {"attention scores 128x128x64 (B transposed)", {128, 128, 64, false, true}},
                          {"attention context 128x64x128", {128, 64, 128}},
                          {"weight gradient 1024x1024x64 (A transposed)", {1024, 1024, 64, true, false}},
                          {"small 16x64x64", {16, 64, 64}}};
  for (const auto& [what, s] : list) {
    const auto a = noise(s.m * s.k), b = noise(s.k * s.n);
    auto mine = noise(s.m * s.n), theirs = mine;
    const double own = least([&, &shape = s] { gemm(shape, a.data(), b.data(), 0, mine.data()); });
    const double dnnl = least([&, &shape = s] { onednn_gemm(shape, a.data(), b.data(), 0, theirs.data()); });
    products.add(own / dnnl);
    std::printf("%-46s own %9.1f us  oneDNN %9.1f us  %5.2f times  (%.0f GFLOP/s, difference %.1e)\n", what, own * 1e6,
                dnnl * 1e6, own / dnnl, 2e-9 * static_cast<double>(s.m * s.n * s.k) / dnnl,
                worst_difference(mine, theirs));
  }
  struct Layer {
    const char* what;
    ConvolutionSizes z;
  };
  const Layer layers[] = {{"LeNet 1-6 5x5, batch 64", sizes(64, 1, 28, 6, 5, 1, 2)},
                          {"LeNet 6-16 5x5, batch 64", sizes(64, 6, 14, 16, 5, 1, 0)},
                          {"ResNet 3-64 7x7/2 at 64", sizes(2, 3, 64, 64, 7, 2, 3)},
                          {"ResNet 64-64 3x3 at 56", sizes(2, 64, 56, 64, 3, 1, 1)},
                          {"ResNet 64-256 1x1 at 56", sizes(2, 64, 56, 256, 1, 1, 0)},
                          {"ResNet 128-128 3x3/2 at 56", sizes(2, 128, 56, 128, 3, 2, 1)},
                          {"ResNet 256-256 3x3 at 14", sizes(2, 256, 14, 256, 3, 1, 1)},
                          {"ResNet 512-512 3x3 at 7", sizes(2, 512, 7, 512, 3, 1, 1)},
                          {"small 16-32 3x3/2 at 32, batch 8", sizes(8, 16, 32, 32, 3, 2, 1)},
                          {"small 32-64 1x1 at 16, batch 8", sizes(8, 32, 16, 64, 1, 1, 0)}};
  for (const auto& [what, z] : layers) {
    const auto x = noise(z.n * z.c * z.h * z.w), w = noise(z.k * z.c * z.r * z.s), y = noise(z.n * z.k * z.p * z.q);
    std::vector<float> columns(static_cast<std::size_t>(z.c * z.r * z.s * z.p * z.q));
    for (const auto phase : {ConvolutionPhase::forward, ConvolutionPhase::data, ConvolutionPhase::filter}) {
      const bool f = phase == ConvolutionPhase::forward, d = phase == ConvolutionPhase::data;
      const auto &first = d ? w : x, &second = f ? w : y;
      auto mine = f ? y : d ? x : w, theirs = mine;
      const auto own_kernel = f ? convolution_forward : d ? convolution_data : convolution_filter;
      const auto* made = OnednnConvolution::find(phase, z);
      const char* name = f ? "forward" : d ? "data" : "filter";
      if (!made) {
        std::printf("%-34s %-8s oneDNN has none\n", what, name);
        continue;
      }
      std::vector<float> scratch(static_cast<std::size_t>(made->scratch()));
      const auto own_with = [&](GemmFunction product) {
        return least(
            [&, &sz = z] { own_kernel(sz, product, first.data(), second.data(), mine.data(), columns.data()); });
      };
      const double own = own_with(gemm), unrolled = own_with(onednn_gemm);
      const double dnnl = least([&] { made->run(first.data(), second.data(), theirs.data(), scratch.data()); });
      (f ? forward : d ? data : filter).add(std::min(own, unrolled) / dnnl);
      std::printf(
          "%-34s %-8s own %9.1f us  own with sgemm %9.1f us  oneDNN %9.1f us (%s)  %5.2f times, difference %.1e\n",
          what, name, own * 1e6, unrolled * 1e6, dnnl * 1e6, made->implementation().c_str(),
          std::min(own, unrolled) / dnnl, worst_difference(mine, theirs));
    }
  }
  std::printf(
      "geometric means of own / oneDNN: products %.2f, convolutions (best of ours) forward %.2f, data %.2f, filter "
      "%.2f\n",
      products.value(), forward.value(), data.value(), filter.value());
  return 0;
}
