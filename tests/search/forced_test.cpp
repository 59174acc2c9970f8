// SPDX-License-Identifier: Apache-2.0
// What a forced choice costs, on small models: against brute force over lists that this file restricts itself, and by
// what must hold of any answer.
#include <QtTest>
#include <functional>
#include <random>

#include "core/frontier/pareto.h"
#include "core/plan/evaluator.h"
#include "core/plan/resemblance.h"
#include "core/search/explain/forced_answer.h"
#include "frontier/problems.h"
#include "search/scenarios.h"
#include "search/small_models.h"

using namespace turnpoint;
using search::AppliedForce;
using search::ForcedSearch;
using search::Prices;

namespace {

using Choice = ForcedChoice;
using Kind = ForcedChoice::Kind;

std::vector<ForceRule> rules(const char* text) {
  auto read = parse_force(text);
  if (!read) qFatal("%s", read.error().message().c_str());
  return *read;
}

ForcedSearch::Ask asking(const std::vector<ForceRule>& asked) {
  return [asked](const Prices& prices) -> Expected<search::ForcedOperators> {
    auto applied = search::apply_force(asked, prices);
    if (!applied) return applied.error();
    return std::move(applied->operators);
  };
}

ResultPtr frontier_of(const ScenarioPtr& scenario) {
  const auto result = test::run("ft:micro-batches=1", scenario);
  if (!result) qFatal("%s", result.error().message().c_str());
  return *result;
}

/// All that a plan's operator does, in the words of the grammar.
std::vector<ForceRule> as_rules(const Model& model, const Plan& plan, bool again) {
  std::vector<ForceRule> made;
  for (const PlanOperator& op : plan.operators) {
    const std::string& name = model.operators[op.op].name;
    std::array<std::int64_t, kParallels> ways;
    ways.fill(1);
    for (int a = 0; a < plan.mesh.count(); ++a)
      ways[std::size_t(parallel_of(model, model.operators[op.op], op.split.axis[std::size_t(a)]))] *=
          plan.mesh.axes[std::size_t(a)].size;
    const auto of = [&](Parallel p) { return ways[std::size_t(p)]; };
    made.push_back({name, {Kind::data, of(Parallel::data)}});
    made.push_back({name, {Kind::context, of(Parallel::context)}});
    made.push_back({name,
                    {Kind::tensor, of(Parallel::column) * of(Parallel::row) * of(Parallel::vocabulary) *
                                       of(Parallel::heads) * of(Parallel::channels)}});
    if (!op.parameters.empty()) made.push_back({name, {Kind::zero, std::int64_t(op.choice.update)}});
    if (again && op.choice.recompute) made.push_back({name, {Kind::recompute, 0}});
  }
  return made;
}

/// Rules that no operator can take are left out: a `dp=1` of what has no batch.
std::vector<ForceRule> that_can_be_taken(std::vector<ForceRule> all, const Prices& prices) {
  std::erase_if(all, [&](const ForceRule& rule) { return !search::apply_force({rule}, prices); });
  return all;
}

struct BruteCase {
  const char* name;
  std::function<ModelPtr()> model;
  const char* force;
  std::function<bool(const Model&, const Operator&)> concerned;
  std::function<bool(const Model&, const Operator&, const Configuration&, const MemoryChoice&)> allowed;
};

/// A loop whose name is this is split on the one axis.
bool splits(const Operator& op, const Configuration& split, DimName name) {
  return split.axis[0] >= 0 && op.dims[std::size_t(split.axis[0])].name == name;
}

}  // namespace

class ForcedTest : public QObject {
  Q_OBJECT

 private slots:
  void brute_force_data() {
    QTest::addColumn<int>("index");
    for (std::size_t i = 0; i < cases().size(); ++i) QTest::newRow(cases()[i].name) << int(i);
  }

