// SPDX-License-Identifier: Apache-2.0
#include "core/hardware/probe_messages.h"

#include <fmt/format.h>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/base/json_fields.h"
#include "core/base/text.h"

namespace turnpoint {

namespace {

constexpr double kMaximumTime = 1e6;
constexpr std::size_t kMaximumMessages = 400'000;

std::vector<std::string> texts(const nlohmann::json& message, const char* key) {
  std::vector<std::string> list;
  const auto found = message.find(key);
  if (found == message.end() || !found->is_array()) return list;
  for (const auto& text : *found)
    if (text.is_string() && list.size() < 1000) list.push_back(text.get<std::string>());
  return list;
}

void read_signature(JsonFields& fields, ProbeOperator& op) {
  op.kind = fields.text("kind", "");
  op.fit = fields.text("fit", "");
  const auto dims = fields.json().find("dims");
  if (dims != fields.json().end() && dims->is_array() && dims->size() <= 16)
    for (const auto& dim : *dims) {
      const bool good = dim.is_number_integer() && dim.get<double>() >= 1 && dim.get<double>() <= 1e12;
      if (good)
        op.dims.push_back(dim.get<std::int64_t>());
      else
        fields.fail("dims", "sizes must be whole numbers from 1 to 1e12");
    }
  const std::string precision = fields.text("precision", "fp32");
  for (const auto p : {ProbePrecision::fp32, ProbePrecision::tf32, ProbePrecision::bf16})
    if (precision == to_string(p)) op.precision = p;
  op.backward = fields.text("phase", "forward") == "backward";
  op.flop = fields.number("flop", 0, 1e24, 0);
  op.bytes = fields.number("bytes", 0, 1e18, 0);
  op.launches = fields.number("launches", 1, 1e12, 1);
}

CollectiveSample read_sample(JsonFields& fields) {
  CollectiveSample sample;
  if (const auto kind = parse_collective(fields.text("collective")))
    sample.kind = *kind;
  else
    fields.fail("collective", "is no collective that we know");
  JsonFields group = fields.object("group");
  sample.group.size = static_cast<int>(group.integer("size", 2, kMaximumProbeRanks));
  sample.group.nodes = static_cast<int>(group.integer("nodes", 1, 64, 1));
  sample.group.per_node = static_cast<int>(group.integer("per_node", 1, 64, sample.group.size));
  sample.group.concurrent = static_cast<int>(group.integer("concurrent", 1, 64, 1));
  sample.bytes = fields.number("bytes", 1, 1e15);
  return sample;
}

ProbeItem read_item(JsonFields& fields) {
  ProbeItem item;
  item.index = fields.integer("index", 0, 1'000'000);
  item.not_measured = fields.text("not_measured", "");
  if (fields.has("collective"))
    item.collective = read_sample(fields);
  else
    read_signature(fields, item.op);
  if (!item.not_measured.empty()) {
    if (const std::string hint = fields.text("hint", ""); !hint.empty())
      item.not_measured = fmt::format("{} ({})", item.not_measured, hint);
    return item;
  }
  item.time_s = fields.number("time_s", 1e-12, kMaximumTime);
  item.min_s = fields.number("min_s", 0, kMaximumTime, item.time_s);
  item.q1_s = fields.number("q1_s", 0, kMaximumTime, item.time_s);
  item.median_s = fields.number("median_s", 0, kMaximumTime, item.time_s);
  item.q3_s = fields.number("q3_s", 0, kMaximumTime, item.time_s);
  item.hot_s = fields.number("hot_s", 0, kMaximumTime, 0);
  item.samples = static_cast<int>(fields.integer("samples", 0, 1'000'000, 1));
  item.noisy = fields.flag("noisy", false);
  item.stride = static_cast<int>(fields.integer("stride", 1, kMaximumProbeRanks, 1));
  item.midpoint = fields.flag("midpoint", false);
  item.reused = fields.text("reused", "");
  item.throttled = fields.text("throttled", "");
  item.implementation = fields.text("implementation", "");
  if (item.collective) {
    item.collective->time_s = item.time_s;
    item.collective->q1_s = item.q1_s;
    item.collective->q3_s = item.q3_s;
  }
  return item;
}

std::string identity_of(const nlohmann::json& message, std::size_t device) {
  nlohmann::json identity;
  for (const char* key : {"backend", "ranks", "kernels", "cold", "statistic", "libraries", "nodes", "transport"})
    if (const auto found = message.find(key); found != message.end()) identity[key] = *found;
  identity["device"] = message["devices"][device];
  const auto topology = message.find("topology");
  if (topology != message.end() && topology->is_object() && topology->contains("cores"))
    identity["cores"] = (*topology)["cores"];
  return identity.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

ProbeHello read_probe_hello(JsonFields& fields) {
  ProbeHello hello;
  if (fields.text("program", "") != "turnpoint-probe") fields.fail("program", "is not turnpoint-probe");
  const auto protocol = fields.integer("protocol", 0, 1'000'000);
  if (!fields.error() && protocol != 1)
    fields.fail("protocol", fmt::format("is {}, and this program speaks 1: take both from one version", protocol));
  hello.backend = fields.text("backend");
  hello.ranks = static_cast<int>(fields.integer("ranks", 1, kMaximumProbeRanks));
  hello.device = static_cast<int>(fields.integer("device", 0, 1023, 0));
  hello.cold = fields.flag("cold", false);
  hello.statistic = fields.text("statistic", "median");
  hello.job = fields.text("job", "");
  fields.each("devices", [&](JsonFields& device, std::size_t) {
    hello.devices.push_back({device.text("name", "device"), device.text("kind", ""),
                             device.integer("memory_bytes", 1, std::int64_t(1) << 50)});
  });
  fields.each("nodes", [&](JsonFields& node, std::size_t) {
    const auto ranks = static_cast<int>(node.integer("ranks", 0, kMaximumProbeRanks));
    if (ranks > 0) hello.node_ranks.push_back(ranks);
  });
  if (fields.has("topology")) hello.topology = read_topology(fields.object("topology"));
  // Cores are told of all hosts together.
  if (hello.node_ranks.size() > 1) hello.topology.cores = 0;
  fields.each("libraries", [&](JsonFields& library, std::size_t) {
    const std::string version = library.text("version", "");
    hello.libraries.push_back(version.empty() ? library.text("name")
                                              : fmt::format("{} {}", library.text("name"), version));
  });
  if (!fields.error() && static_cast<std::size_t>(hello.device) >= hello.devices.size())
    fields.fail("device", "is none of the devices");
  hello.missing = texts(fields.json(), "missing");
  hello.warnings = texts(fields.json(), "warnings");
  if (!fields.error()) hello.identity = identity_of(fields.json(), static_cast<std::size_t>(hello.device));
  return hello;
}

Error read_probe_error(JsonFields& fields) {
  Error error{ErrorCode::device, fields.text("what", "failed without a reason"), fields.text("where", ""),
              fields.text("hint", "")};
  if (fields.text("code", "") == to_string(ErrorCode::bad_input)) error.code = ErrorCode::bad_input;
  if (fields.text("code", "") == to_string(ErrorCode::cancelled)) error.code = ErrorCode::cancelled;
  return error;
}

Error not_a_probe_message(std::string_view line) {
  return {ErrorCode::device,
          fmt::format("turnpoint-probe printed what is no message: '{}'", line.substr(0, 60)),
          {},
          "another program of that name may be in its place"};
}

ProbeProgress read_probe_progress(JsonFields& fields) {
  return {fields.text("phase", ""), fields.number("fraction", 0, 1, 0)};
}

Expected<nlohmann::json> parse_probe_line(std::string_view line) {
  auto message = parse_json(line, "turnpoint-probe", 16);
  if (!message || !message->is_object()) return not_a_probe_message(line);
  return message;
}

Expected<void> ProbeMessages::take(std::string_view line) {
  if (result_) return Error{ErrorCode::device, "turnpoint-probe went on after its result", {}, {}};
  if (items_.size() >= kMaximumMessages) return Error{ErrorCode::device, "turnpoint-probe does not stop", {}, {}};
  const auto message = parse_probe_line(line);
  if (!message) return message.error();
  JsonFields fields(*message, "turnpoint-probe");
  const std::string type = fields.text("type", "");
  if (type == "error") return read_probe_error(fields);
  if (type == "hello") {
    ProbeHello hello = read_probe_hello(fields);
    if (!fields.error()) hello_ = std::move(hello);
  } else if (type == "item") {
    ProbeItem item = read_item(fields);
    if (!hello_) return not_a_probe_message(line);
    if (!fields.error()) items_.push_back(std::move(item));
  } else if (type == "progress") {
    progress_ = read_probe_progress(fields);
  } else if (type == "check") {
    ++checks_;
    const auto sizes = message->find("sizes");
    if (!fields.flag("good", false))
      failed_checks_.push_back(fmt::format("{} {} {}: {}", fields.text("call", ""), fields.text("precision", ""),
                                           sizes == message->end() ? "" : sizes->dump(),
                                           fields.text("what", "the result differs from that of plain loops")));
  } else if (type == "result") {
    ProbeResult result;
    result.measured = static_cast<int>(fields.integer("measured", 0, 1'000'000));
    result.not_measured = static_cast<int>(fields.integer("not_measured", 0, 1'000'000, 0));
    result.skipped = static_cast<int>(fields.integer("skipped", 0, 1'000'000, 0));
    result.restarts = static_cast<int>(fields.integer("restarts", 0, 1'000'000, 0));
    result.midpoints = static_cast<int>(fields.integer("midpoints", 0, 1'000'000, 0));
    result.unresolved = static_cast<int>(fields.integer("unresolved", 0, 1'000'000, 0));
    result.elapsed_s = fields.number("elapsed_s", 0, 1e9, 0);
    if (!hello_) return not_a_probe_message(line);
    if (!fields.error()) result_ = result;
  } else if (type.empty()) {
    return not_a_probe_message(line);
  }
  if (fields.error()) {
    Error error = *fields.error();
    error.code = ErrorCode::device;
    return error;
  }
  return {};
}

Expected<ProbeRecording> read_probe_recording(const std::string& path) {
  const auto text = read_file(path, std::size_t(1) << 28);
  if (!text) return text.error();
  ProbeRecording recording;
  std::size_t number = 0;
  for (const auto line : split(*text, '\n')) {
    ++number;
    if (line.empty() || recording.messages.finished()) continue;
    const auto taken = recording.messages.take(line);
    if (taken) continue;
    Error error = taken.error();
    error.where = fmt::format("{}:{}", path, number);
    error.code = ErrorCode::bad_input;
    if (recording.messages.items().empty()) return error;
    recording.notes.push_back(fmt::format("the recording breaks off: {}", error.message()));
    return recording;
  }
  if (!recording.messages.hello()) return bad_input("holds no messages of turnpoint-probe", path);
  if (!recording.messages.finished())
    recording.notes.push_back(
        fmt::format("the recording of {} items breaks off before its result", recording.messages.items().size()));
  return recording;
}

}  // namespace turnpoint
