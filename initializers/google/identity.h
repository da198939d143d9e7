// SPDX-License-Identifier: Apache-2.0
// Our identity on Google Cloud, by the rules of Application Default Credentials: environment and files. This only
// decides; google/tokens.h gets the tokens. Pure, except for the functions passed in.
//
// The first that is configured wins:
//    1. STORAGE_EMULATOR_HOST: anonymous, whatever else is set
//    2. GOOGLE_APPLICATION_CREDENTIALS: a file; a missing or unreadable file is an error
//    3. $CLOUDSDK_CONFIG/application_default_credentials.json, else ~/.config/gcloud/...; skipped if it is missing
//    4. the metadata server (GCE_METADATA_HOST, GCE_METADATA_ROOT, GCE_METADATA_IP; GKE's Workload Identity is the same
//       call); NO_GCE_CHECK=true skips it: then FailedPrecondition names what could be set, --anonymous among it
// A file's "type": service_account, authorized_user, external_account (workload identity federation: subject token from
// a file or a URL; "executable" and "environment_id" of AWS are refused with a sentence), impersonated_service_account
// (with a source of any kind but itself).
// For users: docs/initializers.md, "Google Cloud Storage".
#pragma once

#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/status.h"
#include "initializers/facts/settings.h"

namespace muster::initializers {

struct NoGoogleIdentity {};  // anonymous
struct ServiceAccount {
  std::string client_email, private_key_id, token_uri;
  std::string private_key;  // PEM; never shown
  std::string origin;       // for messages: "GOOGLE_APPLICATION_CREDENTIALS (/var/secrets/key.json)"
};
struct AuthorizedUser {
  std::string client_id, client_secret, refresh_token, token_uri, origin;
};
struct MetadataServer {
  std::string origin_url;  // "http://metadata.google.internal"
  int timeout_seconds = 3;
  int attempts = 3;  // a pod's first seconds may answer 404 or refuse the connection
};
struct SubjectToken {
  std::string file;                            // or
  std::string url;                             // with
  std::map<std::string, std::string> headers;  // GET
  std::string field;                           // of a JSON answer; empty: the text is the token
};
struct ExternalAccount {
  std::string audience, subject_token_type, token_url, origin;
  SubjectToken subject;
  std::string impersonation_url;  // empty: none
  int impersonation_seconds = 3600;
};
struct ImpersonatedAccount {
  std::string impersonation_url, origin;
  std::vector<std::string> delegates;  // the chain of delegates, in order
  int lifetime_seconds = 3600;
  std::shared_ptr<const struct GoogleIdentity> source;  // never null
};
struct GoogleIdentity {
  std::variant<NoGoogleIdentity, ServiceAccount, AuthorizedUser, MetadataServer, ExternalAccount, ImpersonatedAccount>
      who;
};

// FailedPrecondition or InvalidArgument: a configured step that cannot work; the message names the variable or file,
// the key in it, and the remedy. No message shows a secret. URLs in a file must be https, or http to this machine; a
// subject token may also come from http://169.254.169.254, where a machine of another cloud gets it.
StatusOr<GoogleIdentity> FindGoogleIdentity(const Environment& environment, const ReadText& read,
                                            const std::string& home);

}  // namespace muster::initializers
