// SPDX-License-Identifier: Apache-2.0
#include <QRegularExpression>
#include <algorithm>
#include <limits>
#include <vector>

#include "core/base/text.h"
#include "views/common/counted.h"
#include "views/common/format.h"
#include "views/common/section_head.h"
#include "views/frontier/chart_items.h"
#include "views/frontier/label_placer.h"
#include "views/frontier/marker_groups.h"

namespace turnpoint::views {

namespace {

/// A block of lines, the first one bold, measured before it is placed.
struct TextBlock {
  QStringList lines;
  QFont head, body;
  QSizeF size() const {
    const QFontMetricsF h(head), b(body);
    double wide = 0, high = 0;
    for (qsizetype i = 0; i < lines.size(); ++i) {
      wide = std::max(wide, (i == 0 ? h : b).horizontalAdvance(lines[i]));
      high += (i == 0 ? h : b).height();
    }
    return {wide + 1, high};
  }
  void draw(QPainter& painter, const QRectF& at, const QColor& first, const QColor& rest,
            Qt::Alignment side = Qt::AlignLeft) const {
    double y = at.top();
    for (qsizetype i = 0; i < lines.size(); ++i) {
      painter.setFont(i == 0 ? head : body);
      painter.setPen(i == 0 ? first : rest);
      const double high = QFontMetricsF(painter.font()).height();
      painter.drawText(QRectF(at.left(), y, at.width(), high), side | Qt::AlignVCenter | Qt::TextDontClip, lines[i]);
      y += high;
    }
  }
};

constexpr double kLeastLeader_px = 16;  ///< shorter ones, less the mark's own room, could not be seen
constexpr double kRing_px = 9;          ///< half the ring around the picked plan, and a little

/// The first free place for a caption at `wanted` or below it, in the upper two thirds.
std::optional<QRectF> free_below(const LabelPlacer& placer, const QRectF& wanted) {
  const QRectF room = placer.bounds();
  for (QRectF at = wanted; at.bottom() < room.top() + room.height() * 2 / 3; at.translate(0, 6))
    if (placer.is_free(at)) return at;
  return std::nullopt;
}

/// What describe_turning_point speaks of where it names one that does not fit.
std::optional<std::size_t> turning_point_beyond(const Result& result) {
  if (result.turning_point && result.points[*result.turning_point].fits) return std::nullopt;
  std::vector<ResultPoint> unlimited = result.points;
  for (ResultPoint& point : unlimited) point.fits = true;
  const auto beyond = find_turning_point(unlimited, result.slowest_considered_s);
  return beyond && !result.points[*beyond].fits ? beyond : std::nullopt;
}

/// What fits though nothing of the subject does: its methods search other plans. "dp=4 tp=2 pp=2 fits: 22.0 GiB peak".
QStringList others_that_fit(const ChartState& state, double span) {
  const ChartSeries *subject = state.data.subject(), *least = nullptr;
  std::int64_t memory = 0;
  int answered = 0, fitting = 0;
  for (const auto& series : state.data.series) {
    if (!series.result || &series == subject || series.stale) continue;
    ++answered;
    bool any = false;
    for (const auto& p : series.result->points) {
      if (!drawable(p) || !state.fits(series, p)) continue;
      any = true;
      const std::int64_t needs = p.simulated_memory_bytes.value_or(p.memory_bytes);
      if (!least || needs < memory) least = &series, memory = needs;
    }
    fitting += any;
  }
  if (answered == 0) return {};
  if (!least)
    return {QObject::tr("nor does one of %1")
                .arg(counted(answered, QObject::tr("1 other method"), QObject::tr("%1 other methods")))};
  const QString needs = state.units.memory_text(double(memory), span);
  const QString name = least->title;
  QStringList lines{QObject::tr("%1 fits with %2").arg(name, needs)};
  if (fitting > 1)
    lines << counted(fitting - 1, QObject::tr("and 1 other method fits"), QObject::tr("and %1 other methods fit"));
  return lines;
}

}  // namespace

void LabelItem::draw(QCPPainter* painter) {
  painter->save();
  painter->setRenderHint(QPainter::Antialiasing);
  state_->words.clear();
  state_->edge_names.clear();
  const QRectF frame = uncovered();
  LabelPlacer placer(frame.adjusted(2, 2, -2, -2));
  draw_titles(*painter);
  for (const auto& series : state_->data.series) {
    if (!state_->visible(series)) continue;
    if (series.frontier) placer.block_line(steps(series.line_points()));
    for (const auto& p : series.result->points) {
      if (!drawable(p)) continue;
      const QPointF at = pixel(p);
      const double r = series.line ? 3 : series.frontier ? 5 : 7;
      if (!series.frontier || series.line || series.result->points.size() <= ChartSeries::kFewPlans)
        placer.block({at.x() - r, at.y() - r, 2 * r, 2 * r});
    }
  }
  const bool parts =
      state_->show_parts && !state_->log_time && state_->data.clock == Clock::additive && !state_->data.markers_only();
  if (const ChartSeries* subject = state_->data.subject(); subject && parts) {
    QPolygonF compute, network;
    for (const auto& p : subject->result->points) {
      if (!drawable(p)) continue;
      const double x = pixel_x(static_cast<double>(p.memory_bytes));
      if (!compute.isEmpty() && x - compute.last().x() < 1 && &p != &subject->result->points.back()) continue;
      for (const auto& [line, y] :
           {std::pair{&compute, pixel_y(p.compute_s)}, std::pair{&network, pixel_y(p.network_s)}}) {
        if (!line->isEmpty()) *line << QPointF(x, line->last().y());
        *line << QPointF(x, y);
      }
    }
    placer.block_line(compute);
    placer.block_line(network);
  }
  if (state_->show_pinned)
    for (const auto& pinned : state_->data.pinned) placer.block_line(steps(pinned.points));
  draw_time_title(*painter, placer);
  draw_limit(*painter, placer);
  draw_callouts(*painter, placer);
  const auto groups = marker_groups(*state_, [this](const ResultPoint& p) { return pixel(p); });
  draw_names(*painter, placer, groups);
  if (parts) draw_part_names(*painter, placer);
  if (!state_->callout.isEmpty()) state_->words.push_back(state_->callout);
  painter->restore();
}

QRectF LabelItem::uncovered() const {
  QRectF frame = area();
  if (!state_->picture) frame.setTop(std::clamp(state_->covered_px, frame.top(), frame.bottom()));
  return frame;
}

void LabelItem::draw_titles(QPainter& painter) {
  const QRectF frame = area();
  const QFont small = secondary_font(state_->font);
  painter.setFont(small);
  painter.setPen(state_->colors->secondary);
  const double high = QFontMetricsF(small).height();
  if (state_->picture) {
    painter.setFont(bold(state_->font));
    painter.setPen(state_->colors->text);
    painter.drawText(QRectF(12, 8, frame.right() - 12, QFontMetricsF(painter.font()).height()), Qt::AlignLeft,
                     state_->data.title);
    painter.setFont(small);
    painter.setPen(state_->colors->secondary);
  }
  painter.drawText(QRectF(frame.left(), frame.bottom() + 24, frame.width(), high), Qt::AlignHCenter,
                   (state_->data.clock == Clock::simulated ? QObject::tr("Peak memory per device (%1) · simulated")
                                                           : QObject::tr("Memory per device (%1)"))
                       .arg(state_->units.memory_name));
}

// Which clock it is, in so many words: the two differ by what overlaps and waits. Above the axis; where that is
// covered, as near to it as nothing is drawn.
void LabelItem::draw_time_title(QPainter& painter, LabelPlacer& placer) {
  const QFont small = secondary_font(state_->font);
  const QFontMetricsF metrics(small);
  const QString title =
      (state_->data.clock == Clock::simulated ? QObject::tr("Iteration time (%1) · simulated: with overlap and waiting")
                                              : QObject::tr("Iteration time (%1) · additive: a plain sum, no overlap"))
          .arg(state_->units.time_name);
  const QRectF frame = uncovered();
  QRectF at(12, area().top() - metrics.height() - 8, metrics.horizontalAdvance(title) + 1, metrics.height());
  if (!state_->picture && at.top() < state_->covered_px) {
    const ResultPoint* picked = state_->find_point(state_->selection ? state_->selection->point() : std::nullopt);
    const auto free = [&](const QRectF& words) {
      const QPointF ring = picked ? pixel(*picked) : QPointF();
      return placer.is_free(words) && !(picked && QLineF(ring, nearest_in(words, ring)).length() < 2 * kRing_px);
    };
    const QRectF first(frame.left() + 8, frame.top() + 4, at.width(), at.height());
    at = first;
    for (int row = 0; row < 3 && !free(at); ++row)
      for (at = first.translated(0, row * (at.height() + 2)); at.right() < frame.right() && !free(at);)
        at.translate(24, 0);
    if (!free(at)) at = first;
    placer.block(at);
    state_->words.push_back(at);
  }
  painter.setFont(small);
  painter.setPen(state_->colors->secondary);
  painter.drawText(at, Qt::AlignLeft, title);
}

void LabelItem::draw_limit(QPainter& painter, LabelPlacer& placer) {
  state_->nothing_fits_said = false;
  if (state_->data.memory_limit <= 0 || state_->empty()) return;
  const ThemeColors& colors = *state_->colors;
  const QRectF frame = uncovered();
  const double x = pixel_x(static_cast<double>(state_->data.memory_limit));
  TextBlock block{{QObject::tr("Memory limit %1").arg(memory_text(state_->data.memory_limit))},
                  bold(secondary_font(state_->font)),
                  secondary_font(state_->font)};
  if (x > frame.right() - 2) {
    block.lines[0] += QStringLiteral(" →");
    const QSizeF size = block.size();
    QRectF at(frame.right() - size.width() - 8, frame.top() + 4, size.width(), size.height());
    if (const auto free = free_below(placer, at)) at = *free;
    placer.block(at);
    state_->words.push_back(at);
    block.draw(painter, at, colors.secondary, colors.secondary);
    return;
  }
  if (x < frame.left()) return;
  const ChartSeries* subject = state_->data.subject();
  bool any_fits = false, any_beyond = false;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const auto& series : state_->data.series) {
    if (!series.result || (&series != subject && !state_->data.markers_only())) continue;
    for (const auto& p : series.result->points) {
      if (!drawable(p)) continue;
      (state_->fits(series, p) ? any_fits : any_beyond) = true;
      const bool peaks = series.result->fits_by_peak;
      if (!peaks || p.simulated_memory_bytes)
        least = std::min(least, p.simulated_memory_bytes.value_or(p.memory_bytes));
    }
  }
  const bool infeasible = subject && !any_fits && any_beyond;
  const double span = mParentPlot->xAxis->range().size();
  if (infeasible) {
    block.lines[0] = QObject::tr("No plan%1 fits %2")
                         .arg(subject->frontier ? to_qt(space_words(subject->result->traits)) : QString(),
                              state_->units.memory_text(double(state_->data.memory_limit), span));
    const QString least_words = state_->units.memory_text(double(least), span);
    block.lines << (!subject->frontier ? QObject::tr("the smallest needs %1").arg(least_words)
                    : subject->result->fits_by_peak
                        ? QObject::tr("%1's smallest peak is %2").arg(subject->title, least_words)
                        : QObject::tr("%1's smallest needs %2").arg(subject->title, least_words));
    if (subject->frontier) block.lines << others_that_fit(*state_, span);
    state_->nothing_fits_said = true;
  } else if (any_beyond) {
    const QString device = state_->data.device;
    block.lines << (device.isEmpty() ? QObject::tr("does not fit:") : QObject::tr("does not fit on a %1:").arg(device));
    block.lines << QObject::tr("markers hollow, lines thin");
  }
  const QSizeF size = block.size();
  // At the top right of the line; where something is drawn there, further down, or on the other side.
  bool right = x + 8 + size.width() <= frame.right();
  QRectF at(right ? x + 8 : x - 8 - size.width(), frame.top() + 4, size.width(), size.height());
  auto free = free_below(placer, at);
  if (right && (!free || free->top() > frame.top() + frame.height() / 3)) {
    if (const auto left = free_below(placer, at.translated(-16 - size.width(), 0));
        left && (!free || left->top() < free->top()))
      free = left, right = false;
  }
  if (free) at = *free;
  painter.setPen(QPen(colors.text, state_->limit_hovered ? 3 : 1.6));
  painter.drawLine(QPointF(x, area().top()), QPointF(x, frame.bottom()));
  placer.block({x - 2, frame.top(), 4, frame.height()});
  placer.block(at);
  state_->words.push_back(at);
  block.draw(painter, at, infeasible ? colors.warning : colors.text, colors.secondary,
             right ? Qt::AlignLeft : Qt::AlignRight);
}

