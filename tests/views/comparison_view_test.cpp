// SPDX-License-Identifier: Apache-2.0
// The table of methods: figures, sorting, copying, and the selection it shares with the chart.
#include <QHeaderView>
#include <QPainter>
#include <QScrollBar>
#include <QSignalSpy>
#include <QTreeView>
#include <QtTest>
#include <limits>

#include "core/hardware/cluster.h"
#include "views/common/elided_header.h"
#include "views/common/format.h"
#include "views/common/selection_model.h"
#include "views/comparison/comparison_view.h"

using namespace turnpoint;
using namespace turnpoint::views;

namespace {

constexpr std::int64_t kGiB = std::int64_t(1) << 30;

ChartSeries series(const char* method, std::vector<ResultPoint> points, bool exact = true,
                   std::optional<double> gap = 0.0) {
  auto result = std::make_shared<Result>();
  result->method = method;
  result->points = std::move(points);
  result->exact = exact;
  result->gap = gap;
  return {method, QString::fromLatin1(method).toUpper(), result->points.size() > 1, false, result};
}

ChartData three_methods() {
  ChartData data;
  data.memory_limit = 16 * kGiB;
  data.series = {
      series("ft",
             {{4 * kGiB, 2.0, 1.5, 0.5, true}, {12 * kGiB, 1.0, 0.8, 0.2, true}, {20 * kGiB, 0.5, 0.4, 0.1, false}},
             false, 0.003),
      series("data-parallel", {{30 * kGiB, 0.7, 0.5, 0.2, false}}),
      series("optcnn", {{15 * kGiB, 1.25, 1.0, 0.25, true}})};
  return data;
}

}  // namespace

class ComparisonViewTest : public QObject {
  Q_OBJECT
  using M = ComparisonModel;

  static QString cell(const ComparisonView& view, int row, int column) {
    return view.model()->index(row, column).data().toString();
  }

 private slots:
  void the_longest_name_is_whole() {
    ComparisonView view;
    view.resize(400, 300);
    ChartData data = three_methods();
    data.series[1].title = QStringLiteral("Mesh-TensorFlow and more");
    view.set_data(data);
    view.show();
    QVERIFY(QTest::qWaitForWindowExposed(&view));
    QImage whole(400, 40, QImage::Format_RGB32), narrow(400, 40, QImage::Format_RGB32);
    auto* table = view.findChild<QTreeView*>();
    const auto paint = [&](QImage& into, int width) {
      into.fill(Qt::white);
      QPainter painter(&into);
      QStyleOptionViewItem option;
      option.initFrom(table);
      option.font = table->font();
      option.rect = QRect(0, 0, width, 40);
      table->itemDelegateForIndex(view.model()->index(1, M::method))
          ->paint(&painter, option, view.model()->index(1, M::method));
    };
    // What stands in the column as it is looks like what stands in one with room to spare.
    paint(whole, 400), paint(narrow, table->columnWidth(M::method));
    const QRect name(0, 0, table->columnWidth(M::method) - 4, 40);
    QVERIFY(whole.copy(name) == narrow.copy(name));
  }

  void air_between_columns_brings_no_scroll_bar() {
    ComparisonView view;
    view.resize(3000, 300);
    view.set_data(three_methods());
    view.show();
    QVERIFY(QTest::qWaitForWindowExposed(&view));
    int least = 65;  // of the last column, which takes what is left
    for (int c = 0; c < M::kColumns; ++c)
      if (c != M::clock && !view.table()->isColumnHidden(c)) least += view.table()->columnWidth(c) - 6;
    const int wide = view.table()->columnWidth(M::memory);
    view.resize(least + 10, 300);
    QTest::qWait(20);
    QVERIFY(view.table()->columnWidth(M::memory) < wide);
    QVERIFY(!view.table()->horizontalScrollBar()->isVisible());
    view.table()->setColumnWidth(M::memory, 200);  // the user's
    view.resize(least + 40, 300);
    QTest::qWait(20);
    QCOMPARE(view.table()->columnWidth(M::memory), 200);
  }