  // Two devices, one axis: the lists are made of every memory choice there is, by hand.
  void brute_force() {
    QFETCH(int, index);
    const BruteCase& one = cases()[std::size_t(index)];
    const auto scenario = test::scenario_on(one.model(), "v100-16gb-1x2");
    const auto structure = search::build_structure(*scenario, {}, {});
    QVERIFY(structure);
    const Prices prices(scenario, *structure);
    ThreadPool pool(1);
    auto priced = search::price_problem(prices, pool, {});
    QVERIFY(priced);
    frontier::Problem problem = priced->problem;
    const Model& model = *scenario->model;
    int changed = 0;
    for (const search::Variable& variable : (*structure)->variables) {
      if (!variable.choices || !one.concerned(model, model.operators[variable.op])) continue;
      ++changed;
      frontier::CostTable costs;
      for (std::size_t c = 0; c < variable.size(); ++c) {
        const Configuration& split = variable.choices->configurations[c];
        const bool carried = !variable.choices->again.empty() && variable.choices->again[c];
        std::vector<frontier::CostPoint> list;
        for (const Update update :
             {Update::replicated, Update::sharded_state, Update::sharded, Update::sharded_weights})
          for (const bool offload : {false, true}) {
            MemoryChoice choice;
            choice.update = update, choice.offload = offload, choice.recompute = carried;
            choice.update_axes = update == Update::replicated ? 0u : 1u;
            // Over one device nothing is shared out, and without parameters there is nothing to share.
            const auto whole = prices.operators().cost(variable.op, split, {}, true);
            const bool shared = std::ranges::any_of(
                whole.parameters, [&](const ParameterSteps& steps) { return steps.group.shards(choice) != 0; });
            if (update != Update::replicated && !shared) continue;
            if (offload && whole.parameters.empty()) continue;
            if (!one.allowed(model, model.operators[variable.op], split, choice)) continue;
            const CostBreakdown cost = prices.operators().cost(variable.op, split, choice).breakdown;
            list.push_back({cost.memory_bytes(), cost.time_s()});
          }
        costs.add(list);
      }
      problem.nodes[variable.op.index].costs = costs;
    }
    QVERIFY(changed > 0);
    const frontier::CostList truth = frontier::test::brute_force(problem);
    QVERIFY(truth.size() > 1);
    ForcedSearch search(scenario, {1});
    for (const auto& expected : truth) {
      const auto found = search.fastest(asking(rules(one.force)), {expected.memory, expected.memory + 1}, {});
      QVERIFY2(found, found ? "" : found.error().message().c_str());
      QVERIFY((*found)[0]->exact);
      QCOMPARE((*found)[0]->points.front().memory_bytes, expected.memory);
      QVERIFY(test::close((*found)[0]->points.front().time_s, expected.time));
    }
    const auto none = search.fastest(asking(rules(one.force)), {truth.front().memory - 1}, {});
    QVERIFY(none);
    QCOMPARE((*none)[0]->points.front().memory_bytes, truth.front().memory);
  }

  // Whatever is forced, one choice or all that a plan does: never below what is free, and the plan does it.
  void what_a_plan_does_costs_nothing() {
    const std::function<ModelPtr()> models[] = {[] { return test::mlp(); }, [] { return test::residual(); },
                                                [] { return test::attention(); }, [] { return test::convolution(); }};
    int asked = 0;
    for (const auto& make : models) {
      const auto scenario = test::scenario_on(make(), "v100-16gb-1x4");
      const ResultPtr free = frontier_of(scenario);
      QVERIFY(free->exact);
      ForcedSearch search(scenario, {1});
      const auto prices = search.prices({});
      QVERIFY(prices);
      for (std::size_t k = 0; k < free->points.size(); k += 1 + free->points.size() / 12) {
        const Plan plan = free->plans->sharding(k);
        const auto asks = that_can_be_taken(as_rules(*scenario->model, plan, false), **prices);
        QVERIFY(!asks.empty());
        const auto found = search.fastest(asking(asks), {free->points[k].memory_bytes}, {});
        QVERIFY2(found, found ? "" : found.error().message().c_str());
        const ResultPoint& point = (*found)[0]->points.front();
        QCOMPARE(point.memory_bytes, free->points[k].memory_bytes);
        QVERIFY2(test::close(point.time_s, free->points[k].time_s), qPrintable(QString::number(k)));
        ++asked;
      }
    }
    QVERIFY(asked >= 20);
  }

