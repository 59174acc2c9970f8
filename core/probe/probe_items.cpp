// SPDX-License-Identifier: Apache-2.0
#include "core/probe/probe_items.h"

#include <fmt/format.h>
#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "core/cost/row_alignment.h"
#include "core/model/builder.h"
#include "core/model/operator_kind.h"

namespace turnpoint {

namespace {

constexpr std::size_t kMostItems = 20'000;

Precision modelled_as(ProbePrecision precision) {
  return precision == ProbePrecision::bf16 ? Precision::bf16 : Precision::fp32;
}

/// Gathers items, each signature once.
class Gatherer {
 public:
  explicit Gatherer(std::span<const ProbePrecision> precisions) : precisions_(precisions.begin(), precisions.end()) {}

  /// `order`: what comes first.
  void add(const Model& model, const Operator& op, const std::vector<std::int64_t>& local, int order) {
    for (const bool backward : {false, true}) {
      const auto calls = probe_calls(model, op, local, backward);
      if (!calls) {
        reasons_.insert(calls.error().what);
        continue;
      }
      if (calls->empty()) continue;
      for (const auto precision : precisions_) {
        // Only products have a reduced format of their own; the rest would be measured twice.
        if (precision == ProbePrecision::tf32 && !record_of(op.kind).products) continue;
        ProbeOperator item;
        item.kind = record_of(op.kind).timed_as;
        item.fit = fitted_kind(model, op);
        if (precision == ProbePrecision::bf16) item.fit = fitted_kind_of(item.fit, rows_of(model, op, local));
        item.dims = local;
        item.precision = precision;
        item.backward = backward;
        const PhaseWork work = local_work(model, op, local, modelled_as(precision), backward);
        item.flop = work.flop;
        item.bytes = work.bytes;
        item.launches = work.launches;
        item.calls = *calls;
        add(std::move(item), order);
      }
    }
  }
  void add(ProbeOperator item, int order) {
    if (ordered_.size() >= kMostItems) return;
    const auto key = fmt::format("{} {} {} {} {}", item.kind, fmt::join(item.dims, "x"), to_string(item.precision),
                                 item.backward, item.fit);
    if (!met_.insert(key).second) return;
    ordered_.push_back({order, std::move(item)});
  }

  ProbeItems finish(bool by_work) {
    std::stable_sort(ordered_.begin(), ordered_.end(), [&](const Entry& a, const Entry& b) {
      return a.order != b.order ? a.order < b.order
                                : by_work && a.item.flop + a.item.bytes > b.item.flop + b.item.bytes;
    });
    ProbeItems items;
    for (auto& entry : ordered_) items.operators.push_back(std::move(entry.item));
    items.left_out.assign(reasons_.begin(), reasons_.end());
    return items;
  }

 private:
  struct Entry {
    int order;
    ProbeOperator item;
  };
  std::vector<ProbePrecision> precisions_;
  std::vector<Entry> ordered_;
  std::set<std::string> met_, reasons_;
};

/// Calls body(local sizes, splits) for every way in which up to log2(devices) halvings lie on splittable dimensions.
void each_split(const Operator& op, int devices,
                const std::function<void(const std::vector<std::int64_t>&, int)>& body) {
  std::vector<std::int64_t> local;
  for (const auto& dim : op.dims) local.push_back(dim.size);
  const std::function<void(std::size_t, int, int)> visit = [&](std::size_t from, int left, int splits) {
    body(local, splits);
    if (left < 2) return;
    for (std::size_t d = from; d < local.size(); ++d) {
      if (!op.dims[d].splittable || local[d] % 2 != 0) continue;
      local[d] /= 2;
      visit(d, left / 2, splits + 1);
      local[d] *= 2;
    }
  };
  visit(0, devices, 0);
}

constexpr const char* kScaling = "Mul";  // what makes operands of the standard list, and is not measured itself

/// A model of operators side by side, from which the standard list is taken. Each gets operands of its own.
class Shapes {
 public:
  explicit Shapes(bool large) : large_(large), b_("shapes", "", 1, 0) { fill(); }
  Expected<ModelPtr> finish() { return b_.finish({}); }

