// SPDX-License-Identifier: Apache-2.0
// Every family against the parameter counts of published models, and the graphs behind mixtures of experts, latent
// attention, encoder-decoders and shared layers.
#include <QTest>
#include <algorithm>
#include <set>

#include "core/import/huggingface/families.h"
#include "core/import/huggingface/huggingface.h"
#include "core/import/source/model_source.h"

using namespace turnpoint;

namespace {

ModelPtr build(const std::string& text, ModelBinding binding = {1, 0}) {
  const auto source = parse_huggingface_config(text, "c.json");
  if (!source) {
    qWarning("%s", source.error().message().c_str());
    return nullptr;
  }
  const auto model = (*source)->bind(binding);
  if (!model) qWarning("%s", model.error().message().c_str());
  return model ? *model : nullptr;
}

const Operator* find(const Model& model, const std::string& name) {
  for (const auto& op : model.operators)
    if (op.name == name) return &op;
  return nullptr;
}

const LoopDimension* loop(const Operator& op, DimName name) {
  for (const auto& dim : op.dims)
    if (dim.name == name) return &dim;
  return nullptr;
}

const std::string kMoe =
    R"({"model_type": "mixtral", "hidden_size": 64, "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 100,
  "intermediate_size": 160, "num_hidden_layers": 2, "num_local_experts": 4, "num_experts_per_tok": 2})";

}  // namespace

class HuggingfaceFamiliesTest : public QObject {
  Q_OBJECT

