// SPDX-License-Identifier: Apache-2.0
#include "agent/commands/arguments.h"

#include "base/exit_codes.h"
#include "base/print.h"
#include "base/text.h"
#include "usage/app_command.h"

namespace muster::agent {
namespace {

// For an option's check(): "" for a number above 0, else the error. CLI11's own would name a range of 300 digits.
std::string WantPositive(const std::string& text) {
  auto number = ParseDouble(text);
  return number && *number > 0 ? "" : fmt::format("'{}': want a number, more than 0", text);
}

std::string WantPort(const std::string& text) {
  auto number = ParseInt(text);
  return number && *number >= 0 && *number <= 65535 ? "" : fmt::format("'{}': want a port, 0 to 65535", text);
}

}  // namespace

struct Arguments::Parser {
  Parser(const char* summary, const char* command) : app(summary, command) {}
  CLI::App app;
};

Arguments::Arguments(const char* summary, const char* command) : parser_(std::make_unique<Parser>(summary, command)) {}
Arguments::~Arguments() = default;

void Arguments::TakeLast() { parser_->app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast); }

void Arguments::Switch(const char* names, bool* value, const char* help) { parser_->app.add_flag(names, *value, help); }

void Arguments::Text(const char* names, std::string* value, const char* help, const Form& form) {
  CLI::Option* option = parser_->app.add_option(names, *value, help)->required(form.required);
  if (form.metavar[0] != 0) option->type_name(form.metavar);
  if (form.variable[0] != 0) option->envname(form.variable);
  if (form.shows_default) option->capture_default_str();
}

void Arguments::Texts(const char* names, std::vector<std::string>* values, const char* help, bool required) {
  parser_->app.add_option(names, *values, help)->required(required);
}

void Arguments::Positive(const char* names, double* value, const char* help) {
  parser_->app.add_option(names, *value, help)->check(WantPositive);
}

void Arguments::Positives(const char* names, std::vector<int>* values, const char* help) {
  parser_->app.add_option(names, *values, help)->required()->check(WantPositive);
}

void Arguments::Port(const char* names, int* value, const char* help) {
  parser_->app.add_option(names, *value, help)->check(WantPort)->capture_default_str();
}

void Arguments::Exclude(const char* one, const char* other) {
  parser_->app.get_option(one)->excludes(parser_->app.get_option(other));
}

bool Arguments::Given(const char* name) const { return parser_->app.count(name) > 0; }

std::optional<int> Arguments::Parse(const Call& call) {
  CLI::App& app = parser_->app;
  if (call.description != nullptr) {
    *call.description = usage::Describe(app);
    return 0;
  }
  try {
    std::vector<std::string> reversed(call.arguments.rbegin(),
                                      call.arguments.rend());  // CLI11 takes them from the back
    app.parse(reversed);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // prints the help
    PrintTo(stderr, "{}: {}; see {} --help\n", app.get_name(), error.what(), app.get_name());
    return kExitUsage;
  }
}

}  // namespace muster::agent
