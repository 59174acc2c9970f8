// SPDX-License-Identifier: Apache-2.0
// The parallelism tab without a window around it: prices, words, what is drawn, mouse and keyboard, export.
#include <QAction>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QFile>
#include <QPushButton>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QToolButton>
#include <QToolTip>
#include <QVBoxLayout>
#include <QtTest>
#include <cmath>

#include "views/common/theme_colors.h"
#include "views/common/toggle_button.h"
#include "views/parallelism/parallelism_chart.h"
#include "views/parallelism/parallelism_view.h"

using namespace turnpoint::views;

namespace {

constexpr std::int64_t kGiB = std::int64_t(1) << 30;
using State = ParallelismPoint::State;

ParallelismPoint fits(int devices, double time_s, double gib = 9.6) {
  return {devices, State::fits, false, time_s, static_cast<std::int64_t>(gib * double(kGiB)), {}};
}
ParallelismPoint misfit(int devices, double gib) {
  return {devices, State::does_not_fit, false, 1, static_cast<std::int64_t>(gib * double(kGiB)), {}};
}

/// FT from 4 devices on; data-parallel from 16; OptCNN refused on one device.
ParallelismData example() {
  ParallelismData data;
  data.counts = {1, 2, 4, 8, 16, 32};
  data.devices = 8;
  data.batch = 256;
  data.device = QStringLiteral("V100-16GB");
  data.memory_limit = 16 * kGiB;
  data.price_per_hour = 1.24;
  data.lines.push_back({"ft",
                        QStringLiteral("FT"),
                        {misfit(1, 60), misfit(2, 31), fits(4, 4.4), fits(8, 1.9), fits(16, 0.93), fits(32, 0.7)}});
  data.lines.push_back({"data-parallel",
                        QStringLiteral("Data-parallel"),
                        {misfit(1, 60), misfit(2, 33), misfit(4, 25), misfit(8, 19), fits(16, 1.1), fits(32, 0.8)}});
  data.lines.push_back({"optcnn",
                        QStringLiteral("OptCNN"),
                        {{1, State::refused, false, 0, 0, QStringLiteral("needs two devices")},
                         misfit(2, 40),
                         misfit(4, 30),
                         fits(8, 1.8, 15.5),
                         fits(16, 0.9),
                         fits(32, 0.66)}});
  return data;
}

QImage picture(ParallelismView& view, bool dark) {
  view.tool_bar()->hide();  // it is a dock's title in the window
  view.setPalette(make_palette(dark));
  view.resize(980, 400);
  return view.grab().toImage();
}

int pixels(const QImage& image, const QColor& color) {
  int count = 0;
  for (int y = 0; y < image.height(); ++y)
    for (int x = 0; x < image.width(); ++x) {
      const QColor here = image.pixelColor(x, y);
      if (std::abs(here.red() - color.red()) + std::abs(here.green() - color.green()) +
              std::abs(here.blue() - color.blue()) <
          12)
        ++count;
    }
  return count;
}

}  // namespace

class ParallelismViewTest : public QObject {
  Q_OBJECT

 private slots:
  /// Whose peak could not be had says so, fit or not; the others say nothing of it.
  void plain_sums_are_said() {
    ParallelismData data = example();
    ParallelismPoint& point = data.lines.front().points.front();
    point.state = ParallelismPoint::State::fits;
    point.time_s = 1;
    QVERIFY(!column_text(data, point.devices).contains("plain sum"));
    point.no_peak = "because";
    QVERIFY2(column_text(data, point.devices).contains("memory is a plain sum, as no peak could be had: because"),
             qPrintable(column_text(data, point.devices)));
    point.state = ParallelismPoint::State::does_not_fit;
    QVERIFY(column_text(data, point.devices).contains("no peak could be had: because"));
  }

  void the_cheapest_count_is_the_least_device_time() {
    const ParallelismData data = example();
    // 4 x 4.4 = 17.6, 8 x 1.9 = 15.2, 16 x 0.93 = 14.9, 32 x 0.7 = 22.4 device-seconds.
    QCOMPARE(data.cheapest()->devices, 16);
    QVERIFY(std::abs(*data.price(*data.cheapest()) - 1000 * 1.24 * 16 * 0.93 / 3600) < 1e-9);
    QVERIFY(!data.price(*data.lines[0].at(1)));  // what does not run costs nothing
    ParallelismData free = data;
    free.price_per_hour.reset();
    QVERIFY(!free.cheapest());
    ParallelismData hopeless = data;
    for (auto& point : hopeless.lines[0].points) point.state = State::does_not_fit;
    QVERIFY(!hopeless.cheapest());
    QVERIFY(data.complete());
    ParallelismData partly = data;
    partly.lines[1].points[2].state = State::pending;
    QVERIFY(!partly.complete());
    partly = data;
    partly.lines[0].points[3].coarse = true;
    QVERIFY(!partly.complete());
  }

