// SPDX-License-Identifier: Apache-2.0
// Command lines: instead of images, with variables, and with this machine's paths.
#include "local/pod/paths.h"
#include "tests/local/pod_made.h"

namespace muster::local {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PodCommand, IsTheContainersOrTheImages) {
  struct Row {
    std::string container, command;  // words with '|' between
  };
  for (const Row& row : std::vector<Row>{
           {"{name: c, command: [python, a.py], args: [--lr, '1']}", "python|a.py|--lr|1"},
           {"{name: c, image: muster}", "/opt/bin/muster"},
           {"{name: c, image: muster, args: [run, x]}", "/opt/bin/muster|run|x"},
           {"{name: c, image: 'registry:5000/team/muster:4@sha256:0a', args: [x]}", "/opt/bin/muster|x"},
           {"{name: c, image: 'registry:5000/web', args: [x]}", "/opt/bin/serve|--all|x"},
           {"{name: c, image: 'muster:1', command: [muster, install, /a]}", "/opt/bin/muster|install|/a"},
           {"{name: c, image: 'web:1', command: [serve, x]}", "/opt/bin/serve|x"},
           {"{name: c, image: 'muster:1', command: [/bin/muster, x]}", "/bin/muster|x"},
           {"{name: c, image: other, command: [muster, x]}", "muster|x"},
           {"{name: c, command: ['$(A)$(B)', '$$(A)', '$(NO)', 'a$', '$(A'], args: ['-$(A)'], env: [{name: A, value: "
            "v},"
            " {name: B, value: '$(A)w'}]}",
            "vvw|$(A)|$(NO)|a$|$(A|-v"},
       }) {
    EXPECT_EQ(Join(ContainerFor(row.container).command, "|"), row.command) << row.container;
  }
}

TEST(PodCommand, OfAnUnknownImageIsRefused) {
  EXPECT_EQ(Refused("{containers: [{name: a, command: [x]}, {name: b, image: 'r/pytorch:2', args: [x]}]}"),
            "spec.containers[1].command: it is missing, and the entrypoint of image 'r/pytorch:2' is unknown; give "
            "`command`, or the image with --oci FILE");
  EXPECT_THAT(Refused("{initContainers: [{name: a}], containers: [{name: b, command: [x]}]}"),
              HasSubstr("spec.initContainers[0].command: it is missing"));
}

TEST(PodCommand, WithWrongWordsIsRefused) {
  struct Row {
    std::string container, message;
  };
  for (const Row& row : std::vector<Row>{
           {"{name: c, command: x}", "spec.containers[0].command: 'x' is not a list of strings"},
           {"{name: c, command: [x, 5]}", "spec.containers[0].command[1]: 5 is not a string; put it in quotes"},
           {R"({name: c, command: [x], args: ["a", "b\0c"]})",
            "spec.containers[0].args[1]: it has a byte 0, which no argument or variable can hold"},
           {R"({name: c, command: [x], workingDir: "/\0"})", "spec.containers[0].workingDir: it has a byte 0"},
       }) {
    EXPECT_THAT(Refused(fmt::format("{{containers: [{}]}}", row.container)), HasSubstr(row.message));
  }
}

TEST(PodPaths, AreReplacedAtTheBeginningOfWords) {
  PodPaths paths;
  paths.Add("/data", "/run/v/d");
  paths.Add("/data/in", "/run/v/i");
  paths.Add("/run", "/other");
  for (const auto& [text, replaced] : std::vector<std::pair<std::string, std::string>>{
           {"/data", "/run/v/d"},
           {"/data/", "/run/v/d/"},
           {"/data/x.py", "/run/v/d/x.py"},
           {"/data/in/x", "/run/v/i/x"},
           {"/data/inner", "/run/v/d/inner"},
           {"/database", "/database"},
           {"/data.txt", "/data.txt"},
           {"a/data", "a/data"},
           {"file:///data", "file:///data"},
           {"--in=/data", "--in=/run/v/d"},
           {"--in='/data/in' \"/data\"", "--in='/run/v/i' \"/run/v/d\""},
           {"/a:/data:/b,/data", "/a:/run/v/d:/b,/run/v/d"},
           {"cat /data\t/data/in", "cat /run/v/d\t/run/v/i"},
           {"cd /data; ls >/data/out", "cd /run/v/d; ls >/run/v/d/out"},
           {"(cd /data)&&x", "(cd /run/v/d)&&x"},
           {"/data/data /data", "/run/v/d/data /run/v/d"},
           {"", ""},
       }) {
    EXPECT_EQ(paths.In(text), replaced) << text;
  }
  EXPECT_EQ(PodPaths().In("/data"), "/data");
}

