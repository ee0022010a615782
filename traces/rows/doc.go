// Package rows reads files of data record by record, CSV and JSON, packed or not, in memory that
// does not grow with them. What is wrong with a file is an [Error] with its place.
//
// file.go opens a file and knows its lines; csv.go reads the rows below a header, json.go values
// one after another; values.go reads tokens and times.
package rows
