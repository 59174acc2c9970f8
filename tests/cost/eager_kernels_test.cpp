// SPDX-License-Identifier: Apache-2.0
// Kernels that are not fused (core/cost/eager_kernels.h): their traffic kernel by kernel, and what it makes of an
// operator's cost.
#include "core/cost/eager_kernels.h"

#include <QtTest>
#include <nlohmann/json.hpp>
#include <set>

#include "core/import/huggingface/huggingface.h"
#include "cost/eager_models.h"
#include "cost/round_setting.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

/// What one kernel reads and writes per element: numbers of the run's precision and of fp32.
struct Kernel {
  double reads, writes, wide_reads = 0, wide_writes = 0;
};
constexpr Kernel kUnary{1, 1}, kBinary{2, 1}, kWideUnary{0, 0, 1, 1}, kWideBinary{0, 0, 2, 1}, kWiden{1, 0, 0, 1},
    kNarrow{0, 1, 1, 0}, kSum{1, 0}, kWideSum{0, 0, 1, 0}, kWideFill{0, 0, 0, 1}, kOfRows{0, 0};

struct Chain {
  OperatorKind kind;
  const char* detail;
  bool rotates;
  std::vector<Kernel> forward, backward;
};

std::vector<Chain> chains() {
  const Kernel half{0.5, 0.5}, fill{0, 1};
  return {
      {OperatorKind::normalisation,
       "RMSNorm",
       false,
       // widen, square, mean, + eps, rsqrt, x * root, narrow, * weight
       {kWiden, kWideUnary, kWideSum, kOfRows, kOfRows, kWideUnary, kNarrow, kUnary},
       // weight: g * n, sum; g * weight, widen; g * root; g * x, sum; root's: three of rows; mean's; square's: x, * 2,
       // * g; both ways; narrow
       {kBinary, kSum, kUnary, kWiden, kWideUnary, kWideBinary, kWideSum, kOfRows, kOfRows, kOfRows, kWideFill,
        kWideUnary, kWideUnary, kWideBinary, kWideBinary, kNarrow}},
      {OperatorKind::elementwise,
       "gelu_new",
       false,
       // 0.5 x, x^3, * c, x +, * root, tanh, 1 +, product
       {kUnary, kUnary, kUnary, kBinary, kUnary, kUnary, kUnary, kBinary},
       // product's two, tanh's, * root, * c, x^2, * 3, * g, 0.5 g, two sums
       {kBinary, kBinary, kBinary, kUnary, kUnary, kUnary, kUnary, kBinary, kUnary, kBinary, kBinary}},
      {OperatorKind::elementwise,
       "quick_gelu",
       false,
       {kUnary, kUnary, kBinary},
       {kBinary, kBinary, kBinary, kUnary, kBinary}},
      {OperatorKind::elementwise, "silu*up", false, {kUnary, kBinary}, {kBinary, kBinary, kBinary}},
      {OperatorKind::elementwise,
       "gelu_new*up",
       false,
       {kUnary, kUnary, kUnary, kBinary, kUnary, kUnary, kUnary, kBinary, kBinary},
       {kBinary, kBinary, kBinary, kBinary, kBinary, kUnary, kUnary, kUnary, kUnary, kBinary, kUnary, kBinary,
        kBinary}},
      {OperatorKind::matmul,
       "Linear",
       true,
       // * cos, - half, concatenation, * sin, sum
       {kUnary, half, kUnary, kUnary, kBinary},
       // * sin, - half, each half into zeros, their sum, * cos, the sum of both
       {kUnary, half, fill, half, fill, half, kBinary, kUnary, kBinary}},
      {OperatorKind::cross_entropy,
       "CrossEntropy",
       false,
       {kWiden, kWideUnary, kOfRows},
       // zeros, labels into them, log_softmax's, narrow
       {kWideFill, kOfRows, kWideBinary, kNarrow}},
  };
}

void eager(Settings& settings) { settings.kernels = Kernels::eager; }

}  // namespace

class EagerKernelsTest : public QObject {
  Q_OBJECT

