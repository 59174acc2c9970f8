// SPDX-License-Identifier: Apache-2.0
// Ranks of a ratio plan that share out updates: what they update together is what one rank updates by itself, they
// keep gradients and states of their own share alone, and they send what hand and evaluator count.
#include <QtTest>
#include <nlohmann/json.hpp>

#include "core/plan/ratio_evaluator.h"
#include "core/validation/ratio_step.h"
#include "gpu_probe/step/ratio_run.h"
#include "gpu_probe/step_checks.h"
#include "gpu_probe/step_models.h"
#include "gpu_probe/step_ratios.h"
#include "plan/ratio_plans.h"
#include "search/scenario_on.h"

using namespace turnpoint;

namespace {

using MoveKind = MeasuredMove::Kind;

/// By batch at every cut, a third of it to the first half; every update shared out in these shares, cut by cut.
StepJob by_batch(const ModelPtr& model, std::uint32_t ranks, const std::vector<double>& updates) {
  StepRatio ratio = test::uncut_ratio(*model, ranks, ranks == 4);
  test::set_shares(*model, ratio, [&](std::uint32_t, OperatorId id, const std::vector<std::int64_t>& lengths) {
    const Operator& op = model->operators[id];
    for (std::size_t l = 0; l < lengths.size(); ++l)
      if (op.dims[l].name == DimName::batch && test::may_cut(op, l, lengths[l]))
        return StepRatio::Share{std::int8_t(l), std::max<std::int64_t>(1, lengths[l] / 3)};
    return StepRatio::Share{};
  });
  for (std::size_t c = 0; c < updates.size(); ++c) {
    if (updates[c] == 0) continue;
    ratio.cuts[c].updates.assign(model->operators.size(), 0);
    for (std::size_t o = 0; o < model->operators.size(); ++o)
      for (const Access& access : model->operators[OperatorId(o)].inputs)
        if (model->tensors[access.tensor].role == TensorRole::parameter) ratio.cuts[c].updates[o] = updates[c];
  }
  return test::ratio_job(model, std::move(ratio));
}

/// x [12, 10] -> 8 -> 6, no biases.
ModelPtr two_products() {
  ModelBuilder b("products", "test", 12, 0);
  TensorId x = b.input("x", {12, 10}, {DimName::batch, DimName::channel}, ElementType::f32);
  x = b.linear("fc1", x, b.parameter("w1", {10, 8}));
  return test::finished(b, b.linear("fc2", x, b.parameter("w2", {8, 6})));
}

std::string fault_of(const StepJob& job) {
  const auto back = parse_step_job(write_step_job(job), "job");
  if (!back) return back.error().message();
  if (write_step_job(*back) != write_step_job(job)) return "another job comes back";
  const auto proof = step::prove_ratio(*back);
  if (!proof) return proof.error().message();
  const double error =
      std::max({proof->loss_error, proof->activation_error, proof->gradient_error, proof->update_error});
  return error < test::kRounding ? std::string() : "differs by " + std::to_string(error) + " at " + proof->where;
}

step::RatioRun run_of(const StepJob& job, int steps = 1, bool record = false) {
  step::StepOptions options = step::options_of(job);
  options.record = record;
  auto run = step::run_ratio(step::in_double(), job, options, steps);
  if (!run) qFatal("%s", run.error().message().c_str());
  return std::move(*run);
}

/// Elements that halves receive, where several ranks get the same once.
std::map<std::pair<MoveKind, std::string>, std::int64_t> arrived(const StepJob& job) {
  const step::RatioRun run = run_of(job);
  std::map<std::pair<MoveKind, std::string>, std::int64_t> sums;
  for (std::size_t l = 0; l < run.lines.size(); ++l)
    for (const auto& rank : run.came)
      sums[{run.lines[l].kind, job.model->tensors[run.lines[l].tensor].name}] += rank[l].fresh;
  return sums;
}

/// Weights after a step, by rank, operator and input.
std::map<std::array<std::size_t, 3>, std::vector<double>> weights_after(const StepJob& job) {
  const step::RatioRun run = run_of(job, 1, true);
  std::map<std::array<std::size_t, 3>, std::vector<double>> weights;
  for (std::size_t r = 0; r < run.step.ranks.size(); ++r)
    for (const step::Recorded& one : run.step.ranks[r].recorded)
      if (one.kind == step::Compared::new_parameter) weights[{r, one.op.index, one.slot}] = one.data;
  return weights;
}

}  // namespace

