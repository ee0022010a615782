// Package rows reads CSV and JSON files record by record, compressed or not, in constant memory. An
// error in a file is an [Error] with its position.
//
// file.go opens a file and tracks its lines; csv.go reads the rows below a header, json.go
// consecutive objects; record.go finds values by name, and values.go parses tokens and times.
package rows
