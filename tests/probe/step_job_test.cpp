// SPDX-License-Identifier: Apache-2.0
// A step job written and read again is the same job: every built-in model, and plans whose cost the independent
// evaluator finds the same to the last bit. Broken jobs are refused with one sentence.
#include <QtTest>
#include <nlohmann/json.hpp>
#include <random>

#include "core/model/model_json.h"
#include "core/plan/evaluator.h"
#include "core/probe/plan_record.h"
#include "core/probe/step_client.h"
#include "core/search/frontier_tracking/plans.h"
#include "gpu_probe/step_models.h"
#include "plan_io/schema_check.h"
#include "search/scenarios.h"

using namespace turnpoint;
using nlohmann::json;

namespace {

// Field by field, without the code under test.
std::string differs(const Access& a, const Access& b) {
  return a.tensor != b.tensor || a.walks != b.walks || a.saved != b.saved ? "access" : "";
}
std::string differs(const Operator& a, const Operator& b) {
  if (a.name != b.name || a.kind != b.kind || a.detail != b.detail || a.scope != b.scope) return "operator's names";
  if (a.forward_flop != b.forward_flop || a.backward_flop != b.backward_flop || a.forward_macs != b.forward_macs ||
      a.backward_macs != b.backward_macs || a.forward_passes != b.forward_passes ||
      a.backward_passes != b.backward_passes)
    return "operator's figures";
  if (a.dims.size() != b.dims.size() || a.inputs.size() != b.inputs.size() || a.outputs.size() != b.outputs.size())
    return "operator's counts";
  for (std::size_t i = 0; i < a.dims.size(); ++i)
    if (a.dims[i].name != b.dims[i].name || a.dims[i].role != b.dims[i].role || a.dims[i].size != b.dims[i].size ||
        a.dims[i].splittable != b.dims[i].splittable)
      return "loop";
  for (std::size_t i = 0; i < a.inputs.size(); ++i)
    if (auto what = differs(a.inputs[i], b.inputs[i]); !what.empty()) return what;
  for (std::size_t i = 0; i < a.outputs.size(); ++i)
    if (auto what = differs(a.outputs[i], b.outputs[i]); !what.empty()) return what;
  return {};
}
std::string differs(const Model& a, const Model& b) {
  if (a.name != b.name || a.source != b.source || a.batch != b.batch || a.sequence != b.sequence ||
      a.results != b.results || a.symbolic_dimensions != b.symbolic_dimensions || a.warnings != b.warnings ||
      a.parameters != b.parameters || a.buffers != b.buffers || a.active_parameters != b.active_parameters)
    return "model";
  if (a.operators.size() != b.operators.size() || a.tensors.size() != b.tensors.size()) return "counts";
  for (std::size_t i = 0; i < a.operators.size(); ++i)
    if (auto what = differs(a.operators[OperatorId(i)], b.operators[OperatorId(i)]); !what.empty()) return what;
  for (std::size_t i = 0; i < a.tensors.size(); ++i) {
    const Tensor &x = a.tensors[TensorId(i)], &y = b.tensors[TensorId(i)];
    if (x.name != y.name || x.shape != y.shape || x.dims != y.dims || x.type != y.type || x.role != y.role ||
        x.producer != y.producer || x.tied_to != y.tied_to || x.requires_gradient != y.requires_gradient)
      return "tensor " + x.name;
    if (a.uses[TensorId(i)].size() != b.uses[TensorId(i)].size()) return "uses of " + x.name;
    for (std::size_t u = 0; u < a.uses[TensorId(i)].size(); ++u)
      if (a.uses[TensorId(i)][u].op != b.uses[TensorId(i)][u].op ||
          a.uses[TensorId(i)][u].input != b.uses[TensorId(i)][u].input)
        return "uses of " + x.name;
  }
  return {};
}

ModelPtr again(const Model& model) {
  const json document = json::parse(write_model(model).dump());
  JsonFields fields(document, "test");
  auto read = read_model(fields);
  if (fields.error()) qWarning("%s", fields.error()->message().c_str());
  return read;
}

StepJob small_job() {
  StepJob job;
  const auto scenario = test::scenario_on(test::mlp(8), "v100-16gb-1x2");
  const auto result = test::run("data-parallel", scenario);
  if (!result) qFatal("%s", result.error().message().c_str());
  job.model = scenario->model;
  job.plan = (*result)->plans->sharding(0);
  return job;
}

}  // namespace

class StepJobTest : public QObject {
  Q_OBJECT
  test::SchemaCheck schemas_{TURNPOINT_SOURCE_DIR "/resources/schemas"};

 private slots:
  void every_builtin_model() {
    int read = 0;
    for (const auto& known : builtin_models()) {
      const auto source = open_model("builtin:" + known.name);
      QVERIFY(source.has_value());
      const auto model = (*source)->bind({8, 0});
      QVERIFY2(model.has_value(), model ? "" : model.error().message().c_str());
      const auto copy = again(**model);
      QVERIFY2(copy, known.name.c_str());
      const std::string what = differs(**model, *copy);
      QVERIFY2(what.empty(), (known.name + ": " + what).c_str());
      ++read;
    }
    QVERIFY(read > 10);
    for (const auto& small : test::step_models()) {
      const auto model = small.make();
      const auto copy = again(*model);
      QVERIFY2(copy && differs(*model, *copy).empty(), small.name);
    }
  }

