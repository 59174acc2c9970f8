// SPDX-License-Identifier: Apache-2.0
// LARS (You et al., arXiv 1708.03888) and LAMB (You et al., arXiv 1904.00962) on one rank's share of parameters,
// without weight decay and, of LAMB, without correction of the moments' bias. Both scale each parameter's step by the
// norm of its weights over the norm of the step itself: the gradient's with LARS, Adam's with LAMB. A norm is over the
// whole parameter, so ranks that hold different parts of it, because it is split or because they share out its update,
// sum their squares: all norms of a set in one message.
#include "gpu_probe/step/norm_rules.h"
#include "gpu_probe/step/parameters.h"
#include "gpu_probe/step/values/numbers.h"

namespace turnpoint::step {

Expected<std::vector<double>> ParameterShare::sum_over_parts(std::vector<double> sums, double& seconds) {
  const Mesh& mesh = program_.plan->mesh;
  const std::uint32_t all = (1u << mesh.count()) - 1;
  const Group group = group_of(mesh, communicator_.rank(), set_.shards | (all & ~set_.whole));
  if (group.size() < 2) return sums;
  Array message = Array::whole_scratch(sums.size());
  put({sums.data(), sums.size()}, message.data());
  communicator_.take_received();
  const Moment since = moment();
  if (auto done = communicator_.all_reduce(group, message.numbers()); !done) return done.error();
  between(since, moment(), [&seconds](double passed) { seconds -= passed; });  // no time of the update's computing
  report_.norm_bytes += static_cast<double>(communicator_.take_received()) * program_.options.gradient_bytes;
  return numbers_of(message);
}

Expected<void> ParameterShare::update_layer_wise(ConstPlace gradient, Place own, double& seconds) {
  const StepOptions& options = program_.options;
  const bool lamb = options.rule == UpdateRule::lamb;
  const auto count = static_cast<std::size_t>(mine_.size());
  // What the rule's step would take off a weight of 0, so that no kernel is needed beside those of other rules.
  Array step = Array::whole_scratch(count), scaled = Array::whole_scratch(lamb ? 0 : count);
  step.clear();
  apply(lamb ? UpdateRule::adam : UpdateRule::sgd, 1, gradient, step.data(), master_.data(), first_->data.data(),
        second_->data.data(), count);
  std::vector<double> sums(2 * regions_.size(), 0);
  std::vector<Span> parts;
  for (std::size_t p = 0; p < regions_.size(); ++p) {
    parts.push_back(within(mine_, p));
    if (parts[p].size() <= 0) continue;
    const std::int64_t at = parts[p].begin - mine_.begin;
    const auto size = static_cast<std::size_t>(parts[p].size());
    weighted_sum(own + at, own + at, size, [&sums, p](double sum) { sums[2 * p] = sum; });
    weighted_sum(step.data() + at, step.data() + at, size, [&sums, p](double sum) { sums[2 * p + 1] = sum; });
  }
  auto whole = sum_over_parts(std::move(sums), seconds);
  if (!whole) return whole.error();
  scaled.clear();
  for (std::size_t p = 0; p < regions_.size(); ++p) {
    if (parts[p].size() <= 0) continue;
    const std::int64_t at = parts[p].begin - mine_.begin;
    const auto size = static_cast<std::size_t>(parts[p].size());
    const double ratio = norm_ratio((*whole)[2 * p], (*whole)[2 * p + 1]);
    if (lamb) {
      apply(UpdateRule::sgd, -options.learning_rate * ratio, step.data() + at, own + at, {}, {}, {}, size);
      continue;
    }
    apply(UpdateRule::sgd, kLarsTrust * ratio, step.data() + at, scaled.data() + at, {}, {}, {}, size);
    apply(UpdateRule::momentum, options.learning_rate, scaled.data() + at, own + at, {}, first_->data.data() + at, {},
          size);
  }
  return {};
}

}  // namespace turnpoint::step