 private slots:
  // Counts of the published checkpoints on the Hugging Face hub (safetensors' total, or the library's num_parameters of
  // the bare model for encoders); configs with what the published files say, the rest by family default.
  void published_counts_data() {
    QTest::addColumn<QString>("config");
    QTest::addColumn<qint64>("parameters");
    QTest::addColumn<qint64>("active");
    const auto row = [](const char* name, const char* config, qint64 parameters, qint64 active = 0) {
      QTest::newRow(name) << config << parameters << (active ? active : parameters);
    };
    row("falcon-7b", R"("falcon")", 6921720704);
    row("falcon-40b",
        R"("falcon", "hidden_size": 8192, "num_hidden_layers": 60, "num_attention_heads": 128, "num_kv_heads": 8,
        "new_decoder_architecture": true)",
        41303293952);
    row("falcon-rw-1b",
        R"("falcon", "hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 32, "alibi": true,
        "bias": true, "multi_query": false, "parallel_attn": false, "vocab_size": 50304)",
        1311625216);
    row("falcon-11b",
        R"("falcon", "hidden_size": 4096, "num_hidden_layers": 60, "num_attention_heads": 32, "num_kv_heads": 8,
        "new_decoder_architecture": true, "num_ln_in_parallel_attn": 1, "ffn_hidden_size": 16384, "tie_word_embeddings": false)",
        11102822400);
    row("mpt-7b", R"("mpt", "d_model": 4096, "n_heads": 32, "n_layers": 32, "vocab_size": 50432)", 6649286656);
    row("bloom-560m", R"("bloom", "n_embed": 1024, "n_layer": 24, "num_attention_heads": 16)", 559214592);
    row("bloom-7b1", R"("bloom", "n_embed": 4096, "n_layer": 30, "num_attention_heads": 32)", 7069016064);
    row("bloom", R"("bloom", "hidden_size": 14336, "n_layer": 70, "n_head": 112)", 176247271424);
    row("gpt-j-6b", R"("gptj")", 6050882784);
    row("pythia-160m", R"("gpt_neox", "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
        "num_attention_heads": 12, "vocab_size": 50304)",
        162322944);
    row("gpt-neox-20b", R"("gpt_neox")", 20554567680);
    row("opt-125m", R"("opt")", 125239296);
    row("opt-350m", R"("opt", "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "ffn_dim": 4096,
        "word_embed_proj_dim": 512, "do_layer_norm_before": false)",
        331196416);
    row("opt-6.7b",
        R"("opt", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "ffn_dim": 16384)",
        6658473984);
    row("OLMo-1B", R"("olmo", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 16,
        "intermediate_size": 8192, "tie_word_embeddings": true)",
        1176764416);
    row("OLMo-7B", R"("olmo")", 6888095744);
    row("OLMo-1B, first keys",
        R"("hf_olmo", "d_model": 2048, "n_heads": 16, "n_layers": 16, "mlp_ratio": 8, "vocab_size": 50280,
        "embedding_size": 50304, "include_bias": false, "layer_norm_with_affine": false, "max_sequence_length": 2048})",
        1176764416);
    row("phi-1.5", R"("phi")", 1418270720);
    row("Phi-3-mini", R"("phi3")", 3821079552);
    row("Phi-3-medium", R"("phi3", "hidden_size": 5120, "intermediate_size": 17920, "num_hidden_layers": 40,
        "num_attention_heads": 40, "num_key_value_heads": 10)",
        13960238080);
    row("gemma-2b", R"("gemma", "hidden_size": 2048, "intermediate_size": 16384, "num_hidden_layers": 18,
        "num_attention_heads": 8, "num_key_value_heads": 1)",
        2506172416);
    row("gemma-7b", R"("gemma")", 8537680896);
    row("gemma-2-2b", R"("gemma2")", 2614341888);
    row("gemma-2-9b", R"("gemma2", "hidden_size": 3584, "intermediate_size": 14336, "num_hidden_layers": 42,
        "num_attention_heads": 16, "num_key_value_heads": 8)",
        9241705984);
    row("gemma-3-1b", R"("gemma3_text", "hidden_size": 1152, "intermediate_size": 6912, "num_attention_heads": 4,
        "num_key_value_heads": 1, "vocab_size": 262144)",
        999885952);
    row("Qwen2-7B", R"("qwen2", "hidden_size": 3584, "num_hidden_layers": 28, "num_attention_heads": 28,
        "num_key_value_heads": 4, "intermediate_size": 18944, "vocab_size": 152064)",
        7615616512);
    row("Mixtral-8x7B", R"("mixtral")", 46702792704, 12879925248);
    row("Mixtral-8x22B", R"("mixtral", "hidden_size": 6144, "intermediate_size": 16384, "num_hidden_layers": 56,
        "num_attention_heads": 48, "vocab_size": 32768)",
        140630071296, 39161468928);
    row("Qwen1.5-MoE-A2.7B", R"("qwen2_moe")", 14315784192, 2689173504);
    row("DeepSeek-V2-Lite",
        R"("deepseek_v2", "hidden_size": 2048, "intermediate_size": 10944, "moe_intermediate_size": 1408,
        "num_hidden_layers": 27, "num_attention_heads": 16, "num_experts_per_tok": 6, "first_k_dense_replace": 1,
        "q_lora_rank": null, "vocab_size": 102400)",
        15706484224, 2661150208);
    row("DeepSeek-V2", R"("deepseek_v2", "hidden_size": 5120, "intermediate_size": 12288, "moe_intermediate_size": 1536,
        "num_hidden_layers": 60, "num_attention_heads": 128, "n_routed_experts": 160, "num_experts_per_tok": 6,
        "first_k_dense_replace": 1, "vocab_size": 102400, "n_group": 8)",
        235741434880, 21375800320);
    row("DeepSeek-V3", R"("deepseek_v3")", 671026419200, 37552297472);
    row("DBRX", R"("dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 40, "vocab_size": 100352,
        "attn_config": {"kv_n_heads": 8, "clip_qkv": 8},
        "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4}})",
        131596523520, 36469708800);
    row("roberta-base", R"("roberta", "max_position_embeddings": 514, "type_vocab_size": 1)", 124645632);
    row("xlm-roberta-base",
        R"("xlm-roberta", "max_position_embeddings": 514, "type_vocab_size": 1, "vocab_size": 250002)", 278043648);
    row("distilbert-base", R"("distilbert")", 66362880);
    row("albert-base-v2", R"("albert", "hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12)",
        11683584);
    row("albert-xxlarge-v2", R"("albert")", 222595584);
    row("bart-base", R"("bart", "d_model": 768, "encoder_layers": 6, "decoder_layers": 6, "encoder_ffn_dim": 3072,
        "decoder_ffn_dim": 3072, "encoder_attention_heads": 12, "decoder_attention_heads": 12)",
        139420416);
    row("bart-large", R"("bart")", 406291456);
    row("t5-small", R"("t5")", 60506624);
    row("t5-v1_1-base", R"("t5", "d_model": 768, "num_layers": 12, "num_heads": 12, "feed_forward_proj": "gated-gelu",
        "tie_word_embeddings": false)",
        247577856);
    row("t5-11b", R"("t5", "d_model": 1024, "d_ff": 65536, "d_kv": 128, "num_layers": 24, "num_heads": 128)",
        11307321344);
    row("mt5-small", R"("mt5", "tie_word_embeddings": false)", 300176768);
  }
  void published_counts() {
    QFETCH(QString, config);
    QFETCH(qint64, parameters);
    QFETCH(qint64, active);
    std::string text = "{\"model_type\": " + config.toStdString();
    if (std::count(text.begin(), text.end(), '{') != std::count(text.begin(), text.end(), '}')) text += "}";
    const auto model = build(text);
    QVERIFY(model);
    QCOMPARE(qint64(model->parameters), parameters);
    QCOMPARE(qint64(model->active_parameters), active);
    for (std::size_t t = 0; t < model->tensors.size(); ++t)
      if (model->tensors[TensorId(t)].role == TensorRole::parameter) QVERIFY(!model->uses[TensorId(t)].empty());
    // Two FLOP per active parameter and token is a lower bound that tables (read, not multiplied) only loosen, and
    // attention raises; at 2048 tokens and less both stay within a factor.
    const double tokens = double(model->sequence), macs = summarise(*model).macs_forward;
    const bool stacks = find(*model, "decoder/layer0/cross/q") != nullptr;
    const bool shared = text.find("albert") != std::string::npos;  // each parameter is used in every layer
    const double ratio = macs / tokens / double(active);
    QVERIFY2(ratio > 0.4 && (shared || ratio < (stacks ? 1.6 : 2.3)), qPrintable(QString::number(ratio)));
  }

  void every_family_is_published() {
    std::set<std::string> missing;
    for (const auto& family : huggingface_families()) {
      const auto source = parse_huggingface_config(
          "{\"model_type\": \"" + family + "\", \"num_experts_per_tok\": 2, \"layers_that_nobody_knows\": 3}",
          "c.json");
      if (!source || !(*source)->bind({2, 16})) missing.insert(family);
    }
    for (const auto& family : missing) qWarning("%s", family.c_str());
    QVERIFY(missing.empty());
    QVERIFY(huggingface_families().size() >= 31);
    QVERIFY(std::is_sorted(huggingface_families().begin(), huggingface_families().end()));
  }

  // Experts are a dimension of the graph that splits like any other.
  void experts_are_a_dimension() {
    const auto model = build(kMoe, {8, 32});
    QVERIFY(model);
    const Operator* up = find(*model, "layer1/mlp/experts_up");
    QVERIFY(up);
    const auto& y = model->tensors[up->outputs[0].tensor];
    QCOMPARE(y.shape, (std::vector<std::int64_t>{8, 4, 16, 160}));
    QCOMPARE(y.dims[1], DimName::expert);
    const auto& w = model->tensors[up->inputs[1].tensor];
    QCOMPARE(w.shape, (std::vector<std::int64_t>{4, 64, 160}));
    for (const char* leaf : {"dispatch", "experts_gate", "experts_up", "experts_act", "experts_down", "combine"}) {
      const Operator* op = find(*model, std::string("layer1/mlp/") + leaf);
      QVERIFY2(op, leaf);
      const auto* expert = loop(*op, DimName::expert);
      QVERIFY2(expert && expert->splittable && expert->size == 4, leaf);
      QCOMPARE(expert->role, std::string(leaf) == "combine" ? DimRole::reduction : DimRole::parallel);
      const auto* batch = loop(*op, DimName::batch);
      QVERIFY2(batch && batch->splittable, leaf);
    }
    const auto& back = model->tensors[find(*model, "layer1/mlp/combine")->outputs[0].tensor];
    QCOMPARE(back.shape, (std::vector<std::int64_t>{8, 32, 64}));
  }

  void mixture_follows_the_closed_formulas() {
    const double b = 8, s = 32, h = 64, kv = 16, f = 160, experts = 4, chosen = 2, words = 100, layers = 2;
    const auto model = build(kMoe, {8, 32});
    const auto summary = summarise(*model);
    const double layer = 2 * h * h + 2 * h * kv + 2 * s * h + h * experts + chosen * 3 * h * f;
    QCOMPARE(summary.macs_forward, b * s * (layers * layer + h * words));
    QCOMPARE(summary.macs_backward, 2 * summary.macs_forward);
    const double expert = 3 * h * f;
    QCOMPARE(double(model->parameters - model->active_parameters), layers * (experts - chosen) * expert);
    // As in a dense layer, with the chosen experts' tokens instead: x, norm(x), q, k, v, softmax, context, x',
    // norm(x'), routing, dispatched tokens, gate, up, product, and the experts' results for the routing's gradient.
    const double kept = 2 * h + h + 2 * kv + 8 * s + h + 2 * h + experts + chosen * (2 * h + 3 * f);
    const double expected = 4 * b * s * (layers * kept + 2 * h + words);
    QVERIFY(double(summary.activation_bytes) >= expected);
    QVERIFY(double(summary.activation_bytes) <= expected + b * s * (2 * 8 + 4 * (2 * 2 * layers + 2)));
  }

  // Slots that do not come out even are rounded up in memory, not in work.
  void uneven_experts_count_the_work_of_real_tokens() {
    const auto even = summarise(*build(kMoe, {8, 32})), uneven = summarise(*build(kMoe, {8, 33}));
    const double h = 64, f = 160, dense = 2 * h * h + 2 * h * 16 + 4 * h;
    const auto linear = [&](double s) { return 8 * s * (2 * (dense + 2 * s * h + 2 * 3 * h * f) + h * 100); };
    QCOMPARE(even.macs_forward, linear(32));
    QVERIFY(std::abs(uneven.macs_forward / linear(33) - 1) < 1e-12);
  }

  void dense_layers_among_mixtures() {
    const auto count = [](const Model& model) {
      return std::count_if(model.operators.begin(), model.operators.end(),
                           [](const auto& op) { return op.name.ends_with("/mlp/router"); });
    };
    const std::string sizes =
        R"(, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100, "num_hidden_layers": 6)";
    const auto qwen =
        build(R"({"model_type": "qwen3_moe", "decoder_sparse_step": 2, "mlp_only_layers": [1])" + sizes + "}");
    QCOMPARE(count(*qwen), 2);  // 3 and 5
    QVERIFY(find(*qwen, "layer1/mlp/up") && find(*qwen, "layer3/mlp/router") && find(*qwen, "layer4/mlp/up"));
    const auto deepseek =
        build(R"({"model_type": "deepseek_v3", "moe_layer_freq": 2, "first_k_dense_replace": 3)" + sizes + "}");
    QCOMPARE(count(*deepseek), 1);  // 4
    QCOMPARE(count(*build(R"({"model_type": "deepseek_v2", "n_routed_experts": null)" + sizes + "}")), 0);
  }

  void latent_attention_has_the_published_shapes() {
    const auto model = build(R"({"model_type": "deepseek_v3", "num_hidden_layers": 1})", {2, 16});
    const auto shape = [&](const char* leaf) {
      return model->tensors[find(*model, std::string("layer0/attention/") + leaf)->outputs[0].tensor].shape;
    };
    using Shape = std::vector<std::int64_t>;
    QCOMPARE(shape("q_down"), (Shape{2, 16, 1536}));
    QCOMPARE(shape("q"), (Shape{2, 128, 16, 192}));
    QCOMPARE(shape("kv_down"), (Shape{2, 16, 512}));
    QCOMPARE(shape("k_rotary"), (Shape{2, 16, 64}));
    QCOMPARE(shape("k"), (Shape{2, 128, 16, 128}));
    QCOMPARE(shape("v"), (Shape{2, 128, 16, 128}));
    QCOMPARE(shape("out"), (Shape{2, 16, 7168}));
    const Operator* scores = find(*model, "layer0/attention/scores");
    QCOMPARE(scores->inputs.size(), std::size_t(3));
    QCOMPARE(scores->forward_macs, 2.0 * 128 * 16 * 16 * 192);
    QCOMPARE(model->warnings.size(), std::size_t(0));
  }

  void encoder_decoder_attends_across() {
    const auto model = build(R"({"model_type": "t5", "num_layers": 2, "num_decoder_layers": 3})", {2, 16});
    const TensorId memory = find(*model, "encoder/head/norm")->outputs[0].tensor;
    QCOMPARE(model->uses[memory].size(), std::size_t(3));  // one view a layer, for k and v
    QVERIFY(find(*model, "decoder/layer2/cross/memory")->is_view());
    QVERIFY(find(*model, "encoder/layer1/mlp/down") && !find(*model, "encoder/layer2/mlp/down"));
    QVERIFY(find(*model, "decoder/layer2/cross/out"));
    QCOMPARE(model->tensors[find(*model, "decoder/layer2/attention/scores")->inputs[2].tensor].shape,
             (std::vector<std::int64_t>{32 * 8}));
    QCOMPARE(find(*model, "decoder/layer2/cross/scores")->inputs.size(), std::size_t(2));
    // Per token: self attention and MLP on both sides, cross attention on one, the output words.
    const double h = 512, a = 4 * h * h + 2 * 16 * h, m = 2 * h * 2048;
    QCOMPARE(summarise(*model).macs_forward, 2 * 16 * (2 * (a + m) + 3 * (2 * a + m) + h * 32128));
  }

  // T5's biases by distance: one table [buckets, heads] per stack, read by every layer's attention to itself and by no
  // other, whose numbers are looked up and added to the scores: an addition an element either way, and no product.
  void biases_by_distance_are_looked_up_and_added() {
    const std::int64_t batch = 2, length = 16, heads = 4, buckets = 7, h = 64, a = 4 * h * 48, m = 2 * h * 96;
    const std::string sizes = R"("d_model": 64, "d_ff": 96, "d_kv": 12, "num_heads": 4, "num_layers": 2, "vocab_size": 100,
      "num_decoder_layers": 3, "relative_attention_num_buckets": 7, "feed_forward_proj": "relu"})";
    for (const bool each_layer : {false, true}) {
      const auto model = build(std::string("{\"model_type\": \"") + (each_layer ? "umt5" : "t5") +
                                   "\", \"tie_word_embeddings\": true, " + sizes, {batch, length});
      const std::int64_t tables = each_layer ? 2 + 3 : 2;
      // Layers have a norm before each branch, stacks one at their end.
      QCOMPARE(model->parameters, 100 * h + 2 * (a + m + 2 * h) + h + 3 * (2 * a + m + 3 * h) + h + tables * buckets * heads);
      const double elements = double(batch * heads * length * length);
      std::set<std::uint32_t> read;
      int biased = 0, across = 0;
      for (const Operator& op : model->operators) {
        if (!op.name.ends_with("/scores")) continue;
        const bool own = op.name.find("/attention/") != std::string::npos;
        QVERIFY(own || op.name.find("/cross/") != std::string::npos);
        QCOMPARE(op.forward_macs, elements * 12);
        QCOMPARE(op.forward_flop, 2 * elements * 12 + (own ? elements : 0));
        QCOMPARE(op.backward_flop, 4 * elements * 12 + (own ? elements : 0));
        QCOMPARE(op.inputs.size(), std::size_t(own ? 3 : 2));
        ++(own ? biased : across);
        if (!own) continue;
        QVERIFY(!op.inputs[2].saved);
        const Tensor& table = model->tensors[op.inputs[2].tensor];
        QVERIFY(table.role == TensorRole::parameter && !table.tied_to.valid());
        QCOMPARE(table.elements(), buckets * heads);
        read.insert(op.inputs[2].tensor.index);
      }
      QCOMPARE(biased, 5);
      QCOMPARE(across, 3);
      QCOMPARE(std::int64_t(read.size()), tables);
    }
  }

  void albert_shares_one_layer() {
    const std::string sizes = R"("albert", "hidden_size": 64, "intermediate_size": 256, "num_attention_heads": 4,
      "embedding_size": 16, "vocab_size": 100, "num_hidden_layers": 6)";
    const auto one = build("{\"model_type\": " + sizes + "}"),
               two = build("{\"model_type\": " + sizes + R"(, "num_hidden_groups": 2})");
    const std::int64_t h = 64, layer = 12 * h * h + 13 * h;
    QCOMPARE(two->parameters - one->parameters, layer);
    QCOMPARE(one->parameters, (100 + 512 + 2) * 16 + 2 * 16 + 17 * h + layer + h * h + h);
    const auto weight = [&](const Model& model, const std::string& name) {
      return find(model, name)->inputs[1].tensor;
    };
    const auto owner = [&](const Model& model, const std::string& name) {
      return model.tensors[weight(model, name)].tied_to;
    };
    QVERIFY(!owner(*one, "layer0/mlp/up").valid());
    QCOMPARE(owner(*one, "layer5/mlp/up"), weight(*one, "layer0/mlp/up"));
    QCOMPARE(owner(*two, "layer2/mlp/up"), weight(*two, "layer0/mlp/up"));
    QCOMPARE(owner(*two, "layer5/mlp/up"), weight(*two, "layer3/mlp/up"));
    QCOMPARE(owner(*one, "head/projection"), weight(*one, "embed/projection"));
    QCOMPARE(owner(*one, "head/logits"), find(*one, "embed/tokens")->inputs[0].tensor);
  }

  void nested_text_models() {
    const std::string inner =
        R"({"model_type": "qwen2", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4})";
    const auto alone = build(inner);
    const auto nested =
        build(R"({"model_type": "some_vision_model", "vision_config": {}, "text_config": )" + inner + "}");
    QVERIFY(nested);
    QCOMPARE(nested->parameters, alone->parameters);
    QCOMPARE(nested->warnings.size(), std::size_t(1));
    const auto unnamed = build(R"({"model_type": "llama", "text_config": {"num_hidden_layers": 1}})");
    QCOMPARE(unnamed->parameters, build(R"({"model_type": "llama", "num_hidden_layers": 1})")->parameters);
  }

  void missing_key_heads_follow_the_family() {
    const auto k = [](const char* text) {
      const auto model = build(text, {1, 16});
      return model->tensors[find(*model, "layer0/attention/k")->outputs[0].tensor].shape[1];
    };
    QCOMPARE(k(R"({"model_type": "mistral", "num_hidden_layers": 1})"), std::int64_t(8));
    QCOMPARE(k(R"({"model_type": "mistral", "num_hidden_layers": 1, "num_key_value_heads": null})"), std::int64_t(32));
    QCOMPARE(k(R"({"model_type": "qwen2", "num_hidden_layers": 1, "num_attention_heads": 16})"), std::int64_t(16));
  }
};

QTEST_APPLESS_MAIN(HuggingfaceFamiliesTest)
#include "huggingface_families_test.moc"
