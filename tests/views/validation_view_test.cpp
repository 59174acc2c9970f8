// SPDX-License-Identifier: Apache-2.0
// The Validation tab: what was measured and what was not look different, figures and order are those of the report,
// the selection is shared, two reports stand side by side.
#include <QAbstractItemModelTester>
#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QDoubleSpinBox>
#include <QImage>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QSignalSpy>
#include <QTest>
#include <QToolButton>
#include <QTreeView>
#include <algorithm>

#include "core/validation/step_of.h"
#include "validation/reports.h"
#include "views/common/selection_model.h"
#include "views/common/theme_colors.h"
#include "views/validation/engine_fields.h"
#include "views/validation/validation_bars.h"
#include "views/validation/validation_model.h"
#include "views/validation/validation_scatter.h"
#include "views/validation/validation_view.h"

using namespace turnpoint;
using namespace turnpoint::test;
using namespace turnpoint::views;

namespace {

using Bar = ValidationBars::Bar;

int row_of(const ValidationContent& content, const QString& name) {
  for (std::size_t i = 0; i < content.rows.size(); ++i)
    if (content.rows[i].name == name) return static_cast<int>(i);
  return -1;
}

struct Fixture {
  Fixture() {
    for (QAction* action : {&run, &sample, &calibrate, &open, &save, &csv, &markdown}) action->setText("x");
    run.setText("Run this plan here");
    view.resize(900, 420);
    view.set_selection(&selection);
    view.set_model(named_model());
    view.show();
    (void)QTest::qWaitForWindowExposed(&view);
  }
  QStringList column(int at) {
    QStringList texts;
    const QAbstractItemModel* model = view.table()->model();
    for (int row = 0; row < model->rowCount(); ++row) texts << model->index(row, at).data().toString();
    return texts;
  }
  QAction run, sample, calibrate, open, save, csv, markdown;
  SelectionModel selection;
  ValidationView view{{&run, &sample, &calibrate, &open, &save, &csv, &markdown}};
};

}  // namespace

class ValidationViewTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() { QApplication::setPalette(make_palette(false)); }

  void measured_values_have_two_bars_and_modelled_ones_one_hatched() {
    const auto content = make_validation_content(share(slice_report()), nullptr, named_model());
    ValidationBars bars;
    bars.resize(800, 600);
    bars.set_content(content);
    for (std::size_t i = 0; i < content->rows.size(); ++i) {
      const ValidationRow& row = content->rows[i];
      const auto drawn = bars.bars(static_cast<int>(i));
      if (row.value->measured) {
        QCOMPARE(drawn.size(), std::size_t(2));
        QCOMPARE(drawn[0].kind, Bar::Kind::predicted);
        QCOMPARE(drawn[1].kind, Bar::Kind::measured);
      } else {
        QCOMPARE(drawn.size(), std::size_t(1));
        QCOMPARE(drawn[0].kind, Bar::Kind::modelled);
        QVERIFY2(bars.row_figures(static_cast<int>(i)).endsWith("modelled"), qPrintable(row.name));
        QVERIFY2(!bars.row_figures(static_cast<int>(i)).contains(QChar(0x2192)), qPrintable(row.name));
      }
    }
    QVERIFY(!content->rows[std::size_t(row_of(*content, "Network"))].value->measured);
    QCOMPARE(content->measured[std::size_t(ValidationPart::collectives)], 0);
    QCOMPARE(content->count[std::size_t(ValidationPart::collectives)], 2);
  }

  void bars_are_as_long_as_their_values_and_whiskers_span_the_quartiles() {
    const auto content = make_validation_content(share(ranks_report()), nullptr, nullptr);
    ValidationBars bars;
    bars.resize(900, 600);
    bars.set_content(content);
    const auto step = bars.bars(row_of(*content, "Step")), network = bars.bars(row_of(*content, "Network"));
    QVERIFY(std::abs(step[1].rect.width() / step[0].rect.width() - 0.040 / 0.041) < 0.01);
    QVERIFY(std::abs(network[0].rect.width() / step[0].rect.width() - 0.011 / 0.041) < 0.01);
    const double per_second = step[0].rect.width() / 0.041, left = step[0].rect.left();
    QVERIFY(std::abs(step[1].whisker_from - (left + 0.039 * per_second)) < 1);
    QVERIFY(std::abs(step[1].whisker_to - (left + 0.043 * per_second)) < 1);
    QVERIFY(step[1].whisker_to < 900);
    // Nothing repeats of what an allocator counted.
    const auto memory = bars.bars(row_of(*content, "Peak"));
    QCOMPARE(memory[1].whisker_from, memory[1].whisker_to);
  }

  void what_is_painted_is_filled_open_and_hatched() {
    const auto content = make_validation_content(share(slice_report()), nullptr, nullptr);
    const ThemeColors& colors = theme_colors(QApplication::palette());
    ValidationBars bars;
    bars.resize(900, 700);
    bars.set_content(content);
    const QImage image = bars.grab().toImage();
    const auto share_of = [&](const QRectF& rect, const QColor& color) {
      int same = 0, all = 0;
      for (int y = int(rect.top()) + 2; y < int(rect.bottom()) - 1; ++y)
        for (int x = int(rect.left()) + 2; x < int(rect.left()) + 22; ++x, ++all)
          same += image.pixelColor(x, y) == color;
      return all ? double(same) / all : 0;
    };
    const auto step = bars.bars(row_of(*content, "Step")), network = bars.bars(row_of(*content, "Network"));
    QVERIFY(share_of(step[0].rect, colors.accent) > 0.95);
    QVERIFY(share_of(step[1].rect, colors.base) > 0.95);
    const double hatched = share_of(network[0].rect, colors.accent);
    QVERIFY2(hatched > 0.05 && hatched < 0.7, qPrintable(QString::number(hatched)));
  }

  void operators_come_by_falling_time() {
    const auto content = make_validation_content(share(ranks_report()), nullptr, named_model());
    QStringList names;
    for (const auto& row : content->rows)
      if (row.part == ValidationPart::operators) names << row.name;
    QCOMPARE(names, (QStringList{"fc1", "fc2", "conv1"}));
    QCOMPARE(content->rows[std::size_t(row_of(*content, "fc2"))].op, OperatorId(2));
    // Of another model, a name says nothing.
    ValidationReport other = ranks_report();
    other.model = "vgg16";
    const auto foreign = make_validation_content(share(other), nullptr, named_model());
    QVERIFY(!foreign->rows[std::size_t(row_of(*foreign, "fc2"))].op.valid());
  }

  void the_selection_is_shared_both_ways() {
    Fixture f;
    f.view.set_reports({share(ranks_report())});
    const auto content = make_validation_content(share(ranks_report()), nullptr, named_model());
    const int fc2 = row_of(*content, "fc2"), conv1 = row_of(*content, "conv1"), step = row_of(*content, "Step");
    QTest::mouseClick(f.view.bars()->viewport(), Qt::LeftButton, {}, f.view.bars()->row_rect(fc2).center());
    QCOMPARE(f.selection.operators(), std::set<OperatorId>{OperatorId(2)});
    QVERIFY(f.view.bars()->is_selected(fc2));
    // A value of no operator leaves the selection alone.
    QTest::mouseClick(f.view.bars()->viewport(), Qt::LeftButton, {}, f.view.bars()->row_rect(step).center());
    QCOMPARE(f.selection.operators(), std::set<OperatorId>{OperatorId(2)});
    f.selection.pick_operators({OperatorId(0)});
    QVERIFY(f.view.bars()->is_selected(conv1) && !f.view.bars()->is_selected(fc2));
    QCOMPARE(f.view.table()->selectionModel()->selectedRows().size(), 1);
    QCOMPARE(f.view.table()->selectionModel()->selectedRows()[0].data().toString(), QStringLiteral("conv1"));
    // And back from the table.
    f.view.show_page(ValidationView::Page::table);
    for (int row = 0; row < f.view.table()->model()->rowCount(); ++row)
      if (f.view.table()->model()->index(row, 0).data() == QStringLiteral("fc1"))
        f.view.table()->setCurrentIndex(f.view.table()->model()->index(row, 0));
    QCOMPARE(f.selection.operators(), std::set<OperatorId>{OperatorId(1)});
  }

  void a_picked_operator_out_of_sight_comes_into_sight() {
    Fixture f;
    ValidationReport report = ranks_report();
    auto model = std::make_shared<Model>(*named_model());
    for (int i = 0; i < 200; ++i) {
      Operator op;
      op.name = "layer" + std::to_string(i);
      model->operators.push_back(op);
      report.operators.push_back(timed(op.name, 1e-4 / (i + 1), 1e-4 / (i + 1), 0, 0));
    }
    f.view.set_model(model);
    f.view.set_reports({share(report)});
    const auto content = make_validation_content(share(report), nullptr, model);
    const int last = row_of(*content, "layer199");
    QVERIFY(f.view.bars()->row_rect(last).top() > f.view.bars()->viewport()->height());
    f.selection.pick_operators({OperatorId(202)});
    QVERIFY(f.view.bars()->viewport()->rect().contains(f.view.bars()->row_rect(last)));
  }

  void errors_say_which_way_the_prediction_was_off() {
    const auto words = [](double predicted, double measured, bool bytes) {
      return error_text({"step", predicted, measured, 0, 0, ValueSource::measured}, bytes);
    };
    QCOMPARE(words(4.73e-3, 15.9e-3, false), QStringLiteral("70% too fast"));
    QCOMPARE(words(41e-3, 40e-3, false), QStringLiteral("2.5% too slow"));
    QCOMPARE(words(12, 1, false), QStringLiteral("\u00d712 too slow"));
    QCOMPARE(words(1, 12, false), QStringLiteral("\u00d712 too fast"));
    QCOMPARE(words(0, 12, false), QStringLiteral("100% too fast"));
    QCOMPARE(words(1, 1, false), QStringLiteral("0.0%"));
    QCOMPARE(words(100, 200, true), QStringLiteral("50% too low"));
    QCOMPARE(words(220, 200, true), QStringLiteral("10% too high"));
    QCOMPARE(error_text({"step", 1, std::nullopt, 0, 0, ValueSource::modelled}, false), QStringLiteral("modelled"));
  }

  void what_disturbed_a_run_stands_above_its_figures() {
    Fixture f;
    const auto* shown = f.view.findChild<QLabel*>("validation_disturbed");
    QVERIFY(shown);
    ValidationReport report = ranks_report();
    report.notes = {"7 operators were not measured, so neither is their sum"};
    f.view.set_reports({share(report)});
    QVERIFY(shown->isHidden());
    report.notes.push_back("11 ms of the step are outside of operators and collectives: " + std::string(kRanksWaited) +
                           ", as where something else keeps the machine busy");
    f.view.set_reports({share(report)});
    QVERIFY(shown->isVisible());
    QVERIFY2(shown->text().startsWith("Ranks waited for a processor"), qPrintable(shown->text()));
    QVERIFY(shown->mapTo(&f.view, QPoint()).y() < f.view.bars()->mapTo(&f.view, QPoint()).y());
    report.notes = {std::string(kSearchesRan) + ": the times are longer than they need be"};
    f.view.set_reports({share(report)});
    QVERIFY2(shown->text().startsWith("Searches ran"), qPrintable(shown->text()));
  }

  void the_table_says_what_the_report_says_and_sorts() {
    Fixture f;
    ValidationModel model;
    const QAbstractItemModelTester tester(&model);
    model.set_content(make_validation_content(share(slice_report()), nullptr, nullptr));
    f.view.set_reports({share(ranks_report())});
    using Column = ValidationModel::Column;
    const int step = static_cast<int>(f.column(Column::name).indexOf("Step"));
    QCOMPARE(f.column(Column::predicted)[step], QStringLiteral("41.0\u00a0ms"));
    QCOMPARE(f.column(Column::measured)[step], QStringLiteral("40.0\u00a0ms"));
    QCOMPARE(f.column(Column::error)[step], QStringLiteral("2.5% too slow"));
    QCOMPARE(f.column(Column::spread)[step], QStringLiteral("39.0\u00a0ms \u2013 43.0\u00a0ms"));
    QCOMPARE(f.column(Column::source)[step], QStringLiteral("measured"));
    const int peak = static_cast<int>(f.column(Column::name).indexOf("Peak"));
    QCOMPARE(f.column(Column::predicted)[peak], QStringLiteral("120\u00a0MiB"));
    const QStringList lines = f.view.rows_as_text().split(u'\n');
    QCOMPARE(lines[0], QStringLiteral("Name\tPart\tPredicted\tMeasured\tPrediction is\tSource\tQuartiles"));
    QVERIFY(lines[1].startsWith(QStringLiteral("Step\tStep\t41.0\u00a0ms")));
    f.view.table()->sortByColumn(Column::error, Qt::DescendingOrder);
    QCOMPARE(f.column(Column::name)[0], QStringLiteral("fc1: all-reduce"));
    f.view.set_reports({share(slice_report())});
    const int network = static_cast<int>(f.column(Column::name).indexOf("Network"));
    QCOMPARE(f.column(Column::measured)[network], QString());
    QCOMPARE(f.column(Column::error)[network], QString());
    QCOMPARE(f.column(Column::source)[network], QStringLiteral("modelled"));
  }

  void the_verdict_is_plain() {
    const auto good = make_validation_content(share(ranks_report()), nullptr, nullptr);
    QVERIFY(good->verdict_good && !good->verdict_bad);
    QCOMPARE(good->verdict,
             QStringLiteral("Loss and gradients within 3e\u22127 of the unpartitioned step (fp32); in bf16 "
                            "off by what rounding explains, gradients by 0.03"));
    ValidationReport rough = ranks_report();
    rough.numerics->rounding->loss_error = 0.5;
    QVERIFY(make_validation_content(share(rough), nullptr, nullptr)->verdict.contains("more than rounding explains"));
    ValidationReport wrong = ranks_report();
    wrong.numerics->gradient_error = 0.02;
    const auto bad = make_validation_content(share(wrong), nullptr, nullptr);
    QVERIFY(bad->verdict_bad && !bad->verdict_good);
    QVERIFY2(bad->verdict.contains("fc1.weight") && bad->verdict.contains("Gradients differ"),
             qPrintable(bad->verdict));
    const auto none = make_validation_content(share(slice_report()), nullptr, nullptr);
    QVERIFY(!none->verdict_bad && !none->verdict_good && !none->verdict.isEmpty());
    Fixture f;
    f.view.set_reports({share(wrong)});
    const auto* label = f.view.findChild<QLabel*>("validation_verdict");
    QVERIFY(label);
    QCOMPARE(label->palette().color(QPalette::WindowText), theme_colors(f.view.palette()).error);
  }

  void two_reports_stand_side_by_side() {
    Fixture f;
    ValidationReport later = ranks_report();
    later.calibrated = true;
    later.step.predicted = 0.0402;
    later.operators.pop_back();
    f.view.set_reports({share(ranks_report()), share(later)}, 0);
    QVERIFY(!f.view.compared());
    f.view.list()->setCurrentRow(1, QItemSelectionModel::Select);
    QVERIFY(f.view.compared() && f.view.current());
    QVERIFY(!f.view.current()->calibrated && f.view.compared()->calibrated);
    const auto content = make_validation_content(f.view.current(), f.view.compared(), nullptr);
    const int step = row_of(*content, "Step"), fc2 = row_of(*content, "fc2");
    QCOMPARE(f.view.bars()->bars(step).size(), std::size_t(4));
    QCOMPARE(f.view.bars()->bars(fc2).size(), std::size_t(2));  // the later report does not have it
    QVERIFY(!f.view.table()->isColumnHidden(ValidationModel::other_error));
    // Only reports of one kind are judged together.
    QCOMPARE(f.view.comparable().size(), std::size_t(1));
    QSignalSpy removed(&f.view, &ValidationView::remove_requested);
    f.view.activateWindow();
    f.view.list()->setFocus();
    QTRY_VERIFY(f.view.list()->hasFocus());
    QTest::keyClick(f.view.list(), Qt::Key_Delete);
    QTRY_COMPARE(removed.size(), 1);
    QCOMPARE(removed[0][0].value<QList<int>>().size(), 2);
  }

  void all_plans_are_dots_with_their_errors() {
    Fixture f;
    std::vector<ValidationReportPtr> reports;
    for (int i = 0; i < 5; ++i) {
      ValidationReport report = ranks_report();
      report.plan = "FT, point " + std::to_string(i + 1);
      report.step = timed("step", 0.040 + 0.002 * i, 0.041 + 0.003 * i, 0.040, 0.055);
      reports.push_back(share(report));
    }
    ValidationReport unmeasured = ranks_report();
    unmeasured.step = modelled("step", 0.05);
    reports.push_back(share(unmeasured));
    f.view.set_reports(reports, 0);
    f.view.show_page(ValidationView::Page::plans);
    QCOMPARE(f.view.scatter()->dots(), 5);
    QVERIFY2(f.view.summary_text().contains("<b>1.00</b>"), qPrintable(f.view.summary_text()));
    // The third dot lies right of and above the second, and a click on it shows its report.
    const QPointF second = f.view.scatter()->position_of(1), third = f.view.scatter()->position_of(2);
    QVERIFY(third.x() > second.x() && third.y() < second.y());
    QTest::mouseClick(f.view.scatter(), Qt::LeftButton, {}, third.toPoint());
    QCOMPARE(f.view.list()->currentRow(), 2);
    QCOMPARE(f.view.current(), reports[2]);
    f.view.set_reports({reports[0]}, 0);
    QVERIFY2(f.view.summary_text().contains("three different plans"), qPrintable(f.view.summary_text()));
  }

  void what_was_not_compared_says_why_and_what_would_prove_it() {
    const auto verdict = [](ValidationReport report) {
      return make_validation_content(share(std::move(report)), nullptr, nullptr)->verdict;
    };
    QVERIFY(verdict(slice_report()).contains("Run the whole plan"));
    ValidationReport off = ranks_report();
    off.numerics.reset();
    QVERIFY2(verdict(off).contains("Switch Compare results on"), qPrintable(verdict(off)));
    ValidationReport dear = off;
    dear.notes = {
        "a note",
        "not proven: the step in double would take about 75 s and 1.0 GiB, more than the budget of 60 s or half of the "
        "memory that can be had; to prove it, allow 75 s (--budget of turnpoint-cli validate), or take a smaller "
        "batch"};
    QVERIFY2(verdict(dear).startsWith("Not proven: ") && verdict(dear).contains("allow 75 s, or take"),
             qPrintable(verdict(dear)));
    const auto content = make_validation_content(share(dear), nullptr, nullptr);
    for (const QString& note : content->notes) QVERIFY2(!note.contains("--budget"), qPrintable(note));
    QVERIFY(verdict(ranks_report()).startsWith("Loss and gradients within"));
  }

  void a_narrow_page_cuts_no_word_and_no_figure() {
    Fixture f;
    for (const int width : {1100, 560}) {
      f.view.resize(width, 500);
      QTest::qWait(20);
      for (const char* way : {"cpu", "cpu_slice", "cuda_slice"}) {
        auto* button = f.view.findChild<QToolButton*>(QString::fromLatin1(way));
        if (!button) continue;
        QVERIFY2(button->sizeHint().width() <= button->width(), qPrintable(button->text()));
      }
    }
    QVERIFY(!f.view.findChild<QToolButton*>("cpu_slice")->text().contains("device"));
  }

  void bars_end_before_the_figures() {
    ValidationBars bars;
    bars.set_content(make_validation_content(share(ranks_report()), nullptr, nullptr));
    for (const int width : {900, 420, 330}) {
      bars.resize(width, 600);
      bars.show();
      QTest::qWait(20);
      const double figures = bars.viewport()->width() - 12 - bars.fontMetrics().horizontalAdvance(bars.row_figures(0));
      for (const Bar& bar : bars.bars(0)) {
        QVERIFY2(bar.rect.right() < figures && bar.whisker_to < figures, qPrintable(QString::number(width)));
      }
    }
  }

  void ways_and_budget_are_in_sight_and_kept() {
    Fixture f;
    QSignalSpy changed(&f.view, &ValidationView::way_changed);
    auto* part = f.view.findChild<QToolButton*>("cpu_slice");
    QVERIFY(part && part->isVisible() && part->text().contains("One device's part"));
    QTest::mouseClick(part, Qt::LeftButton);
    QCOMPARE(f.view.way(), ValidationWay::cpu_slice);
    auto* budget = f.view.findChild<QDoubleSpinBox*>("validation_budget");
    QVERIFY(budget && budget->isVisible());
    QCOMPARE(f.view.budget_s(), turnpoint::StepChoice().budget_s);
    budget->setValue(300);
    QCOMPARE(changed.count(), 2);
    Fixture g;
    g.view.restore_state(f.view.save_state());
    QCOMPARE(g.view.budget_s(), 300.0);
    QCOMPARE(g.view.way(), ValidationWay::cpu_slice);
  }

  void an_empty_tab_says_what_it_is_and_why_it_cannot() {
    Fixture f;
    QVERIFY(f.view.is_empty());
    f.view.set_state("The plan is a pipeline, which cannot be run yet.", {});
    auto* page = f.view.findChild<QWidget*>("validation_empty");
    QVERIFY(page && page->isVisible());
    QStringList words;
    for (const auto* label : page->findChildren<QLabel*>()) words << label->text();
    QVERIFY(words.contains(f.view.empty_text()));
    QVERIFY(words.contains("The plan is a pipeline, which cannot be run yet."));
    bool button = false;
    for (const auto* made : page->findChildren<QToolButton*>()) button |= made->defaultAction() == &f.run;
    QVERIFY(button);
    f.view.set_reports({share(ranks_report())});
    QVERIFY(!page->isVisible());
  }

  void what_is_on_show_survives_a_session_and_a_theme() {
    Fixture f;
    f.view.set_reports({share(ranks_report()), share(slice_report())}, 0);
    f.view.show_page(ValidationView::Page::table);
    f.view.table()->sortByColumn(ValidationModel::measured, Qt::DescendingOrder);
    const QJsonObject state = f.view.save_state();
    Fixture g;
    g.view.set_reports({share(ranks_report()), share(slice_report())}, 1);
    g.view.restore_state(state);
    QCOMPARE(g.view.page(), ValidationView::Page::table);
    QCOMPARE(g.view.list()->currentRow(), 0);
    QCOMPARE(g.column(ValidationModel::name), f.column(ValidationModel::name));
    g.view.restore_state({{"page", 77}, {"report", 99}, {"sorted_by", 1000}, {"way", "elsewhere"}});
    QCOMPARE(g.view.page(), ValidationView::Page::table);
    QApplication::setPalette(make_palette(true));
    g.view.grab();
    QApplication::setPalette(make_palette(false));
  }

  /// Whoever listens looks at plans and files: not at every key.
  void typing_is_told_once_it_rests() {
    Fixture f;
    EngineFields& fields = *f.view.engine_fields();
    fields.set_engine(QStringLiteral("PyTorch"), false, true);
    fields.show();
    auto* launcher = fields.findChild<QLineEdit*>(QStringLiteral("engine_launcher"));
    QSignalSpy told(&f.view, &ValidationView::way_changed);
    for (const char key : {'s', 'r', 'u', 'n'}) launcher->insert(QString(QLatin1Char(key)));
    QCOMPARE(told.count(), 0);
    QTRY_COMPARE(told.count(), 1);
    QCOMPARE(fields.launcher(), QStringLiteral("srun"));
    // At once when it ends, and then no more.
    launcher->insert(QStringLiteral(" -n 4"));
    emit launcher->editingFinished();
    QCOMPARE(told.count(), 2);
    emit launcher->editingFinished();
    QTest::qWait(600);
    QCOMPARE(told.count(), 2);
    // The line on the clipboard is that of what stands there.
    connect(&f.view, &ValidationView::way_changed, &fields, [&] { fields.set_command(fields.launcher(), {}); });
    fields.set_command(QStringLiteral("old"), {});
    launcher->setText(QStringLiteral("mpirun"));
    fields.findChild<QToolButton*>(QStringLiteral("engine_copy_command"))->click();
    QCOMPARE(QApplication::clipboard()->text(), QStringLiteral("mpirun"));
  }
};

QTEST_MAIN(ValidationViewTest)
#include "validation_view_test.moc"
