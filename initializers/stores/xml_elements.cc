// SPDX-License-Identifier: Apache-2.0
#include "initializers/stores/xml_elements.h"

#include <expat.h>

#include <algorithm>
#include <memory>

#include "base/quoted.h"
#include "base/text.h"

namespace muster::initializers {
namespace {

// Separates namespace and name; neither can contain it.
constexpr char kNamespaceEnd = '\n';
constexpr size_t kShown = 100;  // bytes shown of a text that is not XML

// Since 2.9, which Debian 13 has, the old name is deprecated; Debian 12 has only that.
#if XML_MAJOR_VERSION > 2 || XML_MINOR_VERSION >= 9
constexpr auto* kLineNumber = &XML_GetCurrentLineNumber64;
#else
constexpr auto* kLineNumber = &XML_GetCurrentLineNumber;
#endif

class Reader {
 public:
  explicit Reader(const XmlElementEnd& ended) : ended_(ended), parser_(XML_ParserCreateNS(nullptr, kNamespaceEnd)) {
    if (!parser_) return;
    XML_SetUserData(parser_.get(), this);
    XML_SetElementHandler(
        parser_.get(), [](void* self, const XML_Char* name, const XML_Char**) { Self(self)->Start(name); },
        [](void* self, const XML_Char*) { Self(self)->End(); });
    XML_SetCharacterDataHandler(parser_.get(), [](void* self, const XML_Char* text, int length) {
      Self(self)->Text({text, static_cast<size_t>(length)});
    });
    XML_SetStartDoctypeDeclHandler(
        parser_.get(), [](void* self, const XML_Char*, const XML_Char*, const XML_Char*, int) {
          Self(self)->Stop(absl::InvalidArgumentError("it has a document type declaration, which no S3 answer has"));
        });
  }

  Status Read(std::string_view xml) {
    if (!parser_) return absl::ResourceExhaustedError("there is no memory for an XML parser");
    constexpr size_t kMost = size_t{1} << 30;  // expat counts in int
    if (xml.size() > kMost) return absl::InvalidArgumentError("it is longer than 1 GiB");
    const bool whole = XML_Parse(parser_.get(), xml.data(), static_cast<int>(xml.size()), 1) == XML_STATUS_OK;
    if (whole && status_.ok()) return status_;
    if (status_.ok()) status_ = absl::InvalidArgumentError(XML_ErrorString(XML_GetErrorCode(parser_.get())));
    return Annotate(status_, fmt::format("line {}", kLineNumber(parser_.get())));
  }

 private:
  struct Freer {
    void operator()(XML_Parser parser) const { XML_ParserFree(parser); }
  };
  static Reader* Self(void* self) { return static_cast<Reader*>(self); }

  void Stop(Status status) {
    if (status_.ok()) status_ = std::move(status);
    XML_StopParser(parser_.get(), XML_FALSE);  // expat may still make a few calls
  }

  void Start(std::string_view name) {
    if (!status_.ok()) return;
    if (size_t at = name.rfind(kNamespaceEnd); at != std::string_view::npos) name.remove_prefix(at + 1);
    if (name.size() > kLongestXmlName) {
      return Stop(absl::InvalidArgumentError(fmt::format("an element's name has more than {} bytes", kLongestXmlName)));
    }
    if (++depth_ > kDeepestXml) {
      return Stop(absl::InvalidArgumentError(fmt::format("more than {} elements are within each other", kDeepestXml)));
    }
    if (depth_ > 1) path_ += '/';
    path_ += name;
    text_.clear();
  }

  void Text(std::string_view text) {
    if (!status_.ok()) return;
    if (text.size() > kLongestXmlText - text_.size()) {
      return Stop(
          absl::InvalidArgumentError(fmt::format("the text of {} has more than {} bytes", path_, kLongestXmlText)));
    }
    text_ += text;
  }

  void End() {
    if (!status_.ok()) return;
    if (Status status = ended_(path_, text_); !status.ok()) return Stop(std::move(status));
    --depth_;
    path_.resize(depth_ == 0 ? 0 : path_.rfind('/'));
    text_.clear();
  }

  const XmlElementEnd& ended_;
  const std::unique_ptr<std::remove_pointer_t<XML_Parser>, Freer> parser_;
  std::string path_, text_;
  size_t depth_ = 0;
  Status status_;
};

bool LooksLikeHtml(std::string_view text) {
  const std::string start = Lower(Strip(text.substr(0, 1000)));
  return start.starts_with("<!doctype html") || start.starts_with("<html");
}

}  // namespace

Status ReadXml(std::string_view xml, const XmlElementEnd& ended) {
  if (LooksLikeHtml(xml)) {
    return absl::InvalidArgumentError(
        fmt::format("it is an HTML page: {}; is a proxy, a console or a login in between? Check the endpoint",
                    Quoted(xml, kShown)));
  }
  if (Strip(xml).empty()) return absl::InvalidArgumentError("it is empty");
  Status status = Reader(ended).Read(xml);
  const std::string_view start = Strip(xml.substr(0, 1000));
  if (!status.ok() && !start.starts_with('<') && !start.starts_with("\xef\xbb\xbf<")) {
    return absl::InvalidArgumentError(fmt::format("it is not XML: {}", Quoted(xml, kShown)));
  }
  return status;
}

std::optional<std::string_view> Below(std::string_view path, std::string_view parent) {
  if (path.size() <= parent.size() || !path.starts_with(parent) || path[parent.size()] != '/') return std::nullopt;
  return path.substr(parent.size() + 1);
}

}  // namespace muster::initializers