  void prices_have_three_digits_and_a_sign() {
    QCOMPARE(price_text(4.267), QStringLiteral("$4.27"));
    QCOMPARE(price_text(0.04267), QStringLiteral("$0.0427"));
    QCOMPARE(price_text(0.7), QStringLiteral("$0.700"));
    QCOMPARE(price_text(426.7), QStringLiteral("$427"));
    QCOMPARE(price_text(12345), QStringLiteral("$12\u2009345"));
  }

  void words_of_a_count_name_units_and_reasons() {
    const QString four = column_text(example(), 4);
    QVERIFY2(four.contains(QStringLiteral("4 devices")), qPrintable(four));
    QVERIFY2(four.contains(QStringLiteral("FT: 4\u2009400\u00a0ms · 9.6\u00a0GiB")), qPrintable(four));
    QVERIFY2(four.contains(QStringLiteral("samples/s")) && four.contains(u'$'), qPrintable(four));
    QVERIFY2(four.contains(QStringLiteral("Data-parallel: does not fit: needs 25.0\u00a0GiB of 16.0\u00a0GiB")),
             qPrintable(four));
    QVERIFY(column_text(example(), 1).contains(QStringLiteral("needs two devices")));
    QVERIFY(column_text(example(), 1).startsWith(QStringLiteral("1 device\n")));
    const QString all = describe(example());
    QVERIFY2(all.contains(QStringLiteral("cheapest: 16 devices")), qPrintable(all));
  }

  void the_largest_batch_has_words_numbers_and_a_scale_of_its_own() {
    ParallelismData data = example();
    data.largest_batch = true;
    const std::int64_t batches[] = {0, 0, 80, 176, 384, 768};
    for (std::size_t i = 0; i < data.counts.size(); ++i) data.lines[0].points[i].batch = batches[i];
    data.lines[0].points[1].batch = 1;
    data.lines[0].points[3].bound = QStringLiteral("a batch of 176 fits, and one of 184 does not");
    // A million samples: 12,500 x 4.4 s x 4, 5,682 x 1.9 x 8, 2,604 x 0.93 x 16, 1,302 x 0.7 x 32 device-seconds.
    QVERIFY(std::abs(*data.price(*data.lines[0].at(4)) - 1e6 / 80 * 4.4 * 4 * 1.24 / 3600) < 1e-9);
    QCOMPARE(data.cheapest()->devices, 32);
    const QString eight = column_text(data, 8);
    QVERIFY2(eight.contains(QStringLiteral("FT: batch 176 · 1\u2009900\u00a0ms · 9.6\u00a0GiB · 93 samples/s")),
             qPrintable(eight));
    QVERIFY2(eight.contains(QStringLiteral("one of 184 does not")), qPrintable(eight));
    QVERIFY2(eight.contains(QStringLiteral("per 1 000 000 samples")), qPrintable(eight));
    QVERIFY(column_text(data, 2).contains(QStringLiteral("not even a batch of 1 fits")));
    const QStringList rows = parallelism_csv(data).split(u'\n', Qt::SkipEmptyParts);
    QVERIFY(rows[0].endsWith(QStringLiteral(",price_per_1000000_samples,batch")));
    for (const QString& row : rows) QCOMPARE(row.count(u','), 7);
    QVERIFY(rows[4].endsWith(QStringLiteral(",176")));
    ParallelismView view;
    view.resize(900, 380);
    view.set_data(data);
    // More is higher, and twice the batch is twice as high.
    const auto& line = data.lines[0];
    const double bottom = view.chart()->plot_area().bottom();
    const double four = bottom - view.chart()->position_of(*line.at(4)).y();
    const double sixteen = bottom - view.chart()->position_of(*line.at(16)).y();
    QVERIFY2(std::abs(sixteen / four - 384.0 / 80) < 1e-6, qPrintable(QString::number(sixteen / four)));
    QSignalSpy asked(&view, &ParallelismView::batch_requested);
    view.chart()->set_picked(16);
    QCOMPARE(view.use_button()->text(), QStringLiteral("Use 16 devices, batch 384"));
    view.use_button()->click();
    QCOMPARE(asked.size(), 1);
    QCOMPARE(asked[0][0].toInt(), 16);
    QCOMPARE(asked[0][1].toLongLong(), 384);
    view.chart()->set_throughput(true);
    const double per_second = bottom - view.chart()->position_of(*line.at(16)).y();
    const double of_four = bottom - view.chart()->position_of(*line.at(4)).y();
    QVERIFY(std::abs(per_second / of_four - (384 / 0.93) / (80 / 4.4)) < 1e-6);
  }

