// SPDX-License-Identifier: Apache-2.0
// The tab of a study of batches: what its figures draw, where, what its words say, and its button.
#include <QComboBox>
#include <QPushButton>
#include <QSignalSpy>
#include <QtTest>
#include <cmath>
#include <fstream>
#include <iterator>

#include "views/common/theme_colors.h"
#include "views/study/study_view.h"

using namespace turnpoint;
using namespace turnpoint::views;

namespace {

StudyCell answer(const char* model, int devices, const char* method, std::int64_t batch, double time_s,
                 bool at_reported, const char* graph = "") {
  StudyCell made;
  made.model = model, made.devices = devices, made.method = method, made.graph = graph;
  made.batch = batch, made.fits = time_s > 0, made.time_s = time_s, made.at_reported = at_reported;
  made.memory_bytes = std::int64_t(20) << 30;
  return made;
}

/// Two networks on one, two and four devices.
std::shared_ptr<BatchStudy> some_study() {
  auto study = std::make_shared<BatchStudy>();
  study->title = "A study", study->source = "arXiv 1", study->made = "2026-01-02";
  study->says = {"It is fast."};
  study->devices = {1, 2, 4};
  study->methods = {"pardnn", "heft", "data-parallel:recompute"};
  study->networks = {{"a", "Net A", {4, 8, 64}}, {"b", "Net B", {0, 8, 16}}};
  const double times[] = {1, 0.8, 0.5};
  for (int i = 0; i < 3; ++i) {
    study->put(answer("a", 1 << i, "pardnn", 8 << i, 1, false));
    study->put(answer("a", 1 << i, "pardnn", i == 2 ? 64 : 4 << i, times[i], true));
    study->put(answer("a", 1 << i, "heft", i == 2 ? 64 : 4 << i, 2 * times[i], true));
  }
  study->put(answer("a", 4, "data-parallel:recompute", 64, 0, true));
  study->put(answer("b", 2, "pardnn", 8, 1, true));
  return study;
}

int pixels_of(const QImage& image, QPointF at, const QColor& color) {
  int found = 0;
  for (int y = int(at.y()) - 3; y <= int(at.y()) + 3; ++y)
    for (int x = int(at.x()) - 3; x <= int(at.x()) + 3; ++x)
      if (image.rect().contains(x, y)) {
        const QColor here = image.pixelColor(x, y);
        found += std::abs(here.red() - color.red()) + std::abs(here.green() - color.green()) +
                     std::abs(here.blue() - color.blue()) <
                 40;
      }
  return found;
}

}  // namespace

class StudyViewTest : public QObject {
  Q_OBJECT

 private slots:
  void figures_are_the_answers() {
    const auto study = some_study();
    const auto batch = study_lines(*study, study->networks[0], StudyFigure::batch, {});
    QCOMPARE(batch.size(), std::size_t(3));
    QCOMPARE(batch[0].values, (std::vector<double>{8, 16, 32}));
    QCOMPARE(batch[1].values, (std::vector<double>{4, 8, 64}));
    QCOMPARE(batch[2].values, (std::vector<double>{8, 16, 32}));
    const auto up = study_lines(*study, study->networks[0], StudyFigure::speed_up, {});
    QCOMPARE(up[0].values, (std::vector<double>{1, 2, 4}));
    QCOMPARE(up[1].values, (std::vector<double>{1, 8 / 0.8 / 4, 32}));
    QCOMPARE(up[2].values, (std::vector<double>{1, 2, 4}));
    const auto all = study_lines(*study, study->networks[0], StudyFigure::methods_at_reported, {});
    QCOMPARE(all.size(), std::size_t(3));
    QCOMPARE(all[1].values, (std::vector<double>{0.5, 1.25, 16}));
    QCOMPARE(all[2].values, (std::vector<double>{0, 0, 0}));  // does not fit
    // Those who place tasks and those who split operators have the same shapes and colours.
    QVERIFY(!all[0].hollow && !all[1].hollow && all[2].hollow);
    // Another graph has no answers; of who places nothing it is no matter.
    study->put(answer("a", 4, "pardnn", 64, 0.25, true, "whole-layers"));
    study->put(answer("a", 4, "data-parallel:recompute", 64, 0.5, true));
    const auto whole = study_lines(*study, study->networks[0], StudyFigure::methods_at_reported, "whole-layers");
    QCOMPARE(whole[0].values, (std::vector<double>{0, 0, 1}));
    QCOMPARE(whole[1].values, (std::vector<double>{0, 0, 0}));
    QCOMPARE(whole[2].values, (std::vector<double>{0, 0, 0.5}));
  }