 private:
  using Sizes = std::vector<std::int64_t>;
  /// Needs a gradient, as activations inside a network do.
  TensorId activation(const Sizes& shape, std::vector<DimName> dims) {
    const auto x = b_.input(name("x"), shape, dims, ElementType::f32);
    const auto w = b_.parameter(name("w"), {1});
    const TensorId operands[] = {x, w};
    return b_.elementwise(name("scale"), kScaling, operands, {1, false, {true, true}});
  }
  std::string name(const char* what) { return fmt::format("{}{}", what, ++count_); }

  void fill() {
    using D = DimName;
    const std::vector<D> tokens{D::batch, D::sequence, D::channel}, image{D::batch, D::channel, D::height, D::width};
    const auto linear = [&](std::int64_t rows, std::int64_t in, std::int64_t out) {
      b_.linear(name("linear"), activation({rows, in}, {D::batch, D::channel}),
                b_.parameter(name("weight"), {in, out}));
    };
    for (const std::int64_t rows : large_ ? Sizes{128, 1024, 4096, 16384} : Sizes{16, 64, 256})
      for (const std::int64_t width : large_ ? Sizes{1024, 4096, 8192} : Sizes{64, 256, 1024})
        linear(rows, width, width);
    if (large_) linear(8192, 4096, 16384), linear(8192, 16384, 4096), linear(512, 1024, 50304);
    // Rows of odd numbers, and of even ones that are no multiple of 8.
    for (const std::int64_t odd : large_ ? Sizes{1, 2, 4} : Sizes{})
      linear(4096, 4096, 4096 + odd), linear(1024, 1024 + odd, 8192), linear(8192, 1024, 20000 + odd),
          linear(16384, 2048 + odd, 2048);
    for (const std::int64_t s : large_ ? Sizes{256, 512, 1024, 2048} : Sizes{32, 64, 128}) {
      const std::int64_t heads = large_ ? 32 : 4, channels = large_ ? 128 : 32, batch = large_ ? 4 : 2;
      const std::vector<D> dims{D::batch, D::head, D::sequence, D::head_channel};
      const auto score = b_.matmul(name("score"), activation({batch, heads, s, channels}, dims),
                                   activation({batch, heads, s, channels}, dims), false, true);
      const auto weights = b_.softmax(name("softmax"), score, 3);
      b_.matmul(name("context"), weights, activation({batch, heads, s, channels}, dims));
    }
    for (const std::int64_t rows : large_ ? Sizes{512, 4096, 32768} : Sizes{16, 128, 1024})
      for (const std::int64_t width : large_ ? Sizes{1024, 4096} : Sizes{128, 1024}) {
        const auto x = activation({rows / 16, 16, width}, tokens);
        b_.normalisation(name("norm"), x, 2, b_.parameter(name("gain"), {width}), b_.parameter(name("bias"), {width}));
        const TensorId one[] = {x}, two[] = {x, activation({rows / 16, 16, width}, tokens)};
        b_.elementwise(name("gelu"), "Gelu", one, {8, false, {true}});
        b_.elementwise(name("add"), "Add", two);
      }
    for (const std::int64_t lookups : large_ ? Sizes{1024, 4096, 16384, 32768} : Sizes{64, 256, 1024, 4096}) {
      const auto ids = b_.input(name("ids"), {lookups / 16, 16}, {D::batch, D::sequence}, ElementType::i64);
      const std::int64_t words = large_ ? 50304 : 4096, width = large_ ? 4096 : 128;
      b_.embedding(name("embedding"), b_.parameter(name("table"), {words, width}), ids);
      const auto labels = b_.input(name("labels"), {lookups / 4}, {D::batch}, ElementType::i64);
      b_.cross_entropy(name("loss"), activation({lookups / 4, words}, {D::batch, D::vocabulary}), labels);
    }
    struct Layer {
      std::int64_t in, out, size, kernel, stride;
    };
    const std::vector<Layer> layers =
        large_ ? std::vector<Layer>{{3, 64, 224, 7, 2},   {64, 64, 56, 1, 1},   {64, 64, 56, 3, 1},
                                    {64, 256, 56, 1, 1},  {128, 128, 56, 3, 2}, {128, 128, 28, 3, 1},
                                    {512, 128, 28, 1, 1}, {256, 256, 14, 3, 1}, {1024, 256, 14, 1, 1},
                                    {512, 512, 7, 3, 1},  {512, 2048, 7, 1, 1}, {64, 128, 112, 3, 1},
                                    {256, 512, 56, 1, 2}}
               : std::vector<Layer>{{3, 16, 32, 3, 1}, {16, 32, 32, 3, 2}, {32, 32, 16, 3, 1}, {32, 64, 16, 1, 1},
                                    {64, 64, 8, 3, 1}, {8, 16, 16, 5, 1},  {3, 16, 64, 7, 2}};
    for (const std::int64_t batch : large_ ? Sizes{32, 128} : Sizes{2, 8})
      for (const auto& layer : layers)
        convolve(batch, layer.in, layer.out, layer.size, layer.kernel, layer.stride, image);
    for (const std::int64_t hidden : large_ ? Sizes{512, 1024} : Sizes{64, 256})
      for (const std::int64_t samples : large_ ? Sizes{32, 128} : Sizes{1, 4, 16}) remember(samples, 8, hidden);
    remember(large_ ? 32 : 4, 32, large_ ? 512 : 64);  // what a time step takes beside its work
  }

