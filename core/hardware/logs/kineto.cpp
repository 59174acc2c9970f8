// SPDX-License-Identifier: Apache-2.0
// Traces of the PyTorch profiler (Kineto's Chrome traces), of any length. A kernel has the "correlation" of the call
// that launched it, which lies inside its operator, or names the operator by "External id"; NCCL's kernels carry what
// was exchanged; operators nest by thread and time, and one of backward has the sequence number of its forward one.
// Times are microseconds.
#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <unordered_map>

#include "core/base/text.h"
#include "core/hardware/logs/json_stream.h"
#include "core/hardware/logs/log_text.h"
#include "core/hardware/logs/readers.h"

namespace turnpoint::logs {

namespace {

constexpr std::size_t kMostTraceOperators = 3'000'000, kMostDimensions = 16, kMostInputs = 8, kMostRankList = 65536;
constexpr std::string_view kBackwardNode = "autograd::engine::evaluate_function: ";

struct TraceEvent {
  std::string category, name, thread, collective, data_type, ranks;
  double start = 0, duration = 0, external = -1, correlation = -1, sequence = -1, in_elements = 0, out_elements = 0,
         group = 0;
  std::vector<std::vector<std::int64_t>> dims;
  std::vector<std::string> types;
};

/// One operator of the processor's side.
struct TraceOperator {
  std::int64_t external = -1, sequence = -1;  ///< of a launch: external is its correlation
  double start = 0, end = 0;
  std::uint32_t name = 0, thread = 0;
  std::int64_t samples = 0, inputs = 0, outputs = 0;  ///< of a matrix product; 0: none, or its sizes were not recorded
  Precision precision = Precision::fp32;
  bool launch = false;
};

struct TraceKernel {
  std::int64_t correlation = -1, external = -1;
  double seconds = 0;
};

struct ExchangeKey {
  Collective kind = Collective::all_reduce;
  DeviceGroup group;
  double bytes = 0;
  friend auto operator<=>(const ExchangeKey&, const ExchangeKey&) = default;
};

Precision precision_of_type(std::string_view type) {
  return type.find("Half") != std::string_view::npos || type.find("BFloat16") != std::string_view::npos
             ? Precision::bf16
             : Precision::fp32;
}

double element_size(std::string_view type) {
  constexpr std::pair<std::string_view, double> kSizes[] = {{"BFloat16", 2}, {"Half", 2}, {"Float8", 1}, {"Float", 4},
                                                            {"Double", 8},   {"Byte", 1}, {"Char", 1},   {"Int", 4},
                                                            {"Long", 8},     {"Bool", 1}};
  for (const auto& [name, size] : kSizes)
    if (type.find(name) != std::string_view::npos) return size;
  return 0;
}

std::optional<Collective> collective_of(std::string_view name) {
  if (name == "send" || name == "recv") return Collective::send;
  if (name == "reduce" || name == "gather" || name == "scatter") return std::nullopt;
  return collective_in_name(name);
}

class TraceReader : public JsonListener {
 public:
  explicit TraceReader(const std::string& path) : out_(LogKind::kineto, path) {}

