// SPDX-License-Identifier: Apache-2.0
// Parses the JSON of what gives out temporary AWS keys: the container's endpoint, the instance's metadata service, the
// SSO portal, a credential_process. s3_answers.h parses the XML of STS. Pure; untrusted input.
//
// Keys that cannot stand in a header are refused. No message shows a key.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "initializers/aws/sigv4.h"

namespace muster::initializers {

struct TemporaryKeys {
  AwsKeys keys;
  int64_t expires_unix = 0;  // seconds; 0: never
};

// {AccessKeyId, SecretAccessKey [, Token, Expiration]}: from container endpoints and the metadata service.
// PermissionDenied: {Code, Message}, a refusal. InvalidArgument: anything else; the message says what is missing.
StatusOr<TemporaryKeys> ParseMachineKeys(std::string_view json);

// {Version: 1, AccessKeyId, SecretAccessKey [, SessionToken, Expiration]}: from a credential_process. InvalidArgument:
// anything else, or another version; the message says what is missing.
StatusOr<TemporaryKeys> ParseProcessKeys(std::string_view json);

// {roleCredentials: {accessKeyId, secretAccessKey, sessionToken, expiration}}: from GetRoleCredentials.
StatusOr<TemporaryKeys> ParseSsoKeys(std::string_view json);

// The first line of a plain-text answer of the metadata service: a session token, or the name of a role.
// InvalidArgument: the answer is a page instead.
StatusOr<std::string> ParseWord(std::string_view text);

}  // namespace muster::initializers
