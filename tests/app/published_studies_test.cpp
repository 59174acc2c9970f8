// SPDX-License-Identifier: Apache-2.0
// The sample studies of AccPar and of update sharding: the tables in their notes are what comes out.
#include <QtTest>
#include <algorithm>
#include <cmath>

#include "core/schedule/simulated_points.h"
#include "search/partition_study.h"
#include "study_figures.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

app::Session study_called(const char* file) {
  for (const app::Study& study : app::studies()) {
    if (std::string(study.file) != file) continue;
    const auto session = app::load_study(app::study_path(study));
    if (!session) qFatal("%s", session.error().message().c_str());
    return *session;
  }
  qFatal("no study %s", file);
}

/// The words of the first line of the notes that begins so, behind that.
QStringList cells(const app::Session& session, const QString& begin) {
  for (const QString& line : QString::fromStdString(session.notes).split(u'\n'))
    if (line.startsWith(begin + u' ')) return line.mid(begin.size()).simplified().split(u' ');
  qFatal("the notes have no line '%s'", qPrintable(begin));
}

double milliseconds(const StudyScenario& study, const char* method) {
  const auto result = search_study(study, method, SearchPass::exact);
  if (!result) qFatal("%s", result.error().message().c_str());
  return (*result)->points.front().time_s * 1e3;
}

QString number(double value) { return std::isnan(value) ? QStringLiteral("-") : QString::number(value, 'f', 2); }
QStringList numbers(const Speedups& found) { return {number(found.owt), number(found.hypar), number(found.accpar)}; }

}  // namespace

class PublishedStudiesTest : public QObject {
  Q_OBJECT

 private slots:
  void steps_with_whole_and_with_shared_updates() {
    const app::Session session = study_called("sharded-updates");
    const auto scenarios = study_scenarios(session);
    QVERIFY2(scenarios, scenarios ? "" : scenarios.error().message().c_str());
    const auto check = [&](const QString& line, const StudyScenario& whole, const StudyScenario& shared) {
      const double whole_ms = milliseconds(whole, "data-parallel"), shared_ms = milliseconds(shared, "update-sharding");
      const QStringList row = cells(session, line);
      QCOMPARE(row[0].toLongLong(), qlonglong(whole.scenario->settings.batch));
      QCOMPARE(row[1].toLower(), QString::fromLatin1(to_string(whole.scenario->settings.optimizer)));
      QCOMPARE(row[2], number(whole_ms));
      QCOMPARE(row[3], number(shared_ms));
      QCOMPARE(row[4], QString::asprintf("%+.1f%%", 100 * (shared_ms / whole_ms - 1)));
    };
    check(QStringLiteral("Transformer, 2,048 cores"), scenarios->front(), scenarios->front());
    QCOMPARE(scenarios->size(), std::size_t(11));
    for (std::size_t k = 1; k < scenarios->size(); k += 2) {
      const StudyScenario &whole = (*scenarios)[k], &shared = (*scenarios)[k + 1];
      const QString label = QString::fromStdString(whole.label), line = label.left(label.lastIndexOf(u','));
      QCOMPARE(QString::fromStdString(shared.label), line + QStringLiteral(", shared"));
      QCOMPARE(whole.method + " " + shared.method, std::string("data-parallel update-sharding"));
      QVERIFY(QString(line).remove(u',').contains(QString::number(whole.scenario->cluster->devices())));
      check(line, whole, shared);
    }
  }

  /// What stands in the text beside the table.
  void peaks_and_overlap_of_the_step() {
    const app::Session session = study_called("sharded-updates");
    const auto scenarios = study_scenarios(session);
    QVERIFY(scenarios.has_value());
    SimulatedCost costs[2];
    for (const bool shared : {false, true}) {
      const auto result =
          search_study(scenarios->front(), shared ? "update-sharding" : "data-parallel", SearchPass::exact);
      QVERIFY(result.has_value());
      const std::size_t first[] = {0};
      const auto cost = simulate_points(**result, first, {});
      QVERIFY(cost.has_value());
      costs[shared] = cost->front();
    }
    const QString notes = QString::fromStdString(session.notes);
    const QString peaks =
        QString::asprintf("from %.2f to %.2f GiB", gib(costs[0].memory_bytes), gib(costs[1].memory_bytes));
    QVERIFY2(notes.contains(peaks), qPrintable(peaks));
    const QString overlap = QString::asprintf("from %.2f to %.2f ms, by %.1f%%", costs[0].time_s * 1e3,
                                              costs[1].time_s * 1e3, 100 * (1 - costs[1].time_s / costs[0].time_s));
    QVERIFY2(notes.contains(overlap), qPrintable(overlap));
  }

