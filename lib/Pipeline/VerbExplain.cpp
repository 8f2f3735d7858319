// windlass explain: what a code in a message means and what to do; what a cluster is in full.
#include "VerbSupport.h"

#include "windlass/Cluster/Cluster.h"
#include "windlass/Pipeline/Verbs.h"
#include "windlass/Support/StrictJson.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace windlass;

/// Breaks a paragraph into lines of at most 80 columns.
static std::string wrap(llvm::StringRef text) {
  std::string out;
  size_t column = 0;
  for (llvm::StringRef word : llvm::split(text, ' ')) {
    if (column > 0 && column + 1 + word.size() > 80) {
      out += "\n";
      column = 0;
    } else if (column > 0) {
      out += " ";
      ++column;
    }
    out += word.str();
    column += word.size();
  }
  return out + "\n";
}

static llvm::json::Object describe(const DiagnosticInfo &row) {
  return llvm::json::Object{{"code", rt::diagnostic_code(row.code)},
                            {"exit_code", row.exitCode},
                            {"title", row.title},
                            {"explanation", row.explanation}};
}

/// Prints a cluster as a file that --cluster takes, with the source of each figure that has one.
static int explainCluster(llvm::StringRef text) {
  llvm::Expected<Cluster> cluster = findCluster(text);
  if (!cluster)
    return fail(Code::cluster, llvm::toString(cluster.takeError()));
  llvm::json::Object document = toJson(*cluster), sources;
  for (const auto &[key, source] : cluster->sources)
    sources[key] = source;
  if (!sources.empty())
    document["sources"] = std::move(sources);
  printJson(llvm::outs(), llvm::json::Value(std::move(document)), /*lineDepth=*/4);
  llvm::outs() << "\n";
  return kDone;
}

int windlass::runExplain(const std::vector<std::string> &words) {
  Flags flags("explain [CODE | --cluster C]",
              "Explains the code that a message bears at its end, such as WL0305; without one, lists\n"
              "all codes. With --cluster, prints a preset or a file in full, as a file to edit.");
  CommonFlags common;
  std::string cluster;
  flags.addText("cluster", "C", "a preset such as cpu:2, h200:8, a100-40g:4x8, or a file", cluster);
  common.declare(flags);
  std::vector<std::string> positional;
  int code;
  if (!parseWords(flags, common, words, positional, 0, 1, code))
    return code;
  if (flags.isGiven("cluster"))
    return positional.empty() ? explainCluster(cluster)
                              : fail(Code::usage, "explain takes a code or --cluster, not both");
  if (positional.empty()) {
    llvm::json::Array rows;
    for (const DiagnosticInfo &row : getDiagnostics()) {
      if (common.json)
        rows.push_back(describe(row));
      else
        llvm::outs() << rt::diagnostic_code(row.code) << "  " << row.title << "\n";
    }
    if (common.json)
      llvm::outs() << llvm::formatv("{0:2}", llvm::json::Value(std::move(rows))) << "\n";
    return kDone;
  }
  const DiagnosticInfo *row = findDiagnostic(positional.front());
  if (!row)
    return fail(Code::usage,
                "there is no code " + printable(positional.front()) + "; 'windlass explain' without one lists all");
  if (common.json)
    llvm::outs() << llvm::formatv("{0:2}", llvm::json::Value(describe(*row))) << "\n";
  else
    llvm::outs() << rt::diagnostic_code(row->code) << ": " << row->title << " (exit code " << row->exitCode << ")\n\n"
                 << wrap(row->explanation);
  return kDone;
}
