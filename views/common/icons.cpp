// SPDX-License-Identifier: Apache-2.0
#include "views/common/icons.h"

#include <QApplication>
#include <QFile>
#include <QIconEngine>
#include <QPainter>
#include <QPalette>
#include <QSvgRenderer>

static void init_icon_resource() { Q_INIT_RESOURCE(icons); }

namespace turnpoint::views {

namespace {

class ThemedIconEngine : public QIconEngine {
 public:
  explicit ThemedIconEngine(QByteArray svg) : svg_(std::move(svg)) {}

  void paint(QPainter* painter, const QRect& rect, QIcon::Mode mode, QIcon::State) override {
    const auto group = mode == QIcon::Disabled ? QPalette::Disabled : QPalette::Active;
    QByteArray tinted = svg_;
    tinted.replace("currentColor", QApplication::palette().color(group, QPalette::WindowText).name().toLatin1());
    QSvgRenderer(tinted).render(painter, QRectF(rect));
  }

  QPixmap pixmap(const QSize& size, QIcon::Mode mode, QIcon::State state) override {
    QPixmap map(size);
    map.fill(Qt::transparent);
    QPainter painter(&map);
    paint(&painter, QRect(QPoint(), size), mode, state);
    return map;
  }

  QIconEngine* clone() const override { return new ThemedIconEngine(svg_); }

 private:
  QByteArray svg_;
};

}  // namespace

QIcon themed_icon(const QString& name) {
  // In a static library nothing else pulls the compiled-in files into the program.
  static const bool registered = (init_icon_resource(), true);
  Q_UNUSED(registered);
  QFile file(QStringLiteral(":/icons/%1.svg").arg(name));
  if (!file.open(QIODevice::ReadOnly)) return {};
  return QIcon(new ThemedIconEngine(file.readAll()));
}

}  // namespace turnpoint::views
