// SPDX-License-Identifier: Apache-2.0
#include "views/common/ratio_types.h"

#include <QObject>
#include <QStringList>
#include <algorithm>

#include "core/cost/logical_dims.h"
#include "views/common/format.h"

namespace turnpoint::views {

namespace {

/// One loop and the levels at which it is cut, with the operators' types there.
struct CutLoop {
  int first_level = 0, levels = 0;
  QString text;
};

QString named_types(const std::array<bool, 3>& types) {
  QStringList names;
  for (std::size_t t = 0; t < types.size(); ++t)
    if (types[t]) names << to_qt(to_string(PartitionType(t)));
  return names.join(u'/');
}

/// What the figures know of an operator along an axis, or level.
std::optional<PartitionType> type_in(const PlanFigures& figures, OperatorId op, std::size_t level) {
  if (figures.ratio()) return figures.ratio()->type(op, level);
  if (!figures.typed()) return std::nullopt;
  return type_along(figures.model(), figures.plan().operators[op.index], level);
}

}  // namespace

std::optional<PartitionType> type_along(const Model& model, const PlanOperator& planned, std::size_t axis) {
  const Operator& op = model.operators[planned.op];
  const int loop = planned.split.axis[axis], weight = weight_input(model, op);
  if (loop < 0 || weight < 0) return std::nullopt;
  const auto& walks = op.inputs[static_cast<std::size_t>(weight)].walks;
  const bool of_weight = std::ranges::any_of(walks, [&](const std::vector<std::uint8_t>& loops) {
    return std::ranges::find(loops, static_cast<std::uint8_t>(loop)) != loops.end();
  });
  if (!of_weight) return PartitionType::batch;
  return op.dims[static_cast<std::size_t>(loop)].role == DimRole::reduction ? PartitionType::reduction
                                                                            : PartitionType::output;
}

QString typed_layers(const Plan& plan, const Model& model) {
  QStringList all;
  for (int a = 0; a < plan.mesh.count(); ++a) {
    const auto axis = static_cast<std::size_t>(a);
    std::array<int, 3> layers{};
    for (const PlanOperator& op : plan.operators)
      if (const auto type = type_along(model, op, axis)) ++layers[std::size_t(*type)];
    QStringList along;
    for (std::size_t t = 0; t < layers.size(); ++t)
      if (layers[t] > 0) along << QStringLiteral("%1 %2").arg(layers[t]).arg(to_qt(to_string(PartitionType(t))));
    if (!along.isEmpty())
      all << QObject::tr("%1 along %2").arg(along.join(QStringLiteral(", ")), to_qt(plan.mesh.axes[axis].name));
  }
  return all.isEmpty() ? QString() : QObject::tr("Layers by type: %1.").arg(all.join(QStringLiteral("; ")));
}

QString typed_split(const PlanFigures& figures, std::span<const OperatorId> operators) {
  if (operators.empty()) return {};
  const OperatorId any = operators.front();
  const Mesh& mesh = figures.plan().mesh;
  const Configuration& split = figures.plan().operators[any.index].split;
  if (!(figures.ratio() || figures.typed()) || split == Configuration()) return figures.configuration_of(any).text;
  std::vector<CutLoop> loops;
  for (std::size_t l = 0; l < figures.model().operators[any].dims.size(); ++l) {
    CutLoop cut;
    QString axes;
    std::array<bool, 3> types{};
    for (int a = mesh.count(); a-- > 0;) {
      const auto level = static_cast<std::size_t>(a);
      if (split.axis[level] != static_cast<int>(l)) continue;
      axes.prepend(to_qt(mesh.axes[level].name));
      cut.first_level = a, ++cut.levels;
      for (const OperatorId one : operators)
        if (const auto type = type_in(figures, one, level)) types[std::size_t(*type)] = true;
    }
    if (cut.levels == 0) continue;
    const QString loop = to_qt(to_string(figures.model().operators[any].dims[l].name)) + u' ' + axes;
    const QString names = named_types(types);
    cut.text = names.isEmpty() ? loop : names + u' ' + loop;
    loops.push_back(std::move(cut));
  }
  // As describe() of a configuration has them: most cut first, then the outermost.
  std::sort(loops.begin(), loops.end(), [](const CutLoop& x, const CutLoop& y) {
    return x.levels != y.levels ? x.levels > y.levels : x.first_level < y.first_level;
  });
  QStringList texts;
  for (const CutLoop& cut : loops) texts << cut.text;
  return texts.join(QStringLiteral(" \u00b7 "));
}

std::array<bool, 3> types_of(const PlanFigures& figures) {
  std::array<bool, 3> met{};
  if (!figures.ratio() && !figures.typed()) return met;
  for (std::uint32_t o = 0; o < figures.model().operators.size(); ++o)
    for (int a = 0; a < figures.plan().mesh.count(); ++a)
      if (const auto type = type_in(figures, OperatorId(o), static_cast<std::size_t>(a)))
        met[std::size_t(*type)] = true;
  return met;
}

QString type_words(PartitionType type) {
  switch (type) {
    case PartitionType::batch: return QObject::tr("I batch: samples are shared out");
    case PartitionType::reduction: return QObject::tr("II reduction: inputs are shared out");
    case PartitionType::output: return QObject::tr("III output: outputs are shared out");
  }
  return {};
}

QString type_sentence(PartitionType type) {
  switch (type) {
    case PartitionType::batch:
      return QObject::tr(
          "Type I, batch: each half computes its part of the samples and holds all weights; the halves sum the "
          "gradients of the weights.");
    case PartitionType::reduction:
      return QObject::tr(
          "Type II, reduction: each half holds the weights of its part of the inputs; the halves sum their outputs in "
          "forward.");
    case PartitionType::output:
      return QObject::tr(
          "Type III, output: each half holds the weights of its part of the outputs and reads all inputs; the halves "
          "sum the gradients of the inputs in backward.");
  }
  return {};
}

}  // namespace turnpoint::views
