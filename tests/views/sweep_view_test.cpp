// SPDX-License-Identifier: Apache-2.0
// One quantity varied, as it is drawn and told: which figures, where each mark is, what words say, keys and the line
// for values.
#include <QComboBox>
#include <QImage>
#include <QLineEdit>
#include <QPainter>
#include <QPushButton>
#include <QSignalSpy>
#include <QStandardItemModel>
#include <QtTest>

#include "views/common/theme_colors.h"
#include "views/common/toggle_button.h"
#include "views/sweep/sweep_view.h"

using namespace turnpoint;
using namespace turnpoint::views;

namespace {

constexpr std::int64_t kGiB = 1 << 30;
using State = VariationCell::State;

VariationCell cell_of(std::int64_t value, const std::string& method, double time_s, std::int64_t memory) {
  VariationCell cell;
  cell.value = cell.batch = value;
  cell.method = method;
  cell.sequence = 100, cell.devices = 4, cell.memory_limit = 16 * kGiB;
  if (time_s > 0) {
    cell.fastest = VariedPlan{0, time_s, time_s / 2, memory, memory + kGiB, "Data parallel 4."};
  } else {
    cell.state = State::nothing_fits;
    cell.least_bytes = memory;
    cell.reason = "no plan fits 16.0 GiB: the least any needs is 20.0 GiB";
  }
  return cell;
}

/// Batches 8, 16 and 32 with "ft", of which all fit, and "fsdp", of which the last needs 20 GiB.
std::shared_ptr<Variation> some_sweep(bool priced = false) {
  auto sweep = std::make_shared<Variation>();
  sweep->axis = {Varied::batch, {8, 16, 32}};
  sweep->methods = {"ft", "fsdp"};
  sweep->own = 16;
  sweep->model = "gpt2", sweep->hardware = "1 x 4 V100";
  sweep->scenario =
      R"({"model": "builtin:gpt2", "hardware": "v100-16gb-1x4", "batch": 16, "sequence": 100, "precision": "bf16",
          "optimizer": "sgd"})";
  for (const std::int64_t value : {8, 16, 32}) {
    sweep->put(cell_of(value, "ft", 0.1 * double(value) / 8, value / 4 * kGiB));
    sweep->put(cell_of(value, "fsdp", value < 32 ? 0.2 * double(value) / 8 : 0, value < 32 ? kGiB : 20 * kGiB));
  }
  sweep->cells.front().turning = VariedPlan{1, 0.4, 0.3, kGiB, 2 * kGiB, "ZeRO."};
  for (VariationCell& cell : sweep->cells)
    if (priced) cell.price_per_hour = 3.6;
  return sweep;
}

SweepData data_of(std::shared_ptr<const Variation> sweep) {
  SweepData data;
  data.sweep = std::move(sweep);
  data.labels = {{"ft", "FT"}, {"fsdp", "Fully sharded"}};
  data.current = 16;
  return data;
}

int pixels_of(const QImage& image, QPointF at, const QColor& color) {
  int found = 0;
  for (int y = int(at.y()) - 4; y <= int(at.y()) + 4; ++y)
    for (int x = int(at.x()) - 4; x <= int(at.x()) + 4; ++x)
      found += image.rect().contains(x, y) && image.pixelColor(x, y) == color;
  return found;
}

QImage picture_of(const SweepChart& chart) {
  QImage image(chart.size(), QImage::Format_RGB32);
  QPainter painter(&image);
  painter.setRenderHint(QPainter::Antialiasing);
  chart.paint_to(painter, image.size());
  return image;
}

}  // namespace

class SweepViewTest : public QObject {
  Q_OBJECT