/// The core's sentence with the figures of its two plans as the axes have them: "0.70 GiB" beside an axis in GiB, where
/// it says "716 MiB".
QString LabelItem::in_axis_units(QString line, const Result& result) const {
  const double span = mParentPlot->xAxis->range().size();
  const auto replace = [&](const std::string& figure, const QString& by) {
    static const QString kWhole = QStringLiteral("(?<![\\d.])%1(?!\\w)");
    line.replace(QRegularExpression(kWhole.arg(QRegularExpression::escape(to_qt(figure)))), by);
  };
  const auto turning = result.turning_point, fastest = result.fastest_that_fits();
  for (const auto& plan : {turning, fastest, turning_point_beyond(result)}) {
    if (!plan || *plan >= result.points.size()) continue;
    const ResultPoint& p = result.points[*plan];
    const std::int64_t memory = p.simulated_memory_bytes.value_or(p.memory_bytes);
    replace(format_bytes(memory), state_->units.memory_text(double(memory), span));
    replace(format_seconds(p.time_s), state_->units.time_text(p.time_s));
  }
  if (turning && fastest && *turning < result.points.size()) {
    const ResultPoint &from = result.points[*turning], &to = result.points[*fastest];
    const bool peaks = from.simulated_memory_bytes && to.simulated_memory_bytes;
    const std::int64_t more =
        peaks ? *to.simulated_memory_bytes - *from.simulated_memory_bytes : to.memory_bytes - from.memory_bytes;
    replace((more < 0 ? "\u2212" : "+") + format_bytes(std::abs(more)), state_->units.memory_difference(double(more)));
  }
  return line;
}