  void begin(int depth, const std::string& key, bool list) override {
    if (event_depth_ < 0 && list && (depth == 0 || (depth == 1 && key == "traceEvents"))) event_depth_ = depth + 1;
    if (depth == 1 && list) section_ = key;
    if (depth == event_depth_ && !list && in_events(depth)) event_ = {};
    if (depth == 2 && !list && section_ == "deviceProperties") ++devices_;
    if (event_depth_ > 0 && depth == event_depth_ + 2) list_ = key;
    if (event_depth_ > 0 && depth == event_depth_ + 3 && list && list_ == "Input Dims" &&
        event_.dims.size() < kMostInputs)
      event_.dims.emplace_back();
  }
  void end(int depth, bool list) override {
    if (depth == 1 && list) section_.clear();
    if (depth == event_depth_ && !list && in_events(depth)) take_event();
    if (event_depth_ > 0 && depth == event_depth_ + 2) list_.clear();
  }
  void number(int depth, const std::string& key, double value) override {
    if (depth == 3 && section_ == "deviceProperties" && key == "totalGlobalMem") out_.log().memory_bytes = value;
    if (event_depth_ < 0 || depth <= event_depth_) return;
    const int inside = depth - event_depth_;
    if (inside == 1) {
      if (key == "ts") event_.start = value;
      if (key == "dur") event_.duration = value;
      if (key == "tid") event_.thread = fmt::format("{}", value);
    } else if (inside == 2) {
      if (key == "External id" || key == "external id") event_.external = value;
      if (key == "correlation") event_.correlation = value;
      if (key == "Sequence number") event_.sequence = value;
      if (key == "In msg nelems") event_.in_elements = value;
      if (key == "Out msg nelems") event_.out_elements = value;
      if (key == "Group size") event_.group = value;
    } else if (inside == 4 && list_ == "Input Dims" && !event_.dims.empty() &&
               event_.dims.back().size() < kMostDimensions && value >= 0 && value < 1e15) {
      event_.dims.back().push_back(static_cast<std::int64_t>(value));
    }
  }
  void text(int depth, const std::string& key, const std::string& value) override {
    if (depth == 3 && section_ == "deviceProperties" && key == "name" && out_.log().device_name.empty())
      out_.log().device_name = value.substr(0, 80);
    if (event_depth_ < 0 || depth <= event_depth_) return;
    const int inside = depth - event_depth_;
    if (inside == 1) {
      if (key == "cat") event_.category = value.substr(0, 64);
      if (key == "name") event_.name = value.substr(0, 200);
      if (key == "tid") event_.thread = value.substr(0, 64);
    } else if (inside == 2) {
      if (key == "Collective name") event_.collective = value.substr(0, 64);
      if (key == "dtype") event_.data_type = value.substr(0, 64);
      if (key == "Process Group Ranks") event_.ranks = value.substr(0, 1 << 20);
    } else if (inside == 3 && list_ == "Input type" && event_.types.size() < kMostInputs) {
      event_.types.push_back(value.substr(0, 64));
    }
  }

  Expected<MeasuredLog> finish() {
    if (operators_.size() >= kMostTraceOperators)
      out_.warn(0, fmt::format("the operators after the first {} are left out", kMostTraceOperators));
    nest();
    emit_operators();
    emit_exchanges();
    if (kernels_ == 0)
      out_.warn(0, "no kernel of a device was recorded, so nothing was timed (activities=[..., CUDA])");
    if (devices_ > 0) out_.log().devices_per_node = std::max(out_.log().devices_per_node, devices_);
    return out_.finish();
  }

 private:
  bool in_events(int depth) const { return depth == 1 || section_ == "traceEvents"; }

  std::uint32_t interned(std::map<std::string, std::uint32_t>& names, const std::string& name) {
    return names.emplace(name, static_cast<std::uint32_t>(names.size())).first->second;
  }

  void take_event() {
    if (event_.category == "cpu_op" || event_.category == "Operator") return take_operator();
    if (event_.category == "cuda_runtime" || event_.category == "cuda_driver") return take_launch();
    if (event_.category != "kernel" && event_.category != "Kernel") return;
    ++kernels_;
    if (!(event_.duration > 0) || event_.duration > 1e12) return;
    if (!event_.collective.empty() || event_.name.starts_with("nccl")) return take_exchange();
    if (kernel_list_.size() < kMostTraceOperators)
      kernel_list_.push_back({id_of(event_.correlation), id_of(event_.external), event_.duration * 1e-6});
  }

  static std::int64_t id_of(double value) { return value >= 0 && value < 1e15 ? static_cast<std::int64_t>(value) : -1; }

  void take_launch() {
    if (event_.name.find("Launch") == std::string::npos || operators_.size() >= kMostTraceOperators) return;
    TraceOperator call;
    call.external = id_of(event_.correlation);
    call.start = event_.start;
    call.end = event_.start + event_.duration;
    call.thread = interned(threads_, event_.thread);
    call.name = interned(names_, "launch");
    call.launch = true;
    operators_.push_back(call);
  }

  void take_operator() {
    if (operators_.size() >= kMostTraceOperators) return;
    TraceOperator op;
    op.external = id_of(event_.external);
    op.sequence = id_of(event_.sequence);
    op.start = event_.start;
    op.end = event_.start + event_.duration;
    op.name = interned(names_, event_.name);
    op.thread = interned(threads_, event_.thread);
    // mm(A, B), addmm(bias, A, B): the operands of every dense layer, whatever the shape of its activations.
    const std::size_t first = event_.name == "aten::mm" ? 0 : event_.name == "aten::addmm" ? 1 : kMostInputs;
    if (first < kMostInputs && event_.dims.size() > first + 1 && event_.dims[first].size() == 2 &&
        event_.dims[first + 1].size() == 2 && event_.dims[first][1] == event_.dims[first + 1][0]) {
      op.samples = event_.dims[first][0];
      op.inputs = event_.dims[first][1];
      op.outputs = event_.dims[first + 1][1];
      if (event_.types.size() > first) op.precision = precision_of_type(event_.types[first]);
    } else if (first < kMostInputs && event_.dims.empty()) {
      ++without_shapes_;
    }
    operators_.push_back(op);
  }