 private slots:
  void figures_are_of_the_plan_that_is_shown() {
    SweepData data = data_of(some_sweep());
    const VariationCell& first = *data.sweep->find(8, "ft");
    QCOMPARE(shown_value(data, first, SweepFigure::time).value(), 0.1);
    QCOMPARE(shown_value(data, first, SweepFigure::memory).value(), double(3 * kGiB));  // the peak, not the sum
    QCOMPARE(shown_value(data, first, SweepFigure::third).value(), 8000.0);             // 8 x 100 tokens in 0.1 s
    QCOMPARE(figure_title(data, SweepFigure::third), QString("Tokens per second"));
    data.simulated = true;
    QCOMPARE(shown_value(data, first, SweepFigure::time).value(), 0.05);
    QCOMPARE(shown_value(data, first, SweepFigure::third).value(), 16000.0);
    QCOMPARE(figure_title(data, SweepFigure::time), QString("Time of a step, simulated"));
    data.simulated = false, data.turning = true;
    QCOMPARE(shown_value(data, first, SweepFigure::time).value(), 0.4);
    QCOMPARE(shown_value(data, *data.sweep->find(16, "ft"), SweepFigure::time).value(), 0.2);  // has none
    QVERIFY(!shown_value(data, *data.sweep->find(32, "fsdp"), SweepFigure::memory));
    data.turning = false, data.sweep = some_sweep(true);
    // Four devices for 3.6 an hour: 0.0004 for 800 tokens.
    QVERIFY(std::abs(shown_value(data, *data.sweep->find(8, "ft"), SweepFigure::third).value() - 0.5) < 1e-12);
    QCOMPARE(figure_title(data, SweepFigure::third), QString("Price per million tokens"));
  }

  void words() {
    SweepData data = data_of(some_sweep(true));
    QCOMPARE(subject_text(*data.sweep), QString("gpt2 on 1 x 4 V100, 100 tokens, bf16, sgd"));
    const QString text = value_text(data, 16, "fsdp");
    QVERIFY2(text.startsWith("Batch 16 (as it stands)\nFT: 200"), qPrintable(text));
    QVERIFY(text.contains("Fully sharded: ") && text.contains("$1.00 per million tokens"));
    QVERIFY(text.endsWith("    Data parallel 4."));
    QVERIFY(value_text(data, 32).contains("Fully sharded: no plan fits 16.0 GiB: the least any needs is 20.0 GiB"));
    QVERIFY(!value_text(data, 32).contains("Data parallel"));
    auto partial = std::make_shared<Variation>(*some_sweep());
    partial->cells.pop_back();
    QVERIFY(value_text(data_of(partial), 32).contains("not asked yet"));
    const QString told = describe(data);
    QVERIFY(told.contains("Batch 8; FT: ") && told.contains("Batch 32; FT: "));
    QCOMPARE(values_text({8, 16, 32}), QString("8..32"));
    QCOMPARE(values_text({8, 16}), QString("8,16"));
    QCOMPARE(values_text({8, 16, 24}), QString("8,16,24"));
    QCOMPARE(value_words(Varied::micro_batches, 1), QString("1 micro-batch"));
    const QStringList rows = sweep_rows(data).split('\n', Qt::SkipEmptyParts);
    QCOMPARE(rows.size(), 7);
    for (const QString& row : rows) QCOMPARE(row.count('\t'), rows.front().count('\t'));
  }

  void marks_are_where_the_figures_are() {
    SweepChart chart;
    chart.resize(900, 320);
    chart.set_data(data_of(some_sweep()));
    const auto y = [&](int value, const char* method, SweepFigure figure) {
      return chart.position_of(*chart.data().sweep->find(value, method), figure).value();
    };
    // Abreast, over the same values: each column at the same place of its plot, by powers of two.
    const QRectF time = chart.plot_area(SweepFigure::time), memory = chart.plot_area(SweepFigure::memory);
    QVERIFY(time.right() < memory.left() && memory.right() < chart.plot_area(SweepFigure::third).left());
    for (const int value : {8, 16, 32})
      QCOMPARE(y(value, "ft", SweepFigure::time).x() - time.left(),
               y(value, "ft", SweepFigure::memory).x() - memory.left());
    QVERIFY(std::abs(y(8, "ft", SweepFigure::time).x() + y(32, "ft", SweepFigure::time).x() -
                     2 * y(16, "ft", SweepFigure::time).x()) < 1e-9);
    // 0.1, 0.2 and 0.4 s lie so on a linear axis from 0.
    const auto up = [&](int value) { return time.bottom() - y(value, "ft", SweepFigure::time).y(); };
    QVERIFY(std::abs(up(16) - 2 * up(8)) < 1e-9 && std::abs(up(32) - 4 * up(8)) < 1e-9);
    // What does not fit is above all that does, and in the memory's figure at the least it needs.
    QVERIFY(y(32, "fsdp", SweepFigure::time).y() < y(32, "ft", SweepFigure::time).y());
    const auto bytes = [&](int value, const char* method) {
      return memory.bottom() - y(value, method, SweepFigure::memory).y();
    };
    QVERIFY(std::abs(bytes(32, "fsdp") / bytes(16, "ft") - 20.0 / 5) < 1e-9);
    QVERIFY(!chart.position_of(*chart.data().sweep->find(32, "fsdp"), SweepFigure::third));
    // In a narrow place one below the other.
    chart.resize(400, 600);
    QVERIFY(chart.plot_area(SweepFigure::time).bottom() < chart.plot_area(SweepFigure::memory).top());
  }

