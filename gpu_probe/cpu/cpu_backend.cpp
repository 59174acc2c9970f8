// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/cpu/cpu_backend.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "gpu_probe/cpu/blas.h"
#include "gpu_probe/cpu/convolve.h"
#include "gpu_probe/cpu/kernels.h"

namespace turnpoint::probe {

namespace {

/// Seconds that one sample lasts at least: shorter calls are repeated, the clock being coarse and its reading not free.
constexpr double kShortest = 50e-6;
/// An item has its buffers so often at most. Of numbers so few that these do not fill the caches it is their code that
/// takes the time.
constexpr double kMostSets = 256;

/// Over so many times what the caches hold the runs of an item are spread: 98 of 100 numbers then lie outside them
/// (miss_share() in core/hardware/cache_misses.h).
constexpr double kSpread = 4;

double available_memory() {
  return static_cast<double>(sysconf(_SC_AVPHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

/// Bytes that the runs of an item go through on one rank.
struct Spreads {
  double cold = 0;  ///< so that they find their numbers outside all caches
  double warm = 0;  ///< so that they find them in the last ones, as the step of a small network does
};

Spreads spreads_on(int ranks) {
  const Caches caches = usable_caches();
  return {std::min(kSpread * static_cast<double>(caches.last_bytes), 0.25 * available_memory()) / ranks,
          kSpread * static_cast<double>(caches.inner_bytes)};
}

/// Processor time of this thread, which does all of the work: where the core is given to another program for a while,
/// that is no time of the kernel's.
double now() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Buffers of one item, filled with random numbers: zeros would be processed faster than real data.
class Buffers {
 public:
  /// `recent`: of another one, whose recent() it shares.
  Buffers(std::uint64_t seed, Buffers* recent) : recent_(recent), state_(seed * 2654435769u + 12345) {}
  float* floats(std::int64_t count) {
    auto& buffer = floats_.emplace_back(new float[static_cast<std::size_t>(std::max<std::int64_t>(1, count))]);
    // Many numbers are some that repeat, which are made far faster.
    constexpr std::int64_t kOwn = 1 << 14;
    for (std::int64_t i = 0; i < std::min(count, kOwn); ++i) buffer[static_cast<std::size_t>(i)] = uniform() - 0.5f;
    for (std::int64_t i = kOwn; i < count; i += kOwn)
      std::memcpy(buffer.get() + i, buffer.get(), static_cast<std::size_t>(std::min(kOwn, count - i)) * sizeof(float));
    return buffer.get();
  }
  /// What the operator before has just written: forward what is read, backward the gradient of what was written.
  float* recent(std::int64_t count) {
    recent_bytes_ += 4.0 * static_cast<double>(count);
    float* made = recent_ ? recent_->recent_made_[next_recent_++] : floats(count);
    if (!recent_) recent_made_.push_back(made);
    return made;
  }
  double recent_bytes() const { return recent_bytes_; }
  std::int64_t* indices(std::int64_t count, std::int64_t below) {
    auto& buffer = indices_.emplace_back(new std::int64_t[static_cast<std::size_t>(count)]);
    for (std::int64_t i = 0; i < count; ++i)
      buffer[static_cast<std::size_t>(i)] = static_cast<std::int64_t>(uniform() * static_cast<float>(below)) % below;
    return buffer.get();
  }

 private:
  float uniform() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<float>(state_ >> 40) * 0x1p-24f;
  }
  Buffers* recent_;
  double recent_bytes_ = 0;
  std::size_t next_recent_ = 0;
  std::vector<float*> recent_made_;
  std::uint64_t state_;
  std::vector<std::unique_ptr<float[]>> floats_;
  std::vector<std::unique_ptr<std::int64_t[]>> indices_;
};

using Call = std::function<void()>;

Call matmul_call(const ProbeCall& c, Buffers& buffers) {
  const GemmShape shape{c[1], c[2], c[3], c[4] != 0, c[5] != 0};
  const std::int64_t batch = c[0], step_a = c[1] * c[3], step_b = c[3] * c[2], step_c = c[1] * c[2];
  const bool of_weight = c[4] != 0;  // its gradient: of the kept input and what has just come back
  float* a = of_weight ? buffers.floats(batch * step_a) : buffers.recent(batch * step_a);
  float* b = of_weight ? buffers.recent(batch * step_b) : buffers.floats(batch * step_b);
  float* y = buffers.floats(batch * step_c);
  return [=, function = blas().function] {
    for (std::int64_t i = 0; i < batch; ++i) function(shape, a + i * step_a, b + i * step_b, 0, y + i * step_c);
  };
}

Call convolution_call(const ProbeCall& c, Buffers& buffers) {
  const ConvolutionSizes z(c);
  const bool forward = c.kind == CallKind::convolution;
  const std::int64_t of_x = z.n * z.c * z.h * z.w, of_y = z.n * z.k * z.p * z.q;
  float* x = forward ? buffers.recent(of_x) : buffers.floats(of_x);
  float* weight = buffers.floats(z.k * (z.c / z.groups) * z.r * z.s);
  float* y = forward ? buffers.floats(of_y) : buffers.recent(of_y);
  const auto phase = c.kind == CallKind::convolution        ? ConvolutionPhase::forward
                     : c.kind == CallKind::convolution_data ? ConvolutionPhase::data
                                                            : ConvolutionPhase::filter;
  float* scratch = buffers.floats(convolution_scratch(phase, z));
  const float* first = phase == ConvolutionPhase::data ? weight : x;
  const float* second = phase == ConvolutionPhase::forward ? weight : y;
  float* to = phase == ConvolutionPhase::forward ? y : phase == ConvolutionPhase::data ? x : weight;
  return [=] { convolve(phase, z, first, second, to, scratch); };
}

Call elementwise_call(const ProbeCall& c, Buffers& buffers) {
  std::vector<const float*> in;
  std::vector<float*> out;
  for (std::int64_t i = 0; i < c[1]; ++i) in.push_back(i == 0 ? buffers.recent(c[0]) : buffers.floats(c[0]));
  for (std::int64_t i = 0; i < c[2]; ++i) out.push_back(buffers.floats(c[0]));
  return [=, n = c[0]] {
    elementwise(n, in.data(), static_cast<std::int64_t>(in.size()), out.data(), static_cast<std::int64_t>(out.size()));
  };
}

/// Kernels over rows and columns, or planes, with equal inputs and outputs.
Call row_call(const ProbeCall& c, Buffers& buffers) {
  const std::int64_t rows = c[0], columns = c[1], all = rows * columns;
  switch (c.kind) {
    case CallKind::softmax:
      return [=, x = buffers.recent(all), y = buffers.floats(all)] { softmax(rows, columns, x, y); };
    case CallKind::softmax_backward:
      return [=, y = buffers.floats(all), dy = buffers.recent(all), dx = buffers.floats(all)] {
        softmax_backward(rows, columns, y, dy, dx);
      };
    case CallKind::layer_norm:
      return [=, x = buffers.recent(all), y = buffers.floats(all)] { layer_norm(rows, columns, x, y); };
    case CallKind::layer_norm_backward:
      return [=, x = buffers.floats(all), dy = buffers.recent(all), dx = buffers.floats(all)] {
        layer_norm_backward(rows, columns, x, dy, dx);
      };
    case CallKind::cross_entropy:
      return [=, x = buffers.recent(all), label = buffers.indices(rows, columns), loss = buffers.floats(rows)] {
        cross_entropy(rows, columns, x, label, loss);
      };
    case CallKind::cross_entropy_backward:
      return [=, x = buffers.floats(all), label = buffers.indices(rows, columns), dx = buffers.floats(all)] {
        cross_entropy_backward(rows, columns, x, label, dx);
      };
    case CallKind::row_sum:
      return [=, x = buffers.recent(all), y = buffers.floats(rows)] { row_sum(rows, columns, x, y); };
    default: return [=, x = buffers.recent(all), y = buffers.floats(columns)] { column_sum(rows, columns, x, y); };
  }
}

Call make_call(const ProbeCall& c, Buffers& buffers) {
  switch (c.kind) {
    case CallKind::matmul: return matmul_call(c, buffers);
    case CallKind::convolution:
    case CallKind::convolution_data:
    case CallKind::convolution_filter: return convolution_call(c, buffers);
    case CallKind::elementwise: return elementwise_call(c, buffers);
    case CallKind::copy:
      return [n = static_cast<std::size_t>(c[0]) * 4, x = buffers.floats(c[0]), y = buffers.floats(c[0])] {
        std::memcpy(y, x, n);
      };
    case CallKind::batch_norm: {
      const std::int64_t all = c[0] * c[1] * c[2];
      return [=, x = buffers.recent(all), y = buffers.floats(all)] { batch_norm(c[0], c[1], c[2], x, y); };
    }
    case CallKind::batch_norm_backward: {
      const std::int64_t all = c[0] * c[1] * c[2];
      return [=, x = buffers.floats(all), dy = buffers.recent(all), dx = buffers.floats(all)] {
        batch_norm_backward(c[0], c[1], c[2], x, dy, dx);
      };
    }
    case CallKind::pooling:
    case CallKind::pooling_backward: {
      const std::int64_t large = c[0] * c[1] * c[2], small = c[0] * c[3] * c[4];
      const bool forward = c.kind == CallKind::pooling;
      float* x = forward ? buffers.recent(large) : buffers.floats(large);
      float* y = forward ? buffers.floats(small) : buffers.recent(small);
      if (forward) return [=, windows = windows_of(c)] { pool_largest(windows, x, y); };
      return [=, windows = windows_of(c), dx = buffers.floats(large)] { pool_largest_backward(windows, x, y, dx); };
    }
    case CallKind::embedding:
    case CallKind::embedding_backward: {
      const bool forward = c.kind == CallKind::embedding;
      float* table = buffers.floats(c[0] * c[1]);
      float* y = forward ? buffers.floats(c[2] * c[1]) : buffers.recent(c[2] * c[1]);
      const std::int64_t* index = buffers.indices(c[2], c[0]);
      if (forward) return [=] { embedding(c[1], c[2], table, index, y); };
      return [=] { embedding_backward(c[1], c[2], index, y, table); };
    }
    case CallKind::adam: {
      const std::int64_t n = c[0];
      float* variance = buffers.floats(n);
      for (std::int64_t i = 0; i < n; ++i) variance[i] = std::abs(variance[i]);
      return
          [=, g = buffers.floats(n), w = buffers.floats(n), m = buffers.floats(n)] { adam(n, {}, g, w, m, variance); };
    }
    case CallKind::launch: return elementwise_call({CallKind::elementwise, {1, 1, 1}, 1}, buffers);  // next to nothing
    case CallKind::host_to_device:
    case CallKind::device_to_host: return {};
    default: return row_call(c, buffers);
  }
}

std::string kernels_name() { return blas().version.empty() ? blas().name : blas().name + " " + blas().version; }

/// A step comes back to a tensor after all others, but for what was written last. So an item has its other buffers
/// several times, and each run takes the next ones: its code stays where it is, its numbers have left the caches.
class CpuPrepared : public Prepared {
 public:
  CpuPrepared(const ProbeOperator& op, std::uint64_t seed, const Spreads& spreads) {
    double bytes = 0;
    for (const auto& call : op.calls) bytes += 4 * call_elements(call);
    for (std::uint64_t i = 0, sets = 1; i < sets; ++i) {
      Set& set = sets_.emplace_back(seed + i, i > 0 ? &sets_.front().buffers : nullptr);
      for (const auto& call : op.calls) set.calls.push_back({make_call(call, set.buffers), call.count});
      if (i > 0) continue;
      const double own = std::max(1.0, bytes - set.buffers.recent_bytes());
      const auto sets_for = [&](double spread) {
        return static_cast<std::uint64_t>(std::clamp(std::ceil(spread / own), 1.0, kMostSets));
      };
      if (op.kind == kCachePass) continue;  // goes through what it says
      warm_sets_ = sets_for(spreads.warm);
      sets = std::max<std::uint64_t>(warm_sets_, sets_for(spreads.cold));
    }
    for (const auto& call : op.calls) uses_blas_ = uses_blas_ || call_flop(call) > 0;
  }
  Expected<double> sample(bool) override {
    return timed([&] { return next_++ % sets_.size(); });
  }
  Expected<double> sample_hot(int) override {
    return timed([&] { return next_++ % warm_sets_; });
  }
  std::string implementation() const override { return uses_blas_ ? kernels_name() : "built-in loops"; }

 private:
  struct Set {
    Set(std::uint64_t seed, Buffers* recent) : buffers(seed, recent) {}
    Buffers buffers;
    std::vector<std::pair<Call, std::int64_t>> calls;
  };

  template <class Which>
  double timed(const Which& which) {
    while (true) {
      const double start = now();
      for (int i = 0; i < repeats_; ++i)
        for (const auto& [call, count] : sets_[which()].calls)
          for (std::int64_t j = 0; j < count; ++j) call();
      const double elapsed = now() - start;
      if (elapsed >= kShortest || repeats_ >= 1 << 16) return std::max(elapsed, 1e-9) / repeats_;
      repeats_ *= 4;
    }
  }

  std::deque<Set> sets_;  ///< none moves
  std::size_t next_ = 0, warm_sets_ = 1;
  int repeats_ = 1;
  bool uses_blas_ = false;
};

class CpuBackend : public Backend {
 public:
  CpuBackend(int ranks, std::uint64_t seed) : described_(describe_cpu(ranks)), ranks_(ranks), seed_(seed) {}

  nlohmann::json describe() override { return described_; }

  Expected<std::unique_ptr<Prepared>> prepare(const ProbeOperator& op) override {
    if (op.precision != ProbePrecision::fp32)
      return device_error(fmt::format("{} is not measured on CPU ranks, only fp32", to_string(op.precision)));
    double bytes = 0;
    for (const auto& call : op.calls) {
      if (call.kind == CallKind::host_to_device || call.kind == CallKind::device_to_host)
        return device_error("a CPU rank's memory is the host's: there is nothing to cross");
      bytes += 4 * call_elements(call);
    }
    // The other ranks run the same item at the same time.
    if (bytes * ranks_ > 0.5 * available_memory())
      return device_error(
          fmt::format("needs {:.1f} GB for {} ranks, more than half of the free memory", bytes * ranks_ / 1e9, ranks_));
    return std::unique_ptr<Prepared>(new CpuPrepared(op, seed_, spreads_on(ranks_)));
  }

  std::vector<nlohmann::json> check() override { return {}; }
  bool cold() const override { return true; }
  bool shared_host() const override { return true; }

 private:
  nlohmann::json described_;
  int ranks_;
  std::uint64_t seed_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(int ranks, std::uint64_t seed) {
  return std::make_unique<CpuBackend>(ranks, seed);
}

}  // namespace turnpoint::probe