  void numbers_can_be_taken_away() {
    const QString csv = parallelism_csv(example());
    const QStringList rows = csv.split(u'\n', Qt::SkipEmptyParts);
    QCOMPARE(rows.size(), 1 + 3 * 6);
    QCOMPARE(rows[0].count(u','), 6);
    for (const QString& row : rows) QCOMPARE(row.count(u','), 6);
    QVERIFY(rows[3].startsWith(QStringLiteral("ft,4,fits,4.4")));
    QVERIFY(rows[1].startsWith(QStringLiteral("ft,1,does not fit,,")));  // no time for what does not fit
    QVERIFY(rows[13].startsWith(QStringLiteral("optcnn,1,refused,,,,")));
    QTemporaryDir folder;
    ParallelismView view;
    view.resize(900, 380);
    view.set_data(example());
    const QString path = folder.filePath(QStringLiteral("chart.svg"));
    QVERIFY(view.chart()->save_svg(path));
    QFile file(path);
    QVERIFY(file.open(QIODevice::ReadOnly));
    const QByteArray svg = file.readAll();
    if (const QString pictures = qEnvironmentVariable("TURNPOINT_PICTURES"); !pictures.isEmpty())
      QVERIFY(QFile::copy(path, pictures + "/parallelism.svg"));
    QVERIFY(svg.contains("<svg") && svg.contains("cheapest: 16 devices, $5.13"));
    QVERIFY(!view.chart()->save_svg(folder.filePath(QStringLiteral("absent/chart.svg"))));
  }

  void lines_fall_with_devices_and_leave_gaps() {
    ParallelismView view;
    view.resize(980, 400);
    const ParallelismData data = example();
    view.set_data(data);
    ParallelismChart& chart = *view.chart();
    const ParallelismLine& ft = data.lines[0];
    QPointF before;
    for (const auto& point : ft.points) {
      if (!point.fits()) continue;
      const QPointF at = chart.position_of(point);
      QVERIFY(chart.plot_area().contains(at));
      if (!before.isNull()) QVERIFY(at.x() > before.x() && at.y() > before.y());
      before = at;
    }
    chart.set_throughput(true);
    QVERIFY(chart.position_of(ft.points[4]).y() < chart.position_of(ft.points[3]).y());
    chart.set_logarithmic(true);
    // Doubling devices at perfect speed-up is the same step everywhere on a logarithmic axis.
    const double step = chart.position_of(fits(8, 2)).y() - chart.position_of(fits(16, 1)).y();
    QVERIFY(std::abs(step - (chart.position_of(fits(4, 4)).y() - chart.position_of(fits(8, 2)).y())) < 1e-6);
  }

  void both_themes_show_lines_misfits_and_price() {
    for (const bool dark : {false, true}) {
      ParallelismView view;
      view.set_data(example());
      const QImage image = picture(view, dark);
      const ThemeColors& colors = theme_colors(make_palette(dark));
      QVERIFY(pixels(image, colors.accent) > 200);
      QVERIFY(pixels(image, colors.network[0]) > 60);
      QVERIFY(pixels(image, colors.no_fit_area) > 5000);
      QVERIFY(pixels(image, colors.method("optcnn")) > 20);
      QVERIFY(view.chart()->labels_drawn() >= 6);
      if (const QString folder = qEnvironmentVariable("TURNPOINT_PICTURES"); !folder.isEmpty()) {
        QVERIFY(image.save(folder + (dark ? "/parallelism-dark.png" : "/parallelism-light.png")));
        view.log_button()->setChecked(true);
        view.throughput_button()->setChecked(true);
        QVERIFY(picture(view, dark).save(folder + (dark ? "/throughput-dark.png" : "/throughput-light.png")));
      }
      ParallelismData unpriced = example();
      unpriced.price_per_hour.reset();
      view.set_data(unpriced);
      QVERIFY(pixels(picture(view, dark), colors.network[0]) < 30);
    }
  }

  void words_stand_where_there_is_no_chart() {
    ParallelismView view;
    ParallelismData empty;
    empty.nothing = QStringLiteral("Open a model");
    view.set_data(empty);
    const QImage image = picture(view, false);
    QVERIFY(pixels(image, theme_colors(make_palette(false)).secondary) > 10);
    QVERIFY(!view.export_button()->isEnabled());
    QCOMPARE(view.chart()->count_at({300, 200}), 0);
    QCOMPARE(view.chart()->accessibleDescription(), QStringLiteral("Open a model"));
  }

