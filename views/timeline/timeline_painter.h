// SPDX-License-Identifier: Apache-2.0
// Paints a TimelineSummary: the same code for the screen and for pictures. Lanes are made column by column, so that a
// frame costs what its pixels cost, whatever the number of items.
#pragma once

#include <QFont>
#include <QGlyphRun>
#include <QImage>
#include <QPainter>
#include <QRawFont>
#include <optional>
#include <vector>

#include "views/common/theme_colors.h"
#include "views/time/time_axis.h"
#include "views/timeline/timeline_colors.h"
#include "views/timeline/timeline_layout.h"

namespace turnpoint::views {

struct TimelinePaint {
  const TimelineSummary* summary = nullptr;
  const ThemeColors* theme = nullptr;
  TimelineLayout layout;
  TimeWindow window;  ///< over layout.lanes
  TimelineColor color = TimelineColor::kind;
  bool critical = false;
  const std::vector<std::uint32_t>* picked = nullptr;  ///< rising places; empty: nothing is
  std::uint32_t device = kNone;                        ///< picked
  std::optional<std::pair<double, double>> range;      ///< picked
  QFont font;                                          ///< the widget's
  double ratio = 1;                                    ///< device pixels per pixel

  bool emphasises() const { return critical || (picked && !picked->empty()); }
};

class TimelinePainter {
 public:
  /// Everything that neither pointer nor hover changes.
  void paint(QPainter& painter, const TimelinePaint& view);
  /// Outlines of an item and where it goes.
  void paint_item(QPainter& painter, const TimelinePaint& view, std::uint32_t item, const QColor& color) const;
  /// The instant under the pointer: a line through the lanes with a tag on the ruler.
  void paint_cursor(QPainter& painter, const TimelinePaint& view, double instant) const;

  static double gutter_width(const TimelineSummary* summary, const QFont& font);
  /// Bar of one item, at least a pixel wide; may lie outside of what is visible.
  static QRectF item_rect(const TimelinePaint& view, std::uint32_t item);

 private:
  void paint_lanes(QPainter& painter, const TimelinePaint& view);
  void paint_lane(const TimelinePaint& view, const TimelineSummary::Lane& lane, QImage& image);
  void fill_track(const TimelinePaint& view, const TimelineSummary::Lane& lane, const TimelineSummary::Track& track,
                  const QRectF& bar);
  void fill_density(const TimelinePaint& view, const TimelineSummary::Lane& lane);
  void mark(const TimelinePaint& view, const TimelineSummary::Track& track, const std::vector<std::uint32_t>& places,
            const QRectF& bar, bool outline);
  void put_rows(const TimelinePaint& view, const QRectF& bar, QImage& image) const;
  void paint_names(QPainter& painter, const TimelinePaint& view);
  void paint_gutter(QPainter& painter, const TimelinePaint& view) const;
  void paint_ruler(QPainter& painter, const TimelinePaint& view) const;
  void paint_path(QPainter& painter, const TimelinePaint& view) const;
  void paint_range(QPainter& painter, const TimelinePaint& view) const;
  void paint_overview(QPainter& painter, const TimelinePaint& view) const;
  void paint_legend(QPainter& painter, const TimelinePaint& view) const;
  void prepare_glyphs(const QFont& font);

  struct Name {
    std::uint32_t place;
    QRectF rect;
    bool faint;
  };
  std::array<QRgb, kColorClasses> colors_{}, faint_{};
  QRgb idle_ = 0;
  std::vector<QRgb> line_;          ///< of the bar at hand
  std::vector<float> means_;        ///< of a density
  std::vector<std::uint8_t> edge_;  ///< columns of it with a picked item too narrow for a frame
  std::vector<Name> names_;
  std::vector<QRectF> outlines_;
  QImage image_;
  // Advances of the small font's ASCII glyphs: most names are ASCII, and shaping them is what would cost.
  QFont glyph_font_;
  QRawFont raw_;
  std::array<quint32, 128> glyph_{};
  std::array<double, 128> advance_{};
};

}  // namespace turnpoint::views
