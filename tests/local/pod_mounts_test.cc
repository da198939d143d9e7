// SPDX-License-Identifier: Apache-2.0
// The mounts of a container: order, subPath, subPathExpr, and the messages about wrong ones.
#include "tests/local/pod_made.h"

namespace muster::local {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Spec(const std::string& mounts, const std::string& rest = "") {
  return fmt::format(
      "{{volumes: [{{name: v}}, {{name: r, hostPath: {{path: /}}}}, {{name: p, persistentVolumeClaim: {{claimName: "
      "sets}}}}, {{name: s, configMap: {{name: "
      "settings}}}}], containers: [{{name: c, command: [x], volumeMounts: [{}]{}}}]}}",
      mounts, rest);
}

TEST(PodMounts, AreWhereTheContainerSaysIt) {
  const std::string env =
      ", env: [{name: RANK, value: '3'}, {name: SELF, valueFrom: {fieldRef: {fieldPath: "
      "metadata.name}}}]";
  struct Row {
    std::string mounts;
    std::vector<std::string> made;
  };
  for (const Row& row : std::vector<Row>{
           {"{name: v, mountPath: /a/}", {"/run/pod/volumes/v at /a"}},
           {"{name: v, mountPath: a/b}", {"/run/pod/volumes/v at /a/b"}},
           {"{name: v, mountPath: /a, readOnly: true}", {"/run/pod/volumes/v at /a (ro)"}},
           {"{name: v, mountPath: /a/b/c}, {name: p, mountPath: /a}, {name: v, mountPath: /a/b}",
            {"/claims/sets at /a", "/run/pod/volumes/v at /a/b", "/run/pod/volumes/v at /a/b/c"}},
           {"{name: p, mountPath: /a, subPath: x/y}", {"/claims/sets/x/y at /a"}},
           {"{name: p, mountPath: /a, subPath: ./x//y/}", {"/claims/sets/x/y at /a"}},
           {"{name: p, mountPath: /a, subPath: .}", {"/claims/sets at /a"}},
           {"{name: p, mountPath: /a, subPath: ..x}", {"/claims/sets/..x at /a"}},
           {"{name: s, mountPath: /etc/a.conf, subPath: A}", {"/run/pod/volumes/s/A at /etc/a.conf (ro)"}},
           {"{name: r, mountPath: /a, subPath: srv}", {"/srv at /a"}},
           {"{name: p, mountPath: /a, subPathExpr: $(SELF)/r$(RANK)}", {"/claims/sets/train-0/r3 at /a"}},
           {"{name: p, mountPath: /a, subPathExpr: $$(SELF)}", {"/claims/sets/$(SELF) at /a"}},
       }) {
    SCOPED_TRACE(row.mounts);
    const PodProgram program = ProgramFor(Spec(row.mounts, env));
    ASSERT_EQ(program.containers.size(), 1);
    EXPECT_EQ(MountTexts(program.containers[0]), row.made);
  }
}

TEST(PodMounts, FoldersOfSubPathsAreMadeButNotInPlaceOfFiles) {
  std::vector<std::string> folders;
  for (const PodFolder& folder : ProgramFor(Spec("{name: p, mountPath: /a, subPath: x/y}, {name: s, mountPath: /b, "
                                                 "subPath: A}, {name: p, mountPath: /c, subPath: x/z}"))
                                     .folders) {
    folders.push_back(folder.path);
  }
  EXPECT_THAT(folders, ElementsAre("/run/pod", "/run/pod/volumes", "/run/pod/volumes/v", "/claims", "/claims/sets",
                                   "/run/pod/volumes/s", "/claims/sets/x", "/claims/sets/x/y", "/claims/sets/x/z",
                                   "/run/pod/termination-messages"));
  EXPECT_THAT(folders, Not(Contains("/run/pod/volumes/s/A")));
}

TEST(PodMounts, ASubPathExprHasTheContainersPaths) {
  const PodProgram program =
      ProgramFor(Spec("{name: v, mountPath: /out}, {name: p, mountPath: /in, subPathExpr: 'x$(DIR)'}",
                      ", env: [{name: DIR, value: /out}], args: [/in/a]"),
                 PlaceWithoutRoots());
  EXPECT_THAT(program.containers[0].command, ElementsAre("x", "/claims/sets/x/out/a"));
}

TEST(PodMounts, WrongOnesAreRefused) {
  struct Row {
    std::string mounts, message;
  };
  const std::string at = "spec.containers[0].volumeMounts[0].";
  for (const Row& row : std::vector<Row>{
           {"{mountPath: /a}", at + "name: it is missing"},
           {"{name: w, mountPath: /a}", at + "name: 'w' is not a volume of the pod"},
           {"{name: v}", at + "mountPath: it is missing"},
           {"{name: v, mountPath: /}", at + "mountPath: '/' is the container's root; give a path below it"},
           {"{name: v, mountPath: /a/../..}", at + "mountPath: '/a/../..' must not contain '..'"},
           {R"({name: v, mountPath: "/a\0b"})", at + "mountPath: it has a byte 0"},
           {"{name: v, mountPath: /a}, {name: p, mountPath: /a/}",
            "spec.containers[0].volumeMounts[1].mountPath: '/a' is the place of another mount, too"},
           {"{name: s, mountPath: /a, subPath: A/x}", "spec.volumes: '/run/pod/volumes/s/A' would be both a file and"},
           {"{name: v, mountPath: /a, subPath: /x}",
            at + "subPath: '/x' is an absolute path; give one below the volume"},
           {"{name: v, mountPath: /a, subPath: x/../..}", at + "subPath: 'x/../..' must not contain '..'"},
           {"{name: v, mountPath: /a, subPath: x, subPathExpr: z}", at + "subPathExpr: there is a subPath, too"},
           {"{name: v, mountPath: /a, subPathExpr: $(NO)/x}", at + "subPathExpr: '$(NO)/x' needs a value of 'NO'"},
           {"{name: v, mountPath: /a, subPathExpr: $(UP)/x}", at + "subPathExpr: '../x' must not contain '..'"},
           {"{name: v, mountPath: /a, subPathExpr: $(TOP)x}", at + "subPathExpr: '/x' is an absolute path"},
       }) {
    EXPECT_THAT(Refused(Spec(row.mounts, ", env: [{name: UP, value: ..}, {name: TOP, value: /}]")),
                HasSubstr(row.message))
        << row.mounts;
  }
  EXPECT_THAT(Refused("{containers: [{name: c, command: [x], volumeDevices: [{name: v, devicePath: /dev/x}]}]}"),
              HasSubstr("spec.containers[0].volumeDevices: block devices are not served here"));
}

}  // namespace
}  // namespace muster::local
