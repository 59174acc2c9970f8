// SPDX-License-Identifier: Apache-2.0
// The real turnpoint-probe carries out ratio plans on 2, 3 and 4 processes with unequal parts: what they compute, send
// and say is what the plan says, and what cannot be executed is refused by the probe, too.
#include <QTest>
#include <nlohmann/json.hpp>
#include <random>

#include "core/probe/step_client.h"
#include "gpu_probe/step/ratio_run.h"
#include "gpu_probe/step_models.h"
#include "gpu_probe/step_ratios.h"
#include "plan_io/schema_check.h"

using namespace turnpoint;

class RunRatioTest : public QObject {
  Q_OBJECT
  test::SchemaCheck schemas_{TURNPOINT_SOURCE_DIR "/resources/schemas"};

  static ProbeLaunch launch(std::vector<std::string>* lines = nullptr) {
    ProbeLaunch made{TURNPOINT_BINARY_DIR "/turnpoint-probe", 30, 0.4, {}};
    if (lines) made.on_line = [lines](const std::string& line) { lines->push_back(line); };
    return made;
  }

  static StepJob job_by_chance(const ModelPtr& model, std::uint32_t ranks, std::mt19937& random) {
    StepJob job = test::ratio_job(model, test::random_ratio(*model, ranks, random));
    job.warm_up = 1, job.steps = 3, job.budget_s = 20;
    return job;
  }