  /// A heading wider than its figures is cut before anything scrolls; its tip begins with it. Figures are never cut.
  void headings_give_way_before_the_table_scrolls() {
    ComparisonView view;
    view.resize(3000, 300);
    ChartData data = three_methods();
    ResultPoint placed{2 * kGiB, 3.0, 2.0, 1.0, true};
    placed.peak_communication_bytes = 7 * kGiB;
    data.series.push_back(series("trinity", {placed}, false, std::nullopt));
    view.set_data(data);
    view.show();
    QVERIFY(QTest::qWaitForWindowExposed(&view));
    const QHeaderView* header = view.table()->header();
    const QAbstractItemView* table = view.table();
    int whole = 0;
    for (int c = 0; c < M::kColumns; ++c)
      if (!view.table()->isColumnHidden(c)) whole += std::max(header->sectionSizeHint(c), table->sizeHintForColumn(c));
    view.resize(whole - 40, 300);
    QTest::qWait(20);
    QVERIFY(!view.table()->horizontalScrollBar()->isVisible());
    QVERIFY(view.table()->columnWidth(M::turning) == header->sectionSizeHint(M::turning) ||
            view.table()->columnWidth(M::against_best) < header->sectionSizeHint(M::against_best));
    for (int c = 0; c < M::kColumns; ++c)
      if (!view.table()->isColumnHidden(c)) QVERIFY(view.table()->columnWidth(c) >= table->sizeHintForColumn(c));
    // What is cut ends in dots and lies between the margins, whatever the width.
    const auto* head = dynamic_cast<const ElidedHeader*>(header);
    QVERIFY(head);
    const QString heading = view.model()->headerData(M::communication, Qt::Horizontal, Qt::DisplayRole).toString();
    const int margin = head->style()->pixelMetric(QStyle::PM_HeaderMargin, nullptr, head);
    for (int width = header->sectionSizeHint(M::communication); width > 30; width -= 1) {
      view.table()->setColumnWidth(M::communication, width);
      const QString shown = head->shown(M::communication);
      QVERIFY(shown == heading || shown.endsWith(QChar(0x2026)));
      QVERIFY(head->fontMetrics().horizontalAdvance(shown) <= width - 2 * margin);
      if (width == header->sectionSizeHint(M::communication)) QCOMPARE(shown, heading);
    }
    QVERIFY(view.model()
                ->headerData(M::communication, Qt::Horizontal, Qt::ToolTipRole)
                .toString()
                .startsWith("Peak communication: "));
  }

  /// Beside memory and time on the screen and in what is copied; gone where nothing has it.
  void peak_communication_of_placements() {
    ComparisonView view;
    view.set_data(three_methods());
    QVERIFY(view.table()->isColumnHidden(M::communication));
    ChartData data = three_methods();
    ResultPoint slow{2 * kGiB, 3.0, 2.0, 1.0, true}, fast{8 * kGiB, 1.5, 1.0, 0.5, true};
    slow.peak_communication_bytes = 7 * kGiB, fast.peak_communication_bytes = 3 * kGiB;
    data.series.push_back(series("trinity", {slow, fast}, false, std::nullopt));
    ResultPoint large{40 * kGiB, 1.0, 0.5, 0.5, false};
    large.peak_communication_bytes = 0;
    data.series.push_back(series("heft", {large}, false, std::nullopt));
    view.set_data(data);
    QVERIFY(!view.table()->isColumnHidden(M::communication));
    QCOMPARE(cell(view, 3, M::communication), memory_text(3 * kGiB));  // of its fastest that fits
    QCOMPARE(cell(view, 4, M::communication), memory_text(0));
    QCOMPARE(cell(view, 0, M::communication), QString());
    const QHeaderView* header = view.table()->header();
    QCOMPARE(header->visualIndex(M::communication), header->visualIndex(M::time) + 1);
    const QStringList names = view.rows_as_text().split(QLatin1Char('\n')).first().split(QLatin1Char('\t'));
    QCOMPARE(names.indexOf("Peak communication"), names.indexOf("Time") + 1);
    QCOMPARE(
        view.rows_as_text().split(QLatin1Char('\n'))[4].split(QLatin1Char('\t'))[names.indexOf("Peak communication")],
        memory_text(3 * kGiB));
    view.table()->sortByColumn(M::communication, Qt::AscendingOrder);
    QCOMPARE(view.table()->model()->index(0, M::method).data(ComparisonModel::MethodRole).toString(), QString("heft"));
    view.set_data(three_methods());
    QVERIFY(view.table()->isColumnHidden(M::communication));
  }