void LabelItem::draw_callouts(QPainter& painter, LabelPlacer& placer) {
  state_->callout = {};
  const ChartSeries* subject = state_->data.subject();
  if (!subject || !subject->frontier || state_->nothing_fits_said)
    return;  // of single answers none is the turning point
  if (state_->data.envelope && state_->show_others) return draw_envelope_callout(painter, placer);
  const Result& result = *subject->result;
  const auto at = result.fastest_that_fits();
  auto fastest = describe_fastest(result);
  if (const ChartSeries* faster = state_->show_others ? state_->data.faster_than_subject() : nullptr;
      faster && !fastest.empty()) {
    const std::string whose = "Fastest of " + subject->title.toStdString() + " that fits";
    fastest.front().replace(0, std::string_view("Fastest that fits").size(), whose);
    const ResultPoint& point = faster->result->points[*faster->result->fastest_that_fits()];
    fastest.push_back("Faster and fits: " + faster->title.toStdString() + ", " +
                      state_->units.time_text(point.time_s).toStdString());
  }
  const bool marked = !fastest.empty() && drawable(result.points[*at]) && area().contains(pixel(result.points[*at]));
  auto words = describe_turning_point(result);
  // The fastest that fits is named once: where it is marked.
  if (marked && !words.empty())
    words.front().resize(std::min(words.front().size(), words.front().find("; best that fits")));
  // One that does not fit is marked where it is, or the words would seem to name what stands beside them.
  auto turning = result.turning_point;
  const bool told = !words.empty() && to_qt(words.front()).startsWith(u"Turning point");
  if (const auto beyond = turning_point_beyond(result); beyond && told)
    turning = area().contains(pixel(result.points[*beyond])) ? beyond : std::nullopt;
  state_->callout = draw_callout(painter, placer, words, *subject, turning);
  if (!marked) return;
  const QRectF drawn = draw_callout(painter, placer, fastest, *subject, at);
  if (!drawn.isEmpty()) state_->words.push_back(drawn);
}

