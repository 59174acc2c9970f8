// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/base/json_fields.h"
#include "core/import/task_graph.h"
#include "core/import/task_graph/readers.h"

namespace turnpoint {
namespace {

/// The whole numbers of a list, each in [0, limit); nothing if it is no such list.
std::optional<std::vector<std::uint32_t>> indices(const nlohmann::json& list, std::uint64_t limit) {
  if (!list.is_array()) return std::nullopt;
  std::vector<std::uint32_t> values;
  values.reserve(list.size());
  for (const auto& item : list) {
    if (!item.is_number_unsigned() || item.get<std::uint64_t>() >= limit) return std::nullopt;
    values.push_back(item.get<std::uint32_t>());
  }
  return values;
}

}  // namespace

Expected<Placement> read_placement(std::string_view text, const std::string& where) {
  constexpr std::size_t kMaxText = std::size_t(256) << 20;
  if (text.size() > kMaxText) return bad_input("is larger than 256 MiB", where);
  const auto document = parse_json(text, where, task_graph_import::kMaxDepth);
  if (!document) return document.error();
  JsonFields root(*document, where);
  const std::string format = root.text("format", "turnpoint/placement@1");
  if (!root.error() && format == "turnpoint/plan@1" && root.text("kind", "") != "placement")
    return bad_input("is a plan of another kind than placement", where);
  if (!root.error() && format != "turnpoint/placement@1" && format != "turnpoint/plan@1")
    return bad_input("the format is not \"turnpoint/placement@1\"", where);
  Placement placement;
  placement.devices = std::uint32_t(root.integer("devices", 1, TaskGraphBuilder::kMaxDevices));
  if (root.error()) return *root.error();
  if (!root.has("device")) return bad_input("is missing", where + ": device");
  auto device = indices(document->at("device"), placement.devices);
  if (!device)
    return bad_input(fmt::format("is not a list of whole numbers from 0 to {}", placement.devices - 1),
                     where + ": device");
  placement.device = std::move(*device);
  if (root.has("cluster")) {
    auto cluster = indices(document->at("cluster"), placement.device.size());
    if (!cluster || cluster->size() != placement.device.size())
      return bad_input("is not a list of a cluster for every task, numbered from 0", where + ": cluster");
    placement.cluster = std::move(*cluster);
  }
  if (!root.has("order")) return placement;
  const auto& order = document->at("order");
  if (!order.is_array()) return bad_input("is not a list of lists", where + ": order");
  for (std::size_t d = 0; d < order.size(); ++d) {
    auto tasks = indices(order[d], placement.device.size());
    if (!tasks)
      return bad_input("is not a list of tasks that the placement has", fmt::format("{}: order[{}]", where, d));
    placement.order.push_back(std::move(*tasks));
  }
  if (placement.order.empty()) return bad_input("is empty", where + ": order");
  return placement;
}

}  // namespace turnpoint
