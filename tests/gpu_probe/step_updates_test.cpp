// SPDX-License-Identifier: Apache-2.0
// Sharded updates on CPU ranks beside replicated ones (W6): from the same summed gradient every rank computes the same
// weights, bit for bit, as the probe's optimizers work element by element.
#include <QtTest>
#include <cstring>
#include <map>

#include "core/plan/evaluator.h"
#include "core/search/update_sharding/planned_updates.h"
#include "gpu_probe/step/values/drawn.h"
#include "gpu_probe/step_checks.h"
#include "gpu_probe/step_models.h"
#include "search/scenarios.h"

using namespace turnpoint;

namespace {

using Place = std::tuple<std::uint32_t, std::uint32_t, std::int64_t>;  // operator, input, element
using Bits = std::map<Place, std::uint64_t>;

/// Of all ranks together; ranks that hold the same element hold the same bits, or it is said.
std::string read_bits(const step::StepRun& run, step::Compared kind, Bits& bits) {
  for (const auto& rank : run.ranks)
    for (const auto& recorded : rank.recorded) {
      if (recorded.kind != kind) continue;
      for (const auto offset : recorded.region.offset)
        if (offset != 0) return "weights are cut";
      for (std::size_t i = 0; i < recorded.data.size(); ++i) {
        std::uint64_t value = 0;
        std::memcpy(&value, &recorded.data[i], sizeof value);
        const Place place{recorded.op.index, recorded.slot, recorded.first + std::int64_t(i)};
        if (bits.try_emplace(place, value).first->second != value) return "ranks differ";
      }
    }
  return {};
}

/// The plan's choices, so that nothing is proven of a plan that shares out no update.
int shared_updates(const Plan& plan) {
  int count = 0;
  for (const auto& op : plan.operators) count += !op.parameters.empty() && op.choice.update != Update::replicated;
  return count;
}

struct Ran {
  int shared = 0;
  Bits gradient, weight;
};

Ran carry_out(const ScenarioPtr& scenario, const char* method, step::UpdateRule rule) {
  const auto result = test::run(method, scenario);
  if (!result) qFatal("%s", result.error().message().c_str());
  Plan plan = (*result)->plans->sharding(0);
  auto options = test::step_options(scenario->settings);
  options.rule = rule;
  options.micro_batches = plan.micro_batches();
  const Model& model = plan.pipeline ? *plan.pipeline->micro_batch : *scenario->model;
  plan.pipeline.reset();
  const auto run = step::run_step(step::in_double(), model, plan, options);
  if (!run) qFatal("%s", run.error().message().c_str());
  Ran ran;
  ran.shared = shared_updates(plan);
  for (const auto& [kind, bits] : {std::pair{step::Compared::parameter_gradient, &ran.gradient},
                                   std::pair{step::Compared::new_parameter, &ran.weight}})
    if (const std::string fault = read_bits(*run, kind, *bits); !fault.empty()) qFatal("%s", fault.c_str());
  return ran;
}

using ByParameter = std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<double>>;  // operator, input

ByParameter recorded_as(step::Compared kind, const step::StepReport& rank) {
  ByParameter found;
  for (const auto& recorded : rank.recorded)
    if (recorded.kind == kind) found[{recorded.op.index, recorded.slot}] = recorded.data;
  return found;
}

/// Empty if ranks update by Adafactor as one device does, and send what the plan says.
std::string layer_wise_fault(const Scenario& scenario, const Plan& plan) {
  auto options = test::step_options(scenario.settings);
  options.rule = step::UpdateRule::adafactor;
  const auto run = step::run_step(step::in_double(), *scenario.model, plan, options),
             whole = step::run_whole(step::in_double(), *scenario.model, plan, options);
  if (!run) return run.error().message();
  if (!whole) return whole.error().message();
  const auto compared = step::compare(*scenario.model, plan, *run, *whole);
  if (!compared) return compared.error().message();
  if (!(compared->largest() < test::kRounding)) return "differs at " + compared->where;
  std::string where;
  return step::traffic_error(*run, &where) < 1e-12 ? std::string() : "bytes: " + where;
}

}  // namespace

