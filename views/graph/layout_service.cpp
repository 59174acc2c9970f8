// SPDX-License-Identifier: Apache-2.0
#include "views/graph/layout_service.h"

#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>
#include <QStandardPaths>
#include <algorithm>

namespace turnpoint::views {

namespace {

constexpr int kCacheLevels = 2000;
constexpr qsizetype kLargestAnswer = 64 << 20;

QString find_program() {
  const QDir here(QCoreApplication::applicationDirPath());
  for (const char* folder : {".", "../bin", "../libexec/turnpoint", "../../bin"}) {
    const QString path = here.filePath(QLatin1String(folder) + QStringLiteral("/turnpoint-layout"));
    if (QFileInfo(path).isExecutable()) return QDir::cleanPath(path);
  }
  return QStandardPaths::findExecutable(QStringLiteral("turnpoint-layout"));
}

}  // namespace

LayoutService::LayoutService(QObject* parent) : QObject(parent), program_(find_program()) {
  timer_.setSingleShot(true);
  connect(&timer_, &QTimer::timeout, this, [this] {
    drop_process();
    use_own(tr("Graphviz took longer than %1 s").arg(timeout_ms_ / 1000.0));
  });
}

LayoutService::~LayoutService() {
  // Those killed earlier may not have been collected yet.
  for (QProcess* process : findChildren<QProcess*>()) {
    process->disconnect();
    process->kill();
    process->waitForFinished(2000);
  }
}

void LayoutService::set_program(const QString& path) {
  program_ = path;
  missing_ = false;
  drop_process();
}

void LayoutService::want(std::vector<LevelRequest> levels) {
  queue_.clear();
  bool still_wanted = false;
  for (LevelRequest& request : levels) {
    Level level{request.text(), std::move(request)};
    if (running_ && level.key == current_.key) still_wanted = true;
    const bool known =
        cache_.contains(level.key) || (running_ && level.key == current_.key) ||
        std::any_of(queue_.begin(), queue_.end(), [&](const Level& other) { return other.key == level.key; });
    if (!known) queue_.push_back(std::move(level));
  }
  // Taken from the back.
  std::reverse(queue_.begin(), queue_.end());
  if (running_ && !still_wanted) {
    running_ = false;
    timer_.stop();
    drop_process();
  }
  if (!running_ && !queue_.empty()) advance();
}

void LayoutService::advance() {
  if (queue_.empty()) {
    emit finished();
    return;
  }
  current_ = std::move(queue_.back());
  queue_.pop_back();
  running_ = true;
  answer_.clear();
  if (program_.isEmpty() || missing_) {
    use_own(tr("turnpoint-layout was not found"));
    return;
  }
  if (!process_) start_process();
  if (!process_) return;  // it failed at once and the level was answered
  timer_.start(timeout_ms_);
  process_->write(current_.key);
}

void LayoutService::start_process() {
  process_ = new QProcess(this);
  ++processes_started_;
  connect(process_, &QProcess::readyReadStandardOutput, this, &LayoutService::read_answer);
  connect(process_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
    if (error != QProcess::FailedToStart) return;
    missing_ = true;
    drop_process();
    if (running_) use_own(tr("turnpoint-layout could not be started"));
  });
  connect(process_, &QProcess::finished, this, [this](int code, QProcess::ExitStatus status) {
    read_answer();
    const QString said = QString::fromUtf8(answer_.left(200)).trimmed();
    drop_process();
    if (!running_) return;
    if (status == QProcess::CrashExit) {
      use_own(tr("the layout process died"));
    } else {
      use_own(said.startsWith(QLatin1String("error ")) ? said.mid(6)
                                                       : tr("the layout process ended with code %1").arg(code));
    }
  });
  process_->setStandardErrorFile(QProcess::nullDevice());
  process_->start(program_, {});
}

void LayoutService::drop_process() {
  if (!process_) return;
  QProcess* old = process_;
  process_ = nullptr;
  old->disconnect(this);
  if (old->state() == QProcess::NotRunning) {
    old->deleteLater();
    return;
  }
  connect(old, &QProcess::finished, old, &QObject::deleteLater);
  old->kill();
}

void LayoutService::read_answer() {
  if (!process_) return;
  answer_ += process_->readAllStandardOutput();
  if (!running_) return;
  if (answer_.size() > kLargestAnswer) {
    drop_process();
    use_own(tr("the layout process answered nonsense"));
    return;
  }
  if (!answer_.endsWith("\nend\n")) return;
  auto layout = parse_level_layout(answer_, current_.request);
  if (!layout) {
    drop_process();
    use_own(tr("the layout process answered nonsense"));
    return;
  }
  ++levels_answered_;
  trouble_.clear();
  store(std::move(*layout));
}

void LayoutService::use_own(const QString& reason) {
  if (!running_) return;
  trouble_ = reason;
  store(layered_layout(current_.request));
}

void LayoutService::store(LevelLayout layout) {
  timer_.stop();
  running_ = false;
  if (cache_.size() >= kCacheLevels) cache_.clear();
  cache_.insert(current_.key, std::make_shared<const LevelLayout>(std::move(layout)));
  emit level_ready();
  // Through the event loop: a handler may want other levels, and many levels must not nest.
  if (!running_)
    QMetaObject::invokeMethod(
        this,
        [this] {
          if (!running_) advance();
        },
        Qt::QueuedConnection);
}

}  // namespace turnpoint::views
