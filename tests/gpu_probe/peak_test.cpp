// SPDX-License-Identifier: Apache-2.0
// The peak that reports predict (items in the order of their issue, one after the other) against what the allocator of
// a CPU rank counts while turnpoint-probe carries out the plan.
#include <QtTest>

#include "core/import/source/model_source.h"
#include "core/probe/step_client.h"
#include "core/search/registry.h"
#include "core/validation/compare.h"
#include "core/validation/step_of.h"
#include "gpu_probe/step_models.h"

using namespace turnpoint;

class PeakTest : public QObject {
  Q_OBJECT

 private slots:
  void small_models_data() {
    QTest::addColumn<int>("model");
    for (int i = 0; i < int(test::step_models().size()); ++i)
      QTest::newRow(test::step_models()[std::size_t(i)].name) << i;
  }
  /// Every kind of operator. Tensors of these are a few hundred bytes, and the allocator rounds each up to 64.
  void small_models() {
    QFETCH(int, model);
    const ModelPtr made = test::step_models()[std::size_t(model)].make();
    for (const char* hardware : {"v100-16gb-1x1", "v100-16gb-1x2"})
      compare(made, hardware, 2, 0.05, 64.0 * 4 * double(made->operators.size()));
  }
  void a_real_one() {
    const auto source = open_model("builtin:lenet");
    QVERIFY(source.has_value());
    compare(*(*source)->bind({64, 0}), "v100-16gb-1x2", 6, 0.01, 0);
  }
  /// The first step holds more, since it has yet to find out when memory can be freed; no measurement is of that one.
  void a_single_step() {
    const auto source = open_model("builtin:lenet");
    QVERIFY(source.has_value());
    compare(*(*source)->bind({64, 0}), "v100-16gb-1x2", 3, 0.01, 0, 0, 1);
  }
  /// Uses of one weight give their gradients to one sum; each for itself they would be as many times as large.
  void shared_weights() {
    const ModelPtr model = test::unrolled_rnn(6, 8, 96);
    for (const char* method : {"data-parallel", "fsdp", "ft:micro-batches=1"})
      for (const char* hardware : {"v100-16gb-1x2", "v100-16gb-1x4"})
        compare(model, hardware, 2, 0.02, 0, 1, 3, method);
  }
  /// Sums made in several steps let go of what they were made from after the first.
  void long_reshardings() {
    for (const char* method : {"ft:micro-batches=1", "tofu", "megatron"})
      for (const int narrow : {0, 32}) compare(transformer(narrow), "v100-16gb-1x4", 3, 0.02, 0, 1, 3, method);
  }
  /// Logits that run again read the table that embedding shares with them: a gathered one stays until their backward,
  /// beside the gradient that comes first.
  void shared_tables_run_again() { compare(transformer(0, 32, 64, true), "v100-16gb-1x4", 12, 0.02, 0); }
  /// Stages 1 to 3 of ZeRO; the first keeps whole gradients and makes no shards beside them.
  void sharded_updates() {
    for (const char* method : {"fsdp:zero=1", "fsdp:zero=2", "fsdp"})
      compare(transformer(0), "v100-16gb-1x4", 1, 0.02, 0, 1, 3, method);
  }
  /// A network without a loss hands out its result and takes in the gradient of it.
  void large_results() {
    ModelBuilder b("large result", "test", 64, 0);
    const TensorId x = b.input("x", {64, 16}, {DimName::batch, DimName::channel}, ElementType::f32);
    const TensorId y =
        b.linear("wide", b.linear("first", x, b.parameter("w0", {16, 16})), b.parameter("w1", {16, 512}));
    const ModelPtr plain = test::finished(b, y);
    for (const char* method : {"data-parallel", "ft:micro-batches=1"})
      compare(plain, "v100-16gb-1x2", 2, 0.02, 0, 1, 3, method);
    ModelBuilder v("its view", "test", 64, 0);
    const TensorId data = v.input("x", {64, 16}, {DimName::batch, DimName::channel}, ElementType::f32);
    const TensorId made = v.linear("wide", data, v.parameter("w1", {16, 512}));
    compare(test::finished(v, v.reshape("turned", made, {64, 16, 32})), "v100-16gb-1x2", 2, 0.02, 0, 1, 3,
            "data-parallel");
  }

 private:
  /// `narrow`: channels of the token table, 0: as many as those of the layers.
  static ModelPtr transformer(int narrow, int batch = 8, int sequence = 16, bool tied = false) {
    TransformerShape shape;
    shape.tied_head = tied;
    shape.layers = 1, shape.hidden = 64, shape.heads = shape.kv_heads = 4, shape.head_channels = 16;
    shape.intermediate = 128, shape.vocabulary = 512, shape.positions = sequence;
    shape.embedding_channels = narrow, shape.own_output_projection = narrow > 0;
    const auto model = build_transformer(shape, "transformer", "test", batch, sequence);
    return model ? *model : nullptr;
  }

  void compare(const ModelPtr& model, const char* hardware, std::size_t plans, double share, double bytes,
               int warm_up = 1, int steps = 3, const char* method = "ft:micro-batches=1") {
    const auto cluster = cluster_preset(hardware);
    Settings settings;
    settings.batch = model->batch;
    const auto scenario = make_scenario(model, *cluster, hardware, settings);
    QVERIFY(scenario.has_value());
    const auto chosen = choose_method(method);
    QVERIFY(chosen.has_value());
    const auto result = (*make_searcher(*chosen->method, chosen->parameters))->run(*scenario, SearchPass::exact, {});
    QVERIFY(result.has_value());
    const std::size_t count = (*result)->points.size();
    for (std::size_t p = 0; p < count; p += std::max<std::size_t>(1, count / plans)) {
      const Plan plan = (*result)->plans->sharding(p);
      StepChoice choice;
      choice.prove = false;
      choice.warm_up = warm_up;
      choice.steps = steps;
      const auto job = step_job_of(**scenario, plan, choice);
      QVERIFY2(job.has_value(), job ? "" : job.error().message().c_str());
      ProbeLaunch launch;
      launch.program = TURNPOINT_BINARY_DIR "/turnpoint-probe";
      const auto measured = measure_step(launch, *job, {});
      QVERIFY2(measured.has_value(), measured ? "" : measured.error().message().c_str());
      const auto predicted = serial_peak(**scenario, plan);
      QVERIFY(predicted.has_value());
      const double held = double(measured->memory.peak), off = held - double(*predicted);
      QVERIFY2(
          off >= -share * held && off <= share * held + bytes,
          qPrintable(
              QString("%1 %2 point %3: predicted %4, held %5").arg(method, hardware).arg(p).arg(*predicted).arg(held)));
    }
  }
};

QTEST_APPLESS_MAIN(PeakTest)
#include "peak_test.moc"