class StepUpdatesTest : public QObject {
  Q_OBJECT

 private slots:
  /// Norms of parts that other ranks hold are summed: split by tensor groups, shared out, whole, in micro-batches.
  void layer_wise_updates_are_the_whole_ones_data() {
    QTest::addColumn<int>("optimizer");
    for (const Optimizer o : {Optimizer::lars, Optimizer::lamb, Optimizer::adafactor})
      QTest::newRow(to_string(o)) << static_cast<int>(o);
  }
  void layer_wise_updates_are_the_whole_ones() {
    QFETCH(int, optimizer);
    const auto chosen = static_cast<Optimizer>(optimizer);
    const auto rule = chosen == Optimizer::lars   ? step::UpdateRule::lars
                      : chosen == Optimizer::lamb ? step::UpdateRule::lamb
                                                  : step::UpdateRule::adafactor;
    int plans = 0, split = 0, shared = 0;
    double worst = 0;
    for (const auto& model : {test::builtin("lenet", 12), test::block(12, 4, 64, 4), test::mlp(12)})
      for (const char* hardware : {"v100-16gb-1x2", "v100-16gb-1x3", "v100-16gb-2x2"}) {
        const auto scenario = test::scenario_on(model, hardware, [&](Settings& s) { s.optimizer = chosen; });
        for (const char* method : {"data-parallel", "fsdp:zero=1", "fsdp:zero=2", "fsdp:zero=3", "optcnn",
                                   "fsdp:zero=1:micro-batches=2", "ft:micro-batches=1"}) {
          const auto result = test::run(method, scenario);
          if (!result) continue;
          Plan plan = (*result)->plans->sharding(0);  // ft's has the least memory: all is cut
          const std::string what = model->name + " on " + hardware + " by " + method;
          auto options = test::step_options(scenario->settings);
          options.rule = rule, options.micro_batches = plan.micro_batches();
          const Model& part = plan.pipeline ? *plan.pipeline->micro_batch : *model;
          plan.pipeline.reset();
          const auto run = step::run_step(step::in_double(), part, plan, options);
          QVERIFY2(run, run ? "" : (what + ": " + run.error().message()).c_str());
          const auto whole = step::run_whole(step::in_double(), part, plan, options);
          QVERIFY(whole.has_value());
          const auto compared = step::compare(part, plan, *run, *whole);
          QVERIFY2(
              compared && compared->largest() < test::kRounding,
              (what + (compared ? " at " + compared->where + " " + std::to_string(compared->largest()) : "")).c_str());
          worst = std::max(worst, compared->largest());
          ++plans;
          shared += shared_updates(plan) > 0;
          // Two sums a parameter whose parts lie apart, or with Adafactor one for it, each row and each column, twice
          // around the ring; on two ranks each receives half, twice.
          double sums = 0, most = 0;
          bool tensor_parts = false;
          for (const PlanOperator& op : plan.operators)
            for (const ParameterSteps& group : op.parameters) {
              const std::uint32_t all = (1u << plan.mesh.count()) - 1,
                                  apart = group.group.shards(op.choice) | (all & ~group.group.whole);
              tensor_parts = tensor_parts || (all & ~group.group.whole);
              const auto members = double(plan.mesh.size_of(apart));
              double numbers = 0;
              for (const auto input : group.group.inputs) {
                const auto& shape = part.tensors[part.operators[op.op].inputs[input].tensor].shape;
                double elements = 1;
                for (const auto size : shape) elements *= double(size);
                numbers += chosen != Optimizer::adafactor ? 2
                           : shape.size() < 2             ? 1
                                                          : 1 + elements / double(shape.back()) + double(shape.back());
              }
              sums += 2 * (members - 1) / members * numbers;
            }
          split += tensor_parts;
          double received = 0;
          for (const auto& rank : run->ranks) received += rank.norm_bytes, most = std::max(most, rank.norm_bytes);
          QVERIFY2(std::abs(received - sums * double(run->ranks.size()) * options.gradient_bytes) < 1e-6,
                   (what + ": " + std::to_string(received)).c_str());
          std::string where;
          QVERIFY2(step::traffic_error(*run, &where) < 1e-12, (what + ": " + where).c_str());
        }
      }
    qInfo("%d plans, %d split weights, %d shared out updates, largest difference %.1e", plans, split, shared, worst);
    QVERIFY(plans >= 40 && split >= 5 && shared >= 20);
  }