 private slots:
  void ratio_plans_are_carried_out_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<int>("ranks");
    for (const char* name : {"mlp", "residual", "block", "vision", "lstm", "turned table"})
      for (const int ranks : {2, 3, 4}) QTest::addRow("%s on %d", name, ranks) << QString(name) << ranks;
  }
  void ratio_plans_are_carried_out() {
    QFETCH(QString, name);
    QFETCH(int, ranks);
    const auto& models = test::step_models();
    const auto found = std::find_if(models.begin(), models.end(), [&](const auto& one) { return name == one.name; });
    QVERIFY(found != models.end());
    std::mt19937 random(unsigned(ranks) * 31);
    StepJob job = job_by_chance(found->make(), std::uint32_t(ranks), random);
    job.slow = {1, 2};
    QCOMPARE(schemas_.check("step-job@1", nlohmann::json::parse(write_step_job(job))), std::string());
    std::vector<std::string> lines;
    const auto m = measure_step(launch(&lines), job, {});
    QVERIFY2(m.has_value(), m ? "" : m.error().message().c_str());
    for (const auto& line : lines)
      QCOMPARE(schemas_.check("probe-message@1", nlohmann::json::parse(line)), std::string());
    QVERIFY(m->backend == "cpu" && m->ranks == ranks && m->step.samples == 3 && m->step.min_s > 0);
    QVERIFY(m->numerics && m->numerics->loss_error <= m->numerics->tolerance &&
            m->numerics->activation_error <= m->numerics->tolerance &&
            m->numerics->gradient_error <= m->numerics->tolerance &&
            m->numerics->update_error <= m->numerics->tolerance);
    // What ranks that are processes received is what ranks that are threads do.
    const step::ComputeIn here(step::in_double());
    const auto run = step::run_ratio(step::in_double(), job, step::options_of(job));
    QVERIFY(run.has_value());
    QCOMPARE(m->moves.size(), run->lines.size());
    double once = 0, all = 0, of_devices = 0;
    for (std::size_t l = 0; l < run->lines.size(); ++l) {
      QVERIFY(m->moves[l].kind == run->lines[l].kind && m->moves[l].tensor == run->lines[l].tensor);
      QCOMPARE(m->moves[l].once_bytes, double(run->lines[l].fresh * run->lines[l].element_bytes));
      QCOMPARE(m->moves[l].received_bytes, double(run->lines[l].all * run->lines[l].element_bytes));
      once += m->moves[l].once_bytes;
      all += m->moves[l].received_bytes;
    }
    QVERIFY(once > 0);
    QCOMPARE(m->received_bytes, once);
    QCOMPARE(m->planned_bytes, once);
    QCOMPARE(int(m->devices.size()), ranks);
    for (const auto& device : m->devices) {
      of_devices += device.received_bytes;
      QVERIFY(device.peak >= device.persistent && device.busy.samples == 3);
    }
    QCOMPARE(of_devices, all);
  }

  // Three processes have rows of the batch each and share out every update, a third, a sixth and a half.
  void processes_share_out_updates() {
    const ModelPtr model = test::mlp(12);
    StepRatio ratio = test::uncut_ratio(*model, 3, false);
    test::set_shares(*model, ratio, [&](std::uint32_t, OperatorId id, const std::vector<std::int64_t>& lengths) {
      const Operator& op = model->operators[id];
      for (std::size_t l = 0; l < lengths.size(); ++l)
        if (op.dims[l].name == DimName::batch) return StepRatio::Share{std::int8_t(l), lengths[l] / 3};
      return StepRatio::Share{};
    });
    for (const auto& [cut, first] : {std::pair(0u, 1.0 / 3), std::pair(1u, 0.25)}) {
      ratio.cuts[cut].updates.assign(model->operators.size(), 0);
      for (std::size_t o = 0; o < model->operators.size(); ++o)
        for (const Access& access : model->operators[OperatorId(o)].inputs)
          if (model->tensors[access.tensor].role == TensorRole::parameter) ratio.cuts[cut].updates[o] = first;
    }
    StepJob job = test::ratio_job(model, ratio);
    job.warm_up = 1, job.steps = 3, job.budget_s = 20;
    QCOMPARE(schemas_.check("step-job@1", nlohmann::json::parse(write_step_job(job))), std::string());
    std::vector<std::string> lines;
    const auto m = measure_step(launch(&lines), job, {});
    QVERIFY2(m.has_value(), m ? "" : m.error().message().c_str());
    for (const auto& line : lines)
      QCOMPARE(schemas_.check("probe-message@1", nlohmann::json::parse(line)), std::string());
    QVERIFY(m->numerics && m->numerics->gradient_error <= m->numerics->tolerance &&
            m->numerics->update_error <= m->numerics->tolerance);
    double scattered = 0, gathered = 0;
    for (const MeasuredMove& move : m->moves) {
      if (move.kind == MeasuredMove::Kind::weight_sum) scattered += move.once_bytes;
      if (move.kind == MeasuredMove::Kind::new_weight) gathered += move.once_bytes;
    }
    QVERIFY(scattered > 0 && gathered > 0);
    QCOMPARE(m->received_bytes, m->planned_bytes);
  }

  void what_cannot_be_executed_is_refused_by_the_probe() {
    const ModelPtr model = test::lstm(4, true, true);
    StepJob job = test::ratio_job(model, test::uncut_ratio(*model, 2, true));
    for (std::size_t o = 0; o < model->operators.size(); ++o) {
      const Operator& op = model->operators[OperatorId(o)];
      for (std::size_t l = 0; l < op.dims.size(); ++l)
        if (op.kind == OperatorKind::recurrent && op.dims[l].name == DimName::out_channel)
          job.ratio->cuts[0].share[o] = {std::int8_t(l), 3};
    }
    const auto refused = measure_step(launch(), job, {});
    QVERIFY(!refused);
    QVERIFY2(refused.error().what.find("'cell' cannot be executed as this ratio plan cuts it") != std::string::npos,
             refused.error().what.c_str());
    job = test::ratio_job(model, test::uncut_ratio(*model, 2, true));
    job.ratio->cuts[0].next[0] = 0;
    const auto broken = measure_step(launch(), job, {});
    QVERIFY2(!broken && broken.error().what.find("ratio plan:") != std::string::npos,
             broken ? "carried out" : broken.error().what.c_str());
  }
};

QTEST_APPLESS_MAIN(RunRatioTest)
#include "run_ratio_test.moc"