 private slots:
  void kernel_by_kernel() {
    for (const Chain& chain : chains()) {
      Operator op;
      op.kind = chain.kind, op.detail = chain.detail, op.rotates = chain.rotates;
      op.inputs.resize(2);
      const EagerKernels* found = eager_kernels(op);
      QVERIFY2(found, chain.detail);
      for (const bool backward : {false, true}) {
        const KernelTraffic& traffic = backward ? found->backward : found->forward;
        double plain = 0, wide = 0;
        for (const Kernel& kernel : backward ? chain.backward : chain.forward)
          plain += kernel.reads + kernel.writes, wide += kernel.wide_reads + kernel.wide_writes;
        QCOMPARE(traffic.plain + traffic.casts, plain);
        QCOMPARE(traffic.wide + traffic.casts, wide);
        QCOMPARE(std::size_t(traffic.kernels), (backward ? chain.backward : chain.forward).size());
        Settings settings;
        settings.precision = Precision::bf16;
        QCOMPARE(eager_bytes(settings, op, traffic, 10), 10 * (2 * plain + 4 * wide));
        settings.precision = Precision::fp32;  // nothing is cast
        QCOMPARE(eager_bytes(settings, op, traffic, 10), 40 * (traffic.plain + traffic.wide));
      }
      op.kind = OperatorKind::reduction, op.rotates = false;
      QVERIFY(!eager_kernels(op));
    }
    Operator fused;
    fused.kind = OperatorKind::normalisation, fused.detail = "LayerNorm";  // PyTorch has a kernel of its own
    QVERIFY(!eager_kernels(fused));
    fused.kind = OperatorKind::elementwise, fused.detail = "gelu";
    QVERIFY(!eager_kernels(fused));
  }

  // On one device of 100 GB/s with launches of a microsecond.
  void an_operator_by_hand() {
    const Setting plain(llama(), 1, 1, [](Settings&s) { s.precision = Precision::bf16; }),
        chains(llama(), 1, 1, eager_in_16_bits);
    const double tokens = 16 * 64;
    auto norm = chains.data_parallel("layer0/attention/norm");
    QVERIFY(close(norm[ComputePart::forward], tokens * 512 * 36 / 1e11 + 8e-6));
    QVERIFY(close(norm[ComputePart::backward], tokens * 512 * (8 * 2 + 19 * 4) / 1e11 + 16e-6));
    // Four bytes an element: x and the normalised rows where one kernel keeps x in 16 bits.
    const auto kept = [&](const char* name) {
      return chains.data_parallel(name)[MemoryPart::activations] - plain.data_parallel(name)[MemoryPart::activations];
    };
    QCOMPARE(kept("layer0/attention/norm"), std::int64_t(tokens * 512 * 4));
    for (const auto& [name, width] : {std::pair{"layer0/attention/q", 512}, {"layer0/attention/k", 128}}) {
      auto turned = chains.data_parallel(name), as_it_is = plain.data_parallel(name);
      // Where kernels are fused a rotation is one that reads and writes.
      QVERIFY(close(turned[ComputePart::forward] - as_it_is[ComputePart::forward],
                    tokens * width * (20 - 4) / 1e11 + 5e-6 - 1e-6));
      QVERIFY(close(turned[ComputePart::backward] - as_it_is[ComputePart::backward],
                    tokens * width * (30 - 4) / 1e11 + 9e-6 - 1e-6));
      QCOMPARE(kept(name), std::int64_t(0));
    }
    QCOMPARE(chains.data_parallel("layer0/attention/v").compute, plain.data_parallel("layer0/attention/v").compute);
    // fp32 probabilities and their gradient where one kernel has fp32 probabilities beside 16-bit logits.
    QCOMPARE(kept("head/loss"), std::int64_t(tokens * 1000 * 8));
  }

