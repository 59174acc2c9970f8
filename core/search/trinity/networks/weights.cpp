// SPDX-License-Identifier: Apache-2.0
#include "core/search/trinity/networks/weights.h"

namespace turnpoint::trinity::networks {

double norm(const std::vector<float>& gradient) {
  double sum = 0;
  for (const float g : gradient) sum += double(g) * double(g);
  return std::sqrt(sum);
}

void clip_norm(std::vector<float>& gradient, double limit) {
  const double length = norm(gradient);
  if (!(length > limit)) return;
  const float factor = float(limit / length);
  for (float& g : gradient) g *= factor;
}

void Adam::step(const std::vector<float>& gradient, double rate, std::vector<float>& values) {
  constexpr double kFirst = 0.9, kSecond = 0.999, kGuard = 1e-8;
  if (!std::isfinite(norm(gradient))) return;
  first_power_ *= kFirst;
  second_power_ *= kSecond;
  const float step = float(rate / (1 - first_power_)), scale = float(1 / (1 - second_power_));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float g = gradient[i];
    first_[i] = float(kFirst) * first_[i] + float(1 - kFirst) * g;
    second_[i] = float(kSecond) * second_[i] + float(1 - kSecond) * g * g;
    values[i] -= step * first_[i] / (std::sqrt(second_[i] * scale) + float(kGuard));
  }
}

}  // namespace turnpoint::trinity::networks