  /// The published formulas, on one rank, from the weights and states that it begins with.
  void layer_wise_updates_are_the_published_ones() {
    const auto model = test::mlp(12);
    const Plan plan = step::whole_plan(*model);
    for (const auto rule : {step::UpdateRule::lars, step::UpdateRule::lamb}) {
      step::StepOptions options;
      options.record = true, options.rule = rule;
      const auto run = step::run_step(step::in_double(), *model, plan, options);
      QVERIFY(run.has_value());
      const auto gradients = recorded_as(step::Compared::parameter_gradient, run->ranks[0]),
                 weights = recorded_as(step::Compared::new_parameter, run->ranks[0]);
      QVERIFY(gradients.size() >= 4 && gradients.size() == weights.size());
      for (const auto& [place, gradient] : gradients) {
        const TensorId tensor = model->operators[OperatorId(place.first)].inputs[place.second].tensor;
        const auto count = std::int64_t(gradient.size());
        const auto drawn = [&](step::DrawnFor what) {
          const auto& shape = model->tensors[tensor].shape;
          std::vector<double> numbers(gradient.size());
          step::draw_parameter(*model, tensor, {std::vector<std::int64_t>(shape.size(), 0), shape}, 0, count, what,
                               options, numbers.data());
          return numbers;
        };
        const auto norm = [](const std::vector<double>& of) {
          double sum = 0;
          for (const double x : of) sum += x * x;
          return std::sqrt(sum);
        };
        const auto w = drawn(step::DrawnFor::weight), m = drawn(step::DrawnFor::first_state),
                   v = rule == step::UpdateRule::lamb ? drawn(step::DrawnFor::second_state) : m;
        std::vector<double> direction(gradient.size());
        for (std::size_t i = 0; i < gradient.size(); ++i) {
          const double g = gradient[i];
          direction[i] = rule == step::UpdateRule::lars
                             ? g
                             : (0.9 * m[i] + 0.1 * g) / (std::sqrt(0.999 * v[i] + 0.001 * g * g) + 1e-8);
        }
        const double ratio = norm(direction) > 0 ? norm(w) / norm(direction) : 1;
        for (std::size_t i = 0; i < gradient.size(); ++i) {
          const double step =
              rule == step::UpdateRule::lars ? 0.9 * m[i] + 1e-3 * ratio * direction[i] : ratio * direction[i];
          QVERIFY(std::abs(weights.at(place)[i] - (w[i] - options.learning_rate * step)) < 1e-12);
        }
      }
    }
  }