  void figures() {
    ComparisonView view;
    view.set_data(three_methods());
    QCOMPARE(view.model()->rowCount(), 3);
    QCOMPARE(view.model()->best_row(), 0);
    QCOMPARE(cell(view, 0, M::plans), QString("3"));
    QCOMPARE(cell(view, 0, M::against_best), QString("fastest"));
    QVERIFY(cell(view, 0, M::memory).startsWith("12"));
    QVERIFY(cell(view, 0, M::answer).contains("0.3"));
    ChartData noted = three_methods();
    auto told = std::make_shared<Result>(*noted.series[1].result);
    told->notes = {"the batch does not divide"};
    noted.series[1].result = told;
    ComparisonView other;
    other.set_data(noted);
    QCOMPARE(cell(other, 0, M::method), QString("FT"));
    const int with_note = other.table()->columnWidth(M::method);
    other.set_data(three_methods());
    const int without = other.table()->columnWidth(M::method);
    other.set_data(noted);
    QVERIFY(without < with_note);
    QCOMPARE(other.table()->columnWidth(M::method), with_note);
    QCOMPARE(cell(other, 1, M::method), QString("DATA-PARALLEL (note)"));
    QVERIFY(other.model()->index(1, M::method).data(Qt::ToolTipRole).toString().contains("does not divide"));
    QCOMPARE(cell(view, 1, M::time), QString("does not fit"));
    QVERIFY(cell(view, 1, M::memory).startsWith("needs 30"));
    QVERIFY(cell(view, 1, M::against_best).isEmpty());
    QVERIFY(cell(view, 2, M::against_best).contains("25"));
    QCOMPARE(cell(view, 2, M::network), QString("20%"));
    QVERIFY(view.summary().contains("FT"));
  }

  // A faint answer to another scenario is no rival.
  void an_answer_to_another_scenario_is_never_the_fastest() {
    ChartData data = three_methods();
    data.series[2] = series("optcnn", {{2 * kGiB, 0.1, 0.08, 0.02, true}});
    ComparisonView view;
    view.set_data(data);
    QCOMPARE(view.model()->best_row(), 2);
    data.series[2].of = QStringLiteral("\u00d70.27");
    view.set_data(data);
    QCOMPARE(view.model()->best_row(), 0);
    QCOMPARE(cell(view, 0, M::against_best), QString("fastest"));
    QVERIFY(cell(view, 2, M::against_best).isEmpty());
  }

