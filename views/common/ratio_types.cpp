// SPDX-License-Identifier: Apache-2.0
#include "views/common/ratio_types.h"

#include <QObject>
#include <QStringList>
#include <algorithm>

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

}  // namespace

QString typed_split(const PlanFigures& figures, std::span<const OperatorId> operators) {
  if (operators.empty()) return {};
  const OperatorId any = operators.front();
  const Mesh& mesh = figures.plan().mesh;
  const Configuration& split = figures.plan().operators[any.index].split;
  if (!figures.ratio() || split == Configuration()) return figures.configuration_of(any).text;
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
        if (const auto type = figures.ratio()->type(one, level)) types[std::size_t(*type)] = true;
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
  if (!figures.ratio()) return met;
  for (std::uint32_t o = 0; o < figures.model().operators.size(); ++o)
    for (int a = 0; a < figures.plan().mesh.count(); ++a)
      if (const auto type = figures.ratio()->type(OperatorId(o), static_cast<std::size_t>(a)))
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