  /// An LSTM layer.
  void remember(std::int64_t samples, std::int64_t steps, std::int64_t hidden) {
    constexpr int kGates = 4;
    b_.recurrent(name("lstm"), "LSTM",
                 activation({samples, steps, hidden}, {DimName::batch, DimName::time, DimName::channel}),
                 b_.parameter(name("input_weight"), {1, kGates * hidden, hidden}),
                 b_.parameter(name("state_weight"), {1, kGates * hidden, hidden}),
                 b_.parameter(name("bias"), {1, 2 * kGates * hidden}), kGates, 1, hidden, true);
  }

  void convolve(std::int64_t batch, std::int64_t in, std::int64_t out, std::int64_t size, std::int64_t kernel,
                std::int64_t stride, const std::vector<DimName>& dims) {
    ConvolutionShape c;
    c.kernel = {kernel, kernel};
    c.strides = {stride, stride};
    c.dilations = {1, 1};
    c.pads_begin = c.pads_end = {kernel / 2, kernel / 2};
    const auto y = b_.convolution(name("conv"), activation({batch, in, size, size}, dims),
                                  b_.parameter(name("kernel"), {out, in, kernel, kernel}), std::nullopt, c);
    if (b_.error()) return;
    const auto normal =
        b_.batch_normalisation(name("bn"), y, b_.parameter(name("gain"), {out}), b_.parameter(name("bias"), {out}),
                               b_.buffer(name("mean"), {out}), b_.buffer(name("variance"), {out}));
    const TensorId one[] = {normal};
    b_.elementwise(name("relu"), "Relu", one, {1, true});
    const auto made = b_.tensor(normal).shape;
    if (made[2] % 2 == 0)
      b_.pooling(name("pool"), "MaxPool", normal, {batch, out, made[2] / 2, made[3] / 2}, {2, 2}, true);
  }

