// SPDX-License-Identifier: Apache-2.0
// Ratio plans by hand and by chance on 2, 3 and 4 ranks with uneven shares: what ranks with unequal parts compute is
// what the whole model on one rank computes, what they receive is what hand and evaluator count, and a plan that cannot
// be executed is refused by name.
#include <QtTest>
#include <array>
#include <numeric>
#include <set>
#include <thread>

#include "core/plan/ratio_evaluator.h"
#include "core/validation/ratio_step.h"
#include "gpu_probe/step/ratio_run.h"
#include "gpu_probe/step/slowed.h"
#include "gpu_probe/step_checks.h"
#include "gpu_probe/step_models.h"
#include "gpu_probe/step_ratios.h"
#include "plan/ratio_plans.h"
#include "search/scenario_on.h"

using namespace turnpoint;
using test::ratio_job;

namespace {

std::int8_t loop_named(const Operator& op, DimName name) {
  for (std::size_t l = 0; l < op.dims.size(); ++l)
    if (op.dims[l].name == name) return static_cast<std::int8_t>(l);
  return -1;
}

/// x [12, 10] -> 8 -> 6 -> 4, no biases.
ModelPtr three_products() {
  ModelBuilder b("products", "test", 12, 0);
  TensorId x = b.input("x", {12, 10}, {DimName::batch, DimName::channel}, ElementType::f32);
  x = b.linear("fc1", x, b.parameter("w1", {10, 8}));
  x = b.linear("fc2", x, b.parameter("w2", {8, 6}));
  return test::finished(b, b.linear("fc3", x, b.parameter("w3", {6, 4})));
}

/// A padded convolution, a pooling, a second convolution around which the first one's output goes, a product.
ModelPtr small_convolutions() {
  ModelBuilder b("convolutions", "test", 7, 0);
  TensorId x =
      b.input("x", {7, 5, 6, 6}, {DimName::batch, DimName::channel, DimName::height, DimName::width}, ElementType::f32);
  const ConvolutionShape padded{{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1, false};
  x = b.convolution("first", x, b.parameter("w1", {9, 5, 3, 3}), b.parameter("b1", {9}), padded);
  x = b.elementwise("relu", "Relu", std::array{x}, {1, true, {}});
  x = b.pooling("pool", "MaxPool", x, {7, 9, 3, 3}, {2, 2}, true);
  const TensorId around = x;
  x = b.convolution("second", x, b.parameter("w2", {9, 9, 3, 3}), b.parameter("b2", {9}), padded);
  const std::array two{x, around};
  x = b.elementwise("add", "Add", two);
  x = b.reshape("flat", x, {7, 81});
  return test::finished(b, b.linear("head", x, b.parameter("w3", {81, 5}), b.parameter("b3", {5})));
}

/// Cuts every operator by its loop of this meaning, if it may be; other loops and those too short stay whole. A half
/// has `share` of it, one unit at least.
StepRatio::Share cut_by_name(const Operator& op, DimName name, double share, const std::vector<std::int64_t>& lengths) {
  const std::int8_t loop = loop_named(op, name);
  if (loop < 0 || !test::may_cut(op, std::size_t(loop), lengths[std::size_t(loop)])) return {};
  const std::int64_t length = lengths[std::size_t(loop)];
  return {loop, std::clamp<std::int64_t>(std::llround(share * double(length)), 1, length - 1)};
}

double ratio_error(const StepNumerics& proof) {
  return std::max({proof.loss_error, proof.activation_error, proof.gradient_error, proof.update_error});
}

/// What is wrong with a job's step; empty: nothing.
std::string ratio_fault(const StepJob& job) {
  const auto back = parse_step_job(write_step_job(job), "job");
  if (!back) return back.error().message();
  if (write_step_job(*back) != write_step_job(job)) return "another job comes back";
  const auto proof = step::prove_ratio(*back);
  if (!proof) return proof.error().message();
  if (!(ratio_error(*proof) < test::kRounding))
    return "differs by " + std::to_string(ratio_error(*proof)) + " at " + proof->where;
  return {};
}

/// What came over all ranks, in elements, by what it was.
std::map<std::pair<MeasuredMove::Kind, std::string>, std::int64_t> arrivals(const StepJob& job, bool once) {
  const auto run = step::run_ratio(step::in_double(), job, step::options_of(job));
  if (!run) qFatal("%s", run.error().message().c_str());
  std::map<std::pair<MeasuredMove::Kind, std::string>, std::int64_t> sums;
  for (std::size_t l = 0; l < run->lines.size(); ++l) {
    const auto& line = run->lines[l];
    std::int64_t came = 0;
    for (const auto& rank : run->came) came += once ? rank[l].fresh : rank[l].all;
    if (came != (once ? line.fresh : line.all)) qFatal("messages came that were not planned, or the other way round");
    sums[{line.kind, job.model->tensors[line.tensor].name}] += came;
  }
  return sums;
}

}  // namespace

class StepRatioTest : public QObject {
  Q_OBJECT
  const step::ComputeIn here_{step::in_double()};
  using Kind = MeasuredMove::Kind;

