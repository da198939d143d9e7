// SPDX-License-Identifier: Apache-2.0
// The AWS SDKs' ~/.aws/config and ~/.aws/credentials, parsed by botocore's rules. Pure; untrusted input.
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
// The text in the brackets ("default", "profile dev", "sso-session x") -> the section.
using IniFile = std::map<std::string, IniSection, std::less<>>;

// A comment is a whole line that begins with # or ;. A ' #' within a value is part of the value. An indented line below
// a key continues its value, after a line break. Below a key without a value ("s3 ="), indented lines are nested
// settings; their names get a dot: "s3.addressing_style".
//
// InvalidArgument names `path` and the line: a setting before the first section, no '=', a section or key twice, a text
// that is too long. No message shows the content of a line, which may hold a secret.
StatusOr<IniFile> ParseIni(std::string_view text, std::string_view path);

}  // namespace muster::initializers