void LabelItem::draw_envelope_callout(QPainter& painter, LabelPlacer& placer) {
  const ChartEnvelope& envelope = *state_->data.envelope;
  ChartSeries best;
  best.result = envelope.result;
  const auto draw = [&](std::vector<std::string> words, std::optional<std::size_t> at) {
    if (at) words.push_back("a plan of " + state_->data.find(envelope.from[*at].method)->title.toStdString());
    return draw_callout(painter, placer, words, best, at);
  };
  state_->callout = draw(describe_turning_point(*best.result), best.result->turning_point);
  const auto fastest = describe_fastest(*best.result);
  if (fastest.empty()) return;
  if (const QRectF drawn = draw(fastest, best.result->fastest_that_fits()); !drawn.isEmpty())
    state_->words.push_back(drawn);
}

QRectF LabelItem::draw_callout(QPainter& painter, LabelPlacer& placer, const std::vector<std::string>& words,
                               const ChartSeries& subject, std::optional<std::size_t> index) {
  if (words.empty()) return {};
  const ThemeColors& colors = *state_->colors;
  TextBlock block{{}, bold(state_->font), secondary_font(state_->font)};
  for (const auto& line : words) block.lines << with_groups(in_axis_units(to_qt(line), *subject.result));
  const QSizeF size = block.size();
  const QRectF frame = uncovered();
  const auto& points = subject.result->points;
  if (!index || *index >= points.size() || !drawable(points[*index])) {
    // Without a turning point the sentence stands in the quiet upper right.
    for (double y = frame.top() + 48; y < frame.bottom() - size.height(); y += 12) {
      const QRectF at(frame.right() - size.width() - 16, y, size.width(), size.height());
      if (!placer.is_free(at)) continue;
      placer.block(at);
      block.draw(painter, at, colors.text, colors.secondary);
      return at;
    }
    return {};
  }
  const QPointF tip = pixel(points[*index]);
  if (!area().contains(tip)) return {};
  painter.setPen(QPen(colors.text, 1.4));
  painter.setBrush(colors.base);
  painter.drawEllipse(tip, 4, 4);
  placer.block({tip.x() - kRing_px, tip.y() - kRing_px, 2 * kRing_px, 2 * kRing_px});  // the plan may be the picked one
  // From near to far above the point, right of the leader first; the frontier falls, so above right is quiet. Where
  // there is no room above, below.
  const double above = tip.y() - frame.top() - size.height(), below = frame.bottom() - tip.y() - size.height();
  for (double step = 28; step < above + below; step += 8) {
    const double lift = step < above ? step : -(step - std::max(0.0, above - 28)) - size.height();
    for (const bool right : {true, false}) {
      const QRectF at(right ? tip.x() + 8 : tip.x() - 8 - size.width(), tip.y() - lift - size.height(), size.width(),
                      size.height());
      const QRectF padded = at.adjusted(-4, -3, 4, 3);
      const double near = lift > 0 ? tip.y() - 9 : tip.y() + 9, far = lift > 0 ? at.top() : at.bottom();
      const QLineF leader(tip.x(), near, tip.x(), far);
      if (!placer.is_free(padded) || !placer.may_lead(leader)) continue;
      placer.block(padded);
      placer.block_leader(leader);
      painter.setPen(QPen(colors.text, 1.2));
      painter.drawLine(leader);
      block.draw(painter, at, colors.text, colors.secondary, right ? Qt::AlignLeft : Qt::AlignRight);
      return padded;
    }
  }
  // Hemmed in between line and memory line: the nearest quiet place, with a leader from the side.
  std::vector<std::pair<double, QRectF>> places;
  for (double y = frame.top() + 8; y + size.height() < frame.bottom(); y += 8) {
    for (double x = frame.left() + 12; x + size.width() < frame.right(); x += 12) {
      const QRectF at(x, y, size.width(), size.height());
      places.emplace_back(QLineF(nearest_in(at, tip), tip).length(), at);
    }
  }
  const auto nearer = [](const auto& a, const auto& b) { return a.first < b.first; };
  std::stable_sort(places.begin(), places.end(), nearer);
  for (const auto& [distance, at] : places) {
    const QRectF padded = at.adjusted(-4, -3, 4, 3);
    const QPointF end = nearest_in(padded, tip);
    QLineF leader(tip, end);
    if (distance < kLeastLeader_px || !placer.may_lead(leader) || !placer.is_free(padded)) continue;
    leader.setPoints(leader.pointAt(9 / leader.length()), end);
    placer.block(padded);
    placer.block_leader(leader);
    painter.setPen(QPen(colors.text, 1.2));
    painter.drawLine(leader);
    // Shorter lines stand at the leader's side.
    block.draw(painter, at, colors.text, colors.secondary, at.right() < tip.x() ? Qt::AlignRight : Qt::AlignLeft);
    return padded;
  }
  return {};
}

}  // namespace turnpoint::views
