// csv:FILE: a table, one sample per row. Options, after a '?' and divided by '&':
//   label=NAME|N         the column to predict, by name or by number from 1 on (-1: the last); default: the last
//   task=regression      predict the label's number; default: its class
//   label=A,B            with task=regression: several columns, whose numbers are predicted together
//   test=FILE            the test rows; default: a part of FILE, the same share of every class
//   split=0.2, seed=0    how large a part, and which
//   header=auto|yes|no   separator=auto|,|;|tab|pipe   skip=N lines before the table
//   test_skip=N          such lines in the test file; default: skip
//   missing=A,B          texts that mean "not known"; default: ?, NA, N/A, nan, null; an empty field always does
//   categories=COL,COL   columns of numbers that are names    ignore=COL,COL   columns to leave out
// What becomes of the columns: table_encoding.h.
#pragma once

#include <memory>

#include "weft/data/dataset/data_spec.h"
#include "weft/data/dataset/dataset.h"
#include "weft/data/formats/table_encoding.h"

namespace weft::data {

/// Samples are f32 (F); targets i32 () or f32 (K). `encoding` as in open_dataset().
std::unique_ptr<Dataset> open_csv(const DataSpec& spec, Split split, const std::string& encoding);
bool csv_has_test_split(const DataSpec& spec);

/// Rows to predict: as open_csv() with Split::all, but the label need not be there; targets are zeros.
std::unique_ptr<Dataset> open_csv_features(const DataSpec& spec, const std::string& encoding);

}  // namespace weft::data