  // In fp32 nothing is cast, and no cast is launched; nor in a 16-bit loss.
  void casts_by_hand() {
    const Setting chains(llama(), 1, 1, eager);
    auto norm = chains.data_parallel("layer0/attention/norm");
    const double tokens = 16 * 64;
    QVERIFY(close(norm[ComputePart::forward], tokens * 512 * 4 * (2 + 5) / 1e11 + 6e-6));
    QVERIFY(close(norm[ComputePart::backward], tokens * 512 * 4 * (6 + 17) / 1e11 + 14e-6));
    const Setting narrow(llama(), 1, 1,
                         [](Settings& s) { eager_in_16_bits(s), s.loss = LossPrecision::as_activations; });
    auto loss = narrow.data_parallel("head/loss");
    QVERIFY(close(loss[ComputePart::forward], tokens * 1000 * 2 * 2 / 1e11 + 2e-6));
    QVERIFY(close(loss[ComputePart::backward], tokens * 1000 * 2 * 4 / 1e11 + 3e-6));
  }

  // A time that was measured is that of one kernel: a product has it beside its rotation, a norm of eight kernels not.
  void measured_times_are_of_one_kernel() {
    const auto measured = [](Cluster& cluster) {
      cluster.operators.push_back({"normalisation", {16, 64, 512}, Precision::fp32, "forward", 40e-6});
    };
    const Setting usual(llama(), 1, 1, {}, measured), chains(llama(), 1, 1, eager, measured),
        bare(llama(), 1, 1, eager);
    const auto forward = [](const Setting& s) {
      return s.data_parallel("layer0/attention/norm")[ComputePart::forward];
    };
    QVERIFY(close(forward(usual), 40e-6));
    QVERIFY(close(forward(chains), forward(bare)));
  }

  // Heads that turn whole; those that turn in part, or not at all, and attention to another stack are left alone.
  void who_turns() {
    const auto turning = [](const nlohmann::json& config) {
      const auto source = parse_huggingface_config(config.dump(), "c.json");
      if (!source) qFatal("%s", source.error().message().c_str());
      const ModelPtr model = *(*source)->bind({2, 16});
      std::set<std::string> names;
      for (const Operator& op : model->operators)
        if (op.rotates) names.insert(op.name);
      return names;
    };
    nlohmann::json c = {{"model_type", "llama"},    {"hidden_size", 64},      {"num_attention_heads", 4},
                        {"intermediate_size", 128}, {"num_hidden_layers", 1}, {"vocab_size", 100},
                        {"num_key_value_heads", 2}, {"head_dim", 16},         {"max_position_embeddings", 64}};
    QCOMPARE(turning(c), (std::set<std::string>{"layer0/attention/q", "layer0/attention/k"}));
    c["partial_rotary_factor"] = 0.5;
    QVERIFY(turning(c).empty());
    c.erase("partial_rotary_factor");
    for (const char* family : {"qwen3", "mistral", "olmo2"}) {
      c["model_type"] = family;
      QCOMPARE(turning(c).size(), std::size_t(2));
    }
    for (const char* family : {"stablelm", "glm", "gpt2"}) {
      c["model_type"] = family;
      QVERIFY2(turning(c).empty(), family);
    }
  }

  void only_where_it_is_asked_for() {
    const Setting usual(llama(), 1, 4), paper(llama(), 1, 4, [](Settings&s) { s.accounting = Accounting::paper; }),
        paper_eager(llama(), 1, 4, [](Settings&s) { s.accounting = Accounting::paper, eager(s); }),
        chains(llama(), 1, 4, eager);
    for (const Operator& op : usual.scenario.model->operators) {
      if (op.kind == OperatorKind::input || op.is_view()) continue;
      QCOMPARE(paper_eager.data_parallel(op.name).compute, paper.data_parallel(op.name).compute);
      const auto before = usual.data_parallel(op.name), now = chains.data_parallel(op.name);
      QVERIFY(now.compute_s() >= before.compute_s() && now.memory_bytes() >= before.memory_bytes());
      if (!eager_kernels(op)) QCOMPARE(now.compute, before.compute);
    }
  }
};

QTEST_APPLESS_MAIN(EagerKernelsTest)
#include "eager_kernels_test.moc"
