// SPDX-License-Identifier: Apache-2.0
// What a real search writes: the file follows its schema, and every plan in it adds up to the point it belongs to.
#include <QtTest>
#include <nlohmann/json.hpp>

#include "core/plan/result.h"
#include "core/plan_io/result_json.h"
#include "core/search/registry.h"
#include "plan/hand_plan.h"
#include "plan_io/schema_check.h"
#include "search/scenarios.h"

using namespace turnpoint;
using namespace turnpoint::test;

class WrittenSearchTest : public QObject {
  Q_OBJECT

 private slots:
  void plans_add_up_to_their_points_data() {
    QTest::addColumn<int>("model");
    QTest::addColumn<QString>("method");
    for (const auto& method : QStringList{"ft:micro-batches=1", "data-parallel", "optcnn"})
      for (int model = 0; model < 3; ++model)
        QTest::newRow(qPrintable(QString("%1 %2").arg(method).arg(model))) << model << method;
  }
  void plans_add_up_to_their_points() {
    QFETCH(int, model);
    QFETCH(QString, method);
    const auto scenario = scenario_on(model == 0   ? residual()
                                      : model == 1 ? attention()
                                                   : convolution(),
                                      "v100-16gb-2x4");
    QVERIFY(scenario);
    const auto result = run(method.toStdString(), scenario);
    QVERIFY2(result.has_value(), result ? "" : result.error().message().c_str());
    const auto document = nlohmann::json::parse(write_result(**result, true).dump());
    QCOMPARE(SchemaCheck(TURNPOINT_SOURCE_DIR "/resources/schemas").check("result@1", document), std::string());
    QCOMPARE(document["plans"].size(), document["points"].size());
    for (std::size_t k = 0; k < document["points"].size(); ++k) {
      const auto &point = document["points"][k], &plan = document["plans"][k];
      std::int64_t memory = 0;
      double time = 0;
      for (const auto& op : plan["operators"]) {
        memory += op["memory_bytes"].get<std::int64_t>();
        time += op["compute_s"].get<double>() + op["network_s"].get<double>();
      }
      for (const auto& reshard : plan["reshards"]) {
        memory += reshard["memory_bytes"].get<std::int64_t>();
        for (const char* key : {"steps", "backward_steps"})
          for (const auto& step : reshard[key]) time += step["time_s"].get<double>();
      }
      QCOMPARE(memory, point["memory_bytes"].get<std::int64_t>());
      QVERIFY(std::abs(time - point["time_s"].get<double>()) <= 1e-9 * time);
      QCOMPARE(plan["operators"].size(), scenario->model->operators.size());
      if (k > 0) {
        QVERIFY(point["memory_bytes"] > document["points"][k - 1]["memory_bytes"]);
        QVERIFY(point["time_s"] < document["points"][k - 1]["time_s"]);
      }
    }
  }
};

QTEST_APPLESS_MAIN(WrittenSearchTest)
#include "written_search_test.moc"
