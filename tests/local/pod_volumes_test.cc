// SPDX-License-Identifier: Apache-2.0
// Volumes: folders, files, and the messages about wrong ones.
#include "tests/local/pod_made.h"

namespace muster::local {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

PodProgram WithVolume(const std::string& volume) {
  return ProgramFor(
      fmt::format("{{volumes: [{}], containers: [{{name: c, command: [x], volumeMounts: [{{name: v, "
                  "mountPath: /m}}]}}]}}",
                  volume));
}

// The folders that a volume needs, without those of every pod: "/run/pod/volumes/v".
std::vector<std::string> FolderTexts(const PodProgram& program) {
  std::vector<std::string> texts;
  for (const PodFolder& folder : program.folders) {
    if (folder.path == "/run/pod" || folder.path == "/run/pod/volumes" ||
        folder.path == "/run/pod/termination-messages")
      continue;
    texts.push_back(folder.path);
  }
  return texts;
}

// "a/b 644: text" of each file of the volume `v`.
std::vector<std::string> FileTexts(const PodProgram& program) {
  const std::string_view folder = "/run/pod/volumes/v/";
  std::vector<std::string> texts;
  for (const PodFile& file : program.files) {
    if (!file.path.starts_with(folder)) continue;
    texts.push_back(fmt::format("{} {:o}: {}", file.path.substr(folder.size()), file.mode, file.text));
  }
  return texts;
}

TEST(PodVolumes, AreFoldersOfThisMachine) {
  struct Row {
    std::string volume, mount;
    std::vector<std::string> folders;
  };
  const std::string own = "/run/pod/volumes/v";
  for (const Row& row : std::vector<Row>{
           {"{name: v}", own + " at /m", {own}},
           {"{name: v, emptyDir: {}}", own + " at /m", {own}},
           {"{name: v, emptyDir: {medium: Memory, sizeLimit: 8Gi}}", "tmpfs of 8589934592 at /m", {}},
           {"{name: v, emptyDir: {medium: Memory}}", "tmpfs of 0 at /m", {}},
           {"{name: v, emptyDir: {sizeLimit: 0}}", own + " at /m", {own}},
           {"{name: v, hostPath: {path: /srv//data/}}", "/srv/data at /m", {}},
           {"{name: v, hostPath: {path: /srv/data, type: Directory}}", "/srv/data at /m", {}},
           {"{name: v, hostPath: {path: /srv/data, type: DirectoryOrCreate}}",
            "/srv/data at /m",
            {"/srv", "/srv/data"}},
           {"{name: v, persistentVolumeClaim: {claimName: sets.v1}}",
            "/claims/sets.v1 at /m",
            {"/claims", "/claims/sets.v1"}},
           {"{name: v, persistentVolumeClaim: {claimName: sets, readOnly: true}}",
            "/claims/sets at /m (ro)",
            {"/claims", "/claims/sets"}},
           {"{name: v, configMap: {name: settings}}", own + " at /m (ro)", {own}},
           {"{name: v, secret: {secretName: absent, optional: true}}", own + " at /m (ro)", {own}},
           {"{name: v, downwardAPI: {}}", own + " at /m (ro)", {own}},
           {"{name: v, projected: {}}", own + " at /m (ro)", {own}},
       }) {
    SCOPED_TRACE(row.volume);
    const PodProgram program = WithVolume(row.volume);
    ASSERT_EQ(program.containers.size(), 1);
    EXPECT_THAT(MountTexts(program.containers[0]), ElementsAre(row.mount));
    EXPECT_EQ(FolderTexts(program), row.folders);
    EXPECT_THAT(program.ignored, IsEmpty());
  }
}

TEST(PodVolumes, FoldersComeAfterThoseAboveThem) {
  const PodProgram program = WithVolume("{name: v, configMap: {name: settings, items: [{key: A, path: a/b/c}]}}");
  std::vector<std::string> folders;
  for (const PodFolder& folder : program.folders) folders.push_back(folder.path);
  EXPECT_THAT(folders, ElementsAre("/run/pod", "/run/pod/volumes", "/run/pod/volumes/v", "/run/pod/volumes/v/a",
                                   "/run/pod/volumes/v/a/b", "/run/pod/termination-messages"));
}

TEST(PodVolumes, HaveTheFilesOfTheirSources) {
  struct Row {
    std::string volume;
    std::vector<std::string> files;
  };
  const std::string raw("\0\x01\xff", 3);
  for (
      const Row& row : std::vector<Row>{
          {"{name: v, configMap: {name: settings}}", {"A 644: one", "B 644: two", "b.c 644: three", "raw 644: " + raw}},
          {"{name: v, configMap: {name: settings, defaultMode: 256, items: [{key: A, path: x/./y}, {key: raw, path: r, "
           "mode: 511}]}}",
           {"r 777: " + raw, "x/y 400: one"}},
          {"{name: v, configMap: {name: settings, optional: true, items: [{key: A, path: a}, {key: lacking, path: "
           "b}]}}",
           {"a 644: one"}},
          {"{name: v, configMap: {name: absent, optional: true}}", {}},
          {"{name: v, configMap: {name: absent, optional: true, items: [{key: a, path: a}]}}", {}},
          {"{name: v, secret: {secretName: keys, defaultMode: 384}}",
           {"other 600: said", "plain 600: as it is", "token 600: t0"}},
          {"{name: v, secret: {secretName: keys, items: [{key: token, path: t}]}}", {"t 600: t0"}},
          {"{name: v, secret: {secretName: keys, items: [{key: token, path: t, mode: 511}]}}", {"t 700: t0"}},
          {"{name: v, downwardAPI: {defaultMode: 292, items: [{path: name, fieldRef: {fieldPath: metadata.name}}, "
           "{path: "
           "nodes, mode: 420, fieldRef: {fieldPath: \"metadata.annotations['muster.dev/nodes']\"}}]}}",
           {"name 444: train-0", "nodes 644: 4"}},
          {"{name: v, downwardAPI: {items: [{path: l, fieldRef: {fieldPath: metadata.labels}}, {path: a, fieldRef: "
           "{fieldPath: metadata.annotations}}]}}",
           {"a 644: muster.dev/nodes=\"4\"\nnote=\"say \\\"hi\\\"\\n\"", "l 644: x/y=\"2\"\nzone=\"a\""}},
          {"{name: v, downwardAPI: {items: [{path: cpu, resourceFieldRef: {containerName: c, resource: limits.cpu, "
           "divisor: 1m}}]}}",
           {"cpu 644: 2500"}},
          {"{name: v, projected: {defaultMode: 288, sources: [{configMap: {name: settings, items: [{key: A, path: "
           "a}]}}, "
           "{secret: {name: keys, items: [{key: token, path: t, mode: 256}]}}, {downwardAPI: {items: [{path: name, "
           "fieldRef: {fieldPath: metadata.uid}}]}}, {secret: {name: absent, optional: true}}]}}",
           {"a 440: one", "name 440: u-1", "t 400: t0"}},
          {"{name: v, projected: {sources: [{configMap: {name: settings, items: [{key: A, path: a}]}}, {configMap: "
           "{name: settings, items: [{key: B, path: a}]}}]}}",
           {"a 644: two"}},
      }) {
    EXPECT_EQ(FileTexts(WithVolume(row.volume)), row.files) << row.volume;
  }
}

TEST(PodVolumes, WhatOnlyAClusterCanGiveIsLeftOut) {
  const PodProgram program = WithVolume("{name: v, projected: {sources: [{serviceAccountToken: {path: token}}]}}");
  EXPECT_THAT(program.ignored,
              ElementsAre("spec.volumes[0].projected.sources[0].serviceAccountToken: only a cluster can "
                          "give it: its files are left out"));
  EXPECT_THAT(WithVolume("{name: v, emptyDir: {medium: HugePages-2Mi}}").ignored,
              ElementsAre("spec.volumes[0].emptyDir.medium: huge pages are not mounted: the volume is a folder"));
  const auto paths = WithVolume("{name: v, hostPath: {path: /a//b, type: FileOrCreate}}").host_paths;
  ASSERT_EQ(paths.size(), 1);
  EXPECT_EQ(paths[0].where + " " + paths[0].path + " " + paths[0].type, "spec.volumes[0].hostPath /a/b FileOrCreate");
}

TEST(PodVolumes, ATmpfsBelongsToOneContainer) {
  const auto said = [](const std::string& init, const std::string& more) {
    return ProgramFor(
               fmt::format("{{volumes: [{{name: v, emptyDir: {{medium: Memory, sizeLimit: 1Gi}}}}], initContainers: "
                           "[{{name: a, command: [x], volumeMounts: [{}]}}], containers: [{{name: c, command: "
                           "[x], volumeMounts: [{{name: v, mountPath: /m{}}}]}}]}}",
                           init, more))
        .ignored;
  };
  EXPECT_THAT(said("", ""), IsEmpty());
  const char* unlimited = "spec.volumes[0].emptyDir.sizeLimit: the volume is a folder, whose size is not limited";
  EXPECT_THAT(
      said("{name: v, mountPath: /n}", ""),
      ElementsAre("spec.volumes[0].emptyDir.medium: it is mounted several times: the volume is a folder on this "
                  "machine's disk",
                  unlimited));
  EXPECT_THAT(said("", ", subPath: a"),
              ElementsAre("spec.volumes[0].emptyDir.medium: it is mounted by a subPath: the volume is a folder on this "
                          "machine's disk",
                          unlimited));
}

std::string RefusedVolume(const std::string& volume, absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
  return Refused(fmt::format("{{containers: [{{name: c, command: [x]}}], volumes: [{{name: first}}, {}]}}", volume),
                 code);
}

TEST(PodVolumes, WhatIsMissingIsNotFound) {
  struct Row {
    std::string volume, message;
  };
  for (const Row& row : std::vector<Row>{
           {"{name: v, secret: {secretName: x}}",
            "spec.volumes[1].secret.secretName: there is no Secret 'x': give it by --secret x=DIR, or as a file by -f"},
           {"{name: v, configMap: {name: x}}",
            "spec.volumes[1].configMap.name: there is no ConfigMap 'x': give it by --config-map x=DIR, or as a file by "
            "-f"},
           {"{name: v, configMap: {name: settings, items: [{key: A, path: a}, {key: x, path: b}]}}",
            "spec.volumes[1].configMap.items[1].key: ConfigMap 'settings' has no key 'x'; it has 'A, B, b.c, raw'"},
           {"{name: v, projected: {sources: [{secret: {name: x}}]}}",
            "spec.volumes[1].projected.sources[0].secret.name: there is no Secret 'x'"},
       }) {
    EXPECT_THAT(RefusedVolume(row.volume, absl::StatusCode::kNotFound), HasSubstr(row.message));
  }
}

TEST(PodVolumes, WrongOnesAreRefused) {
  struct Row {
    std::string volume, message;
  };
  const std::string at = "spec.volumes[1].";
  for (const Row& row : std::vector<Row>{
           {"{emptyDir: {}}", at + "name: it is missing"},
           {"{name: a/b}", at + "name: 'a/b' is not a name of a volume: use only a-z, 0-9 and '-'"},
           {"{name: '..'}", at + "name: '..' is not a name of a volume"},
           {"{name: " + std::string(64, 'a') + "}", "is not a name of a volume"},
           {"{name: first}", at + "name: 'first' is the name of another volume, too"},
           {"{name: v, emptyDir: {}, secret: {secretName: keys}}",
            "spec.volumes[1]: it has both 'emptyDir' and 'secret'; take one of them out"},
           {"{name: v, nfs: {server: s, path: /}}",
            at + "nfs: volumes of this type are not served here; emptyDir, hostPath, persistentVolumeClaim, configMap, "
                 "secret, downwardAPI, projected are: give the folder by hostPath, or by a claim"},
           {"{name: v, emptyDir: {medium: Disk}}", at + "emptyDir.medium: 'Disk' is not one of Memory"},
           {"{name: v, emptyDir: {sizeLimit: much}}", at + "emptyDir.sizeLimit: 'much' is not a quantity"},
           {"{name: v, emptyDir: {sizeLimit: -1}}", at + "emptyDir.sizeLimit: -1 is less than 0"},
           {"{name: v, emptyDir: 5}", at + "emptyDir: 5 is not an object"},
           {"{name: v, hostPath: {}}", at + "hostPath.path: it is missing"},
           {"{name: v, hostPath: {path: data}}", at + "hostPath.path: 'data' is not an absolute path"},
           {"{name: v, hostPath: {path: /a/../b}}", at + "hostPath.path: '/a/../b' must not contain '..'"},
           {"{name: v, hostPath: {path: /a, type: Dir}}", at + "hostPath.type: 'Dir' is not one of DirectoryOrCreate"},
           {"{name: v, persistentVolumeClaim: {}}", at + "persistentVolumeClaim.claimName: it is missing"},
           {"{name: v, persistentVolumeClaim: {claimName: a/b}}",
            at + "persistentVolumeClaim.claimName: 'a/b' is not a name of a claim: use only a-z, 0-9, '-' and '.'"},
           {"{name: v, persistentVolumeClaim: {claimName: ..}}", "claimName: '..' is not a name of a claim"},
           {"{name: v, persistentVolumeClaim: {claimName: a..b}}", "claimName: 'a..b' is not a name of a claim"},
           {"{name: v, secret: {}}", at + "secret.secretName: it is missing"},
           {"{name: v, secret: {secretName: keys, defaultMode: 512}}", at + "secret.defaultMode: 512 is more than 511"},
           {"{name: v, secret: {secretName: broken}}", at + "secret.secretName: Secret 'broken': data.token: it is not "
                                                            "Base64; encode it, or put it into stringData"},
           {"{name: v, configMap: {name: broken}}",
            at +
                "configMap.name: ConfigMap 'broken': binaryData.raw: it is not Base64; encode it, or put it into data"},
           {"{name: v, configMap: {name: odd}}", at + "configMap: '../a' is not a key that ConfigMap 'odd' can have"},
           {"{name: v, configMap: {name: settings, items: [{path: a}]}}", at + "configMap.items[0].key: it is missing"},
           {"{name: v, configMap: {name: settings, items: [{key: A}]}}", at + "configMap.items[0].path: it is missing"},
           {"{name: v, configMap: {name: settings, items: [{key: A, path: /a}]}}",
            at + "configMap.items[0].path: '/a' is an absolute path; give one below the volume"},
           {"{name: v, configMap: {name: settings, items: [{key: A, path: a/../../b}]}}",
            at + "configMap.items[0].path: 'a/../../b' must not contain '..'"},
           {"{name: v, configMap: {name: settings, items: [{key: A, path: ..data}]}}",
            at + "configMap.items[0].path: '..data' must not start with '..'"},
           {"{name: v, configMap: {name: settings, items: [{key: A, path: ./}]}}",
            at + "configMap.items[0].path: './' is the volume itself; name a file below it"},
           {"{name: v, configMap: {name: settings, items: [{key: A, path: a, mode: -1}]}}",
            at + "configMap.items[0].mode: -1 is less than 0"},
           {"{name: v, configMap: {name: settings, items: [{key: A, path: a}, {key: B, path: a/b}]}}",
            "spec.volumes: '/run/pod/volumes/v/a' would be both a file and a folder"},
           {"{name: v, downwardAPI: {items: [{path: a}]}}",
            at + "downwardAPI.items[0]: it needs one of fieldRef and resourceFieldRef"},
           {"{name: v, downwardAPI: {items: [{path: a, fieldRef: {fieldPath: status.podIP}}]}}",
            at + "downwardAPI.items[0].fieldRef.fieldPath: 'status.podIP' is not one of"},
           {"{name: v, downwardAPI: {items: [{path: a, resourceFieldRef: {resource: limits.cpu}}]}}",
            at + "downwardAPI.items[0].resourceFieldRef.containerName: it is missing"},
           {"{name: v, projected: {sources: [{}]}}",
            at + "projected.sources[0]: it has none of secret, configMap, downwardAPI"},
       }) {
    EXPECT_THAT(RefusedVolume(row.volume), HasSubstr(row.message)) << row.volume;
  }
  EXPECT_THAT(RefusedVolume("{name: v, secret: {secretName: broken}}"), Not(HasSubstr("hunter2")));
}

}  // namespace
}  // namespace muster::local
