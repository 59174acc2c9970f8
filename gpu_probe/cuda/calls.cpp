// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/cuda/calls.h"

#include <fmt/format.h>
#include <algorithm>

#include "gpu_probe/job/backend.h"

namespace turnpoint::probe::cuda {

namespace {

/// As in kernel_source.cpp.
struct Operands {
  Pointer in[16], out[16];
  int reads, writes;
};
struct Pool {
  std::int64_t planes;
  int h, w, p, q, r, s, stride_h, stride_w, pad_h, pad_w;
};

/// Collects allocations; the first failure is kept and the rest does nothing.
class Maker {
 public:
  Maker(Gpu& gpu, DeviceMemory& memory, ProbePrecision precision)
      : gpu_(gpu), memory_(memory), bits16_(precision == ProbePrecision::bf16) {}

  Pointer numbers(std::int64_t count) {
    return keep(memory_.numbers(count, bits16_), count, bits16_ ? Operand::Type::bf16 : Operand::Type::fp32);
  }
  Pointer floats(std::int64_t count) { return keep(memory_.numbers(count, false), count, Operand::Type::fp32); }
  Pointer indices(std::int64_t count, std::int64_t below) {
    return keep(memory_.indices(count, below), count, Operand::Type::index);
  }
  Pointer zeros(std::size_t bytes) {
    return keep(memory_.zeros(bytes), static_cast<std::int64_t>(bytes / 4), Operand::Type::word);
  }
  Pointer raw(std::size_t bytes) { return keep(memory_.raw(bytes), 0, Operand::Type::word); }

  Launch launch(const std::string& name, std::int64_t grid_x, std::int64_t grid_y, int block_x, int block_y = 1) {
    Function function = nullptr;
    if (auto found = gpu_.function(name))
      function = *found;
    else
      fail(found.error());
    return {function, static_cast<unsigned>(grid_x), static_cast<unsigned>(grid_y), static_cast<unsigned>(block_x),
            static_cast<unsigned>(block_y)};
  }
  std::string typed(const std::string& name) const { return name + (bits16_ ? "_bf16" : "_f32"); }
  /// A kernel over rows: a warp each where rows are short, else a block.
  Launch rows(const std::string& name, std::int64_t rows, std::int64_t columns) {
    if (columns <= 1024) return launch(typed(name + "_warp"), (rows + 7) / 8, 1, 256);
    return launch(typed(name), rows, 1, columns <= 8192 ? 256 : 1024);
  }
  Launch wide(const std::string& name, std::int64_t elements) {
    return launch(typed(name), std::clamp<std::int64_t>((elements + 1023) / 1024, 1, gpu_.multiprocessors * 32), 1,
                  256);
  }
  Step step(Launch launch) {
    Step made;
    made.run = [driver = &gpu_.driver, launch = std::move(launch)](Stream stream) { return launch(*driver, stream); };
    made.implementation = "own kernels";
    return made;
  }
  /// Several launches, the second after the first.
  Step steps(std::vector<Launch> launches, Pointer clear = 0, std::size_t words = 0) {
    Step made;
    made.launches = static_cast<int>(launches.size()) + (words > 0 ? 1 : 0);
    made.run = [driver = &gpu_.driver, launches = std::move(launches), clear, words](Stream stream) {
      if (words > 0)
        if (const int failed = driver->fill_words(clear, 0, words, stream); failed != 0) return failed;
      for (const auto& launch : launches)
        if (const int failed = launch(*driver, stream); failed != 0) return failed;
      return 0;
    };
    made.implementation = "own kernels";
    return made;
  }
  void fail(const Error& error) {
    if (!error_) error_ = error;
  }
  const std::optional<Error>& error() const { return error_; }
  std::vector<Operand> take_operands() { return std::move(operands_); }
  Gpu& gpu() { return gpu_; }
  bool bits16() const { return bits16_; }

