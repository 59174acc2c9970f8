// SPDX-License-Identifier: Apache-2.0
// Numbers in the memory of this process.
#include "gpu_probe/step/values/place.h"

#include <algorithm>
#include <cmath>

namespace turnpoint::step::TURNPOINT_REAL {

Buffers& counted_memory() { return Buffers::of_this_rank(); }
Buffers& scratch_memory() { return Buffers::scratch_of_this_rank(); }
Buffers& outside_memory() { return Buffers::outside_of_this_rank(); }

void copy(ConstPlace from, Place to, std::size_t count) { std::copy(from, from + count, to); }
void add(ConstPlace from, Place to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] += from[i];
}
void fill(Place to, Real value, std::size_t count) { std::fill(to, to + count, value); }
void upload(const Real* from, Place to, std::size_t count) { copy(from, to, count); }
void download(ConstPlace from, Real* to, std::size_t count) { copy(from, to, count); }

void copy_overlap(const Region& from, ConstPlace source, const Region& to, Place target, bool add) {
  const Region both = intersection(from, to);
  if (both.elements() == 0) return;
  // Dimensions that are whole on both sides lie in one run with the last one that is not.
  std::size_t outer = both.extent.size();
  std::int64_t run = 1;
  while (outer > 0) {
    --outer;
    run *= both.extent[outer];
    if (both.extent[outer] != from.extent[outer] || both.extent[outer] != to.extent[outer]) break;
  }
  const auto first_of = [&both](const Region& region) {
    std::int64_t index = 0;
    for (std::size_t d = 0; d < region.extent.size(); ++d)
      index = index * region.extent[d] + both.offset[d] - region.offset[d];
    return index;
  };
  const auto steps_of = [outer](const Region& region) {
    Shape steps(region.extent.size(), 1);
    for (std::size_t d = steps.size(); d-- > 1;) steps[d - 1] = steps[d] * region.extent[d];
    steps.resize(outer);
    return steps;
  };
  const Shape read_steps = steps_of(from), write_steps = steps_of(to);
  std::int64_t read = first_of(from), write = first_of(to);
  Shape at(outer, 0);
  for (std::int64_t rows = both.elements() / run; rows > 0; --rows) {
    if (add)
      for (std::int64_t i = 0; i < run; ++i) target[write + i] += source[read + i];
    else
      std::copy(source + read, source + read + run, target + write);
    for (std::size_t d = outer; d-- > 0;) {
      read += read_steps[d];
      write += write_steps[d];
      if (++at[d] < both.extent[d]) break;
      read -= at[d] * read_steps[d];
      write -= at[d] * write_steps[d];
      at[d] = 0;
    }
  }
}

void transpose(ConstPlace from, std::int64_t rows, std::int64_t columns, Place to) {
  constexpr std::int64_t kTile = 16;  // neighbours of the one are far apart in the other
  for (std::int64_t i = 0; i < rows; i += kTile)
    for (std::int64_t j = 0; j < columns; j += kTile)
      for (std::int64_t b = j; b < std::min(j + kTile, columns); ++b)
        for (std::int64_t a = i; a < std::min(i + kTile, rows); ++a) to[b * rows + a] = from[a * columns + b];
}

void weighted_sum(ConstPlace a, ConstPlace b, std::size_t count, std::function<void(double)> take) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  take(sum);
}

void apply(UpdateRule rule, Real rate, ConstPlace g, Place w, Place, Place m, Place v, std::size_t count) {
  switch (rule) {
    case UpdateRule::sgd:
      for (std::size_t i = 0; i < count; ++i) w[i] -= rate * g[i];
      break;
    case UpdateRule::momentum:
      for (std::size_t i = 0; i < count; ++i) {
        m[i] = Real(0.9) * m[i] + g[i];
        w[i] -= rate * m[i];
      }
      break;
    case UpdateRule::adam:
      for (std::size_t i = 0; i < count; ++i) {
        m[i] = Real(0.9) * m[i] + Real(0.1) * g[i];
        v[i] = Real(0.999) * v[i] + Real(0.001) * g[i] * g[i];
        w[i] -= rate * m[i] / (std::sqrt(v[i]) + Real(1e-8));
      }
      break;
  }
}

void hold_back() {}
void begin_moments() {}
Expected<void> settle() { return {}; }

Message::Message(ConstNumbers numbers) : size_(numbers.size()) {
  const auto sent = std::make_shared<std::vector<Real>>(numbers.begin(), numbers.end());
  data_ = sent->data();
  owner_ = sent;
}

Filling::Filling(Place to, std::size_t) : to_(to), data_(to) {}
Filling::~Filling() = default;

}  // namespace turnpoint::step::TURNPOINT_REAL
