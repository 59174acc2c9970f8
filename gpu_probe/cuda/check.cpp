// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/cuda/check.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "gpu_probe/cpu/kernels.h"
#include "gpu_probe/cuda/calls.h"
#include "gpu_probe/job/backend.h"

namespace turnpoint::probe::cuda {

namespace {

using Floats = std::vector<float>;
using Indices = std::vector<std::int64_t>;

float from_bf16(std::uint16_t bits) {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  float value = 0;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

/// A step's buffers as host numbers.
class Buffers {
 public:
  Buffers(Gpu& gpu, const Step& step) : gpu_(gpu), step_(step) {}

  std::int64_t count(std::size_t i) const { return step_.operands.at(i).count; }
  Floats floats(std::size_t i) {
    const Operand& operand = step_.operands.at(i);
    Floats values(static_cast<std::size_t>(operand.count));
    if (operand.type != Operand::Type::bf16) {
      read(values.data(), operand.pointer, values.size() * 4);
      return values;
    }
    std::vector<std::uint16_t> bits(values.size());
    read(bits.data(), operand.pointer, bits.size() * 2);
    std::transform(bits.begin(), bits.end(), values.begin(), from_bf16);
    return values;
  }
  /// Indices that are none would lead our own loops astray: they count as a failure.
  Indices indices(std::size_t i, std::int64_t below) {
    Indices values(static_cast<std::size_t>(count(i)));
    read(values.data(), step_.operands.at(i).pointer, values.size() * 8);
    for (auto& value : values)
      if (value < 0 || value >= below) value = 0, good_indices_ = false;
    return values;
  }
  bool good_indices() const { return good_indices_; }
  template <class T>
  void write(std::size_t i, const std::vector<T>& values) {
    note(gpu_.driver.copy_to_device(step_.operands.at(i).pointer, values.data(), values.size() * sizeof(T),
                                    gpu_.stream));
    note(gpu_.driver.stream_synchronize(gpu_.stream));
  }
  /// All bits set: not a number in either format.
  void poison(std::size_t i) {
    const Operand& operand = step_.operands.at(i);
    const std::size_t bytes = static_cast<std::size_t>(operand.count) * (operand.type == Operand::Type::bf16 ? 2 : 4);
    note(gpu_.driver.fill_words(operand.pointer, 0xffffffffu, bytes / 4, gpu_.stream));
  }
  void run() {
    note(step_.run(gpu_.stream));
    note(gpu_.driver.stream_synchronize(gpu_.stream));
  }
  int failed() const { return failed_; }

 private:
  void read(void* to, Pointer from, std::size_t bytes) {
    note(gpu_.driver.copy_to_host(to, from, bytes, gpu_.stream));
    note(gpu_.driver.stream_synchronize(gpu_.stream));
  }
  void note(int result) {
    if (failed_ == 0) failed_ = result;
  }
  Gpu& gpu_;
  const Step& step_;
  int failed_ = 0;
  bool good_indices_ = true;
};

/// What came out and what should have.
struct Pair {
  Floats got, wanted;
};

double difference(const Pair& pair) {
  double squares = 0, norm = 0;
  for (std::size_t i = 0; i < pair.wanted.size(); ++i) {
    const double wrong = static_cast<double>(pair.got[i]) - static_cast<double>(pair.wanted[i]);
    squares += wrong * wrong;
    norm += static_cast<double>(pair.wanted[i]) * static_cast<double>(pair.wanted[i]);
  }
  return std::sqrt(squares / std::max(norm, 1e-30));
}

Pair check_matmul(const ProbeCall& c, Buffers& b) {
  const Floats x = b.floats(0), w = b.floats(1);
  b.poison(2);
  b.run();
  Floats wanted(static_cast<std::size_t>(c[0] * c[1] * c[2]));
  const GemmShape shape{c[1], c[2], c[3], c[4] != 0, c[5] != 0};
  for (std::int64_t i = 0; i < c[0]; ++i)
    gemm(shape, x.data() + i * c[1] * c[3], w.data() + i * c[3] * c[2], 0, wanted.data() + i * c[1] * c[2]);
  return {b.floats(2), wanted};
}

/// [a, b, plane] to [a, plane, b] or back.
Floats turned(const Floats& from, std::int64_t a, std::int64_t b, std::int64_t plane, bool back) {
  Floats to(from.size());
  for (std::int64_t i = 0; i < a; ++i)
    for (std::int64_t j = 0; j < b; ++j)
      for (std::int64_t p = 0; p < plane; ++p) {
        const auto first = static_cast<std::size_t>((i * b + j) * plane + p),
                   last = static_cast<std::size_t>((i * plane + p) * b + j);
        (back ? to[first] : to[last]) = back ? from[last] : from[first];
      }
  return to;
}

Pair check_convolution(const ProbeCall& c, ProbePrecision precision, Buffers& b) {
  const ConvolutionSizes z(c);
  const bool inner = precision == ProbePrecision::bf16;  // channels innermost
  const std::int64_t cg = z.c / z.groups;
  const auto get = [&](std::size_t i) {
    const Floats raw = b.floats(i);
    if (!inner) return raw;
    if (i == 0) return turned(raw, z.n, z.c, z.h * z.w, true);
    return i == 1 ? turned(raw, z.k, cg, z.r * z.s, true) : turned(raw, z.n, z.k, z.p * z.q, true);
  };
  Floats x = get(0), weight = get(1), y = get(2);
  Floats columns(static_cast<std::size_t>(cg * z.r * z.s * z.p * z.q));
  const std::size_t result = c.kind == CallKind::convolution ? 2 : c.kind == CallKind::convolution_data ? 0 : 1;
  b.poison(result);
  b.run();
  if (result == 2) {
    convolution_forward(z, gemm, x.data(), weight.data(), y.data(), columns.data());
    return {get(2), y};
  }
  if (result == 0) {
    convolution_data(z, gemm, weight.data(), y.data(), x.data(), columns.data());
    return {get(0), x};
  }
  convolution_filter(z, gemm, x.data(), y.data(), weight.data(), columns.data());
  return {get(1), weight};
}

/// Mean and 1 / deviation of `count` numbers, `step` apart in chunks, as the kernels keep them.
std::pair<float, float> moments(const Floats& x, const std::vector<std::size_t>& at) {
  double sum = 0, squares = 0;
  for (const auto i : at) sum += static_cast<double>(x[i]);
  const double mean = sum / static_cast<double>(at.size());
  for (const auto i : at) squares += (static_cast<double>(x[i]) - mean) * (static_cast<double>(x[i]) - mean);
  return {static_cast<float>(mean), static_cast<float>(1 / std::sqrt(squares / static_cast<double>(at.size()) + 1e-5))};
}

Pair check_rows(const ProbeCall& c, Buffers& b) {
  const std::int64_t rows = c[0], columns = c[1];
  const Floats x = b.floats(0);
  Floats wanted(static_cast<std::size_t>(rows * columns));
  std::size_t result = 1;
  switch (c.kind) {
    case CallKind::softmax: softmax(rows, columns, x.data(), wanted.data()); break;
    case CallKind::softmax_backward:
      softmax_backward(rows, columns, x.data(), b.floats(1).data(), wanted.data());
      result = 2;
      break;
    case CallKind::layer_norm: layer_norm(rows, columns, x.data(), wanted.data()); break;
    case CallKind::layer_norm_backward: {
      layer_norm_backward(rows, columns, x.data(), b.floats(1).data(), wanted.data());
      Floats kept;
      for (std::int64_t r = 0; r < rows; ++r) {
        std::vector<std::size_t> at;
        for (std::int64_t i = 0; i < columns; ++i) at.push_back(static_cast<std::size_t>(r * columns + i));
        const auto [mean, scale] = moments(x, at);
        kept.insert(kept.end(), {mean, scale});
      }
      b.write(3, kept);
      result = 2;
      break;
    }
    case CallKind::cross_entropy:
      wanted.resize(static_cast<std::size_t>(rows));
      cross_entropy(rows, columns, x.data(), b.indices(1, columns).data(), wanted.data());
      result = 2;
      break;
    case CallKind::cross_entropy_backward:
      cross_entropy_backward(rows, columns, x.data(), b.indices(1, columns).data(), wanted.data());
      result = 2;
      break;
    case CallKind::row_sum:
      wanted.resize(static_cast<std::size_t>(rows));
      row_sum(rows, columns, x.data(), wanted.data());
      break;
    default:
      wanted.resize(static_cast<std::size_t>(columns));
      column_sum(rows, columns, x.data(), wanted.data());
      break;
  }
  b.poison(result);
  b.run();
  return {b.floats(result), wanted};
}

Pair check_batch_norm(const ProbeCall& c, Buffers& b) {
  const Floats x = b.floats(0);
  Floats wanted(x.size());
  const bool backward = c.kind == CallKind::batch_norm_backward;
  if (!backward) {
    batch_norm(c[0], c[1], c[2], x.data(), wanted.data());
  } else {
    batch_norm_backward(c[0], c[1], c[2], x.data(), b.floats(2).data(), wanted.data());
    Floats sums(static_cast<std::size_t>(2 * c[1]), 0.0f);
    for (std::int64_t i = 0; i < c[0] * c[1] * c[2]; ++i) {
      const auto channel = static_cast<std::size_t>(i / c[2] % c[1]);
      const float v = x[static_cast<std::size_t>(i)];
      sums[channel] += v;
      sums[channel + static_cast<std::size_t>(c[1])] += v * v;
    }
    b.write(1, sums);
  }
  const std::size_t result = backward ? 3 : 2;
  b.poison(result);
  b.run();
  return {b.floats(result), wanted};
}

Pair check_pooling(const ProbeCall& c, Buffers& b) {
  const Floats x = b.floats(0), y = b.floats(1);
  if (c.kind == CallKind::pooling) {
    Floats wanted(y.size());
    pool_largest(windows_of(c), x.data(), wanted.data());
    b.poison(1);
    b.run();
    return {b.floats(1), wanted};
  }
  // Which element each window chose, found by numbering the elements of its plane.
  std::vector<std::int32_t> chosen(y.size());
  const std::int64_t plane = c[1] * c[2];
  Floats one(y.size(), 0.0f), place(x.size());
  for (std::size_t o = 0; o < y.size(); ++o) {
    one[o] = 1;
    pool_largest_backward(windows_of(c), x.data(), one.data(), place.data());
    one[o] = 0;
    const auto at = std::find(place.begin(), place.end(), 1.0f) - place.begin();
    chosen[o] = static_cast<std::int32_t>(at % plane);
  }
  b.write(2, chosen);
  Floats wanted(x.size());
  pool_largest_backward(windows_of(c), x.data(), y.data(), wanted.data());
  b.poison(0);
  b.run();
  return {b.floats(0), wanted};
}

Pair check_others(const ProbeCall& c, Buffers& b) {
  switch (c.kind) {
    case CallKind::elementwise: {
      std::vector<Floats> in;
      std::vector<const float*> from;
      for (std::int64_t i = 0; i < c[1]; ++i) in.push_back(b.floats(static_cast<std::size_t>(i)));
      for (const auto& operand : in) from.push_back(operand.data());
      Floats wanted(static_cast<std::size_t>(c[0]));
      float* to[] = {wanted.data()};
      elementwise(c[0], from.data(), c[1], to, 1);
      const auto last = static_cast<std::size_t>(c[1] + c[2] - 1);
      b.poison(last);
      b.run();
      return {b.floats(last), wanted};
    }
    case CallKind::copy: {
      b.poison(1);
      b.run();
      return {b.floats(1), b.floats(0)};
    }
    case CallKind::embedding: {
      const Floats table = b.floats(0);
      Floats wanted(static_cast<std::size_t>(c[2] * c[1]));
      embedding(c[1], c[2], table.data(), b.indices(1, c[0]).data(), wanted.data());
      b.poison(2);
      b.run();
      return {b.floats(2), wanted};
    }
    case CallKind::embedding_backward: {
      Floats wanted = b.floats(0);
      embedding_backward(c[1], c[2], b.indices(1, c[0]).data(), b.floats(2).data(), wanted.data());
      b.run();
      return {b.floats(0), wanted};
    }
    default: {  // adam
      Floats weight = b.floats(2), mean = b.floats(3), variance = b.floats(4);
      adam(c[0], {}, b.floats(0).data(), weight.data(), mean.data(), variance.data());
      b.run();
      return {b.floats(2), weight};
    }
  }
}

struct Case {
  CallKind kind;
  std::vector<std::int64_t> sizes;
};

const std::vector<Case>& cases() {
  using K = CallKind;
  static const std::vector<Case> list = [] {
    std::vector<Case> all{{K::matmul, {1, 96, 160, 224, 0, 0}},
                          {K::matmul, {3, 64, 32, 48, 1, 0}},
                          {K::matmul, {2, 64, 32, 48, 0, 1}},
                          {K::elementwise, {10007, 2, 1}},
                          {K::elementwise, {4096, 3, 2}},
                          {K::copy, {10000}},
                          {K::adam, {10006}},
                          {K::embedding, {300, 96, 77}},
                          {K::embedding_backward, {300, 96, 77}}};
    for (const auto kind : {K::softmax, K::softmax_backward, K::layer_norm, K::layer_norm_backward, K::cross_entropy,
                            K::cross_entropy_backward, K::row_sum, K::column_sum})
      for (const std::int64_t columns : {64, 77, 1536, 9001, 16384}) all.push_back({kind, {37, columns}});
    for (const auto kind : {K::batch_norm, K::batch_norm_backward})
      for (const std::int64_t plane : {49, 3136}) all.push_back({kind, {5, 6, plane}});
    for (const auto kind : {K::pooling, K::pooling_backward}) {
      all.push_back({kind, {6, 14, 14, 7, 7, 2, 2, 2, 2, 0, 0}});
      all.push_back({kind, {3, 15, 13, 8, 7, 3, 3, 2, 2, 1, 1}});
    }
    for (const auto kind : {K::convolution, K::convolution_data, K::convolution_filter}) {
      all.push_back({kind, {4, 16, 14, 14, 32, 3, 3, 14, 14, 1, 1, 1, 1, 1, 1, 1}});
      all.push_back({kind, {4, 16, 15, 13, 32, 3, 3, 8, 7, 2, 2, 1, 1, 1, 1, 1}});
    }
    return all;
  }();
  return list;
}

double tolerance(CallKind kind, ProbePrecision precision) {
  if (kind == CallKind::adam) return 2e-5;  // its state is fp32 whatever the gradient is
  if (precision == ProbePrecision::bf16) return 1e-2;
  if (precision == ProbePrecision::tf32) return 2e-3;
  return kind == CallKind::copy ? 0 : 2e-5;
}

Pair compare(const ProbeCall& call, ProbePrecision precision, Buffers& buffers) {
  switch (call.kind) {
    case CallKind::matmul: return check_matmul(call, buffers);
    case CallKind::convolution:
    case CallKind::convolution_data:
    case CallKind::convolution_filter: return check_convolution(call, precision, buffers);
    case CallKind::batch_norm:
    case CallKind::batch_norm_backward: return check_batch_norm(call, buffers);
    case CallKind::pooling:
    case CallKind::pooling_backward: return check_pooling(call, buffers);
    case CallKind::softmax:
    case CallKind::softmax_backward:
    case CallKind::layer_norm:
    case CallKind::layer_norm_backward:
    case CallKind::cross_entropy:
    case CallKind::cross_entropy_backward:
    case CallKind::row_sum:
    case CallKind::column_sum: return check_rows(call, buffers);
    default: return check_others(call, buffers);
  }
}

}  // namespace

std::vector<nlohmann::json> check_kernels(Gpu& gpu) {
  std::vector<nlohmann::json> messages;
  for (const auto precision : {ProbePrecision::fp32, ProbePrecision::tf32, ProbePrecision::bf16})
    for (const auto& one : cases()) {
      ProbeCall call;
      call.kind = one.kind;
      std::copy(one.sizes.begin(), one.sizes.end(), call.size.begin());
      if (precision == ProbePrecision::tf32 && call_flop(call) <= 0) continue;
      DeviceMemory memory(gpu);
      nlohmann::json message = {{"type", "check"},
                                {"call", call_record(call.kind).name},
                                {"sizes", one.sizes},
                                {"precision", to_string(precision)},
                                {"tolerance", tolerance(call.kind, precision)}};
      const auto step = make_step(gpu, memory, call, precision);
      if (!step) {
        message["good"] = false;
        message["what"] = step.error().what;
        messages.push_back(std::move(message));
        continue;
      }
      Buffers buffers(gpu, *step);
      const double error = difference(compare(call, precision, buffers));
      message["good"] = buffers.failed() == 0 && buffers.good_indices() && error <= tolerance(call.kind, precision);
      // JSON has no word for what is not a number.
      message["error"] = std::isfinite(error) ? nlohmann::json(error) : nlohmann::json("not a number");
      if (buffers.failed() != 0) {
        message["what"] = gpu.failure(buffers.failed(), "checking").what;
        messages.push_back(std::move(message));
        return messages;
      }
      messages.push_back(std::move(message));
    }
  return messages;
}

}  // namespace turnpoint::probe::cuda
