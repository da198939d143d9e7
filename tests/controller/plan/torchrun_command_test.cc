// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/torchrun_command.h"

#include <gtest/gtest.h>

#include "controller/api/yaml.h"

namespace muster::controller {
namespace {

TEST(TorchrunCommand, AsFarAsItsWordsSay) {
  struct Row {
    const char* container;
    Torchrun wanted;
  };
  const Row rows[] = {
      {"{}", Torchrun::kNone},
      {"{args: [torchrun, a.py]}", Torchrun::kByPath},
      {"{command: [torchrun, a.py]}", Torchrun::kByPath},
      {"{command: [torchrun], args: [a.py]}", Torchrun::kByPath},
      {"{command: [python, a.py]}", Torchrun::kNone},
      {"{command: [python3.11, -u, -m, torch.distributed.run, a.py]}", Torchrun::kDirect},
      {"{command: [/opt/conda/bin/python], args: [-m, torch.distributed.launch, a.py]}", Torchrun::kDirect},
      {"{command: [python, -m, torch.distributed.runner, a.py]}", Torchrun::kNone},
      {"{command: [python, -c, -m, torch.distributed.run]}", Torchrun::kNone},
      {"{command: [python, -m]}", Torchrun::kNone},
      {"{command: [/opt/conda/bin/torchrun, a.py]}", Torchrun::kDirect},
      {"{command: [bash, -c, pip install x && torchrun a.py]}", Torchrun::kByPath},
      {"{command: [bash, -c, 'exec torchrun a.py']}", Torchrun::kByPath},
      {"{command: [bash, -ec, '(torchrun a.py)']}", Torchrun::kByPath},
      {"{command: [bash, -lc, torchrun a.py]}", Torchrun::kNone},
      {"{command: [bash, --login, -c, torchrun a.py]}", Torchrun::kNone},
      {"{command: [bash, -c, /opt/conda/bin/torchrun a.py]}", Torchrun::kNone},
      {"{command: [bash, -c, python -m torch.distributed.run a.py]}", Torchrun::kNone},
      {"{command: [bash, -c, ./torchrun.sh]}", Torchrun::kNone},
      {"{command: [bash, -c, my-torchrun a.py]}", Torchrun::kNone},
      {"{command: [bash, run.sh]}", Torchrun::kNone},
      {"{command: [env, A=B, torchrun, a.py]}", Torchrun::kByPath},
      {"{command: [accelerate, launch, a.py]}", Torchrun::kNone},
      {"{command: [/opt/muster, run, a.py]}", Torchrun::kByPath},
      {"{command: [muster, exec, --wire=torch, --, python, a.py]}", Torchrun::kByPath},
      {"{command: [muster, exec, --, torchrun, a.py]}", Torchrun::kByPath},
      {"{command: [muster, exec, --, python, a.py]}", Torchrun::kNone},
      {"{command: [1, {}]}", Torchrun::kNone},
  };
  for (const Row& row : rows) EXPECT_EQ(TorchrunOf(ReadYaml(row.container)->at(0).object), row.wanted) << row.container;
}

}  // namespace
}  // namespace muster::controller
