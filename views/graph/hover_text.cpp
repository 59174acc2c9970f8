// SPDX-License-Identifier: Apache-2.0
#include "views/graph/hover_text.h"

#include <QCoreApplication>
#include <algorithm>
#include <string>

#include "core/model/operator_kind.h"
#include "views/common/format.h"
#include "views/common/ratio_types.h"
#include "views/graph/graph_painter.h"

namespace turnpoint::views {

namespace {

constexpr double kBoxPad = 8;

QString tr(const char* text) { return QCoreApplication::translate("GraphView", text); }

QString shape_text(const Tensor& tensor) {
  QStringList sizes;
  for (const auto size : tensor.shape) sizes << QString::number(size);
  return sizes.isEmpty() ? tr("scalar") : sizes.join(QStringLiteral(" \u00d7 "));
}

QString short_name(const Model& model, OperatorId op) {
  const QString name = op.valid() ? to_qt(model.operators[op].name) : tr("input");
  return name.section(QLatin1Char('/'), -2, -1, QString::SectionSkipEmpty);
}

}  // namespace

QString kind_text(OperatorKind kind) { return tr(std::string(record_of(kind).words).c_str()); }

HoverText operator_hover(const Model& model, OperatorId id, const PlanFigures* figures) {
  const Operator& op = model.operators[id];
  const QString kind = kind_text(op.kind), detail = to_qt(op.detail);
  const QString what = detail.isEmpty() || !kind.compare(detail, Qt::CaseInsensitive)
                           ? kind
                           : kind + QStringLiteral(" \u00b7 ") + detail;
  if (!figures)
    return {{to_qt(op.name), {}},
            {what, op.outputs.empty() ? QString() : shape_text(model.tensors[op.outputs.front().tensor])}};
  const OperatorFigures& cost = figures->of(id);
  HoverText text{{to_qt(op.name), seconds_text(cost.time_s())},
                 {what, bytes_text(cost.memory_bytes)},
                 {typed_split(*figures, std::span(&id, 1)), {}}};
  if (figures->ratio()) text.push_back({figures->ratio()->words(id), {}});
  const PlanOperator& how = figures->plan().operators[id.index];
  if (how.choice != MemoryChoice{}) text.push_back({to_qt(describe(figures->plan().mesh, how.choice)), {}});
  text.push_back({tr("compute %1 \u00b7 network %2 \u00b7 reshards %3")
                      .arg(seconds_text(cost.compute_s), seconds_text(cost.network_s), seconds_text(cost.reshard_s)),
                  {}});
  return text;
}

HoverText edge_hover(const Model& model, const GraphScene& scene, int edge, const PlanFigures* figures) {
  const auto e = static_cast<std::size_t>(edge);
  const std::uint32_t begin = scene.use_begin[e], end = scene.use_begin[e + 1];
  if (begin == end) return {};
  const auto arrow = [&](OperatorId from, OperatorId to) {
    return short_name(model, from) + QStringLiteral(" \u2192 ") +
           (to.valid() ? short_name(model, to) : tr("all consumers"));
  };
  HoverText text;
  const int index = scene.edge_reshard[e];
  if (figures && index >= 0) {
    const PlanReshard& reshard = figures->plan().reshards[static_cast<std::size_t>(index)];
    const ReshardFigures& cost = figures->reshards[static_cast<std::size_t>(index)];
    text = {
        {arrow(reshard.producer, reshard.consumer) + QLatin1Char(' ') + figures->collectives(reshard),
         seconds_text(cost.time_s)},
        {figures->layouts(reshard), bytes_text(static_cast<std::int64_t>(cost.bytes))},
        {to_qt(model.tensors[reshard.tensor].name) + QStringLiteral("  ") + shape_text(model.tensors[reshard.tensor]),
         {}}};
  } else {
    const EdgeUse& use = scene.uses[begin];
    text = {{arrow(use.producer, use.consumer), {}},
            {to_qt(model.tensors[use.tensor].name) + QStringLiteral("  ") + shape_text(model.tensors[use.tensor]), {}}};
    if (figures) text.push_back({tr("no resharding"), figures->output_layout(use.producer)});
  }
  std::vector<std::uint32_t> tensors;
  for (std::uint32_t u = begin; u < end; ++u) tensors.push_back(scene.uses[u].tensor.index);
  std::sort(tensors.begin(), tensors.end());
  tensors.erase(std::unique(tensors.begin(), tensors.end()), tensors.end());
  if (tensors.size() > 1) text.push_back({tr("and %1 more tensors").arg(tensors.size() - 1), {}});
  return text;
}

HoverText card_hover(const GraphScene& scene, const GraphCard& card, const PlanFigures* figures) {
  HoverText text{{card.name, figures ? seconds_text(card.time_s) : QString()},
                 {tr("%1 operators").arg(card.member_end - card.member_begin),
                  figures ? bytes_text(card.memory_bytes) : QString()}};
  if (figures && figures->ratio()) {
    const std::span<const OperatorId> members(scene.members);
    text.push_back(
        {figures->ratio()->words(members.subspan(card.member_begin, card.member_end - card.member_begin)), {}});
  }
  if (figures && card.reshard_s > 0) text.push_back({tr("reshards"), seconds_text(card.reshard_s)});
  return text;
}

QString plain_text(const HoverText& text) {
  QStringList lines;
  for (const HoverRow& row : text) lines << (row.right.isEmpty() ? row.left : row.left + QLatin1Char('\t') + row.right);
  return lines.join(QLatin1Char('\n'));
}

void paint_hover(QPainter& painter, const HoverText& text, QPointF anchor, const QRectF& area, const ThemeColors& theme,
                 const QFont& font) {
  if (text.empty()) return;
  const QFont bold = graph_name_font(font), small = graph_small_font(font);
  const QFontMetricsF bold_metrics(bold), small_metrics(small);
  const double longest = std::max(120.0, area.width() - 24);
  double left = 0, right = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const QFontMetricsF& metrics = i == 0 ? bold_metrics : small_metrics;
    left = std::max(left, metrics.horizontalAdvance(text[i].left));
    right = std::max(right, metrics.horizontalAdvance(text[i].right));
  }
  if (right > 0) right += 20;
  const double width = std::min(longest, std::ceil(left + right) + 2 * kBoxPad);
  const double line = small_metrics.height() + 2;
  QRectF box(anchor + QPointF(14, 16), QSizeF(width, line * static_cast<double>(text.size()) + 2 * kBoxPad - 2));
  if (box.right() > area.right() - 4) box.moveRight(area.right() - 4);
  if (box.left() < area.left() + 4) box.moveLeft(area.left() + 4);
  if (box.bottom() > area.bottom() - 4) box.moveBottom(std::max(anchor.y() - 10, area.top() + 4 + box.height()));
  painter.setRenderHint(QPainter::Antialiasing, true);
  painter.setPen(theme.axis);
  painter.setBrush(theme.dark ? theme.head : theme.base);
  painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 3, 3);
  double y = box.top() + kBoxPad - 1;
  for (std::size_t i = 0; i < text.size(); ++i, y += line) {
    const QFontMetricsF& metrics = i == 0 ? bold_metrics : small_metrics;
    painter.setFont(i == 0 ? bold : small);
    painter.setPen(i == 0 ? theme.text : theme.secondary);
    const QRectF row(box.left() + kBoxPad, y, box.width() - 2 * kBoxPad, line);
    const double value = text[i].right.isEmpty() ? 0 : metrics.horizontalAdvance(text[i].right) + 12;
    painter.drawText(row, Qt::AlignLeft | Qt::AlignVCenter | Qt::TextSingleLine,
                     metrics.elidedText(text[i].left, Qt::ElideMiddle, row.width() - value));
    painter.drawText(row, Qt::AlignRight | Qt::AlignVCenter | Qt::TextSingleLine, text[i].right);
  }
}

}  // namespace turnpoint::views
