// SPDX-License-Identifier: Apache-2.0
// Our operator costs against what others measured: Aceso's V100 tables (GPT-350M, GPT-1.3B, a wide ResNet). Printed are
// errors with the V100 preset alone, after calibration on GPT-350M (GPT-1.3B then is new in size, micro-batch and
// tensor-parallel degree), and for the ResNet after calibration on half of its micro-batches. Then the throughput of
// data-parallel training against measurements on 1 to 32 V100.
//   TURNPOINT_DATA=... build/bench/truth_bench
// Exit 1 where a bar of the table is missed.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <thread>

#include "core/cost/calibration.h"
#include "core/hardware/collective_model.h"
#include "core/hardware/measured/profile_builder.h"
#include "core/import/source/model_source.h"
#include "core/search/registry.h"
#include "test_data.h"

using namespace turnpoint;

namespace {

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
}
double median(const std::vector<double>& values) { return quantile(values, 0.5); }

std::string processor() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "unknown processor";
}

std::vector<MeasuredLog> logs_named(const std::filesystem::path& folder, const std::string& begin) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename().string().starts_with(begin)) names.push_back(entry.path().string());
  std::sort(names.begin(), names.end());
  std::vector<MeasuredLog> logs;
  for (const auto& name : names)
    if (auto log = read_measured_log(name)) logs.push_back(std::move(*log));
  return logs;
}

std::vector<MeasuredWork> rows_of(const std::vector<MeasuredLog>& logs) {
  std::vector<MeasuredWork> rows;
  for (const auto& log : logs)
    for (auto& row : measured_work(log)) rows.push_back(std::move(row));
  return rows;
}

/// The collective of a row is one more kind of work: what torch.distributed adds to the measured collective itself.
std::vector<MeasuredWork> with_exchange_as_work(std::vector<MeasuredWork> rows) {
  for (auto& row : rows)
    if (row.exchange) row.parts.push_back({fmt::format("all_reduce of {}", row.exchange->devices), {}});
  return rows;
}

using Seconds_of = std::function<std::optional<double>(const MeasuredWork&)>;

struct Errors {
  std::vector<double> phases, operators, layers;  ///< signed relative errors
};

Errors errors(const std::vector<MeasuredWork>& rows, const Seconds_of& predicted) {
  struct Sum {
    double predicted = 0, measured = 0;
  };
  Errors e;
  std::map<std::string, Sum> operators, layers;
  for (const auto& row : rows) {
    const auto seconds = predicted(row);
    if (!seconds) continue;
    e.phases.push_back(*seconds / row.time_s - 1);
    const std::string run = fmt::format("{}/{}/{}", row.micro_batch, row.tensor_parallel, row.variant);
    for (Sum* sum : {&operators[run + row.name],
                     row.name.starts_with("enc-") || row.name.starts_with("block-") ? &layers[run] : nullptr})
      if (sum) sum->predicted += *seconds, sum->measured += row.time_s;
  }
  for (const auto& [name, sum] : operators) e.operators.push_back(sum.predicted / sum.measured - 1);
  for (const auto& [name, sum] : layers) e.layers.push_back(sum.predicted / sum.measured - 1);
  return e;
}

std::vector<double> magnitudes(std::vector<double> values) {
  for (double& v : values) v = std::abs(v);
  return values;
}

int missed = 0;

void line(const char* what, const std::vector<double>& values, double bar = 0) {
  const auto sizes = magnitudes(values);
  const double middle = median(sizes);
  std::string text =
      fmt::format("  {:<46} median {:5.1f} %  90th percentile {:5.1f} %  signed median {:+5.1f} %  ({} values)", what,
                  middle * 100, quantile(sizes, 0.9) * 100, median(values) * 100, values.size());
  if (bar > 0) {
    text += fmt::format("  bar {:.0f} %{}", bar * 100, middle <= bar ? "" : ": MISSED");
    missed += middle > bar;
  }
  std::puts(text.c_str());
}

/// Kept bytes of every row, and of one layer together.
void memory(const std::vector<MeasuredWork>& rows, double bar) {
  std::vector<double> each, layers;
  std::map<std::string, std::pair<double, double>> sums;
  for (const auto& row : rows) {
    if (row.phase != "forward" || row.measured_activation_bytes <= 0) continue;
    each.push_back(row.activation_bytes / row.measured_activation_bytes - 1);
    auto& sum = sums[fmt::format("{}/{}/{}", row.micro_batch, row.tensor_parallel, row.variant)];
    if (row.name.starts_with("enc-") || row.name.starts_with("block-"))
      sum.first += row.activation_bytes, sum.second += row.measured_activation_bytes;
  }
  for (const auto& [run, sum] : sums) layers.push_back(sum.first / sum.second - 1);
  line("activation memory of an operator", each, bar);
  line("activation memory of all layers together", layers, bar);
}