 private:
  Pointer keep(const Expected<Pointer>& made, std::int64_t count, Operand::Type type) {
    if (!made) {
      fail(made.error());
      return 0;
    }
    operands_.push_back({*made, count, type});
    return *made;
  }
  Gpu& gpu_;
  DeviceMemory& memory_;
  bool bits16_;
  std::optional<Error> error_;
  std::vector<Operand> operands_;
};

Step matmul(Maker& m, const ProbeCall& c, ProbePrecision precision) {
  const Pointer a = m.numbers(c[0] * c[1] * c[3]), b = m.numbers(c[0] * c[3] * c[2]), y = m.numbers(c[0] * c[1] * c[2]);
  if (m.error()) return {};
  auto planned = m.gpu().matrices.plan(c, precision, a, b, y, m.gpu().workspace);
  if (!planned) {
    m.fail(planned.error());
    return {};
  }
  Step made;
  made.run = std::move(*planned);
  made.implementation = "cublasLt " + m.gpu().matrices.version();
  return made;
}

Step convolution(Maker& m, const ProbeCall& c, ProbePrecision precision) {
  const Pointer x = m.numbers(c[0] * c[1] * c[2] * c[3]), weight = m.numbers(c[4] * (c[1] / c[15]) * c[5] * c[6]),
                y = m.numbers(c[0] * c[4] * c[7] * c[8]);
  if (m.error()) return {};
  auto planned = m.gpu().convolutions.plan(c, precision, precision == ProbePrecision::bf16);
  if (!planned) {
    m.fail(planned.error());
    return {};
  }
  const Pointer workspace = planned->workspace > 0 ? m.raw(planned->workspace) : 0;
  Step made;
  made.run = [run = std::move(planned->run), x, weight, y, workspace](Stream stream) {
    return run(stream, x, weight, y, workspace);
  };
  made.launches = 3;  // transformations around the product
  made.implementation = fmt::format("cuDNN {}, {}", m.gpu().convolutions.version(), planned->algorithm);
  return made;
}

Step elementwise(Maker& m, std::int64_t elements, std::int64_t reads, std::int64_t writes) {
  Operands o{};
  o.reads = static_cast<int>(reads);
  o.writes = static_cast<int>(writes);
  for (int i = 0; i < o.reads; ++i) o.in[i] = m.numbers(elements);
  for (int i = 0; i < o.writes; ++i) o.out[i] = m.numbers(elements);
  return m.step(m.wide("elementwise", elements).with(elements).with(o));
}

Step batch_norm(Maker& m, const ProbeCall& c) {
  const std::int64_t n = c[0], channels = c[1], plane = c[2], all = n * channels * plane;
  const std::int64_t parts =
      std::clamp<std::int64_t>(m.gpu().multiprocessors * 8 / channels, 1, std::min<std::int64_t>(n, 1024));
  const int block = plane >= 1024 ? 256 : 64;
  const std::int64_t planes = std::min<std::int64_t>(n * channels, 1 << 20);
  const Pointer x = m.numbers(all), sums = m.zeros(static_cast<std::size_t>(channels) * 8);
  if (c.kind == CallKind::batch_norm) {
    const Pointer y = m.numbers(all);
    return m.steps({m.launch(m.typed("batch_norm_sums"), channels, parts, 256)
                        .with(n)
                        .with(channels)
                        .with(plane)
                        .with(x)
                        .with(sums),
                    m.launch(m.typed("batch_norm"), planes, 1, block)
                        .with(n)
                        .with(channels)
                        .with(plane)
                        .with(x)
                        .with(y)
                        .with(sums)},
                   sums, static_cast<std::size_t>(channels) * 2);
  }
  // The sums of forward are kept; any numbers do for them, as long as they are sums.
  const Pointer dy = m.numbers(all), dx = m.numbers(all), gradients = m.zeros(static_cast<std::size_t>(channels) * 8);
  return m.steps({m.launch(m.typed("batch_norm_backward_sums"), channels, parts, 256)
                      .with(n)
                      .with(channels)
                      .with(plane)
                      .with(x)
                      .with(dy)
                      .with(sums)
                      .with(gradients),
                  m.launch(m.typed("batch_norm_backward"), planes, 1, block)
                      .with(n)
                      .with(channels)
                      .with(plane)
                      .with(x)
                      .with(dy)
                      .with(dx)
                      .with(sums)
                      .with(gradients)},
                 gradients, static_cast<std::size_t>(channels) * 2);
}

Step pooling(Maker& m, const ProbeCall& c) {
  const auto i = [&](std::size_t index) { return static_cast<int>(c[index]); };
  const Pool pool{c[0], i(1), i(2), i(3), i(4), i(5), i(6), i(7), i(8), i(9), i(10)};
  const std::int64_t large = c[0] * c[1] * c[2], small = c[0] * c[3] * c[4];
  const Pointer x = m.numbers(large), y = m.numbers(small), chosen = m.zeros(static_cast<std::size_t>(small) * 4);
  auto forward = m.wide("pooling", small).with(pool).with(x).with(y).with(chosen);
  if (c.kind == CallKind::pooling) return m.step(std::move(forward));
  return m.step(m.wide("pooling_backward", large).with(pool).with(chosen).with(y).with(x));
}

Step rows(Maker& m, const ProbeCall& c) {
  const std::int64_t r = c[0], n = c[1], all = r * n;
  switch (c.kind) {
    case CallKind::softmax: {
      const Pointer x = m.numbers(all), y = m.numbers(all);
      return m.step(m.rows("softmax", r, n).with(r).with(n).with(x).with(y));
    }
    case CallKind::softmax_backward: {
      const Pointer y = m.numbers(all), dy = m.numbers(all), dx = m.numbers(all);
      return m.step(m.rows("softmax_backward", r, n).with(r).with(n).with(y).with(dy).with(dx));
    }
    case CallKind::layer_norm: {
      const Pointer x = m.numbers(all), y = m.numbers(all), moments = m.floats(2 * r);
      return m.step(m.rows("layer_norm", r, n).with(r).with(n).with(x).with(y).with(moments));
    }
    case CallKind::layer_norm_backward: {
      const Pointer x = m.numbers(all), dy = m.numbers(all), dx = m.numbers(all), moments = m.floats(2 * r);
      return m.step(m.rows("layer_norm_backward", r, n).with(r).with(n).with(x).with(dy).with(dx).with(moments));
    }
    case CallKind::cross_entropy: {
      const Pointer x = m.numbers(all), label = m.indices(r, n), loss = m.floats(r);
      return m.step(m.rows("cross_entropy", r, n).with(r).with(n).with(x).with(label).with(loss));
    }
    case CallKind::cross_entropy_backward: {
      const Pointer x = m.numbers(all), label = m.indices(r, n), dx = m.numbers(all);
      return m.step(m.rows("cross_entropy_backward", r, n).with(r).with(n).with(x).with(label).with(dx));
    }
    default: {
      const Pointer x = m.numbers(all), y = m.floats(r);
      return m.step(m.rows("row_sum", r, n).with(r).with(n).with(x).with(y));
    }
  }
}

Step column_sum(Maker& m, const ProbeCall& c) {
  const std::int64_t pack = m.bits16() ? 8 : 4, width = 32 * (c[1] % pack == 0 ? pack : 1);
  const std::int64_t grid = (c[1] + width - 1) / width;
  const std::int64_t parts =
      std::clamp<std::int64_t>(m.gpu().multiprocessors * 8 / grid, 1, std::min<std::int64_t>((c[0] + 7) / 8, 65535));
  const Pointer x = m.numbers(c[0] * c[1]), y = m.zeros(static_cast<std::size_t>(c[1]) * 4);
  return m.steps({m.launch(m.typed("column_sum"), grid, parts, 32, 8).with(c[0]).with(c[1]).with(x).with(y)}, y,
                 static_cast<std::size_t>(c[1]));
}

Step host_copy(Maker& m, DeviceMemory& memory, const ProbeCall& c) {
  const auto bytes = static_cast<std::size_t>(c[0]);
  const Pointer device = m.raw(bytes);
  const auto host = memory.host(bytes);
  if (!host) m.fail(host.error());
  if (m.error()) return {};
  Step made;
  made.implementation = "pinned copy";
  const Driver* driver = &m.gpu().driver;
  if (c.kind == CallKind::host_to_device)
    made.run = [=, from = *host](Stream stream) { return driver->copy_to_device(device, from, bytes, stream); };
  else
    made.run = [=, to = *host](Stream stream) { return driver->copy_to_host(to, device, bytes, stream); };
  return made;
}

Step copy(Maker& m, const ProbeCall& c) {
  const std::size_t bytes = static_cast<std::size_t>(c[0]) * (m.bits16() ? 2 : 4);
  const Pointer from = m.numbers(c[0]), to = m.numbers(c[0]);
  Step made;
  made.run = [=, driver = &m.gpu().driver](Stream stream) { return driver->copy_on_device(to, from, bytes, stream); };
  made.implementation = "device copy";
  return made;
}

Step make(Maker& m, DeviceMemory& memory, const ProbeCall& c, ProbePrecision precision) {
  switch (c.kind) {
    case CallKind::matmul: return matmul(m, c, precision);
    case CallKind::convolution:
    case CallKind::convolution_data:
    case CallKind::convolution_filter: return convolution(m, c, precision);
    case CallKind::elementwise: return elementwise(m, c[0], c[1], c[2]);
    case CallKind::copy: return copy(m, c);
    case CallKind::batch_norm:
    case CallKind::batch_norm_backward: return batch_norm(m, c);
    case CallKind::pooling:
    case CallKind::pooling_backward: return pooling(m, c);
    case CallKind::embedding: {
      const Pointer table = m.numbers(c[0] * c[1]), index = m.indices(c[2], c[0]), y = m.numbers(c[2] * c[1]);
      return m.step(m.launch(m.typed("embedding"), c[2], 1, 128).with(c[1]).with(table).with(index).with(y));
    }
    case CallKind::embedding_backward: {
      const Pointer table = m.floats(c[0] * c[1]), index = m.indices(c[2], c[0]), dy = m.numbers(c[2] * c[1]);
      return m.step(m.launch(m.typed("embedding_backward"), c[2], 1, 128).with(c[1]).with(index).with(dy).with(table));
    }
    case CallKind::column_sum: return column_sum(m, c);
    case CallKind::adam: {
      const Pointer g = m.numbers(c[0]), w = m.numbers(c[0]), master = m.floats(c[0]), mean = m.floats(c[0]),
                    variance = m.zeros(static_cast<std::size_t>(c[0]) * 4);
      return m.step(m.wide("adam", c[0]).with(c[0]).with(g).with(w).with(master).with(mean).with(variance));
    }
    case CallKind::launch: return m.step(m.launch("nothing", 1, 1, 32));
    case CallKind::host_to_device:
    case CallKind::device_to_host: return host_copy(m, memory, c);
    default: return rows(m, c);
  }
}

}  // namespace

Expected<Step> make_step(Gpu& gpu, DeviceMemory& memory, const ProbeCall& call, ProbePrecision precision) {
  Maker maker(gpu, memory, precision);
  Step made = make(maker, memory, call, precision);
  if (maker.error()) return *maker.error();
  made.count = call.count;
  made.operands = maker.take_operands();
  return made;
}

}  // namespace turnpoint::probe::cuda