  void where_the_pointer_was_is_forgotten_with_the_values() {
    SweepChart chart, fresh;
    for (SweepChart* one : {&chart, &fresh}) one->resize(900, 320);
    chart.set_data(data_of(some_sweep()));
    const QImage before = picture_of(chart);
    const QPointF at = chart.position_of(*chart.data().sweep->find(8, "ft"), SweepFigure::time).value();
    QMouseEvent move(QEvent::MouseMove, at, at, Qt::NoButton, Qt::NoButton, Qt::NoModifier);
    QCoreApplication::sendEvent(&chart, &move);
    QVERIFY(picture_of(chart) != before);
    auto others = some_sweep();
    others->axis.quantity = Varied::devices;
    chart.set_data(data_of(others));
    fresh.set_data(data_of(others));
    QVERIFY(picture_of(chart) == picture_of(fresh));
  }

  void far_apart_they_are_on_a_logarithmic_axis() {
    auto sweep = some_sweep();
    for (VariationCell& cell : sweep->cells)
      if (cell.fastest) cell.fastest->time_s = std::pow(10, double(cell.value) / 16);
    SweepChart chart;
    chart.resize(900, 320);
    chart.set_data(data_of(sweep));
    const auto at = [&](int value) {
      return chart.position_of(*chart.data().sweep->find(value, "ft"), SweepFigure::time).value().y();
    };
    QVERIFY(std::abs((at(16) - at(32)) - 2 * (at(8) - at(16))) < 1e-9);  // a decade, and half of one
  }

  void it_is_drawn_data() {
    QTest::addColumn<bool>("dark");
    QTest::newRow("light") << false;
    QTest::newRow("dark") << true;
  }
  void it_is_drawn() {
    QFETCH(bool, dark);
    SweepChart chart;
    chart.setPalette(make_palette(dark));
    chart.resize(900, 320);
    chart.set_data(data_of(some_sweep()));
    const ThemeColors& colors = theme_colors(chart.palette());
    const QImage image = picture_of(chart);
    for (const SweepFigure figure : {SweepFigure::time, SweepFigure::memory, SweepFigure::third})
      for (const char* method : {"ft", "fsdp"}) {
        const auto at = chart.position_of(*chart.data().sweep->find(8, method), figure);
        QVERIFY(at && pixels_of(image, *at, colors.method(method)) > 10);
      }
    // Hollow where nothing fits.
    const auto none = chart.position_of(*chart.data().sweep->find(32, "fsdp"), SweepFigure::time);
    QVERIFY(image.pixelColor(none->toPoint()) == colors.base);
    QVERIFY(pixels_of(image, *none, colors.method("ft")) == 0);
    // Of another scenario it is paler.
    SweepData stale = data_of(some_sweep());
    stale.stale = true;
    chart.set_data(stale);
    const auto at = chart.position_of(*chart.data().sweep->find(8, "ft"), SweepFigure::time);
    QCOMPARE(pixels_of(picture_of(chart), *at, colors.method("ft")), 0);
    SweepData nothing;
    nothing.nothing = "Nothing yet";
    chart.set_data(nothing);
    QVERIFY(picture_of(chart) != image);
    QCOMPARE(chart.accessibleDescription(), QString("Nothing yet"));
  }

