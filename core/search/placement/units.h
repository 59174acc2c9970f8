// SPDX-License-Identifier: Apache-2.0
// What a placement moves as one: a co-location group or a task, with the parameters that only it reads; and the tensors
// between such units. What the max-load methods work on.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/task_graph.h"

namespace turnpoint::placement {

struct Units {
  std::vector<std::uint32_t> of_task;
  std::vector<double> time_s;
  std::vector<std::int64_t> persistent;
  struct Tensor {
    std::uint32_t producer;
    double transfer_s;
  };
  std::vector<Tensor> tensors;
  std::vector<std::uint32_t> consumer_begin, consumers;    // of tensors: units, each once, without the producer
  std::vector<std::uint32_t> touched_begin, touched;       // of units: tensors made or read
  std::vector<std::uint32_t> neighbour_begin, neighbours;  // of units

  std::size_t count() const { return time_s.size(); }
  /// Units other than its producer that read the tensor.
  std::uint32_t readers(std::uint32_t tensor) const { return consumer_begin[tensor + 1] - consumer_begin[tensor]; }
};

/// `apart`: a parameter may stand apart from its only reader, which costs a transfer and may be what a limit on memory
/// asks for.
Units make_units(const TaskGraph& graph, bool apart = false);

}  // namespace turnpoint::placement
