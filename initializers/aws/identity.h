// SPDX-License-Identifier: Apache-2.0
// Our identity on AWS and on servers with the S3 API, by the rules of the AWS SDKs: environment and shared files, in
// botocore's order, plus the names of Kubeflow and KServe. This only decides. aws/credentials.h sends the requests, and
// reads the files that may change during a run. Pure, except for the functions passed in.
//
// The first that is configured wins:
//    1. awsAnonymousCredential=true (KServe)
//    2. ACCESS_KEY_ID, SECRET_ACCESS_KEY [, SESSION_TOKEN] (Kubeflow), then AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY
//       [, AWS_SECURITY_TOKEN or AWS_SESSION_TOKEN]; never one of each
//    3. the profile's role_arn with source_profile or credential_source
//    4. AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN (IRSA) [, AWS_ROLE_SESSION_NAME], or the profile's keys of that
//    name
//    5. the profile's sso_*; its keys in the credentials file; its credential_process; its keys in the config file
//    6. AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI (ECS, EKS Pod Identity)
//    7. the machine's metadata service
// ROLE_ARN (Kubeflow) is a role that is assumed with the identity found above; for a web identity it can be the role.
//
// A configured step that cannot work is an error; no later step is tried. Such errors are: half a pair of keys, a
// profile or a named file that is missing, profiles that are each other's source, mfa_serial, `aws login` sessions, a
// credential_process that is not a command line. For users: docs/initializers.md, "S3".
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/status.h"
#include "initializers/aws/config.h"
#include "initializers/aws/sigv4.h"

namespace muster::initializers {

// `origin` is for messages: "AWS_ACCESS_KEY_ID", "aws_access_key_id in profile dev of ~/.aws/credentials".
struct Anonymous {};
struct StaticKeys {
  AwsKeys keys;
  std::string origin;
};
struct WebIdentity {  // IRSA: AssumeRoleWithWebIdentity; the token file is read anew for each request
  std::string token_file, role_arn, session_name, origin;
};
struct AssumeRole {  // with the keys of another identity
  std::string role_arn, session_name, external_id, origin;
  int duration_seconds = 3600;
  std::shared_ptr<const struct AwsIdentity> source;  // never null
};
struct CredentialProcess {         // a program of the user that prints keys
  std::vector<std::string> words;  // as SplitWords returns them
  std::string origin;
};
struct SsoCache {  // a token that `aws sso login` has stored; used while it is valid
  std::string token_file, account_id, role_name, region, origin;
};
struct ContainerEndpoint {  // ECS, EKS Pod Identity
  // http is allowed only to this machine and to the addresses of ECS and EKS. The Authorization header is the content
  // of the file (read anew for each request), else the token, else it is not sent.
  std::string url, token, token_file, origin;
};
struct InstanceMetadata {  // IMDSv2; the last step
  std::string endpoint;    // "http://169.254.169.254"
  int timeout_seconds = 1;
  int attempts = 1;
};
struct AwsIdentity {
  std::variant<Anonymous, StaticKeys, WebIdentity, AssumeRole, CredentialProcess, SsoCache, ContainerEndpoint,
               InstanceMetadata>
      who;
};

inline constexpr std::string_view kRoleSessionName = "muster-initializer";  // if none is configured

// FailedPrecondition or InvalidArgument: a configured step that cannot work. The message names the variable, or the
// key, profile and file, and the remedy. No message shows a secret.
StatusOr<AwsIdentity> FindAwsIdentity(const AwsConfig& config);
StatusOr<AwsIdentity> FindAwsIdentity(const Environment& environment, const ReadText& read, const std::string& home);

}  // namespace muster::initializers