  void never_below_what_is_free() {
    std::mt19937_64 random(5);
    int dearer = 0, already = 0;
    for (const auto& network : {test::mlp(), test::residual(), test::attention()}) {
      const auto scenario = test::scenario_on(network, "v100-16gb-1x4");
      const ModelPtr model = scenario->model;
      const ResultPtr free = frontier_of(scenario);
      for (int round = 0; round < 15; ++round) {
        const std::size_t k = random() % free->points.size();
        const auto explainer = PointExplainer::make(free, k);
        QVERIFY(explainer);
        const OperatorId op(random() % model->operators.size());
        const auto choices = (*explainer)->choices(op, {});
        QVERIFY(choices && !choices->empty());
        const ForceRule rule{model->operators[op].name, (*choices)[random() % choices->size()]};
        const auto answer = (*explainer)->force({rule}, {});
        QVERIFY2(answer, answer ? "" : answer.error().message().c_str());
        const auto what =
            QString("%1: %2 at point %3").arg(rule.pattern.c_str(), to_string(rule.choice).c_str()).arg(k);
        const ForcedPlan& plan = answer->same_memory;
        for (const ForcedPlan* one : {&plan, &answer->fitting}) {
          const auto cost = evaluate_plan(*scenario, *one->plan);
          QVERIFY2(cost, qPrintable(what));
          QCOMPARE(cost->memory_bytes(), one->point.memory_bytes);
          QVERIFY(test::close(cost->time_s(), one->point.time_s));
        }
        if (plan.within) QVERIFY2(plan.point.time_s >= answer->point.time_s * (1 - 1e-9), qPrintable(what));
        QVERIFY2(search::does_already(*model, plan.plan->mesh, plan.plan->operators[op.index], rule.choice),
                 qPrintable(what + ": " + words_of(*model, plan.plan->mesh, plan.plan->operators[op.index]).c_str()));
        // Parts sum to the difference, layer by layer and in all.
        DifferenceParts sum;
        for (const auto& layer : answer->difference.layers) sum += layer.parts;
        QCOMPARE(sum.memory_bytes, plan.point.memory_bytes - answer->point.memory_bytes);
        QVERIFY(std::abs(sum.time_s() - (plan.point.time_s - answer->point.time_s)) <= 1e-9 * plan.point.time_s);
        QCOMPARE(answer->difference.total.memory_bytes, sum.memory_bytes);
        dearer += plan.point.time_s > answer->point.time_s * (1 + 1e-9);
        already += answer->already;
        if (answer->already) QVERIFY(answer->difference.layers.empty() && answer->difference.changes.empty());
      }
    }
    QVERIFY2(dearer > 5 && already > 2, qPrintable(QString("%1 dearer, %2 already").arg(dearer).arg(already)));
  }

  // A method's plan is one of those that its own splits leave.
  void a_methods_layouts_cost_no_more_than_the_method() {
    const auto scenario = test::scenario_on(test::attention(16, 16), "v100-16gb-1x4");
    for (const char* method : {"fsdp:zero=1", "fsdp:zero=2", "fsdp:zero=3", "fsdp:zero=2:recompute", "data-parallel"}) {
      const auto result = test::run(method, scenario);
      QVERIFY2(result, result ? "" : result.error().message().c_str());
      const Plan plan = (*result)->plans->sharding(0);
      ForcedSearch search(scenario, {1});
      const auto prices = search.prices({});
      QVERIFY(prices);
      const auto asks = that_can_be_taken(as_rules(*scenario->model, plan, true), **prices);
      const auto found = search.fastest(asking(asks), {(*result)->points.front().memory_bytes}, {});
      QVERIFY2(found, found ? "" : found.error().message().c_str());
      const ResultPoint& point = (*found)[0]->points.front();
      QVERIFY2(point.memory_bytes <= (*result)->points.front().memory_bytes, method);
      QVERIFY2(point.time_s <= (*result)->points.front().time_s * (1 + 1e-9), method);
    }
  }