std::optional<double> preset_seconds(const DeviceType& device, const MeasuredWork& row) {
  double sum = 0;
  for (const auto& part : row.parts) {
    const bool product = part.kind.starts_with("matmul") || part.kind.starts_with("convolution");
    const double rate = product ? device.peak(row.precision) * device.efficiency(row.precision)
                                : device.peak_fp32 * device.flop_efficiency;
    sum += std::max(part.work.flop / rate, part.work.bytes / (device.memory_bandwidth * device.memory_efficiency)) +
           (product ? device.product_launch() : device.launch_s);
  }
  return sum;
}

void gpt(const std::filesystem::path& folder) {
  const auto preset = *cluster_preset("v100-16gb-1x8");
  const auto small = rows_of(logs_named(folder, "gpt_350M")), large = rows_of(logs_named(folder, "gpt_1_3B"));
  std::vector<MeasuredWork> alone;
  for (const auto& row : small)
    if (row.tensor_parallel == 1) alone.push_back(row);
  std::printf("GPT-350M, V100 preset alone (one device: no collective is part of the times)\n");
  const auto before = errors(alone, [&](const MeasuredWork& row) { return preset_seconds(preset->device, row); });
  line("time of an operator, a phase", before.phases, 0.25);
  line("time of an operator, forward and backward", before.operators, 0.25);
  line("sum of a layer", before.layers);

  std::vector<std::string> notes;
  const auto links = build_profile(logs_named(folder, "prim_gpt_1_3B_all_reduce"), preset, notes);
  if (!links) return void(std::fprintf(stderr, "%s\n", links.error().message().c_str()));
  const CollectiveModel collectives(**links, {});
  const auto beside = [&](const MeasuredWork& row) {
    if (!row.exchange) return 0.0;
    const DeviceGroup group{row.exchange->devices, 1, row.exchange->devices, 1};
    return collectives.time(row.exchange->kind, group, row.exchange->bytes).value;
  };
  const auto training = with_exchange_as_work(small);
  std::vector<double> known;
  for (const auto& row : training) known.push_back(beside(row));
  const auto fits = fit_operators(training, known);
  std::printf("GPT-1.3B after calibration on GPT-350M (%zu fits to %zu times; measured all-reduces)\n", fits.size(),
              training.size());
  const auto after = errors(with_exchange_as_work(large), [&](const MeasuredWork& row) -> std::optional<double> {
    const auto seconds = fitted_seconds(fits, row);
    return seconds ? std::make_optional(*seconds + beside(row)) : std::nullopt;
  });
  line("time of an operator, a phase", after.phases, 0.10);
  line("time of an operator, forward and backward", after.operators, 0.10);
  line("sum of a layer", after.layers, 0.05);
  memory(large, 0.05);
}

void resnet(const std::filesystem::path& folder) {
  std::vector<MeasuredWork> training, test;
  for (auto& row : rows_of(logs_named(folder, "resnet_500M")))
    (row.micro_batch == 16 || row.micro_batch == 64 ? training : test).push_back(std::move(row));
  const auto preset = *cluster_preset("v100-16gb-1x8");
  std::printf("Wide ResNet 500M, V100 preset alone\n");
  const auto before = errors(test, [&](const MeasuredWork& row) { return preset_seconds(preset->device, row); });
  line("time of an operator, a phase", before.phases);
  line("sum of all blocks", before.layers);
  const auto fits = fit_operators(training);
  std::printf("Wide ResNet 500M, micro-batches 32 and 48 after calibration on 16 and 64 (%zu fits to %zu times)\n",
              fits.size(), training.size());
  const auto after = errors(test, [&](const MeasuredWork& row) { return fitted_seconds(fits, row); });
  line("time of an operator, a phase", after.phases, 0.10);
  line("time of an operator, forward and backward", after.operators, 0.10);
  line("sum of all blocks", after.layers, 0.05);
  memory(test, 0.05);
}

/// A row of measured_dp_scaling_v100.csv.
struct Training {
  std::string model, table;
  int nodes = 1, per_node = 1;
  std::int64_t batch = 0;
  double samples_per_s = 0;

  bool bert() const { return model.starts_with("bert"); }
  /// SOURCES.md: the first ResNet table and the first two of BERT are in fp32, the others in mixed precision.
  Precision precision() const {
    return table == "table 0" || (bert() && table == "table 1") ? Precision::fp32 : Precision::bf16;
  }
};