  void a_click_offers_and_a_double_click_takes() {
    ParallelismView view;
    view.resize(980, 400);
    view.set_data(example());
    view.show();
    QVERIFY(QTest::qWaitForWindowExposed(&view));
    QSignalSpy taken(&view, &ParallelismView::devices_requested);
    QVERIFY(!view.use_button()->isEnabled());
    const auto at = [&](int devices) { return view.chart()->position_of(fits(devices, 1)).toPoint(); };
    QTest::mouseClick(view.chart(), Qt::LeftButton, {}, at(16));
    QCOMPARE(view.chart()->picked(), 16);
    QVERIFY(view.use_button()->isEnabled());
    QCOMPARE(view.use_button()->text(), QStringLiteral("Use 16 devices"));
    QCOMPARE(taken.size(), 0);
    QTest::mouseClick(view.use_button(), Qt::LeftButton);
    QCOMPARE(taken.size(), 1);
    QCOMPARE(taken[0][0].toInt(), 16);
    // The scenario's own count is no offer.
    QTest::mouseClick(view.chart(), Qt::LeftButton, {}, at(8));
    QVERIFY(!view.use_button()->isEnabled());
    QTest::mouseDClick(view.chart(), Qt::LeftButton, {}, at(32));
    QCOMPARE(taken.size(), 2);
    QCOMPARE(taken[1][0].toInt(), 32);
    view.chart()->setFocus();
    QTest::keyClick(view.chart(), Qt::Key_Left);
    QCOMPARE(view.chart()->picked(), 16);
    QTest::keyClick(view.chart(), Qt::Key_Return);
    QCOMPARE(taken.size(), 3);
    QTest::keyClick(view.chart(), Qt::Key_Escape);
    QCOMPARE(view.chart()->picked(), 0);
    QTest::keyClick(view.chart(), Qt::Key_Left);  // from the scenario's count
    QCOMPARE(view.chart()->picked(), 4);
    QTest::mouseMove(view.chart(), at(4));
    QVERIFY(QTest::qWaitFor([] { return QToolTip::text().contains(QStringLiteral("4 devices")); }, 60000));
  }

  void undo_passes_a_price_that_was_taken_over() {
    QWidget window;
    auto* column = new QVBoxLayout(&window);
    auto* view = new ParallelismView(&window);
    column->addWidget(view->tool_bar());
    column->addWidget(view);
    QAction undo(&window);
    undo.setShortcut(QKeySequence(QStringLiteral("Ctrl+Z")));
    window.addAction(&undo);
    QSignalSpy undone(&undo, &QAction::triggered);
    window.show();
    window.activateWindow();
    QVERIFY(QTest::qWaitForWindowActive(&window));
    view->price_box()->setFocus();
    view->price_box()->selectAll();
    QTest::keyClicks(view->price_box(), QStringLiteral("3"));
    QTest::keyClick(view->price_box(), Qt::Key_Return);
    QTest::keyClick(view->price_box(), Qt::Key_Z, Qt::ControlModifier);
    QCOMPARE(undone.count(), 1);
  }

  void price_range_and_state_are_shown_and_reported() {
    ParallelismView view;
    QSignalSpy priced(&view, &ParallelismView::price_edited), ranged(&view, &ParallelismView::range_chosen);
    view.set_price(1.24, true);
    QCOMPARE(view.price_box()->value(), 1.24);
    QVERIFY(view.price_box()->font().bold());
    QCOMPARE(priced.size(), 0);  // showing is not editing
    view.price_box()->setValue(2);
    QCOMPARE(priced.size(), 1);
    view.set_ranges({16, 32, 64}, 32);
    QCOMPARE(view.range_box()->currentData().toInt(), 32);
    QCOMPARE(ranged.size(), 0);
    QVERIFY(view.range_box()->isEnabled());
    view.set_ranges({8}, 8);
    QVERIFY(!view.range_box()->isEnabled());
    view.set_state({true, 0.25, {}, false, false});
    QCOMPARE(view.state_words(), QStringLiteral("searching, 25%"));
    QVERIFY(!view.run_button()->isHidden());
    QSignalSpy stopped(&view, &ParallelismView::stop_requested), resumed(&view, &ParallelismView::resume_requested);
    view.run_button()->click();
    QCOMPARE(stopped.size(), 1);
    view.set_state({false, -1, QStringLiteral("stopped"), false, true});
    view.run_button()->click();
    QCOMPARE(resumed.size(), 1);
    view.set_state({});
    QVERIFY(view.run_button()->isHidden());
    view.throughput_button()->setChecked(true);
    const QJsonObject state = view.save_state();
    ParallelismView other;
    other.restore_state(state);
    QVERIFY(other.throughput_button()->isChecked() && other.chart()->throughput());
    QVERIFY(!other.log_button()->isChecked());
  }
};

QTEST_MAIN(ParallelismViewTest)
#include "parallelism_view_test.moc"
