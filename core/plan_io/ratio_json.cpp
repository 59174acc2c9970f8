// SPDX-License-Identifier: Apache-2.0
#include "core/plan_io/ratio_json.h"

#include <fmt/format.h>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/json_fields.h"
#include "core/plan/ratio_evaluator.h"
#include "core/plan_io/escape.h"

namespace turnpoint {

namespace {

using nlohmann::json;

constexpr std::int64_t kMostDevices = 1 << 16;  // as many as a scenario may have

/// How many cuts lie above each.
std::vector<int> levels_of(const RatioPlan& plan) {
  std::vector<int> levels(plan.cuts.size(), 0);
  for (std::size_t c = 0; c < plan.cuts.size(); ++c)
    for (const std::uint32_t next : plan.cuts[c].next)
      if (next < levels.size()) levels[next] = levels[c] + 1;
  return levels;
}

json write_cut(const RatioPlan::Cut& cut) {
  json shares = json::array();
  for (std::size_t o = 0; o < cut.share.size(); ++o)
    if (cut.share[o].loop >= 0) shares.push_back({o, cut.share[o].loop, cut.share[o].first});
  json next = json::array();
  for (const std::uint32_t c : cut.next) next.push_back(c == RatioPlan::kNoCut ? json() : json(c));
  json made = {{"part", cut.part}, {"ratio", cut.ratio}, {"shares", std::move(shares)}, {"next", std::move(next)}};
  for (std::size_t o = 0; o < cut.updates.size(); ++o)
    if (cut.updates[o] > 0) made["updates"].push_back({o, cut.updates[o]});
  return made;
}

class RatioReader {
 public:
  RatioReader(const json& document, const std::string& where, const Scenario& scenario)
      : document_(document),
        where_(where),
        model_(*scenario.model),
        devices_(static_cast<std::size_t>(scenario.cluster->devices())) {}

  Expected<RatioPlan> read() {
    JsonFields fields(document_, where_);
    if (fields.text("format", std::string()) != "turnpoint/plan@1" || fields.text("kind", std::string()) != "ratio")
      return bad_input("is no turnpoint/plan@1 of kind ratio", where_);
    const json order = document_.value("order", json());
    if (!order.is_array() || order.size() > kMostDevices) return bad_input("'order' must be a list of devices", where_);
    for (const json& device : order) plan_.order.push_back(number(device, kMostDevices));
    fields.each("parts", [&](JsonFields& part, std::size_t) {
      RatioPlan::Part made;
      made.devices = static_cast<std::uint32_t>(part.integer("devices", 1, kMostDevices));
      if (made.devices > 1) made.halves = pair_of(part.json().value("halves", json()), 2 * kMostDevices);
      plan_.parts.push_back(made);
    });
    fields.each("cuts", [&](JsonFields& cut, std::size_t c) { read_cut(cut, c); });
    fields.each("layers", [&](JsonFields& layer, std::size_t) { read_layer(layer); });
    // Figures of operators are not read: they are worked out anew.
    fields.each("operators", [&](JsonFields& op, std::size_t o) { read_follower(op, o); });
    if (document_.contains("recompute"))
      fields.each("recompute", [&](JsonFields& rerun, std::size_t) { read_rerun(rerun); });
    if (!wrong_.empty()) return bad_input(wrong_, where_);
    if (fields.error()) return *fields.error();
    return std::move(plan_);
  }

 private:
  void wrong(std::string what) {
    if (wrong_.empty()) wrong_ = std::move(what);
  }
  std::uint32_t number(const json& value, std::int64_t most) {
    if (value.is_number_integer() && value >= 0 && value <= most) return value.get<std::uint32_t>();
    wrong(fmt::format("{} is not a whole number up to {}", value.dump().substr(0, 20), most));
    return 0;
  }
  std::array<std::uint32_t, 2> pair_of(const json& value, std::int64_t most) {
    if (value.is_array() && value.size() == 2)
      return {value[0].is_null() ? RatioPlan::kNoCut : number(value[0], most),
              value[1].is_null() ? RatioPlan::kNoCut : number(value[1], most)};
    wrong("parts and cuts lead to two others each");
    return {};
  }

