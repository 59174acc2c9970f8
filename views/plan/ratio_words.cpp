// SPDX-License-Identifier: Apache-2.0
#include "views/plan/ratio_words.h"

#include <algorithm>

#include "views/common/format.h"
#include "views/common/ratio_shares.h"

namespace turnpoint::views {

namespace {

/// "4 × V100-16GB": of all devices on which the operator runs again.
QString rerun_on(const RatioPlan& plan, const Cluster& cluster, OperatorId op) {
  std::vector<std::uint32_t> devices;
  for (const RatioPlan::Rerun& rerun : plan.reruns)
    if (std::binary_search(rerun.operators.begin(), rerun.operators.end(), op))
      devices.insert(devices.end(), rerun.devices.begin(), rerun.devices.end());
  return devices_text(devices, cluster);
}

struct Halves {
  QString first, second;
};
/// Of a cut on the way to the first device: all of them begin there.
Halves halves_of(const RatioPlan& plan, const Cluster& cluster, const RatioPlan::Cut& cut) {
  const RatioPlan::Part& part = plan.parts[cut.part];
  return {devices_text(plan, cluster, part.halves[0], 0),
          devices_text(plan, cluster, part.halves[1], plan.parts[part.halves[0]].devices)};
}

}  // namespace

QString describe_ratio(const RatioPlan& plan, const Scenario& scenario) {
  if (plan.cuts.empty()) return QObject::tr("One device does everything.");
  int levels = 0;
  for (std::uint32_t c = 0; c != RatioPlan::kNoCut; c = plan.cuts[c].next[0]) ++levels;
  const RatioPlan::Cut& cut = plan.cuts.front();
  const auto [first, second] = halves_of(plan, *scenario.cluster, cut);
  return (levels == 1 ? QObject::tr("%1 devices cut in two.").arg(plan.devices())
                      : QObject::tr("%1 devices cut in two at %2 levels.").arg(plan.devices()).arg(levels)) +
         QObject::tr(" \u2460 gives %1 %2, %3 %4.")
             .arg(first, portion_text(cut.ratio), second, portion_text(1 - cut.ratio));
}

std::vector<Fact> describe_shares(const RatioPlan& plan, const Scenario& scenario, OperatorId op) {
  std::vector<Fact> facts;
  const Operator& what = scenario.model->operators[op];
  std::vector<std::int64_t> left;
  for (const LoopDimension& dim : what.dims) left.push_back(dim.size);
  const auto layer =
      std::find_if(plan.layers.begin(), plan.layers.end(), [&](const RatioPlan::Layer& one) { return one.op == op; });
  const Plan axes = as_axes(plan);
  if (op.index < plan.follows.size() && plan.follows[op.index] < plan.layers.size())
    facts.push_back(
        {QObject::tr("Follows"), to_qt(scenario.model->operators[plan.layers[plan.follows[op.index]].op].name)});
  std::uint32_t c = plan.cuts.empty() ? RatioPlan::kNoCut : 0;
  for (const MeshAxis& axis : axes.mesh.axes) {
    const RatioPlan::Cut& cut = plan.cuts[c];
    const RatioPlan::Share& share = cut.share[op.index];
    QString text = QObject::tr("both halves do all of it");
    if (share.loop >= 0) {
      const auto loop = std::size_t(share.loop);
      text = QObject::tr("%1: %2 of %3 to %4")
                 .arg(to_qt(to_string(what.dims[loop].name)), grouped_number(double(share.first), 0),
                      grouped_number(double(left[loop]), 0), halves_of(plan, *scenario.cluster, cut).first);
      if (layer != plan.layers.end()) text = QObject::tr("type %1, %2").arg(to_qt(to_string(layer->type[c])), text);
      left[loop] = share.first;
    }
    if (const double updated = cut.update_of(op); updated > 0)
      text += QObject::tr("; %1 of the weights' update to %2")
                  .arg(portion_text(updated), halves_of(plan, *scenario.cluster, cut).first);
    facts.push_back({QObject::tr("Cut %1").arg(to_qt(axis.name)), text});
    c = cut.next[0];
  }
  const QString where = rerun_on(plan, *scenario.cluster, op);
  if (!where.isEmpty()) facts.push_back({QObject::tr("Runs again"), QObject::tr("in backward, on %1").arg(where)});
  return facts;
}

}  // namespace turnpoint::views
