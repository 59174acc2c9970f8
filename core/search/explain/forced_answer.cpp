// SPDX-License-Identifier: Apache-2.0
#include "core/search/explain/forced_answer.h"

#include <fmt/format.h>
#include <algorithm>

#include "core/search/registry.h"

namespace turnpoint {

namespace {

constexpr double kRounding = 1e-6;  // of a time: bounds are made of floats

/// The numbers that the result's method searched; the plan's own first, since the choice is likeliest to want it, too.
std::vector<int> numbers_for(const Result& result, const Plan& plan) {
  const Method& method = default_method();
  if (result.method == method.name) {
    const auto parameters = read_parameters(method.name, method.options, result.method_options);
    if (parameters && parameters->integer("micro-batches") != search::kEveryMicroBatch)
      return {parameters->integer("micro-batches")};
  }
  std::vector<int> numbers = search::micro_batch_numbers(*result.scenario);
  std::erase(numbers, plan.micro_batches());
  numbers.insert(numbers.begin(), plan.micro_batches());
  return numbers;
}

ForcedPlan forced_plan(const Result& found, std::int64_t memory) {
  ForcedPlan made;
  made.point = found.points.front();
  made.plan = std::get<PlanPtr>(found.plans->plan(0));
  made.gap = found.gap.value_or(1);
  made.within = made.point.memory_bytes <= memory;
  return made;
}

}  // namespace

PointExplainer::PointExplainer(ResultPtr result, std::size_t point, PlanPtr plan,
                               std::shared_ptr<search::ForcedSearch> with)
    : result_(std::move(result)), point_(point), plan_(std::move(plan)), search_(std::move(with)) {}

Expected<std::unique_ptr<PointExplainer>> PointExplainer::make(ResultPtr result, std::size_t point,
                                                               const PointExplainer* before) {
  const AnyPlan any = result->plans->plan(point);
  const PlanPtr* plan = std::get_if<PlanPtr>(&any);
  if (!plan || ((*plan)->pipeline && (*plan)->pipeline->stages > 1))
    return usage_error(
        fmt::format("choices are forced on plans that split operators and have no stages; those of {} are {}",
                    result->method, plural_of(kind_of(any))));
  const std::vector<int> numbers = numbers_for(*result, **plan);
  std::shared_ptr<search::ForcedSearch> with;
  if (before && before->search_->scenario() == result->scenario && before->search_->is_over(numbers)) {
    with = before->search_;
    with->begin_with((*plan)->micro_batches());
  } else {
    with = std::make_shared<search::ForcedSearch>(result->scenario, numbers);
  }
  // Bounds of a file that the point itself lies below are none.
  const auto refutes = [&](const NumberBound& bound) {
    const ResultPoint& own = result->points[point];
    return bound.micro_batches == (*plan)->micro_batches() &&
           own.time_s < frontier::time_above(bound.lines, static_cast<double>(own.memory_bytes)) * (1 - kRounding);
  };
  if (result->method == default_method().name && std::ranges::none_of(result->bounds, refutes))
    with->know(result->bounds);
  return std::unique_ptr<PointExplainer>(new PointExplainer(std::move(result), point, *plan, std::move(with)));
}

Expected<std::vector<ForcedChoice>> PointExplainer::choices(const std::vector<OperatorId>& operators,
                                                            const RunContext& context) {
  const auto prices = search_->prices(context);
  if (!prices) return prices.error();
  return search::choices_of(**prices, operators);
}

Expected<bool> PointExplainer::does_already(const std::vector<OperatorId>& operators, const ForcedChoice& choice,
                                            const RunContext& context) {
  const auto prices = search_->prices(context);
  if (!prices) return prices.error();
  return std::ranges::all_of(search::reach_of(**prices, operators, choice), [&](OperatorId op) {
    return search::does_already(*result_->scenario->model, plan_->mesh, plan_->operators[op.index], choice);
  });
}

Expected<void> PointExplainer::get_ready(const RunContext& context) {
  const ResultPoint& point = result_->points[point_];
  return search_->get_ready(point.memory_bytes, point.time_s, context);
}

Expected<ForcedAnswer> PointExplainer::force(const std::vector<ForceRule>& rules, const RunContext& context) {
  const Model& model = *result_->scenario->model;
  ForcedAnswer answer;
  answer.index = point_;
  answer.point = result_->points[point_];
  answer.plan = plan_;
  answer.rules = rules;
  answer.fastest = result_->fastest_that_fits();
  const auto prices = search_->prices(context);
  if (!prices) return prices.error();
  auto applied = search::apply_force(rules, **prices);
  if (!applied) return applied.error();
  // The best of its memory, and so the best that does so, is only what the search itself has found.
  answer.already = result_->method == default_method().name;
  for (std::size_t r = 0; r < rules.size(); ++r)
    for (const OperatorId op : applied->rules[r].forced)
      answer.already =
          answer.already && search::does_already(model, plan_->mesh, plan_->operators[op.index], rules[r].choice);
  answer.reach = std::move(applied->rules);

  const std::int64_t limit = result_->scenario->memory_limit();
  std::vector<std::int64_t> memories{limit};
  if (!answer.already) memories.push_back(answer.point.memory_bytes);
  const auto found = search_->fastest(
      [&](const search::Prices& of) -> Expected<search::ForcedOperators> {
        auto again = search::apply_force(rules, of);
        if (!again) return again.error();
        return std::move(again->operators);
      },
      memories, context);
  if (!found) return found.error();
  answer.fitting = forced_plan(*(*found)[0], limit);
  if (answer.already)
    answer.same_memory = {answer.point, plan_, gap_at(*result_, point_).value_or(0), true};
  else
    answer.same_memory = forced_plan(*(*found)[1], answer.point.memory_bytes);
  answer.difference = difference_of(model, *plan_, *answer.same_memory.plan);
  return answer;
}

}  // namespace turnpoint
