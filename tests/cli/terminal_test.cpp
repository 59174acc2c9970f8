// SPDX-License-Identifier: Apache-2.0
// What a person at a terminal sees, on a pseudo terminal; what a pipe gets stays the document.
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <QFile>
#include <QJsonArray>
#include <QRegularExpression>
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <vector>

#include "tests/cli/command_line.h"

using namespace turnpoint::test;

namespace {

/// The program with a terminal as its standard output and error.
Run run_at_terminal(const QStringList& arguments) {
  std::vector<QByteArray> words{TURNPOINT_BINARY_DIR "/turnpoint-cli"};
  for (const QString& argument : arguments) words.push_back(argument.toLocal8Bit());
  std::vector<char*> pointers;
  for (QByteArray& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    ::execv(pointers[0], pointers.data());
    ::_exit(127);
  }
  Run result;
  char block[4096];
  for (ssize_t got; (got = ::read(terminal, block, sizeof block)) > 0;) result.out.append(block, static_cast<int>(got));
  ::close(terminal);
  int status = 0;
  ::waitpid(child, &status, 0);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  result.out.replace("\r\n", "\n");
  // Progress is written over itself.
  for (qsizetype at; (at = result.out.indexOf("\r\033[K")) >= 0;) {
    const qsizetype begin = at == 0 ? 0 : result.out.lastIndexOf('\n', at - 1) + 1;
    result.out.remove(begin, at + 4 - begin);
  }
  return result;
}

QStringList table_under(const QByteArray& text, const QString& first_word) {
  QStringList rows;
  for (const QString& line : QString::fromUtf8(text).split('\n')) {
    if (rows.isEmpty() ? line.startsWith("  " + first_word + " ") : line.startsWith("  "))
      rows << line;
    else if (!rows.isEmpty())
      break;
  }
  return rows;
}

const QStringList kSearch{"search", "builtin:lenet", "--hardware", "v100-16gb-1x4", "--batch", "64"};

}  // namespace

class TerminalTest : public QObject {
  Q_OBJECT

 private slots:
  void sweep_shows_a_table_for_each_method() {
    const QStringList sweep{"sweep", "builtin:lenet", "--hardware",   "v100-16gb-1x4", "--batch",
                            "64",    "--over",        "batch=16..64", "--method",      "ft,data-parallel"};
    const Run shown = run_at_terminal(sweep);
    QVERIFY2(shown.code == kDone, shown.out);
    QVERIFY2(shown.out.contains("; batch 16, 32, 64 (it is 64), everything else as it stands"), shown.out);
    for (const char* words : {"\nft: the fastest plan that fits\n", "\ndata-parallel: the fastest plan that fits\n",
                              "\n6 of 6 answers in ", "Data parallel 4."})
      QVERIFY2(shown.out.contains(words), shown.out);
    const QStringList rows = table_under(shown.out, "batch");
    QCOMPARE(rows.size(), 4);
    QVERIFY2(rows[0].contains("turning point") && rows[0].contains("samples/s"), qPrintable(rows[0]));
    QVERIFY2(!rows[0].contains("price"), qPrintable(rows[0]));  // nobody says one
    const Run priced = run_at_terminal(sweep + QStringList{"--price-per-hour", "2"});
    QVERIFY2(table_under(priced.out, "batch")[0].contains("price/M samples"), priced.out);
    QVERIFY(run_at_terminal(sweep + QStringList{"--json"}).out.contains("turnpoint/sweep@1"));
    // Each row has the figures that the document has.
    for (const auto& cell : run(sweep).object()["cells"].toArray()) {
      const QString value = QString::number(cell.toObject()["value"].toInt());
      const QString time = QString::number(1e6 * cell.toObject()["fastest"].toObject()["time_s"].toDouble(), 'g', 3);
      if (cell.toObject()["method"].toString() != "ft") continue;
      QVERIFY2(std::any_of(rows.begin(), rows.end(),
                           [&](const QString& row) {
                             return row.startsWith("  " + value + " ") && row.contains(time + " \u00B5s");
                           }),
               qPrintable(value + ": " + time + rows.join('\n')));
    }
  }

  void a_sweep_says_what_its_figures_are() {
    const auto said = [](const QStringList& of) { return run_at_terminal(QStringList{"sweep"} + of).out; };
    const QStringList lenet{"builtin:lenet", "--hardware", "v100-16gb-1x4", "--over",
                            "batch=64",      "--method",   "data-parallel"};
    const QByteArray peaks = said(lenet), sums = said(lenet + QStringList{"--accounting", "paper"});
    QVERIFY2(peaks.contains("judged by its simulated peak. Rates and prices are of time, which is a plain"), peaks);
    QVERIFY2(sums.contains("judged by plain sums.") && !sums.contains("simulated peak"), sums);
    const QByteArray placed = said({TURNPOINT_SOURCE_DIR "/tests/data/task_graph/small.json", "--hardware",
                                    "v100-16gb-1x4", "--over", "devices=2", "--method", "heft"});
    QVERIFY2(placed.contains("Time and peak are on the simulated clock") && !placed.contains("plain sum"), placed);
  }

