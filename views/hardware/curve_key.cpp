// SPDX-License-Identifier: Apache-2.0
#include "views/hardware/curve_key.h"

#include <QPainter>

#include "views/common/section_head.h"
#include "views/common/theme_colors.h"

namespace turnpoint::views {

namespace {
constexpr int kSample = 20, kGap = 6, kBetween = 18;
}

CurveKey::CurveKey(QWidget* parent) : QWidget(parent) {
  QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  policy.setHeightForWidth(true);
  setSizePolicy(policy);
}

void CurveKey::set_entries(std::vector<KeyEntry> entries) {
  entries_ = std::move(entries);
  QStringList words;
  for (const auto& entry : entries_) words << entry.text;
  setAccessibleName(words.join(QStringLiteral(", ")));
  updateGeometry();
  update();
}

std::vector<QRect> CurveKey::places(int width) const {
  const QFontMetrics metrics(secondary_font(font()));
  const int high = metrics.height() + 3;
  std::vector<QRect> places;
  int x = 0, y = 0;
  for (const auto& entry : entries_) {
    const int wide = kSample + kGap + metrics.horizontalAdvance(entry.text);
    if (x > 0 && x + wide > width) x = 0, y += high;
    places.emplace_back(x, y, wide, high);
    x += wide + kBetween;
  }
  return places;
}

int CurveKey::heightForWidth(int width) const {
  const auto list = places(width);
  return list.empty() ? 0 : list.back().bottom() + 1;
}

QSize CurveKey::sizeHint() const { return {300, heightForWidth(std::max(300, width()))}; }
QSize CurveKey::minimumSizeHint() const {
  return {120, entries_.empty() ? 0 : QFontMetrics(secondary_font(font())).height() + 3};
}

void CurveKey::paintEvent(QPaintEvent*) {
  const ThemeColors& colors = theme_colors(palette());
  QPainter painter(this);
  painter.setFont(secondary_font(font()));
  const auto list = places(width());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const KeyEntry& entry = entries_[i];
    const QRect& place = list[i];
    const int middle = place.center().y(), centre = place.left() + kSample / 2;
    painter.setRenderHint(QPainter::Antialiasing, true);
    painter.setBrush(Qt::NoBrush);
    QPen pen(entry.color, 1.8);
    pen.setCapStyle(Qt::FlatCap);
    if (entry.mark == KeyEntry::Mark::dashed) pen.setDashPattern({3, 2});
    if (entry.mark == KeyEntry::Mark::dotted) pen.setDashPattern({1, 1.6});
    painter.setPen(pen);
    switch (entry.mark) {
      case KeyEntry::Mark::line:
      case KeyEntry::Mark::dashed:
      case KeyEntry::Mark::dotted: painter.drawLine(place.left(), middle, place.left() + kSample, middle); break;
      case KeyEntry::Mark::point:
        painter.setPen(Qt::NoPen);
        painter.setBrush(entry.color);
        painter.drawEllipse(QPointF(centre, middle), 2.8, 2.8);
        break;
      case KeyEntry::Mark::bar:
        painter.setPen(QPen(entry.color, 1.2));
        painter.drawLine(centre, middle - 5, centre, middle + 5);
        painter.drawLine(centre - 3, middle - 5, centre + 3, middle - 5);
        painter.drawLine(centre - 3, middle + 5, centre + 3, middle + 5);
        break;
      case KeyEntry::Mark::fall: {
        painter.setPen(QPen(entry.color, 1.4));
        const QPointF diamond[] = {{centre + 0.0, middle - 5.0},
                                   {centre + 5.0, middle + 0.0},
                                   {centre + 0.0, middle + 5.0},
                                   {centre - 5.0, middle + 0.0}};
        painter.drawPolygon(diamond, 4);
        break;
      }
    }
    painter.setPen(colors.secondary);
    painter.drawText(place.adjusted(kSample + kGap, 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter, entry.text);
  }
}

}  // namespace turnpoint::views
