// SPDX-License-Identifier: Apache-2.0
// The hardware page through real events: rows and badges, picking, the toggle, falls and quartiles, problems, no
// profile.
#include <QApplication>
#include <QClipboard>
#include <QHeaderView>
#include <QPushButton>
#include <QSignalSpy>
#include <QSplitter>
#include <QTableView>
#include <QToolButton>
#include <QTreeView>
#include <QtTest>
#include <cmath>

#include "core/hardware/collective_model.h"
#include "test_data.h"
#include "views/common/theme_colors.h"
#include "views/common/toggle_button.h"
#include "views/hardware/coverage_model.h"
#include "views/hardware/curve_chart.h"
#include "views/hardware/hardware_view.h"
#include "views/hardware/remark_model.h"
#include "views/hardware/topology_view.h"

using namespace turnpoint;
using namespace turnpoint::views;

namespace {

constexpr DeviceGroup kPair{2, 1, 2, 1};

/// 1 x 2 devices; the all-reduce of the pair measured at four sizes, the third faster than the second by a third.
std::shared_ptr<Cluster> measured_pair() {
  auto cluster = std::make_shared<Cluster>(**cluster_preset("v100-16gb-1x2"));
  cluster->library = Library::ring;
  const double times[] = {20e-6, 30e-6, 20e-6, 120e-6};
  double bytes = 1024;
  for (const double time_s : times) {
    cluster->collectives.push_back({Collective::all_reduce, kPair, bytes, time_s, 0.9 * time_s, 1.2 * time_s});
    bytes *= 32;
  }
  return cluster;
}

HardwareReport broken_report() {
  HardwareReport report;
  MeasuredLog log;
  log.path = "/data/logs/a very long name of a log that somebody kept for years.log";
  log.problems = {{LogProblem::Severity::note, 3, "2 rows of size 0 left out"},
                  {LogProblem::Severity::warning, 17, "row has 4 columns, the table 13: left out"},
                  {LogProblem::Severity::warning, 1, "no unit given: microseconds assumed"}};
  MeasuredCurve curve;
  curve.kind = Collective::all_gather;
  curve.group = kPair;
  curve.points = {{1024, 1e-5, {}, 1, 5}, {2048, 1.5e-5, {}, 1, 6}};
  log.curves = {curve};
  log.figures = {{Figure::host_to_device, 25e9, Collective::send, {}, "H2D", 9}};
  report.logs = {log};
  return report;
}

int find_row(const HardwareContent& content, const QString& heading, const QString& name) {
  for (std::size_t i = 0; i < content.rows.size(); ++i) {
    const HardwareRow& row = content.rows[i];
    if (row.parent >= 0 && row.name.startsWith(name) &&
        content.rows[static_cast<std::size_t>(row.parent)].name == heading)
      return static_cast<int>(i);
  }
  return -1;
}

class Shown {
 public:
  explicit Shown(HardwareContentPtr content, QSize size = {1000, 420}) {
    view.resize(size);
    view.set_content(std::move(content));
    view.show();
    (void)QTest::qWaitForWindowExposed(&view);
  }
  /// A click of the mouse on the row of this heading and name.
  bool click(const QString& heading, const QString& name) {
    const int row = find_row(*view.content(), heading, name);
    if (row < 0) return false;
    const QModelIndex index = static_cast<CoverageModel*>(view.tree()->model())->index_of(row);
    view.tree()->expand(index.parent());
    view.tree()->scrollTo(index);
    QTest::mouseClick(view.tree()->viewport(), Qt::LeftButton, {}, view.tree()->visualRect(index).center());
    return view.tree()->currentIndex().internalId() == index.internalId();
  }
  HardwareView view;
};

}  // namespace

class HardwareViewTest : public QObject {
  Q_OBJECT

