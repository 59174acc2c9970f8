// SPDX-License-Identifier: Apache-2.0
// What one rank of a placed step has of the others: a way for each transfer, and places to meet between steps. Ranks of
// one host share a board; ranks of several hosts have a board on each and carry transfers between them; ranks with a
// GPU each send from GPU to GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gpu_probe/step/placement_board.h"
#include "gpu_probe/step/placement_program.h"
#include "gpu_probe/transport/collectives.h"
#include "gpu_probe/transport/shared_region.h"
#include "gpu_probe/transport/transport.h"

namespace turnpoint::step {

/// By what ranks of several hosts reach each other. `beside` carries transfers, from threads that sleep while they
/// wait; the rest is for what ranks agree on and report between steps.
struct PlacementCarriers {
  probe::SharedRegion& region;  ///< of this host's ranks
  probe::Communicator& collectives;
  probe::Transport& transport;
  probe::Transport& beside;
};

/// Of one rank, and used by its thread alone. An error is that another rank has given up, where nothing else is said.
class PlacementLinks {
 public:
  virtual ~PlacementLinks() = default;
  virtual int rank() const = 0;

  // Within a step. Every transfer has room of its own, so that nobody ever waits to send.
  /// Begins the `step`th (1, 2, ...); behind a meeting, but for the first.
  virtual Expected<void> begin(std::uint64_t step) = 0;
  /// Where a transfer's numbers are put before post(), and taken from behind wait_for().
  virtual Place room(std::uint32_t transfer) = 0;
  /// The room holds what is to be sent; in the order in which this rank's tasks send.
  virtual Expected<void> post(std::uint32_t transfer) = 0;
  virtual bool is_there(std::uint32_t transfer) const = 0;
  /// What follows is done once the transfer is there.
  virtual Expected<void> wait_for(std::uint32_t transfer) = 0;
  /// Behind all of a step's transfers: rooms may be used again once all ranks have met.
  virtual Expected<void> end() = 0;
  /// By transfer: seconds that this side of it took on the way, in the last step that has been settled; 0 where both
  /// sides share the room.
  virtual std::vector<double> seconds_on_the_way() const = 0;
  /// Rooms in the memory of this rank's own device, bytes; 0 where the host has them.
  virtual std::int64_t room_bytes() const { return 0; }

  // Between steps, by all ranks in the same order.
  virtual Expected<void> meet() = 0;
  /// What follows begins at once on all ranks that have a device each.
  virtual Expected<void> line_up() { return {}; }
  /// A meeting, after which everyone has rank 0's flag.
  virtual Expected<bool> follow(bool flag) = 0;
  /// All ranks' numbers, which are as many on each, one rank after the other. The last thing that these ranks do.
  virtual Expected<std::vector<double>> gather(const std::vector<double>& mine) = 0;

  /// Whoever waits for this rank, or will, is told.
  virtual void give_up() = 0;
};

/// How large a board must be for a program. `results`: numbers that each rank gathers at most.
PlacementBoard::Shape board_shape(const PlacedProgram& program, std::size_t results);
/// Ranks that share one board; it must outlive the links.
std::unique_ptr<PlacementLinks> board_links(const PlacedProgram& program, PlacementBoard& board, int rank);

/// Ranks of several hosts. Error: no memory for the board of this host.
Expected<std::unique_ptr<PlacementLinks>> host_links(const PlacedProgram& program, const PlacementCarriers& carriers);

/// Meetings over the probe's collectives; numbers travel as their bits.
Expected<void> meet_over(probe::Communicator& collectives);
Expected<bool> follow_over(probe::Communicator& collectives, bool flag);
Expected<std::vector<double>> gather_over(probe::Communicator& collectives, const std::vector<double>& mine);

}  // namespace turnpoint::step