  // Every cut holds a share of each operator: no more of them than there can be.
  void read_cut(JsonFields& fields, std::size_t index) {
    if (index + 1 >= devices_) return wrong(fmt::format("has more cuts than {} devices allow", devices_));
    RatioPlan::Cut cut;
    cut.part = static_cast<std::uint32_t>(fields.integer("part", 0, 2 * kMostDevices));
    cut.ratio = fields.number("ratio", 0, 1);
    cut.next = pair_of(fields.json().value("next", json()), kMostDevices);
    cut.share.resize(model_.operators.size());
    const json shares = fields.json().value("shares", json());
    if (!shares.is_array()) return wrong(fmt::format("cut {} has no list of shares", index));
    for (const json& share : shares) {
      if (!share.is_array() || share.size() != 3)
        return wrong(fmt::format("a share of cut {} is not [operator, loop, units]", index));
      const auto op = number(share[0], static_cast<std::int64_t>(cut.share.size()) - 1);
      const auto loop = number(share[1], 127);
      if (!share[2].is_number_integer()) return wrong(fmt::format("units of cut {} are not a whole number", index));
      if (op < cut.share.size()) cut.share[op] = {static_cast<std::int8_t>(loop), share[2].get<std::int64_t>()};
    }
    if (fields.json().contains("updates")) read_updates(fields.json()["updates"], index, cut);
    plan_.cuts.push_back(std::move(cut));
  }

  void read_updates(const json& updates, std::size_t index, RatioPlan::Cut& cut) {
    if (!updates.is_array()) return wrong(fmt::format("cut {} has no list of updates", index));
    cut.updates.assign(cut.share.size(), 0);
    for (const json& update : updates) {
      if (!update.is_array() || update.size() != 2 || !update[1].is_number())
        return wrong(fmt::format("an update of cut {} is not [operator, share]", index));
      const auto op = number(update[0], static_cast<std::int64_t>(cut.share.size()) - 1);
      const double share = update[1].get<double>();
      if (!(share > 0 && share < 1))
        return wrong(fmt::format("a share of an update of cut {} is not in (0, 1)", index));
      if (op >= cut.updates.size()) return;
      if (cut.updates[op] > 0)
        return wrong(fmt::format("cut {} shares out the update of operator {} twice", index, op));
      cut.updates[op] = share;
    }
  }

  void read_layer(JsonFields& fields) {
    if (plan_.layers.size() >= model_.operators.size()) return wrong("has more layers than the model has operators");
    const std::string name = fields.text("name");
    RatioPlan::Layer layer;
    for (std::size_t o = 0; o < model_.operators.size() && !layer.op.valid(); ++o)
      if (valid_utf8(model_.operators[OperatorId(o)].name) == name) layer.op = OperatorId(o);
    if (!layer.op.valid()) return wrong(fmt::format("the model has no operator '{}'", name.substr(0, 60)));
    layer.type.resize(plan_.cuts.size());
    fields.each("levels", [&](JsonFields& level, std::size_t) {
      const auto cut =
          static_cast<std::size_t>(level.integer("cut", 0, static_cast<std::int64_t>(layer.type.size()) - 1));
      const std::string type = level.text("type");
      for (const auto one : {PartitionType::batch, PartitionType::reduction, PartitionType::output})
        if (type == to_string(one) && cut < layer.type.size()) layer.type[cut] = one;
    });
    plan_.layers.push_back(std::move(layer));
  }

