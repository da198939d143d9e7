# SPDX-License-Identifier: Apache-2.0
"""The Trainer of Hugging Face: a tiny GPT-2 with random weights, a data set of `datasets`, a checkpoint each step.

It sets a variable that `datasets` reads while it is imported, as many programs do."""

import os

os.environ["HF_HOME"] = os.path.join(os.environ["SCENARIO_FOLDER"], "home-of-the-program")

import datasets
import torch
import transformers
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

import scenario


class Scenario(TrainerCallback):
    def on_step_begin(self, args, state, control, **kwargs):
        scenario.about_to_do(state.global_step)

    def on_log(self, args, state, control, logs=None, **kwargs):
        if "loss" in logs:
            scenario.done(state.global_step - 1, logs["loss"])


def tokens(row):
    generator = torch.Generator().manual_seed(row["number"])
    ids = torch.randint(64, (16,), generator=generator).tolist()
    return {"input_ids": ids, "labels": ids, "attention_mask": [1] * 16}


def main():
    scenario.begin(transformers.__version__, cache=datasets.config.HF_DATASETS_CACHE)
    transformers.set_seed(7)
    data = datasets.Dataset.from_dict({"number": list(range(32))}).map(tokens, remove_columns=["number"])
    config = GPT2Config(vocab_size=64, n_positions=16, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
    model = GPT2LMHeadModel(config)
    folder = scenario.checkpoints()
    arguments = TrainingArguments(
        output_dir=folder,
        use_cpu=True,
        max_steps=scenario.STEPS,
        per_device_train_batch_size=4,
        learning_rate=1e-3,
        logging_steps=1,
        save_steps=1,
        report_to=[],
        disable_tqdm=True,
        dataloader_num_workers=1,
        ddp_backend="gloo",
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=data, callbacks=[Scenario()])
    last = get_last_checkpoint(folder) if os.path.isdir(folder) else None
    trainer.train(resume_from_checkpoint=last)
    scenario.end(model.named_parameters())


if __name__ == "__main__":
    main()