 private slots:
  void by_chance_data() {
    QTest::addColumn<int>("model");
    for (int i = 0; i < int(test::step_models().size()); ++i)
      QTest::newRow(test::step_models()[std::size_t(i)].name) << i;
  }
  // Shares of every loop that may be cut, whatever the neighbours have.
  void by_chance() {
    QFETCH(int, model);
    const ModelPtr made = test::step_models()[std::size_t(model)].make();
    std::mt19937 random(unsigned(model) + 1);
    int proven = 0, refused = 0;
    for (const std::uint32_t ranks : {2u, 3u, 4u})
      for (int i = 0; i < 6; ++i) {
        StepRatio ratio = test::random_ratio(*made, ranks, random);
        test::any_run_again(*made, ratio, random);
        const std::string wrong = ratio_fault(ratio_job(made, ratio));
        if (wrong.find("copies of its batch are cut unlike") != std::string::npos) {
          ++refused;
          continue;
        }
        QVERIFY2(wrong.empty(), wrong.c_str());
        ++proven;
      }
    QVERIFY2(proven >= 12, std::to_string(refused).c_str());
  }

  void by_types_data() {
    QTest::addColumn<int>("ranks");
    for (const int ranks : {2, 3, 4}) QTest::newRow(std::to_string(ranks).c_str()) << ranks;
  }
  // The three types at once: the first convolution by its batch, the second by what it sums over, the head by its
  // output, each cut in other shares; the sum around the second one whole.
  void by_types() {
    QFETCH(int, ranks);
    const ModelPtr model = small_convolutions();
    for (const bool balanced : {false, true}) {
      StepRatio ratio = test::uncut_ratio(*model, std::uint32_t(ranks), balanced);
      std::map<std::string, int> cut;
      test::set_shares(*model, ratio, [&](std::uint32_t c, OperatorId id, const std::vector<std::int64_t>& lengths) {
        const Operator& op = model->operators[id];
        StepRatio::Share share;
        if (op.name == "first" || op.kind == OperatorKind::input) share = cut_by_name(op, DimName::batch, 0.7, lengths);
        if (op.name == "relu" || op.name == "pool") share = cut_by_name(op, DimName::channel, 0.3 + 0.1 * c, lengths);
        if (op.name == "second") share = cut_by_name(op, DimName::in_channel, 0.35, lengths);
        if (op.name == "head") share = cut_by_name(op, DimName::out_channel, 0.6, lengths);
        cut[op.name] += share.loop >= 0;
        return share;
      });
      for (const char* name : {"first", "relu", "pool", "second", "head"}) QVERIFY2(cut[name] > 0, name);
      const std::string wrong = ratio_fault(ratio_job(model, ratio));
      QVERIFY2(wrong.empty(), wrong.c_str());
    }
  }

