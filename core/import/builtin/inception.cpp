// SPDX-License-Identifier: Apache-2.0
// Inception v3 (Szegedy et al. 2015, "Rethinking the Inception Architecture") without the auxiliary classifier.
#include <fmt/format.h>

#include "core/import/builtin/networks.h"
#include "core/import/builtin/vision_network.h"

namespace turnpoint {

namespace {

struct Conv {
  std::int64_t out, height, width, stride = 1;
  bool padded = true;  ///< keeps the size at stride 1
};

/// One module: branches that start from the same tensor and are joined along the channels.
class Module {
 public:
  Module(VisionNetwork& net, const std::string& name) : net_(net), entry_(net.x()) { net.scope(name); }

  /// Convolutions one after the other, each with batch norm and relu; the result is not joined yet.
  TensorId run(const std::string& branch, std::initializer_list<Conv> convolutions) {
    int index = 0;
    for (const Conv& conv : convolutions) {
      const std::string name = fmt::format("{}_conv{}", branch, ++index);
      const VisionNetwork::Pair padding =
          conv.padded ? VisionNetwork::Pair{conv.height / 2, conv.width / 2} : VisionNetwork::Pair{0, 0};
      net_.convolution(name, conv.out, VisionNetwork::Pair{conv.height, conv.width}, conv.stride, padding, false);
      net_.batch_norm(name + "_norm");
      net_.relu(name + "_relu");
    }
    return net_.x();
  }
  void branch(const std::string& name, std::initializer_list<Conv> convolutions) {
    net_.set_x(entry_);
    parts_.push_back(run(name, convolutions));
  }
  /// The last tensor of a branch split once more, 1x3 beside 3x1.
  void forked_branch(const std::string& name, std::initializer_list<Conv> convolutions) {
    net_.set_x(entry_);
    const TensorId stem = run(name, convolutions);
    parts_.push_back(run(name + "_wide", {{384, 1, 3}}));
    net_.set_x(stem);
    parts_.push_back(run(name + "_high", {{384, 3, 1}}));
  }
  void pooled_branch(std::int64_t out) {
    net_.set_x(entry_);
    net_.pool("pool", "AveragePool", 3, 1, 1);
    parts_.push_back(run("pool", {{out, 1, 1}}));
  }
  void reduced_branch() {
    net_.set_x(entry_);
    net_.pool("pool", "MaxPool", 3, 2);
    parts_.push_back(net_.x());
  }
  void join() { net_.concat("concat", parts_); }

 private:
  VisionNetwork& net_;
  TensorId entry_;
  std::vector<TensorId> parts_;
};

void module_35(VisionNetwork& net, const std::string& name, std::int64_t pooled) {
  Module m(net, name);
  m.branch("b1", {{64, 1, 1}});
  m.branch("b5", {{48, 1, 1}, {64, 5, 5}});
  m.branch("b3", {{64, 1, 1}, {96, 3, 3}, {96, 3, 3}});
  m.pooled_branch(pooled);
  m.join();
}

void module_17(VisionNetwork& net, const std::string& name, std::int64_t c) {
  Module m(net, name);
  m.branch("b1", {{192, 1, 1}});
  m.branch("b7", {{c, 1, 1}, {c, 1, 7}, {192, 7, 1}});
  m.branch("b77", {{c, 1, 1}, {c, 7, 1}, {c, 1, 7}, {c, 7, 1}, {192, 1, 7}});
  m.pooled_branch(192);
  m.join();
}

void module_8(VisionNetwork& net, const std::string& name) {
  Module m(net, name);
  m.branch("b1", {{320, 1, 1}});
  m.forked_branch("b3", {{384, 1, 1}});
  m.forked_branch("b33", {{448, 1, 1}, {384, 3, 3}});
  m.pooled_branch(192);
  m.join();
}

}  // namespace

Expected<ModelPtr> build_inception_v3(const NetworkParameters& p) {
  VisionNetwork net(p, 3, 299);
  {
    Module stem(net, "stem");
    stem.run("a", {{32, 3, 3, 2, false}, {32, 3, 3, 1, false}, {64, 3, 3}});
    net.pool("pool1", "MaxPool", 3, 2);
    stem.run("b", {{80, 1, 1}, {192, 3, 3, 1, false}});
    net.pool("pool2", "MaxPool", 3, 2);
  }
  module_35(net, "mixed1", 32);
  module_35(net, "mixed2", 64);
  module_35(net, "mixed3", 64);
  {
    Module m(net, "mixed4");
    m.branch("b3", {{384, 3, 3, 2, false}});
    m.branch("b33", {{64, 1, 1}, {96, 3, 3}, {96, 3, 3, 2, false}});
    m.reduced_branch();
    m.join();
  }
  module_17(net, "mixed5", 128);
  module_17(net, "mixed6", 160);
  module_17(net, "mixed7", 160);
  module_17(net, "mixed8", 192);
  {
    Module m(net, "mixed9");
    m.branch("b3", {{192, 1, 1}, {320, 3, 3, 2, false}});
    m.branch("b7", {{192, 1, 1}, {192, 1, 7}, {192, 7, 1}, {192, 3, 3, 2, false}});
    m.reduced_branch();
    m.join();
  }
  module_8(net, "mixed10");
  module_8(net, "mixed11");
  net.scope("classifier");
  net.global_pool();
  net.flatten();
  net.linear("fc", 1000);
  return net.finish();
}

}  // namespace turnpoint