  void search_shows_a_dozen_plans() {
    const Run shown = run_at_terminal(kSearch);
    QVERIFY2(shown.code == kDone, shown.out);
    QVERIFY(!shown.out.contains("turnpoint/result@1"));
    for (const char* words :
         {"batch 64", "fp32", "(v100-16gb-1x4), 4 devices, 14.8 GiB for each, 1.2 GiB more reserved", "least memory",
          "turning point", "fastest that fits"})
      QVERIFY2(shown.out.contains(words), qPrintable(words + QString::fromUtf8(shown.out)));
    const QStringList rows = table_under(shown.out, "point");
    QVERIFY2(rows.size() >= 9 && rows.size() <= 14, shown.out);  // the heading, a dozen and perhaps the fastest
    // Right-aligned columns end at one place, whatever their units.
    const qsizetype end = rows.first().indexOf("fits") + 4;
    for (const QString& row : rows.mid(1))
      QVERIFY2(row.left(end).endsWith("yes") || row.left(end).endsWith("no"), qPrintable(row));
  }

  // Whether a plan fits is a matter of its simulated peak, as the document has it.
  void fits_is_judged_by_the_simulated_peak() {
    const auto points = run(kSearch + QStringList{"--simulate"}).object()["points"].toArray();
    std::vector<double> peaks;
    for (const auto& point : points) peaks.push_back(point.toObject()["simulated_memory_bytes"].toDouble());
    std::nth_element(peaks.begin(), peaks.begin() + static_cast<std::ptrdiff_t>(peaks.size() / 2), peaks.end());
    const double limit = peaks[peaks.size() / 2];
    const QStringList few = kSearch + QStringList{"--memory-limit", QString::number(limit, 'f', 0)};
    const Run shown = run_at_terminal(few);
    const QStringList rows = table_under(shown.out, "point");
    QVERIFY2(rows.size() > 5, shown.out);
    const qsizetype end = rows.first().indexOf("fits") + 4;
    bool some_fit = false, some_do_not = false, differs = false;  // ... from the sums
    for (const QString& row : rows.mid(1)) {
      const auto point = points[row.trimmed().split(' ').first().toInt()].toObject();
      const bool fits = point["simulated_memory_bytes"].toDouble() <= limit;
      QCOMPARE(row.left(end).endsWith("yes"), fits);
      some_fit = some_fit || fits;
      some_do_not = some_do_not || !fits;
      differs = differs || fits != (point["memory_bytes"].toDouble() <= limit);
    }
    QVERIFY2(some_fit && some_do_not && differs, shown.out);
  }

  void every_methods_best_stands_below() {
    const Run shown = run_at_terminal(kSearch + QStringList{"--method", "ft,data-parallel,fsdp"});
    QVERIFY2(shown.code == kDone, shown.out);
    const QStringList rows = table_under(shown.out, "method");
    QCOMPARE(rows.size(), 4);
    for (const char* method : {"ft", "data-parallel", "fsdp"})
      QCOMPARE(rows.filter(QRegularExpression(QString("^  %1 ").arg(method))).size(), 1);
  }

  void the_document_is_had_where_it_is_asked_for() {
    QTemporaryDir folder;
    const QString file = folder.filePath("r.json");
    QVERIFY(run_at_terminal(kSearch + QStringList{"--json"}).out.contains("turnpoint/result@1"));
    QCOMPARE(run(kSearch).object()["format"].toString(), QString("turnpoint/result@1"));
    const Run kept = run_at_terminal(kSearch + QStringList{"--out", file});
    QVERIFY(kept.code == kDone && QFile::exists(file));
    QVERIFY2(table_under(kept.out, "point").isEmpty(), kept.out);
  }

  void place_shows_its_devices() {
    QTemporaryDir folder;
    const QString file = folder.filePath("g.json");
    QFile written(file);
    QVERIFY(written.open(QIODevice::WriteOnly));
    written.write(R"({"format": "turnpoint/task-graph@1", "name": "g", "tasks": [{"name": "a", "time_s": 0.5,
      "persistent_bytes": 1048576, "output_bytes": 1024}, {"name": "b", "time_s": 0.25, "output_bytes": 1024}],
      "edges": [{"from": 0, "to": 1}]})");
    written.close();
    const Run shown = run_at_terminal({"place", file, "--devices", "2"});
    QVERIFY2(shown.code == kDone, shown.out);
    QVERIFY2(shown.out.contains("2 tasks on 2 devices, placed by pardnn"), shown.out);
    QVERIFY2(table_under(shown.out, "device").size() == 3, shown.out);
    const Run document = run_at_terminal({"place", file, "--devices", "2", "--json"});
    QVERIFY2(document.out.contains("turnpoint/placement@1"), document.out);
  }

  // Not a success, and no result; what there is is said all the same.
  void without_a_command_the_help_is_shown() {
    const Run none = run({});
    QCOMPARE(none.code, kUsage);
    QVERIFY(none.out.isEmpty());
    for (const char* command : {"search", "validate", "place", "For example"})
      QVERIFY2(none.err.contains(command), none.err);
  }

  void all_methods_leave_the_papers_own_out() {
    QTemporaryDir folder;
    const Run all = run(kSearch + QStringList{"--method", "all"});
    QVERIFY2(all.code == kDone, all.err);
    QStringList names;
    for (const auto& result : all.object()["results"].toArray()) names << result.toObject()["method"].toString();
    QVERIFY(names.contains("ft") && names.contains("fsdp"));
    QVERIFY2(names.filter("-published").isEmpty(), qPrintable(names.join(' ')));
    QVERIFY(run({"search", "--help"}).out.contains("which leaves out ft-published"));
    const Run named = run(kSearch + QStringList{"--method", "ft,ft-published"});
    QVERIFY2(named.code == kDone, named.err);
    QVERIFY(named.err.contains("ft-published: "));
  }
};

QTEST_GUILESS_MAIN(TerminalTest)
#include "terminal_test.moc"
