// SPDX-License-Identifier: Apache-2.0
#include "core/hardware/logs/run_shape.h"

#include <fmt/format.h>

#include "core/base/text.h"

namespace turnpoint::logs {

namespace {

constexpr int kMostOnOneNode = 8;

int whole(std::string_view text) {
  const auto value = parse_int(text);
  return value && *value >= 1 && *value <= 65536 ? static_cast<int>(*value) : 0;
}

void add_name(RunShape& shape, const std::string& name) {
  const auto take = [&](int& field, std::initializer_list<const char*> words, bool before) {
    for (const char* word : words)
      if (field == 0) field = (before ? number_before(name, word) : number_after(name, word)).value_or(0);
  };
  take(shape.nodes, {"nodes", "node"}, true);
  take(shape.per_node, {"gpus_per_node", "per_node", "ppn"}, true);
  take(shape.ranks, {"np", "ranks"}, false);
  take(shape.ranks, {"ranks", "procs", "gpus"}, true);
  if (shape.ranks > 0 && shape.ranks == shape.per_node && shape.nodes > 1) shape.ranks = 0;  // "8gpus_per_node"
}

}  // namespace

void add_command_line(RunShape& shape, std::string_view line) {
  const auto cells = words(line);
  bool launcher = false, srun = false;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string_view program =
        cells[i].substr(cells[i].rfind('/') == std::string_view::npos ? 0 : cells[i].rfind('/') + 1);
    srun |= program == "srun";
    launcher |= srun || program.starts_with("mpirun") || program.starts_with("mpiexec");
    if (!launcher) continue;
    const auto equals = cells[i].find('=');
    const std::string_view option = cells[i].substr(0, equals);
    const std::string_view value = equals != std::string_view::npos ? cells[i].substr(equals + 1)
                                   : i + 1 < cells.size()           ? cells[i + 1]
                                                                    : std::string_view();
    if (option == "-np" || option == "-n" || option == "--ntasks") shape.ranks = whole(value);
    if ((srun && option == "-N") || option == "--nodes") shape.nodes = whole(value);
    if (option == "--ntasks-per-node" || option == "-ppn" || option == "-npernode" || option == "--npernode")
      shape.per_node = whole(value);
  }
}

std::optional<DeviceGroup> group_of_run(LogBuilder& out, RunShape shape, int ranks) {
  add_name(shape, lower(file_name(out.log().path)));
  if (ranks == 0) ranks = shape.ranks > 0 ? shape.ranks : shape.nodes * shape.per_node;
  if (ranks < 2) {
    out.warn(
        0,
        "neither the log nor its name says how many ranks ran: name it as in osu_allreduce_2nodes_8gpus_per_node.txt");
    return std::nullopt;
  }
  int nodes = shape.nodes;
  if (nodes == 0 && shape.per_node > 0) nodes = (ranks + shape.per_node - 1) / shape.per_node;
  if (nodes == 0 && ranks <= kMostOnOneNode) {
    out.warn(0, fmt::format("neither the log nor its name says on how many nodes {} ranks ran; one is assumed", ranks));
    nodes = 1;
  }
  if (nodes > ranks) nodes = ranks;  // two ranks of a pair on more nodes than that
  if (nodes == 0 || ranks % nodes != 0) {
    out.warn(0, nodes == 0 ? fmt::format("nothing says on how many nodes {} ranks ran: name the file as in "
                                         "osu_allreduce_2nodes_8gpus_per_node.txt",
                                         ranks)
                           : fmt::format("{} ranks do not lie evenly on {} nodes", ranks, nodes));
    return std::nullopt;
  }
  return DeviceGroup{ranks, nodes, ranks / nodes, 1};
}

}  // namespace turnpoint::logs