 private slots:
  void nothing_open_and_nothing_measured_say_so() {
    Shown nothing(nullptr);
    QVERIFY(!nothing.view.empty_text().isEmpty());
    QVERIFY(!nothing.view.grab().isNull());
    Shown preset(make_hardware_content(*cluster_preset("v100-16gb-2x8"), nullptr));
    QVERIFY(preset.view.empty_text().isEmpty());
    QCOMPARE(
        preset.view.explanation(),
        QStringLiteral(
            "Nothing measured: every collective comes from the formulas of its library with nominal link figures."));
    for (const HardwareRow& row : preset.view.content()->rows)
      if (row.kind == HardwareRow::Kind::collective || row.kind == HardwareRow::Kind::operators)
        QCOMPARE(*row.origin, Origin::modelled);
    // The formula is what plans are costed with, and drawn.
    QVERIFY(preset.view.chart()->chart().points.empty());
    QVERIFY(preset.view.chart()->chart().formula.size() > 20);
    QVERIFY(!preset.view.remarks()->isVisible());
  }

  void a_matrix_of_eight_gpus_fits_a_laptops_window() {
    auto cluster = measured_pair();
    HostTopology& host = cluster->topology;
    for (int i = 0; i < 8; ++i)
      host.gpus.push_back({"Card", "0000:1b:00.0", 18, 0, "5.0", 25.781e9, i < 4 ? "0" : "1", "0-31,64-95"});
    for (int a = 0; a < 8; ++a)
      for (int b = a + 1; b < 8; ++b) host.pairs.push_back({a, b, 0, "", 18, "SYS", "ok", "ok"});
    const auto content = make_hardware_content(cluster, nullptr);
    for (const int width : {1500, 1060, 750}) {  // of the tab in windows of 2040, 1600 and 1366
      Shown f(content, {width, 300});
      auto* across = f.view.findChild<QSplitter*>();
      const QList<int> before = across->sizes();
      QVERIFY(f.click(QStringLiteral("Links"), QStringLiteral("GPU to GPU")));
      const QTableView* table = f.view.topology()->table();
      QTRY_VERIFY(table->isVisible());
      QTest::qWait(20);
      const int room = table->viewport()->width();
      QVERIFY2(table->horizontalHeader()->length() <= room,
               qPrintable(QStringLiteral("%1 in %2").arg(table->horizontalHeader()->length()).arg(room)));
      for (int c = 0; c < table->model()->columnCount(); ++c) {
        const QString cell = table->model()->index(1, c).data().toString(),
                      head = table->model()->headerData(c, Qt::Horizontal).toString();
        if (c < 10 || width > 750) QVERIFY(table->columnWidth(c) >= table->fontMetrics().horizontalAdvance(cell) + 6);
        QVERIFY(table->columnWidth(c) >= table->horizontalHeader()->fontMetrics().horizontalAdvance(head) + 6);
        if (c == 2) QCOMPARE(head, width == 1500 ? QStringLiteral("GPU2") : QStringLiteral("2"));
      }
      if (const QString folder = qEnvironmentVariable("TURNPOINT_PICTURES"); !folder.isEmpty())
        QVERIFY(f.view.grab().save(folder + QStringLiteral("/topology-8-%1.png").arg(width)));
      QVERIFY(table->model()->index(1, 10).data(Qt::ToolTipRole).toString().contains(QStringLiteral("0-31,64-95")));
      QVERIFY(f.click(QStringLiteral("All-reduce"), QStringLiteral("2 in a node")));
      QCOMPARE(across->sizes(), before);  // the list has its room again
    }
  }