  void simulated_points_lie_in_any_order() {
    const double none = std::numeric_limits<double>::quiet_NaN();
    ChartData data;
    data.clock = Clock::simulated;
    data.series = {
        series("ft",
               {{6 * kGiB, 2.0, 1.9, 0.8, false}, {1 * kGiB, none, 1.0, 0.5, false}, {5 * kGiB, 1.0, 0.9, 0.6, false}}),
        series("pardnn", {{3 * kGiB, 4.0, 3.0, 1.0, true}})};
    ComparisonView view;
    view.set_data(data);
    QCOMPARE(cell(view, 0, M::plans), QString("2"));
    QVERIFY(cell(view, 0, M::memory).startsWith("needs 5"));
    QVERIFY(cell(view, 0, M::least).startsWith("5"));
    QCOMPARE(view.model()->plan_of(0), std::optional<std::size_t>(2));
    QCOMPARE(cell(view, 1, M::network), QString("25%"));
    // Plain sums of 1.5 s say nothing about the parts of a simulated second.
    data.series = {series("ft", {{5 * kGiB, 1.0, 0.9, 0.6, true}})};
    view.set_data(data);
    QVERIFY(cell(view, 0, M::network).isEmpty());
  }

  void columns_without_a_figure_are_hidden() {
    ComparisonView view;
    view.resize(900, 300);
    ChartData data = three_methods();
    const auto* table = view.findChild<QTreeView*>();
    view.set_data(data);
    QVERIFY(table->isColumnHidden(M::turning) && !table->isColumnHidden(M::network));
    auto turning = std::make_shared<Result>(*data.series[0].result);
    turning->turning_point = 1;
    data.series[0].result = turning;
    view.set_data(data);
    QVERIFY(!table->isColumnHidden(M::turning));
    QVERIFY(table->columnWidth(M::turning) > 20);
  }

  void nothing_fits_and_nothing_there() {
    ComparisonView view;
    QVERIFY(view.summary().isEmpty());
    ChartData data;
    data.series = {series("data-parallel", {{30 * kGiB, 0.7, 0.5, 0.2, false}})};
    view.set_data(data);
    QCOMPARE(view.model()->best_row(), -1);
    QCOMPARE(view.summary(), QString("No method has a plan that fits"));
  }

  void picks_both_ways() {
    SelectionModel selection;
    ComparisonView view;
    view.set_selection(&selection);
    view.set_data(three_methods());
    view.resize(1200, 200);
    view.show();
    const auto press = [&](int row) {
      const QRect place = view.table()->visualRect(view.table()->model()->index(row, M::time));
      QTest::mouseClick(view.table()->viewport(), Qt::LeftButton, {}, place.center());
    };
    press(0);
    QCOMPARE(selection.point(), std::optional(PickedPoint{"ft", 1}));  // the fastest that fits
    press(1);
    QCOMPARE(selection.point(), std::optional(PickedPoint{"data-parallel", 0}));
    selection.pick_point(PickedPoint{"optcnn", 0});
    QCOMPARE(view.table()->selectionModel()->selectedRows().size(), 1);
    QCOMPARE(view.table()->selectionModel()->selectedRows()[0].data().toString(), QString("OPTCNN"));
    // New results of the same methods keep what is picked.
    QSignalSpy changes(&selection, &SelectionModel::point_changed);
    auto data = three_methods();
    data.series[2] = series("optcnn", {{14 * kGiB, 1.2, 1.0, 0.2, true}});
    view.set_data(data);
    QCOMPARE(changes.count(), 0);
    QCOMPARE(view.table()->selectionModel()->selectedRows().size(), 1);
  }

  void sorted_and_copied() {
    ComparisonView view;
    view.set_data(three_methods());
    view.restore_state({{"sorted_by", int(M::time)}, {"descending", false}});
    const QStringList lines = view.rows_as_text().split(u'\n', Qt::SkipEmptyParts);
    QCOMPARE(lines.size(), 4);
    QVERIFY(lines[0].startsWith("Method\tPlans\tMemory"));
    QVERIFY(lines[1].startsWith("FT"));
    QVERIFY(lines[2].startsWith("OPTCNN"));
    QVERIFY(lines[3].startsWith("DATA-PARALLEL"));  // what does not fit comes last
    QCOMPARE(view.save_state()["sorted_by"].toInt(), int(M::time));
  }
};

QTEST_MAIN(ComparisonViewTest)
#include "comparison_view_test.moc"
