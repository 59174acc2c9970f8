// SPDX-License-Identifier: Apache-2.0
// The file written by nccl-tests -J: numbers may be strings ("nan", "-1"), `devices` has one entry per process, `env`
// holds the whole environment of whoever ran it and is not looked at.
#include <fmt/format.h>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/hardware/logs/nccl_shared.h"
#include "core/hardware/logs/readers.h"

namespace turnpoint::logs {

namespace {

using nlohmann::json;

const json& member(const json& object, const char* key) {
  static const json none;
  if (!object.is_object()) return none;
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

/// Numbers come as numbers or as strings.
Number number_of(const json& value, double minimum = 0, double maximum = 1e18) {
  if (value.is_number()) return number(fmt::format("{}", value.get<double>()), minimum, maximum);
  if (value.is_string()) return number(value.get_ref<const std::string&>(), minimum, maximum);
  return {0, value.is_null() ? "is missing" : "is not a number"};
}

std::string text_of(const json& value) { return value.is_string() ? value.get<std::string>() : std::string(); }

int count_of(const json& value, int otherwise) {
  const Number count = number_of(value, 1, 65536);
  return count ? static_cast<int>(count.value) : otherwise;
}

void read_devices(LogBuilder& out, const json& config, NcclSection& section) {
  const json& devices = member(config, "devices");
  if (!devices.is_array()) return;
  const int per_process = count_of(member(config, "nthreads"), 1) * count_of(member(config, "ngpus"), 1);
  section.ranks = static_cast<int>(std::min<std::size_t>(devices.size(), 65536)) * per_process;
  for (const auto& device : devices) {
    const std::string host = text_of(member(device, "hostname")).substr(0, 256);
    if (!host.empty() && section.hosts.size() < 65536) section.hosts[host] += per_process;
    if (out.log().device_name.empty()) out.log().device_name = text_of(member(device, "device_info")).substr(0, 80);
  }
}

NcclTimes read_times(LogBuilder& out, int index, const json& times) {
  NcclTimes result;
  if (!times.is_object()) return result;
  const Number time = number_of(member(times, "time"), 0, 1e15);
  if (!time) {
    out.warn(0, fmt::format("results[{}]: time {}", index, time.problem));
    return result;
  }
  result.time = time.value;
  result.algbw = number_of(member(times, "alg_bw"), 0, 1e15).value;
  result.busbw = number_of(member(times, "bus_bw"), 0, 1e15).value;
  const Number wrong = number_of(member(times, "nwrong"));
  if (wrong && wrong.value >= 1) out.warn(0, fmt::format("results[{}]: {:g} wrong values", index, wrong.value));
  return result;
}

/// {min_us, max_us, ..., times_us[]} of single iterations.
RepeatSpread read_spread(const json& iterations) {
  RepeatSpread spread;
  spread.min_s = number_of(member(iterations, "min_us")).value;
  spread.max_s = number_of(member(iterations, "max_us")).value;
  const json& times = member(iterations, "times_us");
  if (!times.is_array()) return spread;
  std::vector<double> values;
  for (const auto& time : times)
    if (const Number value = number_of(time); value && value.value > 0) values.push_back(value.value);
  if (values.empty()) return spread;
  std::sort(values.begin(), values.end());
  return {values.front(), quantile(values, 0.25), quantile(values, 0.75), values.back()};
}

}  // namespace

Expected<MeasuredLog> read_nccl_tests_json(const json& document, const std::string& path) {
  LogBuilder out(LogKind::nccl_tests_json, path);
  NcclSection section;
  section.unit_s = 1e-6;  // the format has no other
  const json& args = member(document, "args");
  if (args.is_array() && !args.empty()) section.program = file_name(text_of(args[0]));
  read_devices(out, member(document, "config"), section);
  const json& results = member(document, "results");
  if (!results.is_array()) return bad_input("results: must be a list", path);
  int index = 0;
  for (const auto& item : results) {
    if (section.program.empty()) section.program = text_of(member(item, "experiment_name"));
    const Number size = number_of(member(item, "size"));
    if (!size)
      out.warn(0, fmt::format("results[{}]: size {}", index, size.problem));
    else if (size.value == 0)
      ++section.empty_sizes;
    else {
      NcclRow row{0, size.value, read_times(out, index, member(item, "out_of_place")),
                  read_times(out, index, member(item, "in_place"))};
      row.out_of_place.spread = read_spread(member(item, "out_of_place_per_iter"));
      row.in_place.spread = read_spread(member(item, "in_place_per_iter"));
      if (row.out_of_place.time > 0 || row.in_place.time > 0)
        section.rows.push_back(row);
      else
        out.warn(0, fmt::format("results[{}]: holds no time", index));
    }
    ++index;
  }
  if (!collective_in_name(section.program)) section.program.clear();
  add_nccl_section(out, section);
  return out.finish();
}

}  // namespace turnpoint::logs