  void the_matrix_of_the_gpus() {
    auto cluster = measured_pair();
    HostTopology& host = cluster->topology;
    for (int i = 0; i < 4; ++i)
      host.gpus.push_back({"Card", "0000:1b:00.0", 4, 0, "3.1", i < 3 ? 25.781e9 : 0, "0", i < 3 ? "0-15" : ""});
    host.pairs = {{0, 1, 4, "3.1", 0, "PIX", "ok", "ok"},
                  {0, 2, 0, "", 0, "SYS", "ok", "ok"},
                  {2, 3, 0, "", 4, "PXB", "ok", "not supported"}};
    host.gpus[3].nvlinks = 0;
    host.notes = {"a note of the probe"};
    const auto content = make_hardware_content(cluster, nullptr);
    const int row = find_row(*content, QStringLiteral("Links"), QStringLiteral("GPU to GPU"));
    QVERIFY(row >= 0);
    QCOMPARE(content->rows[static_cast<std::size_t>(row)].value, QStringLiteral("?, NV4, NVS, SYS"));
    for (const bool dark : {false, true}) {
      QApplication::setPalette(make_palette(dark));
      Shown f(content);
      QVERIFY(f.view.chart()->isVisible() && !f.view.topology()->isVisible());
      QVERIFY(f.click(QStringLiteral("Links"), QStringLiteral("GPU to GPU")));
      QVERIFY(!f.view.chart()->isVisible() && f.view.topology()->isVisible());
      const QAbstractItemModel& table = *f.view.topology()->table()->model();
      QVERIFY(table.rowCount() == 4 && table.columnCount() == 7);
      const auto cell = [&](int r, int c, int role = Qt::DisplayRole) {
        return table.index(r, c).data(role).toString();
      };
      const auto head = [&](int c, int role = Qt::DisplayRole) {
        return table.headerData(c, Qt::Horizontal, role).toString();
      };
      for (int r = 0; r < 4; ++r)
        for (int c = 0; c < 4; ++c) QCOMPARE(cell(r, c).toStdString(), topology_cell(host, r, c));
      QVERIFY2(cell(1, 0, Qt::ToolTipRole).contains("NV4: 4 NVLinks straight from one GPU to the other"),
               qPrintable(cell(1, 0, Qt::ToolTipRole)));
      QVERIFY(cell(1, 0, Qt::ToolTipRole).startsWith("GPU1 to GPU0"));
      QCOMPARE(cell(0, 4).simplified(), QStringLiteral("4 \u00d7 25.8 GB/s"));
      QVERIFY(cell(3, 4) == "none" && cell(3, 6) == "?" && cell(0, 6) == "0-15" && cell(0, 5) == "0");
      QVERIFY(head(0) == "GPU0" && head(4) == "NVLinks" && head(6) == "CPU cores");
      QVERIFY(head(4, Qt::ToolTipRole).contains("one direction") && head(0, Qt::ToolTipRole).contains("1b:00.0"));
      const QString legend = f.view.topology()->legend();
      QVERIFY2(legend.contains("NV4: 4 NVLinks straight") && legend.contains("SYS: over the link between") &&
                   legend.contains("GPU2 and GPU3 (writes: not supported)") && legend.endsWith("a note of the probe"),
               qPrintable(legend));
      if (const QString folder = qEnvironmentVariable("TURNPOINT_PICTURES"); !folder.isEmpty()) {
        QTest::qWait(50);
        QVERIFY(f.view.grab().save(folder + (dark ? "/topology-dark.png" : "/topology-light.png")));
      }
      QVERIFY(f.click(QStringLiteral("All-reduce"), QStringLiteral("2 in a node")));
      QVERIFY(f.view.chart()->isVisible());
    }
    QApplication::setPalette(make_palette(false));
    // CPU ranks have no matrix.
    auto cpu = measured_pair();
    cpu->topology.cores = 2;
    const auto cores = make_hardware_content(cpu, nullptr);
    QVERIFY(find_row(*cores, QStringLiteral("Links"), QStringLiteral("GPU to GPU")) < 0);
    const int line = find_row(*cores, QStringLiteral("Links"), QStringLiteral("Measured host"));
    QVERIFY(line >= 0);
    QCOMPARE(cores->rows[static_cast<std::size_t>(line)].value, QStringLiteral("2 cores"));
    QCOMPARE(cores->rows[static_cast<std::size_t>(line)].tool_tip, QStringLiteral("2 usable cores"));
  }

  void every_item_of_the_coverage_is_one_row() {
    const auto cluster = measured_pair();
    const auto content = make_hardware_content(cluster, nullptr);
    std::size_t rows = 0;
    std::array<int, 3> origins{};
    for (const HardwareRow& row : content->rows)
      if (row.kind == HardwareRow::Kind::collective || row.kind == HardwareRow::Kind::operators)
        ++rows, ++origins[static_cast<std::size_t>(*row.origin)];
    const auto items = coverage(*cluster);
    QCOMPARE(rows, items.size());
    for (const Origin origin : {Origin::measured, Origin::calibrated, Origin::modelled})
      QCOMPARE(origins[static_cast<std::size_t>(origin)],
               static_cast<int>(
                   std::count_if(items.begin(), items.end(), [&](const auto& item) { return item.origin == origin; })));
    QVERIFY(origins[0] > 0 && origins[2] > 0);
  }

