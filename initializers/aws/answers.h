// What hands out temporary keys around a container on AWS says in JSON: the container's endpoint, the instance's
// metadata service, the portal of single sign-on, a process. STS's XML is s3_answers.h's. Pure; outside bytes.
//
// Keys that could not stand in a header are refused. No message shows one.
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

// {AccessKeyId, SecretAccessKey [, Token, Expiration]}, as containers' endpoints and the metadata service give.
// PermissionDenied: {Code, Message}, which says no. InvalidArgument: it is something else; says what is missing.
StatusOr<TemporaryKeys> ParseMachineKeys(std::string_view json);

// {Version: 1, AccessKeyId, SecretAccessKey [, SessionToken, Expiration]}, as a credential_process prints.
// InvalidArgument: it is something else, or of another version; says what is missing.
StatusOr<TemporaryKeys> ParseProcessKeys(std::string_view json);

// {roleCredentials: {accessKeyId, secretAccessKey, sessionToken, expiration}}, as GetRoleCredentials has it.
StatusOr<TemporaryKeys> ParseSsoKeys(std::string_view json);

// The first line of a plain answer of the metadata service: a session, a role's name. InvalidArgument: it is none, but
// a page.
StatusOr<std::string> ParseWord(std::string_view text);

}  // namespace muster::initializers
