// SPDX-License-Identifier: Apache-2.0
// How tensors are cut: the published examples, and shards that are disjoint, in order and whole.
#include <QtTest>
#include <random>

#include "core/model/shard_format.h"

using namespace turnpoint;

namespace {

using Sizes = std::vector<std::int64_t>;

ShardFormat format_of(const Sizes& shape, int shards, ShardLayout layout, bool keeps = false) {
  const auto format = shard_format(shape, shards, layout, keeps);
  if (!format) qFatal("%s", format.error().message().c_str());
  return *format;
}

int percent(double share) { return qRound(100 * share); }

}  // namespace

class ShardFormatTest : public QObject {
  Q_OBJECT

 private slots:
  void published_examples() {
    const Sizes shape{3, 3, 256, 256};
    const ShardFormat ten = format_of(shape, 10, ShardLayout::reshape_and_pad);
    QCOMPARE(ten.reshaped, (Sizes{9, 256, 256}));
    QCOMPARE(ten.padded, (Sizes{10, 256, 256}));
    QCOMPARE(percent(ten.padding()), 11);
    QCOMPARE(ten.words(), std::string("[9,256,256], padded to [10,256,256]"));
    QCOMPARE(percent(padding_between(shape, Sizes{10, 3, 256, 256})), 233);
    QCOMPARE(percent(padding_between(Sizes{3, 3}, Sizes{4, 5})), 122);

    // 9 to 16 would pad 78 %: the tiles as rows divide evenly.
    QCOMPARE(percent(padding_between(Sizes{9, 256, 256}, Sizes{16, 256, 256})), 78);
    for (const int shards : {8, 64}) {
      const ShardFormat tiles = format_of(shape, shards, ShardLayout::reshape_and_pad);
      QVERIFY(tiles.tiles);
      QCOMPARE(tiles.elements, std::int64_t(589824));
      QCOMPARE(tiles.reshaped, (Sizes{576, 8, 128}));
      QCOMPARE(tiles.padded, tiles.reshaped);
      QCOMPARE(tiles.padding(), 0.0);
      QCOMPARE(tiles.shard_elements(), std::int64_t(576 / shards) * 1024);
    }
    QCOMPARE(format_of(shape, 64, ShardLayout::reshape_and_pad).shard_elements(), std::int64_t(9 * 1024));
  }

  void dimensions_that_are_kept() {
    // Sums over rows or columns of a shard need the dimensions apart.
    const ShardFormat kept = format_of({3, 3, 256, 256}, 10, ShardLayout::reshape_and_pad, true);
    QCOMPARE(kept.padded, (Sizes{10, 3, 256, 256}));
    QVERIFY(!kept.tiles);
    // Less than a tile in a dimension: the bytes cannot be read as rows of tiles.
    const ShardFormat narrow = format_of({3, 3, 64, 100}, 8, ShardLayout::reshape_and_pad);
    QCOMPARE(narrow.padded, (Sizes{16, 64, 100}));
    QCOMPARE(format_of({1000, 512}, 8, ShardLayout::reshape_and_pad).padded, (Sizes{1000, 512}));
    QCOMPARE(format_of({100}, 8, ShardLayout::reshape_and_pad).padded, (Sizes{104}));
  }

  void flat_shards_pad_less_than_one_element_each() {
    const ShardFormat flat = format_of({3, 3, 256, 256}, 10, ShardLayout::flat);
    QCOMPARE(flat.padded, (Sizes{589830}));
    QCOMPARE(flat.shard_elements(), std::int64_t(58983));
    QCOMPARE(format_of({3, 5}, 8, ShardLayout::flat).padded_elements(), std::int64_t(16));
  }

  void shards_are_disjoint_ordered_and_whole() {
    std::mt19937 random(7);
    const auto below = [&](int n) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(n)); };
    for (int trial = 0; trial < 2000; ++trial) {
      Sizes shape;
      for (auto rank = 1 + below(4); rank > 0; --rank)
        shape.push_back(below(4) == 0 ? 128 * (1 + below(3)) : 1 + below(40));
      const int shards = 1 + static_cast<int>(below(70));
      for (const auto layout : {ShardLayout::flat, ShardLayout::reshape_and_pad}) {
        const ShardFormat format = format_of(shape, shards, layout, below(2) == 0);
        std::int64_t elements = 1, end = 0, sum = 0;
        for (const std::int64_t size : shape) elements *= size;
        QCOMPARE(format.elements, elements);
        for (const bool keeps : {false, true})
          QCOMPARE(padded_elements(shape, shards, keeps),
                   format_of(shape, shards, ShardLayout::reshape_and_pad, keeps).padded_elements());
        QCOMPARE(format.padded_elements() % shards, std::int64_t(0));
        QCOMPARE(format.padded[0] % shards, std::int64_t(0));
        for (int i = 0; i < shards; ++i) {
          const auto [first, last] = format.range(i);
          QCOMPARE(first, end);
          QVERIFY(last >= first && last - first <= format.shard_elements());
          end = last;
          sum += format.shard_elements();
        }
        QCOMPARE(end, elements);
        QCOMPARE(sum - (format.padded_elements() - elements), elements);
        if (layout == ShardLayout::flat) QVERIFY(format.padded_elements() - elements < shards);
      }
    }
  }

  void buckets_hold_a_shard_of_every_tensor() {
    std::vector<ShardFormat> formats;
    for (const Sizes& shape : {Sizes{10}, Sizes{7, 3}, Sizes{400}, Sizes{5}, Sizes{6}})
      formats.push_back(format_of(shape, 4, ShardLayout::flat));
    formats.push_back(format_of({6}, 2, ShardLayout::flat));
    const auto buckets = bucket_shards(formats, 100);
    QCOMPARE(buckets.size(), std::size_t(4));
    QCOMPARE(buckets[0].tensors, (std::vector<std::size_t>{0, 1}));
    QCOMPARE(buckets[1].tensors, (std::vector<std::size_t>{2}));
    QCOMPARE(buckets[2].tensors, (std::vector<std::size_t>{3, 4}));
    QCOMPARE(buckets[3].tensors, (std::vector<std::size_t>{5}));  // in two shards, not four
    QCOMPARE(buckets[0].shard_offsets, (Sizes{0, 3}));
    QCOMPARE(buckets[0].shard_elements, std::int64_t(3 + 6));
    for (const auto& bucket : buckets) {
      std::int64_t end = 0;
      for (std::size_t t = 0; t < bucket.tensors.size(); ++t) {
        QCOMPARE(bucket.shard_offsets[t], end);
        end += formats[bucket.tensors[t]].shard_elements();
      }
      QCOMPARE(end, bucket.shard_elements);
    }
    QCOMPARE(bucket_shards(formats, 0).size(), formats.size());
  }

  void a_scalar_is_padded_to_an_element_a_shard() { QCOMPARE(padded_elements({}, 8), std::int64_t(8)); }

  void bad_shapes_are_errors() {
    QVERIFY(!shard_format(Sizes{4}, 0, ShardLayout::flat));
    QVERIFY(!shard_format(Sizes{4}, -2, ShardLayout::flat));
    QVERIFY(!shard_format(Sizes{}, 2, ShardLayout::flat));
    QVERIFY(!shard_format(Sizes{4, -1}, 2, ShardLayout::reshape_and_pad));
    QCOMPARE(QString::fromStdString(shard_format(Sizes{4, 0}, 2, ShardLayout::flat).error().message()),
             "a tensor of shape [4,0] cannot be cut into shards");
  }
};

QTEST_APPLESS_MAIN(ShardFormatTest)
#include "shard_format_test.moc"