  void read_follower(JsonFields& fields, std::size_t op) {
    if (op >= model_.operators.size()) return wrong("has more operators than the model");
    plan_.follows.resize(model_.operators.size(), RatioPlan::kNoLayer);
    const json follows = fields.json().value("follows", json());
    if (!follows.is_null()) plan_.follows[op] = number(follows, static_cast<std::int64_t>(plan_.layers.size()) - 1);
  }

  // A list of operators for some devices each: no more lists than devices.
  void read_rerun(JsonFields& fields) {
    const json devices = fields.json().value("devices", json()), operators = fields.json().value("operators", json());
    if (plan_.reruns.size() >= devices_ || !devices.is_array() || !operators.is_array() || devices.size() > devices_ ||
        operators.size() > model_.operators.size())
      return wrong("'recompute' must list operators for devices, each device once");
    RatioPlan::Rerun rerun;
    for (const json& device : devices) rerun.devices.push_back(number(device, kMostDevices));
    for (const json& op : operators)
      rerun.operators.push_back(OperatorId(number(op, static_cast<std::int64_t>(model_.operators.size()) - 1)));
    plan_.reruns.push_back(std::move(rerun));
  }

  const json& document_;
  const std::string& where_;
  const Model& model_;
  std::size_t devices_;
  RatioPlan plan_;
  std::string wrong_;
};

}  // namespace

nlohmann::json write_ratio_plan(const Scenario& scenario, const RatioPlan& plan) {
  const Model& model = *scenario.model;
  const std::vector<int> levels = levels_of(plan);
  json parts = json::array(), cuts = json::array(), layers = json::array(), operators = json::array();
  for (const RatioPlan::Part& part : plan.parts) {
    parts.push_back({{"devices", part.devices}});
    if (part.devices > 1) parts.back()["halves"] = part.halves;
  }
  for (const RatioPlan::Cut& cut : plan.cuts) cuts.push_back(write_cut(cut));
  for (const RatioPlan::Layer& layer : plan.layers) {
    json of = json::array();
    for (std::size_t c = 0; c < plan.cuts.size(); ++c)
      of.push_back({{"level", levels[c]},
                    {"cut", c},
                    {"type", std::string(to_string(layer.type[c]))},
                    {"ratio", plan.cuts[c].ratio}});
    layers.push_back({{"name", valid_utf8(model.operators[layer.op].name)}, {"levels", std::move(of)}});
  }
  for (const RatioPlan::Item& item : plan.operators) {
    operators.push_back({{"name", valid_utf8(model.operators[item.op].name)},
                         {"memory_bytes", item.cost.memory_bytes()},
                         {"compute_s", item.cost.compute_s()},
                         {"network_s", item.cost.network_s()}});
    if (item.op.index < plan.follows.size() && plan.follows[item.op.index] != RatioPlan::kNoLayer)
      operators.back()["follows"] = plan.follows[item.op.index];
  }
  json made = {{"format", "turnpoint/plan@1"},
               {"kind", "ratio"},
               {"model", valid_utf8(model.name)},
               {"hardware", valid_utf8(scenario.cluster->name)},
               {"order", plan.order},
               {"parts", std::move(parts)},
               {"cuts", std::move(cuts)},
               {"layers", std::move(layers)},
               {"operators", std::move(operators)},
               {"device_memory_bytes", plan.device_memory}};
  for (const RatioPlan::Rerun& rerun : plan.reruns) {
    json ids = json::array();
    for (const OperatorId id : rerun.operators) ids.push_back(id.index);
    made["recompute"].push_back({{"devices", rerun.devices}, {"operators", std::move(ids)}});
  }
  return made;
}

Expected<RatioPlan> read_ratio_plan(const nlohmann::json& document, const std::string& where,
                                    const Scenario& scenario) {
  auto read = RatioReader(document, where, scenario).read();
  if (!read) return read;
  auto priced = evaluate_ratio_plan(scenario, std::move(*read));
  if (!priced) return bad_input(priced.error().what, where);
  return priced;
}

}  // namespace turnpoint