  void a_click_shows_the_curve_with_falls_and_quartiles() {
    Shown f(make_hardware_content(measured_pair(), nullptr));
    QVERIFY(f.click(QStringLiteral("All-gather"), QStringLiteral("2 in a node")));
    QVERIFY(f.view.chart()->chart().points.empty());
    // Calibrated on the all-reduce: what plans are charged, all of it between the ends of what is drawn.
    QVERIFY(f.view.chart()->chart().read.size() > 20);
    QCOMPARE(f.view.chart()->chart().least, f.view.chart()->chart().read.front().bytes);
    QVERIFY(f.view.chart()->chart().subtitle.isEmpty() == false &&
            f.view.chart()->chart().origin == Origin::calibrated);
    QVERIFY(f.click(QStringLiteral("All-reduce"), QStringLiteral("2 in a node")));
    CurveChart& chart = *f.view.chart();
    QCOMPARE(chart.chart().points.size(), std::size_t(4));
    QCOMPARE(chart.falls_marked(), 1);
    QCOMPARE(chart.bars_drawn(), 4);
    QCOMPARE(*chart.chart().origin, Origin::measured);
    // What is drawn is what the cost model reads, at measured sizes the measured times.
    const CollectiveModel model(*measured_pair(), {});
    for (const auto& point : chart.chart().read)
      QCOMPARE(point.time_s, model.time(Collective::all_reduce, kPair, point.bytes).value);
    QVERIFY(chart.chart().read.front().bytes < 1024 && chart.chart().read.back().bytes > 1024.0 * 32 * 32 * 32);
    // And the ring formula beside it: 2 (g - 1) steps of (latency + s / bandwidth).
    const LinkLevel link = (*cluster_preset("v100-16gb-1x2"))->links[kIntraNode];
    for (const auto& point : chart.chart().formula)
      QVERIFY(std::abs(point.time_s - 2 * (link.latency_s + point.bytes / 2 / link.bandwidth)) < 1e-9 * point.time_s);
    // The pointer on the fall reads it.
    const MeasuredPoint fall = chart.chart().points[2];
    const QString words = chart.read_out(chart.position_of(fall));
    QVERIFY2(words.contains(QStringLiteral("falls by 33%")) && words.contains(QStringLiteral("quartiles")),
             qPrintable(words));
    QVERIFY(chart.read_out({0, 0}).isEmpty());
  }

  void an_all_to_all_is_drawn_by_its_whole_tensor() {
    auto cluster = measured_pair();
    cluster->collectives = {{Collective::all_to_all, kPair, 1 << 20, 1e-3, 0, 0},
                            {Collective::all_to_all, kPair, 1 << 22, 3e-3, 0, 0}};
    const auto content = make_hardware_content(cluster, nullptr);
    const int row = find_row(*content, QStringLiteral("All-to-all"), QStringLiteral("2 in a node"));
    QVERIFY(row >= 0);
    const auto chart = make_curve_chart(*content, content->rows[static_cast<std::size_t>(row)]);
    int met = 0;
    for (const auto& point : chart.read) {
      if (point.bytes == 1 << 20) {
        QCOMPARE(point.time_s, 1e-3);
        ++met;
      }
      if (point.bytes == 1 << 22) {
        QCOMPARE(point.time_s, 3e-3);
        ++met;
      }
    }
    QCOMPARE(met, 2);
  }

  void the_toggle_shows_bandwidth() {
    Shown f(make_hardware_content(measured_pair(), nullptr));
    QVERIFY(f.click(QStringLiteral("All-reduce"), QStringLiteral("2 in a node")));
    CurveChart& chart = *f.view.chart();
    const auto& points = chart.chart().points;
    // Time: the first point lies below the last (smaller y is higher); so does bandwidth, but the order inside changes.
    QVERIFY(chart.position_of(points[1]).y() < chart.position_of(points[0]).y());
    QVERIFY(chart.position_of(points[1]).y() < chart.position_of(points[2]).y());
    QTest::mouseClick(f.view.bandwidth_button(), Qt::LeftButton);
    QVERIFY(chart.bandwidth());
    QVERIFY2(chart.position_of(points[2]).y() < chart.position_of(points[1]).y(),
             "a shorter time at a larger size is more bandwidth");
    QTest::mouseClick(f.view.bandwidth_button(), Qt::LeftButton);
    QVERIFY(!chart.bandwidth());
  }

