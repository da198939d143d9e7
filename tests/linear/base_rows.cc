// SPDX-License-Identifier: Apache-2.0
// base, net, http and launcher: stderr of programs, termination messages, error files, resolv.conf, proxies.
#include "base/base64.h"
#include "base/collective_timeout.h"
#include "base/quoted.h"
#include "base/reason_line.h"
#include "base/termination_message.h"
#include "http/endpoint_url.h"
#include "http/proxies.h"
#include "launcher/exit_record.h"
#include "net/dns_lookup.h"
#include "tests/linear/linear.h"

namespace muster {
namespace {

void Reason(const std::string& text) { ReasonLine(text); }

void Timeout(const std::string& text) {
  FindCollectiveTimeout({{.stderr_tail = {"Watchdog caught collective operation timeout", text}}});
}

// As a worker's texts: the message of an error file, and the lines of stderr.
void OfAWorker(const std::string& text) {
  TerminationMessage message{.reason = text, .node = text};
  message.cause = WorkerFailure{.message = text, .stderr_tail = {text, text}};
  EncodeTerminationMessage(message);
}

void Names(const std::string& text) { net::CompleteNames("a.b", net::ReadSearchRules(text, "", "", "host.example")); }

void NoProxy(const std::string& text) {
  const auto proxies = http::Proxies::Read({{"https_proxy", "http://proxy:1"}, {"no_proxy", text}});
  if (proxies.ok()) proxies->For("https://host.example/file");
}

const std::vector<LinearRow> kRows = {
    {"reason_line", "OneLine", Repeats("word "), Reason},
    {"reason_line", "EmptyLines", Repeats("\n"), Reason},
    {"reason_line", "Updates", Repeats(" 1%|#\r"), Reason},
    {"reason_line", "Tracebacks",
     Repeats("Traceback (most recent call last):\n  File \"t.py\", line 3, in f\n    f()\nValueError: x\n"), Reason},
    {"reason_line", "Chains", Repeats("During handling of the above exception\nTraceback (most recent call last):\n"),
     Reason},
    {"reason_line", "Causes",
     [](size_t parts) {
       const std::string_view trace = "Traceback (most recent call last):\nValueError: ";
       const std::string link = fmt::format("The above exception was the direct cause\n{}y\n", trace);
       return fmt::format("{}{}\n{}", trace, std::string(100 * parts, 'x'), Repeats(link)(parts));
     },
     Reason},
    {"reason_line", "Stacks", Repeats("MPID_Init(958)...:\nFatal error in x, error stack:\n"), Reason},
    {"reason_line", "Colons", Repeats("panic:\n (most recent call last):\n"), Reason},
    {"reason_line", "Json", Repeats("ValueError: x\\n", "{\"Traceback (most recent call last)"), Reason},
    {"reason_line", "Boxes",
     Repeats("================================================================================\n=   x\n"), Reason},
    {"reason_line", "Indented", Repeats("a:\n  \n  b\n"), Reason},
    {"reason_line", "Fields", Repeats("level=\"level\": ["), Reason},
    {"reason_line", "Operations", Repeats("OpType=OpType="), Timeout},
    {"reason_line", "Ranks", Repeats("Rank [4, ", "", " failed to pass monitoredBarrier"), Timeout},
    {"reason_line", "Marks", Numbers([](size_t rank) {
       return fmt::format("[rank{}]: Traceback (most recent call last):\n[rank{}]: ValueError: x\n", rank, rank);
     }),
     Reason},
    {"reason_line", "Tags", Repeats("[1,0]<stderr>:x"), Reason},
    {"reason_line", "TimesOfTags", Repeats("[Sat Nov 28 08:16:00 2026][1]<stderr>:"), Reason},
    {"reason_line", "HalfTags", Repeats("[1,0", "]<stderr>:"), Reason},
    {"reason_line", "Digits", Repeats("1", "[1,0]<stderr>:["), Reason},
    {"reason_line", "Escapes", Repeats("\x1b[1\x1b]8;;"), Reason},
    {"reason_line", "Rules",
     Repeats("----------------------------------------------------------------------------\n"
             "mpirun noticed:\n\nprocess 1\n"),
     Reason},
    {"reason_line", "Groups",
     Repeats("  + Exception Group Traceback (most recent call last):\n  | ExceptionGroup: x\n"
             "    | ValueError: a\n"),
     Reason},
    {"reason_line", "Dashes", Repeats("-"), Reason},
    {"termination_message", "Words", Repeats("word "), OfAWorker},
    {"termination_message", "Lines", Repeats("x\n"), OfAWorker},
    {"termination_message", "NoUtf8", Repeats("\xf0\x80"), OfAWorker},
    {"termination_message", "Lists", Repeats("[[],", R"({"version":1,"cause":{"stderr_tail":[)", "[]]}}"),
     [](const std::string& text) { (void)ParseTerminationMessage(text); }},
    {"error_file", "Words", Repeats("word ", R"({"message":{"message":")", "\"}}"),
     [](const std::string& text) { (void)launcher::ParseErrorFile(text); }},
    {"search_rules", "Lines", Repeats("search a.b\n"), Names},
    {"search_rules", "Domains", Numbers([](size_t number) { return fmt::format(" d{}.example", number); }, "search"),
     Names},
    {"search_rules", "Options", Repeats(" ndots:3", "options"), Names},
    {"proxies", "NoProxy", Numbers([](size_t number) { return fmt::format("h{}.example,", number); }), NoProxy},
    {"proxies", "Networks", Repeats("10.0.0.0/8, [::1] "), NoProxy},
    {"proxies", "OneEntry", Repeats("a.b:1"), NoProxy},
    {"proxies", "Proxy", Repeats("a@", "http://"),
     [](const std::string& text) {
       (void)http::Proxies::Read({{"https_proxy", text}});
     }},
    {"header_values", "Base64", Repeats("QUJD"), [](const std::string& text) { (void)FromBase64(text); }},
    {"header_values", "Quotes", Repeats("\xe2\x80\xae\x01"),
     [](const std::string& text) { Quoted(text, text.size()); }},
    {"header_values", "QuotedLines", Repeats("\n word\n"), [](const std::string& text) { QuotedEnd(text, 500); }},
};

INSTANTIATE_TEST_SUITE_P(Base, Linear, testing::ValuesIn(kRows), NameOfRow);

}  // namespace
}  // namespace muster
