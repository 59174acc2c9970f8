// SPDX-License-Identifier: Apache-2.0
// Studies of batches: the file, what is asked and in which order, findings against counts by hand, and stops.
#include "core/search/batch_study.h"

#include <QtTest>
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "core/import/source/model_source.h"
#include "core/schedule/training_graph.h"
#include "core/search/objectives.h"
#include "core/search/placement_registry.h"
#include "core/search/scenario_of.h"

using namespace turnpoint;

namespace {

std::string shipped_text() {
  std::ifstream file(TURNPOINT_SOURCE_DIR "/resources/studies/pardnn-batches.json");
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Two small networks on one and two devices, without answers.
BatchStudy small_study() {
  auto study = *read_batch_study(shipped_text(), "test");
  study.cells.clear();
  study.devices = {1, 2};
  study.methods = {"heft", "single-device", "data-parallel:recompute"};
  study.networks = {{"builtin:lenet", "LeNet", {64, 256}},
                    {"builtin:lstm-lm?layers=2&hidden=64&sequence=4", "LSTM", {0, 8}}};
  study.settings.memory_limit = std::int64_t(100) << 20;
  return study;
}

StudyCell cell(const char* model, int devices, const char* method, std::int64_t batch, double time_s,
               bool at_reported = false) {
  StudyCell made;
  made.model = model, made.devices = devices, made.method = method, made.batch = batch;
  made.fits = time_s > 0, made.time_s = time_s, made.at_reported = at_reported;
  return made;
}

}  // namespace

class BatchStudyTest : public QObject {
  Q_OBJECT

 private slots:
  void what_is_written_is_read_back() {
    const auto shipped = read_batch_study(shipped_text(), "test");
    QVERIFY2(shipped.has_value(), shipped ? "" : shipped.error().message().c_str());
    QCOMPARE(shipped->networks.size(), std::size_t(10));
    QCOMPARE(shipped->devices, (std::vector<int>{1, 2, 4, 8, 16}));
    QCOMPARE(shipped->settings.split_loss, false);
    QCOMPARE(shipped->settings.optimizer, Optimizer::adam);
    BatchStudy study = *shipped;
    study.put(cell("builtin:wrn", 4, "heft", 16, 0.25));
    StudyCell odd = cell("builtin:wrn", 8, "heft", 16, 0, true);
    odd.graph = "whole-layers", odd.refusal = "because", odd.memory_bytes = 77, odd.began_as = "layers";
    study.put(odd);
    const auto again = read_batch_study(write_batch_study(study), "again");
    QVERIFY(again.has_value());
    QCOMPARE(write_batch_study(*again), write_batch_study(study));
    const StudyCell* back = again->find(odd);
    QVERIFY(back && !back->fits && back->refusal == "because" && back->memory_bytes == 77 &&
            back->began_as == "layers");
    QCOMPARE(again->find(cell("builtin:wrn", 4, "heft", 0, 0))->time_s, 0.25);
    // The same question is answered once.
    const std::size_t before = study.cells.size();
    study.put(cell("builtin:wrn", 4, "heft", 32, 0.5));
    QCOMPARE(study.cells.size(), before);
    QCOMPARE(study.find(cell("builtin:wrn", 4, "heft", 0, 0))->batch, std::int64_t(32));
  }