class StepRatioUpdatesTest : public QObject {
  Q_OBJECT
  const step::ComputeIn here_{step::in_double()};

 private slots:
  void by_chance_data() {
    QTest::addColumn<int>("model");
    for (int i = 0; i < int(test::step_models().size()); ++i)
      QTest::newRow(test::step_models()[std::size_t(i)].name) << i;
  }
  // Any plan with any updates shared out that can be: against the whole model on one rank.
  void by_chance() {
    QFETCH(int, model);
    const ModelPtr made = test::step_models()[std::size_t(model)].make();
    std::mt19937_64 random(unsigned(model) + 3);
    int proven = 0, shared = 0;
    for (const char* hardware : {"v100-16gb-1x1+a100-40gb-1x1", "v100-16gb-1x3", "v100-16gb-1x4"}) {
      const auto scenario = test::scenario_on(made, hardware);
      for (int i = 0; i < 8; ++i) {
        const auto plan = evaluate_ratio_plan(
            *scenario, test::with_random_updates(random, *scenario, test::RandomRatioPlan(random, *scenario).plan()));
        QVERIFY2(plan, plan ? "" : plan.error().message().c_str());
        const auto job = step_job_of(*scenario, *plan, {});
        QVERIFY2(job, job ? "" : job.error().message().c_str());
        const std::string wrong = fault_of(*job);
        if (wrong.find("cannot be executed as this ratio plan cuts it") != std::string::npos) continue;
        QVERIFY2(wrong.empty(), wrong.c_str());
        ++proven;
        shared += plan->shards_updates();
      }
    }
    QVERIFY2(proven >= 4 && shared >= 3, qPrintable(QString("%1 %2").arg(proven).arg(shared)));
  }

  void in_any_shares_data() { by_chance_data(); }
  // By batch all ranks hold the same: shares of both cuts of three and four ranks, alone and together, some of them
  // less than an element of a short bias.
  void in_any_shares() {
    QFETCH(int, model);
    const ModelPtr made = test::step_models()[std::size_t(model)].make();
    for (const auto& [ranks, updates] :
         std::vector<std::pair<std::uint32_t, std::vector<double>>>{{2, {0.5}},
                                                                    {2, {0.01}},
                                                                    {3, {0.3, 0}},
                                                                    {3, {0, 0.7}},
                                                                    {3, {1.0 / 3, 0.5}},
                                                                    {4, {0.5, 0.25, 0.9}},
                                                                    {4, {0.6, 0, 0.5}}}) {
      const std::string wrong = fault_of(by_batch(made, ranks, updates));
      QVERIFY2(wrong.empty() || wrong.find("copies of its batch are cut unlike") != std::string::npos, wrong.c_str());
    }
  }

  // Of two ranks' summands the sum is the same whoever adds them: bit for bit the same weights on both.
  void new_weights_are_those_of_whole_updates() {
    for (const auto& one : test::step_models()) {
      const ModelPtr model = one.make();
      const auto whole = weights_after(by_batch(model, 2, {0}));
      for (const double first : {0.5, 0.2}) {
        const auto shared = weights_after(by_batch(model, 2, {first}));
        QCOMPARE(shared.size(), whole.size());
        for (const auto& [key, weights] : whole) QVERIFY2(shared.at(key) == weights, one.name);
      }
    }
  }

