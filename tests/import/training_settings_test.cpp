// SPDX-License-Identifier: Apache-2.0
// The split that somebody trains with today, read from the settings of each framework.
#include <QtTest>

#include "core/import/files/training_settings.h"

using namespace turnpoint;

class TrainingSettingsTest : public QObject {
  Q_OBJECT
 private slots:
  void files_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("framework");
    QTest::addColumn<QString>("split");  // on 64 devices
    QTest::addColumn<qint64>("batch");
    QTest::addColumn<qint64>("sequence");
    QTest::addColumn<QString>("precision");
    QTest::newRow("deepspeed") << R"({"train_batch_size": 512, "train_micro_batch_size_per_gpu": 2,
      "gradient_accumulation_steps": 4, "zero_optimization": {"stage": 2}, "bf16": {"enabled": true}})"
                               << "DeepSpeed"
                               << "dp=64:micro-batches=4:zero=2" << qint64(512) << qint64(0) << "bf16";
    QTest::newRow("deepspeed auto") << R"({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": 3,
      "gradient_accumulation_steps": 2, "zero_optimization": {"stage": 3}})"
                                    << "DeepSpeed"
                                    << "dp=64:micro-batches=2:zero=3" << qint64(384) << qint64(0) << "";
    QTest::newRow("megatron script") << R"(#!/bin/bash
TP=8   # tensor parallel
export PP=2
ARGS=(
    --tensor-model-parallel-size ${TP} --pipeline-model-parallel-size $PP
    --micro-batch-size=1
    --global-batch-size 128 --seq-length 4096
    --sequence-parallel
    --recompute-granularity selective
    --use-distributed-optimizer
    --bf16
))"
                                     << "Megatron-LM"
                                     << "dp=4:tp=8:pp=2:micro-batches=32:zero=1:reduce-last:recompute=selective:"
                                        "sequence-parallel"
                                     << qint64(128) << qint64(4096) << "bf16";
    QTest::newRow("torchtitan") << R"([training]
local_batch_size = 8
seq_len = 8192  # tokens
[parallelism]
data_parallel_replicate_degree = 1
data_parallel_shard_degree = -1
tensor_parallel_degree = 4
pipeline_parallel_degree = 1
[activation_checkpoint]
mode = "selective"
)"
                                << "torchtitan"
                                << "dp=16:tp=4:zero=3:recompute=selective" << qint64(128) << qint64(8192) << "";
    QTest::newRow("torchtitan, by operator") << R"([training]
local_batch_size = 2
seq_len = 8192
[parallelism]
pipeline_parallel_degree = 1
[activation_checkpoint]
mode = "selective"
selective_ac_option = "op"
)"
                                             << "torchtitan"
                                             << "dp=64:zero=3:recompute=op" << qint64(128) << qint64(8192) << "";
    QTest::newRow("nemo") << R"(trainer:
  precision: bf16-mixed
model:
  mcore_gpt: true
  micro_batch_size: 2
  global_batch_size: 256
  tensor_model_parallel_size: 4
  pipeline_model_parallel_size: 4
  encoder_seq_length: 2048
  sequence_parallel: False
  activations_checkpoint_granularity: full
  optim:
    name: distributed_fused_adam
)"
                          << "NeMo"
                          << "dp=4:tp=4:pp=4:micro-batches=32:zero=1:recompute" << qint64(256) << qint64(2048)
                          << "bf16";
    // A sequence on four devices each, experts on eight of those that share batch and sequence.
    QTest::newRow("megatron with context and experts") << R"(CP=${CP:-4}
ARGS="
  --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --context-parallel-size ${CP}
  --expert-model-parallel-size 8 --expert-tensor-parallel-size 2 --micro-batch-size 1 --global-batch-size 64
  --sequence-parallel --seq-length 32768 --bf16 --use-distributed-optimizer")"
                                                       << "Megatron-LM"
                                                       << "dp=4:tp=2:cp=4:ep=8:pp=2:micro-batches=16:zero=1:"
                                                          "reduce-last:sequence-parallel"
                                                       << qint64(64) << qint64(32768) << "bf16";
    QTest::newRow("nemo with context") << R"(model:
  micro_batch_size: 1
  tensor_model_parallel_size: 4
  context_parallel_size: 8
  expert_model_parallel_size: 1
  encoder_seq_length: 65536
)"
                                       << "NeMo"
                                       << "dp=2:tp=4:cp=8" << qint64(2) << qint64(65536) << "";
    QTest::newRow("torchtitan with context") << R"([training]
