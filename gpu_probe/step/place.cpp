// SPDX-License-Identifier: Apache-2.0
// Numbers in the memory of this process.
#include "gpu_probe/step/place.h"

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
  const std::size_t rank = both.extent.size();
  const std::int64_t run = rank == 0 ? 1 : both.extent[rank - 1];
  const std::int64_t rows = both.elements() / run;
  Shape at(rank, 0);
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t read = 0, write = 0;
    for (std::size_t d = 0; d < rank; ++d) {
      read = read * from.extent[d] + both.offset[d] - from.offset[d] + at[d];
      write = write * to.extent[d] + both.offset[d] - to.offset[d] + at[d];
    }
    if (add)
      for (std::int64_t i = 0; i < run; ++i) target[write + i] += source[read + i];
    else
      std::copy(source + read, source + read + run, target + write);
    for (std::size_t d = rank - (rank > 0); d-- > 0;) {
      if (++at[d] < both.extent[d]) break;
      at[d] = 0;
    }
  }
}

void transpose(ConstPlace from, std::int64_t rows, std::int64_t columns, Place to) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) to[j * rows + i] = from[i * columns + j];
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
