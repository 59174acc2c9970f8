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
  auto& [first, second, first_power, second_power] = moments_;
  first_power *= kFirst;
  second_power *= kSecond;
  const float step = float(rate / (1 - first_power)), scale = float(1 / (1 - second_power));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float g = gradient[i];
    first[i] = float(kFirst) * first[i] + float(1 - kFirst) * g;
    second[i] = float(kSecond) * second[i] + float(1 - kSecond) * g * g;
    values[i] -= step * first[i] / (std::sqrt(second[i] * scale) + float(kGuard));
  }
}

}  // namespace turnpoint::trinity::networks