  void points_are_drawn_where_they_belong_data() {
    QTest::addColumn<bool>("dark");
    QTest::newRow("light") << false;
    QTest::newRow("dark") << true;
  }
  void points_are_drawn_where_they_belong() {
    QFETCH(bool, dark);
    StudyChart chart;
    chart.setPalette(make_palette(dark));
    chart.resize(900, 300);
    chart.set_study(some_study());
    chart.show_figure(StudyFigure::batch, {});
    QImage image(900, 300, QImage::Format_RGB32);
    QPainter painter(&image);
    chart.paint_to(painter, QSizeF(900, 300));
    painter.end();
    const ThemeColors& colors = theme_colors(chart.palette());
    QVERIFY(pixels_of(image, chart.position_of(0, 0, 8), colors.method("pardnn")) > 8);
    QVERIFY(pixels_of(image, chart.position_of(0, 2, 32), colors.method("pardnn")) > 8);
    QVERIFY(pixels_of(image, chart.position_of(0, 2, 64), colors.text) > 8);
    QCOMPARE(pixels_of(image, chart.position_of(1, 0, 8), colors.text), 0);  // the paper has none there
    // Twice the batch is as far up everywhere, and plots do not overlap.
    const double step = chart.position_of(0, 0, 8).y() - chart.position_of(0, 0, 16).y();
    QVERIFY(std::abs(chart.position_of(1, 0, 32).y() - chart.position_of(1, 0, 64).y() - step) < 1e-9 && step > 5);
    QVERIFY(!chart.plot_area(0).intersects(chart.plot_area(1)));
    QCOMPARE(chart.at(chart.position_of(1, 2, 16)), std::optional(std::pair(std::size_t(1), std::size_t(2))));
    QVERIFY(!chart.at(QPointF(2, 2)));
  }

  void words_and_choices() {
    StudyView view;
    view.resize(1000, 300);
    view.set_study(some_study());
    QVERIFY(view.findings().contains("It is fast.") && view.findings().contains("arXiv 1"));
    QVERIFY(view.findings().contains("superlinear up to 4 devices on 1 of 1 networks (Net A)"));
    QCOMPARE(view.state_words(), QString("answers of 2026-01-02"));
    // What may be placed otherwise is offered, asked or not.
    QVERIFY(view.graph_box()->findData("whole-layers") > 0 && view.graph_box()->findData("step-gradients=kept") > 0);
    view.choose(StudyFigure::speed_up, "whole-layers");
    QCOMPARE(view.chart()->figure(), StudyFigure::speed_up);
    QCOMPARE(view.chart()->graph(), std::string("whole-layers"));
    QVERIFY(view.findings().contains("Nothing has been asked"));
    const QJsonObject state = view.save_state();
    view.choose(StudyFigure::batch, {});
    view.restore_state(state);
    QVERIFY(view.graph() == "whole-layers" && view.chart()->figure() == StudyFigure::speed_up);
    const QString text =
        study_text(*view.chart()->study(), view.chart()->study()->networks[0], 4, StudyFigure::methods_at_reported, {});
    QCOMPARE(text.count(u'\n'), 3);
    QVERIFY2(text.startsWith("Net A, 4 devices") && text.contains("does not fit, needs 20"), qPrintable(text));
  }

  void the_button_asks_and_stops() {
    StudyView view;
    QVERIFY(!view.run_button()->isEnabled());
    view.set_study(some_study());
    QVERIFY(view.run_button()->isEnabled());
    view.choose(StudyFigure::batch, "whole-layers");
    QSignalSpy asked(&view, &StudyView::run_requested), stopped(&view, &StudyView::stop_requested);
    view.run_button()->click();
    QCOMPARE(asked.size(), 1);
    QCOMPARE(asked[0][0].value<std::string>(), std::string("whole-layers"));
    view.set_running(true, 0.25, "Net A, 2 devices");
    QVERIFY(view.state_words().contains("25") && view.state_words().contains("Net A, 2 devices"));
    QCOMPARE(view.run_button()->text(), QString("Stop"));
    view.run_button()->click();
    QVERIFY(stopped.size() == 1 && asked.size() == 1);
    view.set_running(false, -1, "stopped");
    QCOMPARE(view.state_words(), QString("stopped"));
  }
};

QTEST_MAIN(StudyViewTest)
#include "study_view_test.moc"