  /// The same of Adafactor, whose means of rows and columns are kept of whole matrices.
  void factored_updates_are_the_published_ones() {
    const auto model = test::block(4, 4, 16, 2);
    const Plan plan = step::whole_plan(*model);
    step::StepOptions options;
    options.record = true, options.rule = step::UpdateRule::adafactor;
    const auto run = step::run_step(step::in_double(), *model, plan, options);
    QVERIFY(run.has_value());
    const auto gradients = recorded_as(step::Compared::parameter_gradient, run->ranks[0]),
               weights = recorded_as(step::Compared::new_parameter, run->ranks[0]);
    int matrices = 0, vectors = 0, bounded = 0;
    for (const auto& [place, gradient] : gradients) {
      const TensorId tensor = model->operators[OperatorId(place.first)].inputs[place.second].tensor;
      const auto& shape = model->tensors[tensor].shape;
      const std::size_t count = gradient.size(), columns = shape.size() < 2 ? 1 : std::size_t(shape.back()),
                        rows = count / columns;
      const auto drawn = [&](step::DrawnFor what) {
        std::vector<double> numbers(count);
        step::draw_parameter(*model, tensor, {std::vector<std::int64_t>(shape.size(), 0), shape}, 0,
                             std::int64_t(count), what, options, numbers.data());
        return numbers;
      };
      const auto w = drawn(step::DrawnFor::weight), state = drawn(step::DrawnFor::second_state);
      std::vector<double> square(count);
      if (shape.size() < 2) {
        ++vectors;
        for (std::size_t i = 0; i < count; ++i)
          square[i] = 0.999 * state[i] + 0.001 * (gradient[i] * gradient[i] + 1e-30);
      } else {
        ++matrices;
        double mean = 0;
        std::vector<double> r(rows), c(columns);
        for (std::size_t i = 0; i < rows; ++i) {
          double sum = 0;
          for (std::size_t j = 0; j < columns; ++j)
            sum += gradient[i * columns + j] * gradient[i * columns + j] + 1e-30;
          r[i] = 0.999 * state[i] + 0.001 * sum / double(columns);
          mean += r[i] / double(rows);
        }
        for (std::size_t j = 0; j < columns; ++j) {
          double sum = 0;
          for (std::size_t i = 0; i < rows; ++i) sum += gradient[i * columns + j] * gradient[i * columns + j] + 1e-30;
          c[j] = 0.999 * state[count - columns + j] + 0.001 * sum / double(rows);
        }
        for (std::size_t i = 0; i < count; ++i) square[i] = r[i / columns] * c[i % columns] / mean;
      }
      double norm = 0;
      for (std::size_t i = 0; i < count; ++i) norm += gradient[i] * gradient[i] / square[i] / double(count);
      const double most = std::max(1.0, std::sqrt(norm));
      bounded += most > 1;
      for (std::size_t i = 0; i < count; ++i) {
        const double expected = w[i] - options.learning_rate * gradient[i] / std::sqrt(square[i]) / most;
        QVERIFY(std::abs(weights.at(place)[i] - expected) < 1e-12);
      }
    }
    qInfo("%d matrices, %d vectors, %d steps bounded", matrices, vectors, bounded);
    QVERIFY(matrices >= 4 && vectors >= 1 && bounded > 0 && bounded < matrices + vectors);
  }

  void sharded_updates_are_the_replicated_ones_bit_for_bit_data() {
    QTest::addColumn<int>("optimizer");
    for (const Optimizer o : {Optimizer::sgd, Optimizer::momentum, Optimizer::adam})
      QTest::newRow(to_string(o)) << static_cast<int>(o);
  }
  void sharded_updates_are_the_replicated_ones_bit_for_bit() {
    QFETCH(int, optimizer);
    const auto chosen = static_cast<Optimizer>(optimizer);
    const step::UpdateRule rule = chosen == Optimizer::sgd        ? step::UpdateRule::sgd
                                  : chosen == Optimizer::momentum ? step::UpdateRule::momentum
                                                                  : step::UpdateRule::adam;
    std::size_t compared = 0, of = 0;
    for (const auto& model : {test::builtin("lenet", 12), test::block(12, 4, 64, 4), test::mlp(12)})
      for (const char* hardware : {"v100-16gb-1x2", "v100-16gb-1x3", "v100-16gb-1x4", "v100-16gb-2x2"}) {
        const auto scenario = test::scenario_on(model, hardware, [&](Settings& s) { s.optimizer = chosen; });
        const Ran whole = carry_out(scenario, "data-parallel", rule);
        QCOMPARE(whole.shared, 0);
        for (const char* method : {"fsdp:zero=1", "update-sharding"}) {
          const std::string what = model->name + " on " + hardware + " by " + method;
          const Ran shards = carry_out(scenario, method, rule);
          if (method != std::string("update-sharding")) QVERIFY2(shards.shared > 0, what.c_str());
          QCOMPARE(shards.weight.size(), whole.weight.size());
          QCOMPARE(shards.gradient.size(), whole.gradient.size());
          for (const auto& [place, bits] : shards.weight) {
            ++of;
            // Two ranks add two numbers, in either order the same. Rings of more may add in another order.
            const bool same = shards.gradient.at(place) == whole.gradient.at(place);
            if (hardware == std::string("v100-16gb-1x2")) QVERIFY2(same, what.c_str());
            if (!same) continue;
            ++compared;
            QVERIFY2(bits == whole.weight.at(place), what.c_str());
          }
        }
      }
    qInfo("%zu of %zu weights have the same gradient", compared, of);
    QVERIFY(compared > of / 2);
  }