  void problems_are_listed_first_and_a_double_click_copies() {
    const HardwareReport report = broken_report();
    Shown f(make_hardware_content(measured_pair(), &report));
    QTableView* table = f.view.remarks();
    QVERIFY(table->isVisible());
    QCOMPARE(f.view.content()->warnings, 2);
    QVERIFY(table->model()->rowCount() >= 4);
    QVERIFY(table->model()->index(0, RemarkModel::what).data().toString().contains(QStringLiteral("left out")));
    QCOMPARE(table->model()->index(0, RemarkModel::line).data().toString(), QStringLiteral("17"));
    QVERIFY(table->model()->index(1, RemarkModel::what).data().toString().contains(QStringLiteral("no unit given")));
    QApplication::clipboard()->clear();
    const QPoint cell = table->visualRect(table->model()->index(0, RemarkModel::what)).center();
    QTest::mouseClick(table->viewport(), Qt::LeftButton, {}, cell);
    QTest::mouseDClick(table->viewport(), Qt::LeftButton, {}, cell);
    QCOMPARE(QApplication::clipboard()->text(),
             QStringLiteral("/data/logs/a very long name of a log that somebody kept for years.log:17: row has 4 "
                            "columns, the table 13: left out"));
    QVERIFY(find_row(*f.view.content(), QStringLiteral("Figures in the files"), QStringLiteral("host")) >= 0);
  }

  // The others are taken without them, so the page must say which were left.
  void files_that_could_not_be_read_are_named_with_the_reason() {
    HardwareReport report = broken_report();
    Error error = bad_input("is not UTF-8 text", "/data/logs/rank3.log: line 12");
    error.hint = "save it as UTF-8";
    report.unread = {{"/data/logs/rank3.log", error},
                     {"/data/logs/empty.txt", bad_input("is empty", "/data/logs/empty.txt")}};
    Shown f(make_hardware_content(measured_pair(), &report));
    QTableView* table = f.view.remarks();
    QVERIFY(table->isVisible());
    QCOMPARE(f.view.content()->warnings, 4);
    QStringList rows;
    for (int row = 0; row < table->model()->rowCount(); ++row)
      rows += table->model()->index(row, RemarkModel::file).data().toString() + u'|' +
              table->model()->index(row, RemarkModel::what).data().toString();
    const auto has = [&](const char* file, const char* words) {
      return std::any_of(rows.begin(), rows.end(), [&](const QString& row) {
        return row.section(u'|', 0, 0).contains(QLatin1String(file)) && row.contains(QLatin1String(words));
      });
    };
    QVERIFY2(has("rank3.log", "not read: line 12: is not UTF-8 text (save it as UTF-8)"), qPrintable(rows.join(u'\n')));
    QVERIFY2(has("empty.txt", "not read: is empty"), qPrintable(rows.join(u'\n')));
  }

  void without_a_profile_the_curves_of_the_files_are_shown_and_a_base_is_offered() {
    HardwareReport report = broken_report();
    report.no_cluster = "no file names a device that a preset is known for";
    Shown f(make_hardware_content(nullptr, &report));
    f.view.set_base(QStringLiteral("2 x 8 V100-16GB"));
    QVERIFY(f.view.base_button()->isVisible());
    QVERIFY(f.view.base_button()->text().contains(QStringLiteral("V100")));
    QCOMPARE(f.view.chart()->chart().points.size(), std::size_t(2));
    QVERIFY(f.view.chart()->chart().formula.empty());
    QSignalSpy asked(&f.view, &HardwareView::base_requested);
    QTest::mouseClick(f.view.base_button(), Qt::LeftButton);
    QCOMPARE(asked.count(), 1);
    f.view.set_base({});
    QVERIFY(!f.view.base_button()->isVisible());
    QVERIFY(f.view.chart()
                ->read_out(f.view.chart()->position_of(report.logs[0].curves[0].points[1]))
                .contains(QStringLiteral("line 6")));
  }