  // A quarter of 80 and of 48 weights to rank 0: 20 summands come to it and 60 to the other, then 60 and 20 new ones.
  void hand_figures() {
    const StepJob job = by_batch(two_products(), 2, {0.25});
    QCOMPARE(QString::fromStdString(fault_of(job)), QString());
    auto came = arrived(job);
    QCOMPARE((came[{MoveKind::weight_sum, "w1"}]), 80);
    QCOMPARE((came[{MoveKind::new_weight, "w1"}]), 80);
    QCOMPARE((came[{MoveKind::weight_sum, "w2"}]), 48);
    QCOMPARE((came[{MoveKind::new_weight, "w2"}]), 48);
    const step::RatioRun shared = run_of(job), whole = run_of(by_batch(two_products(), 2, {0}));
    const auto of_optimizer = [](const step::RatioRun& run, std::size_t rank) {
      return run.step.ranks[rank].ledger[step::Held::optimizer];
    };
    QCOMPARE(of_optimizer(whole, 0), (80 + 48) * job.optimizer_bytes);
    QCOMPARE(of_optimizer(shared, 0), (20 + 12) * job.optimizer_bytes);
    QCOMPARE(of_optimizer(shared, 1), (60 + 36) * job.optimizer_bytes);
    for (const std::size_t rank : {0u, 1u}) {
      const auto received = [&](const step::RatioRun& run) {
        std::int64_t all = 0;
        for (std::size_t l = 0; l < run.lines.size(); ++l)
          if (run.lines[l].kind == MoveKind::weight_sum || run.lines[l].kind == MoveKind::new_weight)
            all += run.came[rank][l].all;
        return all;
      };
      // A ring has no other way either: all that a rank does not make itself comes to it once.
      QCOMPARE(received(shared), 128);
      QCOMPARE(received(whole), 128);
    }
  }

  void by_norms_data() {
    QTest::addColumn<int>("optimizer");
    for (const Optimizer o : {Optimizer::lars, Optimizer::lamb, Optimizer::adafactor})
      QTest::newRow(to_string(o)) << static_cast<int>(o);
  }
  // Updates by norms of whole parameters, whatever part of them a rank has and updates: against the whole model on one
  // rank, which has all of each.
  void by_norms() {
    QFETCH(int, optimizer);
    const auto chosen = static_cast<Optimizer>(optimizer);
    int proven = 0, shared = 0;
    std::mt19937_64 random(11);
    for (const auto& one : test::step_models()) {
      const ModelPtr model = one.make();
      for (const char* hardware : {"v100-16gb-1x1+a100-40gb-1x1", "v100-16gb-1x3", "v100-16gb-1x4"}) {
        const auto scenario = test::scenario_on(model, hardware, [&](Settings& s) { s.optimizer = chosen; });
        for (int i = 0; i < 2; ++i) {
          const auto plan = evaluate_ratio_plan(
              *scenario, test::with_random_updates(random, *scenario, test::RandomRatioPlan(random, *scenario).plan()));
          QVERIFY(plan.has_value());
          const auto job = step_job_of(*scenario, *plan, {});
          QVERIFY2(job, job ? "" : job.error().message().c_str());
          QCOMPARE(job->optimizer, std::string(to_string(chosen)));
          const std::string wrong = fault_of(*job);
          if (wrong.find("cannot be executed as this ratio plan cuts it") != std::string::npos) continue;
          QVERIFY2(wrong.empty(), (std::string(one.name) + ": " + wrong).c_str());
          ++proven;
          shared += plan->shards_updates();
        }
      }
      for (const std::vector<double>& updates : {std::vector<double>{0, 0, 0}, {0.5, 0.25, 0.9}, {0, 0.3, 0.6}}) {
        StepJob job = by_batch(model, 4, updates);
        job.optimizer = to_string(chosen);
        const std::string wrong = fault_of(job);
        QVERIFY2(wrong.empty() || wrong.find("copies of its batch are cut unlike") != std::string::npos,
                 (std::string(one.name) + ": " + wrong).c_str());
      }
    }
    QVERIFY2(proven >= 20 && shared >= 8, qPrintable(QString("%1 %2").arg(proven).arg(shared)));
  }

