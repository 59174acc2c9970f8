// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/timed_exchange.h"

#include <algorithm>
#include <optional>

#include "gpu_probe/job/output.h"
#include "gpu_probe/step/reshard.h"

namespace turnpoint::step {

namespace {

constexpr std::int64_t kChannels = 64;
constexpr int kRows = 0, kColumns = 1;

std::optional<ReshardMove> move_of(Collective kind) {
  switch (kind) {
    case Collective::all_reduce: return ReshardMove::all_reduce;
    case Collective::all_gather: return ReshardMove::all_gather;
    case Collective::reduce_scatter: return ReshardMove::reduce_scatter;
    case Collective::all_to_all: return ReshardMove::all_to_all;
    default: return std::nullopt;
  }
}

/// Rows by columns that both divide by the members; so many elements but for what remains of equal rows.
Shape shape_of(std::int64_t elements, std::int64_t size, ReshardMove move) {
  const std::int64_t parts = move == ReshardMove::all_to_all ? size : 1;  // of the rows
  const std::int64_t each = std::max<std::int64_t>(1, elements / (size * parts));
  const std::int64_t rows = (each + kChannels - 1) / kChannels;
  return {parts * rows, size * (each / rows)};
}

class Exchange : public TimedExchange {
 public:
  Exchange(Communicator& communicator, Mesh mesh, int axis, ReshardMove move, Shape shape)
      : mesh_(std::move(mesh)), shape_(std::move(shape)), mover_{mesh_, communicator, ledger_} {
    step_.move = move;
    step_.axes = 1u << axis;
    step_.algorithm = Algorithm::ring;
    const auto place = static_cast<std::size_t>(axis);
    const bool sums = move == ReshardMove::all_reduce || move == ReshardMove::reduce_scatter;
    before_.axis[place] = sums ? Layout::kPartial : kColumns;
    if (move == ReshardMove::reduce_scatter) step_.result.axis[place] = kColumns;
    if (move == ReshardMove::all_to_all) step_.result.axis[place] = kRows;
    const ComputeIn here(in_float());
    mine_ = make_block(ledger_, region_of(mesh_, mover_.rank(), before_, shape_), sizeof(float));
  }

  /// Buffers of one size serve no other one, and the next exchange has another.
  ~Exchange() override {
    const ComputeIn here(in_float());
    mine_.reset();
    Buffers::of_this_rank().release();
    Buffers::scratch_of_this_rank().release();
  }

  Expected<double> once() override {
    const ComputeIn here(in_float());
    auto* numbers = mine_->as<float>();
    for (std::size_t i = 0; i < mine_->data.size(); ++i)
      numbers[i] = static_cast<float>((i * 2654435761u + ++written_) >> 8 & 0xffff) * 1e-5f;
    std::int64_t kept = 0;
    const double start = probe::host_clock();
    const auto result = execute(mover_, step_, before_, shape_, mine_, kept);
    const double seconds = probe::host_clock() - start;
    if (!result) return result.error();
    return seconds;
  }

 private:
  Mesh mesh_;
  Shape shape_;
  Ledger ledger_;
  Mover mover_;
  ReshardStep step_;
  Layout before_;
  Value mine_;
  std::uint32_t written_ = 0;
};

}  // namespace

std::unique_ptr<TimedExchange> timed_exchange(Communicator& communicator, Collective kind, int size, int stride,
                                              std::int64_t bytes) {
  const auto move = move_of(kind);
  if (!move || size < 2 || communicator.ranks() % (size * stride) != 0) return nullptr;
  Mesh mesh;
  mesh.axes = {{"outer", communicator.ranks() / (size * stride)}, {"group", size}, {"inner", stride}};
  const std::int64_t elements = std::max<std::int64_t>(1, bytes / static_cast<std::int64_t>(sizeof(float)));
  return std::make_unique<Exchange>(communicator, std::move(mesh), 1, *move, shape_of(elements, size, *move));
}

}  // namespace turnpoint::step
