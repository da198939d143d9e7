// The shared files of the AWS SDKs, ~/.aws/config and ~/.aws/credentials, as botocore reads them. Pure; outside bytes.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/status.h"

namespace muster::initializers {

inline constexpr size_t kLongestIniFile = size_t{1} << 20;  // bytes

// Key, in lower case -> value.
using IniSection = std::map<std::string, std::string, std::less<>>;
// Name as it stands in the brackets ("default", "profile dev", "sso-session x") -> what is in it.
using IniFile = std::map<std::string, IniSection, std::less<>>;

// Comments are whole lines, with # or ; in front; ' #' within a value is part of it. What is indented below a key goes
// on with its value, after a line break; below a key without a value ("s3 =") it is settings of their own, with a dot
// in their names: "s3.addressing_style".
//
// InvalidArgument names `path` and the line: no section yet, no '=', a section or key twice, a text that is too long.
// No message shows a line, which may hold a secret.
StatusOr<IniFile> ParseIni(std::string_view text, std::string_view path);

}  // namespace muster::initializers