  // Two products without biases. Two sums each in one message; with Adafactor one for each of 10 and 8 rows and of 8
  // and 6 columns, and in a second message one a product. A ring hands on 2 (n - 1) of n parts of what is summed.
  void norms_are_counted() {
    for (const auto& [optimizer, numbers] : {std::pair{"lars", 4}, {"lamb", 4}, {"adafactor", 10 + 8 + 8 + 6 + 2}})
      for (const std::uint32_t ranks : {2u, 4u}) {
        StepJob job =
            by_batch(two_products(), ranks, ranks == 2 ? std::vector<double>{0} : std::vector<double>{0.5, 0, 0.25});
        job.optimizer = optimizer;
        double bytes = 0;
        for (const auto& rank : run_of(job).step.ranks) bytes += rank.norm_bytes;
        QCOMPARE(bytes, 2.0 * (ranks - 1) * numbers * job.gradient_bytes);
      }
    StepJob other = by_batch(two_products(), 2, {0.5});
    for (const auto& rank : run_of(other).step.ranks) QCOMPARE(rank.norm_bytes, 0.0);
  }

  void norms_of_several_steps() {
    for (const char* optimizer : {"lars", "lamb", "adafactor"}) {
      StepJob shared = by_batch(two_products(), 4, {0.5, 0.25, 0.9}), whole = by_batch(two_products(), 4, {});
      shared.optimizer = whole.optimizer = optimizer;
      for (const int steps : {2, 3}) {
        const double one = run_of(shared, steps).step.loss, other = run_of(whole, steps).step.loss;
        QVERIFY2(std::abs(one - other) < 1e-12 * std::abs(other), optimizer);
      }
      QVERIFY(run_of(shared, 1).step.loss != run_of(shared, 3).step.loss);
    }
  }

  // Two ranks have all of w1 and share out its update, a quarter to rank 0; of the two others each has 4 of its 8
  // columns. So it is updated as two blocks of 40: of either rank 0 updates 10 elements and rank 1 30. Gradients: each
  // half gets the 80 summands of the other, then rank 0 its 20 from rank 1, and that 60. New weights: 60 and 20. A
  // single rank that shares with one of a divided pair works likewise.
  void what_others_divide_is_shared_out() {
    const ModelPtr model = two_products();
    const auto divided = [&](std::uint32_t ranks, std::size_t cut, const std::vector<double>& updates) {
      StepJob job = by_batch(model, ranks, updates);
      const Operator& op = model->operators[OperatorId(1)];
      for (std::size_t l = 0; l < op.dims.size(); ++l)
        if (op.dims[l].name == DimName::out_channel) job.ratio->cuts[cut].share[1] = {std::int8_t(l), 4};
      return job;
    };
    const StepJob job = divided(4, 2, {0, 0.25, 0});
    QCOMPARE(QString::fromStdString(fault_of(job)), QString());
    auto came = arrived(job);
    QCOMPARE((came[{MoveKind::weight_sum, "w1"}]), 80 + 80 + 20 + 60);
    QCOMPARE((came[{MoveKind::new_weight, "w1"}]), 60 + 20);
    const step::RatioRun run = run_of(job);
    const auto states = [&](std::size_t rank) {
      return run.step.ranks[rank].ledger[step::Held::optimizer] / job.optimizer_bytes;
    };
    QCOMPARE(states(0), 2 * 10 + 12);
    QCOMPARE(states(1), 2 * 30 + 36);
    QCOMPARE(states(2), 40 + 48);
    const auto whole = weights_after(divided(4, 2, {0, 0, 0})), shared = weights_after(job);
    QCOMPARE(shared.size(), whole.size());
    for (const auto& [key, weights] : whole)
      for (std::size_t i = 0; i < weights.size(); ++i)
        QVERIFY(std::abs(shared.at(key)[i] - weights[i]) <= 1e-12 * std::abs(weights[i]));
    for (const double first : {0.01, 0.3, 0.5})
      QCOMPARE(QString::fromStdString(fault_of(divided(3, 1, {first, 0}))), QString());
    const double one = run_of(job, 3).step.loss, other = run_of(divided(4, 2, {0, 0, 0}), 3).step.loss;
    QVERIFY(std::abs(one - other) < 1e-12 * std::abs(other));
  }

