#pragma once
// One claim of a claims file, read strictly. The format stands at the head of claims_file.h.

#include <string>

#include "train/run/config/reader.h"
#include "train/run/config/yaml.h"
#include "train/study/compare/claims/claims_file.h"
#include "train/study/compare/claims/yaml_map.h"

namespace difftape::study {

/// Seeds, as integers or as ranges "11..18". Reports anything else, and a seed that is named twice.
Seeds read_seeds(const run::YamlNode& list, const YamlMap& map, const std::string& key);

/// Reads claims of a file whose seeds, margins and arms are known already.
class ClaimReader {
 public:
  ClaimReader(const ClaimsFile& file, run::ConfigErrors& errors) : file_(&file), errors_(&errors) {}

  Claim read(const std::string& id, const run::YamlNode& node) const;

 private:
  std::string arm(const YamlMap& map, const std::string& key) const;
  void read_pair(const YamlMap& map, Claim& claim) const;
  void read_sizes(const YamlMap& map, Claim& claim) const;
  void read_rates(const YamlMap& map, Claim& claim) const;
  void take_margin(const YamlMap& map, Claim& claim) const;
  void read_numbers(const YamlMap& map, Claim& claim) const;
  void read_controls(const run::YamlNode& list, const YamlMap& of, Claim& claim) const;

  const ClaimsFile* file_;
  run::ConfigErrors* errors_;
};

}  // namespace difftape::study
