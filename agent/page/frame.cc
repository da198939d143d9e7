// SPDX-License-Identifier: Apache-2.0
#include "agent/page/frame.h"

#include <openssl/sha.h>

#include "agent/page/page_files.h"
#include "agent/report/report_text.h"
#include "base/base64.h"
#include "base/text.h"

namespace muster::agent {
namespace {

std::string HashSource(std::string_view text) {
  std::string hash(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         reinterpret_cast<unsigned char*>(hash.data()));
  return fmt::format("'sha256-{}'", ToBase64(hash));
}

}  // namespace

std::string SecurityPolicy(bool live) {
  std::string policy =
      fmt::format("default-src 'none'; base-uri 'none'; form-action 'none'; style-src {}", HashSource(kPageStyle));
  if (live) policy += fmt::format("; connect-src 'self'; script-src {}", HashSource(kLiveScript));
  return policy;
}

std::string FramedPage(const Frame& frame) {
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<title>{}</title>\n<style>{}</style>\n",
      SecurityPolicy(frame.live), EscapeHtml(frame.title), kPageStyle);
  if (frame.live) html += "<noscript><meta http-equiv=\"refresh\" content=\"5\"></noscript>\n";
  html += fmt::format(
      "</head>\n<body><a class=\"skip\" href=\"#main\">Skip to the content</a>\n"
      "<header class=\"top\"><p class=\"brand\">Muster</p>{}</header>\n"
      "<main id=\"main\" tabindex=\"-1\">\n{}</main>\n<footer>{}</footer>\n",
      frame.status, frame.main, frame.footer);
  if (frame.live) html += fmt::format("<script>{}</script>\n", kLiveScript);
  return html + "</body></html>\n";
}

}  // namespace muster::agent