  void as_the_evaluator_counts_data() { by_chance_data(); }
  // Two devices: what the halves of the one cut receive of weights is what the plan is priced for, up to the elements
  // to which shares are rounded.
  void as_the_evaluator_counts() {
    QFETCH(int, model);
    const ModelPtr made = test::step_models()[std::size_t(model)].make();
    const auto scenario = test::scenario_on(made, "v100-16gb-1x1+a100-40gb-1x1");
    std::mt19937_64 random(unsigned(model) + 19);
    int compared = 0;
    for (int i = 0; i < 12; ++i) {
      const auto plan = evaluate_ratio_plan(
          *scenario, test::with_random_updates(random, *scenario, test::RandomRatioPlan(random, *scenario).plan()));
      QVERIFY(plan.has_value());
      const auto job = step_job_of(*scenario, *plan, {});
      QVERIFY(job.has_value());
      const auto run = step::run_ratio(step::in_double(), *job, step::options_of(*job));
      if (!run) continue;
      std::map<std::uint32_t, double> planned, came;
      for (const auto& exchange : plan->weights) planned[exchange.producer.index] += exchange.all_bytes;
      for (std::size_t l = 0; l < run->lines.size(); ++l) {
        const auto& line = run->lines[l];
        if (line.kind == MoveKind::activation || line.kind == MoveKind::gradient) continue;
        for (const auto& rank : run->came) came[line.op.index] += double(rank[l].fresh * line.element_bytes);
      }
      for (const auto& [op, bytes] : planned) QCOMPARE(came[op], bytes);
      compared += !planned.empty();
    }
    QVERIFY(compared >= 3);
  }

  // A second step goes on with the shards' states and the gathered weights.
  void several_steps() {
    const StepJob shared = by_batch(two_products(), 4, {0.5, 0.25, 0.9}), whole = by_batch(two_products(), 4, {});
    for (const int steps : {1, 2, 3}) {
      const double one = run_of(shared, steps).step.loss, other = run_of(whole, steps).step.loss;
      QVERIFY2(std::abs(one - other) < 1e-12 * std::abs(other), qPrintable(QString::number(steps)));
    }
    QVERIFY(run_of(shared, 1).step.loss != run_of(shared, 3).step.loss);
  }

  void refused() {
    const ModelPtr model = two_products();
    const auto said = [&](const std::function<void(StepRatio&)>& change) {
      StepJob job = by_batch(model, 3, {0.5, 0.5});
      change(*job.ratio);
      return fault_of(job);
    };
    QCOMPARE(QString::fromStdString(said([](StepRatio&) {})), QString());
    for (const double wrong : {1.0, 1.5}) {
      const std::string share = said([&](StepRatio& ratio) { ratio.cuts[0].updates[1] = wrong; });
      QVERIFY2(share.find("a share in (0, 1)") != std::string::npos, share.c_str());
    }
    nlohmann::json twice = nlohmann::json::parse(write_step_job(by_batch(model, 3, {0.5, 0.5})));
    nlohmann::json& updates = twice["ratio"]["cuts"][0]["updates"];
    updates.push_back(updates[0]);
    const auto read = parse_step_job(twice.dump(), "job");
    QVERIFY(!read);
    QVERIFY2(read.error().message().find("list operator 1 twice") != std::string::npos, read.error().message().c_str());
  }
};

QTEST_APPLESS_MAIN(StepRatioUpdatesTest)
#include "step_ratio_updates_test.moc"
