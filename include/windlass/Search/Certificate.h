// Proof, in integers alone, that no solution of a problem costs less than a bound.
#ifndef WINDLASS_SEARCH_CERTIFICATE_H
#define WINDLASS_SEARCH_CERTIFICATE_H

#include "windlass/Search/Problem.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <array>
#include <string>

namespace windlass::search {

/// A Lagrangean bound. Shadow prices take the place of the rows: the bytes and loads of a label are paid for, and the
/// capacity is given back at the same price. Messages move cost between each edge and its two nodes. Whatever prices
/// and messages are, the least of every node and of every edge, taken alone, add up to no more than the cost of any
/// solution.
struct Certificate {
  /// The units: prices are multiples of 2^-40 of a cost for a byte, or of 1 for streams; messages of 2^-8 of a cost.
  static constexpr int kPriceBits = 40, kMessageBits = 8;
  /// The largest message, and the largest sum of prices.
  static constexpr int64_t kMost = int64_t(1) << 62;

  /// The proven bound; kForbidden where no solution is allowed.
  int64_t bound = 0;
  /// The price of each row, at least 0; those of the streams of a window add up to 1.
  std::vector<int64_t> prices;
  /// The cost that each edge hands to its two nodes, by label; empty where no edge hands over anything.
  std::vector<std::array<std::vector<int64_t>, 2>> messages;
};

/// Computes the bound that prices and messages prove, in one pass over nodes and edges, without `certificate.bound`.
/// Fails where they do not belong to this problem; the error continues a line that begins with the certificate's name.
llvm::Expected<int64_t> proveBound(const Problem &problem, const Certificate &certificate);

/// Searches for the best bound until it reaches `target` or `workLimit` operations are spent. The certificate depends
/// on nothing else.
Certificate certify(const Problem &problem, int64_t target, int64_t workLimit);

/// The certificate of one problem among several, with the numbers that tell it from the others.
struct NamedCertificate {
  std::vector<int64_t> name;
  Certificate certificate;
};

/// Prints a file of certificates; the same ones give the same bytes.
std::string printCertificates(const std::vector<NamedCertificate> &certificates);

/// Parses a file of certificates. The text is not trusted: numbers are checked for their range, and the memory that
/// they take is a small multiple of the text's. The error continues a line that begins with the file's name.
llvm::Expected<std::vector<NamedCertificate>> parseCertificates(llvm::StringRef text);

/// Reads and parses a file of at most 128 MiB.
llvm::Expected<std::vector<NamedCertificate>> readCertificates(llvm::StringRef path);

} // namespace windlass::search

#endif