  // 9 of 12 samples, 5 of 8 summed channels, 3 of 4 outputs to rank 0.
  void hand_figures() {
    const ModelPtr model = three_products();
    StepRatio ratio = test::uncut_ratio(*model, 2, true);
    test::set_shares(*model, ratio, [&](std::uint32_t, OperatorId id, const std::vector<std::int64_t>&) {
      const Operator& op = model->operators[id];
      if (op.kind == OperatorKind::input || op.name == "fc1")
        return StepRatio::Share{loop_named(op, DimName::batch), 9};
      if (op.name == "fc2") return StepRatio::Share{loop_named(op, DimName::in_channel), 5};
      return StepRatio::Share{loop_named(op, DimName::out_channel), 3};
    });
    const StepJob job = ratio_job(model, ratio);
    QCOMPARE(QString::fromStdString(ratio_fault(job)), QString());
    auto came = arrivals(job, true);
    // 9 samples of 8 channels lie by samples: one rank lacks 3 of the 5 channels' samples, the other 9 of 3 channels.
    const std::string first = model->tensors[model->operators[OperatorId(1)].outputs[0].tensor].name,
                      second = model->tensors[model->operators[OperatorId(2)].outputs[0].tensor].name;
    QCOMPARE((came[{Kind::activation, first}]), 3 * 5 + 9 * 3);
    QCOMPARE((came[{Kind::gradient, first}]), 9 * 3 + 3 * 5);
    // Both want the other's summands of all 12 x 6, and of the gradient that the two halves of outputs leave.
    QCOMPARE((came[{Kind::activation, second}]), 2 * 12 * 6);
    QCOMPARE((came[{Kind::gradient, second}]), 2 * 12 * 6);
    // Only the first product's weights have summands: 10 x 8 on either rank.
    QCOMPARE((came[{Kind::weight_sum, "w1"}]), 2 * 10 * 8);
    QCOMPARE(came.size(), std::size_t(5));
  }

  // Two of three ranks want what the third has: half for half it crosses once, over all ranks twice.
  void copies_count_once() {
    const ModelPtr model = three_products();
    StepRatio ratio = test::uncut_ratio(*model, 3, false);
    test::set_shares(*model, ratio, [&](std::uint32_t cut, OperatorId id, const std::vector<std::int64_t>&) {
      const Operator& op = model->operators[id];
      const bool split = cut == 0 && (op.kind == OperatorKind::input || op.name == "fc1");
      return split ? StepRatio::Share{loop_named(op, DimName::batch), 2} : StepRatio::Share{};
    });
    const StepJob job = ratio_job(model, ratio);
    QCOMPARE(QString::fromStdString(ratio_fault(job)), QString());
    const std::string first = model->tensors[model->operators[OperatorId(1)].outputs[0].tensor].name;
    auto once = arrivals(job, true), all = arrivals(job, false);
    QCOMPARE((once[{Kind::activation, first}]), 10 * 8 + 2 * 8);
    QCOMPARE((all[{Kind::activation, first}]), 10 * 8 + 2 * 2 * 8);
  }

  // A matrix that is used as its transpose by the same words: of both uses one gradient is left, which is summed once.
  void transposed_weights_are_summed_once() {
    ModelBuilder b("tied", "test", 6, 0);
    const TensorId table = b.parameter("table", {8, 10});
    TensorId x = b.input("x", {6, 8}, {DimName::batch, DimName::channel}, ElementType::f32);
    x = b.linear("in", x, table);
    const ModelPtr model = test::finished(b, b.linear("out", x, b.tied_parameter("table_again", table, {10, 8})));
    StepRatio ratio = test::uncut_ratio(*model, 4, true);
    test::set_shares(*model, ratio, [&](std::uint32_t cut, OperatorId id, const std::vector<std::int64_t>&) {
      const Operator& op = model->operators[id];
      if (cut == 0) return StepRatio::Share{loop_named(op, DimName::batch), 2};
      if (op.name == "in") return StepRatio::Share{loop_named(op, DimName::out_channel), 4};
      return op.name == "out" ? StepRatio::Share{loop_named(op, DimName::in_channel), 4} : StepRatio::Share{};
    });
    const StepJob job = ratio_job(model, ratio);
    QCOMPARE(QString::fromStdString(ratio_fault(job)), QString());
    auto came = arrivals(job, true);
    QCOMPARE((came[{Kind::weight_sum, "table"}]), 2 * 80);
    QVERIFY(!came.contains({Kind::tied_weight, "table"}) && !came.contains({Kind::tied_sum, "table"}));
  }

