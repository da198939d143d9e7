// SPDX-License-Identifier: Apache-2.0
// Words of a container's command in variables: the contract between the controller, which writes such commands, and
// `muster exec --args-from-env`, which reads them. Also $(NAME) in the texts of a pod. Pure; linear.
//
// Programs that change pods may join the words of a command by blanks into one line for a shell (Katib does). The
// command `muster exec --args-from-env -- bash -c MUSTER_ARG_2` is the same before and after; MUSTER_ARG_2 has the
// script.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace muster {

inline constexpr char kArgsFromEnvFlag[] = "--args-from-env";

// The variable of word `index` of the command, counted from 0.
std::string ArgVariable(size_t index);
// Whether `text` has the form of ArgVariable().
bool IsArgVariable(std::string_view text);

// Whether `word` stays one and the same word in a line of a shell.
bool IsPlainWord(std::string_view word);

inline constexpr size_t kLongestForPrograms = (128 << 10) - 1;  // bytes of an argument: MAX_ARG_STRLEN without the NUL

// Replaces each $(NAME) in `text` by value_of(NAME), and $$ by $, as Kubernetes does in command, args and env. A
// reference without an end stays as it is. Ends once the result is longer than kLongestForPrograms. Source: Kubernetes,
// third_party/forked/golang/expansion.
std::string ExpandReferences(std::string_view text, const std::function<std::string(std::string_view name)>& value_of);
// What ExpandReferences() turns into `text`: "$(date)" gives "$$(date)", "$HOME" stays.
std::string EscapeReferences(std::string_view text);

}  // namespace muster