TEST(PodCommand, HasThisMachinesPathsWhereNothingCanBeMounted) {
  const std::string spec = R"({
  volumes: [{name: code, emptyDir: {}}, {name: data, persistentVolumeClaim: {claimName: sets}}],
  containers: [{name: c, command: [/code/run, '--in=$(IN)', '--in=/data'], args: ['cat /data/x', '$(IN)/y'],
    workingDir: /code/sub,
    env: [{name: IN, value: /data/in}, {name: BOTH, value: '$(IN) /code'}, {name: NOT, value: 'x/data'},
          {name: FROM, valueFrom: {fieldRef: {fieldPath: metadata.name}}}],
    volumeMounts: [{name: code, mountPath: /code/}, {name: data, mountPath: /data, subPath: a}]}]})";
  const PodProgram program = ProgramFor(spec, PlaceWithoutRoots());
  ASSERT_EQ(program.containers.size(), 1);
  const ContainerProgram& container = program.containers[0];
  EXPECT_THAT(container.command, ElementsAre("/run/pod/volumes/code/run", "--in=/claims/sets/a/in",
                                             "--in=/claims/sets/a", "cat /claims/sets/a/x", "/claims/sets/a/in/y"));
  EXPECT_EQ(container.working_directory, "/run/pod/volumes/code/sub");
  EXPECT_EQ(VariableOf(container, "BOTH"), "/claims/sets/a/in /run/pod/volumes/code");
  EXPECT_EQ(VariableOf(container, "NOT"), "x/data");
  EXPECT_EQ(VariableOf(container, "FROM"), "train-0");
  EXPECT_TRUE(container.mounts.empty());
  EXPECT_THAT(
      program.ignored,
      ElementsAre("spec.containers[0].volumeMounts: without bubblewrap nothing is mounted: command, args, env and "
                  "workingDir get the paths of the volumes' folders"));
  EXPECT_THAT(ContainerFor("{name: c, command: [/code/run], volumeMounts: [{name: code, mountPath: /code}]}",
                           PlaceHere(), ", volumes: [{name: code}]")
                  .command,
              ElementsAre("/code/run"));
}

TEST(PodCommand, TerminationMessagesGoToAFileOfThisMachine) {
  const ContainerProgram mounted = ContainerFor("{name: c, command: [x]}");
  EXPECT_EQ(mounted.termination_message, "/run/pod/termination-messages/c");
  ASSERT_EQ(mounted.mounts.size(), 1);
  EXPECT_EQ(mounted.mounts[0].source, mounted.termination_message);
  EXPECT_EQ(mounted.mounts[0].target, "/dev/termination-log");
  EXPECT_FALSE(mounted.mounts[0].read_only);
  EXPECT_EQ(VariableOf(mounted, "MUSTER_TERMINATION_LOG"), "-");
  EXPECT_EQ(ContainerFor("{name: c, command: [x], terminationMessagePath: /tmp/end}").mounts[0].target, "/tmp/end");

  const ContainerProgram direct = ContainerFor("{name: c, command: [x, /dev/termination-log]}", PlaceWithoutRoots());
  EXPECT_EQ(VariableOf(direct, "MUSTER_TERMINATION_LOG"), direct.termination_message);
  EXPECT_THAT(direct.command, ElementsAre("x", direct.termination_message));
  EXPECT_EQ(VariableOf(ContainerFor("{name: c, command: [x], terminationMessagePath: /tmp/end, env: [{name: "
                                    "MUSTER_TERMINATION_LOG, value: /tmp/end}]}",
                                    PlaceWithoutRoots()),
                       "MUSTER_TERMINATION_LOG"),
            direct.termination_message);
}

}  // namespace
}  // namespace muster::local