  void averages_are_those_of_the_rows() {
    const app::Session session = study_called("accpar-arrays");
    const QStringList averages = cells(session, QStringLiteral("average"));
    QCOMPARE(averages.size(), 9);
    for (int k = 0; k < 9; ++k) {
      double sum = 0;
      int count = 0;
      for (const char* line :
           {"LeNet", "AlexNet", "VGG-11", "VGG-13", "VGG-16", "VGG-19", "ResNet-18", "ResNet-34", "ResNet-50"}) {
        bool there = false;
        const double value = cells(session, QString::fromLatin1(line))[k].toDouble(&there);
        if (there) sum += value, ++count;
      }
      QVERIFY(std::abs(averages[k].toDouble() - sum / count) < 0.011);
    }
    const QString text =
        QStringLiteral("**Here:** %1, %2 and %3 on average").arg(averages[0], averages[1], averages[2]);
    QVERIFY2(QString::fromStdString(session.notes).contains(text), qPrintable(text));
  }

  void speedups_of_partitions() {
    const app::Session session = study_called("accpar-arrays");
    const auto scenarios = study_scenarios(session);
    QVERIFY2(scenarios, scenarios ? "" : scenarios.error().message().c_str());
    // The session's own scenario, and its pinned equal array, are the row of VGG-19.
    const QStringList vgg19 = cells(session, QStringLiteral("VGG-19"));
    QCOMPARE(vgg19.mid(0, 3), numbers(by_our_prices(scenarios->front().scenario)));
    const auto equal = std::find_if(scenarios->begin(), scenarios->end(),
                                    [](const StudyScenario& one) { return one.label == "128 v3, AccPar"; });
    QVERIFY(equal != scenarios->end());
    QCOMPARE(vgg19.mid(3, 3), numbers(by_our_prices(equal->scenario)));
    QCOMPARE(equal->scenario->cluster->devices(), 128);
    for (const auto& [line, name] : {std::pair{"AlexNet", "alexnet"}, {"ResNet-50", "resnet50"}, {"LeNet", "lenet"}}) {
      const QStringList row = cells(session, QString::fromLatin1(line));
      QCOMPARE(row.mid(0, 3), numbers(by_our_prices(unlike_boards(name, 8, kPaperLinks))));
      QCOMPARE(row.mid(3, 3), numbers(by_our_prices(partition_scenario(name, "tpu-v3-64x2", kPaperLinksEqual))));
    }
    for (const auto& [line, name] : {std::pair{"VGG-11", "vgg11"}, {"ResNet-34", "resnet34"}}) {
      const accpar::LayerGraph graph = accpar::layers_of(*partition_network(name))->graph;
      QCOMPARE(cells(session, QString::fromLatin1(line)).mid(6),
               numbers(by_the_papers_count(graph, partition_boards(true, 8))));
    }
  }

  void more_boards() {
    const app::Session session = study_called("accpar-arrays");
    const QStringList boards = cells(session, QStringLiteral("boards"));
    QCOMPARE(boards.join(u' '), QStringLiteral("4 8 16 32 64 128 256 512"));
    for (const int levels : {2, 4, 6}) {
      const QStringList found = numbers(by_our_prices(unlike_boards("vgg19", levels, kPaperLinks)));
      for (const auto& [line, k] : {std::pair{"OWT", 0}, {"HyPar", 1}, {"AccPar", 2}})
        QCOMPARE(cells(session, QString::fromLatin1(line))[levels - 2], found[k]);
    }
  }

  void types_level_by_level() {
    const app::Session session = study_called("accpar-arrays");
    const accpar::LayerGraph graph = accpar::layers_of(*partition_network("alexnet"))->graph;
    const auto found = accpar::search(graph, partition_boards(false, 7), accpar::Options());
    QVERIFY(found.has_value());
    const auto levels = types_to_the_first_device(*found);
    QCOMPARE(levels.size(), std::size_t(7));
    for (std::size_t level = 0; level < levels.size(); ++level) {
      QStringList types;
      for (const accpar::Type type : levels[level]) types << QString::fromUtf8(accpar::to_string(type).data());
      QCOMPARE(cells(session, QString::number(level + 1)), types);
    }
  }
};

QTEST_APPLESS_MAIN(PublishedStudiesTest)
#include "published_studies_test.moc"
