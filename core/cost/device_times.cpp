// SPDX-License-Identifier: Apache-2.0
#include "core/cost/device_times.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/cost/calibration.h"
#include "core/hardware/cache_misses.h"
#include "core/model/operator_kind.h"

namespace turnpoint {

namespace {

std::string signature(Precision precision, std::string_view kind, const std::vector<std::int64_t>& dims,
                      std::string_view phase) {
  return fmt::format("{} {} {} {}", to_string(precision), kind, fmt::join(dims, "x"), phase);
}
std::string fit_key(Precision precision, std::string_view kind, std::string_view phase) {
  return fmt::format("{} {} {}", to_string(precision), kind, phase);
}
const char* phase_name(bool backward) { return backward ? "backward" : "forward"; }

/// What lies between a time inside the caches and one outside them.
double between(double warm, double cold, double missed) { return warm + missed * (cold - warm); }

OperatorFit between(const OperatorFit* warm, OperatorFit cold, double missed) {
  if (!warm) return cold;
  cold.launch_s = between(warm->launch_s, cold.launch_s, missed);
  cold.s_per_flop = between(warm->s_per_flop, cold.s_per_flop, missed);
  cold.s_per_byte = between(warm->s_per_byte, cold.s_per_byte, missed);
  return cold;
}

double rate_between(const DeviceType& device, double missed) {
  const double outside = device.memory_bandwidth * device.memory_efficiency;
  return device.cache_bandwidth > 0 ? 1 / between(1 / device.cache_bandwidth, 1 / outside, missed) : outside;
}

}  // namespace

Precision plain_precision(Precision precision) { return precision == Precision::fp8 ? Precision::bf16 : precision; }

double working_set_bytes(const Model& model, const Settings& settings, int devices, bool with_update) {
  const ParameterBytes each = parameter_bytes(settings, Accounting::full);
  double bytes =
      static_cast<double>(model.parameters) * (each.weight + each.gradient + (with_update ? each.optimizer : 0));
  for (const Tensor& tensor : model.tensors)
    if (tensor.role == TensorRole::activation)
      bytes += 2.0 * static_cast<double>(tensor.elements()) * element_bytes(tensor, settings.precision);
  return bytes / devices;
}

DeviceTimes::DeviceTimes(const Scenario& scenario) {
  const Settings& settings = scenario.settings;
  const Cluster& cluster = *scenario.cluster;
  const DeviceType& device = cluster.device;
  const double speed = settings.factors.device_speed;
  const auto missed_in = [&](bool with_update) {
    if (device.cache_bytes <= 0) return 1.0;
    return miss_share(working_set_bytes(*scenario.model, settings, cluster.devices(), with_update),
                      static_cast<double>(device.cache_bytes));
  };
  const double missed = missed_in(false), missed_in_update = missed_in(true);
  const double reached = device.efficiency(settings.precision) * speed;
  flop_per_second = device.peak(settings.precision) * reached;
  eight_bit_flop_per_second = device.peak_fp8 * reached;
  vector_flop_per_second = device.peak_fp32 * device.flop_efficiency * speed;
  bytes_per_second = rate_between(device, missed) * speed;
  update_bytes_per_second = rate_between(device, missed_in_update) * speed;
  const auto of_use = [&](Precision precision) {
    return precision == settings.precision || precision == plain_precision(settings.precision);
  };
  for (const OperatorSample& sample : cluster.operators)
    if (of_use(sample.precision))
      measured_[signature(sample.precision, sample.kind, sample.dims, sample.phase)] =
          (sample.warm_s > 0 ? between(sample.warm_s, sample.time_s, missed) : sample.time_s) / speed;
  for (const OperatorFit& outside : cluster.fits) {
    if (!of_use(outside.precision)) continue;
    const bool updates = outside.phase == kUpdateKind;
    OperatorFit fit = between(fit_like(cluster.warm_fits, outside), outside, updates ? missed_in_update : missed);
    for (double* term : {&fit.launch_s, &fit.s_per_flop, &fit.s_per_byte}) *term /= speed;
    if (updates)
      update = fit;
    else
      fits_[fit_key(fit.precision, fit.kind, fit.phase)] = fit;
  }
  const OperatorFit* additions =
      fit(plain_precision(settings.precision), record_of(OperatorKind::elementwise).timed_as, false);
  adds_as_updates = update && (!additions || additions->samples < kSizesOfFit);
  if (adds_as_updates)
    sums = update;
  else if (additions)
    sums = *additions;
}

std::optional<double> DeviceTimes::measured(Precision precision, std::string_view kind,
                                            const std::vector<std::int64_t>& dims, bool backward) const {
  const auto found = measured_.find(signature(precision, kind, dims, phase_name(backward)));
  return found == measured_.end() ? std::nullopt : std::optional(found->second);
}

const OperatorFit* DeviceTimes::fit(Precision precision, std::string_view kind, bool backward) const {
  const auto found = fits_.find(fit_key(precision, kind, phase_name(backward)));
  return found == fits_.end() ? nullptr : &found->second;
}

}  // namespace turnpoint
