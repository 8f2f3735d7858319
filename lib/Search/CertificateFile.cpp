#include "windlass/Search/Certificate.h"

#include "IntegerJson.h"
#include "windlass/Support/InputFile.h"
#include "windlass/Support/Printable.h"
#include "windlass/Support/StrictJson.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace windlass;
using namespace windlass::search;
using llvm::StringRef;
using llvm::Twine;

static constexpr int64_t kMostBytes = int64_t(128) << 20;

static void print(llvm::raw_ostream &out, const std::vector<int64_t> &numbers) {
  out << '[';
  llvm::interleave(numbers, out, ",");
  out << ']';
}

std::string windlass::search::printCertificates(const std::vector<NamedCertificate> &certificates) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << "{\"version\":1,\"certificates\":[";
  for (size_t k = 0; k < certificates.size(); ++k) {
    const Certificate &certificate = certificates[k].certificate;
    out << (k ? "},\n" : "\n") << "{\"name\":";
    print(out, certificates[k].name);
    out << ",\"bound\":" << certificate.bound << ",\n\"prices\":";
    print(out, certificate.prices);
    out << ",\n\"messages\":[";
    for (size_t e = 0; e < certificate.messages.size(); ++e) {
      out << (e ? ",\n[" : "\n[");
      print(out, certificate.messages[e][0]);
      out << ',';
      print(out, certificate.messages[e][1]);
      out << ']';
    }
    out << ']';
  }
  out << (certificates.empty() ? "]}\n" : "}\n]}\n");
  return text;
}

llvm::Expected<std::vector<NamedCertificate>> windlass::search::parseCertificates(StringRef text) {
  if (text.size() > static_cast<size_t>(kMostBytes))
    return makeError("has " + Twine(text.size()) + " bytes; at most " + Twine(kMostBytes) + " are read");
  IntegerJson json(text);
  std::vector<NamedCertificate> certificates;
  auto readList = [&](std::vector<int64_t> &list) { json.array([&] { list.push_back(json.signedInteger()); }); };
  auto readMessages = [&] {
    std::array<std::vector<int64_t>, 2> &sides = certificates.back().certificate.messages.emplace_back();
    size_t side = 0;
    json.array([&] {
      std::vector<int64_t> none;
      readList(side < sides.size() ? sides[side] : none);
      ++side;
    });
    if (side != sides.size())
      json.fail("has messages of edge " + Twine(certificates.back().certificate.messages.size() - 1) + " to " +
                Twine(side) + " nodes; an edge has 2");
  };
  auto readOne = [&] {
    NamedCertificate &its = certificates.emplace_back();
    json.object({{"name", [&] { readList(its.name); }},
                 {"bound", [&] { its.certificate.bound = json.integer(); }},
                 {"prices", [&] { readList(its.certificate.prices); }},
                 {"messages", [&] { json.array(readMessages); }}});
  };
  json.object({{"version",
                [&] {
                  if (json.integer() != 1)
                    json.fail("is of another version than 1");
                }},
               {"certificates", [&] { json.array(readOne); }}});
  json.finish();
  if (json.failed())
    return makeError(json.message());
  return std::move(certificates);
}

llvm::Expected<std::vector<NamedCertificate>> windlass::search::readCertificates(StringRef path) {
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> file = readInputFile(path, kMostBytes, "certificate");
  if (!file)
    return file.takeError();
  llvm::Expected<std::vector<NamedCertificate>> certificates = parseCertificates((*file)->getBuffer());
  if (!certificates)
    return makeError("the certificate " + printable(path) + " " + llvm::toString(certificates.takeError()));
  return certificates;
}