std::vector<Training> trainings(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::vector<Training> rows;
  std::string text;
  for (std::getline(in, text); std::getline(in, text);) {
    std::vector<std::string> cells;
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      cells.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    if (cells.size() < 6) continue;
    rows.push_back(
        {cells[0], cells[1], std::stoi(cells[2]), std::stoi(cells[3]), std::stoll(cells[4]), std::stod(cells[5])});
  }
  return rows;
}

std::optional<double> samples_per_s(const Training& row, double device_speed, Gradients gradients) {
  const int devices = row.nodes * row.per_node;
  Settings settings;
  settings.batch = row.batch * devices;
  settings.sequence = row.bert() ? 128 : 0;
  settings.precision = row.precision();
  // The source's pages say that BERT was trained with Adam in the place of LAMB.
  settings.optimizer = row.bert() ? Optimizer::adam : Optimizer::momentum;
  settings.gradients = gradients;
  settings.factors.device_speed = device_speed;
  const auto source = open_model(row.bert() ? "builtin:bert-large?layers=12&hidden=768" : "builtin:resnet50");
  const auto hardware = cluster_preset(fmt::format("v100-16gb-{}x{}", row.nodes, row.per_node));
  if (!source || !hardware) return std::nullopt;
  const auto model = (*source)->bind({settings.batch, settings.sequence});
  if (!model) return std::nullopt;
  const auto scenario = make_scenario(*model, *hardware, (*hardware)->name, settings);
  if (!scenario) return std::nullopt;
  const auto result = (*make_searcher(**find_method("data-parallel")))->run(*scenario, SearchPass::exact, {});
  if (!result) return std::nullopt;
  return static_cast<double>(settings.batch) / (*result)->points.back().time_s;
}

/// Throughput of data parallelism on 1 to 32 devices, with the preset alone and with the device's speed set so that the
/// table's one-device row is met (what a user does who has timed one device). The source does not say in which
/// precision gradients were summed beside 16-bit weights; fp32, which is judged by no bar, is amp's at O1.
void data_parallel(const std::filesystem::path& file, Gradients gradients) {
  const bool judged = gradients == Gradients::as_weights;
  std::vector<double> preset[2], calibrated;
  double speed = 1;
  for (const auto& row : trainings(file)) {
    const auto alone = samples_per_s(row, 1, gradients);
    if (!alone) continue;
    if (row.nodes * row.per_node == 1) {
      // Launches do not scale with the speed, so two steps of the secant are needed.
      speed = row.samples_per_s / *alone;
      for (int step = 0; step < 3; ++step)
        speed *= row.samples_per_s / samples_per_s(row, speed, gradients).value_or(row.samples_per_s);
    }
    preset[row.precision() == Precision::bf16].push_back(*alone / row.samples_per_s - 1);
    if (const auto met = samples_per_s(row, speed, gradients); met && row.nodes * row.per_node > 1)
      calibrated.push_back(*met / row.samples_per_s - 1);
  }
  std::printf("Data-parallel training throughput, 1 to 32 V100, gradients %s\n",
              judged ? "as the weights" : "in fp32 (not judged)");
  line("preset alone, fp32", preset[0]);
  line("preset alone, mixed precision", preset[1]);
  line("one device met, 4 to 32 devices", calibrated, judged ? 0.15 : 0);
  if (calibrated.empty()) return;
  const auto sizes = magnitudes(calibrated);
  const double worst = *std::max_element(sizes.begin(), sizes.end());
  const bool good = worst <= 0.15 || !judged;
  std::printf("  largest error of those                         %5.1f %%%s%s\n", worst * 100,
              judged ? "  bar 15 %" : "", good ? "" : ": MISSED");
  missed += !good;
}

}  // namespace

int main() {
  const auto folder = std::filesystem::path(turnpoint::test::data_folder()) / "hardware/aceso_v100";
  std::printf("machine: %s, %u threads\n", processor().c_str(), std::thread::hardware_concurrency());
  if (!std::filesystem::is_directory(folder)) {
    std::printf("%s is absent (set TURNPOINT_DATA): nothing measured\n", folder.c_str());
    return 0;
  }
  gpt(folder);
  resnet(folder);
  for (const Gradients gradients : {Gradients::as_weights, Gradients::fp32})
    data_parallel(std::filesystem::path(turnpoint::test::data_folder()) / "bars/measured_dp_scaling_v100.csv",
                  gradients);
  return missed > 0;
}