  void as_the_evaluator_counts_data() { by_chance_data(); }
  // Two devices, any shares: what each half of the one cut receives is what the plan is priced for, tensor by tensor.
  void as_the_evaluator_counts() {
    QFETCH(int, model);
    const ModelPtr made = test::step_models()[std::size_t(model)].make();
    const auto scenario = test::scenario_on(made, "v100-16gb-1x1+a100-40gb-1x1");
    std::mt19937_64 random(unsigned(model) + 7);
    int compared = 0;
    for (int i = 0; i < 12; ++i) {
      const auto plan = evaluate_ratio_plan(*scenario, test::RandomRatioPlan(random, *scenario).plan());
      QVERIFY2(plan, plan ? "" : plan.error().message().c_str());
      const auto job = step_job_of(*scenario, *plan, {});
      QVERIFY2(job, job ? "" : job.error().message().c_str());
      const auto run = step::run_ratio(step::in_double(), *job, step::options_of(*job));
      if (!run) {
        QVERIFY2(run.error().message().find("as this ratio plan cuts it") != std::string::npos,
                 run.error().message().c_str());
        continue;
      }
      std::map<std::pair<bool, std::uint32_t>, double> planned, came;
      for (const auto& exchange : plan->exchanges) planned[{false, exchange.tensor.index}] += exchange.all_bytes;
      for (const auto& exchange : plan->weights) planned[{true, exchange.producer.index}] += exchange.all_bytes;
      for (std::size_t l = 0; l < run->lines.size(); ++l) {
        const auto& line = run->lines[l];
        const bool weight = line.kind != Kind::activation && line.kind != Kind::gradient;
        for (const auto& rank : run->came)
          came[{weight, weight ? line.op.index : line.tensor.index}] += double(rank[l].fresh * line.element_bytes);
      }
      QCOMPARE(came.size(), planned.size());
      for (const auto& [key, bytes] : planned)
        QVERIFY2(
            std::abs(came[key] - bytes) < 1e-6 * std::max(1.0, bytes),
            (std::to_string(key.second) + ": " + std::to_string(came[key]) + " and " + std::to_string(bytes)).c_str());
      ++compared;
    }
    QVERIFY(compared >= 3);
  }

  // A second step goes on with the weights of the first on both sides.
  void several_steps() {
    const ModelPtr model = test::residual(9);
    std::mt19937 random(5);
    StepJob job = ratio_job(model, test::random_ratio(*model, 3, random));
    step::StepOptions options = step::options_of(job);
    const auto once = step::run_ratio(step::in_double(), job, options, 1),
               twice = step::run_ratio(step::in_double(), job, options, 2);
    QVERIFY(once && twice);
    QVERIFY(std::abs(once->step.loss - twice->step.loss) > 1e-6);
    for (std::size_t r = 0; r < 3; ++r)
      for (std::size_t l = 0; l < once->lines.size(); ++l) QCOMPARE(once->came[r][l].all, twice->came[r][l].all);
  }

  void refused_data() {
    QTest::addColumn<QString>("what");
    QTest::addColumn<QString>("why");
    QTest::newRow("nothing left") << "nothing"
                                  << "'fc1' gives a half 12 of 12 batch, which leaves one of two nothing";
    QTest::newRow("less than nothing") << "negative"
                                       << "'fc1' gives a half -1 of 12 batch";
    QTest::newRow("no loop") << "loop"
                             << "cut a loop that 'fc1' does not have";
    QTest::newRow("other part") << "part"
                                << "part 2 has no cut of its own";
    QTest::newRow("cut of a rank") << "deeper"
                                   << "it cuts a single rank";
    QTest::newRow("no cut") << "none"
                            << "part 2 has no cut of its own";
    QTest::newRow("rank twice") << "twice"
                                << "does not name each of 2 ranks once";
    QTest::newRow("halves") << "halves"
                            << "halves";
    QTest::newRow("data again") << "data"
                                << "names 'x', which computes nothing";
    QTest::newRow("again in disorder") << "disorder"
                                       << "operators of the model in rising order";
    QTest::newRow("more ranks") << "more"
                                << "must be a list for each rank";
    QTest::newRow("later part") << "later"
                                << "halves";
  }
  void refused() {
    QFETCH(QString, what);
    QFETCH(QString, why);
    const ModelPtr model = three_products();
    StepRatio ratio = test::uncut_ratio(*model, 2, true);
    test::set_shares(*model, ratio, [&](std::uint32_t, OperatorId id, const std::vector<std::int64_t>& lengths) {
      return cut_by_name(model->operators[id], DimName::batch, 0.4, lengths);
    });
    QCOMPARE(QString::fromStdString(ratio_fault(ratio_job(model, ratio))), QString());
    StepRatio::Share& share = ratio.cuts[0].share[1];
    if (what == "nothing") share.first = 12;
    if (what == "negative") share.first = -1;
    if (what == "loop") share.loop = 77;
    if (what == "part") ratio.cuts[0].part = 1;
    if (what == "deeper") ratio.cuts[0].next[1] = 0;
    if (what == "none") ratio.cuts.clear();
    if (what == "twice") ratio.order = {1, 1};
    if (what == "data") ratio.again = {{OperatorId(0)}};
    if (what == "disorder") ratio.again = {{OperatorId(2), OperatorId(1)}};
    if (what == "more") ratio.again.resize(3);
    if (what == "halves") ratio.parts[2].halves = {0, 2};
    if (what == "later") std::rotate(ratio.parts.begin(), ratio.parts.begin() + 2, ratio.parts.end());
    const std::string said = ratio_fault(ratio_job(model, ratio));
    QVERIFY2(said.find(why.toStdString()) != std::string::npos, said.c_str());
  }