  void plans_cost_the_same_data() {
    QTest::addColumn<int>("model");
    for (int i = 0; i < int(test::step_models().size()); ++i)
      QTest::newRow(test::step_models()[std::size_t(i)].name) << i;
  }
  void plans_cost_the_same() {
    QFETCH(int, model);
    for (const char* hardware : {"v100-16gb-1x2", "v100-16gb-1x3", "v100-16gb-2x4"}) {
      const auto scenario = test::scenario_on(test::step_models()[std::size_t(model)].make(), hardware);
      for (const char* method : {"ft:micro-batches=1", "fsdp"}) {
        const auto result = test::run(method, scenario);
        if (!result || (*result)->points.empty()) continue;
        const std::size_t count = (*result)->points.size();
        for (std::size_t p = 0; p < count; p += std::max<std::size_t>(1, count / 4)) {
          StepJob job;
          job.model = scenario->model;
          job.plan = (*result)->plans->sharding(p);
          job.mode = StepMode::slice;
          job.slice_device = job.plan.mesh.devices() - 1;
          job.optimizer = "momentum";
          job.precision = ProbePrecision::tf32;
          job.backend = ProbeBackend::cpu;
          job.floating_bytes = 2, job.weight_bytes = 3, job.gradient_bytes = 5, job.optimizer_bytes = 6;
          job.prove = false;
          job.warm_up = 7, job.steps = 11, job.budget_s = 12.5, job.seed = 13, job.device = 1;
          const std::string text = write_step_job(job);
          QCOMPARE(schemas_.check("step-job@1", json::parse(text)), std::string());
          const auto read = parse_step_job(text, "test");
          QVERIFY2(read.has_value(), read ? "" : read.error().message().c_str());
          QCOMPARE(write_step_job(*read), text);
          const auto before = evaluate_plan(*scenario, job.plan), after = evaluate_plan(*scenario, read->plan);
          QVERIFY(before.has_value() && after.has_value());
          QVERIFY(before->memory == after->memory && before->compute == after->compute &&
                  before->network == after->network);
          QVERIFY(read->plan.cost.memory == job.plan.cost.memory && read->plan.cost.network == job.plan.cost.network);
          QCOMPARE(read->slice_device, job.slice_device);
          QVERIFY(read->mode == job.mode && read->precision == job.precision && read->backend == job.backend);
          QVERIFY(read->warm_up == 7 && read->steps == 11 && read->budget_s == 12.5 && read->seed == 13 &&
                  !read->prove);
          QVERIFY(read->floating_bytes == 2 && read->weight_bytes == 3 && read->gradient_bytes == 5 &&
                  read->optimizer_bytes == 6 && read->optimizer == "momentum" && read->device == 1);
        }
      }
    }
  }

  void broken_jobs_are_refused_data() {
    QTest::addColumn<QString>("pointer");
    QTest::addColumn<QString>("value");
    QTest::addColumn<QString>("said");
    const auto row = [](const char* pointer, const char* value, const char* said) {
      QTest::newRow(pointer) << pointer << value << said;
    };
    row("/format", "\"turnpoint/probe-job@1\"", "expected 'turnpoint/step-job@1'");
    row("/model/tensors/0/shape", "[1099511627776, 1099511627776]", "2^60");
    row("/model/tensors/1/shape", "[-1]", "outside");
    row("/model/tensors/0/dims", "[]", "name every dimension");
    row("/model/tensors/0/producer", "4000", "not there");
    row("/model/operators/1/inputs/0/tensor", "99999", "between");
    row("/model/operators/1/inputs/0/walks", "[[77],[77]]", "loop");
    row("/model/operators/1/kind", "\"quantum\"", "'quantum' is not known");
    row("/model/operators/1/dims/0/size", "0", "between");
    row("/model/results", "[12345]", "outside");
    row("/plan/mesh/0/size", "0", "between");
    row("/plan/operators/0", "null", "object");
    row("/plan/operators/1/split", "[55]", "outside");
    row("/plan/operators/1/update", "\"never\"", "not known");
    row("/plan/operators/1/update_axes", "512", "between");
    row("/plan/cost/memory", "[1]", "6 numbers");
    row("/steps", "0", "between");
    row("/budget_s", "1e9", "between");
    row("/slice_device", "2", "between");
    row("/weight_bytes", "0.5", "whole");
    row("/optimizer", "\"rmsprop\"",
        "the probe updates by sgd, momentum, adam, lars, lamb or adafactor, not by rmsprop");
  }
  void broken_jobs_are_refused() {
    QFETCH(QString, pointer);
    QFETCH(QString, value);
    QFETCH(QString, said);
    static const json good = json::parse(write_step_job(small_job()));
    QVERIFY(parse_step_job(good.dump(), "test").has_value());
    json broken = good;
    const json::json_pointer place(pointer.toStdString());
    QVERIFY(broken.contains(place));
    broken[place] = "MARK";
    std::string text = broken.dump();
    text.replace(text.find("\"MARK\""), 6, value.toStdString());
    const auto read = parse_step_job(text, "test");
    QVERIFY(!read.has_value());
    QVERIFY2(read.error().message().find(said.toStdString()) != std::string::npos, read.error().message().c_str());
  }