  void a_split_of_the_users_own_costs_no_less_than_its_layouts() {
    const auto scenario = test::scenario_on(test::builtin("gpt2?layers=1&hidden=256&sequence=64", 16), "v100-16gb-1x4");
    for (const char* method : {"manual:tp=2", "manual:tp=4", "manual:tp=2:zero=1"}) {
      const auto result = test::run(method, scenario);
      QVERIFY2(result, result ? "" : result.error().message().c_str());
      const Plan plan = (*result)->plans->sharding(0);
      ForcedSearch search(scenario, {plan.micro_batches()});
      const auto prices = search.prices({});
      QVERIFY(prices);
      const auto asks = that_can_be_taken(as_rules(*scenario->model, plan, true), **prices);
      const auto found = search.fastest(asking(asks), {(*result)->points.front().memory_bytes}, {});
      QVERIFY2(found, found ? "" : found.error().message().c_str());
      const ResultPoint& point = (*found)[0]->points.front();
      QVERIFY2(point.memory_bytes <= (*result)->points.front().memory_bytes, method);
      QVERIFY2(point.time_s <= (*result)->points.front().time_s * (1 + 1e-9), method);
    }
  }

  void micro_batches_are_searched_too() {
    const auto scenario = test::scenario_on(test::mlp(), "v100-16gb-1x4");
    const auto result = test::run("ft", scenario);
    QVERIFY(result);
    std::set<int> numbers;
    for (const std::size_t k : {std::size_t(0), (*result)->points.size() / 2, (*result)->points.size() - 1}) {
      const auto explainer = PointExplainer::make(*result, k);
      QVERIFY(explainer);
      const auto answer = (*explainer)->force(rules("fc1: tp=2"), {});
      QVERIFY2(answer, answer ? "" : answer.error().message().c_str());
      // As fast as the best of every number by itself.
      double best = INFINITY;
      for (const int number : search::micro_batch_numbers(*scenario)) {
        ForcedSearch alone(scenario, {number});
        const auto found = alone.fastest(asking(rules("fc1: tp=2")), {(*result)->points[k].memory_bytes}, {});
        QVERIFY(found);
        const ResultPoint& point = (*found)[0]->points.front();
        if (point.memory_bytes <= (*result)->points[k].memory_bytes) best = std::min(best, point.time_s);
      }
      if (answer->same_memory.within) {
        QVERIFY(answer->same_memory.point.time_s >= best * (1 - 1e-9));
        QVERIFY2(answer->same_memory.gap < 0.002, "numbers of micro-batches were left out that may save more");
        QVERIFY(answer->same_memory.point.time_s * (1 - answer->same_memory.gap) <= best * (1 + 1e-9));
      } else {
        QCOMPARE(best, INFINITY);
      }
      numbers.insert(answer->same_memory.plan->micro_batches());
    }
    QVERIFY2(numbers.size() > 1, "every answer has the same number of micro-batches");
  }

