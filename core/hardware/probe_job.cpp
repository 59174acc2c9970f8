// SPDX-License-Identifier: Apache-2.0
#include "core/hardware/probe_job.h"

#include <fmt/format.h>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/json.h"
#include "core/base/json_fields.h"

namespace turnpoint {

namespace {

constexpr std::string_view kJobFormat = "turnpoint/probe-job@1";
constexpr std::size_t kMaximumItems = 100'000, kMaximumCalls = 64;
constexpr std::int64_t kMaximumSize = std::int64_t(1) << 40, kMaximumCount = 100'000;
constexpr double kMaximumElements = 1e12;

using Names = std::span<const std::string_view>;
constexpr std::string_view kMatmul[] = {"batch", "m", "n", "k", "transpose_a", "transpose_b"};
constexpr std::string_view kConvolution[] = {"n",     "c",          "h",          "w",        "k",        "r",
                                             "s",     "p",          "q",          "stride_h", "stride_w", "pad_h",
                                             "pad_w", "dilation_h", "dilation_w", "groups"};
constexpr std::string_view kElementwise[] = {"elements", "reads", "writes"};
constexpr std::string_view kElements[] = {"elements"};
constexpr std::string_view kRows[] = {"rows", "columns"};
constexpr std::string_view kPlanes[] = {"n", "c", "plane"};
constexpr std::string_view kPooling[] = {"planes", "h",        "w",        "p",     "q",    "r",
                                         "s",      "stride_h", "stride_w", "pad_h", "pad_w"};
constexpr std::string_view kLookups[] = {"rows", "columns", "lookups"};
constexpr std::string_view kBytes[] = {"bytes"};

constexpr CallRecord kRecords[] = {
    {CallKind::matmul, "matmul", kMatmul},
    {CallKind::convolution, "convolution", kConvolution},
    {CallKind::convolution_data, "convolution-data", kConvolution},
    {CallKind::convolution_filter, "convolution-filter", kConvolution},
    {CallKind::elementwise, "elementwise", kElementwise},
    {CallKind::copy, "copy", kElements},
    {CallKind::softmax, "softmax", kRows},
    {CallKind::softmax_backward, "softmax-backward", kRows},
    {CallKind::layer_norm, "layer-norm", kRows},
    {CallKind::layer_norm_backward, "layer-norm-backward", kRows},
    {CallKind::batch_norm, "batch-norm", kPlanes},
    {CallKind::batch_norm_backward, "batch-norm-backward", kPlanes},
    {CallKind::pooling, "pooling", kPooling},
    {CallKind::pooling_backward, "pooling-backward", kPooling},
    {CallKind::embedding, "embedding", kLookups},
    {CallKind::embedding_backward, "embedding-backward", kLookups},
    {CallKind::cross_entropy, "cross-entropy", kRows},
    {CallKind::cross_entropy_backward, "cross-entropy-backward", kRows},
    {CallKind::row_sum, "row-sum", kRows},
    {CallKind::column_sum, "column-sum", kRows},
    {CallKind::adam, "adam", kElements},
    {CallKind::launch, "launch", Names{}},
    {CallKind::host_to_device, "host-to-device", kBytes},
    {CallKind::device_to_host, "device-to-host", kBytes},
};

constexpr const char* kBackendNames[] = {"auto", "cpu", "cuda"};
constexpr const char* kKernelNames[] = {"auto", "onednn", "own"};
constexpr const char* kPrecisionNames[] = {"fp32", "tf32", "bf16"};

template <class Enum, std::size_t N>
std::optional<Enum> named(const char* const (&names)[N], const std::string& name) {
  for (std::size_t i = 0; i < N; ++i)
    if (name == names[i]) return static_cast<Enum>(i);
  return std::nullopt;
}

bool may_be_zero(std::string_view name) {
  return name.starts_with("transpose") || name.starts_with("pad") || name == "reads";
}

/// Sizes that a kernel would read outside its buffers with.
std::string contradiction(const ProbeCall& call) {
  const auto fits = [](std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride, std::int64_t pad,
                       std::int64_t dilation) {
    return kernel <= in + 2 * pad && (kernel - 1) * dilation + 1 <= in + 2 * pad &&
           (in + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1 == out;
  };
  if (call.kind >= CallKind::convolution && call.kind <= CallKind::convolution_filter) {
    const auto small = std::all_of(call.size.begin(), call.size.begin() + 16, [](auto s) { return s < (1 << 24); });
    if (!small) return "has a size above 16 million";
    if (call[1] % call[15] != 0 || call[4] % call[15] != 0) return "has groups that do not divide its channels";
    if (!fits(call[2], call[7], call[5], call[9], call[11], call[13]) ||
        !fits(call[3], call[8], call[6], call[10], call[12], call[14]))
      return "has an output that its input, kernel, stride, padding and dilation do not make";
  }
  if (call.kind == CallKind::pooling || call.kind == CallKind::pooling_backward) {
    if (call[1] >= 1 << 24 || call[2] >= 1 << 24 || call[9] >= call[5] || call[10] >= call[6])
      return "has a padding as large as its window";
    const auto small = std::all_of(call.size.begin() + 1, call.size.begin() + 11, [](auto s) { return s < (1 << 24); });
    if (!small) return "has a size above 16 million";
    // Rounding up lets the last window start inside the padded input. Larger sizes would wrap these products.
    if ((call[3] - 1) * call[7] - call[9] >= call[1] || (call[4] - 1) * call[8] - call[10] >= call[2])
      return "has windows that lie outside its input";
  }
  if (call.kind == CallKind::elementwise && call[1] + call[2] > 16) return "reads and writes more than 16 tensors";
  if (call_elements(call) > kMaximumElements) return "touches more than 1e12 elements";
  return {};
}

ProbeCall read_call(JsonFields& fields) {
  ProbeCall call;
  const std::string name = fields.text("call");
  const auto* record =
      std::find_if(std::begin(kRecords), std::end(kRecords), [&](const auto& r) { return r.name == name; });
  if (record == std::end(kRecords)) {
    fields.fail("call", fmt::format("'{}' is no kernel that the probe knows", name));
    return call;
  }
  call.kind = record->kind;
  call.count = fields.integer("count", 1, kMaximumCount, 1);
  for (std::size_t i = 0; i < record->sizes.size(); ++i) {
    const auto key = record->sizes[i];
    const bool flag = key.starts_with("transpose");
    call.size[i] = fields.integer(key, may_be_zero(key) ? 0 : 1, flag ? 1 : kMaximumSize);
  }
  if (!fields.error())
    if (auto reason = contradiction(call); !reason.empty()) fields.fail("call", std::move(reason));
  return call;
}

ProbeOperator read_probe_operator(JsonFields& fields) {
  ProbeOperator op;
  op.kind = fields.text("kind");
  op.fit = fields.text("fit", "");
  const auto dims = fields.json().find("dims");
  const bool listed = dims != fields.json().end() && dims->is_array() && dims->size() <= 16;
  if (!listed) fields.fail("dims", "must be a list of at most 16 sizes");
  if (listed)
    for (const auto& dim : *dims) {
      if (!dim.is_number_integer() || dim.get<double>() < 1 || dim.get<double>() > 1e12) {
        fields.fail("dims", "sizes must be whole numbers from 1 to 1e12");
        break;
      }
      op.dims.push_back(dim.get<std::int64_t>());
    }
  const std::string precision = fields.text("precision", "fp32"), phase = fields.text("phase", "forward");
  if (const auto parsed = named<ProbePrecision>(kPrecisionNames, precision))
    op.precision = *parsed;
  else
    fields.fail("precision", fmt::format("must be fp32, tf32 or bf16, not '{}'", precision));
  if (phase != "forward" && phase != "backward")
    fields.fail("phase", fmt::format("must be forward or backward, not '{}'", phase));
  op.backward = phase == "backward";
  op.flop = fields.number("flop", 0, 1e24, 0);
  op.bytes = fields.number("bytes", 0, 1e18, 0);
  op.launches = fields.number("launches", 1, 1e12, 1);
  fields.each("calls", [&](JsonFields& call, std::size_t index) {
    if (index >= kMaximumCalls) return call.fail("call", fmt::format("more than {} calls", kMaximumCalls));
    op.calls.push_back(read_call(call));
  });
  if (!fields.error() && op.calls.empty()) fields.fail("calls", "names no kernel to run");
  return op;
}

ProbeCollective read_probe_collective(JsonFields& fields, int ranks) {
  ProbeCollective collective;
  const std::string kind = fields.text("kind");
  if (const auto parsed = parse_collective(kind))
    collective.kind = *parsed;
  else
    fields.fail("kind", fmt::format("unknown collective '{}'", kind));
  collective.group_size = static_cast<int>(fields.integer("group_size", 2, kMaximumProbeRanks));
  collective.stride = static_cast<int>(fields.integer("stride", 1, kMaximumProbeRanks, 1));
  if (!fields.error() && ranks % (collective.group_size * collective.stride) != 0)
    fields.fail("group_size", fmt::format("{}{} does not divide the {} ranks", collective.group_size,
                                          collective.stride > 1 ? fmt::format(" times the stride {}", collective.stride)
                                                                : std::string(),
                                          ranks));
  collective.bytes = fields.integer("bytes", 1, std::int64_t(1) << 33);
  return collective;
}

}  // namespace

const char* to_string(ProbeBackend backend) { return kBackendNames[static_cast<std::size_t>(backend)]; }
const char* to_string(CpuKernels kernels) { return kKernelNames[static_cast<std::size_t>(kernels)]; }
std::optional<CpuKernels> parse_cpu_kernels(std::string_view name) {
  return named<CpuKernels>(kKernelNames, std::string(name));
}
const char* to_string(ProbePrecision precision) { return kPrecisionNames[static_cast<std::size_t>(precision)]; }
std::span<const CallRecord> call_records() { return kRecords; }
const CallRecord& call_record(CallKind kind) { return kRecords[static_cast<std::size_t>(kind)]; }

namespace {

/// At most: what CPU ranks list of one plane's windows, each place in the 8 bytes of two elements.
double window_elements(const ProbeCall& c) {
  const auto places = [&](std::size_t in, std::size_t window) { return std::min(c.size[in], c.size[window]); };
  const auto d = [](std::int64_t size) { return static_cast<double>(size); };
  return 2 * d(c.size[3]) * d(c.size[4]) * (1 + d(places(1, 5)) * d(places(2, 6)));
}

}  // namespace

double call_elements(const ProbeCall& c) {
  const auto d = [&](std::size_t i) { return static_cast<double>(c.size[i]); };
  switch (c.kind) {
    case CallKind::matmul: return d(0) * (d(1) * d(3) + d(3) * d(2) + d(1) * d(2));
    case CallKind::convolution:
    case CallKind::convolution_data:
    case CallKind::convolution_filter:
      return d(0) * d(1) * d(2) * d(3) + d(4) * d(1) / std::max(1.0, d(15)) * d(5) * d(6) + d(0) * d(4) * d(7) * d(8);
    case CallKind::elementwise: return d(0) * (d(1) + d(2));
    case CallKind::copy: return 2 * d(0);
    case CallKind::softmax:
    case CallKind::layer_norm: return 2 * d(0) * d(1);
    case CallKind::softmax_backward:
    case CallKind::layer_norm_backward: return 3 * d(0) * d(1);
    case CallKind::batch_norm: return 2 * d(0) * d(1) * d(2);
    case CallKind::batch_norm_backward: return 3 * d(0) * d(1) * d(2);
    case CallKind::pooling: return d(0) * (d(1) * d(2) + d(3) * d(4)) + window_elements(c);
    case CallKind::pooling_backward: return 2 * d(0) * (d(1) * d(2) + d(3) * d(4)) + window_elements(c);
    case CallKind::embedding:
    case CallKind::embedding_backward: return d(0) * d(1) + d(2) * d(1) + 2 * d(2);
    case CallKind::cross_entropy:
    case CallKind::cross_entropy_backward: return 2 * d(0) * d(1) + 2 * d(0);
    case CallKind::row_sum: return d(0) * d(1) + d(0);
    case CallKind::column_sum: return d(0) * d(1) + d(1);
    case CallKind::adam: return 4 * d(0);
    case CallKind::launch: return 0;
    case CallKind::host_to_device:
    case CallKind::device_to_host: return d(0) / 4;
  }
  return 0;
}

double call_flop(const ProbeCall& c) {
  const auto d = [&](std::size_t i) { return static_cast<double>(c.size[i]); };
  if (c.kind == CallKind::matmul) return 2 * d(0) * d(1) * d(2) * d(3);
  if (c.kind >= CallKind::convolution && c.kind <= CallKind::convolution_filter)
    return 2 * d(0) * d(4) * d(7) * d(8) * d(1) / std::max(1.0, d(15)) * d(5) * d(6);
  return 0;
}

Expected<ProbeJob> parse_probe_job(std::string_view text, const std::string& where) {
  auto document = parse_json(text, where);
  if (!document) return document.error();
  JsonFields root(*document, where);
  const std::string format = root.text("format");
  if (!root.error() && format != kJobFormat)
    root.fail("format", fmt::format("is '{}', expected '{}'", format, kJobFormat));
  ProbeJob job;
  const std::string backend = root.text("backend", "auto");
  if (const auto parsed = named<ProbeBackend>(kBackendNames, backend))
    job.backend = *parsed;
  else
    root.fail("backend", fmt::format("must be auto, cpu or cuda, not '{}'", backend));
  const std::string kernels = root.text("cpu_kernels", "auto");
  if (const auto parsed = parse_cpu_kernels(kernels))
    job.cpu_kernels = *parsed;
  else
    root.fail("cpu_kernels", fmt::format("must be auto, onednn or own, not '{}'", kernels));
  job.device = static_cast<int>(root.integer("device", 0, 1023, 0));
  job.ranks = static_cast<int>(root.integer("ranks", 1, kMaximumProbeRanks, 1));
  job.budget_s = root.number("budget_s", 0.1, 86400, job.budget_s);
  job.item_s = root.number("item_s", 0.001, 600, job.item_s);
  job.limit_s = root.number("limit_s", 0.05, 3600, job.limit_s);
  job.check = root.flag("check", false);
  job.hot = root.flag("hot", false);
  job.seed = static_cast<std::uint64_t>(root.integer("seed", 0, std::int64_t(1) << 53, 1));
  job.refine = root.number("refine", 0, 10, 0);
  root.each("operators", [&](JsonFields& item, std::size_t index) {
    if (index >= kMaximumItems) return item.fail("kind", fmt::format("more than {} operators", kMaximumItems));
    job.operators.push_back(read_probe_operator(item));
  });
  root.each("collectives", [&](JsonFields& item, std::size_t index) {
    if (index >= kMaximumItems) return item.fail("kind", fmt::format("more than {} collectives", kMaximumItems));
    job.collectives.push_back(read_probe_collective(item, job.ranks));
  });
  root.each("known", [&](JsonFields& item, std::size_t index) {
    if (index >= kMaximumItems) return item.fail("kind", fmt::format("more than {} times", kMaximumItems));
    KnownCollective known{read_probe_collective(item, job.ranks), 0, 0};
    known.time_s = item.number("time_s", 1e-12, 1e6);
    known.spread = item.number("spread", 0, 1e6, 0);
    job.known.push_back(known);
  });
  if (!root.error() && job.items() == 0 && !(job.refine > 0 && !job.known.empty()))
    root.fail("operators", "and collectives name nothing to measure");
  if (root.error()) return *root.error();
  return job;
}

std::int64_t collective_unit(const ProbeCollective& c) {
  const std::int64_t size = c.group_size;
  switch (c.kind) {
    case Collective::all_to_all: return 4 * size * size;
    case Collective::broadcast:
    case Collective::send: return 4;
    default: return 4 * size;
  }
}

std::vector<std::size_t> run_order(const ProbeJob& job) {
  const std::size_t operators = job.operators.size(), collectives = job.collectives.size();
  std::vector<std::size_t> order;
  std::size_t next_operator = 0, next_collective = 0;
  while (order.size() < job.items()) {
    // Whichever is further behind its share.
    const bool collective =
        next_operator == operators ||
        (next_collective < collectives && (next_collective + 1) * operators <= (next_operator + 1) * collectives);
    order.push_back(collective ? operators + next_collective++ : next_operator++);
  }
  return order;
}

nlohmann::json operator_header(const ProbeOperator& op) {
  nlohmann::json header = {{"kind", op.kind},
                           {"dims", op.dims},
                           {"precision", to_string(op.precision)},
                           {"phase", op.backward ? "backward" : "forward"}};
  if (!op.fit.empty()) header["fit"] = op.fit;
  if (op.flop > 0) header["flop"] = op.flop;
  if (op.bytes > 0) header["bytes"] = op.bytes;
  if (op.launches > 1) header["launches"] = op.launches;
  return header;
}

namespace {

nlohmann::json collective_json(const ProbeCollective& c) {
  nlohmann::json json = {{"kind", to_string(c.kind)}, {"group_size", c.group_size}, {"bytes", c.bytes}};
  if (c.stride != 1) json["stride"] = c.stride;
  return json;
}

nlohmann::json calls_json(const ProbeOperator& op) {
  nlohmann::json calls = nlohmann::json::array();
  for (const auto& call : op.calls) {
    const auto& record = call_record(call.kind);
    nlohmann::json written = {{"call", record.name}};
    if (call.count != 1) written["count"] = call.count;
    for (std::size_t i = 0; i < record.sizes.size(); ++i) written[std::string(record.sizes[i])] = call.size[i];
    calls.push_back(std::move(written));
  }
  return calls;
}

}  // namespace

std::string time_signature(const ProbeOperator& op) {
  return fmt::format("{} {}", to_string(op.precision), calls_json(op).dump());
}

std::string time_signature(const ProbeCollective& collective) { return collective_json(collective).dump(); }

std::string write_probe_job(const ProbeJob& job) {
  using json = nlohmann::json;
  json operators = json::array(), collectives = json::array(), known = json::array();
  for (const auto& op : job.operators) {
    operators.push_back(operator_header(op));
    operators.back()["calls"] = calls_json(op);
  }
  for (const auto& c : job.collectives) collectives.push_back(collective_json(c));
  for (const auto& k : job.known) {
    known.push_back(collective_json(k.collective));
    known.back()["time_s"] = k.time_s;
    known.back()["spread"] = k.spread;
  }
  json root = {{"format", kJobFormat},
               {"backend", to_string(job.backend)},
               {"device", job.device},
               {"ranks", job.ranks},
               {"budget_s", job.budget_s},
               {"item_s", job.item_s},
               {"limit_s", job.limit_s},
               {"check", job.check},
               {"hot", job.hot},
               {"seed", job.seed},
               {"operators", std::move(operators)},
               {"collectives", std::move(collectives)}};
  if (job.refine > 0) root["refine"] = job.refine;
  if (job.cpu_kernels != CpuKernels::automatic) root["cpu_kernels"] = to_string(job.cpu_kernels);
  if (!job.known.empty()) root["known"] = std::move(known);
  return root.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace turnpoint