  void a_click_picks_what_is_nearest() {
    SweepChart chart;
    chart.resize(900, 320);
    chart.set_data(data_of(some_sweep()));
    QSignalSpy requested(&chart, &SweepChart::requested);
    const auto click = [&](int value, const char* method) {
      const auto at = chart.position_of(*chart.data().sweep->find(value, method), SweepFigure::memory);
      QTest::mouseClick(&chart, Qt::LeftButton, {}, at->toPoint());
    };
    click(16, "fsdp");
    QVERIFY(chart.picked() == SweepChart::Picked({16, "fsdp"}));
    click(32, "ft");
    QVERIFY(chart.picked() == SweepChart::Picked({32, "ft"}));
    QTest::mouseClick(&chart, Qt::LeftButton, {}, QPoint(2, 2));
    QVERIFY(!chart.picked());
    // By keys, from the scenario's own value.
    QTest::keyClick(&chart, Qt::Key_Right);
    QVERIFY(chart.picked() == SweepChart::Picked({16, "ft"}));
    QTest::keyClick(&chart, Qt::Key_Right);
    QTest::keyClick(&chart, Qt::Key_Right);  // there is no further
    QTest::keyClick(&chart, Qt::Key_Down);
    QVERIFY(chart.picked() == SweepChart::Picked({32, "fsdp"}));
    QCOMPARE(requested.count(), 0);
    QTest::keyClick(&chart, Qt::Key_Return);
    QCOMPARE(requested.count(), 1);
    QTest::keyClick(&chart, Qt::Key_Escape);
    QVERIFY(!chart.picked());
    // What is picked goes with the answers.
    click(16, "ft");
    chart.set_data({});
    QVERIFY(!chart.picked());
  }

  void values_that_mean_nothing_cannot_be_run() {
    SweepView view;
    QSignalSpy run(&view, &SweepView::run_requested);
    view.set_state({false, -1, {}, true});
    view.set_offers({{Varied::batch, {}, {8, 16, 32}},
                     {Varied::sequence, "lenet: has no sequence to choose", {}},
                     {Varied::devices, {}, {1, 3}}});
    QCOMPARE(view.values_line()->text(), QString("8..32"));
    QVERIFY(view.run_button()->isEnabled());
    view.values_line()->selectAll();
    QTest::keyClicks(view.values_line(), "8,sixteen");
    QVERIFY(!view.run_button()->isEnabled());
    QVERIFY2(view.state_words().contains("'sixteen' is no whole number"), qPrintable(view.state_words()));
    QTest::keyClick(view.values_line(), Qt::Key_Return);
    QCOMPARE(run.count(), 0);
    view.values_line()->selectAll();
    QTest::keyClicks(view.values_line(), "8, 24");
    view.run_button()->click();
    QCOMPARE(run.count(), 1);
    const auto axis = run.takeFirst().at(0).value<VariedAxis>();
    QVERIFY(axis.quantity == Varied::batch && axis.values == std::vector<std::int64_t>({8, 24}));
    // What was typed stays with its quantity; one that cannot be varied says why.
    view.choose(Varied::devices);
    QCOMPARE(view.values_line()->text(), QString("1,3"));
    view.choose(Varied::sequence);
    QVERIFY(!view.run_button()->isEnabled() && view.state_words() == "lenet: has no sequence to choose");
    const auto* items = qobject_cast<QStandardItemModel*>(view.quantity_box()->model());
    QVERIFY(!items->item(1)->isEnabled() && items->item(0)->isEnabled() && !items->item(4)->isEnabled());
    view.choose(Varied::batch);
    QCOMPARE(view.values_line()->text(), QString("8, 24"));
    view.turning_button()->click();
    SweepView again;
    again.set_offers({{Varied::batch, {}, {8, 16, 32}}});
    again.restore_state(view.save_state());
    QVERIFY(again.values_line()->text() == "8, 24" && again.turning());
  }

  void while_it_runs_it_can_be_stopped() {
    SweepView view;
    QSignalSpy stop(&view, &SweepView::stop_requested), run(&view, &SweepView::run_requested);
    view.set_offers({{Varied::batch, {}, {8, 16, 32}}});
    view.set_state({true, 0.25, "batch 8, ft: bounds", true});
    QCOMPARE(view.run_button()->text(), QString("Stop"));
    QCOMPARE(view.state_words(), QString("25% batch 8, ft: bounds"));
    QTest::keyClick(view.values_line(), Qt::Key_Return);
    view.run_button()->click();
    QVERIFY(stop.count() == 1 && run.count() == 0);
  }

  void it_says_whose_scenario_it_is_of() {
    SweepView view;
    view.set_data(data_of(some_sweep()));
    QCOMPARE(view.subject_words(), QString("gpt2 on 1 x 4 V100, 100 tokens, bf16, sgd"));
    SweepData stale = data_of(some_sweep());
    stale.stale = true;
    view.set_data(stale);
    QVERIFY(view.subject_words().startsWith("Of another scenario than the one that is open: gpt2 on"));
    view.set_data({});
    QVERIFY(view.subject_words().isEmpty());
  }
};

QTEST_MAIN(SweepViewTest)
#include "sweep_view_test.moc"
