// SPDX-License-Identifier: Apache-2.0
// Numbers in the memory of this process.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>

#include "gpu_probe/job/output.h"
#include "gpu_probe/step/kernels/choose.h"

namespace turnpoint::step {

namespace {

template <class Real>
class OnHost : public Arithmetic {
 public:
  explicit OnHost(Kernel HostKernel::*mine) : Arithmetic(sizeof(Real), false), mine_(mine) {}

  Expected<Kernel> kernel_of(const Model& model, OperatorId id) const override {
    const auto found = choose_kernel<HostKernels>(model, id);
    if (!found) return found.error();
    return (**found).*mine_;
  }
  std::shared_ptr<void> mail(std::size_t bytes) const override {
    return std::make_shared_for_overwrite<Real[]>(bytes / sizeof(Real));
  }
  Moment moment() const override { return {probe::host_clock(), nullptr}; }
  void between(const Moment& from, const Moment& to, std::function<void(double)> take) const override {
    take(to.seconds - from.seconds);
  }
  void copy(ConstPlace from, Place to, std::size_t count) const override {
    std::copy_n(from.as<const Real>(), count, to.as<Real>());
  }
  void add(ConstPlace from, Place to, std::size_t count) const override {
    const Real* source = from;
    Real* target = to;
    for (std::size_t i = 0; i < count; ++i) target[i] += source[i];
  }
  void fill(Place to, double value, std::size_t count) const override {
    std::fill_n(to.as<Real>(), count, static_cast<Real>(value));
  }
  void upload(const void* from, Place to, std::size_t bytes) const override { std::memcpy(to.as<Real>(), from, bytes); }
  void download(ConstPlace from, void* to, std::size_t bytes) const override {
    std::memcpy(to, from.as<const Real>(), bytes);
  }
  void copy_overlap(const Region& from, ConstPlace source, const Region& to, Place target, bool add) const override;
  void transpose(ConstPlace from, std::int64_t rows, std::int64_t columns, Place to) const override {
    constexpr std::int64_t kTile = 16;  // neighbours of the one are far apart in the other
    const Real* source = from;
    Real* target = to;
    for (std::int64_t i = 0; i < rows; i += kTile)
      for (std::int64_t j = 0; j < columns; j += kTile)
        for (std::int64_t b = j; b < std::min(j + kTile, columns); ++b)
          for (std::int64_t a = i; a < std::min(i + kTile, rows); ++a) target[b * rows + a] = source[a * columns + b];
  }
  void weighted_sum(ConstPlace a, ConstPlace b, std::size_t count, std::function<void(double)> take) const override {
    const Real *first = a, *second = b;
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += static_cast<double>(first[i]) * static_cast<double>(second[i]);
    take(sum);
  }
  void apply(UpdateRule rule, double rate, ConstPlace g, Place w, Place, Place m, Place v,
             std::size_t count) const override {
    update(rule, static_cast<Real>(rate), g, w, m, v, count);
  }

 private:
  static void update(UpdateRule rule, Real rate, const Real* g, Real* w, Real* m, Real* v, std::size_t count);
  Kernel HostKernel::*mine_;
};

template <class Real>
void OnHost<Real>::copy_overlap(const Region& from, ConstPlace source_place, const Region& to, Place target_place,
                                bool add) const {
  const Real* source = source_place;
  Real* target = target_place;
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

template <class Real>
void OnHost<Real>::update(UpdateRule rule, Real rate, const Real* g, Real* w, Real* m, Real* v, std::size_t count) {
  assert(!is_layer_wise(rule));  // made of the others (layer_wise.cpp, factored.cpp)
  switch (rule) {
    case UpdateRule::lars:
    case UpdateRule::lamb:
    case UpdateRule::adafactor: break;
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

}  // namespace

const Arithmetic& in_double() {
  static const OnHost<double> here(&HostKernel::in_double);
  return here;
}

const Arithmetic& in_float() {
  static const OnHost<float> here(&HostKernel::in_float);
  return here;
}

}  // namespace turnpoint::step
