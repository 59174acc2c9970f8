// SPDX-License-Identifier: Apache-2.0
// What the notes of the sample session "Batch sizes of the ParDNN study" quote, on two models: largest batches,
// speed-ups and what data parallelism needs; and how near the study's node counts the graphs come. No clock is read.
#include "search/placement_study.h"

#include <QtTest>

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

const StudyModel& model_of(const std::string& name) {
  const auto& models = study_models();
  const auto at = std::find_if(models.begin(), models.end(), [&](const auto& m) { return m.name == name; });
  if (at == models.end()) qFatal("no model %s", name.c_str());
  return *at;
}

struct Row {
  std::int64_t batch;
  double speed_up;
};

}  // namespace

class PlacementStudyTest : public QObject {
  Q_OBJECT

  static void check(const StudyModel& model, bool whole_layers, const std::vector<Row>& rows) {
    double base = 0;
    std::int64_t before = 1;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto largest = largest_batch(model, kStudyDevices[i], before, whole_layers);
      QVERIFY2(largest.has_value(), largest ? "" : largest.error().message().c_str());
      QCOMPARE(largest->batch, rows[i].batch);
      const double rate = double(largest->batch) / largest->placement.makespan_s;
      if (i == 0) base = rate;
      QVERIFY2(std::abs(rate / base - rows[i].speed_up) < 0.01 * rows[i].speed_up,
               qPrintable(QString("%1 on %2").arg(rate / base).arg(kStudyDevices[i])));
      before = largest->batch;
    }
  }

 private slots:
  /// What ties of weights to their updates alone are for: on a grid of LSTM cells the printed algorithm beats layers by
  /// hand everywhere and HEFT on 8 and 16 devices; with whole layers it leaves all but one device idle.
  void the_printed_algorithm_on_a_grid_of_cells() {
    for (const int devices : {2, 4, 8, 16}) {
      const auto time = [&](const char* method, bool whole_layers) {
        const auto grid = lstm_grid(256, devices, whole_layers);
        if (!grid) qFatal("%s", grid.error().message().c_str());
        const auto placed = place(**grid, devices, method);
        if (!placed) qFatal("%s", placed.error().message().c_str());
        return *placed;
      };
      const auto printed = time("pardnn-published", false);
      QVERIFY(printed.makespan_s < time("layered-expert", false).makespan_s);
      if (devices >= 8) QVERIFY(printed.makespan_s < time("heft", false).makespan_s);
      QVERIFY(printed.one_device_s / printed.makespan_s > (devices == 16 ? 6.58 : devices == 8 ? 4.53 : 1.9));
      QVERIFY(time("pardnn", false).makespan_s <= printed.makespan_s);
      const auto whole = time("pardnn-published", true);
      QVERIFY(std::abs(whole.one_device_s / whole.makespan_s - 1) < 0.01);
    }
  }

  void e3d() { check(model_of("e3d"), true, {{4, 1}, {16, 1.89}, {32, 3.49}, {32, 5.20}, {64, 8.02}}); }

  void word_rnn() {
    check(model_of("word-rnn"), true, {{1024, 1}, {2048, 1.76}, {4096, 2.82}, {4096, 3.75}, {4096, 5.07}});
    check(model_of("word-rnn"), false, {{1024, 1}, {2048, 1.90}, {4096, 3.02}});
  }

  void data_parallel_does_not_fit_trn() {
    const auto two = data_parallel_with_checkpointing(model_of("trn"), 64, 2);
    QVERIFY(two && !two->fits);
    QVERIFY(std::abs(double(two->memory_bytes) / double(1 << 30) - 32.4) < 0.1);
    const auto fits = data_parallel_with_checkpointing(model_of("word-rnn"), 2048, 2);
    QVERIFY(fits && fits->fits);
  }

  /// The tasks that each model comes to, and how: the table of core/schedule/unrolling.h.
  void node_counts() {
    struct Expected {
      const char* model;
      bool in_parts;
      int micro_batches;
      std::int64_t tasks;
    };
    const Expected expected[] = {
        {"word-rnn", false, 14, 12054}, {"word-rnn-2", true, 2, 10838}, {"char-crn", true, 3, 22971},
        {"char-crn-2", true, 3, 91083}, {"wrn", true, 31, 188790},      {"wrn-2", true, 26, 78780},
        {"trn", true, 34, 81292},       {"trn-2", true, 34, 162076},    {"e3d", true, 4, 58604},
        {"e3d-2", true, 4, 58604},
    };
    for (const auto& row : expected) {
      const StudyModel& model = model_of(row.model);
      const auto how = counted(model);
      QVERIFY2(how.has_value(), how ? "" : how.error().message().c_str());
      QCOMPARE(how->options.cells_in_parts, row.in_parts);
      QCOMPARE(how->options.micro_batches, row.micro_batches);
      QCOMPARE(how->tasks, row.tasks);
      QVERIFY2(std::abs(double(row.tasks) / double(model.tasks) - 1) < 0.055, row.model);
    }
    // What is expected of sizes is what comes out.
    for (const char* name : {"word-rnn", "word-rnn-2", "char-crn"}) {
      const auto how = counted(model_of(name));
      const auto scenario = study_scenario(model_of(name), 1, 16);
      QVERIFY(how && scenario);
      const auto graph = training_graph(**scenario, how->options);
      QVERIFY(graph.has_value());
      QCOMPARE(std::int64_t((*graph)->task_count()), how->tasks);
    }
  }
};

QTEST_APPLESS_MAIN(PlacementStudyTest)
#include "placement_study_test.moc"