  // What is no fault of the plan but cannot be executed yet.
  void cannot_be_executed() {
    const auto said = [](const ModelPtr& model, DimName name, const char* op) {
      StepRatio ratio = test::uncut_ratio(*model, 2, true);
      for (std::size_t o = 0; o < model->operators.size(); ++o)
        if (const Operator& here = model->operators[OperatorId(o)]; here.name == op)
          ratio.cuts[0].share[o] = {loop_named(here, name), 1};
      return ratio_fault(ratio_job(model, ratio));
    };
    // A window that overlaps its neighbours is never split; one that does not is rows like any others.
    const std::string window = said(small_convolutions(), DimName::height, "first");
    QVERIFY2(window.find("it cuts 'first' by height, which is never split") != std::string::npos, window.c_str());
    QCOMPARE(QString::fromStdString(said(small_convolutions(), DimName::height, "pool")), QString());
    const std::string units = said(test::lstm(4, true, true), DimName::out_channel, "cell");
    QVERIFY2(units.find("'cell' cannot be executed as this ratio plan cuts it: its ranks exchange the state") !=
                 std::string::npos,
             units.c_str());
    // Statistics of a batch that two copies cut unlike would be of other samples.
    const ModelPtr model = test::convolution(6);
    StepRatio ratio = test::uncut_ratio(*model, 4, true);
    for (std::size_t c = 1; c < 3; ++c)
      for (std::size_t o = 0; o < model->operators.size(); ++o)
        if (model->operators[OperatorId(o)].name == "bn")
          ratio.cuts[c].share[o] = {loop_named(model->operators[OperatorId(o)], DimName::batch), std::int64_t(c)};
    const std::string statistics = ratio_fault(ratio_job(model, ratio));
    QVERIFY2(
        statistics.find("'bn' cannot be executed as this ratio plan cuts it: copies of its batch") != std::string::npos,
        statistics.c_str());
    const auto many = step::check_ratio_job(ratio_job(model, test::uncut_ratio(*model, 9, true)), 9);
    QVERIFY(!many && many.error().message().find("at most 8 ranks") != std::string::npos);
  }

  void jobs() {
    const ModelPtr model = three_products();
    StepRatio ratio = test::uncut_ratio(*model, 3, false);
    test::set_shares(*model, ratio, [&](std::uint32_t, OperatorId id, const std::vector<std::int64_t>& lengths) {
      return cut_by_name(model->operators[id], DimName::batch, 0.4, lengths);
    });
    StepJob job = ratio_job(model, ratio);
    job.slow = {1, 2.5};
    const auto back = parse_step_job(write_step_job(job), "job");
    QVERIFY2(back, back ? "" : back.error().message().c_str());
    QCOMPARE(back->devices(), 3);
    QCOMPARE(back->slow, job.slow);
    QCOMPARE(back->ratio->cuts.size(), std::size_t(2));
    QCOMPARE(fingerprint(*back), fingerprint(job));
    StepJob other = job;
    ++other.ratio->cuts[1].share[1].first;
    QVERIFY(fingerprint(other) != fingerprint(job));
    // A job without the key is a sharding plan's, as ever.
    StepJob plain = job;
    plain.ratio.reset(), plain.slow.clear();
    const auto old = parse_step_job(write_step_job(plain), "job");
    QVERIFY(old && !old->ratio && old->devices() == 1);
    const auto refused = [&](const StepJob& given, const char* why) {
      const auto read = parse_step_job(write_step_job(given), "job");
      QVERIFY2(!read && read.error().message().find(why) != std::string::npos,
               read ? "it was read" : read.error().message().c_str());
    };
    plain.slow = {2};
    refused(plain, "is of the ranks of a ratio plan");
    job.slow = {1, 0.5};
    refused(job, "must be factors from 1 to 1000");
    job.slow = {1, 1, 1, 2};
    refused(job, "no more than there are ranks");
    job.slow.clear(), job.mode = StepMode::slice;
    refused(job, "are not run alone");
    job.mode = StepMode::ranks, job.micro_batches = 2;
    refused(job, "a ratio plan has none");
  }