  // What one question leaves behind changes no other answer, whatever was asked of which point before.
  void kept_from_point_to_point() {
    const auto scenario = test::scenario_on(test::mlp(), "v100-16gb-1x4");
    const auto result = test::run("ft", scenario);
    QVERIFY(result);
    std::unique_ptr<PointExplainer> kept;
    std::set<int> numbers;
    for (const std::size_t k : {(*result)->points.size() - 1, std::size_t(0), (*result)->points.size() / 2}) {
      auto next = PointExplainer::make(*result, k, kept.get());
      const auto fresh = PointExplainer::make(*result, k);
      QVERIFY(next && fresh);
      kept = std::move(*next);
      numbers.insert((*result)->plans->sharding(k).micro_batches());
      for (const char* force : {"fc1: tp=2", "*: recompute", "*: zero=3"}) {
        const auto answer = kept->force(rules(force), {}), alone = (*fresh)->force(rules(force), {});
        QVERIFY2(answer && alone, force);
        QCOMPARE(answer->same_memory.point.memory_bytes, alone->same_memory.point.memory_bytes);
        QCOMPARE(answer->same_memory.point.time_s, alone->same_memory.point.time_s);
        QCOMPARE(answer->fitting.point.time_s, alone->fitting.point.time_s);
      }
      QCOMPARE(*kept->choices(OperatorId(0), {}), *(*fresh)->choices(OperatorId(0), {}));
    }
    QVERIFY2(numbers.size() > 1, "every point has the same number of micro-batches");
    // A search of other numbers of micro-batches has other choices, and begins anew.
    const ResultPtr one = frontier_of(scenario);
    for (std::size_t k = 0; k < one->points.size(); k += 1 + one->points.size() / 8) {
      const auto other = PointExplainer::make(one, k, kept.get());
      QVERIFY(other);
      const auto answer = (*other)->force(rules("*: keep"), {});
      QVERIFY(answer);
      QCOMPARE(answer->same_memory.plan->micro_batches(), 1);
    }
  }

  void again_or_kept() {
    const auto scenario = test::scenario_on(test::attention(), "v100-16gb-1x2");
    const ResultPtr free = frontier_of(scenario);
    const auto explainer = PointExplainer::make(free, free->points.size() - 1);
    QVERIFY(explainer);
    for (std::size_t i = 0; i < scenario->model->operators.size(); ++i) {
      const auto& name = scenario->model->operators[OperatorId(i)].name;
      const auto choices = (*explainer)->choices(OperatorId(i), {});
      QVERIFY(choices);
      if (std::ranges::find(*choices, Choice{Kind::recompute, 0}) == choices->end()) continue;
      const auto again = (*explainer)->force({{name, {Kind::recompute, 0}}}, {});
      const auto kept = (*explainer)->force({{name, {Kind::keep, 0}}}, {});
      QVERIFY(again && kept);
      QVERIFY2(again->fitting.plan->operators[i].choice.recompute, name.c_str());
      QVERIFY2(!kept->fitting.plan->operators[i].choice.recompute, name.c_str());
    }
  }

  void refusals_data() {
    QTest::addColumn<QString>("force");
    QTest::addColumn<QString>("says");
    QTest::newRow("nothing") << ""
                             << "--force has an empty rule";
    QTest::newRow("no pattern") << "tp=2"
                                << "'tp=2' has no pattern";
    QTest::newRow("empty pattern") << ": tp=2"
                                   << "has an empty pattern";
    QTest::newRow("no such choice") << "fc1: sideways"
                                    << "knows no choice 'sideways'; there are dp, dp=N";
    QTest::newRow("no number") << "fc1: tp"
                               << "'tp' needs a number from 1 to 65536";
    QTest::newRow("a number too many") << "fc1: row=2"
                                       << "'row' takes no number";
    QTest::newRow("a stage too high") << "fc1: zero=4"
                                      << "'zero=4' needs a number from 0 to 3";
    QTest::newRow("no such operator") << "fc9*: dp"
                                      << "'fc9*' names no operator and no tensor";
    QTest::newRow("no such split") << "fc1: tp=3"
                                   << "no operator that 'fc1' names can be 'tp=3'; 'fc1' can be dp=2, dp=4, tp=2";
    QTest::newRow("not of its kind") << "relu: zero=3"
                                     << "no operator that 'relu' names can be 'zero=3'; 'relu' can be dp=2";
    QTest::newRow("not at once") << "fc1: dp=4, tp=4"
                                 << "'fc1' cannot be dp=4, tp=4 at once";
    QTest::newRow("both") << "fc1: keep, recompute"
                          << "'fc1' cannot be keep, recompute at once";
  }
  void refusals() {
    QFETCH(QString, force);
    QFETCH(QString, says);
    const auto scenario = test::scenario_on(test::mlp(), "v100-16gb-1x4");
    const auto read = parse_force(force.toStdString());
    std::string told = read ? std::string() : read.error().message();
    if (read) {
      ForcedSearch search(scenario, {1});
      const auto found = search.fastest(asking(*read), {std::int64_t(1) << 40}, {});
      QVERIFY(!found);
      QCOMPARE(found.error().code, ErrorCode::usage);
      told = found.error().message();
    }
    QVERIFY2(QString::fromStdString(told).contains(says), told.c_str());
  }

