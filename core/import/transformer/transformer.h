// SPDX-License-Identifier: Apache-2.0
// One description of the transformer family and the graph it stands for; config files and built-ins both end here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/model/model.h"

namespace turnpoint {

/// Keys and values through a narrow bottleneck (DeepSeek's multi-head latent attention). A head's query and key have
/// head_channels (from the bottleneck) plus rotary_channels (from the layer's input, one key for all heads).
struct LatentAttention {
  std::int64_t key_value_rank = 0;  ///< channels of the bottleneck; 0: ordinary attention
  std::int64_t query_rank = 0;      ///< the queries' own bottleneck; 0: none
  std::int64_t rotary_channels = 0, value_channels = 0;
  bool query_both = false;  ///< queries and gate read their bottleneck before and behind its norm, side by side (A.X K2)
};

/// A table of distances that queries and keys attend to besides each other (DeBERTa's disentangled attention): one for
/// all layers, normed, projected by each layer to heads of its own.
struct RelativePositions {
  std::int64_t rows = 0;  ///< of the table; 0: none
  bool content_to_position = false, position_to_content = false;
  bool own_projections = false;  ///< else by the layer's weights for queries and keys
  /// The table is made of sines, two rows a position, and queries have a vector of their own for each of content,
  /// distance and segment (Transformer-XL, arXiv 1901.02860; XLNet, arXiv 1906.08237).
  bool fixed = false;
};

/// MLPs of which each token uses a few.
struct ExpertLayers {
  std::int64_t experts = 0;  ///< 0: every MLP is dense
  std::int64_t per_token = 0;
  std::int64_t intermediate = 0;         ///< width of one expert
  std::int64_t shared_intermediate = 0;  ///< width of the MLP that every token uses besides; 0: none
  bool shared_gate = false;              ///< its result is scaled by a sigmoid of one further product
  bool router_bias = false;              ///< one number per expert is added to the scores
  bool expert_bias = false;              ///< the products of every expert have a bias
  std::vector<bool> dense;  ///< layers with an ordinary MLP instead; shorter than the stack: no further ones
};

/// Pictures cut into patches, each of which one product turns into a position (ViT). No token table.
struct PatchInput {
  std::int64_t channels = 0;  ///< of the picture; 0: the input is tokens
  std::int64_t height = 0, width = 0, patch_height = 0, patch_width = 0;
  std::int64_t tokens = 1;     ///< positions before the patches: class, distillation, registers
  bool bias = true;            ///< of the product per patch
  bool positions = true;       ///< a learned row for each position but registers
  std::int64_t registers = 0;  ///< of `tokens`: those without a position
  std::int64_t step_height = 0, step_width = 0;  ///< from patch to patch where they overlap; 0: the patch's size
  std::int64_t rows_apart() const { return step_height > 0 ? step_height : patch_height; }
  std::int64_t columns_apart() const { return step_width > 0 ? step_width : patch_width; }
  std::int64_t patches() const {
    return channels > 0 ? ((height - patch_height) / rows_apart() + 1) * ((width - patch_width) / columns_apart() + 1)
                        : 0;
  }
};

/// A spectrogram before an encoder: two convolutions over time, the second of stride 2 (Whisper).
struct AudioInput {
  std::int64_t bins = 0;       ///< of the spectrogram; 0: the encoder reads tokens
  std::int64_t positions = 0;  ///< of the encoder: half the frames
};

/// An indexer scores every key for every query by small heads of its own and lets attention see the best `chosen` only
/// (DeepSeek-V3.2's sparse attention, arXiv 2512.02556 section 2).
struct KeyIndexer {
  std::int64_t heads = 0;  ///< 0: attention sees every key
  std::int64_t channels = 0, chosen = 0;
};

/// A state carried over the sequence by a scan: Mamba (arXiv 2312.00752) or Mamba-2 (arXiv 2405.21060).
struct StateSpace {
  std::int64_t inner = 0;  ///< channels that are scanned
  std::int64_t state = 0;  ///< numbers kept for each of them
  std::int64_t kernel = 4;
  std::int64_t heads = 0, groups = 1;  ///< Mamba-2: heads of inner / heads channels; groups share their in- and outputs
  std::int64_t rank = 0;               ///< Mamba: channels from which the steps are made
  std::int64_t chunk = 256;            ///< Mamba-2: positions worked on by matrix products at once
  bool convolution_bias = true, projection_bias = false;
  bool norm = true;         ///< Mamba-2: a norm of the gated result
  bool part_norms = false;  ///< Mamba: norms of step, in- and output (Jamba)
};

/// Linear attention that corrects its memory by the delta rule, with decay (Gated DeltaNet, arXiv 2412.06464; Kimi Delta
/// Attention, arXiv 2510.26692).
struct DeltaNet {
  std::int64_t key_heads = 0, value_heads = 0, key_channels = 0, value_channels = 0;
  std::int64_t kernel = 4;
  bool channel_decay = false;    ///< the decay differs by channel (Kimi), else by head
  std::int64_t decay_rank = 0;   ///< channel decay through a bottleneck; 0: directly
  std::int64_t gate_rank = 0;    ///< the output gate through a bottleneck; 0: directly
  std::int64_t chunk = 64;       ///< positions worked on by matrix products at once
};

/// One block of attention and MLP that some scanning layers put before their scan: it reads the layer's input and the
/// embeddings side by side, and its weights are those of all such layers but for a product behind it (Zamba, arXiv
/// 2405.16712) and small products beside its own (Zamba 2, arXiv 2411.15242).
struct SharedBlock {
  std::int64_t blocks = 0;        ///< so many, used in turn; 0: none
  std::int64_t rank = 0;          ///< of the products beside those of the MLP; 0: none
  bool attention_rank = false;    ///< and beside those of queries, keys and values
};

/// What carries information between positions in a layer.
enum class Mixer : std::uint8_t {
  attention,
  selective_scan,  ///< Mamba
  state_space,     ///< Mamba-2
  attention_and_state_space,  ///< both side by side on the same norm (Falcon-H1)
  delta,
  short_convolution,  ///< gated convolution over a few positions (LFM2)
  recurrence,         ///< RG-LRU (arXiv 2402.19427)
  none,
  weighted_average,  ///< RWKV (arXiv 2305.13048): an average of values whose weights decay
  fourier,           ///< the transform over positions and channels, without weights (FNet, arXiv 2105.03824)
  matrix_memory,     ///< mLSTM (arXiv 2405.04517): a matrix a head, written and kept by gates; sizes as in DeltaNet
};
/// by_list: as ExpertLayers says; gated_mix: RWKV's channel mixing, sigmoid(r) * down(relu(up)^2).
enum class FeedForward : std::uint8_t { by_list, dense, experts, none, gated_mix };

/// What one layer has instead of what the model has; 0 or nothing: the same.
struct LayerShape {
  Mixer mixer = Mixer::attention;
  FeedForward feed_forward = FeedForward::by_list;
  std::int64_t heads = 0, kv_heads = 0, head_channels = 0, value_channels = 0, intermediate = 0, key_value_rank = 0;
  bool indexed = true;  ///< has an indexer of its own where the model has indexers
  bool sinks = true;    ///< has sinks where the model has
  bool shared_block = false;  ///< the model's shared block stands before the mixer
  int block = -1;       ///< a TransformerShape::Block
};

struct TransformerShape {
  enum class Norm : std::uint8_t {
    layer,           ///< with scale and bias
    layer_unbiased,  ///< with scale only
    rms,             ///< with scale only
    bare,            ///< no parameters (OLMo)
  };
  enum class Block : std::uint8_t {
    pre_norm,            ///< x + f(norm(x)), twice (GPT-2, Llama)
    post_norm,           ///< norm(x + f(x)), twice (BERT)
    parallel,            ///< x + attention(n) + mlp(n) with one n = norm(x) (Phi)
    parallel_two_norms,  ///< the same with a norm each (GPT-NeoX, Falcon 40B)
    sandwich,            ///< x + norm(f(norm(x))), twice (Gemma 2)
    norm_after,          ///< x + norm(f(x)), twice (OLMo 2)
  };
  /// What the norms of queries and keys are taken over, and what they have a scale for.
  enum class QueryKeyScale : std::uint8_t {
    channel,    ///< over each head; one scale for all (Qwen 3)
    head,       ///< over each head, which has a scale of its own (Command R+)
    all_heads,  ///< over all heads together (OLMo 2): the norm needs the whole projection
  };
  enum class Gate : std::uint8_t { none, head, channel };  ///< sigmoid factors of attention's result: one per what
  enum class Mlp : std::uint8_t { plain, gated };  ///< down(act(up)); down(act(gate) * up)