  void keys_walk_the_list_and_the_pick_survives_new_content() {
    Shown f(make_hardware_content(measured_pair(), nullptr));
    QVERIFY(f.click(QStringLiteral("Broadcast"), QStringLiteral("2 in a node")));
    const QString title = f.view.chart()->chart().title;
    f.view.set_content(make_hardware_content(*cluster_preset("v100-16gb-1x2"), nullptr));
    QCOMPARE(f.view.chart()->chart().title, title);
    QTest::keyClick(f.view.tree(), Qt::Key_Down);
    QVERIFY(f.view.chart()->chart().title != title);
    const QJsonObject state = f.view.save_state();
    HardwareView other;
    other.set_content(make_hardware_content(*cluster_preset("v100-16gb-1x2"), nullptr));
    QTest::mouseClick(f.view.bandwidth_button(), Qt::LeftButton);
    other.restore_state(f.view.save_state());
    QVERIFY(other.chart()->bandwidth());
  }

  void what_cannot_be_drawn_is_not() {
    auto cluster = measured_pair();
    cluster->collectives.push_back({Collective::all_reduce, kPair, 0, 1e-6, 0, 0});
    cluster->collectives.push_back({Collective::all_reduce, kPair, 1e9, std::nan(""), 0, 0});
    Shown f(make_hardware_content(cluster, nullptr), {700, 300});
    QVERIFY(f.click(QStringLiteral("All-reduce"), QStringLiteral("2 in a node")));
    QCOMPARE(f.view.chart()->chart().points.size(), std::size_t(4));
    QVERIFY(!f.view.grab().isNull());
  }

  /// TURNPOINT_PICTURES=folder keeps what the page looks like with the measured files.
  void real_files_fill_the_page_in_both_themes() {
    REQUIRE_DATA(data);
    std::vector<std::string> paths;
    for (const char* name :
         {"nccl-tests/a100x8_nccl_allreduce.log", "nccl-tests/a100x8_nccl_allgather.log",
          "vidur/network/a100_dgx/all_reduce.csv", "vidur/network/a100_dgx/send_recv.csv", "topo/a100x8_nv12.txt"})
      paths.push_back((data / "hardware" / name).string());
    const auto report = read_hardware_files(paths);
    QVERIFY2(report.has_value(), report ? "" : report.error().message().c_str());
    QVERIFY(report->cluster);
    const auto content = make_hardware_content(report->cluster, &*report);
    QVERIFY(content->warnings > 0);
    for (const bool dark : {false, true}) {
      QApplication::setPalette(make_palette(dark));
      Shown f(content);
      QVERIFY(f.click(QStringLiteral("All-reduce"), QStringLiteral("8 in a node")));
      QVERIFY(f.view.chart()->chart().points.size() > 900);
      QVERIFY(f.view.chart()->falls_marked() > 0);
      QVERIFY(f.view.chart()->bars_drawn() > 0);
      const QString folder = qEnvironmentVariable("TURNPOINT_PICTURES"),
                    theme = dark ? QStringLiteral("dark") : QStringLiteral("light");
      if (folder.isEmpty()) continue;
      const auto keep = [&](const char* name) {
        QTest::qWait(50);
        QVERIFY(f.view.grab().save(folder + QStringLiteral("/%1-%2.png").arg(QLatin1String(name), theme)));
      };
      keep("time");
      QTest::mouseClick(f.view.bandwidth_button(), Qt::LeftButton);
      keep("bandwidth");
      QVERIFY(f.click(QStringLiteral("All-gather"), QStringLiteral("8 in a node")));
      keep("gather");
      QVERIFY(f.click(QStringLiteral("All-to-all"), QStringLiteral("2 nodes")));
      keep("formula");
      QVERIFY(f.click(QStringLiteral("Operators"), QStringLiteral("all operators")));
      keep("operators");
      QVERIFY(f.click(QStringLiteral("Links"), QStringLiteral("NV")));
      keep("links");
      HardwareReport broken = broken_report();
      broken.no_cluster = "no file names a device that a preset is known for (give --base PRESET)";
      f.view.set_content(make_hardware_content(nullptr, &broken));
      f.view.set_base(QStringLiteral("2 \u00d7 8 V100-16GB"));
      keep("no-profile");
      f.view.set_content(nullptr);
      keep("empty");
    }
    QApplication::setPalette(make_palette(false));
  }
};

QTEST_MAIN(HardwareViewTest)
#include "hardware_view_test.moc"