  // A tensor's name stands for the operator that makes or owns it.
  void tensors_name_operators() {
    const auto scenario = test::scenario_on(test::mlp(), "v100-16gb-1x4");
    ForcedSearch search(scenario, {1});
    const auto prices = search.prices({});
    QVERIFY(prices);
    const auto applied = search::apply_force(rules("w2: zero=3"), **prices);
    QVERIFY2(applied, applied ? "" : applied.error().message().c_str());
    QCOMPARE(applied->rules.front().forced.size(), std::size_t(1));
    QCOMPARE(scenario->model->operators[applied->rules.front().forced.front()].name, std::string("fc2"));
  }

  void words_of_choices() {
    for (const char* text : {"dp", "dp=4", "tp=2", "cp=8", "ep=2", "column", "row", "vocabulary", "repeated",
                             "replicated", "zero=0", "zero=3", "offload", "keep", "recompute"}) {
      const auto read = rules((std::string("a/*: ") + text).c_str());
      QCOMPARE(read.size(), std::size_t(1));
      QCOMPARE(to_string(read.front().choice), std::string(text));
    }
    QCOMPARE(to_string(rules("a: sharded").front().choice), std::string("zero=3"));
    const auto several = rules("a:b: tp=2, recompute, c: dp");
    QCOMPARE(several.size(), std::size_t(3));
    QCOMPARE(several[0].pattern, std::string("a:b"));
    QCOMPARE(several[1].pattern, std::string("a:b"));
    QCOMPARE(several[2].pattern, std::string("c"));
  }

 private:
  static const std::vector<BruteCase>& cases() {
    static const std::vector<BruteCase> kCases = {
        {"weights sharded", [] { return test::mlp(); }, "fc1: zero=3",
         [](const Model&, const Operator& op) { return op.name == "fc1"; },
         [](const Model&, const Operator&, const Configuration&, const MemoryChoice& choice) {
           return choice.update == Update::sharded_weights;
         }},
        {"ZeRO-1, which is dominated", [] { return test::mlp(); }, "fc*: zero=1",
         [](const Model&, const Operator& op) { return op.name.starts_with("fc"); },
         [](const Model&, const Operator&, const Configuration&, const MemoryChoice& choice) {
           return choice.update == Update::sharded_state;
         }},
        {"row parallel", [] { return test::mlp(); }, "fc2: row",
         [](const Model&, const Operator& op) { return op.name == "fc2"; },
         [](const Model&, const Operator& op, const Configuration& split, const MemoryChoice&) {
           return split.axis[0] >= 0 && op.dims[std::size_t(split.axis[0])].role == DimRole::reduction;
         }},
        {"data parallel with the state at the host", [] { return test::residual(); }, "fc1: dp, offload",
         [](const Model&, const Operator& op) { return op.name == "fc1"; },
         [](const Model&, const Operator& op, const Configuration& split, const MemoryChoice& choice) {
           return splits(op, split, DimName::batch) && choice.offload;
         }},
        {"repeated", [] { return test::mlp(); }, "relu: repeated",
         [](const Model&, const Operator& op) { return op.name == "relu"; },
         [](const Model&, const Operator&, const Configuration& split, const MemoryChoice&) {
           return split.axis[0] == Configuration::kRepeat;
         }},
    };
    return kCases;
  }
};

QTEST_APPLESS_MAIN(ForcedTest)
#include "forced_test.moc"
