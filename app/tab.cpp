// SPDX-License-Identifier: Apache-2.0
#include "app/tab.h"

#include <QAction>
#include <QImage>
#include <QJsonDocument>
#include <QPainter>
#include <QSvgGenerator>
#include <QWidget>
#include <cmath>

#include "app/actions.h"
#include "app/voice.h"

namespace turnpoint::app {

Tab::Tab(const TabParts& parts, const char* key, QString title, QWidget* its_widget, QWidget* its_bar)
    : QObject(parts.window),
      widget(its_widget),
      tool_bar(its_bar),
      work_(parts.work),
      actions_(parts.actions),
      voice_(parts.voice),
      key_(QString::fromLatin1(key)),
      title_(std::move(title)) {
  connect(&work_.document, &Document::model_changed, this, [this] {
    set_plan(nullptr, nullptr);  // a plan of the old model must never meet the new one
    set_model(work_.document.scenario());
  });
  connect(&work_.loader, &PlanLoader::plan_changed, this, [this] {
    if (!work_.plan_is_of_model()) return;
    outdated_ = !widget->isVisible();
    if (!outdated_) take_plan();
  });
}

void Tab::take_plan() {
  outdated_ = false;
  set_plan(work_.loader.plan(), work_.loader.result() ? work_.loader.result()->scenario : nullptr);
}

void Tab::set_looked_at(bool looked_at) {
  if (looked_at && outdated_) take_plan();
  looked_at_changed(looked_at);
}

void Tab::write(Session& session) const {
  session.views[key_.toStdString()] = QJsonDocument(save_state()).toJson(QJsonDocument::Compact).toStdString();
}

void Tab::read(const Session& session) {
  if (const auto at = session.views.find(key_.toStdString()); at != session.views.end())
    restore_state(QJsonDocument::fromJson(QByteArray::fromStdString(at->second)).object());
}

void Tab::on(ActionId id, std::function<void()> then) {
  connect(actions_[id], &QAction::triggered, this, std::move(then));
}

QSize Tab::picture_size() const { return widget->size(); }

void Tab::ask_export_picture(const QString& suffix) {
  voice_.ask_save(tr("Export picture"), key_ + u'.' + suffix, filter_of(suffix),
                  [this](const QString& path) { export_picture(path); });
}

bool Tab::export_picture(const QString& path) {
  const QSize size = picture_size();
  bool done = false;
  if (path.endsWith(QStringLiteral(".svg"), Qt::CaseInsensitive)) {
    QSvgGenerator svg;
    svg.setFileName(path);
    svg.setSize(size);
    svg.setViewBox(QRect(QPoint(), size));
    QPainter painter;
    done = painter.begin(&svg);
    if (done) paint_picture(painter, size), done = painter.end();
  } else {
    constexpr double kScale = 2, kMostPixels = 30e6;
    const double scale = std::min(kScale, std::sqrt(kMostPixels / (double(size.width()) * size.height())));
    QImage image(size * scale, QImage::Format_ARGB32_Premultiplied);
    image.setDevicePixelRatio(scale);
    image.fill(widget->palette().color(QPalette::Base));
    QPainter painter(&image);
    paint_picture(painter, size);
    painter.end();
    done = image.save(path);
  }
  voice_.tell_written(done, path, tr("Export picture"));
  return done;
}

}  // namespace turnpoint::app
