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
                                     << "dp=4:tp=8:pp=2:micro-batches=32:zero=1:recompute=selective:sequence-parallel"
                                     << qint64(128) << qint64(4096) << "bf16";
    QTest::newRow("torchtitan") << R"([training]
local_batch_size = 8
seq_len = 8192  # tokens
[parallelism]
data_parallel_replicate_degree = 2
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
data_parallel_shard_degree = -1
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
    QTest::newRow("maxtext") << R"(per_device_batch_size: 4
max_target_length: 2048
dtype: "bfloat16"
remat_policy: 'full'
ici_fsdp_parallelism: -1
ici_tensor_parallelism: 2
)"
                             << "MaxText"
                             << "dp=32:tp=2:zero=3:recompute" << qint64(128) << qint64(2048) << "bf16";
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