  // A slow rank really is: its computing takes at least so many times as long.
  void slowed() {
    const step::Moment began = step::moment();
    while (step::moment().seconds < began.seconds + 2e-3) {
    }
    const double before = step::moment().seconds - began.seconds;
    step::slow_down(began, 3);
    QVERIFY(step::moment().seconds - began.seconds >= 3 * before);
    const step::Moment again = step::moment();
    step::slow_down(again, 1);
    QVERIFY(step::moment().seconds - again.seconds < 1);

    const ModelPtr model = test::mlp(64);
    StepRatio ratio = test::uncut_ratio(*model, 2, true);
    test::set_shares(*model, ratio, [&](std::uint32_t, OperatorId id, const std::vector<std::int64_t>& lengths) {
      return cut_by_name(model->operators[id], DimName::batch, 0.5, lengths);
    });
    StepJob job = ratio_job(model, ratio);
    job.slow = {1, 200};
    job.warm_up = 1, job.steps = 5;
    step::ThreadRanks ranks(2);
    std::optional<StepMeasurement> measured;
    {
      std::vector<std::jthread> threads;
      for (int r = 0; r < 2; ++r)
        threads.emplace_back([&, r] {
          const step::ComputeIn in(step::in_float());
          const auto communicator = ranks.communicator(r);
          auto made = step::measure_ratio_steps(job, *communicator, [](const char*, double, double) {});
          if (made && r == 0) measured = *made;
        });
    }
    QVERIFY(measured && measured->devices.size() == 2);
    QVERIFY(measured->devices[1].busy.min_s > 5 * measured->devices[0].busy.min_s);
    QVERIFY(std::any_of(measured->notes.begin(), measured->notes.end(), [](const std::string& note) {
      return note.find("rank 1 was made slower") != std::string::npos && note.find("200 times") != std::string::npos;
    }));
    // Half of the batch each: sums of both layers' weights and biases, each rank the other's.
    QCOMPARE(measured->received_bytes, 2.0 * 4 * (32 * 64 + 64 + 64 * 16 + 16));
    QCOMPARE(measured->planned_bytes, measured->received_bytes);
    QCOMPARE(measured->devices[0].received_bytes, measured->received_bytes / 2);
  }

  // Boxes: what is left of one when others are taken out, piece by piece.
  void boxes() {
    std::mt19937 random(3);
    for (int i = 0; i < 200; ++i) {
      const auto box = [&] {
        step::Region made{{0, 0, 0}, {0, 0, 0}};
        for (std::size_t d = 0; d < 3; ++d) {
          made.offset[d] = std::int64_t(random() % 4);
          made.extent[d] = 1 + std::int64_t(random() % 4);
        }
        return made;
      };
      const step::Boxes all = step::without({box()}, {box()}), taken = {box(), box()};
      std::set<std::array<std::int64_t, 3>> expected;
      const auto each = [](const step::Region& r, const auto& visit) {
        for (std::int64_t a = 0; a < r.extent[0]; ++a)
          for (std::int64_t b = 0; b < r.extent[1]; ++b)
            for (std::int64_t c = 0; c < r.extent[2]; ++c)
              visit(std::array{r.offset[0] + a, r.offset[1] + b, r.offset[2] + c});
      };
      for (const auto& one : all) each(one, [&](const auto& at) { expected.insert(at); });
      QCOMPARE(std::int64_t(expected.size()), step::elements_of(all));
      for (const auto& one : taken) each(one, [&](const auto& at) { expected.erase(at); });
      std::set<std::array<std::int64_t, 3>> found;
      const step::Boxes left = step::without(all, taken);
      for (const auto& one : left) each(one, [&](const auto& at) { found.insert(at); });
      QVERIFY(found == expected);
      QCOMPARE(std::int64_t(found.size()), step::elements_of(left));
      QCOMPARE(step::elements_of(step::common(all, {taken[0]})) + step::elements_of(step::without(all, {taken[0]})),
               step::elements_of(all));
    }
  }
};

QTEST_APPLESS_MAIN(StepRatioTest)
#include "step_ratio_test.moc"
