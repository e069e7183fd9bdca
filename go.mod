module github.com/streamdb/streamdb

go 1.26
