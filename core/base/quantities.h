// SPDX-License-Identifier: Apache-2.0
// Strong quantities for public interfaces: bytes are integers, seconds and FLOP are doubles. Hot loops take .value.
#pragma once

#include <cstdint>

namespace turnpoint {

template <class Tag, class Rep>
struct Quantity {
  Rep value{};

  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep v) : value(v) {}
  constexpr Quantity& operator+=(Quantity o) {
    value += o.value;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity o) {
    value -= o.value;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.value + b.value); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.value - b.value); }
  friend constexpr Quantity operator*(Quantity a, Rep k) { return Quantity(a.value * k); }
  friend constexpr Quantity operator*(Rep k, Quantity a) { return Quantity(a.value * k); }
  friend constexpr Quantity operator/(Quantity a, Rep k) { return Quantity(a.value / k); }
  friend constexpr double operator/(Quantity a, Quantity b) { return double(a.value) / double(b.value); }
  friend constexpr auto operator<=>(Quantity, Quantity) = default;
};

using Bytes = Quantity<struct BytesTag, std::int64_t>;
using Seconds = Quantity<struct SecondsTag, double>;
using Flop = Quantity<struct FlopTag, double>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag, double>;
using FlopPerSecond = Quantity<struct FlopPerSecondTag, double>;

}  // namespace turnpoint