local_batch_size = 1
seq_len = 131072
[parallelism]
data_parallel_shard_degree = -1
context_parallel_degree = 8
expert_parallel_degree = 16
)"
                                             << "torchtitan"
                                             << "dp=8:cp=8:ep=16:zero=3" << qint64(8) << qint64(131072) << "";
    // Those that share a sequence shard in any case.
    QTest::newRow("torchtitan with context alone") << R"([parallelism]
data_parallel_shard_degree = 1
context_parallel_degree = 64
)"
                                                   << "torchtitan"
                                                   << "dp=1:cp=64:zero=3" << qint64(0) << qint64(0) << "";
    // Nobody is left to shard with.
    QTest::newRow("torchtitan, all copies") << R"([parallelism]
data_parallel_replicate_degree = 64
data_parallel_shard_degree = -1
)"
                                            << "torchtitan"
                                            << "dp=64" << qint64(0) << qint64(0) << "";
    // Its axis of experts shares the batch beside the axis that shards.
    QTest::newRow("maxtext with context and experts") << R"(per_device_batch_size: 2
ici_fsdp_parallelism: 4
ici_expert_parallelism: 4
dcn_context_parallelism: 2
ici_context_parallelism: 2
)"
                                                      << "MaxText"
                                                      << "dp=16:cp=4:ep=4:zero=3" << qint64(128) << qint64(0) << "";
    // 64 devices of half a sample: two for each group of four.
    QTest::newRow("maxtext, a fraction") << R"(per_device_batch_size: 0.5
ici_fsdp_parallelism: -1
ici_tensor_parallelism: 4
gradient_accumulation_steps: 3
)"
                                         << "MaxText"
                                         << "dp=16:tp=4:micro-batches=3:zero=3" << qint64(96) << qint64(0) << "";
    // A pass is 128 samples, which stages take in as many parts as there are stages.
    QTest::newRow("maxtext, stages") << R"(per_device_batch_size: 2
ici_pipeline_parallelism: 4
ici_data_parallelism: 16
num_pipeline_microbatches: -1
gradient_accumulation_steps: 2
)"
                                     << "MaxText"
                                     << "dp=16:pp=4:micro-batches=8" << qint64(256) << qint64(0) << "";
    QTest::newRow("maxtext, stages, number said")
        << R"(per_device_batch_size: 2
ici_pipeline_parallelism: 4
ici_data_parallelism: 16
num_pipeline_microbatches: 8
)"
        << "MaxText"
        << "dp=16:pp=4:schedule=gpipe:micro-batches=8" << qint64(128) << qint64(0) << "";
    QTest::newRow("maxtext") << R"(per_device_batch_size: 4