  void what_is_broken_is_said() {
    const std::pair<const char*, const char*> broken[] = {
        {"{}", "format"},
        {R"({"format": "turnpoint/batch-study@1"})", "title"},
        {R"({"format": "turnpoint/batch-study@1", "title": "t", "says": [], "methods": [], "devices": [1]})",
         "methods"},
        {R"({"format": "turnpoint/batch-study@1", "title": "t", "says": [], "methods": ["heft"], "devices": [2, 1]})",
         "devices"},
        {R"({"format": "turnpoint/batch-study@1", "title": "t", "says": [], "methods": ["heft"], "devices": [1, 2],
             "networks": [{"model": "builtin:wrn", "title": "W", "reported": [1]}]})",
         "reported"},
        {R"({"format": "turnpoint/batch-study@1", "title": "t", "says": [], "methods": ["heft"], "devices": [1],
             "networks": [{"model": "builtin:wrn", "title": "W", "reported": [1]}]})",
         "scenario"},
    };
    for (const auto& [text, key] : broken) {
      const auto read = read_batch_study(text, "broken.json");
      QVERIFY2(!read, text);
      QCOMPARE(read.error().code, ErrorCode::bad_input);
      QVERIFY2(QString::fromStdString(read.error().message()).contains(key), read.error().message().c_str());
    }
  }

  void cells_that_no_question_asks_are_refused_data() {
    QTest::addColumn<QString>("from");
    QTest::addColumn<QString>("to");
    QTest::addColumn<QString>("where");
    QTest::addColumn<QString>("reason");
    const char* const kFits = R"("fits": true, )";
    QTest::newRow("fits") << kFits << ""
                          << "cells[1].fits"
                          << "is missing";
    QTest::newRow("model") << R"("a", "devices": 2)"
                           << R"("z", "devices": 2)"
                           << "cells[1].model"
                           << "'z'";
    QTest::newRow("devices") << R"("devices": 2)"
                             << R"("devices": 3)"
                             << "cells[1].devices"
                             << "3";
    QTest::newRow("method") << R"("method": "heft", "fits")"
                            << R"("method": "x", "fits")"
                            << "cells[1].method"
                            << "'x'";
    QTest::newRow("cell twice") << R"("devices": 2)"
                                << R"("devices": 1)"
                                << "cells[1].model"
                                << "earlier cell";
    QTest::newRow("network twice") << R"("model": "b")"
                                   << R"("model": "a")"
                                   << "networks[1].model"
                                   << "earlier";
    QTest::newRow("method twice") << R"(["heft"])"
                                  << R"(["heft", "heft"])"
                                  << "methods"
                                  << "'heft' twice";
  }
  void cells_that_no_question_asks_are_refused() {
    QFETCH(QString, from);
    QFETCH(QString, to);
    QFETCH(QString, where);
    QFETCH(QString, reason);
    QString text = R"({"format": "turnpoint/batch-study@1", "title": "t", "says": [], "methods": ["heft"],
      "devices": [1, 2], "networks": [{"model": "a", "title": "A", "reported": [1, 1]},
                                      {"model": "b", "title": "B", "reported": [1, 1]}],
      "scenario": {"model": "builtin:lenet", "hardware": "v100-32gb-1x2"},
      "cells": [{"model": "a", "devices": 1, "method": "heft", "batch": 4, "fits": false},
                {"model": "a", "devices": 2, "method": "heft", "fits": true, "time_s": 1, "batch": 4}]})";
    const auto good = read_batch_study(text.toStdString(), "good.json");
    QVERIFY2(good.has_value(), good ? "" : good.error().message().c_str());
    QCOMPARE(text.count(from), qsizetype(1));
    const auto read = read_batch_study(text.replace(from, to).toStdString(), "broken.json");
    QVERIFY(!read);
    QCOMPARE(read.error().code, ErrorCode::bad_input);
    QCOMPARE(QString::fromStdString(read.error().where), "broken.json: " + where);
    QVERIFY2(QString::fromStdString(read.error().what).contains(reason), read.error().message().c_str());
  }

  /// Against each method asked by itself.
  void answers_are_those_of_the_methods() {
    BatchStudy study = small_study();
    const auto done = run_batch_study(study, {}, {}, [&](const StudyCell& found) { study.put(found); });
    QVERIFY2(done.has_value(), done ? "" : done.error().message().c_str());
    // Per network and count: three methods at the largest batch, and at the paper's where it has one.
    QCOMPARE(study.cells.size(), std::size_t(2 * 2 * 3 + 3 * 3));
    for (const StudyCell& found : study.cells) {
      QVERIFY2(found.refusal.empty(), found.refusal.c_str());
      const auto source = open_model(found.model);
      Settings settings = study.settings;
      settings.batch = found.batch;
      settings.devices = found.devices;
      const auto scenario = scenario_of(**source, "v100-32gb-1x" + std::to_string(found.devices), settings);
      QVERIFY(scenario.has_value());
      if (found.method.starts_with("data-parallel")) continue;
      const auto graph = training_graph(**scenario, {1, true});
      placement::PlacementRequest request;
      request.devices = std::uint32_t(found.devices);
      request.memory_limit = study.settings.memory_limit;
      const auto placed =
          placement::run_placement(**placement::find_placement_method(found.method), **graph, request, {});
      QVERIFY(placed.has_value());
      QCOMPARE(found.fits, placed->fits());
      QCOMPARE(found.memory_bytes, *std::max_element(placed->peak_bytes.begin(), placed->peak_bytes.end()));
      if (found.fits) QCOMPARE(found.time_s, placed->makespan_s);
      if (found.method != study.methods.front() || found.at_reported) continue;
      // The next power of two does not fit.
      QVERIFY(found.fits);
      settings.batch = 2 * found.batch;
      const auto larger =
          training_graph(**scenario_of(**source, "v100-32gb-1x" + std::to_string(found.devices), settings), {1, true});
      const auto more =
          placement::run_placement(**placement::find_placement_method(found.method), **larger, request, {});
      QVERIFY(more.has_value() && !more->fits());
    }
  }

  /// All of a single device's placement is on one device however many there are, but each keeps back more memory the
  /// more there are: the batch that fits one device need not fit beside others.
  void more_devices_may_take_a_smaller_batch() {
    auto study = *read_batch_study(shipped_text(), "test");
    study.cells.clear();
    study.methods = {"single-device"};
    study.networks = {{"builtin:resnet18", "ResNet-18", {1605, 0, 0, 0, 0}}};
    const auto source = open_model("builtin:resnet18");
    const auto on = [&](int devices, std::int64_t batch) {
      Settings settings = study.settings;
      settings.batch = batch;
      settings.devices = devices;
      return *scenario_of(**source, "v100-32gb-1x" + std::to_string(devices), settings);
    };
    std::map<std::int64_t, std::int64_t> peaks;
    for (const std::int64_t batch : {512, 1024, 1605, 2048}) {
      const auto graph = training_graph(*on(1, batch), {1, true});
      const auto placed =
          placement::run_placement(**placement::find_placement_method("single-device"), **graph, {}, {});
      QVERIFY(placed.has_value());
      peaks[batch] = placed->peak_bytes[0];
    }
    const auto done = run_batch_study(study, {}, {}, [&](const StudyCell& found) { study.put(found); });
    QVERIFY2(done.has_value(), done ? "" : done.error().message().c_str());
    std::int64_t before = 0;
    bool smaller = false;
    for (const int devices : study.devices) {
      const auto& device = on(devices, 512)->cluster->device;
      std::int64_t most = 0;
      for (const auto& [batch, peak] : peaks)
        if (peak <= device.memory_bytes - device.reserve_bytes) most = batch;
      QVERIFY(most >= 512 && most < 2048);
      const StudyCell* found = study.find(cell("builtin:resnet18", devices, "single-device", 0, 0));
      QVERIFY(found && found->fits && found->refusal.empty());
      QCOMPARE(found->batch, most);
      QCOMPARE(found->memory_bytes, peaks[most]);
      smaller = smaller || most < before;
      before = most;
    }
    QVERIFY(smaller);
  }

  /// Four micro-batches on each of two devices take no batch of four samples or fewer, and many larger ones: what is refused
  /// is passed over. On one device every batch is refused, which is not to say that none fits.
  void what_is_refused_says_nothing_of_what_fits() {
    BatchStudy study = small_study();
    study.methods = {"manual:dp=2:micro-batches=4"};
    study.networks = {{"builtin:lenet", "LeNet", {1, 2}}};
    const auto done = run_batch_study(study, {}, {}, [&](const StudyCell& found) { study.put(found); });
    QVERIFY2(done.has_value(), done ? "" : done.error().message().c_str());
    const char* const method = "manual:dp=2:micro-batches=4";
    const StudyCell* largest = study.find(cell("builtin:lenet", 2, method, 0, 0));
    QVERIFY(largest && largest->fits && largest->refusal.empty());
    QVERIFY2(largest->batch >= 1024, qPrintable(QString::number(largest->batch)));
    const StudyCell* reported = study.find(cell("builtin:lenet", 2, method, 0, 0, true));
    QVERIFY(reported && !reported->fits && !reported->refusal.empty());
    const StudyCell* alone = study.find(cell("builtin:lenet", 1, method, 0, 0));
    QVERIFY(alone && !alone->fits && alone->batch == 0 && !alone->refusal.empty());
  }

  /// What fits ends the doubling: with a network as small as this far above the 16,384 samples that once did.
  void batches_double_until_one_does_not_fit() {
    BatchStudy study = small_study();
    study.devices = {1};
    study.methods = {"single-device"};
    study.networks = {{"builtin:lenet", "LeNet", {0}}};
    study.settings.memory_limit = std::int64_t(4) << 30;
    const auto done = run_batch_study(study, {}, {}, [&](const StudyCell& found) { study.put(found); });
    QVERIFY2(done.has_value(), done ? "" : done.error().message().c_str());
    const StudyCell* found = study.find(cell("builtin:lenet", 1, "single-device", 0, 0));
    QVERIFY(found && found->fits && found->batch > 16384);
    // Peaks grow by the sample; twice as many would not fit.
    QVERIFY(found->memory_bytes <= study.settings.memory_limit &&
            2 * found->memory_bytes > study.settings.memory_limit);
  }

  void a_choice_asks_less_and_a_stop_keeps_what_was_found() {
    const BatchStudy study = small_study();
    std::vector<StudyCell> found;
    const auto add = [&](const StudyCell& one) { found.push_back(one); };
    // With what is placed chosen otherwise those who place nothing have no other answer.
    QVERIFY(run_batch_study(study, {{"builtin:lenet"}, "whole-layers"}, {}, add).has_value());
    QCOMPARE(found.size(), std::size_t(2 * 2 * 2));
    for (const StudyCell& one : found)
      QVERIFY(one.model == "builtin:lenet" && one.graph == "whole-layers" && !one.method.starts_with("data-parallel"));
    const auto wrong = run_batch_study(study, {{"builtin:vgg16"}, {}}, {}, add);
    QVERIFY(!wrong && wrong.error().code == ErrorCode::usage);
    const auto nonsense = run_batch_study(study, {{}, "no-such=1"}, {}, add);
    QVERIFY(!nonsense && nonsense.error().code == ErrorCode::usage);
    std::stop_source stop;
    RunContext context;
    context.stop = stop.get_token();
    found.clear();
    const auto stopped = run_batch_study(study, {}, context, [&](const StudyCell& one) {
      found.push_back(one);
      if (found.size() == 4) stop.request_stop();
    });
    QVERIFY(!stopped && stopped.error().code == ErrorCode::cancelled);
    QCOMPARE(found.size(), std::size_t(4));
  }

  void a_run_is_whole_where_it_answers_every_cell() {
    BatchStudy study = small_study();
    QVERIFY(study.all_among({}));  // no cell is older than the run
    const StudyCell first = cell("builtin:lenet", 1, "heft", 8, 1), second = cell("builtin:lenet", 2, "heft", 8, 1);
    study.put(first);
    QVERIFY(study.all_among({second, first}) && !study.all_among({second}) && !study.all_among({}));
    StudyCell whole = first;
    whole.graph = "whole-layers";
    study.put(whole);
    QVERIFY(study.all_among({whole, first}) && !study.all_among({first}));
  }

  void findings_are_counted() {
    BatchStudy study = small_study();
    study.devices = {1, 2, 4};
    study.methods = {"pardnn", "heft", "data-parallel:recompute"};
    study.networks = {{"a", "A", {8, 16, 32}}, {"b", "B", {0, 16, 32}}};
    const auto put = [&](const char* model, int devices, const char* method, double time_s) {
      study.put(cell(model, devices, method, 8 * devices, time_s, true));
    };
    // A: samples a second 8, 20, 50: speed-ups 2.5 and 6.25 are above 2 and 4. B: 16 and 30, which is below twice.
    put("a", 1, "pardnn", 1), put("a", 2, "pardnn", 0.8), put("a", 4, "pardnn", 0.64);
    put("b", 2, "pardnn", 1), put("b", 4, "pardnn", 32.0 / 30);
    put("a", 2, "heft", 1.6), put("a", 4, "heft", 0.64), put("b", 2, "heft", 0), put("b", 4, "heft", 2);
    put("a", 2, "data-parallel:recompute", 0), put("a", 4, "data-parallel:recompute", 0.32);
    study.put(cell("b", 4, "data-parallel:recompute", 7, 0.1, true));  // of another batch: not compared
    QCOMPARE(speed_ups(study, "a", "pardnn", {}, true), (std::vector<double>{1, 2.5, 6.25}));
    const auto b = speed_ups(study, "b", "pardnn", {}, true);
    QVERIFY(b[0] == 0 && b[1] == 1 && std::abs(b[2] - 1.875) < 1e-12);
    QCOMPARE(superlinear(study, {}, true, 4).titles, std::vector<std::string>{"A"});
    QCOMPARE(superlinear(study, {}, true, 4).compared, 2);
    QCOMPARE(superlinear(study, {}, true, 2).titles, std::vector<std::string>{"A"});
    QCOMPARE(superlinear(study, {}, true, 2).compared, 1);  // B has one count up to 2 devices
    study.put(cell("a", 2, "pardnn", 16, 1.1, true));       // below twice as fast: not for every count any more
    QVERIFY(superlinear(study, {}, true, 4).titles.empty());
    study.put(cell("a", 2, "pardnn", 16, 0.8, true));
    const auto rows = standings(study, {}, true);
    QCOMPARE(rows.size(), std::size_t(2));
    QCOMPARE(rows[0].method, std::string("heft"));
    QCOMPARE(rows[0].cells, 4);
    QCOMPARE(rows[0].does_not_fit, 1);
    QCOMPARE(rows[0].slower, 2);                                   // equal times are no slower
    QVERIFY(std::abs(*rows[0].median_speed - 32.0 / 60) < 1e-12);  // of 0.5, 1 and 16 / 30
    QCOMPARE(rows[1].cells, 2);
    QCOMPARE(rows[1].does_not_fit, 1);
    QCOMPARE(rows[1].slower, 0);
    QCOMPARE(*rows[1].median_speed, 2.0);
    // A refusal is no lack of memory.
    StudyCell refused = cell("b", 4, "heft", 32, 0, true);
    refused.refusal = "because";
    study.put(refused);
    QCOMPARE(standings(study, {}, true)[0].refused, 1);
    QCOMPARE(standings(study, {}, true)[0].does_not_fit, 1);
    QVERIFY2(QString::fromStdString(study_findings(study, {}, true)[1])
                 .contains("it does not fit in 1, has no answer in 1 and is slower in 1;"),
             study_findings(study, {}, true)[1].c_str());
    study.put(cell("b", 4, "heft", 32, 2, true));
    QVERIFY(standings(study, {}, false).empty() && study_findings(study, {}, false).empty());
    const auto words = study_findings(study, {}, true);
    QCOMPARE(words.size(), std::size_t(3));
    QVERIFY2(QString::fromStdString(words[0]).contains("on 1 of 2 networks (A)"), words[0].c_str());
    QVERIFY2(QString::fromStdString(words[1]).contains("of 4 cases with several devices it does not fit in 1 and is "
                                                       "slower in 2; where it fits, 0.53 times as fast"),
             words[1].c_str());
    // A third network without answers is none that was compared; without a second count there is no such sentence.
    study.networks.push_back({"c", "C", {0, 16, 32}});
    QCOMPARE(study_findings(study, {}, true)[0], words[0]);
    BatchStudy one = study;
    one.devices = {4};
    const auto fewer = study_findings(one, {}, true);
    QVERIFY(fewer.size() == 2);
    for (const std::string& sentence : fewer) QVERIFY(!QString::fromStdString(sentence).contains("superlinear"));
    // Those who place nothing are compared whatever is placed.
    study.put([&] {
      StudyCell whole = cell("a", 4, "pardnn", 32, 0.5, true);
      whole.graph = "whole-layers";
      return whole;
    }());
    const auto other = standings(study, "whole-layers", true);
    QCOMPARE(other.size(), std::size_t(1));
    QCOMPARE(other[0].method, std::string("data-parallel:recompute"));
    QVERIFY(std::abs(*other[0].median_speed - 0.5 / 0.32) < 1e-12);
  }
};

QTEST_APPLESS_MAIN(BatchStudyTest)
#include "batch_study_test.moc"