  // What a probe may say of a step, and what is no answer to it.
  void messages_data() {
    QTest::addColumn<QString>("line");
    QTest::addColumn<QString>("said");
    const char* times = R"("min_s":1,"q1_s":2,"median_s":3,"q3_s":4,"samples":5)";
    const auto row = [](const QString& line, const char* said) { QTest::newRow(said) << line << QString(said); };
    const auto with = [&](const char* head) { return QString("{%1,%2}").arg(head, times); };
    row("garbage", "no message");
    row("[1]", "is no message");
    row(with(R"("type":"operator","op":4000,"phase":"forward")"), "op");
    row(with(R"("type":"operator","op":1,"phase":"sideways")"), "no phase of a step");
    row(R"({"type":"operator","op":1,"phase":"forward","min_s":3,"q1_s":2,"median_s":3,"q3_s":4,"samples":5})",
        "between its neighbours");
    row(with(R"("type":"exchange","reshard":99,"op":1,"step":0,"planned_bytes":1,"received_bytes":1)"), "reshard");
    row(with(R"("type":"exchange","reshard":-1,"op":0,"step":7,"planned_bytes":1,"received_bytes":1)"),
        "none of the plan's");
    row(R"({"type":"result","ranks":2,"memory":{},"planned_bytes":0,"received_bytes":0})", "step_time");
    row(R"({"type":"error","code":"device","what":"rank 1 died","hint":"start it again"})",
        "rank 1 died (start it again)");
  }
  void messages() {
    QFETCH(QString, line);
    QFETCH(QString, said);
    const StepJob job = small_job();
    StepMessages messages(job);
    const auto take = [&](const QString& text) { return messages.take(text.toStdString()); };
    const QString time = R"("min_s":1,"q1_s":2,"median_s":3,"q3_s":4,"samples":5)";
    QVERIFY(!take(QString(R"({"type":"operator","op":1,"phase":"forward",%1})").arg(time)).has_value());
    QVERIFY(take(R"({"type":"hello","program":"turnpoint-probe","protocol":1,"backend":"cpu","ranks":2,)"
                 R"("devices":[{"name":"core","memory_bytes":1000}]})")
                .has_value());
    QVERIFY(take(QString(R"({"type":"operator","op":1,"phase":"update",%1})").arg(time)).has_value());
    QVERIFY(take(R"({"type":"heartbeat"})").has_value() && take(R"({"type":"something new"})").has_value());
    const auto bad = take(line);
    QVERIFY(!bad.has_value());
    QVERIFY2(bad.error().message().find(said.toStdString()) != std::string::npos, bad.error().message().c_str());
    QCOMPARE(bad.error().code, ErrorCode::device);
    QVERIFY(!messages.finished());
    const QString memory = R"({"parameters":1,"gradients":2,"optimizer":3,"kept":4,"peak":11,"counted_peak":10})";
    QVERIFY(take(QString(R"({"type":"result","ranks":2,"cores":2,"step_time":{%1},"memory":%2,"planned_bytes":8,)"
                         R"("received_bytes":8,"notes":["one"]})")
                     .arg(time, memory))
                .has_value());
    QVERIFY(messages.finished() && !take(R"({"type":"heartbeat"})").has_value());
    const StepMeasurement& m = messages.measurement();
    QVERIFY(m.step.q1_s == 2 && m.memory.kept == 4 && m.memory.peak == 11 && m.notes.size() == 1 && !m.numerics);
    QVERIFY(m.phases.size() == 1 && m.phases[0].phase == StepPhase::update && m.phases[0].time.q3_s == 4);
  }

  // Any one value replaced or left out: an error or a job, never a crash.
  void any_damage() {
    const json good = json::parse(write_step_job(small_job()));
    const json flat = good.flatten();
    std::mt19937_64 random(5);
    const std::vector<json> values{nullptr, -1, 0, 1e18, "x", json::array(), json::object(), true, 0.5};
    int refused = 0;
    for (const auto& [path, old] : flat.items()) {
      json other = good;
      other[json::json_pointer(path)] = values[random() % values.size()];
      refused += !parse_step_job(other.dump(), "test").has_value();
    }
    QVERIFY(refused > int(flat.size()) / 3);
    const std::string text = good.dump();
    for (std::size_t cut = 0; cut < text.size(); cut += 1 + text.size() / 50)
      QVERIFY(!parse_step_job(text.substr(0, cut), "test").has_value());
  }
};

QTEST_APPLESS_MAIN(StepJobTest)
#include "step_job_test.moc"