max_target_length: 2048
dtype: "bfloat16"
remat_policy: 'full'
ici_fsdp_parallelism: -1
ici_tensor_parallelism: 2
)"
                             << "MaxText"
                             << "dp=32:tp=2:zero=3:recompute" << qint64(256) << qint64(2048) << "bf16";
  }

  void files() {
    QFETCH(QString, text);
    QVERIFY(is_training_settings(text.toStdString()));
    const auto settings = parse_training_settings(text.toStdString(), "settings");
    QVERIFY2(settings.has_value(), settings ? "" : settings.error().message().c_str());
    QTEST(QString::fromStdString(settings->framework), "framework");
    const auto split = settings->split_on(64);
    QVERIFY2(split.has_value(), split ? "" : split.error().message().c_str());
    QTEST(QString::fromStdString(*split), "split");
    QTEST(qint64(settings->batch_on(64)), "batch");
    QTEST(qint64(settings->sequence), "sequence");
    QTEST(QString::fromStdString(settings->precision), "precision");
  }

  void numbers_that_contradict_are_said() {
    const auto settings = parse_training_settings(
        "m: \n  tensor_model_parallel_size: 8\n  global_batch_size: 100\n"
        "  micro_batch_size: 3\n",
        "x.yaml");
    QVERIFY(settings.has_value());
    QVERIFY(settings->split_on(12).error().message().find("tp=8 times pp=1 does not make 12 devices") !=
            std::string::npos);
    QVERIFY(settings->split_on(16).error().message().find("a batch of 100 cannot be divided among 2") !=
            std::string::npos);
  }

  void groups_that_cannot_be_are_said() {
    const auto of = [](const char* text) {
      const auto settings = parse_training_settings(text, "x");
      if (!settings) return settings.error().message();
      const auto split = settings->split_on(16);
      return split ? *split : split.error().message();
    };
    const auto says = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
    QVERIFY(says(of("tensor_model_parallel_size: 2\ncontext_parallel_size: 3\n"),
                 "tp=2 times cp=3 times pp=1 does not make 16 devices"));
    QVERIFY(says(of("tensor_model_parallel_size: 2\nexpert_model_parallel_size: 4\nexpert_tensor_parallel_size: 1\n"),
                 "each expert is split over 1 devices and all else over 2"));
    // torchtitan's experts are whole unless it is told.
    QVERIFY(says(of("[parallelism]\ntensor_parallel_degree = 2\nexpert_parallel_degree = 4\n"
                    "data_parallel_shard_degree = -1\n"),
                 "each expert is split over 1 devices and all else over 2"));
    QCOMPARE(of("[parallelism]\ntensor_parallel_degree = 2\nexpert_parallel_degree = 4\n"
                "expert_tensor_parallel_degree = 2\ndata_parallel_shard_degree = -1\n"),
             std::string("dp=8:tp=2:ep=4:zero=3"));
    QVERIFY(says(of("tensor_model_parallel_size: 60000\ncontext_parallel_size: 60000\n"), "more than 65,536 parts"));
    QVERIFY(says(of("tensor_model_parallel_size: 2\ncontext_parallel_size: 0\n"),
                 "context_parallel_size must be a whole number"));
    // Numbers whose product no integer holds.
    QVERIFY(says(of("ici_tensor_parallelism: 1073741824\ndcn_tensor_parallelism: 1073741824\n"
                    "ici_context_parallelism: 1073741824\ndcn_context_parallelism: 1073741824\n"),
                 "more than 65,536 parts"));
    QVERIFY(says(of("ici_tensor_parallelism: 1\nici_data_parallelism: 1073741824\ndcn_data_parallelism: 1073741824\n"
                    "ici_fsdp_parallelism: 1073741824\ndcn_fsdp_parallelism: 1073741824\n"),
                 "more than 65,536 parts"));
  }

  // Groups that shard weights or their state, which other groups repeat.
  void hybrid_sharding_is_read() {
    const auto of = [](const std::string& text) {
      const auto settings = parse_training_settings(text, "x");
      if (!settings) return settings.error().message();
      const auto split = settings->split_on(16);
      return split ? *split : split.error().message();
    };
    const auto titan = [&](const char* text) { return of(std::string("[parallelism]\n") + text); };
    const auto is = [](const std::string& a, const char* b) { return a == b; };
    QVERIFY(is(titan("data_parallel_replicate_degree = 4\ndata_parallel_shard_degree = 4\n"), "dp=16:zero=3:shard=4"));
    QVERIFY(is(titan("data_parallel_replicate_degree = 2\ndata_parallel_shard_degree = -1\n"), "dp=16:zero=3:shard=8"));
    QVERIFY(is(titan("data_parallel_replicate_degree = 2\npipeline_parallel_degree = 1\n"), "dp=16:zero=3:shard=8"));
    QVERIFY(is(titan("data_parallel_replicate_degree = 2\ntensor_parallel_degree = 4\n"), "dp=4:tp=4:zero=3:shard=2"));
    // Devices that share a sequence are of one group.
    QVERIFY(is(titan("data_parallel_replicate_degree = 8\ndata_parallel_shard_degree = 1\n"
                     "context_parallel_degree = 2\n"),
               "dp=8:cp=2:zero=3:shard=2"));
    QVERIFY(is(titan("data_parallel_replicate_degree = 2\ndata_parallel_shard_degree = 2\n"
                     "context_parallel_degree = 4\n"),
               "dp=4:cp=4:zero=3:shard=8"));
    QVERIFY(is(titan("data_parallel_replicate_degree = 16\ndata_parallel_shard_degree = 1\n"), "dp=16"));
    QCOMPARE(
        titan("data_parallel_replicate_degree = 3\ndata_parallel_shard_degree = -1\n"),
        std::string("torchtitan: 16 devices that share batch and sequence cannot hold 3 copies of what ZeRO shards"));
    QCOMPARE(
        titan("data_parallel_replicate_degree = 6\ndata_parallel_shard_degree = -1\n"),
        std::string("torchtitan: 16 devices that share batch and sequence cannot hold 6 copies of what ZeRO shards"));
    QCOMPARE(titan("data_parallel_replicate_degree = 32\ndata_parallel_shard_degree = -1\n"),
             std::string("torchtitan: 16 devices that share batch and sequence cannot hold 32 copies of what ZeRO "
                         "shards"));
    QVERIFY(is(of("ici_fsdp_parallelism: -1\ndcn_data_parallelism: 2\n"), "dp=16:zero=3:shard=8"));
    QVERIFY(is(of("ici_fsdp_parallelism: 4\nici_data_parallelism: 4\n"), "dp=16:zero=3:shard=4"));
    QVERIFY(is(of("ici_fsdp_parallelism: 2\nici_expert_parallelism: 2\ndcn_data_parallelism: -1\n"),
               "dp=16:ep=2:zero=3:shard=4"));
    QVERIFY(is(of("ici_fsdp_parallelism: -1\ndcn_data_parallelism: -1\n"), "dp=16:zero=3"));  // one slice
    QVERIFY(is(of("ici_fsdp_parallelism: 1\ndcn_data_parallelism: 16\n"), "dp=16"));
    QVERIFY(of("ici_fsdp_parallelism: 4\ndcn_fsdp_parallelism: 2\nici_data_parallelism: 2\n")
                .find("x: dcn_fsdp_parallelism beside ici_data_parallelism shards weights across slices") == 0);
    const auto megatron = [&](const char* text) {
      return of(std::string("--tensor-model-parallel-size 1 --num-distributed-optimizer-instances ") + text);
    };
    QVERIFY(is(megatron("2 --use-distributed-optimizer\n"), "dp=16:zero=1:shard=8:reduce-last"));
    QVERIFY(is(megatron("4 --use-distributed-optimizer --context-parallel-size 2\n"),
               "dp=8:cp=2:zero=1:shard=4:reduce-last"));
    QVERIFY(is(megatron("1 --use-distributed-optimizer --overlap-param-gather\n"), "dp=16:zero=1:gather-first"));
    QVERIFY(is(megatron("1 --overlap-param-gather\n"), "dp=16:reduce-last"));
    // What runs beside what: as Megatron-LM is told, and NeMo where its file says something.
    QVERIFY(is(megatron("1 --use-distributed-optimizer --overlap-grad-reduce\n"), "dp=16:zero=1"));
    QVERIFY(is(megatron("1 --overlap-grad-reduce\n"), "dp=16"));
    QVERIFY(is(of("--tensor-model-parallel-size 4 --sequence-parallel --tp-comm-overlap --overlap-grad-reduce\n"),
               "dp=4:tp=4:sequence-parallel:tp-comm-overlap"));
    QVERIFY(is(of("--tensor-model-parallel-size 4 --tp-comm-overlap --overlap-grad-reduce\n"), "dp=4:tp=4"));
    QVERIFY(is(of("--tensor-model-parallel-size 16\n"), "dp=1:tp=16"));  // nobody to sum with
    QVERIFY(is(of("model:\n  tensor_model_parallel_size: 4\n  sequence_parallel: true\n  ub_tp_comm_overlap: true\n"),
               "dp=4:tp=4:sequence-parallel:tp-comm-overlap"));
    QVERIFY(is(of("model:\n  tensor_model_parallel_size: 4\n  ddp:\n    overlap_grad_reduce: false\n"),
               "dp=4:tp=4:reduce-last"));
    QVERIFY(is(of("model:\n  tensor_model_parallel_size: 4\n  ddp:\n    overlap_grad_reduce: true\n"), "dp=4:tp=4"));
    QVERIFY(is(titan("pipeline_parallel_degree = 4\npipeline_parallel_schedule = \"GPipe\"\n"),
               "dp=4:pp=4:schedule=gpipe:zero=3"));
    QVERIFY(is(titan("pipeline_parallel_degree = 4\npipeline_parallel_schedule = \"1F1B\"\n"), "dp=4:pp=4:zero=3"));
    QVERIFY(is(megatron("2\n"), "dp=16:reduce-last"));  // no optimizer is distributed
    QVERIFY(is(megatron("4 --use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params\n"),
               "dp=16:zero=3:shard=4"));
    QVERIFY(is(megatron("1 --use-megatron-fsdp --data-parallel-sharding-strategy optim_grads\n"), "dp=16:zero=2"));
    QVERIFY(is(megatron("1 --use-megatron-fsdp\n"), "dp=16:reduce-last"));
    QVERIFY(megatron("1 --use-megatron-fsdp --data-parallel-sharding-strategy all\n")
                .find("x: data_parallel_sharding_strategy must be one of no_shard, optim, optim_grads, "
                      "optim_grads_params, not 'all'") == 0);
    QVERIFY(megatron("2 --use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params "
                     "--outer-dp-sharding-strategy optim\n")
                .find("x: outer_dp_sharding_strategy optim shards the optimizer state among all devices") == 0);
    QVERIFY(is(of("model:\n  tensor_model_parallel_size: 2\n  ddp:\n    use_distributed_optimizer: true\n"
                  "    num_distributed_optimizer_instances: 2\n"),
               "dp=8:tp=2:zero=1:shard=4"));
    const auto nemo_fsdp = [&](const char* more) {
      return of(std::string("model:\n  tensor_model_parallel_size: 2\n  fsdp: true\n") + more);
    };
    QVERIFY(is(nemo_fsdp(""), "dp=8:tp=2:zero=3"));
    QVERIFY(is(nemo_fsdp("  fsdp_sharding_strategy: grad\n"), "dp=8:tp=2:zero=2"));
    QVERIFY(nemo_fsdp("  fsdp_sharding_strategy: hybrid\n")
                .find("x: fsdp_sharding_strategy hybrid shards within each node") == 0);
    QVERIFY(nemo_fsdp("  fsdp_sharding_strategy: all\n")
                .find("x: fsdp_sharding_strategy must be full, hybrid or grad, not 'all'") == 0);
    QVERIFY(is(of("model:\n  tensor_model_parallel_size: 2\n  fsdp: false\n"), "dp=8:tp=2"));
    const auto deepspeed = [&](int stage, const char* more) {
      return of("{\"train_micro_batch_size_per_gpu\": 1, \"zero_optimization\": {\"stage\": " + std::to_string(stage) +
                ", " + more + "}}");
    };
    QVERIFY(is(deepspeed(3, R"("mics_shard_size": 4)"), "dp=16:zero=3:shard=4"));
    QVERIFY(is(deepspeed(3, R"("mics_shard_size": -1)"), "dp=16:zero=3"));
    QVERIFY(is(deepspeed(3, R"("mics_shard_size": 16, "zero_hpz_partition_size": 1)"), "dp=16:zero=3"));
    QVERIFY(is(deepspeed(2, R"("mics_shard_size": 4)"), "dp=16:zero=2"));  // its sharding of stage 3
    QCOMPARE(deepspeed(3, R"("mics_shard_size": 5)"),
             std::string("DeepSpeed: ZeRO cannot shard among 5 of 16 devices that share batch and sequence"));
    QVERIFY(deepspeed(3, R"("zero_hpz_partition_size": 8)")
                .find("x: zero_hpz_partition_size of 8 keeps a second copy of the weights on every 8 devices") == 0);
  }

  // Runs of layers that each stage of MaxText takes in turn: as told, or as many as the model's layers make.
  void maxtext_repeats_are_virtual_stages() {
    const auto of = [](const std::string& more, std::int64_t layers) {
      const auto settings = parse_training_settings(
          "per_device_batch_size: 4\nici_pipeline_parallelism: 4\nnum_pipeline_microbatches: 8\n" + more, "x");
      if (!settings) return settings.error().message();
      const auto split = settings->split_on(16, layers);
      return split ? *split : split.error().message();
    };
    const auto is = [](const std::string& a, const char* b) { return a == b; };
    QVERIFY(is(of("num_layers_per_pipeline_stage: 2\nici_fsdp_parallelism: 4\n", 24),
               "dp=4:pp=4:vp=3:schedule=gpipe:micro-batches=8:zero=3"));
    QVERIFY(is(of("num_pipeline_repeats: 3\nnum_layers_per_pipeline_stage: 2\nici_data_parallelism: 4\n", 24),
               "dp=4:pp=4:vp=3:schedule=gpipe:micro-batches=8"));
    // One layer in each run unless told.
    QVERIFY(is(of("ici_data_parallelism: 4\n", 24), "dp=4:pp=4:vp=6:schedule=gpipe:micro-batches=8"));
    QVERIFY(is(of("num_pipeline_repeats: -1\nnum_layers_per_pipeline_stage: 6\nici_data_parallelism: 4\n", 24),
               "dp=4:pp=4:schedule=gpipe:micro-batches=8"));
    QVERIFY(is(of("pipeline_parallel_layers: -1\nici_data_parallelism: 4\n", 8),
               "dp=4:pp=4:vp=2:schedule=gpipe:micro-batches=8"));
    // A model that is not at hand is one whose layers are as many as the file says.
    QVERIFY(is(of("num_pipeline_repeats: 3\nici_data_parallelism: 4\n", 0),
               "dp=4:pp=4:vp=3:schedule=gpipe:micro-batches=8"));
    QCOMPARE(of("num_layers_per_pipeline_stage: 4\nici_data_parallelism: 4\n", 24),
             std::string("MaxText: 4 stages of runs of 4 layers do not make the model's 24 layers"));
    QCOMPARE(of("num_pipeline_repeats: 5\nici_data_parallelism: 4\n", 24),
             std::string("MaxText: 4 stages of 5 runs of 1 layer do not make the model's 24 layers"));
    QCOMPARE(of("pipeline_parallel_layers: 20\nici_data_parallelism: 4\n", 24),
             std::string("MaxText: 20 of the model's 24 layers are in the pipeline, and a split here has all of them "
                         "there"));
    // Of one stage nothing is taken in turn.
    const auto plain = parse_training_settings("ici_fsdp_parallelism: -1\nnum_pipeline_repeats: 3\n", "x");
    QVERIFY(is(*plain->split_on(16, 24), "dp=16:zero=3"));
  }

  void samples_of_a_replica_are_whole() {
    const auto of = [](const char* text) { return parse_training_settings(text, "x").error().message(); };
    QCOMPARE(of("per_device_batch_size: 0.3\nici_tensor_parallelism: 4\n"),
             std::string("x: per_device_batch_size of 0.3 makes 1.2 samples for the 4 devices of a replica: must be a "
                         "whole number up to 2^30"));
    QCOMPARE(of("per_device_batch_size: 1\nici_pipeline_parallelism: 4\nnum_pipeline_microbatches: 8\n"),
             std::string("x: per_device_batch_size of 1 makes 0.5 samples for the 4 devices of a replica in each of 8 "
                         "micro-batches: must be a whole number up to 2^30"));
    for (const char* bad : {"0", "-1", "nan", "inf", "many", "1e300"})
      QVERIFY2(of((std::string("per_device_batch_size: ") + bad + "\n").c_str())
                       .find("x: per_device_batch_size must be a number above 0 and up to 2^30, not '") == 0,
               bad);
    // Numbers whose product no integer holds.
    const auto most = parse_training_settings(
        "per_device_batch_size: 1073741824\nici_data_parallelism: 1073741824\ngradient_accumulation_steps: "
        "1073741824\n",
        "x");
    QCOMPARE(most->batch_on(64), (std::int64_t(1) << 30) + 1);
    QVERIFY(of("per_device_batch_size: 1073741824\nici_tensor_parallelism: 4\n").find("whole number up to 2^30") !=
            std::string::npos);
  }

  void other_texts_are_none() {
    for (const char* text :
         {"", "{}", "a: 1\nb: 2\n", R"({"model_type": "gpt2"})", "# Out of place In-place\n", "[1, 2]"})
      QVERIFY2(!is_training_settings(text), text);
    const auto wrong = parse_training_settings("tensor_model_parallel_size: many\n", "x.yaml");
    QVERIFY(wrong.error().message().find("x.yaml: tensor_model_parallel_size must be a whole number") !=
            std::string::npos);
    QVERIFY(!parse_training_settings("notes\n", "x").has_value());
  }

  // Aliases are never expanded: what would be 10^9 words elsewhere stays a few lines.
  void alias_bombs_stay_small() {
    std::string text = "tensor_model_parallel_size: 2\na: &a [x, x, x, x, x, x, x, x, x, x]\n";
    for (char c = 'b'; c < 'z'; ++c)
      text += std::string(1, c) + ": &" + c + " [*" + std::string(1, char(c - 1)) + ", *" + char(c - 1) + "]\n";
    const auto settings = parse_training_settings(text, "bomb.yaml");
    QVERIFY(settings.has_value());
    QCOMPARE(settings->tensor, std::int64_t(2));
  }
};

QTEST_APPLESS_MAIN(TrainingSettingsTest)
#include "training_settings_test.moc"