  /// Weights gathered before forward instead of behind the update, shards of whole tiles: the same numbers, the bytes
  /// that the plan says (padding included), and as much held as it says. Nothing is left of what others update: the
  /// ranks fill it with what is no number until it is gathered.
  void gathers_before_forward_and_tiles_are_carried_out() {
    int plans = 0, padded = 0;
    for (const auto& model : {test::builtin("lenet", 12), test::block(12, 4, 64, 4), test::mlp(12)})
      for (const char* hardware : {"v100-16gb-1x2", "v100-16gb-1x3", "v100-16gb-2x2"})
        for (const Optimizer optimizer : {Optimizer::adam, Optimizer::adafactor})
          for (const char* method : {"fsdp:zero=1", "fsdp:zero=2", "fsdp:zero=3"})
            for (const bool tiles : {false, true}) {
              const auto scenario = test::scenario_on(model, hardware, [&](Settings& s) { s.optimizer = optimizer; });
              const auto result = test::run(method, scenario);
              QVERIFY(result.has_value());
              const Plan flat = (*result)->plans->sharding(0);
              std::vector<MemoryChoice> choices;
              for (const PlanOperator& op : flat.operators) {
                choices.push_back(op.choice);
                choices.back().tiles = tiles, choices.back().whole_rows = false;
                if (op.choice.update == Update::sharded || op.choice.update == Update::sharded_state)
                  choices.back().gather = WeightGather::before_forward;
              }
              const Plan plan = update_sharding::with_choices(*scenario, flat, choices);
              const auto evaluated = evaluate_plan(*scenario, plan);
              QVERIFY(evaluated && evaluated->memory_bytes() == plan.cost.memory_bytes() &&
                      std::abs(evaluated->time_s() - plan.cost.time_s()) < 1e-9 * plan.cost.time_s());
              const auto bytes = [](const Plan& of) {
                double sum = 0;
                for (const PlanOperator& op : of.operators)
                  for (const ReshardStep& step : all_steps(op.parameters)) sum += step.bytes;
                return sum;
              };
              const std::string what = model->name + " on " + hardware + " by " + method,
                                fault = optimizer == Optimizer::adam ? test::step_fault(*scenario, plan)
                                                                     : layer_wise_fault(*scenario, plan);
              QVERIFY2(fault.empty(), (what + (tiles ? ", tiles: " : ": ") + fault).c_str());
              ++plans;
              padded += tiles && bytes(plan) > bytes(flat) * (1 + 1e-9);
            }
    qInfo("%d plans, %d with padding", plans, padded);
    QVERIFY(plans == 108 && padded > 10);
  }

  /// In micro-batches, on a device so slow that sharded updates pay even for small weights: whole gradients are summed
  /// over all parts and scattered once.
  void micro_batches_sum_before_they_scatter() {
    std::size_t compared = 0;
    for (const auto& model : {test::block(12, 4, 64, 4), test::mlp(12)})
      for (const char* hardware : {"v100-16gb-1x2", "v100-16gb-1x3"}) {
        const auto scenario = test::scenario_on(model, hardware, [](Settings& s) { s.factors.device_speed = 1e-4; });
        const Ran whole = carry_out(scenario, "manual:micro-batches=2", step::UpdateRule::adam),
                  shards = carry_out(scenario, "update-sharding:of=manual:micro-batches=2", step::UpdateRule::adam);
        const std::string what = model->name + " on " + hardware;
        QVERIFY2(whole.shared == 0 && shards.shared > 0, what.c_str());
        QCOMPARE(shards.weight.size(), whole.weight.size());
        for (const auto& [place, bits] : shards.weight) {
          if (shards.gradient.at(place) != whole.gradient.at(place)) continue;
          ++compared;
          QVERIFY2(bits == whole.weight.at(place), what.c_str());
        }
      }
    QVERIFY(compared > 1000);
  }
};

QTEST_APPLESS_MAIN(StepUpdatesTest)
#include "step_updates_test.moc"
