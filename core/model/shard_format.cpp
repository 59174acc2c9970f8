// SPDX-License-Identifier: Apache-2.0
#include "core/model/shard_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace turnpoint {

namespace {

constexpr std::int64_t kTileRows = 8, kTileColumns = 128;
constexpr double kMuchPadding = 0.25;  // of a tensor: beyond it tiles are tried (mathematics.md, 5)

std::int64_t product_of(std::span<const std::int64_t> sizes) {
  std::int64_t product = 1;
  for (const std::int64_t size : sizes) product *= size;
  return product;
}

std::int64_t next_multiple(std::int64_t size, std::int64_t of) { return (size + of - 1) / of * of; }

/// With the first `combined` dimensions as one.
ShardFormat with_combined(std::span<const std::int64_t> shape, int shards, std::size_t combined) {
  ShardFormat format{product_of(shape), shards, false, {}, {}};
  format.reshaped = {product_of(shape.first(combined))};
  format.reshaped.insert(format.reshaped.end(), shape.begin() + static_cast<std::ptrdiff_t>(combined), shape.end());
  format.padded = format.reshaped;
  format.padded[0] = next_multiple(format.padded[0], shards);
  return format;
}

ShardFormat with_tiles(std::span<const std::int64_t> shape, int shards) {
  ShardFormat format{product_of(shape), shards, true, {}, {}};
  const std::int64_t rows = format.elements / (kTileRows * kTileColumns);
  format.reshaped = {rows, kTileRows, kTileColumns};
  format.padded = {next_multiple(rows, shards), kTileRows, kTileColumns};
  return format;
}

}  // namespace

std::int64_t ShardFormat::padded_elements() const { return product_of(padded); }

double ShardFormat::padding() const { return padding_between(reshaped, padded); }

std::pair<std::int64_t, std::int64_t> ShardFormat::range(int i) const {
  const std::int64_t size = shard_elements();
  return {std::min(elements, i * size), std::min(elements, (i + 1) * size)};
}

std::string ShardFormat::words() const {
  const std::string shape = fmt::format("[{}]", fmt::join(reshaped, ","));
  return padded == reshaped ? shape : fmt::format("{}, padded to [{}]", shape, fmt::join(padded, ","));
}

double padding_between(std::span<const std::int64_t> from, std::span<const std::int64_t> to) {
  const auto before = static_cast<double>(product_of(from));
  return before > 0 ? static_cast<double>(product_of(to)) / before - 1 : 0;
}

Expected<ShardFormat> shard_format(std::span<const std::int64_t> shape, int shards, ShardLayout layout,
                                   bool keeps_dimensions) {
  if (shards < 1) return bad_input(fmt::format("a tensor cannot be cut into {} shards", shards));
  if (shape.empty()) return bad_input("a scalar cannot be cut into shards");
  for (const std::int64_t size : shape)
    if (size < 1)
      return bad_input(fmt::format("a tensor of shape [{}] cannot be cut into shards", fmt::join(shape, ",")));
  if (layout == ShardLayout::flat) return with_combined(shape, shards, shape.size());
  ShardFormat best = with_combined(shape, shards, 1);
  for (std::size_t combined = 2; !keeps_dimensions && combined + 2 <= shape.size(); ++combined)
    if (ShardFormat other = with_combined(shape, shards, combined); other.padding() < best.padding())
      best = std::move(other);
  const bool fills_tiles =
      shape.size() >= 2 && shape.back() % kTileColumns == 0 && shape[shape.size() - 2] % kTileRows == 0;
  if (best.padding() > kMuchPadding && fills_tiles && !keeps_dimensions)
    if (ShardFormat tiles = with_tiles(shape, shards); tiles.padding() < best.padding()) best = std::move(tiles);
  return best;
}

std::int64_t padded_elements(std::span<const std::int64_t> shape, std::int64_t shards, bool keeps_dimensions) {
  const std::int64_t all = product_of(shape);
  if (shape.empty() || all < 1) return next_multiple(all, shards);
  std::int64_t leading = shape[0], best = next_multiple(leading, shards) * (all / leading);
  for (std::size_t combined = 2; !keeps_dimensions && combined + 2 <= shape.size(); ++combined) {
    leading *= shape[combined - 1];
    best = std::min(best, next_multiple(leading, shards) * (all / leading));
  }
  constexpr std::int64_t kTile = kTileRows * kTileColumns;
  const bool fills_tiles =
      shape.size() >= 2 && shape.back() % kTileColumns == 0 && shape[shape.size() - 2] % kTileRows == 0;
  const bool much = static_cast<double>(best - all) > kMuchPadding * static_cast<double>(all);
  if (much && fills_tiles && !keeps_dimensions) best = std::min(best, next_multiple(all / kTile, shards) * kTile);
  return best;
}

std::vector<ShardBucket> bucket_shards(std::span<const ShardFormat> formats, std::int64_t bucket_elements) {
  std::vector<ShardBucket> buckets;
  std::int64_t filled = 0;
  for (std::size_t t = 0; t < formats.size(); ++t) {
    const std::int64_t size = formats[t].padded_elements();
    const bool fits = !buckets.empty() && filled + size <= bucket_elements &&
                      formats[buckets.back().tensors[0]].shards == formats[t].shards;
    if (!fits) buckets.emplace_back(), filled = 0;
    buckets.back().tensors.push_back(t);
    buckets.back().shard_offsets.push_back(buckets.back().shard_elements);
    buckets.back().shard_elements += formats[t].shard_elements();
    filled += size;
  }
  return buckets;
}

}  // namespace turnpoint
