// SPDX-License-Identifier: Apache-2.0
// Measured logs in the real window: opened and dropped, read by workers only, stored as a profile, refused in words.
#include <unistd.h>
#include <QApplication>
#include <QDir>
#include <QDockWidget>
#include <QDropEvent>
#include <QFile>
#include <QMimeData>
#include <QTemporaryDir>
#include <QTest>
#include <QThread>
#include <QUndoStack>
#include <fstream>
#include <memory>

#include "app/app_settings.h"
#include "app/document.h"
#include "app/profiles.h"
#include "app/tabs/hardware_tab.h"
#include "app/task_manager.h"
#include "fake_backend.h"
#include "test_data.h"
#include "views/common/message_bar.h"
#include "views/common/theme_colors.h"
#include "views/hardware/curve_chart.h"
#include "views/hardware/hardware_view.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

/// Searches are made up, hardware is real.
class HardwareBackend : public FakeBackend {
 public:
  Expected<ClusterPtr> open_hardware(const std::string& specification) const override {
    return turnpoint::open_hardware(specification);
  }
};

class Window {
 public:
  Window()
      : settings(folder.filePath(QStringLiteral("settings.ini"))),
        window(std::make_unique<app::MainWindow>(backend, settings)) {
    fake_world().exact_ms = 1, fake_world().coarse_ms = 1, fake_world().other_ms = 1;
    window->resize(1600, 1000);
    window->show();
    (void)QTest::qWaitForWindowExposed(window.get());
  }
  bool settle() {
    return QTest::qWaitFor([&] { return window->work().settled() && !window->work().tasks.busy(); }, 60000);
  }
  bool open() {
    window->opener().open_scenario("builtin:transformer-s", "v100-16gb-2x8", 0);
    return settle();
  }
  QString write(const QString& name, const QByteArray& text) {
    QFile file(folder.filePath(name));
    if (!file.open(QIODevice::WriteOnly)) return {};
    file.write(text);
    return file.fileName();
  }
  void drop(const QStringList& paths) {
    QMimeData data;
    QList<QUrl> urls;
    for (const QString& path : paths) urls << QUrl::fromLocalFile(path);
    data.setUrls(urls);
    QDragEnterEvent enter(QPoint(400, 400), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(window.get(), &enter);
    QVERIFY(enter.isAccepted());
    QDropEvent event(QPointF(400, 400), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(window.get(), &event);
  }
  QString hardware() const { return QString::fromStdString(window->work().document.state().hardware); }

  QTemporaryDir folder;
  HardwareBackend backend;
  app::AppSettings settings;
  std::unique_ptr<app::MainWindow> window;
};

/// Bytes that one thread, or all, have read from files and pipes so far; -1 where the system does not count.
long long bytes_read(const std::string& of) {
  std::ifstream file("/proc/" + of + "/io");
  std::string key;
  long long value = 0;
  while (file >> key >> value)
    if (key == "rchar:") return value;
  return -1;
}
long long read_by_this_thread() { return bytes_read("self/task/" + std::to_string(gettid())); }
long long read_by_all() { return bytes_read("self"); }

QStringList measured_logs(const std::filesystem::path& data) {
  QStringList paths;
  for (const char* name : {"nccl-tests/a100x8_nccl_allreduce.log", "vidur/network/a100_dgx/all_reduce.csv"})
    paths << QString::fromStdString((data / "hardware" / name).string());
  return paths;
}

}  // namespace

class HardwarePageTest : public QObject {
  Q_OBJECT

 private slots:
  void init() {
    home_ = std::make_unique<QTemporaryDir>();
    qputenv("XDG_DATA_HOME", home_->path().toLocal8Bit());
    QVERIFY(QString::fromStdString(app::profile_folder().string()).startsWith(home_->path()));
  }

