// SPDX-License-Identifier: Apache-2.0
#include "core/search/pardnn/pardnn.h"
#include "core/search/placement/partitioners.h"
#include "core/search/placement/placement_method.h"
#include "core/search/placement/simple_methods.h"

namespace turnpoint::placement {

const std::vector<PlacementMethod>& placement_methods() {
  static const std::vector<PlacementMethod> all = {
      {"pardnn", "ParDNN", "ParDNN: automatically partitioning the operations of a deep-learning model",
       "Slices, maps and refines the graph, seeded by list schedules as well; the simulator judges every stage",
       nullptr, pardnn::run_pardnn},
      {"pardnn-published", "ParDNN as printed",
       "ParDNN: automatically partitioning the operations of a deep-learning model",
       "Slicing, mapping and refinement as the paper has them; devices run tasks as they become ready", nullptr,
       pardnn::run_published},
      {"heft", "HEFT", "Topcuoglu, Hariri, Wu: heterogeneous earliest finish time (2002)",
       "Tasks by upward rank, each where it ends earliest, gaps filled", nullptr, run_heft},
      {"pipedream", "Contiguous stages", "PipeDream: contiguous pipeline stages by dynamic programming",
       "Contiguous stages of the smallest maximum load", nullptr, run_pipedream},
      {"layered-expert", "Layers by hand", "what a person does: contiguous layers of equal time",
       "Contiguous layers balanced by time", nullptr, run_layered_expert},
      {"metis", "METIS", "Karypis, Kumar: multilevel k-way partitioning (METIS 5)",
       "Balanced parts of the smallest cut", metis_unavailable, run_metis},
      {"scotch", "Scotch", "Pellegrini, Roman: Scotch 7", "Balanced parts of the smallest cut", scotch_unavailable,
       run_scotch},
      {"round-robin", "Round robin", "baseline", "Tasks in turn over the devices", nullptr, run_round_robin},
      {"single-device", "One device", "baseline", "Everything on one device", nullptr, run_single_device},
  };
  return all;
}

}  // namespace turnpoint::placement
