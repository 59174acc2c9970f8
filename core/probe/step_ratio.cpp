// SPDX-License-Identifier: Apache-2.0
#include "core/probe/step_ratio.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/probe/step_placement.h"

namespace turnpoint {

namespace {

using nlohmann::json;

constexpr std::int64_t kMostRanksCut = 4096;
constexpr double kMostMovedBytes = 1e18;
using MoveKind = MeasuredMove::Kind;
constexpr MoveKind kMoveKinds[] = {MoveKind::activation, MoveKind::gradient,    MoveKind::weight_sum,
                                   MoveKind::new_weight, MoveKind::tied_weight, MoveKind::tied_sum};

std::int64_t last_of(std::size_t count) { return static_cast<std::int64_t>(count) - 1; }

/// Whole numbers from 0 to `most`, or null where `otherwise` is given.
std::array<std::uint32_t, 2> read_pair(JsonFields& fields, const char* key, std::int64_t most,
                                       std::optional<std::uint32_t> otherwise = {}) {
  std::array<std::uint32_t, 2> pair{};
  const auto found = fields.json().find(key);
  if (found == fields.json().end() || !found->is_array() || found->size() != 2) {
    fields.fail(key, "must name two others");
    return pair;
  }
  for (std::size_t i = 0; i < 2; ++i) {
    const json& value = (*found)[i];
    if (value.is_null() && otherwise)
      pair[i] = *otherwise;
    else if (value.is_number_unsigned() && most >= 0 && value.get<std::uint64_t>() <= static_cast<std::uint64_t>(most))
      pair[i] = value.get<std::uint32_t>();
    else
      fields.fail(key, fmt::format("must name others up to {}", most));
  }
  return pair;
}

void read_order_of_ranks(JsonFields& fields, StepRatio& ratio) {
  const auto order = fields.json().find("order");
  if (order == fields.json().end() || !order->is_array() || order->empty() || order->size() > kMostRanksCut)
    return fields.fail("order", "must be a list of ranks");
  std::vector<char> seen(order->size(), 0);
  for (const json& rank : *order) {
    const bool known = rank.is_number_unsigned() && rank.get<std::uint64_t>() < seen.size();
    if (!known || seen[rank.get<std::size_t>()]++)
      return fields.fail("order", fmt::format("does not name each of {} ranks once", seen.size()));
    ratio.order.push_back(rank.get<std::uint32_t>());
  }
}

void read_parts(JsonFields& fields, StepRatio& ratio) {
  fields.each("parts", [&](JsonFields& item, std::size_t p) {
    StepRatio::Part part;
    part.devices = static_cast<std::uint32_t>(item.integer("devices", 1, kMostRanksCut));
    if (part.devices > 1 && !item.error()) {
      part.halves = read_pair(item, "halves", last_of(p));
      if (!item.error() && ratio.parts[part.halves[0]].devices + ratio.parts[part.halves[1]].devices != part.devices)
        item.fail("halves", "do not have the part's devices together");
    }
    ratio.parts.push_back(part);
  });
  if (fields.error()) return;
  if (ratio.parts.empty() || ratio.parts.back().devices != ratio.order.size())
    fields.fail("parts", "do not hold all ranks in the last one");
}

void read_shares(JsonFields& fields, const Model& model, StepRatio::Cut& cut) {
  cut.share.resize(model.operators.size());
  const auto shares = fields.json().find("shares");
  if (shares == fields.json().end() || !shares->is_array()) return fields.fail("shares", "is missing");
  for (const json& share : *shares) {
    const bool whole = share.is_array() && share.size() == 3 && share[0].is_number_unsigned() &&
                       share[1].is_number_unsigned() && share[2].is_number_integer();
    if (!whole || share[0].get<std::uint64_t>() >= cut.share.size() || share[1].get<std::uint64_t>() > 127)
      return fields.fail("shares", "must be lists of an operator, its loop and units");
    const auto op = share[0].get<std::size_t>();
    if (share[1].get<std::size_t>() >= model.operators[OperatorId(op)].dims.size())
      return fields.fail("shares",
                         fmt::format("cut a loop that '{}' does not have", model.operators[OperatorId(op)].name));
    cut.share[op] = {static_cast<std::int8_t>(share[1].get<int>()), share[2].get<std::int64_t>()};
  }
}

void read_shared_updates(JsonFields& fields, StepRatio::Cut& cut) {
  const auto updates = fields.json().find("updates");
  if (updates == fields.json().end()) return;
  cut.updates.assign(cut.share.size(), 0);
  if (!updates->is_array()) return fields.fail("updates", "must be lists of an operator and a share");
  for (const json& update : *updates) {
    const bool whole = update.is_array() && update.size() == 2 && update[0].is_number_unsigned() &&
                       update[1].is_number() && update[0].get<std::uint64_t>() < cut.updates.size();
    const double share = whole ? update[1].get<double>() : 0;
    if (!(share > 0 && share < 1)) return fields.fail("updates", "must be lists of an operator and a share in (0, 1)");
    const auto op = update[0].get<std::size_t>();
    if (cut.updates[op] > 0) return fields.fail("updates", fmt::format("list operator {} twice", op));
    cut.updates[op] = share;
  }
}

void read_again(JsonFields& fields, const Model& model, StepRatio& ratio) {
  const auto again = fields.json().find("again");
  if (again == fields.json().end()) return;
  if (!again->is_array() || again->size() > ratio.order.size())
    return fields.fail("again", "must be a list for each rank");
  for (const json& operators : *again) {
    auto& made = ratio.again.emplace_back();
    if (!operators.is_array()) return fields.fail("again", "must be a list for each rank");
    for (const json& op : operators) {
      const bool known = op.is_number_unsigned() && op.get<std::uint64_t>() < model.operators.size();
      if (!known || (!made.empty() && made.back().index >= op.get<std::uint64_t>()))
        return fields.fail("again", "must name operators of the model in rising order");
      const OperatorId id(op.get<std::size_t>());
      if (model.operators[id].is_view() || model.operators[id].kind == OperatorKind::input)
        return fields.fail("again", fmt::format("names '{}', which computes nothing", model.operators[id].name));
      made.push_back(id);
    }
  }
}

}  // namespace

const char* to_string(MeasuredMove::Kind kind) {
  switch (kind) {
    case MoveKind::activation: return "activation";
    case MoveKind::gradient: return "gradient";
    case MoveKind::weight_sum: return "weight-sum";
    case MoveKind::new_weight: return "new-weight";
    case MoveKind::tied_weight: return "tied-weight";
    case MoveKind::tied_sum: return "tied-sum";
  }
  return "";
}

json write_step_ratio(const StepRatio& ratio) {
  json parts = json::array(), cuts = json::array();
  for (const auto& part : ratio.parts) {
    json& line = parts.emplace_back(json{{"devices", part.devices}});
    if (part.devices > 1) line["halves"] = part.halves;
  }
  for (const auto& cut : ratio.cuts) {
    json shares = json::array(), next = json::array();
    for (std::size_t o = 0; o < cut.share.size(); ++o)
      if (cut.share[o].loop >= 0)
        shares.push_back({o, static_cast<std::uint32_t>(cut.share[o].loop), cut.share[o].first});
    for (const std::uint32_t c : cut.next) next.push_back(c == StepRatio::kNoCut ? json() : json(c));
    cuts.push_back({{"part", cut.part}, {"shares", std::move(shares)}, {"next", std::move(next)}});
    for (std::size_t o = 0; o < cut.updates.size(); ++o)
      if (cut.updates[o] > 0) cuts.back()["updates"].push_back({o, cut.updates[o]});
  }
  json made = {{"order", ratio.order}, {"parts", std::move(parts)}, {"cuts", std::move(cuts)}};
  for (const auto& operators : ratio.again) {
    json& line = made["again"].emplace_back(json::array());
    for (const OperatorId op : operators) line.push_back(op.index);
  }
  return made;
}

StepRatio read_step_ratio(JsonFields fields, const Model& model) {
  StepRatio ratio;
  read_order_of_ranks(fields, ratio);
  if (!fields.error()) read_parts(fields, ratio);
  if (fields.error()) return ratio;
  fields.each("cuts", [&](JsonFields& item, std::size_t c) {
    // Every cut holds a share of each operator: no more of them than there can be.
    if (c + 1 >= ratio.order.size()) return item.fail("part", "is one more than the ranks can be cut into");
    StepRatio::Cut cut;
    cut.part = static_cast<std::uint32_t>(item.integer("part", 0, last_of(ratio.parts.size())));
    cut.next = read_pair(item, "next", kMostRanksCut, StepRatio::kNoCut);
    read_shares(item, model, cut);
    if (!item.error()) read_shared_updates(item, cut);
    ratio.cuts.push_back(std::move(cut));
  });
  if (!fields.error()) read_again(fields, model, ratio);
  return ratio;
}

json write_measured(const MeasuredMove& move) {
  json line = write_spread(move.time);
  line["type"] = "move";
  line["of"] = to_string(move.kind);
  line["tensor"] = move.tensor.index;
  line["op"] = move.op.index;
  line["once_bytes"] = move.once_bytes;
  line["received_bytes"] = move.received_bytes;
  return line;
}

MeasuredMove read_measured_move(JsonFields& fields, const Model& model) {
  MeasuredMove move;
  const std::string kind = fields.text("of");
  bool known = false;
  for (const MoveKind one : kMoveKinds)
    if (kind == to_string(one)) move.kind = one, known = true;
  if (!known) fields.fail("of", fmt::format("'{}' is not known", kind));
  move.tensor = TensorId(static_cast<std::size_t>(fields.integer("tensor", 0, last_of(model.tensors.size()))));
  move.op = OperatorId(static_cast<std::size_t>(fields.integer("op", 0, last_of(model.operators.size()))));
  move.once_bytes = fields.number("once_bytes", 0, kMostMovedBytes);
  move.received_bytes = fields.number("received_bytes", 0, kMostMovedBytes);
  move.time = read_spread(fields);
  return move;
}

}  // namespace turnpoint