  bool large_;
  int count_ = 0;
  ModelBuilder b_;
};

/// How often 0 ... last is cut into halves until one ends at `place`: what a short budget leaves of a kind that is
/// measured by rising numbers of cuts lies all over its sizes.
int halvings(int place, int last) {
  int low = 0, high = last, cuts = 0;
  while (place != low && place != high) {
    const int middle = (low + high) / 2;
    (place <= middle ? high : low) = middle;
    ++cuts;
  }
  return cuts;
}

ProbeOperator plain(const char* kind, CallKind call, std::initializer_list<std::int64_t> sizes,
                    ProbePrecision precision) {
  ProbeOperator item;
  item.kind = kind;
  item.dims = sizes;
  item.precision = precision;
  ProbeCall made;
  made.kind = call;
  std::copy(sizes.begin(), sizes.end(), made.size.begin());
  item.calls = {made};
  return item;
}

ProbeOperator cache_pass(std::int64_t elements) {
  ProbeOperator item = plain(kCachePass, CallKind::elementwise, {elements, 2, 1}, ProbePrecision::fp32);
  item.dims = {elements};
  return item;
}

}  // namespace

ProbeItems model_items(const Model& model, int devices, std::span<const ProbePrecision> precisions) {
  Gatherer gatherer(precisions);
  for (const auto& op : model.operators) {
    // The update reads gradient and state of as many elements as a device holds.
    each_split(op, devices,
               [&](const std::vector<std::int64_t>& local, int splits) { gatherer.add(model, op, local, splits); });
  }
  return gatherer.finish(true);
}

namespace {

/// Passes through rising numbers of bytes, half an octave apart, from what last caches hold to what few do.
std::vector<ProbeOperator> cache_passes(bool large) {
  std::vector<ProbeOperator> passes;
  for (std::int64_t bytes = std::int64_t(4) << 20; bytes <= std::int64_t(large ? 512 : 128) << 20; bytes *= 2)
    for (const std::int64_t size : {bytes, bytes + bytes / 2 - bytes / 12})  // 17/12: the root of 2
      passes.push_back(cache_pass(size / kCachePassBytes));
  return passes;
}

}  // namespace

ProbeItems standard_items(bool large, std::span<const ProbePrecision> precisions) {
  Gatherer gatherer(precisions);
  const std::int64_t unit = large ? 1 << 20 : 1 << 14;
  for (const auto precision : precisions) {
    if (precision == ProbePrecision::tf32) continue;
    gatherer.add(plain("launch", CallKind::launch, {}, precision), 0);
    for (const std::int64_t scale : {1, 16, 256}) {
      gatherer.add(plain("copy", CallKind::copy, {unit * scale}, precision), 0);
      gatherer.add(plain("update", CallKind::adam, {unit * scale}, precision), 2);
    }
  }
  if (large)
    for (const std::int64_t bytes : {1 << 16, 1 << 20, 1 << 24, 1 << 28}) {
      gatherer.add(plain("host-to-device", CallKind::host_to_device, {bytes}, ProbePrecision::fp32), 0);
      gatherer.add(plain("device-to-host", CallKind::device_to_host, {bytes}, ProbePrecision::fp32), 0);
    }
  const auto model = Shapes(large).finish();
  if (!model) {
    ProbeItems broken;
    broken.left_out = {model.error().message()};
    return broken;
  }
  std::map<std::string_view, int> count, met;
  const auto measured = [](const Operator& op) { return op.kind != OperatorKind::input && op.detail != kScaling; };
  for (const auto& op : (*model)->operators)
    if (measured(op)) ++count[record_of(op.kind).timed_as];
  for (const auto& op : (*model)->operators) {
    if (!measured(op)) continue;
    std::vector<std::int64_t> local;
    for (const auto& dim : op.dims) local.push_back(dim.size);
    const auto kind = record_of(op.kind).timed_as;
    gatherer.add(**model, op, local, 1 + halvings(met[kind]++, count[kind] - 1));
  }
  // Behind one shape of every kind, before all others.
  for (ProbeOperator& pass : cache_passes(large)) gatherer.add(std::move(pass), 1);
  return gatherer.finish(false);
}

std::vector<ProbeCollective> standard_collectives(int ranks, std::int64_t least_bytes, std::int64_t most_bytes) {
  std::vector<ProbeCollective> list;
  const auto add = [&](int size, int stride, std::int64_t bytes) {
    for (const auto kind : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                            Collective::all_to_all, Collective::broadcast})
      list.push_back({kind, size, bytes, stride});
    if (size == 2) list.push_back({Collective::send, size, bytes, stride});
  };
  // The ends first, then those that halve what lies between: what a short budget leaves reaches over the whole curve.
  // Then groups that lie as far apart as they can.
  std::vector<std::int64_t> sizes;
  for (std::int64_t bytes = least_bytes; bytes <= most_bytes; bytes *= 2) sizes.push_back(bytes);
  std::vector<std::pair<int, std::int64_t>> order;
  const int last = static_cast<int>(sizes.size()) - 1;
  for (int i = 0; i <= last; ++i) order.emplace_back(halvings(i, last), sizes[static_cast<std::size_t>(i)]);
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [cuts, bytes] : order)
    for (int size = 2; size <= ranks; ++size)
      if (ranks % size == 0) add(size, 1, bytes);
  for (std::int64_t bytes = least_bytes; bytes <= most_bytes; bytes *= 4)
    for (int size = 2; size < ranks; ++size)
      if (ranks % size == 0) add(size, ranks / size, bytes);
  return list;
}

}  // namespace turnpoint