  std::int64_t layers = 0, hidden = 0, heads = 0;
  std::string hidden_key;  ///< of a config, dots between nested ones: "text_config.hidden_size"; empty: from no key
  std::int64_t kv_heads = 0;       ///< keys and values; heads / kv_heads queries share one
  std::int64_t head_channels = 0;  ///< usually hidden / heads
  std::int64_t intermediate = 0;   ///< width of the MLP
  std::int64_t vocabulary = 0;
  std::int64_t positions = 0;           ///< the longest sequence meant for the model
  bool positions_named = true;          ///< false: nothing says how long, `positions` is a usual length
  bool learned_positions = false;       ///< a table with a row a position; else rotary or fixed, without parameters
  bool rotary = false;                  ///< rotated by position, all channels of a head
  std::int64_t spare_positions = 0;     ///< rows of that table beyond `positions` (padding, offsets)
  std::int64_t position_buckets = 0;    ///< T5: per stack a table [buckets, heads] added to the scores; 0: none
  std::int64_t token_types = 0;         ///< rows of BERT's segment table; 0: none
  std::int64_t embedding_channels = 0;  ///< of the token table where they differ from hidden; 0: hidden
  bool embedding_projection = false;    ///< a biased product from embedding_channels to hidden even if equal (ALBERT)
  bool own_output_projection =
      false;  ///< back to embedding_channels with a weight of its own, else the same transposed
  Norm norm = Norm::layer;
  Block block = Block::pre_norm;
  Mlp mlp = Mlp::plain;
  std::string activation = "gelu";
  bool causal = true;  ///< a position attends to those up to its own (of two stacks: in the decoder)
  bool attention_dropout = false, branch_dropout = false, embedding_dropout = false;
  bool activation_dropout = false;  ///< of what the last product of an MLP reads (T5)
  bool output_projection = true;  ///< false: the joined heads are the result of attention
  bool key_bias = true;           ///< where queries and values have biases (not in Whisper)
  bool qkv_bias = false, output_bias = false, mlp_bias = false, head_bias = false;
  std::optional<Norm> query_key_norm;  ///< of q and k (Qwen 3, Gemma 3)
  QueryKeyScale query_key_scale = QueryKeyScale::channel;
  std::int64_t value_channels = 0;     ///< of a head's values where they differ from head_channels
  Gate attention_gate = Gate::none;
  bool attention_norm = false, mlp_norm = false;  ///< a norm before the last product of each branch (BitNet)
  bool layer_scale = false;                       ///< each branch's result is multiplied by a vector (CaiT, DINOv2)
  bool residual_scale = false;                    ///< what a branch is added to is multiplied by a vector (Doge)
  bool value_mask = false;                        ///< a score per key made of all its values joins its scores (Doge)
  std::int64_t gated_norm_rank = 0;  ///< norms before attention and mixtures scale themselves through so many channels
  bool first_norm = true;                         ///< false: the first layer's attention reads its input (ModernBERT)
  bool last_norm = true;                          ///< after the stack, unless norms come last in every layer
  bool attention_sinks = false;  ///< one number per head takes part in the softmax of its scores (gpt-oss)
  bool embedding_norm = false;   ///< a norm right after the embeddings (BERT, BLOOM)
  bool transform = false;        ///< BERT's dense layer and norm before the words are predicted
  bool transform_bias = true;
  std::int64_t transform_channels = 0;  ///< of that layer; 0: hidden
  bool pooler = false;           ///< BERT's dense layer with tanh on the first position
  bool tied_head = false;        ///< the output projection is the token table
  std::int64_t labels =
      0;  ///< the last token, a picture's first, is sorted into so many classes; 0: tokens are predicted
  bool label_bias = false;
  bool label_each = false;  ///< every token is sorted, not one of them
  bool global_token = false;  ///< the first position (of an encoder, if there is one) sees all by products of its own
  std::int64_t encoder_positions = 0;  ///< of the encoder's table where they differ; 0: `positions`
  bool foreign_memory = false;  ///< every layer also attends to states that come as data (a decoder without its encoder)
  bool label_mean = false;  ///< the first position and the mean of the others are sorted side by side (DINOv2)
  bool attention_pool = false;  ///< one learned query attends to all positions, then norm and MLP (SigLIP)
  PatchInput image;
  AudioInput audio;
  std::int64_t shared_groups = 0;  ///< ALBERT: the layers share the parameters of this many; 0: each has its own
  LatentAttention latent;
  KeyIndexer indexer;
  StateSpace states;
  DeltaNet delta;
  SharedBlock shared;
  std::int64_t convolution_kernel = 0;  ///< of short convolutions and recurrences
  bool convolution_bias = false;
  std::int64_t recurrence_channels = 0;
  std::vector<LayerShape> each;  ///< a layer each where they differ; else empty
  RelativePositions relative;
  ExpertLayers moe;
  /// Layers of an encoder before this decoder, whose result the decoder attends to; 0: none. Both read the token table.
  std::int64_t encoder_layers = 0;
  std::int64_t encoder_heads = 0, encoder_intermediate = 0;  ///< 0: like the decoder
  bool own_tables = false;   ///< the encoder has a token table of its own
  bool own_buckets = false;  ///< every layer has a table of position buckets of its own (UMT5)
  bool gate_bias = true;     ///< of the products before the activation, where the MLP has biases
  std::vector<std::string> warnings;

  /// The model's own maximum up to kLongestDefaultSequence; all there are for pictures and sound.
  std::int64_t default_sequence() const;
  /// Why it is that; empty for pictures and sound, where there is nothing to choose.
  std::string default_sequence_reason() const;
  /// Whether sums over the whole graph stay far inside 64 bits.
  bool fits(std::int64_t batch, std::int64_t sequence) const;
};

/// Training graph with mean cross-entropy over all positions. Projections produce heads directly:
/// q [batch, head, (group,) sequence, head_channel], k and v [batch, head, sequence, head_channel]; the causal mask and
/// the scaling live in the softmax, rotary embedding in the projections' epilogues; dropout stands behind probabilities,
/// branches and embeddings where the shape has it. Tokens are taken
/// to spread evenly over the experts; `sequence` is the length on both sides of an encoder-decoder, of the decoder
/// where the encoder hears, and not asked for pictures. Errors: sizes whose tensors would overflow, sequences longer
/// than a learned position table.
Expected<ModelPtr> build_transformer(const TransformerShape& shape, const std::string& name, const std::string& source,
                                     std::int64_t batch, std::int64_t sequence);

}  // namespace turnpoint
