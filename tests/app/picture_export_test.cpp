// SPDX-License-Identifier: Apache-2.0
// The graph as a picture: of a task graph and of a Model, from the window's export actions.
#include <QDialog>
#include <QFile>
#include <QImage>
#include <QSignalSpy>

#include "app/tabs/graph_tab.h"
#include "real_window.h"
#include "views/graph/graph_canvas.h"
#include "views/graph/graph_view.h"
#include "views/graph/task_canvas.h"
#include "views/graph/task_graph_view.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

/// Share of pixels that are not the background.
double drawn(const QImage& image) {
  const QRgb background = image.pixel(0, 0);
  qint64 other = 0;
  for (int y = 0; y < image.height(); ++y)
    for (int x = 0; x < image.width(); ++x) other += image.pixel(x, y) != background;
  return double(other) / double(qint64(image.width()) * image.height());
}

QByteArray read(const QString& path) {
  QFile file(path);
  return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

}  // namespace

class PictureExportTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() { QApplication::setStyle(QStringLiteral("Fusion")); }

  void a_task_graph_is_exported_whole() {
    Real real;
    QVERIFY(!action(real, "export_graph_png")->isEnabled());
    QVERIFY(real.open(real.random_graph(5, 60)));
    QVERIFY(action(real, "export_graph_png")->isEnabled() && action(real, "export_graph_svg")->isEnabled());
    auto* graph = tab<app::GraphTab>(real.window);
    QVERIFY(graph->shows_tasks());
    QVERIFY(QTest::qWaitFor([&] { return !graph->tasks()->busy(); }, 60000));
    const QString png = real.folder.filePath("graph.png"), svg = real.folder.filePath("graph.svg");
    QVERIFY(graph->export_picture(png));
    const QImage image(png);
    const QSize whole = graph->tasks()->canvas()->picture_size();
    QCOMPARE(whole, graph->tasks()->canvas()->scene_size().toSize());
    QVERIFY(qAbs(image.width() - 2 * whole.width()) <= 2 && qAbs(image.height() - 2 * whole.height()) <= 2);
    QVERIFY2(drawn(image) > 0.1, qPrintable(QString::number(drawn(image))));
    // Vectors of the same size, not an empty page.
    QVERIFY(graph->export_picture(svg));
    const QByteArray text = read(svg);
    QVERIFY(text.contains(QStringLiteral("viewBox=\"0 0 %1 %2\"").arg(whole.width()).arg(whole.height()).toUtf8()));
    QVERIFY2(text.size() > 5000, qPrintable(QString::number(text.size())));
    // What cannot be written is said.
    QVERIFY(!graph->export_picture(real.folder.filePath("nowhere/graph.svg")));
  }

  void the_graph_of_a_model_too() {
    Real real;
    real.window->opener().open_scenario("builtin:lenet", "v100-16gb-1x4", 0);
    QVERIFY(real.settle());
    auto* graph = tab<app::GraphTab>(real.window);
    QVERIFY(!graph->shows_tasks());
    const QString png = real.folder.filePath("graph.png");
    QVERIFY(QTest::qWaitFor([&] { return !graph->operators()->canvas()->scene_size().isEmpty(); }, 60000));
    QVERIFY(graph->export_picture(png));
    QVERIFY(drawn(QImage(png)) > 0.05);
  }

  void the_view_asks_for_it() {
    Real real;
    QVERIFY(real.open(real.random_graph(5, 60)));
    views::TaskGraphView* view = tab<app::GraphTab>(real.window)->tasks();
    QSignalSpy asked(view, &views::TaskGraphView::export_requested);
    for (QAction* choice : view->tool_bar()->findChildren<QAction*>())
      if (choice->text().startsWith(QStringLiteral("Picture as SVG"))) choice->trigger();
    QCOMPARE(asked.count(), 1);
    QCOMPARE(asked[0][0].toString(), QStringLiteral("svg"));
    // The window answers with a file dialog.
    const auto dialogs = real.window->findChildren<QDialog*>();
    QVERIFY(!dialogs.isEmpty());
    for (QDialog* dialog : dialogs) dialog->reject();
  }
};

QTEST_MAIN(PictureExportTest)
#include "picture_export_test.moc"