  void the_page_follows_the_open_hardware_when_somebody_looks() {
    Window f;
    QVERIFY(f.open());
    views::HardwareView* view = part<views::HardwareView>(f.window);
    QVERIFY2(!view->content(), "nobody looks: nothing is computed");
    view->parentWidget()->raise();
    QVERIFY(QTest::qWaitFor([&] { return view->content() != nullptr; }, 60000));
    QCOMPARE(view->content()->cluster, f.window->work().document.scenario()->cluster);
    f.window->work().document.open_hardware("v100-16gb-1x8");
    QVERIFY(f.settle());
    QTRY_COMPARE(view->content()->cluster, f.window->work().document.scenario()->cluster);
    QCOMPARE(view->content()->cluster->nodes, 1);
  }

  void logs_become_the_hardware_and_the_interface_thread_reads_none_of_them() {
    REQUIRE_DATA(data);
    const QStringList paths = measured_logs(data);
    long long size = 0;
    for (const QString& path : paths) size += QFileInfo(path).size();
    QVERIFY(size > 500'000);
    Window f;
    QVERIFY(f.open());
    const long long mine = read_by_this_thread(), all = read_by_all();
    if (mine < 0 || all < 0) QSKIP("the system does not count what threads read");
    f.window->opener().open_logs(paths);
    QVERIFY(f.settle());
    QTRY_VERIFY(f.hardware().startsWith(home_->path()));
    QVERIFY(f.settle());
    const long long by_me = read_by_this_thread() - mine, by_all = read_by_all() - all;
    QVERIFY2(by_all >= size, qPrintable(QStringLiteral("the files were read: %1 bytes").arg(by_all)));
    QVERIFY2(by_me < 64 * 1024, qPrintable(QStringLiteral("the interface thread read %1 bytes").arg(by_me)));

    // What is open is the profile, and the page shows the files' curves and problems.
    const auto cluster = f.window->work().document.scenario()->cluster;
    QVERIFY(!cluster->collectives.empty());
    QTRY_VERIFY(part<views::HardwareView>(f.window)->content() &&
                part<views::HardwareView>(f.window)->content()->cluster == cluster);
    QVERIFY(part<views::HardwareView>(f.window)->isVisible());
    QVERIFY(part<views::HardwareView>(f.window)->content()->warnings > 0);
    QVERIFY(!part<views::HardwareView>(f.window)->chart()->chart().points.empty());

    // TURNPOINT_PICTURES=folder keeps what the window looks like.
    if (const QString pictures = qEnvironmentVariable("TURNPOINT_PICTURES"); !pictures.isEmpty()) {
      for (const bool dark : {true, false}) {
        QApplication::setPalette(views::make_palette(dark));
        QTest::qWait(100);
        QVERIFY(f.window->grab().save(
            pictures + (dark ? QStringLiteral("/window-dark.png") : QStringLiteral("/window-light.png"))));
      }
    }

    // Undone, the page goes back with the hardware; redone, the problems are there again.
    f.window->work().document.undo_stack().undo();
    QVERIFY(f.settle());
    QCOMPARE(f.hardware(), QStringLiteral("v100-16gb-2x8"));
    QTRY_COMPARE(part<views::HardwareView>(f.window)->content()->warnings, 0);
    f.window->work().document.undo_stack().redo();
    QVERIFY(f.settle());
    QTRY_VERIFY(part<views::HardwareView>(f.window)->content()->warnings > 0);

    // The same logs make the same file, others of the same name another one.
    const QString first = f.hardware();
    f.window->opener().open_logs(paths);
    QVERIFY(f.settle());
    QCOMPARE(f.hardware(), first);
    f.window->opener().open_logs({paths.front()});
    QTRY_VERIFY(f.hardware() != first);
    QVERIFY(f.settle());
    QVERIFY(open_hardware(first.toStdString()).has_value());
    QVERIFY(open_hardware(f.hardware().toStdString()).has_value());
  }

  void dropped_logs_open_a_window_without_a_model() {
    REQUIRE_DATA(data);
    Window f;
    f.drop(measured_logs(data));
    QTRY_VERIFY_WITH_TIMEOUT(f.window->work().document.scenario(), 20000);
    QVERIFY(f.settle());
    QVERIFY(f.hardware().startsWith(home_->path()));
    QVERIFY(part<views::HardwareView>(f.window)->isVisible());
  }

  void a_file_that_cannot_be_read_changes_nothing() {
    Window f;
    QVERIFY(f.open());
    const QString path = f.write(QStringLiteral("shopping.log"), "milk\nbread\n");
    f.drop({path});
    QTRY_VERIFY(f.window->voice().bar().current());
    QVERIFY(f.settle());
    const auto* message = f.window->voice().bar().current();
    QCOMPARE(message->kind, views::Message::Kind::error);
    QVERIFY2(message->where.contains(path) || message->what.contains(path),
             qPrintable(message->what + u'|' + message->where));
    QCOMPARE(f.hardware(), QStringLiteral("v100-16gb-2x8"));
    QVERIFY(!QDir(QString::fromStdString(app::profile_folder().string())).exists());
  }

  void logs_without_a_device_are_shown_and_filled_in_on_request() {
    REQUIRE_DATA(data);
    const QString path = QString::fromStdString((data / "hardware/vidur/network/a100_dgx/send_recv.csv").string());
    Window f;
    QVERIFY(f.open());
    f.window->opener().open_logs({path});
    views::HardwareView* view = part<views::HardwareView>(f.window);
    QTRY_VERIFY(view->content() && !view->content()->not_in_use.isEmpty());
    QVERIFY(f.settle());
    QCOMPARE(f.hardware(), QStringLiteral("v100-16gb-2x8"));
    QVERIFY(!view->chart()->chart().points.empty());
    emit view->base_requested();
    QTRY_VERIFY(f.hardware().startsWith(home_->path()));
    QVERIFY(f.settle());
    QVERIFY(f.window->work().document.scenario()->cluster->device.name.find("V100") != std::string::npos);
    QTRY_VERIFY(view->content()->not_in_use.isEmpty());
  }

  void one_tab_more_does_not_widen_the_window() {
    Window f;
    QTest::qWait(20);
    QCOMPARE(f.window->width(), 1600);
  }

  void a_layout_saved_before_there_was_this_page_keeps_it_in_reach() {
    Window f;
    auto* dock = qobject_cast<QDockWidget*>(part<views::HardwareView>(f.window)->parentWidget());
    QVERIFY(dock);
    dock->setObjectName(QStringLiteral("not_yet"));
    const QByteArray before = f.window->saveState();
    dock->setObjectName(QStringLiteral("hardware"));
    QVERIFY(f.window->restoreState(before));
    QTest::qWait(20);
    QVERIFY(!dock->isFloating() && !dock->isHidden());
    QCOMPARE(f.window->dockWidgetArea(dock), Qt::BottomDockWidgetArea);
    QVERIFY(!f.window->tabifiedDockWidgets(dock).isEmpty());
  }

  void a_profile_that_cannot_be_stored_is_said_and_shown() {
    REQUIRE_DATA(data);
    Window f;
    QVERIFY(f.open());
    // A file where the folder should be; permissions would not stop root.
    QDir().mkpath(QFileInfo(QString::fromStdString(app::profile_folder().string())).path());
    QFile block(QString::fromStdString(app::profile_folder().string()));
    QVERIFY(block.open(QIODevice::WriteOnly));
    f.window->opener().open_logs({measured_logs(data).front()});
    QTRY_VERIFY(f.window->voice().bar().current());
    QVERIFY(f.window->voice().bar().current()->where.contains(QStringLiteral("profiles")));
    QTRY_VERIFY(part<views::HardwareView>(f.window)->content() &&
                part<views::HardwareView>(f.window)->content()->cluster);
    QVERIFY(!part<views::HardwareView>(f.window)->content()->not_in_use.isEmpty());
    QCOMPARE(f.hardware(), QStringLiteral("v100-16gb-2x8"));
  }

 private:
  std::unique_ptr<QTemporaryDir> home_;
};

QTEST_MAIN(HardwarePageTest)
#include "hardware_page_test.moc"
