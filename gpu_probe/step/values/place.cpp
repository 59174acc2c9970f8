// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/values/place.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace turnpoint::step {

namespace {

thread_local const Arithmetic* current = nullptr;

float from_half(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

template <class Kept, class Of>
std::vector<double> read_as(ConstPlace from, std::size_t count, const Of& number) {
  std::vector<Kept> kept(count);
  download(from, kept.data(), count * sizeof(Kept));
  std::vector<double> numbers(count);
  std::transform(kept.begin(), kept.end(), numbers.begin(), number);
  return numbers;
}

template <class Kept, class Of>
void write_as(std::span<const double> numbers, Place to, const Of& kept_of) {
  std::vector<Kept> kept(numbers.size());
  std::transform(numbers.begin(), numbers.end(), kept.begin(), kept_of);
  upload(kept.data(), to, kept.size() * sizeof(Kept));
}

}  // namespace

const Arithmetic& arithmetic() { return *current; }
ComputeIn::ComputeIn(const Arithmetic& wanted) : before_(std::exchange(current, &wanted)) {}
ComputeIn::~ComputeIn() { current = before_; }

std::uint16_t to_half(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

void put(std::span<const double> numbers, Place to) {
  if (numbers.empty()) return;
  if (to.element_bytes == 8) return upload(numbers.data(), to, numbers.size_bytes());
  if (to.element_bytes == 4) return write_as<float>(numbers, to, [](double x) { return static_cast<float>(x); });
  write_as<std::uint16_t>(numbers, to, [](double x) { return to_half(static_cast<float>(x)); });
}

std::vector<double> numbers_at(ConstPlace from, std::size_t count) {
  if (from.element_bytes == 4) return read_as<float>(from, count, [](float x) { return static_cast<double>(x); });
  if (from.element_bytes == 8) {
    std::vector<double> numbers(count);
    download(from, numbers.data(), count * sizeof(double));
    return numbers;
  }
  return read_as<std::uint16_t>(from, count, [](std::uint16_t x) { return static_cast<double>(from_half(x)); });
}

Message::Message(ConstNumbers numbers)
    : owner_(arithmetic().mail(numbers.size() * static_cast<std::size_t>(numbers.data().element_bytes))),
      data_(owner_.get(), numbers.data().element_bytes),
      size_(numbers.size()) {
  copy(numbers.data(), data_, size_);
}

void Filling::flush() {
  if (used_ > 0) put({part_.data(), used_}, to_);
  to_ = to_ + static_cast<std::int64_t>(used_);
  used_ = 0;
}

}  // namespace turnpoint::step