  void take_exchange() {
    const auto kind = collective_of(event_.collective);
    const double size = element_size(event_.data_type);
    if (!kind || event_.group < 2 || event_.group > kMostRankList || size == 0) return void(++unclear_exchanges_);
    const int ranks = static_cast<int>(event_.group);
    double elements = event_.in_elements;
    if (*kind == Collective::all_gather) elements = event_.out_elements;
    if (*kind == Collective::all_to_all) elements *= ranks;  // the local blocks of all members
    const auto group = *kind == Collective::send ? std::optional<DeviceGroup>() : group_of_ranks(ranks);
    if (!group || elements < 1) return void(++unclear_exchanges_);
    exchanges_[{*kind, *group, elements * size}].push_back(static_cast<float>(event_.duration * 1e-6));
  }

  /// "[0, 1, 2, 3]" over nodes of as many devices as the trace lists; nullopt: they do not lie evenly.
  std::optional<DeviceGroup> group_of_ranks(int ranks) const {
    const int per_node = std::max(1, devices_);
    std::map<std::int64_t, int> nodes;
    std::string_view text = event_.ranks;
    if (text.starts_with("[")) text.remove_prefix(1);
    for (const auto part : split(text, ','))
      if (const auto rank = parse_int(trimmed(part.substr(0, part.find(']')))); rank && *rank >= 0)
        ++nodes[*rank / per_node];
    int listed = 0;
    for (const auto& [node, count] : nodes) listed += count;
    if (listed != ranks) return ranks <= per_node ? std::optional(DeviceGroup{ranks, 1, ranks, 1}) : std::nullopt;
    for (const auto& [node, count] : nodes)
      if (count != nodes.begin()->second) return std::nullopt;
    const int count = static_cast<int>(nodes.size());
    return DeviceGroup{ranks, count, ranks / count, 1};
  }

  /// Every kernel to the call that launched it, where the trace has that call, else to the operator that it names.
  void assign_kernels() {
    std::unordered_map<std::int64_t, std::uint32_t> calls, named;
    for (std::size_t i = 0; i < operators_.size(); ++i)
      if (operators_[i].external >= 0)
        (operators_[i].launch ? calls : named).emplace(operators_[i].external, static_cast<std::uint32_t>(i));
    own_.assign(operators_.size(), 0);
    for (const auto& kernel : kernel_list_) {
      auto found = calls.find(kernel.correlation);
      if (kernel.correlation < 0 || found == calls.end()) {
        found = named.find(kernel.external);
        if (kernel.external < 0 || found == named.end()) continue;
      }
      own_[found->second] += kernel.seconds;
    }
  }

  /// Sums kernels up to the operators around them, and finds which are part of backward, and of what.
  void nest() {
    std::vector<std::string> names(names_.size());
    for (const auto& [name, index] : names_) names[index] = name;
    order_.resize(operators_.size());
    for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<std::uint32_t>(i);
    std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
      const auto &x = operators_[a], &y = operators_[b];
      return std::tuple(x.thread, x.start, -x.end, a) < std::tuple(y.thread, y.start, -y.end, b);
    });
    std::vector<std::uint32_t> open;
    assign_kernels();
    seconds_ = own_;
    backward_.assign(operators_.size(), false);
    const auto close = [&] {
      const std::uint32_t done = open.back();
      open.pop_back();
      const auto& op = operators_[done];
      if (!open.empty()) {
        seconds_[open.back()] += seconds_[done];
        if (op.launch) own_[open.back()] += seconds_[done];
      }
      if (names[op.name].starts_with(kBackwardNode) && op.sequence >= 0 && seconds_[done] > 0)
        backward_seconds_[op.sequence] += seconds_[done];
    };
    for (const std::uint32_t i : order_) {
      const auto& op = operators_[i];
      while (!open.empty() && (operators_[open.back()].thread != op.thread || operators_[open.back()].end <= op.start))
        close();
      backward_[i] = (!open.empty() && backward_[open.back()]) || names[op.name].starts_with(kBackwardNode);
      open.push_back(i);
    }
    while (!open.empty()) close();
    sorted_names_ = std::move(names);
  }

