// SPDX-License-Identifier: Apache-2.0
// Which of two possible Pythons runs the workers, and which torch it has, from files alone.
#include "agent/workers/python_facts.h"

#include <gmock/gmock.h>

#include "tests/base/fake_machine.h"

namespace muster::agent {
namespace {

class PythonFacts : public testing::Test {
 protected:
  PythonFacts() { machine_.Program("/usr/bin/python3").Set("PATH", "/usr/local/bin:/usr/bin"); }
  std::optional<std::string> Note(std::string_view launcher = "torchrun") {
    return OtherPythonNote({machine_.fs(), machine_.environment(), "/opt/muster/muster", {}}, launcher);
  }
  RecorderNames Names(const std::string& python = "/usr/bin/python3") {
    return RecorderNamesOf({machine_.fs(), machine_.environment(), "/opt/muster/muster", {}}, python);
  }
  void Torch(const std::string& packages, const std::string& version) {
    machine_.File(packages + "/torch/version.py", "from typing import Optional\n\n__version__ = '" + version + "'\n");
  }
  // Makes /venv, whose python3 is a link, as in real ones.
  void Venv() { machine_.File("/venv/pyvenv.cfg").Link("/venv/bin/python3", "/usr/bin/python3"); }

  FakeMachine machine_;
};

TEST_F(PythonFacts, OnePythonIsNoNews) {
  EXPECT_EQ(Note(), std::nullopt);
  machine_.Program("/usr/local/bin/torchrun", "#!/usr/bin/python3\n");
  EXPECT_EQ(Note(), std::nullopt);
  machine_.Link("/usr/local/bin/python3", "/usr/bin/python3");
  EXPECT_EQ(Note(), std::nullopt) << "the same file by another path";
}

TEST_F(PythonFacts, TheVirtualEnvironmentIsAnother) {
  Venv();
  machine_.Set("VIRTUAL_ENV", "/venv");
  EXPECT_EQ(Note(),
            "the workers run with /usr/bin/python3, the first one on PATH; VIRTUAL_ENV has another one: "
            "PYTHON_EXEC=/venv/bin/python3 chooses that");
  machine_.Program("/usr/local/bin/torchrun", "#!/usr/bin/python3\n").Set("PATH", "/venv/bin:/usr/local/bin:/usr/bin");
  EXPECT_EQ(Note(),
            "the workers run with /usr/bin/python3, which runs /usr/local/bin/torchrun; VIRTUAL_ENV has another one: "
            "PYTHON_EXEC=/venv/bin/python3 chooses that");
  EXPECT_EQ(Note("/usr/local/bin/torchrun"), std::nullopt) << "named by the user";
  EXPECT_EQ(Note("python3"), std::nullopt) << "named by the user";
  machine_.Set("PYTHON_EXEC", "/usr/bin/python3");
  EXPECT_EQ(Note(), std::nullopt) << "named by the user";
}

TEST_F(PythonFacts, TheVirtualEnvironmentsOwnTorchrun) {
  Venv();
  machine_.Program("/venv/bin/torchrun", "#!/venv/bin/python3\n");
  machine_.Set("VIRTUAL_ENV", "/venv").Set("PATH", "/venv/bin:/usr/bin");
  EXPECT_EQ(Note(), std::nullopt);
  machine_.Program("/venv/bin/torchrun", "#!/venv/bin/python\n").Link("/venv/bin/python", "/usr/bin/python3");
  EXPECT_EQ(Note(), std::nullopt) << "another name in its folder";
}

TEST_F(PythonFacts, TheFirstPythonIsAnother) {
  machine_.Program("/opt/conda/bin/python3").Program("/usr/local/bin/torchrun", "#!/usr/bin/python3\n");
  machine_.Set("PATH", "/opt/conda/bin:/usr/local/bin:/usr/bin");
  EXPECT_EQ(Note(),
            "the workers run with /usr/bin/python3, which runs /usr/local/bin/torchrun; the first python3 on PATH is "
            "another one: PYTHON_EXEC=/opt/conda/bin/python3 chooses that");
  Venv();
  machine_.Set("PATH", "/venv/bin:/usr/local/bin:/usr/bin");
  EXPECT_NE(Note(), std::nullopt) << "a virtual environment's python leads to the same file, and is another";
}

TEST_F(PythonFacts, NoPythonAtAll) {
  machine_.Set("PATH", "/nowhere").Set("VIRTUAL_ENV", "/venv");
  EXPECT_EQ(Note(), std::nullopt);
}

TEST_F(PythonFacts, NamesByTheVersionOfTorch) {
  const struct {
    const char* version;
    RecorderNames names;
  } rows[] = {{"1.13.0a0", RecorderNames::kOld},     {"2.7.1+cu126", RecorderNames::kOld},
              {"2.8.0", RecorderNames::kNew},        {"2.8.0a0+5228986c39", RecorderNames::kNew},
              {"2.15.0+cu132", RecorderNames::kNew}, {"3.0.0", RecorderNames::kNew},
              {"2.9rc1", RecorderNames::kNew},       {"", RecorderNames::kBoth},
              {"2", RecorderNames::kBoth},           {"a.b", RecorderNames::kBoth},
              {"2.", RecorderNames::kBoth}};
  for (const auto& row : rows) {
    Torch("/usr/lib/python3/dist-packages", row.version);
    EXPECT_EQ(Names(), row.names) << row.version;
  }
}

TEST_F(PythonFacts, WhereTorchIsFound) {
  EXPECT_EQ(Names(), RecorderNames::kBoth) << "nowhere";
  Torch("/venv/lib/python3.11/site-packages", "2.15.0");
  Venv();
  EXPECT_EQ(Names("/venv/bin/python3"), RecorderNames::kNew);
  EXPECT_EQ(Names(), RecorderNames::kBoth) << "not in the environment";
  Torch("/usr/local/lib/python3.11/dist-packages", "2.6.0");
  EXPECT_EQ(Names(), RecorderNames::kOld);
  Torch("/home/user/.local/lib/python3.11/site-packages", "2.9.0");
  machine_.Set("HOME", "/home/user");
  EXPECT_EQ(Names(), RecorderNames::kBoth) << "two that differ";
  EXPECT_EQ(Names("/venv/bin/python3"), RecorderNames::kNew);
  Torch("/src/pytorch", "2.5.0");
  machine_.Set("PYTHONPATH", ":/src/pytorch");
  EXPECT_EQ(Names("/venv/bin/python3"), RecorderNames::kBoth);
}

}  // namespace
}  // namespace muster::agent