  void emit_operators() {
    using Product = std::tuple<std::int64_t, std::int64_t, std::int64_t, Precision, bool>;
    std::map<Product, std::vector<double>> products;
    std::map<std::pair<std::uint32_t, bool>, std::vector<double>> others;
    for (std::size_t i = 0; i < operators_.size(); ++i) {
      const auto& op = operators_[i];
      if (op.launch) continue;
      if (op.samples > 0 && !backward_[i]) {
        if (seconds_[i] > 0) products[{op.samples, op.inputs, op.outputs, op.precision, false}].push_back(seconds_[i]);
        if (const auto found = backward_seconds_.find(op.sequence);
            op.sequence >= 0 && found != backward_seconds_.end())
          products[{op.samples, op.inputs, op.outputs, op.precision, true}].push_back(found->second);
      } else if (own_[i] > 0) {
        others[{op.name, backward_[i]}].push_back(own_[i]);
      }
    }
    for (auto& [key, times] : products) {
      const auto& [samples, inputs, outputs, precision, backward] = key;
      emit("matmul", {{"samples", samples}, {"inputs", inputs}, {"outputs", outputs}}, precision, backward, times);
    }
    for (auto& [key, times] : others) emit(sorted_names_[key.first], {}, Precision::fp32, key.second, times);
    if (without_shapes_ > 0)
      out_.note(0, fmt::format("{} matrix products without sizes: they are recorded with record_shapes=True",
                               without_shapes_));
  }

  void emit(std::string kind, std::vector<std::pair<std::string, std::int64_t>> dims, Precision precision,
            bool backward, std::vector<double>& times) {
    std::sort(times.begin(), times.end());
    MeasuredOperator sample;
    sample.kind = std::move(kind);
    sample.dims = std::move(dims);
    sample.precision = precision;
    sample.phase = backward ? "backward" : "forward";
    sample.time_s = quantile(times, 0.5);
    sample.spread = {times.front(), quantile(times, 0.25), quantile(times, 0.75), times.back()};
    out_.op(std::move(sample));
  }

  /// The fastest of each size: the kernel of an early device waits for the last one, and that is no exchange.
  void emit_exchanges() {
    std::size_t repeats = 0;
    for (auto& [key, durations] : exchanges_) {
      std::vector<double> times(durations.begin(), durations.end());
      std::sort(times.begin(), times.end());
      repeats = std::max(repeats, times.size());
      out_.time(0, key.kind, key.group, key.bytes, times.front(),
                {times.front(), quantile(times, 0.25), quantile(times, 0.75), times.back()}, {},
                static_cast<int>(times.size()));
      out_.log().nodes = std::max(out_.log().nodes, key.group.nodes);
    }
    if (repeats > 1) out_.note(0, "of each collective the fastest time counts: the others waited for a later device");
    if (unclear_exchanges_ > 0)
      out_.note(
          0, fmt::format("{} kernels of NCCL do not say what was exchanged among whom: left out", unclear_exchanges_));
  }

  LogBuilder out_;
  int event_depth_ = -1, devices_ = 0;
  std::string section_, list_;
  TraceEvent event_;
  std::map<std::string, std::uint32_t> names_, threads_;
  std::vector<std::string> sorted_names_;
  std::vector<TraceOperator> operators_;
  std::vector<std::uint32_t> order_;
  std::vector<double> seconds_;  ///< of an operator's kernels, nested ones included
  std::vector<bool> backward_;
  std::vector<double> own_;  ///< of kernels that it launched itself
  std::vector<TraceKernel> kernel_list_;
  std::unordered_map<std::int64_t, double> backward_seconds_;
  std::map<ExchangeKey, std::vector<float>> exchanges_;
  std::size_t kernels_ = 0, without_shapes_ = 0, unclear_exchanges_ = 0;
};

}  // namespace

bool looks_like_kineto(std::string_view start) {
  const auto begin = start.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return false;
  const std::string_view head = start.substr(begin, 1u << 20);
  if (head.front() == '{')
    return head.find("\"traceEvents\"") != std::string_view::npos ||
           head.find("\"deviceProperties\"") != std::string_view::npos;
  return head.front() == '[' && head.substr(0, 4096).find("\"ph\"") != std::string_view::npos;
}

Expected<MeasuredLog> read_kineto(ByteSource& source, const std::string& path) {
  TraceReader reader(path);
  const auto read = stream_json(source, path, reader);
  if (!read) return read.error();
  return reader.finish();
}

}  // namespace turnpoint::logs
